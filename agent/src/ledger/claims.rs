//! A pool's status as the ledger that `policy::claim` serves from, so that files are answered by the server's own code.
//!
//! Called by [`crate::pools`] and `berth render`. What a file leaves out is taken to be well: a manifest as a person
//! writes it has no UID, and its ledger counts as complete. Nothing made here is ever written anywhere.

use crds::names::annotation::{HOLD, RESET_POOL};
use crds::names::pool::COLLISION;
use policy::claim::{
    Entry, EntryKind, EntryState, Hold, Ledger, NodeUid, PoolUid, Quarantine, QuarantineReason, RequestId,
    Time,
};
use serde_json::Value;
use thiserror::Error;

use super::{Holder, Holding};

/// Times decide nothing when a claim is served; files are read without a clock.
pub(crate) const NO_TIME: Time = 0;

/// Why a pool gives nothing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub(crate) enum NotGiving {
    #[error("it is being deleted")]
    Deleting,
    #[error("it is on hold, by its annotation {HOLD}")]
    OnHold,
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
        match ledger {
            ledger if ledger.deleting => Self::Deleting,
            ledger if ledger.hold.is_some() => Self::OnHold,
            ledger if ledger.reset => Self::Reset,
            ledger if !ledger.offsets_agree => Self::Disagrees,
            _ => Self::Unproven,
        }
    }
}

/// What a pool's manifest says of its ledger, without the entries.
pub(crate) fn head(manifest: &Value, offsets_agree: bool) -> Ledger {
    let text = |pointer| manifest.pointer(pointer).and_then(Value::as_str);
    let annotations = manifest.pointer("/metadata/annotations");
    let annotated = |name| annotations.is_some_and(|all| all.get(name).is_some());
    let deleted = manifest.pointer("/metadata/deletionTimestamp");
    let pool = PoolUid::from(text("/metadata/uid").unwrap_or_default());
    let rebuilt_for = match (text("/metadata/uid"), text("/status/rebuiltFor")) {
        (Some(_), Some(rebuilt_for)) => rebuilt_for.into(),
        _ => pool.clone(),
    };
    Ledger {
        sequence: manifest
            .pointer("/status/sequence")
            .and_then(Value::as_u64)
            .unwrap_or_default(),
        rebuilt_for: Some(rebuilt_for),
        hold: annotated(HOLD).then_some(Hold { until: Time::MAX }),
        reset: annotated(RESET_POOL),
        deleting: deleted.is_some_and(|time| !time.is_null()),
        offsets_agree,
        ..Ledger::new(pool)
    }
}

/// A node's UID; where a file has none, its name tells it from others.
pub(crate) fn node_uid(node: &str, uid: &str) -> NodeUid {
    match uid {
        "" => NodeUid::new(format!("name:{node}")),
        uid => NodeUid::new(format!("uid:{uid}")),
    }
}

/// One entry. An id keeps a mark of the file it is from, so that none is taken for one that a reader of files makes up.
pub(crate) fn entry(holding: &Holding) -> Entry {
    let nobody = Holder::default();
    let by = holding.by.as_ref().unwrap_or(&nobody);
    let claimed = !by.request.is_empty() || !by.policy.is_empty();
    Entry {
        node: by.node.as_str().into(),
        node_uid: node_uid(&by.node, &by.node_uid),
        policy: by.policy.as_str().into(),
        capture: by.capture.as_str().into(),
        request: claimed.then(|| RequestId::new(format!("file:{}", by.request))),
        sequence: by.sequence,
        since: NO_TIME,
        kind: EntryKind::Dynamic,
        state: match &holding.quarantined {
            None => EntryState::Held,
            Some(quarantined) => EntryState::Quarantined(Quarantine {
                until: NO_TIME,
                reason: match quarantined.reason.starts_with(COLLISION) {
                    true => QuarantineReason::Collision { mac: String::new() },
                    false => QuarantineReason::Orphan,
                },
                witness: None,
            }),
        },
    }
}
