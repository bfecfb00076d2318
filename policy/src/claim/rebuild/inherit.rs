//! A Node re-created under its name (rule 7): by the id on its disk, and by nothing else.

use crate::claim::ledger::{EntryState, Ledger};
use crate::claim::names::{NodeUid, RequestId};
use crate::claim::record::Lease;

/// A Node re-created under its name takes over what its journal proves to be its own (rule 7).
#[derive(Debug, PartialEq, Eq)]
pub enum Inheritance {
    /// Write this ledger; then the entry is the new Node's.
    Write(Ledger),
    /// It is the new Node's already.
    Done,
    /// The ledger has no such entry any more: the address is not ours.
    Lost,
    /// The pool is rebuilding or on hold: assert by `holds` instead.
    NotNow,
}

pub fn inherit(ledger: &Ledger, id: &RequestId, lease: &Lease, uid: &NodeUid) -> Inheritance {
    if ledger.needs_rebuild() || ledger.hold.is_some() || ledger.deleting {
        return Inheritance::NotNow;
    }
    let mut next = ledger.clone();
    next.sequence = next.sequence.saturating_add(1);
    let mut changed = false;
    for ip in &lease.ips {
        let Some(entry) = next.allocations.get_mut(ip) else {
            return Inheritance::Lost;
        };
        if entry.request.as_ref() != Some(id) || !entry.is_recoverable() {
            return Inheritance::Lost;
        }
        if !entry.is_held() || entry.node_uid != *uid {
            entry.node_uid = uid.clone();
            entry.state = EntryState::Held;
            entry.sequence = next.sequence;
            changed = true;
        }
    }
    if changed { Inheritance::Write(next) } else { Inheritance::Done }
}
