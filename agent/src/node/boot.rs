//! What the journal says, brought about once: at boot, without the API, before anybody counts on the network.
//!
//! `berth boot` calls it, from a unit that runs before the kubelet. An agent that starts without the API does the same, but
//! where it is a pod it starts after the kubelet, and in no order among the others. It is the agent's own way: its locks, the
//! states that it found good, of addresses that its journal says are held, its mark on them, its checkpoints.
//!
//! It must never write the journal, and decides nothing: what is not held is left to the agent, and so is what became of an
//! address while the host was off. Cost: one observation per policy and what the change costs; of time, as long as a card that
//! isn't there yet is waited for.

use std::collections::BTreeSet;
use std::fmt;
use std::future::Future;
use std::net::IpAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use policy::claim::{Host, PolicyName};
use policy::plan::plan_document;
use serde_json::Value;
use tokio::sync::Notify;
use tokio::time::Instant;

use super::enact::bring;
use super::journal::Book;
use super::kernel::{Asks, Kernel};
use super::lock::Lock;
use super::{HostError, NodeError};
use crate::api::error::whole;
use crate::api::task::Task;
use crate::netns::Namespace;
use crate::probe::{self, Probe, Probes};
use crate::transaction::ApplyError;
use crate::wire::Timing;

/// Which host, and where its agent keeps what.
#[derive(Clone, Debug)]
pub struct Settings {
    pub namespace: Namespace,
    pub state_dir: PathBuf,
    pub checkpoint_dir: PathBuf,
    /// How long links that are not there yet are waited for.
    pub patience: Duration,
    /// How long the wire is asked for an address before it is used (rule 10).
    pub wire_probe: Timing,
}

/// What became of one policy's state.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Became {
    /// The host was so already.
    Unchanged,
    /// By so many steps.
    Brought(usize),
    /// An address in it is not held: the agent asks the API first.
    Left,
    /// And the host is as it was before.
    Failed(String),
}

/// A policy, the held addresses in its state, and what became of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Line {
    pub policy: PolicyName,
    pub addresses: BTreeSet<IpAddr>,
    pub became: Became,
}

impl fmt::Display for Line {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "policy {}", self.policy)?;
        let addresses: Vec<String> = self.addresses.iter().map(ToString::to_string).collect();
        if !addresses.is_empty() {
            write!(f, " ({})", addresses.join(", "))?;
        }
        match &self.became {
            Became::Unchanged => f.write_str(": is as it was"),
            Became::Brought(1) => f.write_str(": put back, in one step"),
            Became::Brought(steps) => write!(f, ": put back, in {steps} steps"),
            Became::Left => {
                f.write_str(": left to the agent, since the journal doesn't hold all its addresses")
            }
            Became::Failed(why) => write!(f, ": not put back: {why}"),
        }
    }
}

/// What a journal came to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Report {
    pub node: String,
    pub lines: Vec<Line>,
}

/// Nobody is asked for the API at boot.
struct NoApi;

impl probe::Api for NoApi {
    fn answers(&self) -> Result<(), String> {
        Err("there is no API at boot".to_owned())
    }

    fn node_is_ready(&self) -> Result<(), String> {
        self.answers()
    }
}

/// A policy's state that is to be brought about, and why that can't be yet.
struct Waiting {
    policy: PolicyName,
    desired: Value,
    why: String,
}

/// Brings about what the journal in the state directory says; nothing, where there is none. When `asked` ends it is to stop:
/// what is under way is undone, and nothing more is begun.
pub async fn boot(
    settings: &Settings,
    asked: impl Future<Output = ()> + Send + 'static,
) -> Result<Option<Report>, NodeError> {
    // Without a journal there is nothing to lock either.
    if Book::find(&settings.state_dir)?.is_none() {
        return Ok(None);
    }
    let _lock = Lock::take(&settings.state_dir, &settings.namespace)?;
    let Some(book) = Book::find(&settings.state_dir)? else { return Ok(None) };
    let changed = Arc::new(Notify::new());
    let tell = changed.clone();
    let checkpoints = settings.checkpoint_dir.clone();
    let kernel = Kernel::start(&settings.namespace, Path::new("/"), checkpoints, move || tell.notify_one())?;
    let stopping = Arc::new(AtomicBool::new(false));
    let (stop, wake) = (stopping.clone(), changed.clone());
    let _asked = Task::spawn(async move {
        asked.await;
        stop.store(true, Ordering::SeqCst);
        wake.notify_one();
    });
    kernel.recover().await?;
    let host = Host { journal: book.claims(), memory: Default::default() };
    let line = |policy: &PolicyName, became| Line {
        policy: policy.clone(),
        addresses: host.held_by(|of| of == policy).collect(),
        became,
    };
    let good = book.good();
    let left = book.enacted().filter(|policy| !good.iter().any(|(one, _)| one == *policy));
    let mut lines: Vec<Line> = left.map(|policy| line(policy, Became::Left)).collect();
    let mut waiting: Vec<Waiting> =
        good.into_iter().map(|(policy, desired)| Waiting { policy, desired, why: String::new() }).collect();
    let until = Instant::now() + settings.patience;
    while !waiting.is_empty() {
        let mut still = Vec::new();
        // In name order, as the agent does.
        for mut one in waiting {
            let held: BTreeSet<IpAddr> = host.held().collect();
            let timing = book.timing(&one.policy).unwrap_or(settings.wire_probe);
            let asks = Asks { pooled: held.clone(), ips: held, timing };
            match once(&kernel, asks, &one.desired, &stopping).await? {
                Tried::Became(became) => lines.push(line(&one.policy, became)),
                Tried::NotYet(why) => {
                    one.why = why;
                    still.push(one);
                }
            }
        }
        waiting = still;
        let is_over = stopping.load(Ordering::SeqCst) || waiting.is_empty();
        // Whatever changes, a card that appears or another policy's bond, is a reason to look again.
        if is_over || tokio::time::timeout_at(until, changed.notified()).await.is_err() {
            break;
        }
    }
    lines.extend(waiting.into_iter().map(|one| line(&one.policy, Became::Failed(one.why))));
    lines.sort_by(|one, other| one.policy.cmp(&other.policy));
    Ok(Some(Report { node: book.node().to_owned(), lines }))
}

/// What one attempt came to.
enum Tried {
    Became(Became),
    /// It can't be planned on this host as it is.
    NotYet(String),
}

async fn once(
    kernel: &Kernel,
    asks: Asks,
    desired: &Value,
    stopping: &Arc<AtomicBool>,
) -> Result<Tried, NodeError> {
    let seen = kernel.observe().await?;
    let steps = match plan_document(&seen.state, desired) {
        Err(wrong) => return Ok(Tried::NotYet(wrong.to_string())),
        Ok(plan) if plan.is_empty() => return Ok(Tried::Became(Became::Unchanged)),
        Ok(plan) => plan.len(),
    };
    // As without the API: what answered a moment ago must answer still, and nobody is waited for.
    let which = [Probe::Gateway, Probe::Dns].into();
    let probes = Probes { which, insist: false, ..Probes::default() };
    match bring(kernel, desired.clone(), probes, asks, NoApi, stopping).await {
        Ok(_) => Ok(Tried::Became(Became::Brought(steps))),
        Err(error @ HostError::Died) => Err(error.into()),
        Err(HostError::Apply(ApplyError::Plan(wrong))) => Ok(Tried::NotYet(wrong.to_string())),
        Err(error) => Ok(Tried::Became(Became::Failed(whole(&error)))),
    }
}
