//! The way from one state to another, step by step, each step played in memory as it is found.
//!
//! Both states are whole; what is equal in both costs a comparison. Because every phase looks at the state as
//! the phases before it leave it, what the kernel takes away on its own is seen and put back.

mod addresses;
mod links;
mod options;
mod routes;

use super::error::{Problem, ProblemKind};
use super::memory;
use super::step::Step;
use crate::state::{IfName, Observed, Route};
use std::borrow::Cow;
use std::collections::BTreeSet;

/// Steps, and what would go wrong with them.
pub(super) struct Outcome {
    pub(super) steps: Vec<Step>,
    pub(super) failures: Vec<Problem>,
}

/// `named` are the links that somebody asked to be gone: of the two ends of a veth, which only go together, that one
/// is removed by name.
pub(super) fn diff(from: &Observed, to: &Observed, named: &BTreeSet<IfName>) -> Outcome {
    let mut walk = Walk {
        from,
        named,
        work: Cow::Borrowed(from),
        steps: Vec::new(),
        made: BTreeSet::new(),
        failures: Vec::new(),
    };
    walk.links(to);
    let losing = walk.gains(to);
    walk.early_routes(to, &losing);
    walk.addresses(to);
    walk.routes(to);
    walk.rules(to);
    if walk.work.dns != to.dns {
        walk.step(Step::SetDns { dns: to.dns.clone() });
    }
    if let Some(hostname) = to
        .hostname
        .as_ref()
        .filter(|h| walk.work.hostname.as_ref() != Some(h))
    {
        walk.step(Step::SetHostname {
            hostname: hostname.clone(),
        });
    }
    Outcome {
        steps: walk.steps,
        failures: walk.failures,
    }
}

struct Walk<'a> {
    from: &'a Observed,
    named: &'a BTreeSet<IfName>,
    /// The state after the steps so far; copied at the first one.
    work: Cow<'a, Observed>,
    steps: Vec<Step>,
    /// Links made on the way and not yet brought up.
    made: BTreeSet<IfName>,
    failures: Vec<Problem>,
}

impl Walk<'_> {
    fn step(&mut self, step: Step) {
        if let Err(error) = memory::apply(self.work.to_mut(), &step) {
            self.failed(&step, error);
        }
        self.steps.push(step);
    }

    fn failed(&mut self, step: &Step, error: memory::MemoryError) {
        // A route that the kernel has taken once it takes again; it knows more than the model does.
        if let Step::AddRoute { route } | Step::AppendRoute { route } | Step::ReplaceRoute { route } = step
            && self.from.routes.contains(route)
        {
            self.work.to_mut().routes.push(route.clone());
            return;
        }
        let path = format!("step {} ({step})", self.steps.len() + 1);
        self.failures.push(Problem {
            path,
            kind: ProblemKind::Step(error),
        });
    }

    fn rules(&mut self, to: &Observed) {
        if self.work.rules == to.rules {
            return;
        }
        let (from, wanted): (BTreeSet<_>, BTreeSet<_>) = (
            self.work.rules.iter().cloned().collect(),
            to.rules.iter().cloned().collect(),
        );
        // New before old: at no moment does a packet that has a rule in both states find none.
        for rule in to.rules.iter().filter(|r| !from.contains(r)) {
            self.step(Step::AddRule { rule: rule.clone() });
        }
        for rule in from.iter().filter(|r| !wanted.contains(r)) {
            self.step(Step::DeleteRule { rule: rule.clone() });
        }
    }
}

/// Routes in a form that can be compared whatever the order.
fn sorted(routes: &[Route]) -> Vec<&Route> {
    let mut list: Vec<&Route> = routes.iter().collect();
    list.sort();
    list
}
