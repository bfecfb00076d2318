//! What the agent tells of its work besides the status of its objects: Events, counters, two lines per pass that did
//! something, signs of life.
//!
//! Called where things happen, a line each. Must never decide, block or fail. Cost: nothing for a pass that finds nothing.

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

use crds::names::enactment as names;
use crds::names::policy::EVENT_FAILED;
use kube::Resource;
use policy::claim::{ClaimKey, Phase, Record, Stranger};
use policy::rollout::Standing;

use super::look::Selected;
use crate::events::{Events, Source};
use crate::health::Health;
use crate::metrics;
use crate::telemetry::{debug, say, warn};

/// Reason of the Event on a policy whose work was undone by something else, and put back.
const DRIFT_REPAIRED: &str = "DriftRepaired";
/// The same, when that goes on and on.
const DRIFT_FOUGHT: &str = "DriftFought";
/// How many policies a message names.
const NAMED: usize = 3;

pub(super) struct Telling {
    node: String,
    events: Events,
    pub(super) health: Arc<Health>,
    /// Claims under way, and since when.
    asking: BTreeMap<ClaimKey, Instant>,
    /// The pass that is doing something: since when, and how much it did.
    pass: Option<(Instant, usize)>,
}

impl Telling {
    pub(super) fn new(client: kube::Client, node: &str, patience: Duration) -> Self {
        let source = Source {
            // As kubernetes-nmstate's handlers call themselves.
            component: format!("{node}.nmstate-handler"),
            controller: "nmstate.io/berth-agent",
            instance: node.to_owned(),
        };
        Self {
            node: node.to_owned(),
            events: Events::start(client, source),
            health: Arc::new(Health::with_patience(patience)),
            asking: BTreeMap::new(),
            pass: None,
        }
    }

    /// The pass did something.
    pub(super) fn did(&mut self) {
        if self.pass.is_none() {
            say(&format!("{}: a pass begins", self.node));
        }
        self.pass.get_or_insert_with(|| (Instant::now(), 0)).1 += 1;
    }

    /// The pass is over; `ready`, if it saw all there is.
    pub(super) fn passed(&mut self, ready: bool) {
        if let Some((since, did)) = self.pass.take() {
            let took = since.elapsed().as_millis();
            let things = if did == 1 { "thing" } else { "things" };
            say(&format!("{}: the pass is over: {did} {things} done in {took} ms", self.node));
        }
        self.health.passed(ready);
    }

    /// The journal has it so: how long a claim takes is told by when it is first wanted and when it is held.
    pub(super) fn journalled(&mut self, key: &ClaimKey, record: Option<&Record>) {
        let phase = record.map(|record| &record.phase);
        debug(&format!("{}: claim {key:?}: {phase:?}", self.node));
        match phase {
            Some(Phase::Asking { .. }) => {
                self.asking.entry(key.clone()).or_insert_with(Instant::now);
            }
            Some(Phase::Holding(_)) => {
                if let Some(since) = self.asking.remove(key) {
                    metrics::CLAIM_SECONDS.observe(&[], since.elapsed().as_secs_f64());
                }
            }
            Some(Phase::Parked(_) | Phase::Releasing) | None => drop(self.asking.remove(key)),
        }
    }

    /// Where a policy stands on this host now.
    pub(super) fn standing(&self, one: &Selected, standing: Standing, message: &str) {
        let name = crds::names::enactment_name(&self.node, one.name.as_str());
        match standing {
            Standing::Aborted => {
                self.warning(one, EVENT_FAILED, names::message_aborted(&name));
            }
            Standing::Failing => self.warning(one, EVENT_FAILED, format!("{name}: {}", headed(message))),
            Standing::Refused => self.warning(one, names::REFUSED, format!("{name}: {message}")),
            _ => {}
        }
    }

