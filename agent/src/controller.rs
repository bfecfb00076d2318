//! The controller: serves claims, takes back what nobody holds, leads rollouts. One at a time, by a Lease.
//!
//! Everything it knows it reads from the API at its start and keeps current by watches (`known`); it has no store of its
//! own. What is to be written `policy::claim` and `policy::rollout` say; here it is read, written and tried again. It
//! never touches a host. Being two at once is safe: every write is guarded by what was read.
//!
//! Costs: a batch of claims on one pool is one write of that pool, however many they are, and one small patch per
//! enactment, so many at a time (`answers::AT_ONCE`); a pass that finds nothing to do writes nothing. Memory: every Node, policy,
//! pool and enactment, and what hosts show (docs/performance.md).

pub(crate) mod answers;
mod condition;
mod drain;
mod ensure;
mod finish;
mod hold;
pub(crate) mod known;
pub(crate) mod ledger;
mod nodes;
mod notice;
pub(crate) mod policies;
mod pools;
pub(crate) mod reading;
mod resets;
mod shown;
mod slices;
#[cfg(test)]
mod tests;
mod told;
mod word;

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use crds::{NodeIPPool, NodeIPSlice, NodeNetworkConfigurationEnactment, NodeNetworkConfigurationPolicy};
use ipnet::IpNet;
use k8s_openapi::api::core::v1::Node;
use k8s_openapi::api::networking::v1::ServiceCIDR;
use kube::Client;
use kube::api::{Api, ListParams};
use policy::claim::{PolicyName, PoolName, PoolUid, Time};

use crate::api::error::words;
use crate::api::troubles::Troubles;
use crate::api::{Link, Watched};
use crate::embedded::selector::Labels;
use crate::events::Events;
use crate::health::Health;
use crate::networks;
use crate::telemetry::warn;
use known::{Known, Work};
use shown::NodeNetworkStateShown;

/// How long to wait where others wrote first, or what is known is not current.
const AGAIN: Duration = Duration::from_millis(500);
/// How long an address is kept from others where there is no pool that says otherwise.
const QUARANTINE: Time = 300;

/// What a controller is told besides what the API says.
#[derive(Clone, Debug)]
pub struct Settings {
    /// Networks that no pool gives of (R102), besides Service CIDRs.
    pub exclude: Vec<IpNet>,
    /// Pools that are made where there is none of their name (R81, R103).
    pub ensure: BTreeMap<String, NodeIPPool>,
    /// Labels of the nodes that are to have an agent, for who asks whether each has one.
    pub agent_nodes: Labels,
    /// How often it is said again that somebody holds what no range has (R66): rarely enough for whoever knows already, and
    /// within the hour for which Events are kept.
    pub remind: Duration,
    /// How long a deleted pool that is in use stays, so that whoever holds an address of it hears of it, and how long a
    /// Draining range must have been idle before it may go (R65).
    pub grace: Duration,
}

impl Default for Settings {
    fn default() -> Self {
        let (remind, grace) = (Duration::from_secs(600), Duration::from_secs(60));
        Self { exclude: Vec::new(), ensure: BTreeMap::new(), agent_nodes: Labels::default(), remind, grace }
    }
}

/// Leads until dropped: whoever holds the Lease runs this.
pub async fn lead(client: Client, settings: Settings) {
    lead_seen(client, settings, &Health::default()).await;
}

/// The same, with signs of life.
pub(crate) async fn lead_seen(client: Client, settings: Settings, health: &Health) {
    let lead = Lead::start(client, settings).await;
    let _shown = told::gauges(&lead.watches, &lead.stopped, &lead.settings.agent_nodes);
    // Cut off in the middle of a pass, it is nothing that hangs.
    let _over = health.over();
    tokio::join!(lead.run(health), nodes::look_after(lead.client.clone(), lead.watches.nodes.clone()));
}

/// The one that leads.
struct Lead {
    client: Client,
    settings: Settings,
    known: Arc<Known>,
    watches: Watches,
    events: Events,
    /// What is being tried again, by what it is.
    troubles: Mutex<BTreeMap<String, Troubles>>,
    /// Pools that could not be put together, last time.
    failed: Mutex<BTreeSet<PoolName>>,
    /// Since when Draining ranges are idle, by pool and name.
    idle: Mutex<BTreeMap<(PoolName, String), Time>>,
    /// Pools of the configuration, in the version that was last compared with it.
    ensured: Mutex<BTreeMap<String, i64>>,
    /// Addresses that somebody else has, as far as that was told.
    collided: Mutex<BTreeMap<PoolName, BTreeSet<IpAddr>>>,
    /// When it was last said of a pool what is held outside of it.
    reminded: Mutex<BTreeMap<PoolName, (Vec<IpAddr>, Instant)>>,
    /// Which spec of each pool was compared with what hosts show.
    noticed: Mutex<BTreeMap<PoolName, notice::Version>>,
    /// When each policy's status was last written.
    written: Mutex<BTreeMap<PolicyName, Instant>>,
    /// Releases that wait for an administrator.
    stopped: told::Stopped,
    /// Pools on hold, by UID, whose hold this leader began or met: from then on its time counts.
    met: Mutex<BTreeSet<PoolUid>>,
    /// When the counts of each sliced pool were last written.
    counted: Mutex<BTreeMap<PoolName, Instant>>,
}

