//! The objects themselves, and what follows from a change of one: which pools, policies and enactments want a look.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Instant;

use crds::{NodeIPPool, NodeIPSlice, NodeNetworkConfigurationEnactment, NodeNetworkConfigurationPolicy};
use k8s_openapi::api::core::v1::Node;
use kube::{Resource, ResourceExt};
use policy::claim::{Enactment, HostState, NodeName, NodeSlice, NodeUid, PolicyName, PoolName, SlotKey};
use policy::pool::{Pool, PoolErrors};
use policy::rollout::Part;

use crate::api::Change;
use crate::clock::now;
use crate::controller::reading::{deleted, is_orphan};
use crate::controller::resets::{Marked, Marks};
use crate::records::{self, RecordErrors};

/// A Node, as far as it matters here.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct NodeKnown {
    pub(crate) uid: NodeUid,
    pub(crate) labels: BTreeMap<String, String>,
    pub(crate) ready: bool,
}

impl NodeKnown {
    pub(crate) fn of(node: &Node) -> Self {
        let conditions = node.status.as_ref().and_then(|status| status.conditions.as_ref());
        let ready =
            |of: &k8s_openapi::api::core::v1::NodeCondition| of.type_ == "Ready" && of.status == "True";
        Self {
            uid: node.uid().unwrap_or_default().as_str().into(),
            labels: node.labels().clone(),
            ready: conditions.is_some_and(|conditions| conditions.iter().any(ready)),
        }
    }
}

/// An enactment.
#[derive(Clone, Debug)]
pub(crate) struct EnactmentKnown {
    pub(crate) object: Arc<NodeNetworkConfigurationEnactment>,
    pub(crate) claims: Enactment,
    pub(crate) part: Part,
}

/// What an enactment says, but for what no ledger can have given: of which claims it says that.
pub(in crate::controller) fn believed(
    object: &NodeNetworkConfigurationEnactment,
) -> Result<(Enactment, Vec<SlotKey>), RecordErrors> {
    let mut claims = records::enactment::read(object)?;
    let beyond = claims.disbelieve(now());
    Ok((claims, beyond))
}

impl EnactmentKnown {
    /// What can't be read is nobody's to serve: whoever wrote it is told by what doesn't happen.
    pub(crate) fn of(object: &Arc<NodeNetworkConfigurationEnactment>) -> Option<Self> {
        let (claims, _) = believed(object).ok()?;
        let status = object.status.as_ref();
        let conditions = status.map(|status| status.conditions.as_slice()).unwrap_or_default();
        let part = Part {
            node: claims.node.clone(),
            generation: status.and_then(|status| status.policy_generation).unwrap_or_default(),
            standing: records::standing::read(conditions),
        };
        Some(Self { object: object.clone(), claims, part })
    }
}

/// A pool, and what its spec means.
#[derive(Clone, Debug)]
pub(in crate::controller) struct PoolKnown {
    pub(in crate::controller) object: Arc<NodeIPPool>,
    pub(in crate::controller) pool: Arc<Pool>,
}

impl PoolKnown {
    pub(super) fn of(object: &Arc<NodeIPPool>) -> Result<Self, PoolErrors> {
        Ok(Self { object: object.clone(), pool: Arc::new(records::pool::meaning(object)?) })
    }
}

/// A slice, and what it says.
#[derive(Clone, Debug)]
pub(in crate::controller) struct SliceKnown {
    pub(in crate::controller) object: Arc<NodeIPSlice>,
    pub(in crate::controller) slice: NodeSlice,
}

/// Names that want a look.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(in crate::controller) struct Work {
    pub(in crate::controller) pools: BTreeSet<PoolName>,
    pub(in crate::controller) policies: BTreeSet<PolicyName>,
    /// Of vanished Nodes, that may be let go.
    pub(in crate::controller) enactments: BTreeSet<String>,
}

impl Work {
    pub(in crate::controller) fn of_pool(name: PoolName) -> Self {
        Self { pools: [name].into(), ..Self::default() }
    }

    pub(in crate::controller) fn of_policy(name: PolicyName) -> Self {
        Self { policies: [name].into(), ..Self::default() }
    }

    pub(in crate::controller) fn of_enactment(name: String) -> Self {
        Self { enactments: [name].into(), ..Self::default() }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.pools.is_empty() && self.policies.is_empty() && self.enactments.is_empty()
    }

    pub(super) fn add(&mut self, more: Self) {
        let Self { pools, policies, enactments } = more;
        self.pools.extend(pools);
        self.policies.extend(policies);
        self.enactments.extend(enactments);
    }
}

