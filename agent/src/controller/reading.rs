//! What the API server says now, read for a decision that takes something from somebody (rule 4): Nodes, enactments and
//! what hosts show, all later than the ledger that guards the write.
//!
//! What can't be read may hold whatever it names, so nothing is taken in the pools that it names. Of an enactment that is so no
//! longer than its host has to hear that its Node is gone: a host must not be able to stop a pool for good. What lost its owner, as by
//! `kubectl delete node --cascade=orphan`, is nobody's.
//!
//! Cost: three lists. Only asked for where what is known says that there is something to do.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use crds::NodeNetworkConfigurationEnactment;
use k8s_openapi::api::core::v1::Node;
use kube::api::{Api, ListParams};
use kube::{Client, Resource, ResourceExt};
use policy::claim::{Asked, Enactment, Facts, HostState, NodeName, NodeUid, PoolName, SlotKey, Time};

use super::known::{EnactmentKnown, Index, NodeKnown, believed};
use super::shown::NodeNetworkStateShown;
use crate::api;
use crate::records::{self, RecordError, RecordErrors};
use crate::telemetry::say;

/// One reading, cached or fresh.
#[derive(Clone, Default)]
pub(crate) struct Reading {
    pub(crate) uids: BTreeMap<NodeName, NodeUid>,
    pub(crate) nodes: BTreeMap<NodeName, NodeKnown>,
    pub(crate) enactments: Vec<Enactment>,
    states: Vec<HostState>,
    witnessed: BTreeSet<NodeUid>,
    pub(crate) unreadable: Vec<Unreadable>,
    fresh: bool,
}

/// An object that can't be read: what it holds is not known.
#[derive(Clone, Debug)]
pub(crate) struct Unreadable {
    /// Which, and why.
    pub(crate) what: String,
    /// The pools that it names; nothing: it may be any.
    pools: Option<BTreeSet<PoolName>>,
    /// Since when it is being deleted, its Node being gone.
    left: Option<Time>,
}

impl Unreadable {
    fn enactment(
        object: &NodeNetworkConfigurationEnactment,
        why: &RecordErrors,
        is_live: impl Fn(&NodeName, &NodeUid) -> bool,
    ) -> Self {
        Self {
            what: format!("NodeNetworkConfigurationEnactment {}: {why}", object.name_any()),
            pools: records::enactment::named(object),
            left: deleted(object).filter(|_| is_orphan(object, is_live)),
        }
    }

    /// Whether its host has had this long to hear that its Node is gone.
    pub(super) fn is_over(&self, quarantine: Time, now: Time) -> bool {
        self.left.is_some_and(|since| now >= since.saturating_add(quarantine))
    }
}

/// Whether no Node that there is has this enactment, whatever else can't be read of it. One that lost its owner is nobody's.
pub(super) fn is_orphan(
    object: &NodeNetworkConfigurationEnactment,
    is_live: impl Fn(&NodeName, &NodeUid) -> bool,
) -> bool {
    match records::read_owner(object.meta()) {
        Ok((node, uid)) => !is_live(&node, &uid),
        Err(why) => matches!(why, RecordError::Missing { .. }),
    }
}

/// Since when an object is being deleted.
pub(super) fn deleted(object: &impl Resource) -> Option<Time> {
    let since = object.meta().deletion_timestamp.as_ref()?;
    u64::try_from(since.0.as_second()).ok()
}

impl Reading {
    /// What is known of who asks this pool: their enactments and Nodes.
    pub(super) fn known(index: &Index, pool: &PoolName) -> Self {
        let named = index.by_pool.get(pool).into_iter().flatten();
        let asking = named.filter_map(|name| index.enactments.get(name));
        let enactments: Vec<Enactment> = asking.map(|known| known.claims.clone()).collect();
        let node = |own: &Enactment| Some((own.node.clone(), index.nodes.get(&own.node)?.clone()));
        Self { nodes: enactments.iter().filter_map(node).collect(), enactments, ..Self::default() }
    }

    /// All that is known.
    pub(super) fn known_whole(index: &Index) -> Self {
        Self {
            enactments: index.enactments.values().map(|known| known.claims.clone()).collect(),
            nodes: index.nodes.clone(),
            uids: index.nodes.iter().map(|(name, known)| (name.clone(), known.uid.clone())).collect(),
            states: index.states.values().cloned().collect(),
            witnessed: index.witnessed.clone(),
            ..Self::default()
        }
    }

    /// The same, as far as it is about these.
    pub(super) fn among(&self, enactments: Vec<Enactment>) -> Self {
        Self { enactments, ..self.clone() }
    }

