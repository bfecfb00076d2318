//! What the API says, read once for a person who asks: pools with their ledgers, Nodes, and the way to say that something is
//! not there.
//!
//! Used by the verbs about pools, policies and nodes. Reads alone; whoever writes guards it by what was read here. An object
//! that can't be read is named and left out, never taken for an empty one. Cost: a list of each kind that is asked for.

mod nearest;

use std::collections::BTreeMap;
use std::fmt::Debug;
use std::sync::Arc;

use anyhow::anyhow;
use crds::{NodeIPPool, NodeIPSlice};
use k8s_openapi::api::core::v1::Event;
use k8s_openapi::api::networking::v1::ServiceCIDR;
use k8s_openapi::jiff::Timestamp;
use kube::api::{Api, ListParams};
use kube::core::ClusterResourceScope;
use kube::{Client, Resource, ResourceExt};
use policy::claim::{Ledger, NodeSlice, Time};
use policy::pool::{Barred, Pool};
use serde::de::DeserializeOwned;
use thiserror::Error;

use super::client::Reach;
use super::{output, terminal};
use crate::api::error::{Trouble, optional, trouble, words};
use crate::api::list;
use crate::controller::reading::Reading;
use crate::ledger::claims::timestamp;
use crate::{networks, records};

/// Nothing has that name.
#[derive(Debug, Error)]
#[error("there is no {kind} {name:?}{}", nearest::hint(.name, .known))]
pub(super) struct NoSuch {
    pub(super) kind: &'static str,
    pub(super) name: String,
    pub(super) known: Vec<String>,
}

pub(super) struct Cluster {
    pub(super) client: Client,
}

impl Cluster {
    pub(super) async fn reach(reach: &Reach) -> anyhow::Result<Self> {
        Ok(Self { client: reach.client().await? })
    }

    /// All of a kind.
    pub(super) async fn list<K>(&self) -> anyhow::Result<Vec<K>>
    where
        K: Resource<Scope = ClusterResourceScope> + Clone + DeserializeOwned + Debug,
        K::DynamicType: Default,
    {
        let kind = K::kind(&K::DynamicType::default()).into_owned();
        let (api, all): (Api<K>, _) = (Api::all(self.client.clone()), ListParams::default());
        let read = terminal::patiently(&format!("reading {kind}s"), list::all(&api, &all)).await;
        read.map(|(found, _)| found).map_err(|error| told(&format!("{kind}s can't be read"), &error))
    }

    /// One of a kind, or nothing.
    pub(super) async fn get<K>(&self, name: &str) -> anyhow::Result<Option<K>>
    where
        K: Resource<Scope = ClusterResourceScope> + Clone + DeserializeOwned + Debug,
        K::DynamicType: Default,
    {
        let kind = K::kind(&K::DynamicType::default()).into_owned();
        let api: Api<K> = Api::all(self.client.clone());
        let read = terminal::patiently(&format!("reading {kind} {name}"), api.get(name)).await;
        optional(read).map_err(|error| told(&format!("{kind} {name} can't be read"), &error))
    }

    /// Every pool with its ledger and slices. Slices that can't be read are warned of.
    pub(super) async fn pools(&self) -> anyhow::Result<PoolsSeen> {
        let seen = self.pools_unsaid().await?;
        for (_, name, why) in &seen.unreadable_slices {
            output::warn(&format!("NodeIPSlice {name}"), why);
        }
        Ok(seen)
    }

    /// The same for who says of each what can't be read.
    pub(super) async fn pools_unsaid(&self) -> anyhow::Result<PoolsSeen> {
        let slices = self.list::<NodeIPSlice>().await?;
        Ok(PoolsSeen::of(self.list::<NodeIPPool>().await?, &slices))
    }

    /// The cluster's ServiceCIDRs, which no pool gives of. Where they may not be listed that is said, and there are none.
    pub(super) async fn services(&self) -> anyhow::Result<Vec<ServiceCIDR>> {
        let read = terminal::patiently("reading ServiceCIDRs", networks::services(&self.client)).await;
        match read {
            Err(error) if trouble(&error) == Trouble::Forbidden => {
                let why = words(&error);
                output::warn("ServiceCIDRs", format!("can't be read, so what is theirs looks free: {why}"));
                Ok(Vec::new())
            }
            read => read.map_err(|error| told("ServiceCIDRs can't be read", &error)),
        }
    }