#[derive(Default)]
pub(in crate::controller) struct Index {
    pub(in crate::controller) nodes: BTreeMap<NodeName, NodeKnown>,
    /// Whose deletion was seen.
    pub(in crate::controller) witnessed: BTreeSet<NodeUid>,
    pub(in crate::controller) enactments: BTreeMap<String, EnactmentKnown>,
    /// Enactments with claims that can't be read.
    pub(in crate::controller) hidden: BTreeMap<String, Arc<NodeNetworkConfigurationEnactment>>,
    pub(in crate::controller) by_pool: BTreeMap<PoolName, BTreeSet<String>>,
    pub(in crate::controller) by_policy: BTreeMap<PolicyName, BTreeSet<String>>,
    pub(in crate::controller) states: BTreeMap<NodeName, HostState>,
    pub(in crate::controller) pools: BTreeMap<PoolName, PoolKnown>,
    /// By pool and name.
    pub(in crate::controller) slices: BTreeMap<PoolName, BTreeMap<String, SliceKnown>>,
    /// Pools of which an older version was told after a newer.
    pub(in crate::controller) doubtful: BTreeSet<PoolName>,
    /// Pools whose spec this version can't read, and why.
    pub(in crate::controller) unreadable: BTreeMap<PoolName, (Arc<NodeIPPool>, String)>,
    /// Resets that policies and enactments ask for.
    pub(in crate::controller) marks: Marks,
    pub(in crate::controller) policies: BTreeMap<PolicyName, Arc<NodeNetworkConfigurationPolicy>>,
    /// Hosts whose word was asked for since they last reported.
    pub(super) asked: BTreeSet<NodeName>,
    /// The highest sequence of each pool that was ever seen here (rule 6).
    pub(in crate::controller) sequences: BTreeMap<String, u64>,
    /// Enactments that can't be served as they are, by UID, with the version that it was so of.
    spoilt: BTreeMap<String, Option<String>>,
    pub(super) due: Work,
    pub(super) later: Vec<(Instant, Work)>,
    /// Everything was read once: before, nothing wants a look.
    pub(super) begun: bool,
}

impl Index {
    fn version(&self, uid: &str) -> Option<String> {
        let known = self.enactments.values().find(|known| known.claims.uid.as_str() == uid)?;
        known.object.resource_version()
    }

    /// The enactments that are known, by UID.
    pub(in crate::controller) fn enactment_uids(&self) -> Arc<BTreeSet<String>> {
        Arc::new(self.enactments.values().map(|known| known.claims.uid.to_string()).collect())
    }

    /// Can it not be served, as it is now?
    pub(in crate::controller) fn is_spoilt(&self, uid: &str) -> bool {
        self.spoilt.get(uid).is_some_and(|version| *version == self.version(uid))
    }

    /// It can't be served as it is.
    pub(in crate::controller) fn spoil(&mut self, uid: &str) {
        let version = self.version(uid);
        self.spoilt.insert(uid.to_owned(), version);
        let there: BTreeSet<&str> = self.enactments.values().map(|known| known.claims.uid.as_str()).collect();
        self.spoilt.retain(|uid, _| there.contains(uid.as_str()));
    }

    pub(super) fn everything(&self) -> Work {
        Work {
            pools: (self.pools.keys().chain(self.by_pool.keys()))
                .chain(self.slices.keys())
                .chain(self.marks.pools())
                .cloned()
                .collect(),
            policies: self.policies.keys().cloned().collect(),
            enactments: self.vanished().collect(),
        }
    }

    /// Whether an object asks for a reset; the pool that wants a look by it.
    pub(super) fn mark<K: Resource>(&mut self, of: Marked, change: &Change<K>) -> Option<PoolName> {
        match change {
            Change::Put(object) => self.marks.note(of, object.annotations()),
            Change::Gone(_) | Change::Missing(_) => {
                self.marks.forget(&of);
                None
            }
        }
    }

    pub(super) fn vanished(&self) -> impl Iterator<Item = String> {
        let gone = |known: &EnactmentKnown| {
            known.claims.deleting.is_some() && !self.is_live(&known.claims.node, &known.claims.node_uid)
        };
        let known = self.enactments.iter().filter(move |(_, known)| gone(known)).map(|(name, _)| name);
        let orphan = |object: &NodeNetworkConfigurationEnactment| {
            is_orphan(object, |node, uid| self.is_live(node, uid))
        };
        let hidden =
            self.hidden.iter().filter(move |(_, object)| deleted(&***object).is_some() && orphan(object));
        known.chain(hidden.map(|(name, _)| name)).cloned()
    }

