//! What happens to a world: time passes, things break, things come back.

use std::net::IpAddr;

use policy::claim::{self, ClaimKey, Hold, Host, Ledger, Outcome, Phase, Stranger};

use crate::model::config::{Config, QUARANTINE};
use crate::model::fault::{Breach, Fault};
use crate::model::moves::{Move, count};
use crate::model::store::First;
use crate::model::world::{Agent, HostWorld, World};

impl World {
    /// A quarantine's length passes. Agents that run and reach the API have by then heard that their Node is
    /// gone, re-asserted what they hold to a pool on hold, and taken off what nobody knows of; some of those that
    /// could not are excused.
    pub(in crate::model) fn tick(&mut self, config: &Config) -> bool {
        for host in 0..self.hosts.len() {
            let due = self.on_hold() || self.node_changed(host) || self.unknown_on_nic(host);
            if due && self.hears(host) && self.after(Move::Agent(count(host)), config).is_some() {
                return false;
            }
        }
        self.excuse_who_missed_it();
        self.now += QUARANTINE;
        true
    }

    pub(in crate::model) fn on_hold(&self) -> bool {
        self.store.ledger().is_some_and(|ledger| ledger.hold.is_some())
    }

    /// Does its agent run and reach the API?
    pub(in crate::model) fn hears(&self, host: usize) -> bool {
        self.hosts[host].agent == Agent::Running && self.hosts[host].reachable
    }

    /// Is the Node gone under which this host's journal was made, or what is on its NIC put there?
    fn node_changed(&self, host: usize) -> bool {
        let HostWorld { name, host, under, .. } = &*self.hosts[host];
        let live = self.store.nodes.get(name);
        let journalled = host.journal.values().map(|record| &record.node_uid);
        journalled.chain(under.values()).any(|uid| Some(uid) != live)
    }

    /// A marked address of which the journal knows nothing (it was lost).
    fn unknown_on_nic(&self, host: usize) -> bool {
        let HostWorld { host, nic, .. } = &*self.hosts[host];
        !nic.iter().all(|ip| host.held().any(|held| held == *ip))
    }

    pub(in crate::model) fn create_node(&mut self, host: usize, config: &Config) -> bool {
        let name = self.hosts[host].name.clone();
        let uid = self.fresh_node();
        if config.breach == Some(Breach::InheritsByName) {
            self.host_mut(host).host.journal.values_mut().for_each(|record| record.node_uid = uid.clone());
        }
        self.store_mut().nodes.insert(name, uid);
        true
    }

    pub(in crate::model) fn fault(&mut self, fault: Fault, target: usize, config: &Config) -> bool {
        let Some(at) = self.left.iter().position(|left| *left == fault) else {
            return false;
        };
        self.left.remove(at);
        match fault {
            Fault::AgentCrash => self.stop(target, Agent::Down, false),
            Fault::JournalLost => self.stop(target, Agent::Down, true),
            Fault::HostOff => {
                self.host_mut(target).clear_nic();
                self.stop(target, Agent::Off, false)
            }
            Fault::HostReinstalled => {
                self.store_mut().nodes.remove(&config.names[target]);
                let world = self.host_mut(target);
                world.clear_nic();
                world.good.clear();
                world.host = Host::default();
                world.agent = Agent::Off;
                true
            }
            Fault::AgentPause => {
                let running = self.hosts[target].agent == Agent::Running;
                self.host_mut(target).agent = Agent::Paused;
                running
            }
            Fault::Partition => std::mem::replace(&mut self.host_mut(target).reachable, false),
            Fault::NodeDeleted => self.store_mut().nodes.remove(&config.names[target]).is_some(),
            Fault::PolicyDeleted => {
                self.store_mut().reset_policy = false;
                std::mem::replace(&mut self.store_mut().policy, false)
            }
            Fault::PoolDeleted => self.store_mut().pool.take().is_some(),
            Fault::Reset => {
                let Some(ledger) = self.store.ledger().cloned() else {
                    return false;
                };
                self.write_ledger(Ledger { reset: true, ..ledger });
                true
            }
            Fault::PolicyReset => {
                self.store.policy && !std::mem::replace(&mut self.store_mut().reset_policy, true)
            }
            Fault::NodeReset => {
                let name = &config.names[target];
                self.store.enactment(name).is_some() && self.store_mut().reset_nodes.insert(name.clone())
            }
            Fault::EnactmentDeleted => {
                let name = &config.names[target];
                self.store_mut().remove_enactments(|own| own.node == *name)
            }
            Fault::StoreRestored => self.restore(config),
            Fault::ApplyFails => {
                self.host_mut(target).waits = config.policies.clone();
                true
            }
            Fault::FoundTaken => self.found_taken(target),
            Fault::RangeDrained => self.store.first() == First::Gives && self.edit_pool(First::Drains),
            Fault::WireTaken => {
                let free = config.ips().find(|ip| !self.hosts.iter().any(|host| host.nic.contains(ip)));
                free.is_some_and(|ip| self.wire.insert(ip))
            }
        }
    }

    /// A stranger has an address that is on a NIC, and the host finds out: its agent journals that another is to be asked
    /// for and takes it off, at once.
    fn found_taken(&mut self, host: usize) -> bool {
        let HostWorld { agent: Agent::Running, nic, host: own, .. } = &*self.hosts[host] else {
            return false;
        };
        let Some(ip) = nic.first().copied() else { return false };
        let Some(journalled) = own.collided(ip, &Stranger::default()) else { return false };
        self.wire.insert(ip);
        let now = self.now;
        let world = self.host_mut(host);
        world.host.done(&journalled, &Outcome::Done, now);
        world.nic.remove(&ip);
        world.note_uids();
        true
    }

    /// May the first range be removed? The CRD lets only those go of which nothing is held, by a proven ledger's word.
    pub(in crate::model) fn is_drained(&self) -> bool {
        let idle = |ledger: &Ledger| {
            ledger.gives() && !ledger.allocations.keys().any(|ip| *ip == IpAddr::from([10, 0, 0, 1]))
        };
        self.store.first() == First::Drains && self.store.ledger().is_some_and(idle)
    }

    pub(in crate::model) fn stop(&mut self, host: usize, to: Agent, wipe: bool) -> bool {
        let world = self.host_mut(host);
        if !matches!(world.agent, Agent::Running | Agent::Paused) {
            return false;
        }
        world.agent = to;
        world.host = world.host.restarted();
        if wipe {
            world.host.journal.clear();
            world.good.clear();
        }
        true
    }

    /// The store goes back to its backup, which was put on hold before it was made (rule 6): that hold has had its time long ago,
    /// and nobody was heard in it.
    pub(in crate::model) fn restore(&mut self, config: &Config) -> bool {
        let Some(backup) = self.backup.take() else {
            return false;
        };
        self.store = backup;
        self.restored = true;
        self.met = config.breach == Some(Breach::HoldOfBackup);
        let until = self.now;
        if let Some(ledger) = self.ledger_mut().filter(|_| config.breach != Some(Breach::NoHold)) {
            ledger.hold = Some(Hold { until });
        }
        true
    }

    /// The journalled id behind an address on a NIC.
    pub(in crate::model) fn holder_of(&self, host: usize, ip: IpAddr) -> Option<(&ClaimKey, &claim::Record)> {
        let holds = |record: &claim::Record| match &record.phase {
            Phase::Holding(lease) => lease.ips.contains(&ip),
            _ => false,
        };
        self.hosts[host].host.journal.iter().find(|(_, record)| holds(record))
    }
}
