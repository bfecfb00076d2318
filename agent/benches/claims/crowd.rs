//! Agents without cards, and the controller that serves them or doesn't.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::process::Command;
use std::time::{Duration, Instant};

use agent::api::lease::Election;
use agent::controller;
use agent::node::{Agent, Settings};
use agent::probe::Probes;
use agent::wire::Timing;
use anyhow::{Context, Result, ensure};
use crds::{NodeIPPool, NodeNetworkConfigurationEnactment, NodeNetworkConfigurationPolicy, NodeNetworkState};
use futures_util::{StreamExt, TryStreamExt, stream};
use kube::api::{Api, DeleteParams, ListParams, Patch, PatchParams, PostParams, WatchEvent, WatchParams};
use kube::{Client, ResourceExt};
use serde_json::{Value, json};
use tokio::task::JoinHandle;

use crate::count::Counted;
use crate::ground::Ground;
use crate::{lone, progress};

const POLICY: &str = "crowd";
/// Nothing here takes so long; who waits so long waits for ever.
const PATIENCE: Duration = Duration::from_secs(1_200);
const LOOK: Duration = Duration::from_millis(200);
/// Hosts that are made ready at a time.
const AT_ONCE: usize = 16;
const IDENTITY: &str = "bench";
/// How long agents remember who leads, and a moment.
const LEASE_READ: Duration = Duration::from_secs(6);

/// The pools that a crowd asks: so many, shared or cut into slices of so many bits.
#[derive(Clone, Copy)]
pub(crate) struct Pools {
    pub(crate) many: usize,
    pub(crate) bits: Option<u8>,
}

impl Pools {
    pub(crate) fn shared(many: usize) -> Self {
        Self { many, bits: None }
    }

    pub(crate) fn sliced(many: usize, bits: u8) -> Self {
        Self { many, bits: Some(bits) }
    }

    /// Their names, and a network of its own for every one: pools that overlap give nothing. A sliced one has room for
    /// sixteen thousand blocks of sixteen, as long as there is one of its kind.
    fn all(self) -> impl Iterator<Item = (String, String)> {
        (0..self.many).map(move |number| match self.bits {
            None => (format!("pool-{number}"), format!("10.{number}.0.0/16")),
            Some(bits) if self.many == 1 => (format!("cut-{bits}"), format!("100.{}.0.0/14", 64 + 4 * bits)),
            Some(bits) => (format!("cut-{bits}-{number}"), format!("10.{}.0.0/16", 110 + number)),
        })
    }
}

/// How long each claim took.
pub(crate) type Grants = Vec<Duration>;

pub(crate) struct Crowd {
    ground: Ground,
    counted: Counted,
    folder: PathBuf,
    hosts: Vec<Host>,
    controller: Option<JoinHandle<()>>,
}

struct Host {
    node: String,
    client: Client,
    netns: String,
    stop: Box<dyn Fn() + Send>,
}

impl Drop for Host {
    fn drop(&mut self) {
        (self.stop)();
        let _ = Command::new("ip").args(["netns", "del", &self.netns]).status();
    }
}

impl Drop for Crowd {
    fn drop(&mut self) {
        self.hosts.clear();
        let _ = std::fs::remove_dir_all(&self.folder);
    }
}

impl Crowd {
    pub(crate) fn new(ground: Ground, counted: Counted) -> Self {
        // Each host has a disk of its own; here a thousand journals would wait for etcd's.
        let memory = PathBuf::from("/dev/shm");
        let parent = if memory.is_dir() { memory } else { std::env::temp_dir() };
        let folder = parent.join(format!("berth-claims-{}", std::process::id()));
        Self { ground, counted, folder, hosts: Vec::new(), controller: None }
    }

    fn pools(&self) -> Api<NodeIPPool> {
        Api::all(self.ground.client())
    }

    fn policies(&self) -> Api<NodeNetworkConfigurationPolicy> {
        Api::all(self.ground.client())
    }

    fn enactments(&self) -> Api<NodeNetworkConfigurationEnactment> {
        Api::all(self.ground.client())
    }

    /// So many hosts, with agents that have nothing to do.
    pub(crate) async fn grow(&mut self, many: usize) -> Result<()> {
        let begun = Instant::now();
        let (ground, counted, folder) = (self.ground, &self.counted, &self.folder);
        let mut hosts = stream::iter(self.hosts.len()..many)
            .map(|number| host(ground, counted, folder, number))
            .buffer_unordered(AT_ONCE);
        while let Some(host) = hosts.try_next().await? {
            self.hosts.push(host);
            if self.hosts.len().is_multiple_of(100) {
                progress(begun, &format!("{} of {many} agents started", self.hosts.len()));
            }
        }
        drop(hosts);
        let states: Api<NodeNetworkState> = Api::all(self.ground.client());
        until("at work", || async {
            Ok(states.list_metadata(&ListParams::default()).await?.items.len() == many)
        })
        .await?;
        progress(begun, &format!("{many} agents at work"));
        Ok(())
    }