    pub(in crate::controller) fn is_live(&self, node: &NodeName, uid: &NodeUid) -> bool {
        self.nodes.get(node).is_some_and(|known| known.uid == *uid)
    }

    /// Pools in which a host's report may change something.
    pub(super) fn restless(&self) -> BTreeSet<PoolName> {
        let waits = |known: &PoolKnown| {
            let Some(status) = &known.object.status else { return true };
            let unsynced = |one: &crds::Condition| one.reason == crds::names::pool::UNSYNCRONIZED;
            status.rebuilt_for.is_none()
                || status.hold.is_some()
                || status.conditions.iter().any(unsynced)
                || status.allocations.values().any(|entry| entry.state.is_some())
        };
        let aside =
            |known: &SliceKnown| known.slice.ledger.allocations.values().any(|entry| !entry.is_held());
        let sliced = self.slices.iter().filter(|(_, slices)| slices.values().any(aside));
        let restless = self.pools.iter().filter(|(_, known)| waits(known)).map(|(name, _)| name.clone());
        restless.chain(sliced.map(|(name, _)| name.clone())).collect()
    }

    /// One that can't be read. Its pools, which it held up, want a look when it changes or goes.
    fn hide(&mut self, name: &str, now: Option<&Arc<NodeNetworkConfigurationEnactment>>) -> Work {
        let before = match now {
            Some(now) => self.hidden.insert(name.to_owned(), now.clone()),
            None => self.hidden.remove(name),
        };
        let mut work = Work::default();
        if let Some(before) = before {
            let all = || self.pools.keys().cloned().collect();
            work.pools = records::enactment::named(&before).unwrap_or_else(all);
        }
        if now.is_some_and(|now| deleted(&**now).is_some()) {
            work.enactments.insert(name.to_owned());
        }
        work
    }

    pub(super) fn put_enactment(
        &mut self,
        name: String,
        object: Option<&Arc<NodeNetworkConfigurationEnactment>>,
    ) -> Work {
        let now = object.and_then(EnactmentKnown::of);
        let is_hidden = |object: &&Arc<_>| now.is_none() && records::enactment::has_claims(object);
        let held_up = self.hide(&name, object.filter(is_hidden));
        let mut work = Work::default();
        let before = match now {
            Some(now) => self.enactments.insert(name.clone(), now),
            None => self.enactments.remove(&name),
        };
        if let Some(before) = &before {
            for key in before.claims.slots.keys() {
                self.by_pool.entry(key.pool.clone()).or_default().remove(&name);
                work.pools.insert(key.pool.clone());
            }
            self.by_policy.entry(before.claims.policy.clone()).or_default().remove(&name);
            work.policies.insert(before.claims.policy.clone());
        }
        if let Some(now) = self.enactments.get(&name) {
            let unchanged = before.as_ref().is_some_and(|before| before.claims == now.claims);
            if unchanged {
                work.pools.clear();
            }
            for key in now.claims.slots.keys() {
                self.by_pool.entry(key.pool.clone()).or_default().insert(name.clone());
                if !unchanged {
                    work.pools.insert(key.pool.clone());
                }
            }
            self.by_policy.entry(now.claims.policy.clone()).or_default().insert(name.clone());
            if before.is_none_or(|before| before.part != now.part) {
                work.policies.insert(now.claims.policy.clone());
            } else {
                work.policies.clear();
            }
            if now.claims.deleting.is_some() {
                work.enactments.insert(name);
            }
        }
        self.by_pool.retain(|_, names| !names.is_empty());
        self.by_policy.retain(|_, names| !names.is_empty());
        work.add(held_up);
        work
    }

    pub(super) fn put_pool(&mut self, name: &PoolName, object: &Arc<NodeIPPool>) {
        match PoolKnown::of(object) {
            Ok(known) => {
                let sequence = object.status.as_ref().map_or(0, |status| status.sequence);
                let seen = self.sequences.entry(object.uid().unwrap_or_default()).or_default();
                *seen = (*seen).max(sequence.unsigned_abs());
                self.unreadable.remove(name);
                self.pools.insert(name.clone(), known);
            }
            Err(why) => {
                self.pools.remove(name);
                self.unreadable.insert(name.clone(), (object.clone(), why.to_string()));
            }
        }
    }
}
