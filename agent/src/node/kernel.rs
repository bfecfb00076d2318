//! This host's kernel, for an async loop: blocking netlink on a thread of its own inside the namespace, and another
//! that listens for changes.

use std::collections::BTreeSet;
use std::future::Future;
use std::net::IpAddr;
use std::path::{Path, PathBuf};
use std::sync::mpsc;
use std::time::Duration;

use policy::plan::{Plan, Step};
use policy::state::{Address, AddressProtocol, IfName, Mac};
use serde_json::{Value, json};
use tokio::sync::{oneshot, watch};

use crate::api::error::whole;
use crate::checkpoint::Store;
use crate::kernel::{Kernel as _, KernelError, Live};
use crate::metrics::stages::Stages;
use crate::netlink::monitor::{Heard, Monitor};
use crate::netlink::{NetlinkError, Observation, Placed};
use crate::netns::{Identity, Namespace, NetnsError};
use crate::probe::{self, Probes, Watch};
use crate::telemetry::{debug, say, warn};
use crate::transaction::{self, ApplyError, Event, Fault, Guards, Manner};
use crate::wire::{self, Answers, Taken, Timing, Unasked};

type Job = Box<dyn FnOnce(&mut Live) + Send>;

/// Every change is verified.
const MANNER: Manner = Manner { verify: true, patience: Duration::from_secs(10) };

/// Of RFC 5227.
const ANNOUNCE_AGAIN: Duration = Duration::from_secs(2);

/// How long the listener waits before it looks whether anybody still wants to hear.
const LISTEN: Duration = Duration::from_secs(60);

/// How long after a listener broke the next is opened.
const DEAF: Duration = Duration::from_secs(1);

/// Why the kernel can't be worked on.
#[derive(Debug, thiserror::Error)]
pub enum HostError {
    #[error(transparent)]
    Namespace(#[from] NetnsError),
    #[error(transparent)]
    Kernel(#[from] KernelError),
    #[error(transparent)]
    Apply(#[from] ApplyError),
    #[error("can't mark addresses as pooled: {0}")]
    Mark(String),
    #[error("can't take addresses off: {0}")]
    Remove(String),
    #[error(
        "{mac} answers on {} for whatever is asked for, {} and {others} others: does it stand in for other hosts (proxy ARP)? \
        Mend that, or switch the probe off: --wire-probe off, or the policy's annotation nmstate.io/wire-probe", .at.link, .at.ip
    )]
    AnswersForAll { at: Placed, mac: Mac, others: usize },
    #[error("the thread that works on the kernel has died")]
    Died,
}

impl HostError {
    /// The change was made as asked, and cut the host off: it was waited for what fell silent, in vain. The same once more would
    /// do the same, and each time the host is away for as long as a probe is waited for.
    pub(super) fn cut_off(&self) -> bool {
        matches!(self, Self::Apply(ApplyError::Failed { fault, .. }) if matches!(**fault, Fault::Silent(_)))
    }
}

impl HostError {
    /// Who else has addresses that the change would have put on a link, where that is why it came to nothing.
    pub(super) fn strangers(&self) -> Vec<Taken> {
        let unknown = |at: &Placed| vec![Taken { at: at.clone(), mac: None }];
        match self {
            Self::Apply(ApplyError::Useless { at }) => unknown(at),
            Self::Apply(ApplyError::Failed { fault, .. }) => match &**fault {
                Fault::Taken { taken } => taken.clone(),
                Fault::Duplicate { at } => unknown(at),
                _ => Vec::new(),
            },
            _ => Vec::new(),
        }
    }
}

/// What the wire is asked in one change.
pub(super) struct Asks {
    /// What is announced once it is there: addresses that are of a pool.
    pub(super) pooled: BTreeSet<IpAddr>,
    /// What is asked for before: those of them that are new here.
    pub(super) ips: BTreeSet<IpAddr>,
    pub(super) timing: Timing,
}

/// The wire, as a change asks it.
struct Line<'a> {
    asks: &'a Asks,
    unasked: Vec<(Placed, Unasked)>,
}

impl transaction::Wire for Line<'_> {
    fn wants(&self, ip: IpAddr) -> bool {
        ip.is_ipv4() && self.asks.timing != Timing::OFF && self.asks.ips.contains(&ip)
    }

    fn ask(
        &mut self,
        places: &[Placed],
        fresh: &dyn Fn(&IfName) -> bool,
        stop: &dyn Fn() -> bool,
    ) -> Vec<Taken> {
        let answers = wire::ask(places, self.asks.timing, fresh, stop);
        self.unasked.extend(answers.unasked);
        answers.taken
    }
}