/// Kept for as long as they are to go on.
struct Watches {
    pools: Watched<NodeIPPool>,
    slices: Watched<NodeIPSlice>,
    policies: Watched<NodeNetworkConfigurationPolicy>,
    enactments: Watched<NodeNetworkConfigurationEnactment>,
    nodes: Watched<Node>,
    states: Watched<NodeNetworkStateShown>,
    /// Where the API has them.
    services: Option<Watched<ServiceCIDR>>,
}

impl Watches {
    async fn start(client: &Client, known: &Arc<Known>) -> Self {
        let services = known.clone();
        let services = networks::follow(client, move || services.everything()).await;
        let all = ListParams::default;
        let told = || known.clone();
        let (pools, policies, enactments, nodes, states) = (told(), told(), told(), told(), told());
        let slices = told();
        Self {
            pools: Watched::start(Api::all(client.clone()), all(), move |change| pools.pool(&change)),
            slices: Watched::start(Api::all(client.clone()), all(), move |change| slices.slice(&change)),
            policies: Watched::start(Api::all(client.clone()), all(), move |change| policies.policy(&change)),
            enactments: Watched::start(Api::all(client.clone()), all(), move |change| {
                enactments.enactment(&change);
            }),
            nodes: Watched::start(Api::all(client.clone()), all(), move |change| nodes.node(&change)),
            states: Watched::start(Api::all(client.clone()), all(), move |change| states.state(&change)),
            services,
        }
    }

    /// Holders before waiters (R98): nothing is given before all has been read.
    async fn started(&self) {
        self.nodes.started().await;
        self.states.started().await;
        self.enactments.started().await;
        self.policies.started().await;
        self.slices.started().await;
        self.pools.started().await;
    }

    /// Is what they know current? Without that, time alone is no reason to take anything.
    fn are_current(&self) -> bool {
        let links = [self.pools.link(), self.policies.link(), self.enactments.link(), self.nodes.link()];
        links.into_iter().chain([self.states.link(), self.slices.link()]).all(|link| link == Link::Current)
    }
}

impl Lead {
    async fn start(client: Client, settings: Settings) -> Self {
        let known = Arc::new(Known::default());
        let watches = Watches::start(&client, &known).await;
        watches.started().await;
        known.begin(settings.ensure.keys().map(|name| PoolName::from(name.as_str())));
        let events = told::events(client.clone());
        Self {
            client,
            settings,
            known,
            watches,
            events,
            troubles: Mutex::default(),
            failed: Mutex::default(),
            idle: Mutex::default(),
            ensured: Mutex::default(),
            collided: Mutex::default(),
            reminded: Mutex::default(),
            noticed: Mutex::default(),
            written: Mutex::default(),
            stopped: told::Stopped::default(),
            met: Mutex::default(),
            counted: Mutex::default(),
        }
    }

    async fn run(&self, health: &Health) {
        loop {
            health.waits();
            let work = self.known.work().await;
            health.works();
            if self.watches.are_current() {
                self.pass(work).await;
                health.passed(true);
            } else {
                self.known.put_off(work, AGAIN);
            }
        }
    }

    /// Pools first: policies wait for addresses. One after the other where they would wait for one object.
    async fn pass(&self, work: Work) {
        use futures_util::StreamExt;
        let Work { pools, policies, enactments } = work;
        let among = (pools.len() > 1).then(|| self.known.index().enactment_uids());
        if let Some(among) = &among
            && let Err(error) = self.serve_together(pools.clone(), among).await
        {
            // Whom it is about is met again by each pool's own look.
            warn(&format!("answers of several pools: {}; trying again", words(&error)));
        }
        futures_util::stream::iter(pools)
            .for_each_concurrent(4, |name| {
                let among = among.as_ref();
                async move {
                    let done = self.pool(&name, among).await;
                    self.outcome(format!("pool {name}"), Work::of_pool(name), done);
                }
            })
            .await;
        futures_util::stream::iter(policies)
            .for_each_concurrent(4, |name| async move {
                let done = self.policy(&name).await;
                self.outcome(format!("policy {name}"), Work::of_policy(name), done);
            })
            .await;
        for name in enactments {
            let done = self.finish(&name).await;
            self.outcome(format!("enactment {name}"), Work::of_enactment(name), done);
        }
    }

    /// What failed is tried again, ever more slowly for as long as it fails.
    fn outcome(&self, what: String, work: Work, done: Result<(), kube::Error>) {
        let mut troubles = self.troubles.lock().unwrap_or_else(PoisonError::into_inner);
        match done {
            Ok(()) => drop(troubles.remove(&what)),
            Err(error) => {
                let why = format!("{what}: {}", words(&error));
                let wait = troubles.entry(what).or_default().again(&why);
                self.known.put_off(work, wait);
            }
        }
    }
}
