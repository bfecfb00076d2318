//! When an agent does what a leader has left undone. Pure: times are passed in.

use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, Instant};

use policy::claim::{PolicyName, PoolName, RequestId};
use policy::rollout::Standing;

use crate::api::random;

/// So long a leader has before anybody asks whether there is one, at least and at most: in a crowd most are answered before
/// they would ask.
const GRACE: (Duration, Duration) = (Duration::from_millis(200), Duration::from_secs(1));
/// A claim that a leader leaves without an answer for so long is the agent's own.
pub(super) const UNSERVED: Duration = Duration::from_secs(30);
/// The first pause after others were quicker.
const QUICK: Duration = Duration::from_millis(50);
/// And the longest, for each entry that the ledger has, at least and at most: a write takes the longer the more there are, and where
/// many have come many more may be on their way. With less a thousand would keep the API server from serving any: it spent itself
/// on writes that came too late, twenty-seven for each that was in time.
const PER_ENTRY: Duration = Duration::from_millis(500);
const LONGEST: (Duration, Duration) = (Duration::from_secs(10), Duration::from_secs(300));
/// The same of a policy's slots, at the most: nothing is spent on a write of one that comes too late but the write.
const SLOTS: Duration = Duration::from_secs(120);
/// The same, first and longest, of what depends on others, who will say so.
const PATIENT: (Duration, Duration) = (Duration::from_secs(5), Duration::from_secs(60));

/// Something of this host's that a leader would do.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Need {
    /// A request has no answer.
    Answer { policy: PolicyName, pool: PoolName, id: RequestId },
    /// A request is refused, and should be answered anew when there is room.
    Room { policy: PolicyName, pool: PoolName, id: RequestId },
    /// A policy waits for a slot.
    Slot { policy: PolicyName, generation: i64 },
    /// A policy stands otherwise here than when its slot was last looked after.
    Count { policy: PolicyName, generation: i64, standing: Standing },
}

impl Need {
    /// The pool that it is about.
    pub(super) fn pool(&self) -> Option<&PoolName> {
        match self {
            Self::Answer { pool, .. } | Self::Room { pool, .. } => Some(pool),
            Self::Slot { .. } | Self::Count { .. } => None,
        }
    }
}

/// Whose a need is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Turn {
    Ours,
    Theirs,
}

/// What came of looking after a need.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::node) enum Came {
    /// It was written.
    Done,
    /// Somebody wrote first.
    Overtaken,
    /// There was nothing to write.
    Nothing,
    /// It is left to whoever leads.
    Theirs,
}

/// Since when something is needed, and when to look after it next.
#[derive(Clone, Copy, Debug)]
struct Wait {
    since: Instant,
    next: Instant,
    tries: u32,
    /// This host has written to it itself.
    ours: bool,
}

/// All that is needed now.
#[derive(Debug, Default)]
pub(super) struct Needs(BTreeMap<Need, Wait>);

impl Needs {
    /// What is needed now, in place of what was. New needs are given a grace, unless nobody leads. Whether somebody else
    /// answered a request: then there is a leader.
    pub(super) fn are(&mut self, needs: BTreeSet<Need>, nobody_leads: bool, now: Instant) -> bool {
        let mut over = self.0.iter().filter(|(need, _)| !needs.contains(need));
        let answered = over.any(|(need, wait)| matches!(need, Need::Answer { .. }) && !wait.ours);
        self.0.retain(|need, _| needs.contains(need));
        let grace = if nobody_leads { Duration::ZERO } else { GRACE.0 + random::up_to(GRACE.1 - GRACE.0) };
        for need in needs {
            self.0.entry(need).or_insert(Wait { since: now, next: now + grace, tries: 0, ours: false });
        }
        answered
    }

    /// The pools of requests that have no answer.
    pub(super) fn pools(&self) -> BTreeSet<PoolName> {
        let answers = self.0.keys().filter(|need| matches!(need, Need::Answer { .. }));
        answers.filter_map(|need| need.pool().cloned()).collect()
    }

