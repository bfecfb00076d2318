//! The seam between deciding and doing: a host that can be observed and changed.
//!
//! [`Live`] is this host (or one of its network namespaces); tests put the in-memory kernel of `policy::plan` in its
//! place for faults that a real kernel can't be made to have.

use std::io;
use std::time::Duration;

use policy::plan::Step;

use crate::host::Host;
use crate::netlink::monitor::Monitor;
use crate::netlink::{Netlink, NetlinkError, Observation, ObserveError, StepFailed};
use crate::netns::Namespace;

/// Why a host can't be looked at.
#[derive(Debug, thiserror::Error)]
pub enum KernelError {
    #[error(transparent)]
    Netlink(#[from] NetlinkError),
    #[error(transparent)]
    Observe(#[from] ObserveError),
    #[error("can't read the host's files")]
    Host { source: io::Error },
}

/// A host to work on.
pub trait Kernel {
    fn observe(&mut self) -> Result<Observation, KernelError>;

    /// The steps, in order, up to the first that fails; `progress` hears how many are done, and says whether to go on.
    fn apply(&mut self, steps: &[Step], progress: &mut dyn FnMut(usize) -> bool) -> Result<(), StepFailed>;

    /// Waits until something may have changed.
    fn settle(&mut self, at_most: Duration) -> Result<(), KernelError>;
}

/// The namespace of the thread that opened it.
#[derive(Debug)]
pub struct Live {
    netlink: Netlink,
    monitor: Monitor,
    host: Host,
}

impl Live {
    /// To be called inside `namespace`; it says which files go with it.
    pub fn open(namespace: &Namespace) -> Result<Self, KernelError> {
        Ok(Self { netlink: Netlink::open()?, monitor: Monitor::open()?, host: Host::of(namespace) })
    }

    /// Netlink requests sent so far.
    pub fn sent(&self) -> u64 {
        self.netlink.sent()
    }
}

impl Kernel for Live {
    fn observe(&mut self) -> Result<Observation, KernelError> {
        let mut seen = self.netlink.observe()?;
        self.host.observe(&mut seen.state).map_err(|source| KernelError::Host { source })?;
        Ok(seen)
    }

    fn apply(&mut self, steps: &[Step], progress: &mut dyn FnMut(usize) -> bool) -> Result<(), StepFailed> {
        self.netlink.apply(steps, |step| self.host.apply(step), progress)
    }

    fn settle(&mut self, at_most: Duration) -> Result<(), KernelError> {
        self.monitor.wait(at_most)?;
        Ok(())
    }
}
