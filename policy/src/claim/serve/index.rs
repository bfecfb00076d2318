//! Which entries of a ledger bear an id, or belong to a claim: found in O(log n) while a batch is served.

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;

use super::Asked;
use crate::claim::ledger::Entry;
use crate::claim::names::{CaptureName, NodeUid, PolicyName, RequestId};

/// A claim, whatever id it bears: what is left of a holder whose journal was lost (rule 1).
#[derive(PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct ClaimOf {
    node_uid: NodeUid,
    policy: PolicyName,
    capture: CaptureName,
}

impl ClaimOf {
    pub(super) fn asked(ask: &Asked<'_>) -> Self {
        let (own, capture) = (ask.enactment, ask.key.capture.clone());
        Self { node_uid: own.node_uid.clone(), policy: own.policy.clone(), capture }
    }

    pub(super) fn entry(entry: &Entry) -> Self {
        let Entry { node_uid, policy, capture, .. } = entry;
        Self { node_uid: node_uid.clone(), policy: policy.clone(), capture: capture.clone() }
    }
}

/// Entries with an id; what a host merely shows has none and is nobody's claim.
#[derive(Default)]
pub(super) struct Index {
    by_id: BTreeMap<RequestId, BTreeSet<IpAddr>>,
    by_claim: BTreeMap<ClaimOf, BTreeSet<IpAddr>>,
}

impl Index {
    pub(super) fn add(&mut self, ip: IpAddr, entry: &Entry) {
        let Some(id) = &entry.request else { return };
        self.by_id.entry(id.clone()).or_default().insert(ip);
        self.by_claim.entry(ClaimOf::entry(entry)).or_default().insert(ip);
    }

    pub(super) fn remove(&mut self, ip: IpAddr, entry: &Entry) {
        if let Some(id) = &entry.request {
            forget(&mut self.by_id, id, ip);
        }
        forget(&mut self.by_claim, &ClaimOf::entry(entry), ip);
    }

    pub(super) fn of_id(&self, id: &RequestId) -> impl Iterator<Item = IpAddr> {
        self.by_id.get(id).into_iter().flatten().copied()
    }

    pub(super) fn of_claim(&self, claim: &ClaimOf) -> impl Iterator<Item = IpAddr> {
        self.by_claim.get(claim).into_iter().flatten().copied()
    }
}

fn forget<K: Ord>(index: &mut BTreeMap<K, BTreeSet<IpAddr>>, key: &K, ip: IpAddr) {
    if let Some(ips) = index.get_mut(key) {
        ips.remove(&ip);
        if ips.is_empty() {
            index.remove(key);
        }
    }
}
