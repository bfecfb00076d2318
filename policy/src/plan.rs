//! From what is to what should be: a plan of ordered steps, its way back, and what is unmet.
//!
//! Owns every decision about a change. [`plan`] merges a desired document over what was observed into a target
//! state (`target`) and walks from one to the other (`diff`), playing each step in memory ([`memory`]) so
//! that what the kernel does on its own (routes that go with an address, ports that fall down) is seen before
//! anything is touched. What is left for execution is to send the steps, in order.
//!
//! No route that stays is away while a plan runs, with these exceptions, each put back by a later step of the same
//! plan: the kernel takes the routes of a link that is made anew, comes to a vrf or has to go down for a change; direct
//! ones of a link that loses its last IPv4 address; and those whose source is an address that goes and comes again, for
//! the sake of order (see `diff::addresses`). What goes for good, and by no step, is said: [`Plan::losses`].
//!
//! Called by the agent and by `berth plan`. Must never guess what it can't see: a document that can't be
//! brought about is refused with every problem and its path.
//!
//! Cost: n log n in links, addresses and routes to find out what to do; a plan of what already holds compares and writes
//! nothing. Each step that adds or takes away a route is played in memory with one pass over the routes there are: a plan
//! that moves 20,000 of them takes seconds.

mod diff;
mod document;
mod error;
mod loss;
pub mod memory;
mod order;
mod print;
mod reach;
mod resolve;
mod revert;
mod step;
mod target;
#[cfg(any(test, feature = "testing"))]
pub mod testing;
mod verify;

use crate::state::{Desired, Observed};
use serde::Serialize;

pub use document::plan_document;
pub use error::{PlanError, Problem, ProblemKind};
pub use loss::Loss;
pub use step::{NewLink, Step};
pub use verify::{Unmet, verify};

/// Ordered steps from an observed state to a desired one.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Plan {
    pub steps: Vec<Step>,
    /// What the kernel takes away along the way and no step names or puts back.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub losses: Vec<Loss>,
}

impl Plan {
    pub fn is_empty(&self) -> bool {
        self.steps.is_empty()
    }

    pub fn len(&self) -> usize {
        self.steps.len()
    }

    /// The plan that undoes this one, given what was observed before it.
    ///
    /// It expects this plan to have been applied whole; after a failure in the middle observe again and use
    /// [`Plan::revert_from`].
    pub fn revert(&self, before: &Observed) -> Plan {
        let mut after = before.clone();
        for step in &self.steps {
            // A step that fails in memory changed nothing, so there is nothing to undo.
            let _ = memory::apply(&mut after, step);
        }
        self.revert_from(&after, before)
    }

    /// What a revert leaves to the kernel and the kernel has not brought back yet: routes that routers announce. As long
    /// as there is any, the host is not as it was before.
    pub fn unreturned(&self, now: &Observed, before: &Observed) -> Vec<Loss> {
        revert::unreturned(self, now, before)
    }

    /// The plan that brings back what was before, from whatever is there now, for everything this plan may
    /// have touched. Right after any prefix of its steps; what it doesn't name is left as it is now.
    pub fn revert_from(&self, now: &Observed, before: &Observed) -> Plan {
        revert::revert(self, now, before)
    }
}

/// What to do so that `desired` holds. Empty if it already does.
pub fn plan(observed: &Observed, desired: &Desired) -> Result<Plan, PlanError> {
    let target = target::target(observed, desired)?;
    let outcome = diff::diff(observed, &target.state, &target.asked);
    if outcome.failures.is_empty() { Ok(outcome.plan) } else { Err(PlanError::new(outcome.failures)) }
}

#[cfg(test)]
mod tests;
