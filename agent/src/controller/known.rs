//! What the controller knows of the cluster, kept current by its watches, and what of it wants a look.
//!
//! Objects are converted once, when they change. What is here may be old: it is good for deciding that a look is worth
//! it, and for serving under a guard; whatever takes something from somebody reads afresh (`reading`).
//!
//! Cost: every object once; O(log n) per change.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use crds::{NodeIPPool, NodeIPSlice, NodeNetworkConfigurationEnactment, NodeNetworkConfigurationPolicy};
use k8s_openapi::api::core::v1::Node;
use kube::ResourceExt;
use policy::claim::{Enactment, HostState, NodeName, NodeSlice, NodeUid, PolicyName, PoolName};
use policy::pool::{Pool, PoolErrors};
use policy::rollout::Part;
use tokio::sync::Notify;

use super::resets::{Marked, Marks};
use super::shown::NodeNetworkStateShown;
use crate::api::Change;
use crate::records;

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

impl EnactmentKnown {
    /// What can't be read is nobody's to serve: whoever wrote it is told by what doesn't happen.
    pub(crate) fn of(object: &Arc<NodeNetworkConfigurationEnactment>) -> Option<Self> {
        let claims = records::enactment::read(object).ok()?;
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
pub(super) struct PoolKnown {
    pub(super) object: Arc<NodeIPPool>,
    pub(super) pool: Arc<Pool>,
}

impl PoolKnown {
    fn of(object: &Arc<NodeIPPool>) -> Result<Self, PoolErrors> {
        Ok(Self { object: object.clone(), pool: Arc::new(records::pool::meaning(object)?) })
    }
}

/// A slice, and what it says.
#[derive(Clone, Debug)]
pub(super) struct SliceKnown {
    pub(super) object: Arc<NodeIPSlice>,
    pub(super) slice: NodeSlice,
}

/// Names that want a look.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Work {
    pub(super) pools: BTreeSet<PoolName>,
    pub(super) policies: BTreeSet<PolicyName>,
    /// Of vanished Nodes, that may be let go.
    pub(super) enactments: BTreeSet<String>,
}

impl Work {
    pub(super) fn of_pool(name: PoolName) -> Self {
        Self { pools: [name].into(), ..Self::default() }
    }

    pub(super) fn of_policy(name: PolicyName) -> Self {
        Self { policies: [name].into(), ..Self::default() }
    }

    pub(super) fn of_enactment(name: String) -> Self {
        Self { enactments: [name].into(), ..Self::default() }
    }

    fn is_empty(&self) -> bool {
        self.pools.is_empty() && self.policies.is_empty() && self.enactments.is_empty()
    }

    fn add(&mut self, more: Self) {
        let Self { pools, policies, enactments } = more;
        self.pools.extend(pools);
        self.policies.extend(policies);
        self.enactments.extend(enactments);
    }
}

#[derive(Default)]
pub(super) struct Index {
    pub(super) nodes: BTreeMap<NodeName, NodeKnown>,
    /// Whose deletion was seen.
    pub(super) witnessed: BTreeSet<NodeUid>,
    pub(super) enactments: BTreeMap<String, EnactmentKnown>,
    pub(super) by_pool: BTreeMap<PoolName, BTreeSet<String>>,
    pub(super) by_policy: BTreeMap<PolicyName, BTreeSet<String>>,
    pub(super) states: BTreeMap<NodeName, HostState>,
    pub(super) pools: BTreeMap<PoolName, PoolKnown>,
    /// By pool and name.
    pub(super) slices: BTreeMap<PoolName, BTreeMap<String, SliceKnown>>,
    /// Pools of which an older version was told after a newer.
    pub(super) doubtful: BTreeSet<PoolName>,
    /// Pools whose spec this version can't read, and why.
    pub(super) unreadable: BTreeMap<PoolName, (Arc<NodeIPPool>, String)>,
    /// Resets that policies and enactments ask for.
    pub(super) marks: Marks,
    pub(super) policies: BTreeMap<PolicyName, Arc<NodeNetworkConfigurationPolicy>>,
    /// Hosts whose word was asked for since they last reported.
    asked: BTreeSet<NodeName>,
    /// The highest sequence of each pool that was ever seen here (rule 6).
    pub(super) sequences: BTreeMap<String, u64>,
    /// Enactments that can't be served as they are, by UID, with the version that it was so of.
    spoilt: BTreeMap<String, Option<String>>,
    due: Work,
    later: Vec<(Instant, Work)>,
    /// Everything was read once: before, nothing wants a look.
    begun: bool,
}

impl Index {
    fn version(&self, uid: &str) -> Option<String> {
        let known = self.enactments.values().find(|known| known.claims.uid.as_str() == uid)?;
        known.object.resource_version()
    }

