//! Everything as it is at one look: what the API has, what the journals say, what the kernels have.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::path::Path;

use crds::names::enactment_name;
use crds::{NodeIPPool, NodeNetworkConfigurationEnactment, NodeNetworkConfigurationPolicy, NodeNetworkState};
use k8s_openapi::api::core::v1::Node;
use kube::api::{Api, ListParams};
use kube::{Client, ResourceExt};
use serde_json::{Value, json};

use super::ground::Machine;

pub(crate) type Objects = BTreeMap<String, Value>;

pub(crate) struct World {
    pub(crate) pools: Objects,
    pub(crate) policies: Objects,
    pub(crate) enactments: Objects,
    pub(crate) states: Objects,
    pub(crate) nodes: Objects,
    /// By host: what its journal says.
    pub(crate) journals: Objects,
    /// By host: the IPv4 addresses of its cards.
    pub(crate) kernels: BTreeMap<String, BTreeSet<String>>,
}

impl World {
    pub(crate) async fn see(
        client: &Client,
        machines: &BTreeMap<String, Machine>,
        folder: &Path,
    ) -> Result<Self, kube::Error> {
        let journal = |host: &String| {
            let text = std::fs::read_to_string(folder.join(format!("state-{host}/journal.json")));
            serde_json::from_str(&text.unwrap_or_default()).unwrap_or_default()
        };
        let kernel = |machine: &Machine| machine.all_addresses().into_iter().map(|(_, ip)| ip).collect();
        Ok(Self {
            pools: list::<NodeIPPool>(client).await?,
            policies: list::<NodeNetworkConfigurationPolicy>(client).await?,
            enactments: list::<NodeNetworkConfigurationEnactment>(client).await?,
            states: list::<NodeNetworkState>(client).await?,
            nodes: list::<Node>(client).await?,
            journals: machines.keys().map(|host| (host.clone(), journal(host))).collect(),
            kernels: machines.iter().map(|(host, machine)| (host.clone(), kernel(machine))).collect(),
        })
    }

    pub(crate) fn enactment(&self, host: &str, policy: &str) -> &Value {
        self.enactments.get(&enactment_name(host, policy)).unwrap_or(&Value::Null)
    }

    /// Does the host's enactment have this condition, for the policy as it is?
    pub(crate) fn stands(&self, host: &str, policy: &str, condition: &str) -> bool {
        let own = self.enactment(host, policy);
        let of = self.policies.get(policy).unwrap_or(&Value::Null);
        let conditions = own["status"]["conditions"].as_array();
        own["status"]["policyGeneration"] == of["metadata"]["generation"]
            && own["status"]["policyUID"] == of["metadata"]["uid"]
            && conditions
                .is_some_and(|all| all.iter().any(|one| one["type"] == condition && one["status"] == "True"))
    }

    /// The entries of a pool.
    pub(crate) fn allocations(&self, pool: &str) -> Objects {
        let entries = self.pools.get(pool).and_then(|pool| pool["status"]["allocations"].as_object());
        entries.into_iter().flatten().map(|(ip, entry)| (ip.clone(), entry.clone())).collect()
    }

    /// The address that a host has of a pool, by the ledger.
    pub(crate) fn held(&self, pool: &str, host: &str) -> Option<String> {
        let held = |entry: &Value| entry["node"] == host && entry["state"].is_null();
        self.allocations(pool).into_iter().find(|(_, entry)| held(entry)).map(|(ip, _)| ip)
    }

    /// The claims of a host's journal: key and record.
    pub(crate) fn claims(&self, host: &str) -> Vec<(Value, Value)> {
        let claims = self.journals.get(host).and_then(|journal| journal["claims"].as_array());
        claims.into_iter().flatten().map(|claim| (claim[0].clone(), claim[1].clone())).collect()
    }
}

impl fmt::Display for World {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let status = |objects: &Objects| -> BTreeMap<String, Value> {
            objects.iter().map(|(name, one)| (name.clone(), one["status"].clone())).collect()
        };
        let all = json!({
            "pools": status(&self.pools), "policies": self.policies.keys().collect::<Vec<_>>(),
            "enactments": status(&self.enactments), "nodes": self.nodes.keys().collect::<Vec<_>>(),
            "journals": self.journals, "kernels": self.kernels,
        });
        write!(f, "{all:#}")
    }
}

async fn list<K>(client: &Client) -> Result<Objects, kube::Error>
where
    K: kube::Resource<Scope = kube::core::ClusterResourceScope>
        + Clone
        + serde::Serialize
        + serde::de::DeserializeOwned
        + fmt::Debug,
    K::DynamicType: Default,
{
    let all = Api::<K>::all(client.clone()).list(&ListParams::default()).await?;
    Ok(all.into_iter().map(|object| (object.name_any(), json!(object))).collect())
}
