//! The agent: one loop per host, from policies to addresses on its NICs.
//!
//! Level-triggered: whatever wakes it (an object that changed, the kernel, a time that is over), it looks at everything and
//! does one thing after the other until nothing is left: what `policy::claim` says of claims, then what `policy::enact`
//! says of each policy that selects this node, in name order. Decisions are theirs; here they are carried out.
//!
//! It writes only what is its own: its enactments and its NodeNetworkState, each write guarded by what was read. Where
//! nobody leads it also answers its own claims and takes its own slots (`alone`). Agents don't watch pools.
//!
//! Costs: at rest four watches (one more for each enactment but the first), a list of its enactments when these end after five
//! minutes, and nothing else, no netlink message either. A claim: two writes of the enactment, one of the report, one read of
//! the pool, two of the journal; a policy applied: two more writes of its enactment's status. One that names addresses
//! itself: two lists of the pools' metadata (`literals`).

mod act;
mod alone;
mod ask;
pub mod boot;
mod collide;
mod enact;
mod journal;
mod kernel;
mod literals;
pub mod lock;
mod look;
mod lossy;
mod register;
mod report;
mod slices;
mod telling;

use std::collections::{BTreeMap, BTreeSet};
use std::future::Future;
use std::net::IpAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use crds::{NodeNetworkConfigurationEnactment, NodeNetworkConfigurationPolicy, NodeNetworkState};
use k8s_openapi::api::core::v1::Node;
use kube::Client;
use kube::api::{Api, ListParams};
use policy::claim::{ClaimKey, Host, NodeName, PolicyName, Time};
use policy::enact::strays;
use policy::state::{Address, AddressProtocol};
use serde_json::Value;
use tokio::sync::{Notify, watch};

use crate::api::error::{whole, words};
use crate::api::task::Task;
use crate::api::troubles::Troubles;
use crate::api::{Watched, random};
use crate::clock::{now, steady};
use crate::health::Health;
use crate::metrics::stages;
use crate::netlink::Observation;
use crate::netns::{Identity, Namespace};
use crate::probe::Probes;
use crate::rest;
use crate::telemetry::say;
use crate::wire::Timing;
use enact::Tried;
use journal::Book;
use kernel::Kernel;
use lock::{Lock, LockError};
use telling::Telling;

pub use journal::JournalError;
pub use kernel::HostError;
pub use register::Registration;
pub(crate) use register::is_own;

/// How long to wait after the API was away, at first and at most: longer each time, and never all hosts together.
const AGAIN: Duration = Duration::from_millis(500);
const LONGEST: Duration = Duration::from_secs(30);

/// How often it is looked whether what a cut-off change left can be put right by now.
const RECOVER: Duration = Duration::from_secs(5);

/// How long a pass that is told to stop may still wait for the API: an answer that comes comes sooner.
const LEAVE: Duration = Duration::from_secs(3);

/// How long an API is left alone that leaves out what is written: an administrator has to mend it, and each try is a write for nothing.
const LOSSY: Duration = Duration::from_secs(30);

/// So often may others write first before a pass is put off.
const OVERTAKEN: usize = 10;

/// Which host, and where it keeps what.
#[derive(Clone, Debug)]
pub struct Settings {
    pub node: String,
    pub namespace: Namespace,
    pub state_dir: PathBuf,
    /// Where checkpoints are, while a change is under way: where `berth apply` has its own, so that each undoes what the
    /// other left.
    pub checkpoint_dir: PathBuf,
    /// Where the host's `/etc` and `/proc/sys/net` are: `/`, but for containers.
    pub host_root: PathBuf,
    /// Where there is no kubelet.
    pub register: Option<Registration>,
    /// The namespace of the controller's Lease: where nobody has it, agents serve themselves.
    pub lease_namespace: String,
    /// What must go on working when this host is changed.
    pub probes: Probes,
    /// For how long the wire is asked for an address before it is used.
    pub wire_probe: Timing,
    /// Networks that no pool gives of, where this host serves itself (R102).
    pub exclude: Vec<ipnet::IpNet>,
}