    /// The enactments that are known, by UID.
    pub(super) fn enactment_uids(&self) -> Arc<BTreeSet<String>> {
        Arc::new(self.enactments.values().map(|known| known.claims.uid.to_string()).collect())
    }

    /// Can it not be served, as it is now?
    pub(super) fn is_spoilt(&self, uid: &str) -> bool {
        self.spoilt.get(uid).is_some_and(|version| *version == self.version(uid))
    }

    /// It can't be served as it is.
    pub(super) fn spoil(&mut self, uid: &str) {
        let version = self.version(uid);
        self.spoilt.insert(uid.to_owned(), version);
        let there: BTreeSet<&str> = self.enactments.values().map(|known| known.claims.uid.as_str()).collect();
        self.spoilt.retain(|uid, _| there.contains(uid.as_str()));
    }
}

#[derive(Default)]
pub(super) struct Known {
    index: Mutex<Index>,
    wake: Notify,
}

impl Known {
    pub(super) fn index(&self) -> MutexGuard<'_, Index> {
        self.index.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// May this host be asked for its word? Not again before it has spoken.
    pub(super) fn ask(&self, node: &NodeName) -> bool {
        self.index().asked.insert(node.clone())
    }

    /// It could not be asked.
    pub(super) fn unask(&self, node: &NodeName) {
        self.index().asked.remove(node);
    }

    /// From now on there is work: all of it, and these pools, which may not be there.
    pub(super) fn begin(&self, pools: impl Iterator<Item = PoolName>) {
        let mut index = self.index();
        index.begun = true;
        let all = index.everything();
        index.due.add(all);
        index.due.pools.extend(pools);
        self.wake.notify_one();
    }

    /// Something changed that all pools depend on.
    pub(super) fn everything(&self) {
        let index = self.index();
        let work = index.everything();
        self.due(index, work);
    }

    /// Waits for work, and takes all there is: what gathers meanwhile is the next batch.
    pub(super) async fn work(&self) -> Work {
        loop {
            let next = {
                let mut index = self.index();
                let now = Instant::now();
                let (due, later) =
                    std::mem::take(&mut index.later).into_iter().partition(|(at, _)| *at <= now);
                index.later = later;
                for (_, work) in due {
                    index.due.add(work);
                }
                if index.begun && !index.due.is_empty() {
                    return std::mem::take(&mut index.due);
                }
                index.later.iter().map(|(at, _)| *at).min()
            };
            let woken = self.wake.notified();
            match next {
                Some(at) => drop(tokio::time::timeout_at(at.into(), woken).await),
                None => woken.await,
            }
        }
    }

    /// To be looked at again after this long.
    pub(super) fn put_off(&self, work: Work, by: Duration) {
        let at = Instant::now() + by;
        let mut index = self.index();
        // The same work is not put off twice: the sooner counts.
        index.later.retain(|(then, known)| *then < at || *known != work);
        if !index.later.iter().any(|(_, known)| *known == work) {
            index.later.push((at, work));
        }
        drop(index);
        self.wake.notify_one();
    }

    fn due(&self, mut index: MutexGuard<'_, Index>, work: Work) {
        if !work.is_empty() {
            index.due.add(work);
            drop(index);
            self.wake.notify_one();
        }
    }

