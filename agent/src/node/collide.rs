//! Addresses that somebody else uses on the wire (rule 10): what is asked before one is put on a link, what follows from an
//! answer, and what is found out only later.
//!
//! Asked for is what is held and on no link yet. What was on one a moment ago and was taken off by something else is put
//! back at once: a stranger that came in that moment would have asked itself, and been answered. What could not be asked
//! for, since its link had no carrier, is asked for when it has. Cost: nothing where nothing is new.

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;
use std::time::{Duration, Instant};

use crds::names::annotation;
use kube::ResourceExt;
use policy::claim::{Action, ClaimKey, Lease, Outcome, Stranger};
use policy::state::{IfName, Mac};

use super::kernel::{Asks, HostError, placed};
use super::look::Selected;
use super::{Agent, NodeError};
use crate::clock::now;
use crate::netlink::{Observation, Placed};
use crate::telemetry::warn;
use crate::wire::{NoTiming, Taken, Timing, Unasked};

/// How long ago an address may have been on a link to be put back without a question.
const MOMENT: Duration = Duration::from_secs(10);

/// For so many addresses may one machine answer; who answers for more answers for all (proxy ARP), and asking for one
/// after the other would use up the pool.
const MOST: usize = 8;

/// What an agent knows of the wire; a restart forgets it.
#[derive(Default)]
pub(super) struct Memory {
    /// When something took them off a link.
    lost: BTreeMap<IpAddr, Instant>,
    /// On a link, and not asked for yet; for how long they are to be.
    unasked: BTreeMap<IpAddr, (IfName, Timing)>,
    /// At which count of the kernel's changes that was last tried.
    tried: Option<u64>,
    /// Who has answered for what.
    answered: BTreeMap<Mac, BTreeSet<IpAddr>>,
}

impl Memory {
    /// The host was looked at once more.
    pub(super) fn seen(&mut self, before: Option<&Observation>, now: &Observation) {
        let there: BTreeSet<IpAddr> = placed(now).map(|(_, address)| address.ip).collect();
        let was = before.into_iter().flat_map(placed).map(|(_, address)| address.ip);
        self.lost.extend(was.map(|ip| (ip, Instant::now())));
        self.lost.retain(|ip, at| !there.contains(ip) && at.elapsed() < MOMENT);
    }

    /// It is held from now on: whatever was before, it is asked for.
    pub(super) fn held(&mut self, lease: &Lease) {
        for ip in &lease.ips {
            self.lost.remove(ip);
        }
    }

    fn was_here(&self, ip: IpAddr) -> bool {
        self.lost.get(&ip).is_some_and(|at| at.elapsed() < MOMENT)
    }

    /// Does this machine answer for whatever is asked?
    fn answers_for_all(&mut self, mac: Mac, ip: IpAddr) -> bool {
        let answered = self.answered.entry(mac).or_default();
        if answered.len() < MOST {
            answered.insert(ip);
        }
        !answered.contains(&ip)
    }
}

impl Agent {
    /// For how long the wire is asked when this policy is applied: as the agent is told, or as the policy says.
    pub(super) fn timing_of(&self, one: &Selected) -> Result<Timing, String> {
        match one.object.annotations().get(annotation::WIRE_PROBE) {
            None => Ok(self.timing),
            Some(text) => text.parse().map_err(|wrong: NoTiming| {
                format!("metadata.annotations[{}]: {wrong}", annotation::WIRE_PROBE)
            }),
        }
    }

    /// What the wire is asked for when a state is applied that may have any address that is held.
    pub(super) fn asks(&self, timing: Timing) -> Asks {
        let pooled: BTreeSet<IpAddr> = self.host.held().collect();
        let ips = pooled.iter().filter(|ip| !self.wire.was_here(**ip)).copied().collect();
        Asks { pooled, ips, timing }
    }

    /// These went on a link without a question.
    pub(super) fn went_unasked(&mut self, unasked: Vec<(Placed, Unasked)>, timing: Timing) {
        for (at, why) in unasked {
            match &why {
                // Nobody is there who could have it.
                Unasked::NoArp(_) => continue,
                Unasked::NoCarrier(_) => {
                    warn(&format!(
                        "{}: {} can't be asked for: {why}; it is used, and asked for when there is one",
                        self.name, at.ip
                    ));
                }
                Unasked::Broken { .. } => {
                    warn(&format!("{}: {} can't be asked for: {why}; it is used", self.name, at.ip));
                    continue;
                }
            }
            self.wire.unasked.insert(at.ip, (at.link, timing));
        }
    }

