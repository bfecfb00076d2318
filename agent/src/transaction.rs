//! A change that happens whole or not at all: observe, plan, ask the wire, apply, observe, verify, probe; or revert.
//!
//! Owns the order and the checkpoint; every decision is `policy::plan`'s. The checkpoint is on disk before the first
//! write and goes when the host is as asked for, or as before. What a killed process left is reverted before anything
//! else is done; what nobody can bring back is said once, and the checkpoint is kept aside.
//!
//! Addresses that the wire is asked for are put on when everything below them is there and nobody has answered for them.
//!
//! Cost: with nothing to do one observation and no write; otherwise two observations, one message per step, one file.

mod revert;

use std::collections::BTreeSet;
use std::net::IpAddr;
use std::ops::Range;
use std::time::{Duration, Instant};

use policy::plan::{Plan, PlanError, Step, Unmet, verify};
use policy::state::{Desired, IfName, Link, Observed};
use serde_json::Value;

use crate::checkpoint::{CheckpointError, Found, Store};
use crate::kernel::{self, Kernel, KernelError};
use crate::netlink::{Observation, Placed, StepCause, StepFailed};
use crate::probe::{Silent, Watch};
use crate::wire::Taken;

pub use revert::{Reverted, recover};

/// How long a single wait for the kernel lasts before the state is looked at again: notifications come sooner.
const LOOK_AGAIN: Duration = Duration::from_millis(200);

/// How to go about it.
#[derive(Clone, Copy, Debug)]
pub struct Manner {
    /// Whether to look afterwards if it is as asked for.
    pub verify: bool,
    /// How long the result may take to show: address probes, links that come up.
    pub patience: Duration,
}

/// What is told on the way.
#[derive(Clone, Debug)]
pub enum Event<'a> {
    /// An open checkpoint is being reverted.
    Recovering,
    /// What became of that: it is over, and all that can be is as it was.
    Recovered(&'a Reverted),
    /// So many of the kernel's messages can't be read: what they say is not known, and couldn't be put back.
    Unreadable(usize),
    /// A checkpoint says nothing about this host as it is.
    Discarded {
        why: &'static str,
    },
    Planned(&'a Plan),
    /// This many steps of the plan are done.
    Step(usize),
    /// The wire is asked for addresses that are new on this host.
    Asking,
    /// Nobody has them: on with the steps.
    Asked,
    /// Waiting for the result to show.
    Verifying,
    Reverting,
    /// How that ended.
    Reverted(&'a Reverted),
}

/// What went wrong while changing the host.
#[derive(Debug, thiserror::Error)]
pub enum Fault {
    #[error(transparent)]
    Step(#[from] StepFailed),
    #[error("can't look at the result")]
    Observe(#[source] KernelError),
    #[error("{} is in use by another host: duplicate address detection failed on {}", .at.ip, .at.link)]
    Duplicate { at: Placed },
    #[error("{}", in_use(.taken))]
    Taken { taken: Vec<Taken> },
    #[error("{} on {} was still being probed after {} s", .at.ip, .at.link, .patience.as_secs())]
    Tentative { at: Placed, patience: Duration },
    #[error("the result is not what was asked for:{}", lines(.unmet))]
    Unmet { unmet: Vec<Unmet> },
    #[error(transparent)]
    Silent(#[from] Silent),
    #[error("interrupted")]
    Interrupted,
}

fn in_use(taken: &[Taken]) -> String {
    let one = |Taken { at, mac }: &Taken| {
        let who = mac.map_or("somebody else".to_owned(), |mac| mac.to_string());
        format!("{} is in use by {who}, heard on {}", at.ip, at.link)
    };
    taken.iter().map(one).collect::<Vec<_>>().join("; ")
}

fn lines(unmet: &[Unmet]) -> String {
    unmet.iter().map(|unmet| format!("\n  {unmet}")).collect()
}

/// Why the host is not as asked for.
#[derive(Debug, thiserror::Error)]
pub enum ApplyError {
    #[error("can't look at this host")]
    Observe(#[from] KernelError),
    #[error(transparent)]
    Checkpoint(#[from] CheckpointError),
    #[error(transparent)]
    Plan(#[from] PlanError),
    #[error(
        "a change that was cut off earlier can't be undone, and nothing else is done before that: {reverted}"
    )]
    Recover { reverted: Box<Reverted> },
    #[error(
        "a change that was cut off earlier can't be planned again, so it can't be undone; see the checkpoint"
    )]
    Unrecoverable { source: PlanError },
    #[error(
        "it is applied, but its checkpoint is still there: remove it, or the next 'berth apply' undoes all of it"
    )]
    Lingering { source: CheckpointError },
    #[error(
        "{} is on {} already, and in use by another host: duplicate address detection failed; take it off there, or here", .at.ip, .at.link
    )]
    Useless { at: Placed },
    /// Changed, failed, and then: how the host was left, before why.
    #[error("not applied; {reverted}")]
    Failed {
        #[source]
        fault: Box<Fault>,
        reverted: Box<Reverted>,
    },
}

