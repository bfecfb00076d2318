//! The seam between deciding and doing: a host that can be observed and changed.
//!
//! [`Live`] is this host (or one of its network namespaces); tests put the in-memory kernel of `policy::plan` in its
//! place for faults that a real kernel can't be made to have.

use std::io;
use std::path::Path;
use std::time::Duration;

use policy::plan::{Plan, PlanError, Problem, ProblemKind, Step, plan_document};
use policy::state::Observed;
use serde_json::Value;

use crate::host::Host;
use crate::netlink::monitor::{Heard, Monitor};
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

    /// Waits until something may have changed. Whoever goes on looks at all of it again.
    fn settle(&mut self, at_most: Duration) -> Result<(), KernelError>;

    /// What is wrong with a step that this place has nothing for, whatever its state.
    fn refuses(&self, _step: &Step) -> Option<Problem> {
        None
    }
}

/// What to do to this host so that a document holds, or everything that is wrong with it, also that this place hasn't got
/// what it asks for.
pub fn plan(kernel: &dyn Kernel, observed: &Observed, desired: &Value) -> Result<Plan, PlanError> {
    let planned = plan_document(observed, desired);
    let refused =
        |plan: &Plan| -> Vec<Problem> { plan.steps.iter().filter_map(|step| kernel.refuses(step)).collect() };
    match planned {
        Ok(plan) => match refused(&plan) {
            problems if problems.is_empty() => Ok(plan),
            problems => Err(PlanError { problems }),
        },
        // What is wrong with the rest is no reason to keep this for the next time.
        Err(mut error) => {
            let files = plan_document(observed, &files(desired)).unwrap_or_default();
            error.problems.extend(refused(&files));
            Err(error)
        }
    }
}

/// The part of a document that is about files rather than the network.
fn files(desired: &Value) -> Value {
    let sections = ["dns-resolver", "hostname"];
    let part = sections.iter().filter_map(|name| Some(((*name).to_owned(), desired.get(name)?.clone())));
    Value::Object(part.collect())
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
        Self::listening(namespace, Monitor::open()?)
    }

    /// The same from inside a container, where the host's files are below `root`.
    pub fn seen_at(self, root: &Path) -> Self {
        Self { host: self.host.seen_at(root), ..self }
    }

    /// The same, hearing of changes from this monitor, which was opened in the same namespace.
    pub fn listening(namespace: &Namespace, monitor: Monitor) -> Result<Self, KernelError> {
        Ok(Self { netlink: Netlink::open()?, monitor, host: Host::of(namespace) })
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
        match self.monitor.wait(at_most)? {
            Heard::Silence => {}
            // One may be a link that went and came again under its name, and with notifications lost anything may be:
            // nothing that was known before is relied on.
            Heard::Changes(_) | Heard::Overrun => self.netlink.forget_names(),
        }
        Ok(())
    }

    fn refuses(&self, step: &Step) -> Option<Problem> {
        let (path, why) = self.host.refuses(step)?;
        Some(Problem { path: path.to_owned(), kind: ProblemKind::NotHere { why } })
    }
}