    /// What the agents speak to the API by.
    pub(crate) fn clients(&self) -> Vec<Client> {
        self.hosts.iter().map(|host| host.client.clone()).collect()
    }

    /// From now on a controller serves them.
    pub(crate) async fn lead(&mut self) {
        let client = self.counted.client(self.ground.controller().await);
        let election =
            Election::new(&client, self.ground.namespace(), crds::names::lease::CONTROLLER, IDENTITY);
        let led = async move {
            election.lead(|| controller::lead(client.clone(), controller::Settings::default())).await;
        };
        self.controller = Some(tokio::spawn(led));
    }

    /// From now on nobody does, and what anybody has read of a Lease is too old to count. These pools are there, and proven.
    pub(crate) async fn unled(&mut self, pools: Pools) -> Result<()> {
        self.make(pools).await?;
        if let Some(controller) = self.controller.take() {
            controller.abort();
            let _ = controller.await;
        }
        Election::release(
            &self.ground.client(),
            self.ground.namespace(),
            crds::names::lease::CONTROLLER,
            IDENTITY,
        )
        .await;
        tokio::time::sleep(LEASE_READ).await;
        Ok(())
    }

    /// All ask for an address of each of so many pools, and have one of their own. Over when each says that it is Available,
    /// so that all it takes is counted.
    pub(crate) async fn ask(&self, pools: Pools) -> Result<Grants> {
        self.make(pools).await?;
        self.counted.take();
        let mut seen = Box::pin(self.enactments().watch(&WatchParams::default().timeout(290), "0").await?);
        let begun = Instant::now();
        self.policies().create(&PostParams::default(), &policy(pools)?).await?;
        let all = self.hosts.len() * pools.many;
        let mut told = begun;
        let mut given: BTreeMap<(String, String), Duration> = BTreeMap::new();
        let mut available: BTreeSet<String> = BTreeSet::new();
        while given.len() < all || available.len() < self.hosts.len() {
            ensure!(begun.elapsed() < PATIENCE, "only {} of {all} are served", given.len());
            let event = match tokio::time::timeout(Duration::from_secs(5), seen.next()).await {
                Ok(None) => {
                    seen =
                        Box::pin(self.enactments().watch(&WatchParams::default().timeout(290), "0").await?);
                    continue;
                }
                Ok(Some(event)) => Some(event?),
                Err(_) => None,
            };
            if let Some(WatchEvent::Added(own) | WatchEvent::Modified(own)) = event {
                let status = own.status.clone().unwrap_or_default();
                for (pool, claims) in &status.ippool {
                    let refused = json!(claims.refused);
                    ensure!(claims.refused.is_empty(), "{}: {refused}", own.name_any());
                    if !claims.grants.is_empty() {
                        given.entry((own.name_any(), pool.clone())).or_insert_with(|| begun.elapsed());
                    }
                }
                let is_available = |one: &crds::Condition| one.type_ == "Available" && one.status == "True";
                if status.conditions.iter().any(is_available) {
                    available.insert(own.name_any());
                }
            }
            if told.elapsed() > Duration::from_secs(5) {
                told = Instant::now();
                progress(begun, &format!("{} of {all} served, {} hosts done", given.len(), available.len()));
            }
        }
        self.each_its_own(all).await?;
        Ok(given.into_values().collect())
    }

    /// Each takes a slice, and nothing else.
    pub(crate) async fn cut(&self, pools: Pools) -> Result<Grants> {
        self.make(pools).await?;
        self.counted.take();
        let (name, _) = pools.all().next().context("a pool")?;
        let hosts = self.hosts.iter().map(|host| (host.node.clone(), host.client.clone()));
        lone::slices(&self.ground.client(), &name, &self.counted, hosts).await
    }

    /// What [`Crowd::cut`] took is given back.
    pub(crate) async fn uncut(&self, pools: Pools) -> Result<()> {
        let (name, _) = pools.all().next().context("a pool")?;
        lone::tidy(&self.ground.client(), &name).await
    }

    /// These pools, ready to give.
    async fn make(&self, pools: Pools) -> Result<()> {
        for (name, cidr) in pools.all() {
            if self.pools().get_opt(&name).await?.is_none() {
                make_pool(&self.pools(), &name, &cidr, pools.bits).await?;
            }
        }
        self.prove(pools).await
    }

    /// A pool that nobody has proven gives nothing: that takes a controller.
    async fn prove(&self, pools: Pools) -> Result<()> {
        let api = self.pools();
        let names: BTreeSet<String> = pools.all().map(|(name, _)| name).collect();
        until("proven", || async {
            let all = api.list(&ListParams::default()).await?;
            let proven = all.iter().filter(|pool| {
                let is_proven = pool.status.as_ref().is_some_and(|status| status.rebuilt_for.is_some());
                is_proven && names.contains(&pool.name_any())
            });
            Ok(proven.count() == names.len())
        })
        .await
    }

