//! What happens to a world: time passes, things break, things come back.

use std::collections::BTreeSet;
use std::net::IpAddr;

use policy::claim::{self, ClaimKey, Hold, Ledger, Phase};

use crate::model::config::{Config, QUARANTINE};
use crate::model::fault::{Breach, Fault};
use crate::model::moves::{Move, count};
use crate::model::world::{Agent, World};

impl World {
    /// A quarantine's length passes. Agents that run and reach the API have by then heard that their Node is
    /// gone, and re-asserted what they hold to a pool on hold; those that could not are excused (docs/claims.md).
    pub(in crate::model) fn tick(&mut self, config: &Config) -> bool {
        let on_hold = self.store.ledger().is_some_and(|ledger| ledger.hold.is_some());
        for host in 0..self.hosts.len() {
            let able = self.hosts[host].agent == Agent::Running && self.hosts[host].reachable;
            if able
                && (on_hold || self.node_changed(host))
                && self.after(Move::Agent(count(host)), config).is_some()
            {
                return false;
            }
            if !able && self.holds_something(host) && (on_hold || self.node_changed(host)) {
                self.host_mut(host).excused = true;
            }
        }
        self.now += QUARANTINE;
        true
    }

    /// Is the Node that this host's journal was made under gone?
    pub(in crate::model) fn node_changed(&self, host: usize) -> bool {
        let world = &self.hosts[host];
        let live = self.store.nodes.get(&world.name);
        let stale = world.host.journal.values().any(|record| Some(&record.node_uid) != live);
        stale || (live.is_none() && !world.nic.is_empty()) || self.unknown_on_nic(host)
    }

    /// A marked address of which the journal knows nothing (it was lost).
    pub(in crate::model) fn unknown_on_nic(&self, host: usize) -> bool {
        let world = &self.hosts[host];
        let journalled: BTreeSet<IpAddr> =
            world.host.journal.values().flat_map(|record| held(&record.phase)).collect();
        !world.nic.is_subset(&journalled)
    }

    pub(in crate::model) fn holds_something(&self, host: usize) -> bool {
        let world = &self.hosts[host];
        !world.nic.is_empty()
            || world.host.journal.values().any(|record| matches!(record.phase, Phase::Holding(_)))
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
            Fault::JournalLost => {
                // An exception that docs/claims.md names: a journal lost together with a restore.
                self.host_mut(target).excused |= config.faults.contains(&Fault::StoreRestored);
                self.stop(target, Agent::Down, true)
            }
            Fault::HostOff => {
                self.host_mut(target).nic.clear();
                self.stop(target, Agent::Off, false)
            }
            Fault::AgentPause => {
                let running = self.hosts[target].agent == Agent::Running;
                self.host_mut(target).agent = Agent::Paused;
                running
            }
            Fault::Partition => std::mem::replace(&mut self.host_mut(target).reachable, false),
            Fault::NodeDeleted => self.store_mut().nodes.remove(&config.names[target]).is_some(),
            Fault::PolicyDeleted => std::mem::replace(&mut self.store_mut().policy, false),
            Fault::PoolDeleted => self.store_mut().pool.take().is_some(),
            Fault::Reset => {
                let Some(ledger) = self.store.ledger().cloned() else {
                    return false;
                };
                self.write_ledger(Ledger { reset: true, ..ledger });
                true
            }
            Fault::EnactmentDeleted => self.store_mut().enactments.remove(&config.names[target]).is_some(),
            Fault::StoreRestored => self.restore(config),
            Fault::ApplyFails => {
                self.host_mut(target).waits = config.policies.clone();
                true
            }
            Fault::WireTaken => {
                let free = config.ips().find(|ip| !self.hosts.iter().any(|host| host.nic.contains(ip)));
                free.is_some_and(|ip| self.wire.insert(ip))
            }
        }
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
        }
        true
    }

    /// The store goes back to its backup, put on hold as the restore procedure says (rule 6).
    pub(in crate::model) fn restore(&mut self, config: &Config) -> bool {
        let Some(backup) = self.backup.take() else {
            return false;
        };
        self.store = backup;
        self.restored = true;
        let until = self.now + QUARANTINE;
        if let Some(ledger) = self.ledger_mut().filter(|_| config.breach != Some(Breach::NoHold)) {
            ledger.hold = Some(Hold { until });
        }
        true
    }

    /// The journalled id behind an address on a NIC.
    pub(in crate::model) fn holder_of(&self, host: usize, ip: IpAddr) -> Option<(&ClaimKey, &claim::Record)> {
        self.hosts[host].host.journal.iter().find(|(_, record)| held(&record.phase).contains(&ip))
    }
}

fn held(phase: &Phase) -> Vec<IpAddr> {
    match phase {
        Phase::Holding(lease) => lease.ips.clone(),
        _ => Vec::new(),
    }
}