    pub(super) fn node(&self, change: &Change<Node>) {
        let name = NodeName::new(change.object().name_any());
        let mut index = self.index();
        let before = index.nodes.get(&name).cloned();
        let now = match change {
            Change::Put(node) => Some(NodeKnown::of(node)),
            Change::Gone(_) => None,
        };
        // Kubelets write their Nodes often; most of it is nothing to us.
        if before == now {
            return;
        }
        let gone = before.filter(|before| now.as_ref().is_none_or(|now| now.uid != before.uid));
        index.witnessed.extend(gone.map(|gone| gone.uid));
        match now {
            Some(now) => index.nodes.insert(name, now),
            None => index.nodes.remove(&name),
        };
        let work = index.everything();
        self.due(index, work);
    }

    pub(super) fn state(&self, change: &Change<NodeNetworkStateShown>) {
        let name = NodeName::new(change.object().name_any());
        let mut index = self.index();
        let now = match change {
            Change::Put(state) => state.shown.clone().ok(),
            Change::Gone(_) => None,
        };
        let before = match now {
            Some(now) => index.states.insert(name.clone(), now),
            None => index.states.remove(&name),
        };
        let stamp = |state: Option<&HostState>| state.map(|state| state.stamp.clone());
        if stamp(before.as_ref()) != stamp(index.states.get(&name)) {
            index.asked.remove(&name);
        }
        let appeared = before.is_some() != index.states.contains_key(&name);
        let mut work = Work { pools: index.restless(), ..Work::default() };
        // A host that reports has an agent: it counts among its policies' nodes.
        if appeared {
            work.policies = index.policies.keys().cloned().collect();
        }
        self.due(index, work);
    }

    pub(super) fn enactment(&self, change: &Change<NodeNetworkConfigurationEnactment>) {
        let name = change.object().name_any();
        let now = match change {
            Change::Put(object) => EnactmentKnown::of(object),
            Change::Gone(_) => None,
        };
        let mut index = self.index();
        let mut work = index.put_enactment(name.clone(), now);
        let marked = index.mark(Marked::Enactment(name), change);
        work.pools.extend(marked);
        self.due(index, work);
    }

    /// What was just read or written, without waiting for the watch.
    pub(super) fn fresh_enactment(&self, object: NodeNetworkConfigurationEnactment) {
        let name = object.name_any();
        let mut index = self.index();
        if index.enactments.get(&name).is_some_and(|known| is_newer(&*known.object, &object)) {
            return;
        }
        let object = Arc::new(object);
        let mut work = index.put_enactment(name.clone(), EnactmentKnown::of(&object));
        let marked = index.mark(Marked::Enactment(name), &Change::Put(object));
        work.pools.extend(marked);
        self.due(index, work);
    }

    pub(super) fn pool(&self, change: &Change<NodeIPPool>) {
        let name = PoolName::new(change.object().name_any());
        let mut index = self.index();
        match change {
            Change::Put(object) => {
                let known = index.pools.get(&name);
                // Late news of before our own write; or a store that went back in time. A read tells which.
                if known.is_some_and(|known| is_newer(&*known.object, &**object)) {
                    index.doubtful.insert(name.clone());
                } else {
                    index.put_pool(&name, object);
                }
            }
            Change::Gone(_) => {
                index.pools.remove(&name);
                index.unreadable.remove(&name);
            }
        }
        // What overlaps with it is another pool's business too.
        let pools = index.pools.keys().cloned().chain([name]).collect();
        self.due(index, Work { pools, ..Work::default() });
    }