    /// No address is given to two.
    async fn each_its_own(&self, all: usize) -> Result<()> {
        let mut ips = BTreeSet::new();
        for own in self.enactments().list(&ListParams::default()).await? {
            for grant in
                own.status.unwrap_or_default().ippool.values().flat_map(|claims| claims.grants.values())
            {
                ensure!(ips.insert(grant.address.ip.clone()), "{} is given twice", grant.address.ip);
            }
        }
        ensure!(ips.len() == all, "{} addresses for {all} claims", ips.len());
        Ok(())
    }

    /// The policy goes, all addresses come back, and the pools go: each row is of a cluster that has no others.
    pub(crate) async fn let_go(&self, pools: Pools) -> Result<()> {
        let begun = Instant::now();
        self.policies().delete(POLICY, &DeleteParams::default()).await?;
        let enactments = self.enactments();
        until("released", || async {
            Ok(enactments.list_metadata(&ListParams::default().limit(1)).await?.items.is_empty())
        })
        .await?;
        progress(begun, "all addresses are back");
        self.end(pools).await
    }

    /// Pools that nobody has an address of go at once, where there is a controller; without one they stay.
    pub(crate) async fn end(&self, pools: Pools) -> Result<()> {
        if self.controller.is_none() {
            return Ok(());
        }
        let api = self.pools();
        for (name, _) in pools.all() {
            api.delete(&name, &DeleteParams::default()).await?;
        }
        let names: BTreeSet<String> = pools.all().map(|(name, _)| name).collect();
        until("without these pools", || async {
            let there = api.list_metadata(&ListParams::default()).await?;
            Ok(!there.iter().any(|pool| names.contains(&pool.name_any())))
        })
        .await
    }
}

/// A host: a namespace with nothing in it, a Node, an agent.
async fn host(ground: Ground, counted: &Counted, folder: &std::path::Path, number: usize) -> Result<Host> {
    let node = format!("n{number:04}");
    let netns = format!("berth-claims-{}-{number}", std::process::id());
    let mut add = Command::new("ip");
    add.args(["netns", "add", &netns]);
    let made = tokio::task::spawn_blocking(move || add.status()).await??;
    ensure!(made.success(), "ip netns add {netns}: {made}");
    let client = counted.client(ground.host(&node).await?);
    let state_dir = folder.join(&node);
    std::fs::create_dir_all(&state_dir)?;
    let settings = Settings {
        exclude: Vec::new(),
        node: node.clone(),
        namespace: netns.parse()?,
        checkpoint_dir: state_dir.clone(),
        host_root: "/".into(),
        state_dir,
        register: None,
        lease_namespace: ground.namespace().to_owned(),
        probes: Probes { patience: Duration::from_secs(3), ..Probes::default() },
        wire_probe: Timing::default(),
    };
    let mut agent = Agent::open(client.clone(), settings)?;
    let stop = Box::new(agent.stop());
    tokio::spawn(async move { agent.run().await.expect("it works") });
    Ok(Host { node, client, netns, stop })
}

/// An address of each pool, and nothing to do with it.
fn policy(pools: Pools) -> Result<NodeNetworkConfigurationPolicy> {
    let capture: BTreeMap<String, String> = pools
        .all()
        .enumerate()
        .map(|(number, (name, _))| (format!("a{number}"), format!("ippool.{name}.allocate")))
        .collect();
    let spec = json!({"capture": capture, "maxUnavailable": "100%", "desiredState": {}});
    Ok(serde_json::from_value(json!({"metadata": {"name": POLICY}, "spec": spec}))?)
}

/// Room for thousands.
pub(crate) async fn make_pool(api: &Api<NodeIPPool>, name: &str, cidr: &str, bits: Option<u8>) -> Result<()> {
    let mut range = json!({"cidr": cidr});
    if let Some(bits) = bits {
        range["perNodeHostBits"] = json!(bits);
    }
    let pool: Value = json!({"metadata": {"name": name}, "spec": {"range": range, "quarantine": "1s"}});
    api.create(&PostParams::default(), &serde_json::from_value(pool)?).await?;
    Ok(())
}

/// Whatever it holds.
pub(crate) async fn force_away(api: &Api<NodeIPPool>, name: &str) -> Result<()> {
    api.delete(name, &DeleteParams::default()).await?;
    let none = Patch::Merge(json!({"metadata": {"finalizers": null}}));
    until("gone", || async {
        let _ = api.patch(name, &PatchParams::default(), &none).await;
        Ok(api.get_opt(name).await?.is_none())
    })
    .await
}

pub(crate) async fn until<F: Future<Output = Result<bool>>>(what: &str, holds: impl Fn() -> F) -> Result<()> {
    let begun = Instant::now();
    while !holds().await.with_context(|| format!("until {what}"))? {
        ensure!(begun.elapsed() < PATIENCE, "never {what}");
        tokio::time::sleep(LOOK).await;
    }
    Ok(())
}
