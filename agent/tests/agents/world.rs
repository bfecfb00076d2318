//! Everything as it is at one look: what the API has, what the journals say, what the kernels have.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::path::PathBuf;

use agent::netlink::Netlink;
use agent::netns::Namespace;
use crds::names::enactment_name;
use crds::{
    NodeIPPool, NodeIPSlice, NodeNetworkConfigurationEnactment, NodeNetworkConfigurationPolicy,
    NodeNetworkState,
};
use k8s_openapi::api::core::v1::Node;
use kube::api::{Api, ListParams};
use kube::{Client, ResourceExt};
use policy::state::AddressProtocol;
use serde_json::{Value, json};

pub(crate) type Objects = BTreeMap<String, Value>;

/// A kind of object that belongs to the whole cluster.
pub(crate) trait Object:
    kube::Resource<Scope = kube::core::ClusterResourceScope, DynamicType = ()>
    + Clone
    + serde::Serialize
    + serde::de::DeserializeOwned
    + fmt::Debug
{
}

impl<K> Object for K where
    K: kube::Resource<Scope = kube::core::ClusterResourceScope, DynamicType = ()>
        + Clone
        + serde::Serialize
        + serde::de::DeserializeOwned
        + fmt::Debug
{
}

/// Where a host is: its cards, and its disk.
#[derive(Clone, Debug)]
pub(crate) struct Place {
    pub(crate) netns: String,
    pub(crate) state_dir: PathBuf,
}

/// The hosts that there are, by the names of their Nodes.
pub(crate) type Places = BTreeMap<String, Place>;

pub(crate) struct World {
    pub(crate) pools: Objects,
    pub(crate) slices: Objects,
    pub(crate) policies: Objects,
    pub(crate) enactments: Objects,
    pub(crate) states: Objects,
    pub(crate) nodes: Objects,
    /// By host: what its journal says.
    pub(crate) journals: Objects,
    /// By host: the addresses of its cards, of both families; link-local ones are every card's.
    pub(crate) kernels: BTreeMap<String, BTreeSet<String>>,
    /// Those of them that have Berth's mark.
    pub(crate) marked: BTreeMap<String, BTreeSet<String>>,
}

impl World {
    pub(crate) async fn see(client: &Client, places: &Places) -> Result<Self, kube::Error> {
        let mut world = Self {
            pools: list::<NodeIPPool>(client).await?,
            slices: list::<NodeIPSlice>(client).await?.into_iter().map(with_ledger).collect(),
            policies: list::<NodeNetworkConfigurationPolicy>(client).await?,
            enactments: list::<NodeNetworkConfigurationEnactment>(client).await?,
            states: list::<NodeNetworkState>(client).await?,
            nodes: list::<Node>(client).await?,
            journals: Objects::new(),
            kernels: BTreeMap::new(),
            marked: BTreeMap::new(),
        };
        for (host, place) in places {
            let text = std::fs::read_to_string(place.state_dir.join("journal.json")).unwrap_or_default();
            world.journals.insert(host.clone(), serde_json::from_str(&text).unwrap_or_default());
            let (all, marked) = addresses(&place.netns);
            world.kernels.insert(host.clone(), all);
            world.marked.insert(host.clone(), marked);
        }
        Ok(world)
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

    /// The entries of a pool, and of its slices.
    pub(crate) fn allocations(&self, pool: &str) -> Objects {
        let slices = self.slices.values().filter(|slice| slice["spec"]["pool"] == pool);
        let ledgers = self.pools.get(pool).into_iter().chain(slices);
        let entries = ledgers.filter_map(|ledger| ledger["status"]["allocations"].as_object());
        entries.flatten().map(|(ip, entry)| (ip.clone(), entry.clone())).collect()
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

/// A slice whose ledger is in its status, as it is once it was written.
fn with_ledger((name, mut slice): (String, Value)) -> (String, Value) {
    slice["status"] = json!({"allocations": entries(&slice)});
    (name, slice)
}

/// What is held in a slice, by its ledger or by what it was made with.
pub(crate) fn entries(slice: &Value) -> Objects {
    let slice: NodeIPSlice = serde_json::from_value(slice.clone()).expect("a slice");
    slice.ledger().allocations.iter().map(|(ip, entry)| (ip.clone(), json!(entry))).collect()
}

impl fmt::Display for World {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let status = |objects: &Objects| -> BTreeMap<String, Value> {
            objects.iter().map(|(name, one)| (name.clone(), one["status"].clone())).collect()
        };
        let all = json!({
            "pools": status(&self.pools), "slices": self.slices, "policies": self.policies.keys().collect::<Vec<_>>(),
            "enactments": status(&self.enactments), "nodes": self.nodes.keys().collect::<Vec<_>>(),
            "journals": self.journals, "kernels": self.kernels,
        });
        write!(f, "{all:#}")
    }
}

/// Those of the cards in a namespace, and those of them that have Berth's mark. (iproute2 shows it since 6.2.)
fn addresses(netns: &str) -> (BTreeSet<String>, BTreeSet<String>) {
    let namespace: Namespace = netns.parse().expect("a name");
    let seen = namespace.inside(|| Netlink::open().expect("netlink").observe().expect("a state"));
    let (mut all, mut marked) = (BTreeSet::new(), BTreeSet::new());
    let links = seen.expect("inside").state.links;
    for link in links.values().filter(|link| link.name.as_str() != "lo") {
        let addresses = link.ipv4.addresses.iter().chain(&link.ipv6.addresses);
        for address in addresses.filter(|address| !address.is_kernel_link_local()) {
            if address.protocol == Some(AddressProtocol::BERTH) {
                marked.insert(address.ip.to_string());
            }
            all.insert(address.ip.to_string());
        }
    }
    (all, marked)
}

async fn list<K: Object>(client: &Client) -> Result<Objects, kube::Error> {
    let all = Api::<K>::all(client.clone()).list(&ListParams::default()).await?;
    Ok(all.into_iter().map(|object| (object.name_any(), json!(object))).collect())
}
