//! The end of a vanished Node's enactments: their finalizer goes when what they held is free (rule 4). One that can't be read
//! can't say what that is: it goes when its host has had the longest quarantine there is to hear of it, and holds no pool up
//! from then on (`reading`). Else who breaks its own would stop its pools for good.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use crds::NodeNetworkConfigurationEnactment;
use crds::names::finalizer;
use k8s_openapi::api::core::v1::Node;
use kube::api::{Api, Patch, PatchParams};
use kube::{Resource, ResourceExt};
use policy::claim::{Ledger, NodeName, NodeUid, PoolName, Time, may_finish};
use serde_json::json;

use super::known::{Index, Work};
use super::reading::deleted;
use super::{Lead, QUARANTINE};
use crate::api::error::{Trouble, optional, trouble};
use crate::clock::now;
use crate::records::{self, RecordError};
use crate::telemetry::say;

/// How often to look whether it may go.
const AGAIN: Duration = Duration::from_secs(5);

impl Index {
    /// How long a host has at most to hear that its Node is gone, whatever pools it has addresses of.
    pub(super) fn longest_quarantine(&self) -> Time {
        self.pools.values().map(|of| of.pool.quarantine()).max().unwrap_or(QUARANTINE)
    }
}

impl Lead {
    pub(super) async fn finish(&self, name: &str) -> Result<(), kube::Error> {
        let hidden = self.known.index().hidden.get(name).cloned();
        if let Some(object) = hidden {
            return self.finish_hidden(&object).await;
        }
        let (known, ledgers, quarantine) = {
            let index = self.known.index();
            let Some(known) = index.enactments.get(name).cloned() else {
                return Ok(());
            };
            let vanished = !index.is_live(&known.claims.node, &known.claims.node_uid);
            if !vanished || !is_kept(&known.object) {
                return Ok(());
            }
            let pools: BTreeSet<&PoolName> = known.claims.slots.keys().map(|key| &key.pool).collect();
            let mut ledgers: BTreeMap<PoolName, Ledger> = BTreeMap::new();
            for pool in pools {
                let of = index.pools.get(pool);
                let read = of.map(|of| records::pool::read(&of.object, &of.pool));
                match read {
                    Some(Ok(mut ledger)) => {
                        for slice in index.slices_of(pool) {
                            ledger.allocations.extend(slice.ledger.allocations);
                        }
                        ledgers.insert(pool.clone(), ledger);
                    }
                    None if !index.unreadable.contains_key(pool) => {}
                    // A pool that can't be read is there all the same, and may have an entry of it.
                    Some(Err(_)) | None => {
                        drop(index);
                        self.known.put_off(Work::of_enactment(name.to_owned()), AGAIN);
                        return Ok(());
                    }
                }
            }
            let quarantine = index.longest_quarantine();
            (known, ledgers, quarantine)
        };
        if !may_finish(&known.claims, |pool| ledgers.get(pool), quarantine, now()) {
            self.known.put_off(Work::of_enactment(name.to_owned()), AGAIN);
            return Ok(());
        }
        if self.is_gone(&known.claims.node, &known.claims.node_uid).await? {
            self.let_go(&known.object).await?;
        }
        Ok(())
    }

    async fn finish_hidden(&self, object: &NodeNetworkConfigurationEnactment) -> Result<(), kube::Error> {
        let Some(since) = deleted(object).filter(|_| is_kept(object)) else { return Ok(()) };
        let name = object.name_any();
        let over = since.saturating_add(self.known.index().longest_quarantine());
        let wait = over.saturating_sub(now());
        if wait > 0 {
            self.known.put_off(Work::of_enactment(name), Duration::from_secs(wait));
            return Ok(());
        }
        let whose = match records::read_owner(object.meta()) {
            Ok((node, uid)) if self.is_gone(&node, &uid).await? => format!("Node {node} is gone"),
            Err(RecordError::Missing { .. }) => "it is no Node's".to_owned(),
            _ => return Ok(()),
        };
        if self.let_go(object).await? {
            say(&format!("enactment {name}: it can't be read, and {whose}: it keeps nothing any more"));
        }
        Ok(())
    }

    /// Gone is what the API server itself says is gone.
    async fn is_gone(&self, node: &NodeName, uid: &NodeUid) -> Result<bool, kube::Error> {
        let nodes: Api<Node> = Api::all(self.client.clone());
        let node = optional(nodes.get(node.as_str()).await)?;
        Ok(node.and_then(|node| node.uid()).as_deref() != Some(uid.as_str()))
    }

    /// Takes the finalizer off, if the enactment is as it was looked at.
    async fn let_go(&self, object: &NodeNetworkConfigurationEnactment) -> Result<bool, kube::Error> {
        let mut finalizers = object.finalizers().to_vec();
        finalizers.retain(|one| one != finalizer::ADDRESSES);
        let metadata = json!({"resourceVersion": object.resource_version(), "finalizers": finalizers});
        let api: Api<NodeNetworkConfigurationEnactment> = Api::all(self.client.clone());
        let patch = Patch::Merge(json!({"metadata": metadata}));
        match api.patch(&object.name_any(), &PatchParams::default(), &patch).await {
            Ok(_) => {
                crate::fault::point("enactment-finished");
                Ok(true)
            }
            Err(error) => match trouble(&error) {
                Trouble::NotFound | Trouble::Conflict => Ok(false),
                _ => Err(error),
            },
        }
    }
}

fn is_kept(object: &NodeNetworkConfigurationEnactment) -> bool {
    object.finalizers().iter().any(|one| one == finalizer::ADDRESSES)
}
