//! This host, for the verbs that look at it or change it.

use anyhow::Context;

use super::output;
use crate::kernel::{Kernel, Live};
use crate::netlink::Observation;
use crate::netns::Namespace;

/// Which network is meant.
#[derive(Debug, clap::Args)]
pub(super) struct Where {
    /// Work in this network namespace: a name of 'ip netns', or a path such as /proc/123/ns/net
    #[arg(long, value_name = "NAME|PATH", value_parser = |text: &str| text.parse::<Namespace>())]
    netns: Option<Namespace>,
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
