//! A policy's way over its nodes: who may be reconfigured now, when the rest is given up, and what it all comes to.
//!
//! A node being reconfigured, or left failing, is unavailable and has a *slot*; there are only so many. Slots are kept
//! by node, so one that vanished gives its slot back. Called by the controller, and where there is none by an agent for its
//! own slot; both write what comes out by a guarded write, and so never give one slot more than there are.
//!
//! Cost: O(n log n) in the policy's nodes. Nothing is kept between two calls.

use std::collections::BTreeMap;

use crate::claim::NodeName;

/// How many nodes may be unavailable at once, as a policy says it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MaxUnavailable {
    Number(u64),
    Percent(u64),
}

impl MaxUnavailable {
    /// What a policy has that says nothing, or nothing that can be read.
    pub const DEFAULT: Self = Self::Percent(50);

    /// `50%`. A number in quotes is not one, as in kubernetes-nmstate.
    pub fn from_text(text: &str) -> Option<Self> {
        let digits = text.strip_suffix('%').filter(|digits| digits.chars().all(|c| c.is_ascii_digit()))?;
        digits.parse().ok().map(Self::Percent)
    }

    /// Of so many nodes: rounded up, and never none, since then nothing would ever happen.
    pub fn of(self, nodes: usize) -> usize {
        let nodes = nodes as u64;
        let limit = match self {
            Self::Number(number) => number,
            Self::Percent(percent) => nodes.saturating_mul(percent).div_ceil(100),
        };
        usize::try_from(limit).unwrap_or(usize::MAX).max(1)
    }
}

/// Where a policy stands on one node.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Standing {
    /// Nothing said yet.
    Unknown,
    /// Waits for an address: the node is as it was, so it needs no slot and holds nobody up.
    Waiting,
    /// There is no address for it: as good as failed, but the node is as it was.
    Refused,
    /// Could be applied; waits for a slot.
    Pending,
    Progressing,
    Available,
    /// Failed, and will be tried again.
    Retrying,
    /// Failed for good, until something changes.
    Failing,
    Aborted,
}

/// What an enactment says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Part {
    pub node: NodeName,
    /// The policy's generation that it is about.
    pub generation: i64,
    pub standing: Standing,
}

/// What a policy comes to, in the order in which they are asked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Summary {
    /// No node matches that has an agent.
    Ignored,
    Degraded {
        failed: usize,
        matching: usize,
        aborted: usize,
    },
    Progressing {
        finished: usize,
        ready: usize,
        pending: usize,
        not_ready: usize,
    },
    Available {
        available: usize,
        matching: usize,
        not_ready: usize,
    },
}

/// How it goes on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rollout {
    /// Who may be unavailable, and for which generation.
    pub slots: BTreeMap<NodeName, i64>,
    /// As many failed as may be unavailable: whoever waits gives up.
    pub aborted: bool,
    pub summary: Summary,
}

/// The next step of a rollout of this generation. `nodes` are those that match and have an agent, with whether they are
/// Ready; `parts` are the policy's enactments; `slots` are those given so far.
pub fn roll(
    generation: i64,
    max: MaxUnavailable,
    nodes: &BTreeMap<NodeName, bool>,
    parts: &[Part],
    slots: &BTreeMap<NodeName, i64>,
) -> Rollout {
    let now: BTreeMap<&NodeName, Standing> =
        parts.iter().map(|part| (&part.node, standing(part, generation))).collect();
    let limit = max.of(parts.len());
    let failing = now.values().filter(|standing| **standing == Standing::Failing).count();
    let aborted = failing >= limit;
    let mut kept: BTreeMap<NodeName, i64> = BTreeMap::new();
    for (node, since) in slots {
        match now.get(node) {
            // Vanished, or no longer selected.
            None => {}
            // Through, or given up, or as it was before.
            Some(Standing::Available | Standing::Aborted | Standing::Waiting | Standing::Refused) => {}
            // Still in the middle of an earlier generation, or failed in it: unavailable it is, and goes on with this one.
            Some(Standing::Pending | Standing::Progressing | Standing::Retrying | Standing::Failing) => {
                kept.insert(node.clone(), generation);
            }
            Some(Standing::Unknown) => {
                kept.insert(node.clone(), *since);
            }
        }
    }
    let waiting = now.iter().filter(|(_, standing)| **standing == Standing::Pending).map(|(node, _)| *node);
    for node in waiting.filter(|_| !aborted) {
        if kept.len() < limit {
            kept.entry(node.clone()).or_insert(generation);
        }
    }
    Rollout { slots: kept, aborted, summary: summary(nodes, &now) }
}

/// What an enactment says of another generation is not about this one.
fn standing(part: &Part, generation: i64) -> Standing {
    if part.generation == generation { part.standing } else { Standing::Unknown }
}

fn summary(nodes: &BTreeMap<NodeName, bool>, now: &BTreeMap<&NodeName, Standing>) -> Summary {
    if nodes.is_empty() {
        return Summary::Ignored;
    }
    let count = |wanted: &[Standing]| now.values().filter(|standing| wanted.contains(standing)).count();
    let matching = nodes.len();
    let ready = nodes.values().filter(|ready| **ready).count();
    let not_ready = matching - ready;
    let failed = count(&[Standing::Failing, Standing::Retrying, Standing::Refused]);
    let aborted = count(&[Standing::Aborted]);
    let available = count(&[Standing::Available]);
    let pending = count(&[Standing::Pending, Standing::Waiting]);
    let finished = available + failed + aborted;
    if failed + aborted > 0 {
        Summary::Degraded { failed, matching, aborted }
    } else if finished < ready || pending > 0 {
        Summary::Progressing { finished, ready, pending, not_ready }
    } else {
        Summary::Available { available, matching, not_ready }
    }
}

#[cfg(test)]
mod tests;
