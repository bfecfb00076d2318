//! A pool's one condition, `Available`: the first reason that holds (R12 to R17).

use std::net::IpAddr;

use crds::names::condition::{AVAILABLE, FALSE, TRUE, UNKNOWN};
use crds::names::pool as names;
use crds::{Condition, NodeIPPoolStatus};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time as Timestamp;
use policy::claim::{EntryState, Ledger, NodeSlice, Quarantine, QuarantineReason, Time};

use crate::records::condition::renewed;

/// What is known of a pool besides its ledger.
#[derive(Default)]
pub(super) struct Around<'a> {
    /// Of a sliced pool most of what its ledger would have is in these.
    pub(super) slices: &'a [NodeSlice],
    /// It could not be put together, last time.
    pub(super) failed: bool,
    /// A part of it is to be put together anew.
    pub(super) resets: bool,
    /// Another pool that has addresses of it.
    pub(super) overlaps: Option<String>,
}

/// What to say of a pool with this ledger and these counts.
pub(super) fn of(
    ledger: &Ledger,
    status: &NodeIPPoolStatus,
    around: &Around<'_>,
    now: &Timestamp,
) -> Vec<Condition> {
    let (word, reason, message) = verdict(ledger, status, around);
    vec![renewed(AVAILABLE, word, reason, message, &status.conditions, now)]
}

/// What to say of a pool that can't be put together, or not even read (R15).
pub(super) fn unsynced(before: &[Condition], now: &Timestamp) -> Vec<Condition> {
    let message = names::MESSAGE_UNSYNCRONIZED.to_owned();
    vec![renewed(AVAILABLE, FALSE, names::UNSYNCRONIZED, message, before, now)]
}

/// The reason that a pool gives now.
pub(super) fn reason(status: Option<&NodeIPPoolStatus>) -> Option<&str> {
    status?.conditions.first().map(|one| one.reason.as_str())
}

fn verdict(
    ledger: &Ledger,
    status: &NodeIPPoolStatus,
    around: &Around<'_>,
) -> (&'static str, &'static str, String) {
    let unproven = ledger.needs_rebuild() || around.resets;
    if unproven && around.failed {
        return (FALSE, names::UNSYNCRONIZED, names::MESSAGE_UNSYNCRONIZED.to_owned());
    }
    if unproven || ledger.hold.is_some() {
        return (UNKNOWN, names::RECONCILING, names::MESSAGE_RECONCILING.to_owned());
    }
    if let Some(other) = &around.overlaps {
        return (FALSE, names::OVERLAPPING, names::message_overlapping(other));
    }
    if let Some((_, message)) = collisions(ledger, around.slices).next() {
        return (FALSE, names::COLLISION, message);
    }
    if status.available == Some(0) {
        return (FALSE, names::EXHAUSTED, names::MESSAGE_EXHAUSTED.to_owned());
    }
    let is_large = ledger.allocations.len() > names::LEDGER_GOOD_FOR;
    let message = if is_large { names::MESSAGE_LARGE } else { names::MESSAGE_RECONCILED };
    (TRUE, names::RECONCILED, message.to_owned())
}

/// Addresses that somebody else has, in the pool's own ledger or in a slice of it, with what is said of each (R17).
pub(super) fn collisions<'a>(
    ledger: &'a Ledger,
    slices: &'a [NodeSlice],
) -> impl Iterator<Item = (IpAddr, String)> + 'a {
    let ledgers = [ledger].into_iter().chain(slices.iter().map(|slice| &slice.ledger));
    let entries = ledgers.flat_map(|ledger| &ledger.allocations);
    entries.filter_map(|(ip, entry)| match &entry.state {
        EntryState::Quarantined(Quarantine { reason: QuarantineReason::Collision { by }, .. }) => {
            let (node, other) = (entry.node.as_str(), names::stranger(&by.mac));
            Some((*ip, names::message_collision(&ip.to_string(), node, &by.interface, other)))
        }
        EntryState::Quarantined(_) | EntryState::Held => None,
    })
}

/// Do they say the same?
pub(super) fn same(one: &NodeIPPoolStatus, other: &NodeIPPoolStatus) -> bool {
    let counts = |status: &NodeIPPoolStatus| (status.capacity, status.allocated, status.available);
    let offsets = |status: &NodeIPPoolStatus| status.allocated_offsets.clone();
    let said = one.conditions == other.conditions && one.drained == other.drained;
    counts(one) == counts(other) && offsets(one) == offsets(other) && said
}

/// A time of the protocol as objects have it.
pub(super) fn timestamp(seconds: Time) -> Timestamp {
    let time = i64::try_from(seconds)
        .ok()
        .and_then(|seconds| k8s_openapi::jiff::Timestamp::from_second(seconds).ok());
    Timestamp(time.unwrap_or_default())
}

#[cfg(test)]
mod tests;