    /// What the API server says.
    pub(crate) async fn fresh(client: &Client, witnessed: BTreeSet<NodeUid>) -> Result<Self, kube::Error> {
        let mut reading = Self { witnessed, fresh: true, ..Self::default() };
        // States and enactments before Nodes: what a Node made meanwhile is not taken for a dead one's.
        let (mut garbled, mut broken) = (Vec::new(), Vec::new());
        for state in list::<NodeNetworkStateShown>(client).await? {
            match state.shown {
                Ok(ref shown) => reading.states.push(shown.clone()),
                Err(ref why) => {
                    garbled.push((format!("NodeNetworkState {}: {why}", state.name_any()), state));
                }
            }
        }
        for object in list::<NodeNetworkConfigurationEnactment>(client).await? {
            match believed(&object) {
                Ok((claims, beyond)) => {
                    for SlotKey { pool, capture } in beyond {
                        let name = object.name_any();
                        say(&format!(
                            "enactment {name}: pool {pool} never gave what {capture} says: its sequence is beyond"
                        ));
                    }
                    reading.enactments.push(claims);
                }
                // Without claims there is nothing of ours in it: kubernetes-nmstate's, say.
                Err(_) if !records::enactment::has_claims(&object) => {}
                Err(why) => broken.push((object, why)),
            }
        }
        for node in list::<Node>(client).await? {
            let known = NodeKnown::of(&node);
            reading.uids.insert(node.name_any().as_str().into(), known.uid.clone());
            reading.nodes.insert(node.name_any().as_str().into(), known);
        }
        let is_live = |node: &NodeName, uid: &NodeUid| reading.uids.get(node) == Some(uid);
        // One that lost its owner, and is named after no Node that there is, tells of no host.
        let may_tell = |state: &NodeNetworkStateShown| {
            records::read_owner(state.meta()).is_ok()
                || reading.uids.contains_key(&NodeName::new(state.name_any()))
        };
        let garbled = garbled.into_iter().filter(|(_, state)| may_tell(state));
        let garbled = garbled.map(|(what, _)| Unreadable { what, pools: None, left: None });
        let broken = broken.iter().map(|(object, why)| Unreadable::enactment(object, why, is_live));
        reading.unreadable = garbled.chain(broken).collect();
        Ok(reading)
    }

    /// What can't be read and may be about this pool: then nothing is taken in it.
    pub(crate) fn hidden(&self, pool: &PoolName) -> Vec<String> {
        let is_about = |one: &&Unreadable| one.pools.as_ref().is_none_or(|pools| pools.contains(pool));
        self.unreadable.iter().filter(is_about).map(|one| one.what.clone()).collect()
    }

    /// The enactments with these UIDs as they are now, in place of what was known of them. One that is gone, or can't be read any more,
    /// asks nothing.
    pub(super) fn replace(
        &mut self,
        uids: &BTreeSet<String>,
        later: &[Arc<NodeNetworkConfigurationEnactment>],
    ) {
        self.enactments.retain(|old| !uids.contains(old.uid.as_str()));
        let read = later.iter().filter_map(EnactmentKnown::of).map(|known| known.claims);
        self.enactments.extend(read.filter(|own| uids.contains(own.uid.as_str())));
    }

    pub(crate) fn facts(&self, confirmed: Option<usize>) -> Facts<'_> {
        Facts {
            nodes: &self.uids,
            enactments: self.enactments.iter().collect(),
            states: self.states.iter().collect(),
            witnessed: &self.witnessed,
            confirmed,
        }
    }

    /// The requests to a pool. `later`: which of them were read after the ledger.
    pub(super) fn asked<'a>(&'a self, pool: &PoolName, later: &BTreeSet<String>) -> Vec<Asked<'a>> {
        static NO_LABELS: BTreeMap<String, String> = BTreeMap::new();
        let slots = self.enactments.iter().flat_map(|own| own.slots.keys().map(move |key| (own, key)));
        slots
            .filter(|(_, key)| key.pool == *pool)
            .map(|(enactment, key)| {
                let node = self.nodes.get(&enactment.node).filter(|node| node.uid == enactment.node_uid);
                Asked {
                    enactment,
                    key,
                    labels: node.map_or(&NO_LABELS, |node| &node.labels),
                    live: node.is_some(),
                    ready: node.is_some_and(|node| node.ready),
                    fresh: self.fresh || later.contains(enactment.uid.as_str()),
                }
            })
            .collect()
    }
}

async fn list<K>(client: &Client) -> Result<Vec<K>, kube::Error>
where
    K: Resource<Scope = kube::core::ClusterResourceScope>
        + Clone
        + serde::de::DeserializeOwned
        + std::fmt::Debug,
    K::DynamicType: Default,
{
    Ok(api::list::all(&Api::all(client.clone()), &ListParams::default()).await?.0)
}