/// Brings about what `desired` says, or leaves the host as it was.
pub fn apply(
    kernel: &mut dyn Kernel,
    store: &Store,
    desired: &Value,
    manner: Manner,
    tell: &mut dyn FnMut(Event<'_>),
    stop: &dyn Fn() -> bool,
) -> Result<Plan, ApplyError> {
    apply_guarded(kernel, store, desired, manner, Guards::default(), tell, stop)
}

/// Who is asked whether somebody else has an address, before it is put on a link.
pub trait Wire {
    /// Is this one to be asked for?
    fn wants(&self, ip: IpAddr) -> bool;
    /// Who has them. A link that is `fresh` was set up a moment ago.
    fn ask(
        &mut self,
        places: &[Placed],
        fresh: &dyn Fn(&IfName) -> bool,
        stop: &dyn Fn() -> bool,
    ) -> Vec<Taken>;
}

/// What a change has to get past besides being as asked for.
#[derive(Default)]
pub struct Guards<'a, 'w> {
    /// What must work afterwards as it did before.
    pub watch: Option<&'a mut Watch<'w>>,
    pub wire: Option<&'a mut dyn Wire>,
}

/// The same, and past these.
pub fn apply_guarded(
    kernel: &mut dyn Kernel,
    store: &Store,
    desired: &Value,
    manner: Manner,
    mut guards: Guards<'_, '_>,
    tell: &mut dyn FnMut(Event<'_>),
    stop: &dyn Fn() -> bool,
) -> Result<Plan, ApplyError> {
    clear(kernel, store, tell)?;
    let seen = kernel.observe()?;
    if seen.unreadable > 0 {
        tell(Event::Unreadable(seen.unreadable));
    }
    let before = seen.state;
    let plan = kernel::plan(kernel, &before, desired)?;
    tell(Event::Planned(&plan));
    if plan.is_empty() {
        // It is there, and of no use: another host has it.
        return match seen.duplicate.iter().find(|at| manner.verify && names(desired, at)) {
            Some(at) => Err(ApplyError::Useless { at: at.clone() }),
            None => Ok(plan),
        };
    }
    // Nothing of it was refused, or there would be no plan.
    let (wanted, _) = Desired::read(desired);
    if let Some(watch) = &mut guards.watch {
        watch.before(&before);
    }
    let since = Instant::now();
    store.write(&before, desired)?;
    let asked = guards.wire.map(|wire| (wire, new_here(&plan, &before)));
    let changed = change(kernel, &plan, &wanted, manner, asked, tell, stop)
        .and_then(|()| guards.watch.map_or(Ok(()), |watch| heard(kernel, watch, stop)));
    match changed {
        Ok(()) => match store.remove() {
            Ok(()) => Ok(plan),
            Err(source) => Err(ApplyError::Lingering { source }),
        },
        Err(fault) => {
            tell(Event::Reverting);
            let mut reverted = revert::revert(kernel, &plan, &before, since);
            close(store, &mut reverted)?;
            tell(Event::Reverted(&reverted));
            Err(ApplyError::Failed { fault: Box::new(fault), reverted: Box::new(reverted) })
        }
    }
}

/// Does the document ask for this address on this link?
fn names(desired: &Value, at: &Placed) -> bool {
    let list = |value: &Value| value.as_array().cloned().unwrap_or_default();
    let is_ip = |address: &Value| {
        let ip = address["ip"].as_str().and_then(|ip| ip.parse::<IpAddr>().ok());
        ip == Some(at.ip)
    };
    let interfaces = list(&desired["interfaces"]);
    let mut of_link = interfaces.iter().filter(|interface| interface["name"] == at.link.as_str());
    of_link.any(|interface| list(&interface["ipv6"]["address"]).iter().any(is_ip))
}

/// Whatever an earlier change left is put right first.
fn clear(kernel: &mut dyn Kernel, store: &Store, tell: &mut dyn FnMut(Event<'_>)) -> Result<(), ApplyError> {
    match store.find()? {
        Found::Nothing => {}
        Found::Foreign { why } => {
            tell(Event::Discarded { why });
            store.remove()?;
        }
        Found::Open(checkpoint) => {
            tell(Event::Recovering);
            let mut reverted = recover(kernel, &checkpoint)?;
            if !reverted.is_over() {
                tell(Event::Reverted(&reverted));
                return Err(ApplyError::Recover { reverted: Box::new(reverted) });
            }
            close(store, &mut reverted)?;
            tell(Event::Recovered(&reverted));
        }
    }
    Ok(())
}

/// Nothing more can be done about it: the checkpoint goes, and where something couldn't be brought back it is kept aside
/// for whoever wants to do that by hand. Trying again each time would bring nothing back either.
fn close(store: &Store, reverted: &mut Reverted) -> Result<(), CheckpointError> {
    if reverted.is_over() && reverted.lost.is_empty() {
        return store.remove();
    }
    if reverted.is_over() {
        reverted.aside = Some(store.set_aside()?);
    }
    Ok(())
}

fn change(
    kernel: &mut dyn Kernel,
    plan: &Plan,
    wanted: &Desired,
    manner: Manner,
    asked: Option<(&mut dyn Wire, Vec<Placed>)>,
    tell: &mut dyn FnMut(Event<'_>),
    stop: &dyn Fn() -> bool,
) -> Result<(), Fault> {
    let below = asked.map_or(Ok(0), |(wire, places)| ask(kernel, plan, wire, &places, tell, stop))?;
    take_steps(kernel, plan, below..plan.steps.len(), tell, stop)?;
    if !manner.verify {
        return Ok(());
    }
    tell(Event::Verifying);
    let until = Instant::now() + manner.patience;
    loop {
        let seen = kernel.observe().map_err(Fault::Observe);
        let late = || Instant::now() >= until;
        let verdict =
            |seen: &Observation| judge(plan, wanted, seen, manner).map(|()| awaits_carrier(plan, seen));
        match seen.and_then(|seen| verdict(&seen)) {
            // No carrier in the end: nobody can ask on such a wire, and that is no reason to undo anything.
            Ok(awaits) if !awaits || late() => return Ok(()),
            Err(fault @ Fault::Duplicate { .. }) => return Err(fault),
            Err(fault) if late() => return Err(fault),
            _ if stop() => return Err(Fault::Interrupted),
            _ => kernel.settle(LOOK_AGAIN).map_err(Fault::Observe)?,
        }
    }
}

/// Takes these steps of a plan.
fn take_steps(
    kernel: &mut dyn Kernel,
    plan: &Plan,
    part: Range<usize>,
    tell: &mut dyn FnMut(Event<'_>),
    stop: &dyn Fn() -> bool,
) -> Result<(), Fault> {
    let begin = part.start;
    let mut progress = |done: usize| {
        tell(Event::Step(begin + done));
        !stop()
    };
    kernel.apply(&plan.steps[part], &mut progress).map_err(|failed| match failed.cause {
        StepCause::Stopped => Fault::Interrupted,
        _ => Fault::Step(StepFailed { place: begin + failed.place, ..failed }),
    })?;
    if stop() { Err(Fault::Interrupted) } else { Ok(()) }
}

/// Makes what these addresses rest on, and asks the wire for them. How many steps that took.
fn ask(
    kernel: &mut dyn Kernel,
    plan: &Plan,
    wire: &mut dyn Wire,
    places: &[Placed],
    tell: &mut dyn FnMut(Event<'_>),
    stop: &dyn Fn() -> bool,
) -> Result<usize, Fault> {
    let places: Vec<Placed> = places.iter().filter(|at| wire.wants(at.ip)).cloned().collect();
    let adds = |step: &Step| places.iter().any(|at| is_addition(step, at));
    let Some(first) = plan.steps.iter().position(adds) else { return Ok(0) };
    // Right behind the last step that is about links: what is taken away from them is away for no longer than it must be.
    let below = plan.steps[..first].iter().rposition(is_about_links).map_or(0, |last| last + 1);
    take_steps(kernel, plan, 0..below, tell, stop)?;
    tell(Event::Asking);
    let taken = wire.ask(&places, &|link| sets_up(plan, link), stop);
    if !taken.is_empty() {
        return Err(Fault::Taken { taken });
    }
    if stop() {
        return Err(Fault::Interrupted);
    }
    tell(Event::Asked);
    Ok(below)
}

fn is_about_links(step: &Step) -> bool {
    !matches!(
        step,
        Step::AddAddress { .. }
            | Step::DeleteAddress { .. }
            | Step::ReplaceAddress { .. }
            | Step::AddRoute { .. }
            | Step::AppendRoute { .. }
            | Step::ReplaceRoute { .. }
            | Step::DeleteRoute { .. }
    )
}

/// The addresses that a plan puts on a link of a host that had them on none.
fn new_here(plan: &Plan, before: &Observed) -> Vec<Placed> {
    let links = before.links.values();
    let had: BTreeSet<IpAddr> = links
        .flat_map(|link| link.ipv4.addresses.iter().chain(&link.ipv6.addresses))
        .map(|address| address.ip)
        .collect();
    let added = plan.steps.iter().filter_map(|step| match step {
        Step::AddAddress { link, address } => Some(Placed { link: link.clone(), ip: address.ip }),
        _ => None,
    });
    added.filter(|at| !had.contains(&at.ip)).collect()
}

/// Whether the plan sets this link up, or gives it a port.
fn sets_up(plan: &Plan, name: &IfName) -> bool {
    plan.steps.iter().any(|step| match step {
        Step::SetUp { link } | Step::Attach { link, .. } => link == name,
        _ => false,
    })
}

/// Whether an address that the plan added can't be probed yet, on a link whose carrier may be under way: the plan has just
/// set it up, or what is below it.
fn awaits_carrier(plan: &Plan, seen: &Observation) -> bool {
    let links = &seen.state.links;
    let below = |link: &Link| {
        let ports = links.values().filter(|port| port.controller.as_ref() == Some(&link.name));
        link.sits_on().into_iter().chain(ports.map(|port| &port.name)).any(|name| sets_up(plan, name))
    };
    let fresh = |name: &IfName| sets_up(plan, name) || links.get(name).is_some_and(below);
    seen.unprobed.iter().any(|at| adds(plan, at) && fresh(&at.link))
}

/// Whether the plan put this address there.
fn adds(plan: &Plan, at: &Placed) -> bool {
    plan.steps.iter().any(|step| is_addition(step, at))
}

fn is_addition(step: &Step, at: &Placed) -> bool {
    matches!(step, Step::AddAddress { link, address } if *link == at.link && address.ip == at.ip)
}

/// What worked before the change works again, or has had all the time it may have.
fn heard(kernel: &mut dyn Kernel, watch: &Watch<'_>, stop: &dyn Fn() -> bool) -> Result<(), Fault> {
    let until = Instant::now() + watch.patience();
    while !watch.is_idle() {
        let seen = kernel.observe().map_err(Fault::Observe)?;
        match watch.after(&seen.state) {
            Ok(()) => break,
            Err(_) if stop() => return Err(Fault::Interrupted),
            Err(silent) if Instant::now() >= until => return Err(silent.into()),
            Err(_) => kernel.settle(LOOK_AGAIN).map_err(Fault::Observe)?,
        }
    }
    Ok(())
}

/// Whether what is seen is what was wanted, and can be used.
fn judge(plan: &Plan, wanted: &Desired, seen: &Observation, manner: Manner) -> Result<(), Fault> {
    let ours = |at: &&Placed| adds(plan, at);
    if let Some(at) = seen.duplicate.iter().find(ours) {
        return Err(Fault::Duplicate { at: at.clone() });
    }
    let unmet = verify(&seen.state, wanted);
    if !unmet.is_empty() {
        return Err(Fault::Unmet { unmet });
    }
    match seen.tentative.iter().find(ours) {
        Some(at) => Err(Fault::Tentative { at: at.clone(), patience: manner.patience }),
        None => Ok(()),
    }
}