    /// Somebody else has these. Of what is held, another is asked for: that is journalled, and what is on a link already is
    /// taken off. Whether there was any.
    pub(super) async fn collided(&mut self, taken: Vec<Taken>) -> Result<bool, NodeError> {
        let mut did = false;
        for Taken { at, mac } in taken {
            let Some((key, _)) = self.holder(at.ip) else { continue };
            let mac = match mac {
                Some(mac) => Some(mac),
                None => self.kernel.neighbour(at.clone()).await?,
            };
            if mac.is_some_and(|mac| self.wire.answers_for_all(mac, at.ip)) {
                continue;
            }
            let mac = mac.map(|mac| mac.to_string()).unwrap_or_default();
            let by = Stranger { mac, interface: at.link.to_string() };
            let Some(action @ Action::Journal { .. }) = self.host.collided(at.ip, &by) else { continue };
            self.journal(&action)?;
            self.host.done(&action, &Outcome::Done, now());
            self.telling.collided(
                self.objects.policies.get(key.policy.as_str()).as_deref(),
                &key,
                at.ip,
                &by,
            );
            self.wire.unasked.remove(&at.ip);
            if self.addresses().any(|address| address.ip == at.ip) {
                self.kernel.remove(BTreeSet::from([at.ip])).await?;
                self.woken.kernel();
            }
            did = true;
        }
        Ok(did)
    }

    /// A change came to nothing since somebody else has one of its addresses. Whether another is asked for; if not, why that
    /// would not help.
    pub(super) async fn declined(&mut self, error: HostError) -> Result<Result<(), HostError>, NodeError> {
        let taken = error.strangers();
        if self.collided(taken.clone()).await? {
            return Ok(Ok(()));
        }
        let for_all = taken.into_iter().find_map(|Taken { at, mac }| {
            let answered = self.wire.answered.get(&mac?)?;
            let others = (answered.len() >= MOST && !answered.contains(&at.ip)).then_some(answered.len())?;
            Some(HostError::AnswersForAll { at, mac: mac?, others })
        });
        Ok(Err(for_all.unwrap_or(error)))
    }

    /// Looks whether an address that is on a link is another's after all. Whether one was.
    pub(super) async fn collisions(&mut self) -> Result<bool, NodeError> {
        let Some(seen) = &self.seen else { return Ok(false) };
        let duplicate = seen.observation.duplicate.iter().map(|at| Taken { at: at.clone(), mac: None });
        let mut taken: Vec<Taken> = duplicate.filter(|taken| self.holder(taken.at.ip).is_some()).collect();
        taken.extend(self.ask_late().await?);
        self.collided(taken).await
    }

    /// Asks for what could not be asked for when it was put on its link, if that may have changed.
    async fn ask_late(&mut self) -> Result<Vec<Taken>, NodeError> {
        let Some(seen) = &self.seen else { return Ok(Vec::new()) };
        if self.wire.unasked.is_empty() || self.wire.tried == Some(seen.count) {
            return Ok(Vec::new());
        }
        self.wire.tried = Some(seen.count);
        let there: BTreeSet<(IfName, IpAddr)> =
            placed(&seen.observation).map(|(link, address)| (link.clone(), address.ip)).collect();
        self.wire.unasked.retain(|ip, (link, _)| there.contains(&(link.clone(), *ip)));
        let places: Vec<Placed> =
            self.wire.unasked.iter().map(|(ip, (link, _))| Placed { link: link.clone(), ip: *ip }).collect();
        let timing = self.wire.unasked.values().map(|(_, timing)| *timing).max().unwrap_or(Timing::OFF);
        let answers = self.kernel.ask_wire(places, timing).await?;
        let silent: BTreeSet<IpAddr> = answers
            .unasked
            .iter()
            .filter(|(_, why)| matches!(why, Unasked::NoCarrier(_)))
            .map(|(at, _)| at.ip)
            .collect();
        self.wire.unasked.retain(|ip, _| silent.contains(ip));
        Ok(answers.taken)
    }

    /// The claim that holds this address.
    fn holder(&self, ip: IpAddr) -> Option<(ClaimKey, Lease)> {
        self.host.journal.iter().find_map(|(key, record)| match &record.phase {
            policy::claim::Phase::Holding(lease) if lease.ips.contains(&ip) => {
                Some((key.clone(), lease.clone()))
            }
            _ => None,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MAC: Mac = Mac([2, 0, 0, 0, 0, 9]);

    fn ip(last: u8) -> IpAddr {
        IpAddr::from([10, 10, 10, last])
    }

    #[test]
    fn who_answers_for_everything_is_found_out() {
        let mut memory = Memory::default();
        let many = u8::try_from(MOST).unwrap();
        for last in 0..many {
            assert!(!memory.answers_for_all(MAC, ip(last)), "{last}");
        }
        assert!(memory.answers_for_all(MAC, ip(many)));
        // What it answered for before it may answer for again, and another machine is another.
        assert!(!memory.answers_for_all(MAC, ip(0)));
        assert!(!memory.answers_for_all(Mac([2, 0, 0, 0, 0, 8]), ip(many)));
    }
}
