//! What docs/claims.md leaves possible: of which hosts an address may be on a second NIC, and until when.
//!
//! An excuse is given for an address of a host, as narrowly as docs/claims.md words it:
//! - the Node was deleted and the host ran on unreachable for a quarantine, or came back later without the API;
//! - the store was restored, and when the time of its hold was over nothing in it said that the host holds the
//!   address: its agent was silent, or had lost its journal.
//!
//! It ends when the address is no longer the host's, or is so by right.

use std::collections::BTreeSet;
use std::net::IpAddr;

use policy::claim::{Phase, Request, Slot};

use crate::model::world::{Agent, HostWorld, World};

impl World {
    /// A quarantine is over: who could not hear, and of what?
    pub(super) fn excuse_who_missed_it(&mut self) {
        for host in 0..self.hosts.len() {
            if self.hears(host) {
                continue;
            }
            let HostWorld { agent, nic, host: own, .. } = &*self.hosts[host];
            let mut missed: BTreeSet<IpAddr> =
                nic.iter().filter(|ip| self.lost_node(host, **ip)).copied().collect();
            if *agent == Agent::Running {
                missed.extend(own.held().filter(|ip| self.lost_node(host, *ip)));
            }
            if self.on_hold() && self.met {
                let used = nic.iter().copied().chain(own.held());
                missed.extend(used.filter(|ip| !self.asserted(host, *ip)));
            }
            if !missed.is_empty() {
                self.host_mut(host).excused.extend(missed);
            }
        }
    }

    /// An agent that starts or is no longer cut off. With the API reachable it reads its Node before it applies its
    /// journal (rule 7); without, the journal is all that it has.
    pub(super) fn looks_again(&mut self, host: usize) -> bool {
        let HostWorld { nic, host: own, excused, .. } = &*self.hosts[host];
        let blind: BTreeSet<IpAddr> =
            own.held().filter(|ip| !nic.contains(ip) && self.lost_node(host, *ip)).collect();
        let excused = match self.hears(host) {
            true => excused - &blind,
            false => excused | &blind,
        };
        self.host_mut(host).excused = excused;
        true
    }

    pub(super) fn runs_again(&mut self, host: usize) -> bool {
        self.host_mut(host).agent = Agent::Running;
        self.looks_again(host)
    }

    pub(super) fn end_excuses(&mut self) {
        for host in 0..self.hosts.len() {
            let HostWorld { nic, host: own, excused, .. } = &*self.hosts[host];
            let stands = |ip: &IpAddr| {
                let used = nic.contains(ip) || own.held().any(|held| held == *ip);
                used && !self.backed(host, *ip) && !(self.on_hold() && self.asserted(host, *ip))
            };
            if !excused.iter().all(stands) {
                let excused = excused.iter().copied().filter(stands).collect();
                self.host_mut(host).excused = excused;
            }
        }
    }

    /// Is the Node gone under which the host has this address?
    fn lost_node(&self, host: usize, ip: IpAddr) -> bool {
        let world = &self.hosts[host];
        let journalled = self.holder_of(host, ip).map(|(_, record)| &record.node_uid);
        let uid = journalled.or_else(|| world.under.get(&ip));
        uid.is_some_and(|uid| !self.store.is_live(&world.name, uid))
    }

    /// Does the store say, in the host's own words, that it holds this address?
    fn asserted(&self, host: usize, ip: IpAddr) -> bool {
        let id = self.holder_of(host, ip).map(|(_, record)| &record.id);
        let asserts = |request: &Request| {
            let holds = request.holds.as_ref().is_some_and(|lease| lease.ips.contains(&ip));
            request.want && holds && id.is_none_or(|id| *id == request.id)
        };
        let own = self.store.enactment(&self.hosts[host].name);
        let slots = own.into_iter().flat_map(|own| own.slots.values());
        slots.filter_map(|slot: &Slot| slot.request.as_ref()).any(asserts)
    }

    fn backed(&self, host: usize, ip: IpAddr) -> bool {
        let entry = self.store.ledger().and_then(|ledger| ledger.allocations.get(&ip));
        self.holder_of(host, ip)
            .is_some_and(|(_, record)| entry.is_some_and(|entry| entry.is_held_by(&record.id)))
    }
}

impl HostWorld {
    /// Keeps [`Self::under`] true.
    pub(super) fn note_uids(&mut self) {
        let Self { nic, under, host, .. } = self;
        under.retain(|ip, _| nic.contains(ip));
        for record in host.journal.values() {
            if let Phase::Holding(lease) = &record.phase {
                let used = lease.ips.iter().filter(|ip| nic.contains(*ip));
                under.extend(used.map(|ip| (*ip, record.node_uid.clone())));
            }
        }
    }
}
