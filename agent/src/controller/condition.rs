//! A pool's one condition, `Available`: the first reason that holds (R12 to R16).

use crds::names::condition::{AVAILABLE, FALSE, TRUE, UNKNOWN};
use crds::names::pool as names;
use crds::{Condition, NodeIPPoolStatus};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time as Timestamp;
use policy::claim::{EntryState, Ledger, QuarantineReason, Time};

use crate::records::condition::renewed;

/// What to say of a pool with this ledger and these counts. `overlaps`: another pool that has addresses of it.
pub(super) fn of(
    ledger: &Ledger,
    status: &NodeIPPoolStatus,
    overlaps: Option<&str>,
    now: &Timestamp,
) -> Vec<Condition> {
    let (word, reason, message) = verdict(ledger, status, overlaps);
    vec![renewed(AVAILABLE, word, reason, message, &status.conditions, now)]
}

fn verdict(
    ledger: &Ledger,
    status: &NodeIPPoolStatus,
    overlaps: Option<&str>,
) -> (&'static str, &'static str, String) {
    if ledger.needs_rebuild() || ledger.hold.is_some() {
        return (UNKNOWN, names::RECONCILING, names::MESSAGE_RECONCILING.to_owned());
    }
    if let Some(other) = overlaps {
        return (FALSE, names::OVERLAPPING, names::message_overlapping(other));
    }
    let collision = ledger.allocations.iter().find_map(|(ip, entry)| match &entry.state {
        EntryState::Quarantined(quarantine) => match &quarantine.reason {
            QuarantineReason::Collision { mac } => Some((ip, entry, mac)),
            _ => None,
        },
        EntryState::Held => None,
    });
    if let Some((ip, entry, mac)) = collision {
        let message = names::message_collision(&ip.to_string(), entry.node.as_str(), "", mac);
        return (FALSE, names::COLLISION, message);
    }
    if status.available == Some(0) {
        return (FALSE, names::EXHAUSTED, names::MESSAGE_EXHAUSTED.to_owned());
    }
    (TRUE, names::RECONCILED, names::MESSAGE_RECONCILED.to_owned())
}

/// Do they say the same?
pub(super) fn same(one: &NodeIPPoolStatus, other: &NodeIPPoolStatus) -> bool {
    let counts = |status: &NodeIPPoolStatus| (status.capacity, status.allocated, status.available);
    let offsets = |status: &NodeIPPoolStatus| status.allocated_offsets.clone();
    counts(one) == counts(other) && offsets(one) == offsets(other) && one.conditions == other.conditions
}

/// A time of the protocol as objects have it.
pub(super) fn timestamp(seconds: Time) -> Timestamp {
    let time = i64::try_from(seconds)
        .ok()
        .and_then(|seconds| k8s_openapi::jiff::Timestamp::from_second(seconds).ok());
    Timestamp(time.unwrap_or_default())
}
