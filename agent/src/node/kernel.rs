//! This host's kernel, for an async loop: blocking netlink on a thread of its own inside the namespace, and another
//! that listens for changes.

use std::collections::BTreeSet;
use std::future::Future;
use std::net::IpAddr;
use std::path::PathBuf;
use std::sync::mpsc;
use std::time::Duration;

use policy::plan::{Plan, Step};
use policy::state::{Address, AddressProtocol, IfName};
use serde_json::Value;
use tokio::sync::{oneshot, watch};

use crate::api::error::whole;
use crate::checkpoint::Store;
use crate::kernel::{Kernel as _, KernelError, Live};
use crate::metrics::stages::Stages;
use crate::netlink::monitor::{Heard, Monitor};
use crate::netlink::{NetlinkError, Observation};
use crate::netns::{Identity, Namespace, NetnsError};
use crate::probe::{self, Probes, Watch};
use crate::telemetry::{say, warn};
use crate::transaction::{self, ApplyError, Event, Manner};

type Job = Box<dyn FnOnce(&mut Live) + Send>;

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
    #[error("the thread that works on the kernel has died")]
    Died,
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
        checkpoint_dir: PathBuf,
        changed: impl Fn() + Send + 'static,
    ) -> Result<Self, HostError> {
        let (jobs, queue) = mpsc::channel::<Job>();
        let (tell, told) = mpsc::channel();
        let inside = namespace.clone();
        std::thread::spawn(move || {
            let (opened, within) = (tell.clone(), inside.clone());
            let work = move || match Live::open(&within) {
                Ok(mut live) => {
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

    /// Brings about a document, or leaves the host as it was; also where something that worked no longer does.
    pub(super) async fn apply(
        &self,
        desired: Value,
        probes: Probes,
        api: impl probe::Api + 'static,
        stop: impl Fn() -> bool + Send + 'static,
    ) -> Result<Plan, HostError> {
        let checkpoint_dir = self.checkpoint_dir.clone();
        self.ask(move |live| {
            let store = Store::lock(&checkpoint_dir, Identity::here()?).map_err(ApplyError::from)?;
            let manner = Manner { verify: true, patience: Duration::from_secs(10) };
            let mut watch = Watch::new(probes, &api);
            let mut stages = Stages::begin();
            let tell = &mut |event: Event<'_>| {
                stages.told(&event);
                told(&event);
            };
            let done =
                transaction::apply_watched(live, &store, &desired, manner, Some(&mut watch), tell, &stop);
            stages.end();
            Ok(done?)
        })
        .await
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
            let manner = Manner { verify: true, patience: Duration::from_secs(10) };
            let nothing = serde_json::json!({});
            transaction::apply(live, &store, &nothing, manner, &mut |event| told(&event), &|| false)?;
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
            live.apply(&steps, &mut |_| true).map_err(|failed| HostError::Mark(failed.to_string()))?;
            Ok(())
        })
        .await
    }

    /// Takes these addresses off whatever link has them.
    pub(super) async fn remove(&self, ips: BTreeSet<IpAddr>) -> Result<(), HostError> {
        self.ask(move |live| {
            // One at a time: a primary may take its secondaries along.
            loop {
                let seen = live.observe()?;
                let Some((link, address)) = placed(&seen).find(|(_, address)| ips.contains(&address.ip))
                else {
                    return Ok(());
                };
                let step = Step::DeleteAddress { link: link.clone(), address: address.clone() };
                live.apply(&[step], &mut |_| true).map_err(|failed| HostError::Remove(failed.to_string()))?;
            }
        })
        .await
    }
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
        Event::Planned(_) | Event::Step(_) | Event::Verifying | Event::Reverting | Event::Reverted(_) => {}
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
