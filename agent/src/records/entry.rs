//! One entry of a ledger: `policy::claim::Entry` ↔ `crds::pool::Allocation`.
//!
//! Read leniently where a person's edit leaves something out that decides nothing (no kind is dynamic, no Node UID is
//! nobody's), strictly where it decides who may use the address.

use crds::pool::{Allocation, AllocationKind, AllocationState, QuarantineReason as Reason};
use policy::claim::{
    Entry, EntryKind, EntryState, NodeName, Quarantine, QuarantineReason, RequestId, Stamp, Stranger,
};

use super::{RecordError, read_number, read_time, write_number, write_time};

/// `path` is the entry's own, such as `status.allocations.10.0.0.8`.
pub(super) fn read(path: &str, allocation: &Allocation) -> Result<Entry, RecordError> {
    let Allocation {
        node,
        node_uid,
        policy,
        capture,
        request,
        sequence,
        since,
        kind,
        state,
        until: _,
        reason: _,
        witness: _,
        mac: _,
        interface: _,
    } = allocation;
    let at = |field: &str| format!("{path}.{field}");
    if request.as_deref() == Some("") {
        return Err(RecordError::Missing { path: at("request") });
    }
    let node = NodeName::new(node.as_str());
    Ok(Entry {
        node_uid: node_uid.as_str().into(),
        policy: policy.as_str().into(),
        capture: capture.as_str().into(),
        request: request.as_deref().map(|id| RequestId::of(&node, id)),
        node,
        sequence: read_number(&at("sequence"), *sequence)?,
        since: since.as_ref().map(|since| read_time(&at("since"), since)).transpose()?.unwrap_or_default(),
        kind: kind.map_or(EntryKind::Dynamic, read_kind),
        state: match state {
            None => held(path, allocation)?,
            Some(AllocationState::Quarantined) => EntryState::Quarantined(quarantine(path, allocation)?),
        },
    })
}

fn held(path: &str, allocation: &Allocation) -> Result<EntryState, RecordError> {
    let Allocation { until, reason, witness, mac, interface, .. } = allocation;
    let there = [
        ("until", until.is_some()),
        ("reason", reason.is_some()),
        ("witness", witness.is_some()),
        ("mac", !mac.is_empty()),
        ("interface", !interface.is_empty()),
    ];
    match there.into_iter().find(|(_, there)| *there) {
        None => Ok(EntryState::Held),
        Some((field, _)) => Err(stray(path, field, "without state: Quarantined")),
    }
}

fn quarantine(path: &str, allocation: &Allocation) -> Result<Quarantine, RecordError> {
    let Allocation { until, reason, witness, mac, interface, .. } = allocation;
    let at = |field: &str| format!("{path}.{field}");
    let until = until.as_ref().ok_or_else(|| RecordError::Missing { path: at("until") })?;
    let reason = reason.ok_or_else(|| RecordError::Missing { path: at("reason") })?;
    let strays = [("mac", mac), ("interface", interface)];
    if let Some((field, _)) = strays.into_iter().find(|(_, text)| !text.is_empty())
        && reason != Reason::Collision
    {
        return Err(stray(path, field, "without reason: IPCollision"));
    }
    Ok(Quarantine {
        until: read_time(&at("until"), until)?,
        reason: match reason {
            Reason::NodeGone => QuarantineReason::NodeGone,
            Reason::Orphan => QuarantineReason::Orphan,
            Reason::Observed => QuarantineReason::Observed,
            Reason::Collision => QuarantineReason::Collision {
                by: Stranger { mac: mac.clone(), interface: interface.clone() },
            },
        },
        witness: witness.as_deref().map(Stamp::new),
    })
}

fn stray(path: &str, field: &str, here: &'static str) -> RecordError {
    RecordError::Stray { path: format!("{path}.{field}"), here }
}

pub(super) fn write(path: &str, entry: &Entry) -> Result<Allocation, RecordError> {
    let Entry { node, node_uid, policy, capture, request, sequence, since, kind, state } = entry;
    let at = |field: &str| format!("{path}.{field}");
    if request.as_ref().is_some_and(|id| id.text().is_empty()) {
        return Err(RecordError::Missing { path: at("request") });
    }
    let allocation = Allocation {
        node: node.to_string(),
        node_uid: node_uid.to_string(),
        policy: policy.to_string(),
        capture: capture.to_string(),
        request: request.as_ref().map(|id| id.text().to_owned()),
        sequence: write_number(&at("sequence"), *sequence)?,
        since: Some(write_time(&at("since"), *since)?),
        kind: Some(write_kind(*kind)),
        ..Allocation::default()
    };
    let Quarantine { until, reason, witness } = match state {
        EntryState::Held => return Ok(allocation),
        EntryState::Quarantined(quarantine) => quarantine,
    };
    let Stranger { mac, interface } = match reason {
        QuarantineReason::Collision { by } => by.clone(),
        QuarantineReason::NodeGone | QuarantineReason::Orphan | QuarantineReason::Observed => {
            Stranger::default()
        }
    };
    Ok(Allocation {
        state: Some(AllocationState::Quarantined),
        until: Some(write_time(&at("until"), *until)?),
        reason: Some(write_reason(reason)),
        witness: witness.as_ref().map(ToString::to_string),
        mac,
        interface,
        ..allocation
    })
}

fn read_kind(kind: AllocationKind) -> EntryKind {
    match kind {
        AllocationKind::Dynamic => EntryKind::Dynamic,
        AllocationKind::Static => EntryKind::Static,
        AllocationKind::Reserved => EntryKind::Reserved,
    }
}

fn write_kind(kind: EntryKind) -> AllocationKind {
    match kind {
        EntryKind::Dynamic => AllocationKind::Dynamic,
        EntryKind::Static => AllocationKind::Static,
        EntryKind::Reserved => AllocationKind::Reserved,
    }
}

pub(super) fn write_reason(reason: &QuarantineReason) -> Reason {
    match reason {
        QuarantineReason::NodeGone => Reason::NodeGone,
        QuarantineReason::Orphan => Reason::Orphan,
        QuarantineReason::Observed => Reason::Observed,
        QuarantineReason::Collision { .. } => Reason::Collision,
    }
}
