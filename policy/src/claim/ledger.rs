//! The ledger: who holds what. The only truth, kept in a pool's (or a slice's) status.
//!
//! A ledger is a value; every change to it is computed here and written by the caller in one write
//! guarded by [`Guard`]. Cost: O(log n) per entry touched; a write carries the whole ledger, which is why
//! servers gather requests into batches.

use std::collections::BTreeMap;
use std::net::IpAddr;

use serde::{Deserialize, Serialize};

use super::names::{CaptureName, NodeName, NodeUid, PolicyName, PoolUid, RequestId, Stamp};
use super::record::{Lease, Stranger, Time};

/// How far above everything seen a rebuilt ledger starts (rules 5 and 6). Sequences grow by one with a
/// write; no history that a rebuild can't see gets near a million writes ahead of what it can.
pub const SEQUENCE_LEAP: u64 = 1_000_000;

/// What is believed at any time.
const BELIEVED: u64 = 1_000_000_000_000_000;

/// Can a ledger have come to this sequence by now? It grows by one with a write, and leaps where it is put together: nobody does
/// the one a million times in every second there ever was, or the other once. What is beyond that is a lie or damage, and if
/// it counted, the ledger's own sequence would soon have nowhere to go.
pub fn is_believable(sequence: u64, now: Time) -> bool {
    sequence <= now.saturating_mul(SEQUENCE_LEAP).saturating_add(BELIEVED)
}

/// One held or quarantined address.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Entry {
    pub node: NodeName,
    pub node_uid: NodeUid,
    pub policy: PolicyName,
    pub capture: CaptureName,
    /// Who holds it; none for an address that a host merely shows (rule 5, `observed`).
    pub request: Option<RequestId>,
    pub sequence: u64,
    pub since: Time,
    pub kind: EntryKind,
    pub state: EntryState,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum EntryKind {
    Dynamic,
    Static,
    Reserved,
}

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum EntryState {
    Held,
    /// Nobody may use it, until the time is over and the reason still stands (rule 4).
    Quarantined(Quarantine),
}

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Quarantine {
    pub until: Time,
    pub reason: QuarantineReason,
    /// The stamp of the host's state when the quarantine began: the agent's word must bear another.
    pub witness: Option<Stamp>,
}

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum QuarantineReason {
    /// The Node is gone, or is another one under the same name.
    NodeGone,
    /// No enactment lists it.
    Orphan,
    /// A host shows it but no claim stands behind it.
    Observed,
    /// Another machine answers for it on the wire.
    Collision { by: Stranger },
}

impl Entry {
    pub fn is_held(&self) -> bool {
        self.state == EntryState::Held
    }

    pub fn is_held_by(&self, id: &RequestId) -> bool {
        self.is_held() && self.request.as_ref() == Some(id)
    }

    /// May its holder have it back by asking again? Not what answers on the wire.
    pub fn is_recoverable(&self) -> bool {
        self.collides_until().is_none()
    }

    /// Is it in quarantine, and may its holder have it back?
    pub(super) fn is_set_aside(&self) -> bool {
        !self.is_held() && self.is_recoverable()
    }

    /// Does what a slice says of an address stand against what its pool's own ledger says of it? What that set aside and the slice's
    /// node holds by now is its own, whatever id it was under. What a stranger answers for is nobody's, though the pool's ledger
    /// may have it as Held still: its agent tells the slice alone.
    pub(super) fn stands_against(&self, pools: &Self) -> bool {
        let is_strangers = !self.is_recoverable() && pools.is_recoverable() && self.request == pools.request;
        let stands = if self.is_held() { pools.is_set_aside() } else { is_strangers };
        stands && self.node_uid == pools.node_uid
    }

    /// Until when it is nobody's, if another machine answers for it on the wire (rule 10).
    pub fn collides_until(&self) -> Option<Time> {
        match &self.state {
            EntryState::Quarantined(Quarantine {
                until, reason: QuarantineReason::Collision { .. }, ..
            }) => Some(*until),
            EntryState::Quarantined(_) | EntryState::Held => None,
        }
    }

    /// Set aside until no later than this: nothing is for longer than one quarantine from now. What says so was begun when the
    /// pool's was longer, or written by a host that lies, whose Node may be gone.
    pub(super) fn ending_by(&self, latest: Time) -> Option<Self> {
        let EntryState::Quarantined(aside) = &self.state else { return None };
        let state = || EntryState::Quarantined(Quarantine { until: latest, ..aside.clone() });
        (aside.until > latest).then(|| Self { state: state(), ..self.clone() })
    }
}

/// Nothing new is given until then, while agents re-assert what they hold (rule 6).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Hold {
    pub until: Time,
}

/// A pool's ledger with what decides whether it gives.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Ledger {
    pub pool: PoolUid,
    pub sequence: u64,
    /// The pool this ledger was proven complete for; any other value means: rebuild first (rule 5).
    pub rebuilt_for: Option<PoolUid>,
    pub hold: Option<Hold>,
    /// The reset annotation is set.
    pub reset: bool,
    /// The pool is being deleted.
    pub deleting: bool,
    /// `allocated-offsets` says the same as `allocations` (D16).
    pub offsets_agree: bool,
    pub allocations: BTreeMap<IpAddr, Entry>,
}

/// What a ledger write must find unchanged, besides the object's resourceVersion.
///
/// A store restored from a backup can count its resourceVersions, and its sequences, up to the same
/// values again. While it is on hold the hold differs, and after it the sequence has leapt.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Guard {
    pub pool: PoolUid,
    pub sequence: u64,
    pub hold: Option<Hold>,
}

impl Ledger {
    /// The ledger of a pool that was just created: empty, and unproven.
    pub fn new(pool: PoolUid) -> Self {
        Self {
            pool,
            sequence: 0,
            rebuilt_for: None,
            hold: None,
            reset: false,
            deleting: false,
            offsets_agree: true,
            allocations: BTreeMap::new(),
        }
    }

    pub fn guard(&self) -> Guard {
        Guard { pool: self.pool.clone(), sequence: self.sequence, hold: self.hold }
    }

    /// Must it be rebuilt before anything else is done with it?
    pub fn needs_rebuild(&self) -> bool {
        self.rebuilt_for.as_ref() != Some(&self.pool) || self.reset || !self.offsets_agree
    }

    /// May a new address be given, or a granted one be put to use?
    pub fn gives(&self) -> bool {
        !self.needs_rebuild() && self.hold.is_none() && !self.deleting
    }

    /// What this id holds, in address order.
    pub fn held_by<'a>(&'a self, id: &'a RequestId) -> impl Iterator<Item = IpAddr> + 'a {
        self.allocations.iter().filter(move |(_, entry)| entry.is_held_by(id)).map(|(ip, _)| *ip)
    }

    /// Does this id hold every address of the lease, in this very pool?
    pub fn backs(&self, id: &RequestId, lease: &Lease) -> bool {
        lease.pool == self.pool
            && lease.ips.iter().all(|ip| self.allocations.get(ip).is_some_and(|entry| entry.is_held_by(id)))
    }
}
