//! This host, for the verbs that look at it or change it.

use std::path::{Path, PathBuf};

use anyhow::Context;
use thiserror::Error;

use super::output;
use crate::checkpoint::{self, Peek};
use crate::kernel::{Kernel, Live};
use crate::netlink::Observation;
use crate::netns::{Identity, Namespace};

/// Where checkpoints are, if not told otherwise; agents have theirs there too. They are of this boot, and so is this.
pub(super) const CHECKPOINTS: &str = "/run/berth";

/// Which network is meant.
#[derive(Debug, clap::Args)]
pub(super) struct Where {
    /// Work in this network namespace: a name of 'ip netns', or a path such as /proc/123/ns/net
    #[arg(long, value_name = "NAME|PATH", value_parser = |text: &str| text.parse::<Namespace>())]
    netns: Option<Namespace>,
    /// Where the checkpoint is kept while a change is under way
    #[arg(long, value_name = "DIR", default_value = CHECKPOINTS)]
    state_dir: PathBuf,
}

impl Where {
    /// Does `work` there, on a thread inside the namespace.
    pub(super) fn inside<T: Send>(
        &self,
        work: impl FnOnce(&mut Live) -> anyhow::Result<T> + Send,
    ) -> anyhow::Result<T> {
        let namespace = self.netns.clone().unwrap_or_default();
        namespace.inside(|| work(&mut Live::open(&namespace)?))?
    }

    /// The same for who changes nothing, and should know if what is seen is the middle of a change.
    pub(super) fn look<T: Send>(
        &self,
        work: impl FnOnce(&mut Live) -> anyhow::Result<T> + Send,
    ) -> anyhow::Result<T> {
        self.inside(|kernel| {
            self.mention_checkpoint();
            work(kernel)
        })
    }

    pub(super) fn state_dir(&self) -> &Path {
        &self.state_dir
    }

    fn mention_checkpoint(&self) {
        // Who can't tell which namespace this is has bigger worries, and hears of them.
        let Ok(identity) = Identity::here() else { return };
        match checkpoint::peek(&self.state_dir, &identity) {
            Peek::Nothing => {}
            Peek::CutOff => output::warn(
                "this host",
                "an apply was interrupted and is not undone yet; the next 'berth apply' reverts it first",
            ),
            Peek::UnderWay => {
                output::warn("this host", "another berth is changing it now; this is a state in between");
            }
            Peek::Damaged { path } => {
                let path = path.display();
                output::warn(
                    "this host",
                    format!(
                        "an apply was interrupted, and its checkpoint {path} is damaged, so what it was to bring back is unknown; \
                         look at the host and remove it, nothing is applied before that"
                    ),
                );
            }
            Peek::Closed { path } => {
                let path = path.display();
                output::warn(
                    "this host",
                    format!("an apply may have been interrupted: only root can read {path}"),
                );
            }
        }
    }
}

/// What there is; what couldn't be read of it is said.
pub(super) fn observe(kernel: &mut Live) -> anyhow::Result<Observation> {
    let seen = kernel.observe().context("can't look at this host's network")?;
    if seen.unreadable > 0 {
        let what =
            format!("{} of the kernel's messages can't be read; what they say is missing", seen.unreadable);
        output::warn("this host", what);
    }
    Ok(seen)
}

/// What stands in the way before anything is tried.
#[derive(Debug, Error)]
#[error(
    "changing the network needs CAP_NET_ADMIN, which this process doesn't have; run it as root. Nothing was changed"
)]
pub(super) struct NotAllowed;

/// What the kernel says of this thread and its process: one file, read once.
pub(super) struct Standing(String);

impl Standing {
    pub(super) fn of_this_thread() -> Self {
        Self(std::fs::read_to_string("/proc/thread-self/status").unwrap_or_default())
    }

    /// A set of bits by its name; nothing where it can't be told.
    fn bits(&self, name: &str) -> Option<u64> {
        let hex = self.0.lines().find_map(|line| line.strip_prefix(name));
        hex.and_then(|hex| u64::from_str_radix(hex.trim(), 16).ok())
    }

    /// Whether the kernel would let this thread. Where it can't be told, the kernel will say.
    pub(super) fn check_may_change_networks(&self) -> Result<(), NotAllowed> {
        const NET_ADMIN: u32 = 12;
        match self.bits("CapEff:") {
            Some(bits) if bits & (1 << NET_ADMIN) == 0 => Err(NotAllowed),
            _ => Ok(()),
        }
    }

    /// The signals that the process ignores, a bit each.
    pub(super) fn ignored_signals(&self) -> u64 {
        self.bits("SigIgn:").unwrap_or_default()
    }
}
