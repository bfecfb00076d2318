//! What the controller knows of the cluster, kept current by its watches, and what of it wants a look.
//!
//! Objects are converted once, when they change. What is here may be old: it is good for deciding that a look is worth
//! it, and for serving under a guard; whatever takes something from somebody reads afresh (`reading`).
//!
//! Cost: every object once; O(log n) per change.

mod index;

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use crds::{NodeIPPool, NodeIPSlice, NodeNetworkConfigurationEnactment, NodeNetworkConfigurationPolicy};
use k8s_openapi::api::core::v1::Node;
use kube::ResourceExt;
use policy::claim::{HostState, NodeName, PolicyName, PoolName};
use tokio::sync::Notify;

pub(crate) use index::{EnactmentKnown, NodeKnown};
pub(super) use index::{Index, PoolKnown, SliceKnown, Work, believed};

use super::resets::Marked;
use super::shown::NodeNetworkStateShown;
use crate::api::Change;
use crate::records;

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
            Change::Gone(_) | Change::Missing(_) => None,
        };
        // Kubelets write their Nodes often; most of it is nothing to us.
        if before == now {
            return;
        }
        // What a list lacks may have gone at any time, all at once and by mistake: that is for the brake to ask about.
        if matches!(change, Change::Gone(_)) {
            index.witnessed.extend(before.map(|gone| gone.uid));
        }
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
            Change::Gone(_) | Change::Missing(_) => None,
        };
        let before = match now {
            Some(now) => index.states.insert(name.clone(), now),
            None => index.states.remove(&name),
        };
        let stamp = |state: Option<&HostState>| state.map(|state| state.stamp.clone());
        if stamp(before.as_ref()) != stamp(index.states.get(&name)) {
            index.asked.remove(&name);
        }
        // Whether it reports, and whether by an agent of ours.
        let whose = |state: Option<&HostState>| state.map(is_ours);
        let is_news = whose(before.as_ref()) != whose(index.states.get(&name));
        let mut work = Work { pools: index.restless(), ..Work::default() };
        // A host that reports has an agent: it counts among its policies' nodes.
        if is_news {
            work.policies = index.policies.keys().cloned().collect();
        }
        self.due(index, work);
    }

    pub(super) fn enactment(&self, change: &Change<NodeNetworkConfigurationEnactment>) {
        let name = change.object().name_any();
        let now = match change {
            Change::Put(object) => Some(object),
            Change::Gone(_) | Change::Missing(_) => None,
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
        let mut work = index.put_enactment(name.clone(), Some(&object));
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
            Change::Gone(_) | Change::Missing(_) => {
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
            Change::Gone(_) | Change::Missing(_) => drop(slices.remove(&name)),
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
            Change::Gone(_) | Change::Missing(_) => index.policies.remove(&name),
        };
        let mut work = Work::of_policy(name.clone());
        let marked = index.mark(Marked::Policy(name), change);
        work.pools.extend(marked);
        self.due(index, work);
    }
}

/// Whether an agent of ours wrote this report: each of theirs bears a stamp.
pub(super) fn is_ours(state: &HostState) -> bool {
    !state.stamp.as_str().is_empty()
}

/// Is what is known newer than this? Versions are numbers in every store there is; where they aren't, the last told counts.
fn is_newer<K: kube::Resource>(known: &K, other: &K) -> bool {
    let version = |object: &K| object.resource_version().and_then(|version| version.parse::<u64>().ok());
    known.uid() == other.uid()
        && version(known).zip(version(other)).is_some_and(|(known, other)| known > other)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    /// A Node that a list lacks after a gap may be one of many that went together: only what was seen to go is known to have gone
    /// one by one.
    #[test]
    fn rule4_what_nobody_saw_go_was_not_witnessed() {
        let node = |name: &str| -> Arc<Node> {
            let object = json!({"metadata": {"name": name, "uid": format!("uid-of-{name}")}});
            Arc::new(serde_json::from_value(object).unwrap())
        };
        let known = Known::default();
        for name in ["seen", "missed", "made-anew"] {
            known.node(&Change::Put(node(name)));
        }
        known.node(&Change::Gone(node("seen")));
        known.node(&Change::Missing(node("missed")));
        let mut other = (*node("made-anew")).clone();
        other.metadata.uid = Some("another".to_owned());
        known.node(&Change::Put(Arc::new(other)));
        let index = known.index();
        let witnessed: Vec<&str> = index.witnessed.iter().map(|uid| uid.as_str()).collect();
        assert_eq!(witnessed, ["uid-of-seen"]);
        assert_eq!(index.nodes.len(), 1);
    }
}
