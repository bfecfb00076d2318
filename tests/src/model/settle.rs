//! After the faults: one fair schedule to its end, and what must hold there.

use std::net::IpAddr;
use std::rc::Rc;

use super::check::nothing_taken;
use super::config::Config;
use super::moves::{Move, count};
use super::print::Print;
use super::world::{Agent, HostWorld, World};

impl World {
    /// The next state of the fair schedule: what stopped comes back, agents before the controller, the clock
    /// last. `None`: nothing happens any more.
    pub(super) fn settle_step(&self, here: Print, config: &Config) -> Option<(World, Print)> {
        let hosts = 0..count(self.hosts.len());
        let recoveries = hosts
            .clone()
            .flat_map(|h| [Move::Boot(h), Move::Start(h), Move::Resume(h), Move::Heal(h), Move::Applies(h)]);
        let agents = hosts.map(Move::Agent);
        recoveries.chain(agents).chain([Move::Lead(0), Move::Tick]).find_map(|step| {
            let next = self.after(step, config)?;
            let print = next.print(config);
            (print != here).then_some((next, print))
        })
    }

    /// The world with the faults over and the rival gone: where a fair schedule starts.
    /// [`Self::calm`] would change nothing.
    pub(super) fn is_calm(&self) -> bool {
        let idle = self.rival.cache.is_none() && self.rival.pending.is_empty();
        idle && self.left.is_empty() && self.backup.is_none() && self.peeks == 0
    }

    pub(super) fn calm(&self) -> World {
        let mut calm = self.clone();
        calm.left.clear();
        calm.rival = Default::default();
        calm.backup = None;
        calm.peeks = 0;
        calm
    }

    /// What is wrong with a world in which nothing happens any more.
    pub(super) fn unsettled(&self, config: &Config) -> Option<String> {
        let wanting =
            |host: usize| self.store.policy && self.store.nodes.contains_key(&self.hosts[host].name);
        for host in 0..self.hosts.len() {
            let world = &self.hosts[host];
            if world.agent != Agent::Running {
                return Some(format!("agent {} never came back", world.name));
            }
            if !wanting(host) && !world.nic.is_empty() {
                return Some(format!("{} still has {:?} on its NIC", world.name, world.nic));
            }
        }
        // Without a pool holders keep what they have, and nobody can be served.
        let ledger = self.store.ledger()?;
        if self.store.reset_policy || !self.store.reset_nodes.is_empty() {
            return Some("a reset was asked for and is never done".to_owned());
        }
        let on_nics =
            self.hosts.iter().enumerate().flat_map(|(at, host)| host.nic.iter().map(move |ip| (at, *ip)));
        if let Some(why) = on_nics.into_iter().find_map(|(host, ip)| self.unbacked(host, ip)) {
            return Some(why);
        }
        for (ip, entry) in &ledger.allocations {
            let used = self.hosts.iter().any(|host| host.nic.contains(ip) && host.name == entry.node);
            if !used && !self.wire.contains(ip) {
                return Some(format!("{ip} is in the ledger for {} but on no NIC: leaked", entry.node));
            }
        }
        let each = config.wants_of(0, self.store.grown).len();
        // What is in use is not let go because a stranger uses the other (R97), or since more is asked for by now.
        let is_half =
            |host: &&Rc<HostWorld>| !host.nic.is_empty() && host.nic.len() != each && !config.grows();
        if let Some(half) = self.hosts.iter().find(is_half).filter(|_| self.wire.is_empty()) {
            return Some(format!("{} has {:?}: neither all nor none", half.name, half.nic));
        }
        if let Some(world) = self.hosts.iter().find(|world| self.lost_what_it_had(world, config)) {
            return Some(format!("{} had {:?} and has {:?}", world.name, world.good, world.nic));
        }
        if config.naming > 0 {
            return self.lacking(config, wanting);
        }
        // Who has an address of a range that drains keeps it (R97).
        let has = |ip: IpAddr| self.hosts.iter().any(|host| host.nic.contains(&ip));
        let may =
            |ip: &IpAddr| !self.wire.contains(ip) && (config.gives(*ip, self.store.first()) || has(*ip));
        let usable = config.ips().filter(may).count() / each;
        let wanted = (0..self.hosts.len()).filter(|host| wanting(*host)).count();
        let served = self.hosts.iter().filter(|host| !host.nic.is_empty()).count();
        (served < usable.min(wanted)).then(|| format!("{served} of {wanted} served, {usable} can be"))
    }

    /// Did a host let go of what its policy was brought about with, though nothing was taken from anybody?
    fn lost_what_it_had(&self, world: &HostWorld, config: &Config) -> bool {
        let is_wanted = self.store.policy && self.wire.is_empty() && nothing_taken(self, config);
        is_wanted && !world.good.is_subset(&world.nic)
    }

    /// Who wants an address, has none, and could have one that is on nobody's NIC: said where not all addresses would do for
    /// all hosts.
    fn lacking(&self, config: &Config, wanting: impl Fn(usize) -> bool) -> Option<String> {
        let is_free = |ip: &IpAddr| {
            !self.wire.contains(ip)
                && config.gives(*ip, self.store.first())
                && self.hosts.iter().all(|host| !host.nic.contains(ip))
        };
        let lacks = |host: &usize| wanting(*host) && self.hosts[*host].nic.is_empty();
        let (host, ip) = (0..self.hosts.len())
            .filter(lacks)
            .find_map(|host| Some((host, config.would_do(host).find(is_free)?)))?;
        Some(format!("{} has none, and {ip} is free", self.hosts[host].name))
    }

    /// Is an address on a NIC that the ledger does not hold for this host's id?
    pub(super) fn unbacked(&self, host: usize, ip: IpAddr) -> Option<String> {
        let name = &self.hosts[host].name;
        let Some((_, record)) = self.holder_of(host, ip) else {
            return Some(format!("{ip} is on the NIC of {name}, but not in its journal"));
        };
        let ledger = self.store.ledger()?;
        let held = ledger.allocations.get(&ip).is_some_and(|entry| entry.is_held_by(&record.id));
        (!held).then(|| format!("{ip} is on the NIC of {name}, but not Held by {}", record.id))
    }
}
