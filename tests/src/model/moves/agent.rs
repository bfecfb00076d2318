//! An agent's moves: what `Host::next` says, done to the model's store, disk and NIC.

use std::collections::{BTreeMap, BTreeSet};

use policy::claim::{
    self, Action, Asked, Enactment, HostState, Inheritance, NodeSeen, Outcome, Seen, SlotKey,
};
use policy::pool::Barred;

use crate::model::fault::{Breach, Fault};
use crate::model::world::{Agent, Config, World, claim_key};

impl World {
    /// The agent does its next thing, and what only it can see follows at once: where no crash is to come,
    /// nothing can happen between.
    pub(in crate::model) fn agent(&mut self, host: usize, config: &Config) -> bool {
        let Some(action) = self.agent_action(host, config) else {
            return false;
        };
        let acted = self.act(host, &action, config);
        let crash = [Fault::AgentCrash, Fault::HostOff, Fault::JournalLost]
            .iter()
            .any(|f| self.left.contains(f));
        if !acted || crash {
            return acted;
        }
        while let Some(action @ (Action::Journal { .. } | Action::Announce { .. })) =
            self.agent_action(host, config)
        {
            self.act(host, &action, config);
        }
        true
    }

    pub(in crate::model) fn act(&mut self, host: usize, action: &Action, config: &Config) -> bool {
        let mut outcome = Outcome::Done;
        match action {
            Action::Journal { .. } | Action::Announce { .. } => {}
            Action::AddToNic { lease, .. } => match lease.ips.iter().find(|ip| self.wire.contains(*ip)) {
                Some(ip) => {
                    outcome = Outcome::Taken {
                        ip: *ip,
                        mac: "stranger".to_owned(),
                    }
                }
                None => self.hosts[host].nic.extend(&lease.ips),
            },
            Action::RemoveFromNic { ips } => ips.iter().for_each(|ip| {
                self.hosts[host].nic.remove(ip);
            }),
            Action::Report { node_uid, shows } => {
                let node = self.hosts[host].name.clone();
                let state = HostState {
                    node: node.clone(),
                    node_uid: node_uid.clone(),
                    stamp: self.fresh_stamp(),
                    shows: shows.clone(),
                };
                self.store.refresh.remove(&node);
                self.store.states.insert(node, state);
            }
            Action::Confirm { key, lease } => {
                let id = &self.hosts[host].host.journal[key].id;
                let backed = claim::confirms(self.store.ledger(), id, lease);
                outcome = Outcome::Backed(backed || config.breach == Some(Breach::Unconfirmed));
            }
            Action::Inherit {
                id, lease, node_uid, ..
            } => {
                let verdict = self
                    .store
                    .ledger()
                    .map_or(Inheritance::NotNow, |l| claim::inherit(l, id, lease, node_uid));
                match verdict {
                    Inheritance::Write(ledger) => {
                        self.write_ledger(ledger);
                        return true;
                    }
                    Inheritance::Done => outcome = Outcome::Inherited,
                    Inheritance::Lost => outcome = Outcome::NotOurs,
                    Inheritance::NotNow => outcome = Outcome::Asserted,
                }
            }
            api => self.write_own(host, api, config),
        }
        let now = self.now;
        let agent = &mut self.hosts[host].host;
        let after = agent.after(action, &outcome);
        agent.done(action, &outcome, now);
        if let Some(follow_up) = after {
            agent.done(&follow_up, &Outcome::Done, now);
        }
        true
    }

    /// The agent's writes to its own enactment.
    pub(in crate::model) fn write_own(&mut self, host: usize, action: &Action, config: &Config) {
        let node = self.hosts[host].name.clone();
        match action {
            Action::CreateEnactment {
                policy,
                node_uid,
                slots,
            } => {
                let uid = self.fresh_enactment().as_str().into();
                let enactment = Enactment {
                    uid,
                    node: node.clone(),
                    node_uid: node_uid.clone(),
                    policy: policy.clone(),
                    deleting: None,
                    slots: slots.clone(),
                };
                self.store.enactments.entry(node).or_insert(enactment);
            }
            Action::WriteRequest { key, request } => {
                let Some(enactment) = self.store.enactments.get_mut(&node) else {
                    return;
                };
                enactment.slots.entry(key.slot()).or_default().request = Some(request.clone());
            }
            Action::RemoveSlot { key } => {
                let Some(enactment) = self.store.enactments.get_mut(&node) else {
                    return;
                };
                enactment.slots.remove(&key.slot());
                if config.breach == Some(Breach::ReleasedBeforeOff) {
                    self.hosts[host].nic.clear();
                }
            }
            Action::DropEnactment { node_uid, .. } => {
                self.store
                    .enactments
                    .retain(|of, enactment| *of != node || enactment.node_uid != *node_uid);
            }
            _ => {}
        }
    }

    /// What the agent of a host would do next.
    pub(in crate::model) fn agent_action(&self, host: usize, config: &Config) -> Option<Action> {
        let world = &self.hosts[host];
        if world.agent != Agent::Running {
            return None;
        }
        let node = match self.store.nodes.get(&world.name) {
            _ if !world.reachable => NodeSeen::Unreachable,
            None => NodeSeen::Gone,
            Some(uid) => NodeSeen::Is(uid.clone()),
        };
        let mut wants = BTreeMap::new();
        if self.store.policy {
            wants.insert(claim_key(), None);
        }
        let own = self.store.enactments.get(&world.name);
        let enactments = own
            .map(|own| (own.policy.clone(), own.clone()))
            .into_iter()
            .collect();
        let believed_off = BTreeSet::new();
        let unreleased = config.breach == Some(Breach::ReleasedBeforeOff) && !self.store.policy;
        let seen = Seen {
            now: self.now,
            node: &node,
            ready: true,
            wants: &wants,
            enactments: &enactments,
            state: self.store.states.get(&world.name),
            refresh: self.store.refresh.contains(&world.name),
            nic: if unreleased { &believed_off } else { &world.nic },
            fresh_id: &self.fresh_id(host, config),
        };
        world.host.next(&seen)
    }

    /// An agent serves its own request: first the ledger, then the answer.
    pub(in crate::model) fn self_serve(&mut self, host: usize, config: &Config) -> bool {
        let world = &self.hosts[host];
        if world.agent != Agent::Running || !world.reachable {
            return false;
        }
        let Some(own) = self.store.enactments.get(&world.name) else {
            return false;
        };
        let live = self.store.is_live(&own.node, &own.node_uid);
        let keys: Vec<&SlotKey> = own.slots.keys().collect();
        let labels = BTreeMap::new();
        let asked: Vec<Asked<'_>> = keys
            .into_iter()
            .map(|key| Asked {
                enactment: own,
                key,
                labels: &labels,
                live,
                ready: true,
                fresh: true,
            })
            .collect();
        let Some(ledger) = self.store.ledger() else {
            return false;
        };
        let served = claim::serve(ledger, &config.pool, &Barred::default(), &asked, self.now);
        if let Some(ledger) = served.ledger {
            self.write_ledger(ledger);
            return true;
        }
        self.land(&served.answers)
    }
}
