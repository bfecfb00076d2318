//! The controller: serves claims, takes back what nobody holds, leads rollouts. One at a time, by a Lease.
//!
//! Everything it knows it reads from the API at its start and keeps current by watches (`known`); it has no store of its
//! own. What is to be written `policy::claim` and `policy::rollout` say; here it is read, written and tried again. It
//! never touches a host. Being two at once is safe: every write is guarded by what was read.
//!
//! Costs: a batch of claims on one pool is one write of that pool, however many they are, and one small patch per
//! enactment, so many at a time (`answers::AT_ONCE`); a pass that finds nothing to do writes nothing.

pub(crate) mod answers;
mod condition;
mod finish;
pub(crate) mod known;
pub(crate) mod ledger;
mod nodes;
pub(crate) mod policies;
mod pools;
mod reading;
#[cfg(test)]
mod tests;
mod told;

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use crds::{NodeIPPool, NodeNetworkConfigurationEnactment, NodeNetworkConfigurationPolicy, NodeNetworkState};
use k8s_openapi::api::core::v1::Node;
use kube::Client;
use kube::api::{Api, ListParams};
use policy::claim::PolicyName;

use crate::api::error::words;
use crate::api::troubles::Troubles;
use crate::api::{Link, Watched};
use crate::events::Events;
use crate::health::Health;
use crate::telemetry::warn;
use known::{Known, Work};

/// How long to wait where others wrote first, or what is known is not current.
const AGAIN: Duration = Duration::from_millis(500);

/// Leads until dropped: whoever holds the Lease runs this.
pub async fn lead(client: Client) {
    lead_seen(client, &Health::default()).await;
}

/// The same, with signs of life.
pub(crate) async fn lead_seen(client: Client, health: &Health) {
    let lead = Lead::start(client).await;
    let _shown = told::gauges(&lead.watches);
    // Cut off in the middle of a pass, it is nothing that hangs.
    let _over = health.over();
    tokio::join!(lead.run(health), nodes::look_after(lead.client.clone(), lead.watches.nodes.clone()));
}

/// The one that leads.
struct Lead {
    client: Client,
    known: Arc<Known>,
    watches: Watches,
    events: Events,
    /// What is being tried again, by what it is.
    troubles: Mutex<BTreeMap<String, Troubles>>,
    /// When each policy's status was last written.
    written: Mutex<BTreeMap<PolicyName, Instant>>,
}

/// Kept for as long as they are to go on.
struct Watches {
    pools: Watched<NodeIPPool>,
    policies: Watched<NodeNetworkConfigurationPolicy>,
    enactments: Watched<NodeNetworkConfigurationEnactment>,
    nodes: Watched<Node>,
    states: Watched<NodeNetworkState>,
}

impl Watches {
    fn start(client: &Client, known: &Arc<Known>) -> Self {
        let all = ListParams::default;
        let told = || known.clone();
        let (pools, policies, enactments, nodes, states) = (told(), told(), told(), told(), told());
        Self {
            pools: Watched::start(Api::all(client.clone()), all(), move |change| pools.pool(&change)),
            policies: Watched::start(Api::all(client.clone()), all(), move |change| policies.policy(&change)),
            enactments: Watched::start(Api::all(client.clone()), all(), move |change| {
                enactments.enactment(&change);
            }),
            nodes: Watched::start(Api::all(client.clone()), all(), move |change| nodes.node(&change)),
            states: Watched::start(Api::all(client.clone()), all(), move |change| states.state(&change)),
        }
    }

    /// Holders before waiters (R98): nothing is given before all has been read.
    async fn started(&self) {
        self.nodes.started().await;
        self.states.started().await;
        self.enactments.started().await;
        self.policies.started().await;
        self.pools.started().await;
    }

    /// Is what they know current? Without that, time alone is no reason to take anything.
    fn are_current(&self) -> bool {
        let links = [self.pools.link(), self.policies.link(), self.enactments.link(), self.nodes.link()];
        links.into_iter().chain([self.states.link()]).all(|link| link == Link::Current)
    }
}

impl Lead {
    async fn start(client: Client) -> Self {
        let known = Arc::new(Known::default());
        let watches = Watches::start(&client, &known);
        watches.started().await;
        known.begin();
        let events = told::events(client.clone());
        Self { client, known, watches, events, troubles: Mutex::default(), written: Mutex::default() }
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