/// A handle to the two threads; they end with it.
pub(super) struct Kernel {
    jobs: mpsc::Sender<Job>,
    checkpoint_dir: PathBuf,
    /// Jobs that were asked for and are not over.
    busy: watch::Sender<usize>,
}

impl Kernel {
    /// `changed` is called whenever links, addresses, routes or rules may have changed.
    pub(super) fn start(
        namespace: &Namespace,
        host_root: &Path,
        checkpoint_dir: PathBuf,
        changed: impl Fn() + Send + 'static,
    ) -> Result<Self, HostError> {
        let (jobs, queue) = mpsc::channel::<Job>();
        let (tell, told) = mpsc::channel();
        let (inside, root) = (namespace.clone(), host_root.to_owned());
        std::thread::spawn(move || {
            let (opened, within) = (tell.clone(), inside.clone());
            let work = move || match Live::open(&within) {
                Ok(live) => {
                    let mut live = live.seen_at(&root);
                    let _ = opened.send(Ok(()));
                    while let Ok(job) = queue.recv() {
                        job(&mut live);
                    }
                }
                Err(error) => drop(opened.send(Err(HostError::from(error)))),
            };
            if let Err(error) = inside.inside(work) {
                let _ = tell.send(Err(error.into()));
            }
        });
        told.recv().map_err(|_| HostError::Died)??;
        let listening = jobs.clone();
        let inside = namespace.clone();
        std::thread::spawn(move || {
            let _ = inside.inside(move || listen(&listening, &changed));
        });
        Ok(Self { jobs, checkpoint_dir, busy: watch::Sender::new(0) })
    }

