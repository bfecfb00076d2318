//! Steps to the kernel, in order. Steps of one kind that follow each other are sent together, so that hundreds of
//! addresses cost a handful of system calls; a different kind waits for the answers to those before.
//!
//! Together means: when one of a run is refused, those sent with it may have happened. Whoever reverts looks at what
//! there is, not at what was asked. Cost: one message per step (two where VLANs go and come), one dump of links when a
//! step names a link that an earlier step made.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::io;
use std::mem::{Discriminant, discriminant};
use std::net::IpAddr;
use std::time::{Duration, Instant};

use nix::errno::Errno;

use policy::plan::Step;
use policy::state::{Family, LinkKind, OptValue};

use super::Netlink;
use super::encode::{EncodeError, messages};
use super::kind::OptionError;
use super::observe::{self, ObserveError};
use super::socket::{NetlinkError, Refused, WINDOW};
use super::wire::Message;

/// Duplicate address detection takes a second after a random delay of up to one, unless somebody made it longer.
const PROBE: Duration = Duration::from_secs(5);
const PROBE_STEP: Duration = Duration::from_millis(20);

/// A step that did not happen.
#[derive(Debug, thiserror::Error)]
#[error("step {number} ({step}) failed", number = .place + 1)]
pub struct StepFailed {
    /// Its place in the plan, from 0.
    pub place: usize,
    pub step: Box<Step>,
    #[source]
    pub cause: StepCause,
}