    /// Nodes, enactments and states, read now: later than whatever was read before.
    pub(super) async fn facts(&self) -> anyhow::Result<Reading> {
        let reading = Reading::fresh(&self.client, Default::default());
        let read = terminal::patiently("reading Nodes, enactments and states", reading).await;
        read.map_err(|error| told("Nodes, enactments and states can't be read", &error))
    }

    /// Events, in the order of time; all, or those about one object.
    pub(super) async fn events(&self, about: Option<(&str, &str)>) -> anyhow::Result<Vec<Event>> {
        let api: Api<Event> = Api::all(self.client.clone());
        let mut select = ListParams::default();
        if let Some((kind, name)) = about {
            select = select.fields(&format!("involvedObject.kind={kind},involvedObject.name={name}"));
        }
        let read = terminal::patiently("reading Events", list::all(&api, &select)).await;
        read.map(|(found, _)| found).map_err(|error| told("Events can't be read", &error))
    }
}

/// An answer of the API that is none, in words for a person.
pub(super) fn told(what: &str, error: &kube::Error) -> anyhow::Error {
    let words = words(error);
    match trouble(error) {
        Trouble::NotFound if is_gone(error) => anyhow!("{what}: it is not there, or no longer\n{words}"),
        Trouble::NotFound => anyhow!(
            "{what}: the API has no such kind; install the definitions with 'berth crds | kubectl apply -f -'\n{words}"
        ),
        Trouble::Away => anyhow!("{what}: the API can't be reached\n{words}"),
        _ => anyhow!("{what}\n{words}"),
    }
}

/// An object that is not there. Of a kind that is not there no object is named.
pub(super) fn is_gone(error: &kube::Error) -> bool {
    let kube::Error::Api(status) = error else { return false };
    let names_it = status.details.as_ref().is_some_and(|details| !details.name.is_empty());
    trouble(error) == Trouble::NotFound && names_it
}

/// A pool as the API has it.
pub(super) struct PoolSeen {
    pub(super) object: Arc<NodeIPPool>,
    pub(super) pool: Pool,
    /// With the entries of its slices.
    pub(super) ledger: Ledger,
    /// Each block of a sliced pool, its object, and whose it is.
    pub(super) slices: Vec<NodeSlice>,
}

/// Pools by name.
#[derive(Default)]
pub(super) struct PoolsSeen {
    seen: BTreeMap<String, PoolSeen>,
    /// Those that can't be read, and why.
    unreadable: BTreeMap<String, String>,
    /// Slices that can't be read: the pool, the slice, and why.
    unreadable_slices: Vec<(String, String, String)>,
}

/// An object that can't be read: what it holds nobody knows.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Unreadable {
    /// The one that it is about, where that is known.
    pub(super) pool: Option<String>,
    /// Which, and why.
    pub(super) what: String,
}

impl PoolsSeen {
    fn of(pools: Vec<NodeIPPool>, slices: &[NodeIPSlice]) -> Self {
        let mut all = Self::default();
        for object in pools {
            all.add(object, slices);
        }
        all
    }

    fn add(&mut self, object: NodeIPPool, slices: &[NodeIPSlice]) {
        let name = object.name_any();
        let read = records::pool::meaning(&object).map_err(|why| why.to_string()).and_then(|pool| {
            let ledger = records::pool::read(&object, &pool).map_err(|why| why.to_string())?;
            Ok((pool, ledger))
        });
        let (pool, mut ledger) = match read {
            Ok(read) => read,
            Err(why) => return drop(self.unreadable.insert(name, why)),
        };
        let mut own = Vec::new();
        for slice in slices.iter().filter(|slice| slice.spec.pool == name) {
            match records::slice::read(slice) {
                Ok(part) => {
                    ledger.allocations.extend(part.ledger.allocations.clone());
                    own.push(part);
                }
                Err(why) => self.unreadable_slices.push((name.clone(), slice.name_any(), why.to_string())),
            }
        }
        self.seen.insert(name, PoolSeen { object: Arc::new(object), pool, ledger, slices: own });
    }

