//! The way back: from whatever there is now to what was before, for everything a plan may have touched.

use std::time::{Duration, Instant};

use policy::plan::{Plan, Step, plan_document};
use policy::state::Observed;

use super::{ApplyError, LOOK_AGAIN};
use crate::checkpoint::Checkpoint;
use crate::kernel::{Kernel, KernelError};
use crate::netlink::StepFailed;

/// How long it goes on looking and putting back: what depends on something else (a route that sends from an address
/// whose probe is not over) is taken in a later round.
const PATIENCE: Duration = Duration::from_secs(15);
/// Rounds in which everything is taken and something is still not as before: somebody else is at it.
const ROUNDS: usize = 5;

/// How a revert ended.
#[derive(Debug, Default)]
pub struct Reverted {
    /// Steps taken.
    pub done: usize,
    /// What is still not as before.
    pub left: Vec<Step>,
    /// What failed in the last round.
    pub failed: Vec<StepFailed>,
    /// The host couldn't be looked at.
    pub blind: Option<KernelError>,
}

impl Reverted {
    pub fn is_complete(&self) -> bool {
        self.left.is_empty() && self.blind.is_none()
    }
}

/// Puts back what was there before `plan`. Never gives up at the first step that fails: what can be put back is.
pub(super) fn revert(kernel: &mut dyn Kernel, plan: &Plan, before: &Observed) -> Reverted {
    let mut reverted = Reverted::default();
    let until = Instant::now() + PATIENCE;
    let mut rounds = 0;
    loop {
        match kernel.observe() {
            Ok(seen) => {
                reverted.blind = None;
                reverted.left = plan.revert_from(&seen.state, before).steps;
            }
            Err(error) => reverted.blind = Some(error),
        }
        if reverted.is_complete() || rounds == ROUNDS || Instant::now() >= until {
            return reverted;
        }
        if reverted.blind.is_none() {
            take(kernel, &mut reverted);
        }
        let all_taken = reverted.failed.is_empty() && reverted.blind.is_none();
        if all_taken || kernel.settle(LOOK_AGAIN).is_err() {
            rounds += 1;
        }
    }
}

/// One round: every step, whatever becomes of those before.
fn take(kernel: &mut dyn Kernel, reverted: &mut Reverted) {
    reverted.failed.clear();
    let mut rest = reverted.left.as_slice();
    while !rest.is_empty() {
        match kernel.apply(rest, &mut |_| true) {
            Ok(()) => {
                reverted.done += rest.len();
                rest = &[];
            }
            Err(failed) => {
                reverted.done += failed.place;
                rest = rest.get(failed.place + 1..).unwrap_or_default();
                reverted.failed.push(failed);
            }
        }
    }
}

/// Undoes a change that was cut off.
pub fn recover(kernel: &mut dyn Kernel, checkpoint: &Checkpoint) -> Result<Reverted, ApplyError> {
    let plan = plan_document(&checkpoint.before, &checkpoint.desired)
        .map_err(|source| ApplyError::Unrecoverable { source })?;
    Ok(revert(kernel, &plan, &checkpoint.before))
}
