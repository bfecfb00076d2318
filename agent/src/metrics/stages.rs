//! How long each part of a change of the host takes, by what a transaction tells on its way.

use std::time::Instant;

use super::APPLY_SECONDS;
use crate::transaction::Event;

/// An agent works here, and has undone nothing yet.
pub(crate) fn begin() {
    APPLY_SECONDS.begin(&["revert"]);
}

/// The clock of one transaction. A plan that is empty is no change, and isn't counted.
pub(crate) struct Stages {
    stage: Option<&'static str>,
    since: Instant,
}

impl Stages {
    pub(crate) fn begin() -> Self {
        Self { stage: Some("plan"), since: Instant::now() }
    }

    pub(crate) fn told(&mut self, event: &Event<'_>) {
        match event {
            Event::Planned(plan) if plan.is_empty() => self.stage = None,
            Event::Planned(_) => self.next(Some("apply")),
            Event::Asking => self.next(Some("wire")),
            Event::Asked => self.next(Some("apply")),
            Event::Verifying => self.next(Some("verify")),
            Event::Reverting => self.next(Some("revert")),
            Event::Recovering => (self.stage, self.since) = (Some("revert"), Instant::now()),
            Event::Recovered(_) => self.next(Some("plan")),
            Event::Reverted(_) => self.next(None),
            Event::Step(_) | Event::Unreadable(_) | Event::Discarded { .. } => {}
        }
    }

    fn next(&mut self, stage: Option<&'static str>) {
        if let Some(over) = self.stage {
            APPLY_SECONDS.observe(&[over], self.since.elapsed().as_secs_f64());
        }
        (self.stage, self.since) = (stage, Instant::now());
    }

    /// It is over: what was under way took until now.
    pub(crate) fn end(mut self) {
        // An error before there was a plan is no plan.
        if self.stage != Some("plan") {
            self.next(None);
        }
    }
}
