//! The end of a vanished Node's enactments: their finalizer goes when what they held is free (rule 4).

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use crds::NodeNetworkConfigurationEnactment;
use crds::names::finalizer;
use k8s_openapi::api::core::v1::Node;
use kube::ResourceExt;
use kube::api::{Api, Patch, PatchParams};
use policy::claim::{Ledger, PoolName, may_finish};
use serde_json::json;

use super::Lead;
use super::known::Work;
use crate::api::error::{Trouble, optional, trouble};
use crate::clock::now;
use crate::records;

/// Where there is no pool that says otherwise.
const QUARANTINE: u64 = 300;
/// How often to look whether it may go.
const AGAIN: Duration = Duration::from_secs(5);

impl Lead {
    pub(super) async fn finish(&self, name: &str) -> Result<(), kube::Error> {
        let (known, ledgers, quarantine) = {
            let index = self.known.index();
            let Some(known) = index.enactments.get(name).cloned() else {
                return Ok(());
            };
            let vanished = !index.is_live(&known.claims.node, &known.claims.node_uid);
            if !vanished || !known.object.finalizers().iter().any(|one| one == finalizer::ADDRESSES) {
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
            let quarantine = index.pools.values().map(|of| of.pool.quarantine()).max().unwrap_or(QUARANTINE);
            (known, ledgers, quarantine)
        };
        if !may_finish(&known.claims, |pool| ledgers.get(pool), quarantine, now()) {
            self.known.put_off(Work::of_enactment(name.to_owned()), AGAIN);
            return Ok(());
        }
        // Gone is what the API server itself says is gone.
        let nodes: Api<Node> = Api::all(self.client.clone());
        let node = optional(nodes.get(known.claims.node.as_str()).await)?;
        if node.and_then(|node| node.uid()).as_deref() == Some(known.claims.node_uid.as_str()) {
            return Ok(());
        }
        let mut finalizers = known.object.finalizers().to_vec();
        finalizers.retain(|one| one != finalizer::ADDRESSES);
        let metadata = json!({"resourceVersion": known.object.resource_version(), "finalizers": finalizers});
        let api: Api<NodeNetworkConfigurationEnactment> = Api::all(self.client.clone());
        let patch = Patch::Merge(json!({"metadata": metadata}));
        match api.patch(name, &PatchParams::default(), &patch).await {
            Ok(_) => {
                crate::fault::point("enactment-finished");
                Ok(())
            }
            Err(error) => match trouble(&error) {
                Trouble::NotFound | Trouble::Conflict => Ok(()),
                _ => Err(error),
            },
        }
    }
}