/// Why it did not.
#[derive(Debug, thiserror::Error)]
pub enum StepCause {
    #[error("the kernel refused: {refused}")]
    Refused { refused: Refused },
    #[error(transparent)]
    Encode(#[from] EncodeError),
    #[error(transparent)]
    Netlink(#[from] NetlinkError),
    #[error(transparent)]
    Names(#[from] ObserveError),
    #[error("can't write {value} to {path}")]
    Switch { path: String, value: &'static str, source: io::Error },
    #[error("can't change the resolver's configuration")]
    Dns { source: io::Error },
    #[error("can't set the hostname")]
    Hostname { source: io::Error },
    #[error("{reason}")]
    Impossible { reason: String },
    #[error("stopped on request")]
    Stopped,
}

/// A run of steps of one kind, ready to be sent.
#[derive(Default)]
struct Run {
    kind: Option<Discriminant<Step>>,
    /// Each message with the place of its step.
    messages: Vec<(usize, Message)>,
}

impl Netlink {
    /// All steps that are netlink's; `other` does the rest (resolver, hostname). `progress` hears the number of steps
    /// done whenever it grows, and says whether to go on.
    pub fn apply(
        &mut self,
        steps: &[Step],
        mut other: impl FnMut(&Step) -> Result<(), StepCause>,
        mut progress: impl FnMut(usize) -> bool,
    ) -> Result<(), StepFailed> {
        let mut run = Run::default();
        for (place, step) in steps.iter().enumerate() {
            let fail = |cause: StepCause| StepFailed { place, step: Box::new(step.clone()), cause };
            if run.kind != Some(discriminant(step)) || run.messages.len() >= WINDOW {
                self.send(&mut run, steps)?;
                if !progress(place) {
                    return Err(fail(StepCause::Stopped));
                }
            }
            run.kind = Some(discriminant(step));
            let whole = self.unmapped(step).map_err(|error| fail(error.into()))?;
            let mut ready = messages(&whole, &self.names);
            if let Err(EncodeError::NoLink { .. } | EncodeError::Option(OptionError::NoLink { .. })) = ready {
                // Made by an earlier step, perhaps one that waits in this run.
                self.send(&mut run, steps)?;
                run.kind = Some(discriminant(step));
                self.names = observe::names(&mut self.socket).map_err(|error| fail(error.into()))?;
                ready = messages(&whole, &self.names);
            }
            let ready = match ready {
                Ok(ready) => ready,
                Err(error) => {
                    self.send(&mut run, steps)?;
                    return Err(fail(error.into()));
                }
            };
            self.forget(step);
            if let Some(source) = source(step) {
                self.send(&mut run, steps)?;
                run.kind = Some(discriminant(step));
                self.await_probe(source).map_err(|error| fail(error.into()))?;
            }
            if ready.is_empty() {
                self.send(&mut run, steps)?;
                other(step).map_err(fail)?;
            }
            run.messages.extend(ready.into_iter().map(|message| (place, message)));
        }
        self.send(&mut run, steps)?;
        // All of it is done: whoever wants to stop now hears so afterwards.
        progress(steps.len());
        Ok(())
    }

    fn send(&mut self, run: &mut Run, steps: &[Step]) -> Result<(), StepFailed> {
        let (places, messages): (Vec<usize>, Vec<Message>) =
            std::mem::take(&mut run.messages).into_iter().unzip();
        run.kind = None;
        let fail = |place: usize, cause: StepCause| StepFailed {
            place,
            step: Box::new(steps[place].clone()),
            cause,
        };
        let Some(first) = places.first().copied() else { return Ok(()) };
        let refused = self.socket.requests(messages).map_err(|error| fail(first, error.into()))?;
        let refused = refused.into_iter().filter(|(at, why)| {
            !self.is_made_plain(&steps[places[*at]])
                && !is_promoted(&steps[..=places[*at]], why)
                && !is_back(&steps[places[*at]], why)
        });
        match refused.min_by_key(|(at, _)| *at) {
            Some((at, refused)) => Err(fail(places[at], StepCause::Refused { refused })),
            None => Ok(()),
        }
    }

    /// Whether a link that was refused with what there is no word for can be made without. What it then lacks is seen when
    /// it is looked at, and set if it can be; a link that isn't there at all is the worse.
    fn is_made_plain(&mut self, step: &Step) -> bool {
        let Step::CreateLink(new) = step else { return false };
        let mut plain = new.clone();
        for list in [&mut plain.attributes, &mut plain.kind_attributes, &mut plain.peer_attributes] {
            list.clear();
        }
        let Ok(ready) = messages(&Step::CreateLink(plain.clone()), &self.names) else { return false };
        plain != *new && self.socket.requests(ready).is_ok_and(|refused| refused.is_empty())
    }

    /// The kernel takes no route that sends from an address which is still being probed. Where there is such a route,
    /// this waits for the probe, and no longer than one lasts.
    fn await_probe(&mut self, source: IpAddr) -> Result<(), ObserveError> {
        let until = Instant::now() + PROBE;
        while observe::is_tentative(&mut self.socket, source)? && Instant::now() < until {
            std::thread::sleep(PROBE_STEP);
        }
        Ok(())
    }

    /// A link that goes or comes has another index the next time it is named.
    fn forget(&mut self, step: &Step) {
        let (name, peer) = match step {
            Step::DeleteLink { link, .. } => (link, None),
            Step::CreateLink(new) => (&new.name, new.peer.as_ref()),
            _ => return,
        };
        self.names.by_name.remove(name);
        peer.map(|peer| self.names.by_name.remove(peer));
    }

    /// The kernel adds to the map of priorities that a vlan sends with; what is in it and not wanted any more has to be
    /// sent as 0.
    fn unmapped<'a>(&mut self, step: &'a Step) -> Result<Cow<'a, Step>, ObserveError> {
        const MAP: &str = "egress-qos-map";
        let Step::SetOptions { link, kind: LinkKind::Vlan, options } = step else {
            return Ok(Cow::Borrowed(step));
        };
        let Some((name, OptValue::Pairs(wanted))) = options.iter().find(|(name, _)| name.as_str() == MAP)
        else {
            return Ok(Cow::Borrowed(step));
        };
        let (seen, names) = observe::observe(&mut self.socket)?;
        self.names = names;
        let mut pairs = match seen.state.links.get(link).and_then(|link| link.options.get(name)) {
            Some(OptValue::Pairs(found)) => found.iter().map(|(from, _)| (*from, 0)).collect(),
            _ => BTreeMap::new(),
        };
        pairs.extend(wanted.iter().copied());
        let mut options = options.clone();
        options.insert(*name, OptValue::Pairs(pairs.into_iter().collect()));
        Ok(Cow::Owned(Step::SetOptions { link: link.clone(), kind: LinkKind::Vlan, options }))
    }
}

/// The IPv6 address that a route to be set sends from.
fn source(step: &Step) -> Option<IpAddr> {
    match step {
        Step::AddRoute { route } | Step::AppendRoute { route } | Step::ReplaceRoute { route } => {
            route.source.filter(IpAddr::is_ipv6)
        }
        Step::Restore { kept } => kept.source.filter(IpAddr::is_ipv6),
        _ => None,
    }
}

/// Whether the last of these steps adds an address that should have gone with its primary, but the host promotes
/// secondaries (a sysctl): it is there, and in its place.
fn is_promoted(steps: &[Step], why: &Refused) -> bool {
    let [before @ .., Step::AddAddress { link, address }] = steps else { return false };
    let took = |step: &Step| matches!(step, Step::DeleteAddress { link: from, .. } if from == link);
    why.errno == Errno::EEXIST && address.family() == Family::Ipv4 && before.iter().any(took)
}

/// Whether this step puts back what is there again, by the kernel or whoever keeps it.
fn is_back(step: &Step, why: &Refused) -> bool {
    matches!(step, Step::Restore { .. }) && why.errno == Errno::EEXIST
}
