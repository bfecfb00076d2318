//! What [`Host::next`](super::Host::next) says is to be done, and how that can go.

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;

use super::{ClaimKey, Lease, NodeUid, PolicyName, Record, Request, RequestId, Slot, SlotKey, Stranger};

/// The one thing to do next.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Action {
    /// Write (or delete) a journal record, durably.
    Journal {
        key: ClaimKey,
        record: Option<Record>,
    },
    /// Put the addresses on the NIC, each probed on the wire first.
    AddToNic {
        key: ClaimKey,
        lease: Lease,
    },
    RemoveFromNic {
        ips: Vec<IpAddr>,
    },
    /// Write the NodeNetworkState, guarded by its resourceVersion.
    Report {
        node_uid: NodeUid,
        shows: BTreeSet<IpAddr>,
    },
    /// Keep in mind that these are about to be used, all of a policy; one report follows.
    Announce {
        leases: BTreeMap<ClaimKey, Lease>,
    },
    /// Read the pool from the API server and see whether it backs the grant.
    Confirm {
        key: ClaimKey,
        lease: Lease,
    },
    /// Create the enactment, with finalizer, owned by this Node UID.
    CreateEnactment {
        policy: PolicyName,
        node_uid: NodeUid,
        slots: BTreeMap<SlotKey, Slot>,
    },
    /// Write these requests into the own enactment, all in one write, guarded by its resourceVersion.
    WriteRequests {
        policy: PolicyName,
        requests: BTreeMap<SlotKey, Request>,
    },
    /// Remove the slot: the end of a release.
    RemoveSlot {
        key: ClaimKey,
    },
    /// Take the finalizer off and delete the enactment: nothing is held by it.
    DropEnactment {
        policy: PolicyName,
        node_uid: NodeUid,
    },
    /// Re-key the ledger's entry to this Node UID ([`crate::claim::inherit`]).
    Inherit {
        key: ClaimKey,
        id: RequestId,
        lease: Lease,
        node_uid: NodeUid,
    },
}

impl Action {
    /// Does this write requests into the enactment?
    pub(super) fn says_requests(&self) -> bool {
        matches!(self, Self::CreateEnactment { .. } | Self::WriteRequests { .. })
    }

    /// Does this say of claims that they are given back?
    pub(super) fn lets_go(&self) -> bool {
        let Self::WriteRequests { requests, .. } = self else { return false };
        requests.values().any(|request| !request.want)
    }

    /// Does this say of claims that they are held, and nothing else?
    pub fn says_held(&self) -> bool {
        let Self::WriteRequests { requests, .. } = self else { return false };
        requests.values().all(|request| request.holds.is_some())
    }
}

/// How an action went, where that changes what the host knows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    Done,
    /// `AddToNic`: somebody else answers for this address.
    Taken {
        ip: IpAddr,
        by: Stranger,
    },
    /// `Confirm`: the pool backs the grant, or not.
    Backed(bool),
    /// `Inherit`: it is ours; it is not; or it can't be said now and is asserted instead.
    Inherited,
    NotOurs,
    Asserted,
}
