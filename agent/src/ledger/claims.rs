//! A ledger from a file as `policy::claim` serves from it, so that files are answered by the server's own code.
//!
//! Called by [`crate::ledger`] and `berth render`. What a file leaves out is taken to be well: a manifest as a person
//! writes it has no UID, and its ledger counts as complete. Nothing made here is ever written anywhere.

use crds::names::annotation::{HOLD, RESET_POOL};
use k8s_openapi::jiff::Timestamp;
use policy::claim::{Entry, EntryKind, EntryState, Hold, Ledger, NodeUid, RequestId, Time};
use thiserror::Error;

use crate::records::pool::ENDLESS;

/// Times decide nothing when a claim is served; files are read without a clock.
pub(crate) const NO_TIME: Time = 0;

/// Why a pool gives nothing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub(crate) enum NotGiving {
    #[error("it is being deleted")]
    Deleting,
    #[error("it is on hold, by its annotation {HOLD}")]
    OnHold,
    #[error("it is on hold until {until}, for its status may be from the past")]
    OnHoldUntil { until: Timestamp },
    #[error("it is being rebuilt, by its annotation {RESET_POOL}")]
    Reset,
    #[error("it is being rebuilt, for allocated-offsets and allocations disagree")]
    Disagrees,
    #[error("it is being rebuilt, for status.rebuiltFor is not its metadata.uid")]
    Unproven,
}

impl NotGiving {
    /// The first reason that holds, of a ledger that doesn't give.
    pub(crate) fn of(ledger: &Ledger) -> Self {
        match (ledger, ledger.hold) {
            (ledger, _) if ledger.deleting => Self::Deleting,
            (_, Some(Hold { until })) => match timestamp(until).filter(|_| until != ENDLESS) {
                Some(until) => Self::OnHoldUntil { until },
                None => Self::OnHold,
            },
            (ledger, None) if ledger.reset => Self::Reset,
            (ledger, None) if !ledger.offsets_agree => Self::Disagrees,
            _ => Self::Unproven,
        }
    }
}

/// A time as people read it.
pub(crate) fn timestamp(time: Time) -> Option<Timestamp> {
    i64::try_from(time).ok().and_then(|seconds| Timestamp::from_second(seconds).ok())
}

/// The ledger to serve from.
pub(crate) fn of_file(ledger: Ledger, offsets_agree: bool) -> Ledger {
    let rebuilt_for = ledger.rebuilt_for.filter(|_| !ledger.pool.as_str().is_empty());
    Ledger {
        rebuilt_for: rebuilt_for.or_else(|| Some(ledger.pool.clone())),
        offsets_agree,
        allocations: ledger.allocations.into_iter().map(|(ip, entry)| (ip, marked(entry))).collect(),
        ..ledger
    }
}

/// A node's UID; where a file has none, its name tells it from others.
pub(crate) fn node_uid(node: &str, uid: &str) -> NodeUid {
    match uid {
        "" => NodeUid::new(format!("name:{node}")),
        uid => NodeUid::new(format!("uid:{uid}")),
    }
}

/// An id keeps a mark of the file it is from, so that none is taken for one that a reader of files makes up.
fn marked(entry: Entry) -> Entry {
    let id = entry.request.as_ref().map(RequestId::text);
    let id = id.or_else(|| (!entry.policy.as_str().is_empty()).then_some(""));
    Entry {
        node_uid: node_uid(entry.node.as_str(), entry.node_uid.as_str()),
        request: id.map(|id| RequestId::of(&entry.node, &format!("file:{id}"))),
        ..entry
    }
}

/// An entry of which only the offset is known.
pub(crate) fn nobodys() -> Entry {
    Entry {
        node: "".into(),
        node_uid: node_uid("", ""),
        policy: "".into(),
        capture: "".into(),
        request: None,
        sequence: 0,
        since: NO_TIME,
        kind: EntryKind::Dynamic,
        state: EntryState::Held,
    }
}
