//! What the API server says now, read for a decision that takes something from somebody (rule 4): Nodes, enactments and
//! what hosts show, all later than the ledger that guards the write.
//!
//! Cost: three lists. Only asked for where what is known says that there is something to do.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use crds::NodeNetworkConfigurationEnactment;
use k8s_openapi::api::core::v1::Node;
use kube::api::{Api, ListParams};
use kube::{Client, ResourceExt};
use policy::claim::{Asked, Enactment, Facts, HostState, NodeName, NodeUid, PoolName};

use super::known::{EnactmentKnown, Index, NodeKnown};
use super::shown::NodeNetworkStateShown;
use crate::{api, records};

/// One reading, cached or fresh.
#[derive(Clone, Default)]
pub(crate) struct Reading {
    pub(crate) uids: BTreeMap<NodeName, NodeUid>,
    pub(crate) nodes: BTreeMap<NodeName, NodeKnown>,
    pub(crate) enactments: Vec<Enactment>,
    states: Vec<HostState>,
    witnessed: BTreeSet<NodeUid>,
    /// Objects that can't be read: what they hold is not known, so nothing may be taken.
    pub(crate) unreadable: Vec<String>,
    fresh: bool,
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
        for state in list::<NodeNetworkStateShown>(client).await? {
            let name = state.name_any();
            match state.shown {
                Ok(shown) => reading.states.push(shown),
                Err(why) => reading.unreadable.push(format!("NodeNetworkState {name}: {why}")),
            }
        }
        for object in list::<NodeNetworkConfigurationEnactment>(client).await? {
            match records::enactment::read(&object) {
                Ok(claims) => reading.enactments.push(claims),
                // Without claims there is nothing of ours in it: kubernetes-nmstate's, say.
                Err(_) if !records::enactment::has_claims(&object) => {}
                Err(why) => reading
                    .unreadable
                    .push(format!("NodeNetworkConfigurationEnactment {}: {why}", object.name_any())),
            }
        }
        for node in list::<Node>(client).await? {
            let known = NodeKnown::of(&node);
            reading.uids.insert(node.name_any().as_str().into(), known.uid.clone());
            reading.nodes.insert(node.name_any().as_str().into(), known);
        }
        Ok(reading)
    }

    /// These enactments as they are now, in place of what was known of them.
    pub(super) fn replace(&mut self, later: &[Arc<NodeNetworkConfigurationEnactment>]) {
        for known in later.iter().filter_map(EnactmentKnown::of) {
            self.enactments.retain(|old| old.uid != known.claims.uid);
            self.enactments.push(known.claims);
        }
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
    K: kube::Resource<Scope = kube::core::ClusterResourceScope>
        + Clone
        + serde::de::DeserializeOwned
        + std::fmt::Debug,
    K::DynamicType: Default,
{
    Ok(api::list::all(&Api::all(client.clone()), &ListParams::default()).await?.0)
}
