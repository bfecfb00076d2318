//! The way back: from whatever there is now to what was before, for everything a plan may have touched.

use std::borrow::Cow;
use std::fmt;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use policy::plan::{Loss, Plan, Step, plan_document};
use policy::state::{Address, Family, Lifetime, Link, Observed};

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
    /// Steps taken, in order, over all rounds.
    pub done: Vec<Step>,
    /// What is still not as before.
    pub left: Vec<Step>,
    /// What failed in the last round.
    pub failed: Vec<StepFailed>,
    /// What nobody can bring back.
    pub lost: Vec<Loss>,
    /// Routes that the kernel has from routers on the wire, and has to hear of again: putting a copy there would keep it from
    /// that.
    pub unheard: Vec<Loss>,
    /// The host couldn't be looked at.
    pub blind: Option<KernelError>,
    /// Where the checkpoint is kept, if it is closed although something is lost.
    pub aside: Option<PathBuf>,
}

impl Reverted {
    /// All of it is as before.
    pub fn is_complete(&self) -> bool {
        self.is_over() && self.lost.is_empty() && self.unheard.is_empty()
    }

    /// All that can be is as before: there is nothing to try again.
    pub fn is_over(&self) -> bool {
        self.left.is_empty() && self.blind.is_none()
    }
}

/// How the host was left, in one line.
impl fmt::Display for Reverted {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.outcome().join("; "))
    }
}

impl Reverted {
    /// How the host was left: a sentence, and one for each thing that is not as it was.
    pub fn outcome(&self) -> Vec<String> {
        let over = self.is_over() && self.lost.is_empty();
        let first = match (self.is_complete(), over) {
            (true, _) => "the host is as it was before",
            (false, true) => "all that was there is put back but for what routers announce",
            (false, false) => "NOT all of it could be put back",
        };
        let mut said = vec![first.to_owned()];
        said.extend(self.left.iter().map(|step| format!("still to do: {step}")));
        said.extend(self.lost.iter().map(|lost| format!("can't be brought back: {lost}")));
        said.extend(
            self.unheard.iter().map(|route| format!("comes back when its router speaks again: {route}")),
        );
        match &self.aside {
            Some(aside) => said.push(format!("what was before is kept in {}", aside.display())),
            None if over => {}
            None => {
                said.extend(
                    self.failed.iter().map(|failed| format!("failed: {}: {}", failed.step, failed.cause)),
                );
                said.extend(self.blind.iter().map(|blind| format!("the host can't be looked at: {blind}")));
            }
        }
        said
    }
}

/// Puts back what was there before `plan`, observed at `since`. Never gives up at the first step that fails: what can
/// be put back is.
pub(super) fn revert(kernel: &mut dyn Kernel, plan: &Plan, before: &Observed, since: Instant) -> Reverted {
    let mut reverted = Reverted::default();
    let until = Instant::now() + PATIENCE;
    let mut rounds = 0;
    loop {
        match kernel.observe() {
            Ok(seen) => {
                reverted.blind = None;
                reverted.unheard = plan.unreturned(&seen.state, before);
                let way = plan.revert_from(&seen.state, &aged(before, since.elapsed()));
                reverted.left = way.steps;
                let for_good = |loss: &Loss| matches!(loss, Loss::Link { .. } | Loss::Without { .. });
                reverted.lost = way.losses.into_iter().filter(for_good).collect();
            }
            Err(error) => reverted.blind = Some(error),
        }
        if reverted.is_over() || rounds == ROUNDS || Instant::now() >= until {
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

/// The state as time would have made it: leases have less left, and those that are over are gone.
fn aged(before: &Observed, by: Duration) -> Cow<'_, Observed> {
    let seconds = u32::try_from(by.as_secs()).unwrap_or(u32::MAX);
    let leases =
        |link: &Link| Family::BOTH.iter().any(|f| link.ip(*f).addresses.iter().any(Address::is_dynamic));
    if seconds == 0 || !before.links.values().any(leases) {
        return Cow::Borrowed(before);
    }
    let less = |left: u32| left.saturating_sub(seconds);
    let mut state = before.clone();
    for link in state.links.values_mut() {
        for family in Family::BOTH {
            let addresses = &mut link.ip_mut(family).addresses;
            for lifetime in addresses.iter_mut().filter_map(|address| address.lifetime.as_mut()) {
                *lifetime = Lifetime { valid: less(lifetime.valid), preferred: less(lifetime.preferred) };
            }
            addresses.retain(|address| address.lifetime.is_none_or(|lifetime| lifetime.valid > 0));
        }
    }
    Cow::Owned(state)
}

/// One round: every step, whatever becomes of those before.
fn take(kernel: &mut dyn Kernel, reverted: &mut Reverted) {
    reverted.failed.clear();
    let mut rest = reverted.left.as_slice();
    while !rest.is_empty() {
        match kernel.apply(rest, &mut |_| true) {
            Ok(()) => {
                reverted.done.extend_from_slice(rest);
                rest = &[];
            }
            Err(failed) => {
                reverted.done.extend_from_slice(rest.get(..failed.place).unwrap_or_default());
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
    let since = Instant::now().checked_sub(checkpoint.age()).unwrap_or_else(Instant::now);
    Ok(revert(kernel, &plan, &checkpoint.before, since))
}