/// Why an agent can't go on.
#[derive(Debug, thiserror::Error)]
pub enum NodeError {
    #[error(transparent)]
    Journal(#[from] JournalError),
    #[error(transparent)]
    Host(#[from] HostError),
    #[error("{0}")]
    Api(#[from] kube::Error),
    #[error(transparent)]
    Busy(#[from] LockError),
    /// What was written is not in the answer: the schema that the API has is not Berth's.
    #[error(
        "the API leaves out {field} of what is written: the CRD {crd} is not Berth's of this version (kubernetes-nmstate's?); \
        put Berth's over it: kubectl apply --server-side --force-conflicts -k crds/yaml"
    )]
    LeftOut { crd: &'static str, field: &'static str },
}

/// The agent of one host.
pub struct Agent {
    name: NodeName,
    client: Client,
    kernel: Kernel,
    book: Book,
    host: Host,
    objects: Objects,
    woken: Arc<Woken>,
    /// What the kernel was last seen to be, and at which count of its changes.
    seen: Option<Sight>,
    tried: BTreeMap<PolicyName, Tried>,
    readings: look::Readings,
    claims_read: look::Claims,
    ranges: literals::Ranges,
    /// What was asked for by the label that asks for a report, when this agent last reported.
    refreshed: Option<String>,
    stopping: Arc<AtomicBool>,
    /// The same, to be waited on.
    stopped: watch::Sender<bool>,
    register: Option<Registration>,
    /// Whether its Node is registered, where it is this agent's to do so: before, nothing is known of it.
    registered: register::Registered,
    /// What keeps it so.
    kept: Option<Task>,
    /// Whether the Node was seen to be gone.
    retired: bool,
    /// Questions that had no answer, and when they may be asked again.
    unanswered: BTreeMap<ClaimKey, Instant>,
    /// Policies whose enactment's name is another node's, and until when they are left alone.
    taken: BTreeMap<PolicyName, Instant>,
    alone: alone::Alone,
    slices: slices::Slices,
    probes: Probes,
    timing: Timing,
    wire: collide::Memory,
    /// Addresses that were given Berth's mark, or should have been.
    marked: BTreeSet<IpAddr>,
    /// At which count of the kernel's changes, and of the journal's, every address was where it should be.
    tidied: Option<(u64, u64)>,
    telling: Telling,
    _lock: Lock,
}

/// What the kernel was seen to be.
struct Sight {
    /// How many changes it had told of by then.
    count: u64,
    observation: Observation,
    /// The same in nmstate's form: captures look at it, policy by policy.
    current: Value,
}

/// What is watched.
struct Objects {
    policies: Watched<NodeNetworkConfigurationPolicy>,
    enactments: Watched<NodeNetworkConfigurationEnactment>,
    node: Watched<Node>,
    state: Watched<NodeNetworkState>,
}

/// What wakes the loop.
#[derive(Default)]
struct Woken {
    notify: Notify,
    /// Changes of the kernel so far.
    kernel: AtomicU64,
}

impl Woken {
    fn kernel(&self) {
        self.kernel.fetch_add(1, Ordering::SeqCst);
        self.notify.notify_one();
    }
}

impl Objects {
    fn start(client: &Client, node: &str, woken: &Arc<Woken>) -> Self {
        let wake = || woken.clone();
        let own = || ListParams::default().fields(&format!("metadata.name={node}"));
        let labelled = ListParams::default().labels(&format!("{}={node}", crds::names::label::NODE));
        let (policies, enactments, nodes, state) = (wake(), wake(), wake(), wake());
        Self {
            policies: Watched::start(Api::all(client.clone()), ListParams::default(), move |_| {
                policies.notify.notify_one();
            }),
            enactments: Watched::few(Api::all(client.clone()), labelled, move |_| {
                enactments.notify.notify_one();
            }),
            node: Watched::start(Api::all(client.clone()), own(), move |_| nodes.notify.notify_one()),
            state: Watched::start(Api::all(client.clone()), own(), move |_| state.notify.notify_one()),
        }
    }

    /// Before each has been read once, what is not there is not known not to be.
    fn are_read(&self) -> bool {
        self.node.is_read() && self.state.is_read() && self.enactments.is_read() && self.policies.is_read()
    }

    async fn started(&self) {
        self.node.started().await;
        self.state.started().await;
        self.enactments.started().await;
        self.policies.started().await;
    }
}

impl Agent {
    /// Opens the host and its journal. Nothing is touched yet.
    pub fn open(client: Client, settings: Settings) -> Result<Self, NodeError> {
        let lock = Lock::take(&settings.state_dir, &settings.namespace)?;
        let book = Book::open(&settings.state_dir, &settings.node)?;
        if let Some(aside) = &book.damaged {
            say(&format!("{}: the journal can't be read and is kept at {}", settings.node, aside.display()));
        }
        let woken = Arc::new(Woken::default());
        let tell = woken.clone();
        let checkpoints = settings.checkpoint_dir.clone();
        let kernel =
            Kernel::start(&settings.namespace, &settings.host_root, checkpoints, move || tell.kernel())?;
        let telling = Telling::new(client.clone(), &settings.node, settings.probes.patience);
        Ok(Self {
            name: NodeName::new(settings.node.as_str()),
            host: Host { journal: book.claims(), memory: Default::default() },
            objects: Objects::start(&client, &settings.node, &woken),
            kernel,
            book,
            client,
            seen: None,
            tried: BTreeMap::new(),
            readings: look::Readings::default(),
            claims_read: look::Claims::default(),
            ranges: literals::Ranges::default(),
            refreshed: None,
            stopping: Arc::default(),
            stopped: watch::Sender::new(false),
            registered: register::Registered::new(settings.register.is_none(), woken.clone()),
            register: settings.register,
            kept: None,
            retired: false,
            unanswered: BTreeMap::new(),
            taken: BTreeMap::new(),
            probes: settings.probes,
            timing: settings.wire_probe,
            wire: collide::Memory::default(),
            marked: BTreeSet::new(),
            tidied: None,
            alone: alone::Alone::new(settings.lease_namespace, settings.exclude),
            slices: slices::Slices::default(),
            telling,
            woken,
            _lock: lock,
        })
    }

    /// Ends the loop, and reverts what is under way.
    pub fn stop(&self) -> impl Fn() + Send + 'static {
        let (stopping, woken) = (self.stopping.clone(), self.woken.clone());
        let stopped = self.stopped.clone();
        move || {
            stopping.store(true, Ordering::SeqCst);
            stopped.send_replace(true);
            woken.notify.notify_one();
        }
    }

    /// Works until told to stop.
    pub async fn run(&mut self) -> Result<(), NodeError> {
        stages::begin();
        if !self.recover().await {
            return Ok(());
        }
        if let Some(registration) = self.register.take() {
            self.kept = Some(self.registered(registration).await?);
        }
        tokio::select! {
            () = self.objects.started() => {}
            () = tokio::time::sleep(Duration::from_secs(3)) => {}
        }
        let mut failures = 0;
        let mut troubles = Troubles::default();
        while !self.stopping.load(Ordering::SeqCst) {
            let woken = self.woken.clone();
            let hurry = self.hurry();
            let passed = tokio::select! {
                passed = self.pass() => passed,
                () = hurry => break,
            };
            self.telling.passed(passed.is_ok() && self.objects.are_read());
            match &passed {
                Ok(_) => self.telling.health.left_out(None),
                Err(error @ NodeError::LeftOut { .. }) => {
                    self.telling.health.left_out(Some(error.to_string()));
                }
                Err(_) => {}
            }
            let pause = if matches!(passed, Err(NodeError::LeftOut { .. })) { LOSSY } else { AGAIN };
            let (wait, wrong) = match passed {
                Ok(wait) => (wait, None),
                Err(NodeError::Api(error)) => {
                    failures += 1;
                    let most = AGAIN.saturating_mul(1 << failures.min(10)).min(LONGEST);
                    (Some(AGAIN + random::up_to(most)), Some(words(&error)))
                }
                Err(error @ NodeError::Host(HostError::Died)) => return Err(error),
                Err(error) => (Some(Duration::from_secs(5)), Some(whole(&error))),
            };
            self.telling.health.waits();
            // What is wrong is said once, until it is another thing or nothing.
            match &wrong {
                None => {
                    failures = 0;
                    troubles.over();
                }
                Some(now) => troubles.say(&format!("{}: {now}; trying again", self.name)),
            }
            if wrong.is_some() {
                // Whatever wakes it: who doesn't do its part is not asked at once.
                let mut stopped = self.stopped.subscribe();
                let _ = tokio::time::timeout(pause, stopped.wait_for(|stopped| *stopped)).await;
            }
            let wait = wait.unwrap_or(Duration::from_secs(3600));
            rest::until(wait, woken.notify.notified()).await;
        }
        Ok(())
    }

    /// What a change that was cut off left is put right, before anything else. Where that can't be, somebody has to look at
    /// the host: it is said, and tried again. Whether it is done: not if the agent is to stop.
    async fn recover(&mut self) -> bool {
        let mut troubles = Troubles::default();
        while !self.stopping.load(Ordering::SeqCst) {
            self.telling.health.works();
            let Err(error) = self.kernel.recover().await else { return true };
            self.telling.health.waits();
            troubles.say(&format!("{}: {}; nothing is done before that", self.name, whole(&error)));
            let mut stopped = self.stopped.subscribe();
            // Told to stop, or time to look again.
            let _ = tokio::time::timeout(RECOVER, stopped.wait_for(|stopped| *stopped)).await;
        }
        false
    }

    /// How this agent is.
    pub(crate) fn health(&self) -> Arc<Health> {
        self.telling.health.clone()
    }

    /// Ends when a pass that was told to stop has had its time: an API that never answers must not keep the agent. A
    /// change of the host is over by then, finished or undone.
    fn hurry(&self) -> impl Future<Output = ()> + use<> {
        let (mut stopped, idle) = (self.stopped.subscribe(), self.kernel.idle());
        async move {
            // The sender is the agent's own.
            let _ = stopped.wait_for(|stopped| *stopped).await;
            tokio::time::sleep(LEAVE).await;
            idle.await;
        }
    }

    /// Registers the Node, and keeps it.
    async fn registered(&self, registration: Registration) -> Result<Task, NodeError> {
        let (client, name) = (self.client.clone(), self.name.to_string());
        let Identity { boot, namespace } = self.kernel.identity().await?;
        let identity = format!("{}/{boot}/{namespace}", crate::host::running_name());
        Ok(Task::spawn(registration.keep(client, name, identity, self.registered.clone())))
    }

    /// Does all there is to do; when to look again, if nothing wakes it before. Where the API doesn't do its part, what was
    /// last good is kept so all the same: an API that can be read and not written is no reason to be without an address.
    async fn pass(&mut self) -> Result<Option<Duration>, NodeError> {
        match self.work().await {
            Err(error @ (NodeError::Api(_) | NodeError::LeftOut { .. })) => {
                self.observe().await?;
                self.keep().await?;
                Err(error)
            }
            done => done,
        }
    }

    async fn work(&mut self) -> Result<Option<Duration>, NodeError> {
        let mut overtaken = 0;
        loop {
            if self.stopping.load(Ordering::SeqCst) {
                return Ok(None);
            }
            // Whatever it finds, others get their turn: a signal is heard.
            tokio::task::yield_now().await;
            self.telling.health.works();
            self.observe().await?;
            if self.collisions().await? {
                self.telling.did();
                continue;
            }
            let wait = match self.claims().await? {
                act::Did::Something => {
                    self.telling.did();
                    continue;
                }
                act::Did::Overtaken => {
                    overtaken += 1;
                    if overtaken > OVERTAKEN {
                        return Ok(Some(Duration::from_secs(1)));
                    }
                    continue;
                }
                act::Did::Nothing { until } => until,
            };
            match self.policies().await? {
                enact::Did::Something => self.telling.did(),
                enact::Did::Nothing { until } => {
                    if self.tidy().await? {
                        self.telling.did();
                        continue;
                    }
                    self.mark().await?;
                    let waits = [until.map(|at| left(at, steady())), wait.map(|at| left(at, now()))];
                    let waits = waits.into_iter().flatten().min();
                    match self.alone().await? {
                        alone::Did::Something => self.telling.did(),
                        alone::Did::Nothing { again } => {
                            let aside = self.free_aside().await?;
                            return Ok([waits, again, aside].into_iter().flatten().min());
                        }
                    }
                }
            }
        }
    }

    /// Looks at the kernel, if it changed since.
    async fn observe(&mut self) -> Result<(), NodeError> {
        let count = self.woken.kernel.load(Ordering::SeqCst);
        if self.seen.as_ref().is_none_or(|seen| seen.count != count) {
            let observation = self.kernel.observe().await?;
            let current = observation.state.to_value();
            self.wire.seen(self.seen.as_ref().map(|seen| &seen.observation), &observation);
            self.seen = Some(Sight { count, observation, current });
        }
        Ok(())
    }

    fn observation(&self) -> Option<&Observation> {
        self.seen.as_ref().map(|seen| &seen.observation)
    }

    /// Every address on a NIC.
    fn addresses(&self) -> impl Iterator<Item = &Address> {
        let placed = self.observation().into_iter().flat_map(kernel::placed);
        placed.map(|(_, address)| address)
    }

    /// Takes held addresses off links where no policy has them any more. Whether there were any.
    async fn tidy(&mut self) -> Result<bool, NodeError> {
        let now = (self.seen.as_ref().map_or(0, |seen| seen.count), self.book.written());
        if self.tidied == Some(now) {
            return Ok(false);
        }
        let (policies, states): (BTreeSet<PolicyName>, Vec<Value>) = self.book.good().into_iter().unzip();
        let held: BTreeSet<IpAddr> = self.host.held_by(|policy| policies.contains(policy)).collect();
        let placed = self.observation().into_iter().flat_map(kernel::placed);
        let ours = |address: &Address| {
            held.contains(&address.ip) && address.protocol == Some(AddressProtocol::BERTH)
        };
        let pooled =
            placed.filter(|(_, address)| ours(address)).map(|(link, address)| (link.clone(), address.ip));
        let strays = strays(&pooled.collect(), &states);
        if strays.is_empty() {
            self.tidied = Some(now);
            return Ok(false);
        }
        self.kernel.remove_from(strays).await?;
        self.woken.kernel();
        Ok(true)
    }

    /// Marks the pooled addresses that are on a NIC without it: so they are told even when journal and API are lost.
    async fn mark(&mut self) -> Result<(), NodeError> {
        let held: BTreeSet<IpAddr> = self.host.held().collect();
        let unmarked = |address: &&Address| {
            held.contains(&address.ip) && address.protocol != Some(AddressProtocol::BERTH)
        };
        let unmarked: BTreeSet<IpAddr> =
            self.addresses().filter(unmarked).map(|address| address.ip).collect();
        let new: BTreeSet<IpAddr> = unmarked.difference(&self.marked).copied().collect();
        if !new.is_empty() {
            // Once each: there are kernels without marks.
            self.marked.extend(&new);
            self.kernel.mark(new).await?;
        }
        self.marked.retain(|ip| held.contains(ip));
        Ok(())
    }
}

fn left(until: Time, now: Time) -> Duration {
    Duration::from_secs(until.saturating_sub(now).max(1))
}