    async fn ask<T: Send + 'static>(
        &self,
        work: impl FnOnce(&mut Live) -> Result<T, HostError> + Send + 'static,
    ) -> Result<T, HostError> {
        let (answer, answered) = oneshot::channel();
        let busy = self.busy.clone();
        busy.send_modify(|jobs| *jobs += 1);
        let job: Job = Box::new(move |live| {
            let done = work(live);
            busy.send_modify(|jobs| *jobs -= 1);
            drop(answer.send(done));
        });
        self.jobs.send(job).map_err(|_| HostError::Died)?;
        answered.await.map_err(|_| HostError::Died)?
    }

    pub(super) async fn observe(&self) -> Result<Observation, HostError> {
        self.ask(|live| Ok(live.observe()?)).await
    }

    /// Which namespace of which boot this is.
    pub(super) async fn identity(&self) -> Result<Identity, HostError> {
        self.ask(|_| Ok(Identity::here()?)).await
    }

    /// Brings about a document, or leaves the host as it was; also where something that worked no longer does, or where
    /// somebody else has an address. What went on a link without having been asked for.
    pub(super) async fn apply(
        &self,
        desired: Value,
        probes: Probes,
        asks: Asks,
        api: impl probe::Api + 'static,
        stop: impl Fn() -> bool + Send + 'static,
    ) -> Result<Vec<(Placed, Unasked)>, HostError> {
        let again = self.jobs.clone();
        let runtime = tokio::runtime::Handle::current();
        let checkpoint_dir = self.checkpoint_dir.clone();
        self.ask(move |live| {
            let store = Store::lock(&checkpoint_dir, Identity::here()?).map_err(ApplyError::from)?;
            let mut watch = Watch::new(probes, &api);
            let mut stages = Stages::begin();
            let tell = &mut |event: Event<'_>| {
                stages.told(&event);
                told(&event);
            };
            let mut line = Line { asks: &asks, unasked: Vec::new() };
            let guards = Guards { watch: Some(&mut watch), wire: Some(&mut line) };
            let done = transaction::apply_guarded(live, &store, &desired, MANNER, guards, tell, &stop);
            stages.end();
            let added = added(&done?, &asks.pooled);
            if !added.is_empty() {
                announce(&added);
                // RFC 5227 has it said twice. Nobody waits for that.
                runtime.spawn(async move {
                    tokio::time::sleep(ANNOUNCE_AGAIN).await;
                    drop(again.send(Box::new(move |live| announce_what_is_there(live, added))));
                });
            }
            Ok(line.unasked)
        })
        .await
    }

    /// Asks the wire for addresses that are on a link already.
    pub(super) async fn ask_wire(&self, places: Vec<Placed>, timing: Timing) -> Result<Answers, HostError> {
        self.ask(move |_| Ok(wire::ask(&places, timing, &|_| false, &|| false))).await
    }

    /// Who has this IPv6 address besides us, if it says so.
    pub(super) async fn neighbour(&self, at: Placed) -> Result<Option<Mac>, HostError> {
        self.ask(move |_| Ok(wire::neighbour(&at))).await
    }

    /// Waits until nothing is under way.
    pub(super) fn idle(&self) -> impl Future<Output = ()> + use<> {
        let mut busy = self.busy.subscribe();
        async move { drop(busy.wait_for(|jobs| *jobs == 0).await) }
    }

    /// What a change that was cut off left is put right.
    pub(super) async fn recover(&self) -> Result<(), HostError> {
        let checkpoint_dir = self.checkpoint_dir.clone();
        self.ask(move |live| {
            let store = Store::lock(&checkpoint_dir, Identity::here()?).map_err(ApplyError::from)?;
            let nothing = json!({});
            transaction::apply(live, &store, &nothing, MANNER, &mut |event| told(&event), &|| false)?;
            Ok(())
        })
        .await
    }

    /// Puts Berth's mark on these addresses, as far as they are there without it. Kernels before 5.18 have no place for
    /// one.
    pub(super) async fn mark(&self, ips: BTreeSet<IpAddr>) -> Result<(), HostError> {
        self.ask(move |live| {
            let seen = live.observe()?;
            let mut steps = Vec::new();
            for (link, address) in placed(&seen).filter(|(_, address)| ips.contains(&address.ip)) {
                if address.protocol != Some(AddressProtocol::BERTH) && !address.is_dynamic() {
                    let address = Address { protocol: Some(AddressProtocol::BERTH), ..address.clone() };
                    steps.push(Step::ReplaceAddress { link: link.clone(), address });
                }
            }
            live.apply(&steps, &mut |_| true).map_err(|failed| HostError::Mark(whole(&failed)))?;
            Ok(())
        })
        .await
    }

    /// Takes these addresses off whatever link has them, and leaves all else as it is.
    pub(super) async fn remove(&self, ips: BTreeSet<IpAddr>) -> Result<(), HostError> {
        self.take_off(move |_, address| ips.contains(&address.ip)).await
    }

    /// Takes addresses off these links alone.
    pub(super) async fn remove_from(&self, strays: BTreeSet<(IfName, IpAddr)>) -> Result<(), HostError> {
        self.take_off(move |link, address| strays.contains(&(link.clone(), address.ip))).await
    }

    /// By a plan, which knows what the kernel takes along with an address (secondaries, and routes with them) and puts it
    /// back. What can't be planned goes all the same: it may be another host's next.
    async fn take_off(
        &self,
        off: impl Fn(&IfName, &Address) -> bool + Send + 'static,
    ) -> Result<(), HostError> {
        let checkpoint_dir = self.checkpoint_dir.clone();
        self.ask(move |live| {
            let desired = without(&live.observe()?, &off);
            if !desired.is_null() {
                let store = Store::lock(&checkpoint_dir, Identity::here()?).map_err(ApplyError::from)?;
                let tell = &mut |event: Event<'_>| told(&event);
                if let Err(error) = transaction::apply(live, &store, &desired, MANNER, tell, &|| false) {
                    warn(&format!("addresses are taken off without a plan: {}", whole(&error)));
                }
            }
            // One at a time: a primary may take its secondaries along.
            loop {
                let seen = live.observe()?;
                let Some((link, address)) = placed(&seen).find(|(link, address)| off(link, address)) else {
                    return Ok(());
                };
                let step = Step::DeleteAddress { link: link.clone(), address: address.clone() };
                live.apply(&[step], &mut |_| true).map_err(|failed| HostError::Remove(whole(&failed)))?;
            }
        })
        .await
    }
}

/// The pooled IPv4 addresses that a plan put on links.
fn added(plan: &Plan, pooled: &BTreeSet<IpAddr>) -> Vec<Placed> {
    let added = plan.steps.iter().filter_map(|step| match step {
        Step::AddAddress { link, address } => Some(Placed { link: link.clone(), ip: address.ip }),
        _ => None,
    });
    added.filter(|at| at.ip.is_ipv4() && pooled.contains(&at.ip)).collect()
}

/// Everybody may know by now: what can't be told is no reason for anything.
fn announce(places: &[Placed]) {
    for (at, why) in wire::announce(places) {
        debug(&format!("{} is not announced: {why}", at.ip));
    }
}