    /// That is in its enactment now; in the log too, which is all that somebody at a host of its own has at hand.
    pub(super) fn written(&self, one: &Selected, standing: Standing, message: &str) {
        let (node, policy) = (&self.node, &one.name);
        match standing {
            Standing::Available => say(&format!("{node}: policy {policy}: {message}")),
            Standing::Failing | Standing::Retrying | Standing::Refused | Standing::Aborted => {
                warn(&format!("{node}: policy {policy}: {message}"));
            }
            Standing::Unknown | Standing::Waiting | Standing::Pending | Standing::Progressing => {}
        }
    }

    /// It failed too often, the last time for this reason. After kubernetes-nmstate's words, which don't say it.
    pub(super) fn gave_up(&self, one: &Selected, attempts: u32, why: &str) {
        let name = crds::names::enactment_name(&self.node, one.name.as_str());
        let message = names::message_gave_up(&name, attempts);
        self.warning(one, EVENT_FAILED, format!("{message}: {}", headed(why)));
    }

    /// What something else changed was put back. `rivals`, if that comes too often: other policies that may be it.
    pub(super) fn repaired(&self, one: &Selected, rivals: Option<&str>) {
        metrics::DRIFT_REPAIRS.add(&[], 1);
        let (node, policy) = (&self.node, &one.name);
        let about = one.object.object_ref(&());
        match rivals {
            None => {
                let words = "something else changed what this policy set; it was put back";
                say(&format!("{node}: policy {policy}: {words}"));
                self.events.normal(about, DRIFT_REPAIRED, format!("node {node}: {words}"));
            }
            Some(rivals) => {
                let words = format!(
                    "something keeps changing what this policy set; it is put back ever more slowly{rivals}"
                );
                warn(&format!("{node}: policy {policy}: {words}"));
                self.events.warning(about, DRIFT_FOUGHT, format!("node {node}: {words}"));
            }
        }
    }

    /// Somebody else uses an address that a claim of a policy holds, or held until now.
    pub(super) fn collided(
        &self,
        policy: Option<&crds::NodeNetworkConfigurationPolicy>,
        key: &ClaimKey,
        ip: IpAddr,
        by: &Stranger,
    ) {
        metrics::IP_COLLISIONS.add(&[key.pool.as_str()], 1);
        let who = crds::names::pool::stranger(&by.mac);
        let message = format!(
            "node {}: {ip} of pool {} is in use by {who}, heard on {}; another is asked for",
            self.node, key.pool, by.interface
        );
        warn(&message);
        if let Some(policy) = policy {
            self.events.warning(policy.object_ref(&()), crds::names::pool::COLLISION, message);
        }
    }

    /// A policy that can't have an enactment here, or of which the API will not have what is said.
    pub(super) fn refused(&self, policy: &crds::NodeNetworkConfigurationPolicy, message: &str) {
        say(&format!("{}: {message}", self.node));
        self.events.warning(policy.object_ref(&()), EVENT_FAILED, format!("node {}: {message}", self.node));
    }

    fn warning(&self, one: &Selected, reason: &'static str, message: String) {
        self.events.warning(one.object.object_ref(&()), reason, message);
    }
}

/// `kubectl get events` shows the first line of a message, and kubernetes-nmstate's words for what can't be applied end theirs
/// before the cause.
fn headed(message: &str) -> String {
    message.replacen(",\n ", ", ", 1)
}

/// Which other policies say something of an interface that this one does: of two that want it otherwise, each undoes what the
/// other did. Something to be said after what happened, or nothing.
pub(super) fn rivals(one: &Selected, all: &[Selected]) -> String {
    let own = interfaces(one);
    let others = all.iter().filter(|other| other.name != one.name);
    let shared = others.filter_map(|other| {
        let name = interfaces(other).intersection(&own).next()?.to_owned();
        Some(format!("; policy {} is about {name} too: let one of them say it", other.name))
    });
    shared.take(NAMED).collect()
}

/// The interfaces that an enactment says the policy is about, by name.
fn interfaces(one: &Selected) -> BTreeSet<&str> {
    let desired = one.status().and_then(|status| status.desired_state.as_ref());
    let all = desired.and_then(|desired| desired["interfaces"].as_array());
    all.into_iter().flatten().filter_map(|interface| interface["name"].as_str()).collect()
}