    /// Nobody but this host answers here: what has not been tried yet is due.
    pub(super) fn hurry(&mut self, pool: &PoolName, now: Instant) {
        let new = |need: &Need, wait: &Wait| wait.tries == 0 && need.pool() == Some(pool);
        self.0.iter_mut().filter(|(need, wait)| new(need, wait)).for_each(|(_, wait)| wait.next = now);
    }

    /// One whose time has come; and with it, where nobody but this host serves its pool, what is due of each other such pool:
    /// all of that is answered in one write.
    pub(super) fn due(&self, now: Instant, is_own: impl Fn(&PoolName) -> bool) -> Vec<Need> {
        let mut due: Vec<(&Need, &Wait)> = self.0.iter().filter(|(_, wait)| wait.next <= now).collect();
        // Who has waited for longest: none is behind one that fails again and again.
        due.sort_by_key(|(_, wait)| wait.next);
        let mut due = due.into_iter().map(|(need, _)| need);
        let mut all: Vec<Need> = due.next().cloned().into_iter().collect();
        if all.iter().filter_map(Need::pool).any(&is_own) {
            for need in due.filter(|need| need.pool().is_some_and(&is_own)) {
                if all.iter().all(|other| other.pool() != need.pool()) {
                    all.push(need.clone());
                }
            }
        }
        all
    }

    /// How long until the next.
    pub(super) fn again(&self, now: Instant) -> Option<Duration> {
        self.0.values().map(|wait| wait.next.saturating_duration_since(now)).min()
    }

    pub(super) fn turn(&self, need: &Need, led: bool, now: Instant) -> Turn {
        let waited = self.0.get(need).map_or(Duration::ZERO, |wait| now.duration_since(wait.since));
        let unserved = matches!(need, Need::Answer { .. }) && waited >= UNSERVED;
        if led && !unserved { Turn::Theirs } else { Turn::Ours }
    }

    /// It failed: the others that are due have their turn first.
    pub(super) fn failed(&mut self, need: &Need, now: Instant) {
        if let Some(wait) = self.0.get_mut(need) {
            wait.next = now + QUICK;
        }
    }

    /// Takes in what came of it: what still lasts is looked after again later. `many`: how many entries the ledger has, or how many
    /// nodes the policy: as many may write the same.
    pub(super) fn came(&mut self, need: &Need, came: &Came, many: usize, now: Instant) {
        // All of this host's requests to a pool are answered at once.
        if let (Need::Answer { pool: served, .. }, Came::Done) = (need, came) {
            let same = |need: &Need| matches!(need, Need::Answer { pool, .. } if pool == served);
            self.0.iter_mut().filter(|(need, _)| same(need)).for_each(|(_, wait)| wait.ours = true);
        }
        let Some(wait) = self.0.get_mut(need) else { return };
        let (first, longest) = match came {
            Came::Done | Came::Overtaken => (QUICK, longest(need, many)),
            Came::Nothing | Came::Theirs => PATIENT,
        };
        let pause = first.saturating_mul(1 << wait.tries.min(16)).min(longest);
        wait.tries += 1;
        // What a leader owes is looked after no later than it may be taken from it.
        let pause = match (came, wait.since + UNSERVED) {
            (Came::Theirs, at) if at > now => pause.min(at - now),
            (Came::Theirs, _) => pause,
            _ => random::up_to(pause) + first / 5,
        };
        wait.next = now + pause;
    }
}

/// How long a host waits at the most after others were quicker.
fn longest(need: &Need, many: usize) -> Duration {
    let most = if need.pool().is_some() { LONGEST.1 } else { SLOTS };
    PER_ENTRY.saturating_mul(u32::try_from(many).unwrap_or(u32::MAX)).clamp(LONGEST.0, most)
}

#[cfg(test)]
mod tests;