    /// A slice that can't be read keeps its block all the same: only its node's agent could say what is in it.
    pub(super) fn slice(&self, change: &Change<NodeIPSlice>) {
        let object = change.object();
        let (pool, name) = (PoolName::new(object.spec.pool.as_str()), object.name_any());
        let mut index = self.index();
        let slices = index.slices.entry(pool.clone()).or_default();
        match change {
            Change::Put(object) => match records::slice::read(object) {
                Ok(slice) => drop(slices.insert(name, SliceKnown { object: object.clone(), slice })),
                Err(_) => drop(slices.remove(&name)),
            },
            Change::Gone(_) => drop(slices.remove(&name)),
        }
        index.slices.retain(|_, slices| !slices.is_empty());
        self.due(index, Work::of_pool(pool));
    }

    /// What was just read or written, without waiting for the watch.
    pub(super) fn fresh_pool(&self, object: NodeIPPool) {
        let name = PoolName::new(object.name_any());
        let mut index = self.index();
        // The watch may have told of a later one already; a store that went back in time is noticed by that (`doubtful`).
        let known = index.pools.get(&name);
        if !known.is_some_and(|known| is_newer(&*known.object, &object)) || index.doubtful.contains(&name) {
            index.put_pool(&name, &Arc::new(object));
        }
    }

    /// It was just seen that this one is gone; another of its name may be there by now.
    pub(super) fn gone_pool(&self, object: &NodeIPPool) {
        let mut index = self.index();
        let name = PoolName::new(object.name_any());
        if index.pools.get(&name).is_some_and(|known| known.object.uid() == object.uid()) {
            index.pools.remove(&name);
        }
        self.due(index, Work::of_pool(name));
    }

    /// The same of a policy. Nothing, where it is gone.
    pub(super) fn fresh_policy(&self, name: &PolicyName, object: Option<NodeNetworkConfigurationPolicy>) {
        let mut index = self.index();
        match object {
            None => drop(index.policies.remove(name)),
            Some(object) => {
                let known = index.policies.get(name);
                if !known.is_some_and(|known| is_newer(&**known, &object)) {
                    index.policies.insert(name.clone(), Arc::new(object));
                }
            }
        }
    }

    pub(super) fn policy(&self, change: &Change<NodeNetworkConfigurationPolicy>) {
        let name = PolicyName::new(change.object().name_any());
        let mut index = self.index();
        match change {
            Change::Put(object) => index.policies.insert(name.clone(), object.clone()),
            Change::Gone(_) => index.policies.remove(&name),
        };
        let mut work = Work::of_policy(name.clone());
        let marked = index.mark(Marked::Policy(name), change);
        work.pools.extend(marked);
        self.due(index, work);
    }
}

impl Index {
    fn everything(&self) -> Work {
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
    fn mark<K: kube::Resource>(&mut self, of: Marked, change: &Change<K>) -> Option<PoolName> {
        match change {
            Change::Put(object) => self.marks.note(of, object.annotations()),
            Change::Gone(_) => {
                self.marks.forget(&of);
                None
            }
        }
    }

    fn vanished(&self) -> impl Iterator<Item = String> {
        let gone = |known: &EnactmentKnown| {
            known.claims.deleting.is_some() && !self.is_live(&known.claims.node, &known.claims.node_uid)
        };
        self.enactments.iter().filter(move |(_, known)| gone(known)).map(|(name, _)| name.clone())
    }

    pub(super) fn is_live(&self, node: &NodeName, uid: &NodeUid) -> bool {
        self.nodes.get(node).is_some_and(|known| known.uid == *uid)
    }

    /// Pools in which a host's report may change something.
    fn restless(&self) -> BTreeSet<PoolName> {
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

    fn put_enactment(&mut self, name: String, now: Option<EnactmentKnown>) -> Work {
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
        work
    }

    fn put_pool(&mut self, name: &PoolName, object: &Arc<NodeIPPool>) {
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

/// Is what is known newer than this? Versions are numbers in every store there is; where they aren't, the last told counts.
fn is_newer<K: kube::Resource>(known: &K, other: &K) -> bool {
    let version = |object: &K| object.resource_version().and_then(|version| version.parse::<u64>().ok());
    known.uid() == other.uid()
        && version(known).zip(version(other)).is_some_and(|(known, other)| known > other)
}