/// The same, of those that are still there: another host may have the rest by now.
fn announce_what_is_there(live: &mut Live, mut places: Vec<Placed>) {
    let Ok(seen) = live.observe() else { return };
    let there: BTreeSet<(&IfName, IpAddr)> =
        placed(&seen).map(|(link, address)| (link, address.ip)).collect();
    places.retain(|at| there.contains(&(&at.link, at.ip)));
    announce(&places);
}

/// A document of the links that have such addresses, without them; nothing, where none has.
fn without(seen: &Observation, off: &impl Fn(&IfName, &Address) -> bool) -> Value {
    let gone: BTreeSet<(&IfName, IpAddr)> = placed(seen)
        .filter(|(link, address)| off(link, address))
        .map(|(link, address)| (link, address.ip))
        .collect();
    if gone.is_empty() {
        return Value::Null;
    }
    let shown = seen.state.to_value();
    let mut interfaces = Vec::new();
    for link in gone.iter().map(|(link, _)| *link).collect::<BTreeSet<_>>() {
        let all = shown["interfaces"].as_array().into_iter().flatten();
        let Some(interface) = all.into_iter().find(|one| one["name"] == link.as_str()) else { continue };
        let mut kept = json!({"name": interface["name"], "type": interface["type"]});
        for family in ["ipv4", "ipv6"] {
            let ip = |address: &Value| address["ip"].as_str().and_then(|ip| ip.parse::<IpAddr>().ok());
            let is_gone = |address: &Value| ip(address).is_some_and(|ip| gone.contains(&(link, ip)));
            let mut of = interface[family].clone();
            if let Some(addresses) = of["address"].as_array_mut().filter(|all| all.iter().any(is_gone)) {
                addresses.retain(|address| !is_gone(address));
                kept[family] = of;
            }
        }
        interfaces.push(kept);
    }
    json!({"interfaces": interfaces})
}

/// Says what somebody has to know who didn't ask for this change: what an earlier one left, and what became of it.
fn told(event: &Event<'_>) {
    match event {
        Event::Discarded { why } => say(&format!("a checkpoint is discarded: {why}")),
        Event::Unreadable(count) => {
            warn(&format!("{count} of the kernel's messages can't be read; what they say is missing"));
        }
        Event::Recovering => say("a change that was cut off is being undone"),
        Event::Recovered(reverted) => {
            let steps: Vec<String> = reverted.done.iter().map(ToString::to_string).collect();
            say(&format!("the change that was cut off is undone: {}", listed(&steps)));
            for lost in &reverted.lost {
                warn(&format!("can't be brought back: {lost}"));
            }
            if let Some(aside) = &reverted.aside {
                warn(&format!("what was before is kept in {}", aside.display()));
            }
        }
        Event::Planned(_)
        | Event::Step(_)
        | Event::Asking
        | Event::Asked
        | Event::Verifying
        | Event::Reverting
        | Event::Reverted(_) => {}
    }
}

fn listed(steps: &[String]) -> String {
    if steps.is_empty() { "nothing was to be put back".to_owned() } else { steps.join("; ") }
}

/// Every address, with its link.
pub(super) fn placed(seen: &Observation) -> impl Iterator<Item = (&IfName, &Address)> {
    seen.state.links.values().flat_map(|link| {
        let addresses = link.ipv4.addresses.iter().chain(&link.ipv6.addresses);
        addresses.map(move |address| (&link.name, address))
    })
}

/// Tells of changes until nobody works on this kernel any more. A listener that breaks is opened again, and whoever
/// listens looks at everything: what was missed is not known.
fn listen(jobs: &mpsc::Sender<Job>, changed: &dyn Fn()) {
    let wanted = || jobs.send(Box::new(|_| {})).is_ok();
    while wanted() {
        let broken = match Monitor::open() {
            Ok(monitor) => hear(monitor, &wanted, changed),
            Err(error) => Some(error),
        };
        let Some(error) = broken else { return };
        warn(&format!("the kernel's changes can't be heard: {}; trying again", whole(&error)));
        std::thread::sleep(DEAF);
        changed();
    }
}

/// Nothing, when nobody wants to hear any more; else why it can't be heard.
fn hear(mut monitor: Monitor, wanted: &dyn Fn() -> bool, changed: &dyn Fn()) -> Option<NetlinkError> {
    loop {
        match monitor.wait(LISTEN) {
            Ok(Heard::Silence) => {
                if !wanted() {
                    return None;
                }
            }
            Ok(Heard::Changes(_) | Heard::Overrun) => changed(),
            Err(error) => return Some(error),
        }
    }
}
