//! What the API objects say about claims: request, grant and refusal in an enactment, and the state a
//! host reports. Plain data; the agent converts CRD types to these and back.

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;

use serde::{Deserialize, Serialize};

use super::ledger::is_believable;
use super::names::{
    CaptureName, EnactmentUid, NodeName, NodeUid, PolicyName, PoolName, PoolUid, RequestId, Stamp,
};

/// Seconds since the epoch, passed in by the caller: this module has no clock.
pub type Time = u64;

/// Addresses as a holder knows them: one, or one of each family, always given and lost together (R92).
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Lease {
    pub ips: Vec<IpAddr>,
    /// The ledger's sequence when it was given: of two claims to one address the higher is the later.
    pub sequence: u64,
    pub pool: PoolUid,
}

/// Who else uses an address on the wire, and where that was heard (rule 10).
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Stranger {
    /// Its hardware address; empty where it is not known.
    pub mac: String,
    /// The host's own link that it was heard on.
    pub interface: String,
}

/// What an agent asks for, in its own enactment. Written by the agent alone.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Request {
    pub id: RequestId,
    /// `false` is final: an id that was let go never wants again (rule 3).
    pub want: bool,
    /// What the journal on the host's disk says is held: the assertion that outlives the store (rule 6).
    pub holds: Option<Lease>,
    /// Addresses found in use on the wire, and by whom (rule 10).
    pub declined: BTreeMap<IpAddr, Stranger>,
    /// A literal address of the policy that falls into the pool's range (rule 11).
    pub literal: Option<IpAddr>,
}

impl Request {
    pub fn new(id: RequestId) -> Self {
        Self { id, want: true, holds: None, declined: BTreeMap::new(), literal: None }
    }
}

/// What a server of claims answers. Written by it alone, and only where the id is still wanted (rule 2).
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Grant {
    pub id: RequestId,
    pub lease: Lease,
}

/// Why a request was not granted.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Refusal {
    pub id: RequestId,
    pub reason: RefusalReason,
    pub message: String,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum RefusalReason {
    /// The id was let go and the ledger no longer has it: the end of a release, not a failure.
    Released,
    /// The address that the request says it holds belongs to another holder: take it off the NIC.
    HeldByAnother,
    /// Nothing free now; served as soon as there is room.
    NoAddress,
    /// No pool of that name.
    NoSuchPool,
}

/// Where a claim stands inside an enactment.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct SlotKey {
    pub pool: PoolName,
    pub capture: CaptureName,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Slot {
    pub request: Option<Request>,
    pub grant: Option<Grant>,
    pub refused: Option<Refusal>,
}

impl Slot {
    /// The request, if no server of claims has answered it yet.
    pub fn unanswered(&self) -> Option<&Request> {
        let request = self.request.as_ref()?;
        let declined = |grant: &Grant| grant.lease.ips.iter().any(|ip| request.declined.contains_key(ip));
        let granted = |grant: &Grant| request.want && grant.id == request.id && !declined(grant);
        let refused = |refusal: &Refusal| {
            refusal.id == request.id && (refusal.reason == RefusalReason::Released) != request.want
        };
        let answered = self.grant.as_ref().is_some_and(granted) || self.refused.as_ref().is_some_and(refused);
        (!answered).then_some(request)
    }

    /// The request, if it is refused for something that may pass: no address is free, or there is no such pool.
    pub fn refused_for_now(&self) -> Option<&Request> {
        let request = self.request.as_ref().filter(|request| request.want)?;
        let passes = |refusal: &&Refusal| {
            matches!(refusal.reason, RefusalReason::NoAddress | RefusalReason::NoSuchPool)
        };
        let refusal = self.refused.as_ref().filter(passes)?;
        (refusal.id == request.id).then_some(request)
    }
}

/// An enactment as far as claims are concerned.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Enactment {
    pub uid: EnactmentUid,
    pub node: NodeName,
    /// The Node UID in the owner reference: whose it is, whatever its name says.
    pub node_uid: NodeUid,
    pub policy: PolicyName,
    /// Since when it is being deleted; its finalizer holds it until its addresses are free.
    pub deleting: Option<Time>,
    pub slots: BTreeMap<SlotKey, Slot>,
}

impl Enactment {
    /// Has it a grant of this address to this id?
    pub fn grants(&self, id: &RequestId, ip: IpAddr) -> bool {
        self.slots
            .values()
            .filter_map(|slot| slot.grant.as_ref())
            .any(|grant| grant.id == *id && grant.lease.ips.contains(&ip))
    }

    /// Leaves out what no ledger can have given by now; and of which claims.
    pub fn disbelieve(&mut self, now: Time) -> Vec<SlotKey> {
        let is_beyond = |lease: &Lease| !is_believable(lease.sequence, now);
        let mut beyond = Vec::new();
        for (key, slot) in &mut self.slots {
            let held =
                slot.request.as_mut().and_then(|request| request.holds.take_if(|lease| is_beyond(lease)));
            let granted = slot.grant.take_if(|grant| is_beyond(&grant.lease));
            if held.is_some() || granted.is_some() {
                beyond.push(key.clone());
            }
        }
        beyond
    }

    /// Has it a request that wants this id?
    pub fn wants(&self, id: &RequestId) -> bool {
        self.slots
            .values()
            .filter_map(|slot| slot.request.as_ref())
            .any(|request| request.id == *id && request.want)
    }
}

/// What a host's NodeNetworkState says of pooled addresses: on NICs, journalled or announced (rule 2).
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct HostState {
    pub node: NodeName,
    pub node_uid: NodeUid,
    pub stamp: Stamp,
    pub shows: BTreeSet<IpAddr>,
}