    /// A pool as it would be once it is created: empty, and giving.
    pub(super) fn add_new(&mut self, object: NodeIPPool) -> anyhow::Result<()> {
        let (name, pool) = (object.name_any(), records::pool::meaning(&object)?);
        let mut ledger = Ledger::new(name.as_str().into());
        ledger.rebuilt_for = Some(ledger.pool.clone());
        let slices = Vec::new();
        self.seen.insert(name, PoolSeen { object: Arc::new(object), pool, ledger, slices });
        Ok(())
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = (&String, &PoolSeen)> {
        self.seen.iter()
    }

    /// Says which pools can't be read.
    pub(super) fn warn(&self) {
        for (name, why) in &self.unreadable {
            output::warn(&format!("NodeIPPool {name}"), why);
        }
    }

    pub(super) fn names(&self) -> Vec<String> {
        self.seen.keys().chain(self.unreadable.keys()).cloned().collect()
    }

    pub(super) fn get(&self, name: &str) -> anyhow::Result<&PoolSeen> {
        self.seen.get(name).ok_or_else(|| self.missing(name))
    }

    fn missing(&self, name: &str) -> anyhow::Error {
        match self.unreadable.get(name) {
            Some(why) => anyhow!("pool {name} can't be read\n{why}"),
            None => NoSuch { kind: "pool", name: name.to_owned(), known: self.names() }.into(),
        }
    }

    /// These, or all.
    pub(super) fn chosen<'a>(&'a self, names: &[String]) -> anyhow::Result<Vec<(&'a String, &'a PoolSeen)>> {
        if names.is_empty() {
            self.warn();
            return Ok(self.iter().collect());
        }
        names.iter().map(|name| self.seen.get_key_value(name).ok_or_else(|| self.missing(name))).collect()
    }

    /// The same without those that can't be read: [`Self::unreadable`] has them.
    pub(super) fn readable<'a>(
        &'a self,
        names: &[String],
    ) -> anyhow::Result<Vec<(&'a String, &'a PoolSeen)>> {
        let is_there = |name: &&String| self.seen.contains_key(*name) || self.unreadable.contains_key(*name);
        match names.iter().find(|name| !is_there(name)) {
            Some(name) => Err(self.missing(name)),
            None => Ok(self.iter().filter(|(name, _)| names.is_empty() || names.contains(name)).collect()),
        }
    }

    /// What can't be read of these pools, or of all.
    pub(super) fn unreadable(&self, names: &[String]) -> Vec<Unreadable> {
        let pools = self.unreadable.iter().map(|(name, why)| (name, format!("NodeIPPool {name}: {why}")));
        let slices = self.unreadable_slices.iter();
        let slices = slices.map(|(pool, name, why)| (pool, format!("NodeIPSlice {name}: {why}")));
        let asked = pools.chain(slices).filter(|(pool, _)| names.is_empty() || names.contains(pool));
        asked.map(|(pool, what)| Unreadable { pool: Some(pool.clone()), what }).collect()
    }

    /// What this pool never gives because it belongs to others too, or to the cluster.
    pub(super) fn barred_for(&self, name: &str, services: &[ServiceCIDR]) -> Barred {
        let mut barred = Barred::default();
        networks::bar(&mut barred, &[], services);
        self.iter().filter(|(other, _)| *other != name).for_each(|(_, other)| barred.pool(&other.pool));
        barred
    }
}

/// A time for people; nothing for one that nobody noted.
pub(super) fn time(at: Time) -> Option<Timestamp> {
    timestamp(at).filter(|_| at > 0)
}

/// How long ago, as kubectl has it.
pub(super) fn age(at: Time, now: Time) -> String {
    if at == 0 {
        return "-".to_owned();
    }
    let seconds = now.saturating_sub(at);
    match seconds {
        0..120 => format!("{seconds}s"),
        120..7_200 => format!("{}m", seconds / 60),
        7_200..172_800 => format!("{}h", seconds / 3_600),
        _ => format!("{}d", seconds / 86_400),
    }
}
