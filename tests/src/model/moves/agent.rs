//! An agent's moves: what `Host::next` says, done to the model's store, disk and NIC.

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;
use std::rc::Rc;
use std::sync::LazyLock;

use policy::claim::{
    self, Action, Asked, ClaimKey, Enactment, HostState, Inheritance, NodeSeen, Outcome, PolicyName,
    RequestId, Seen, Stranger,
};
use policy::pool::Barred;

use crate::model::config::Config;
use crate::model::fault::{Breach, Fault};
use crate::model::world::{Agent, World};

/// Stands where no id is needed.
static NO_ID: LazyLock<RequestId> = LazyLock::new(|| RequestId::new("none"));

impl World {
    /// The agent does its next thing, and what only it can see follows at once: where no crash is to come,
    /// nothing can happen between.
    pub(in crate::model) fn agent(&mut self, host: usize, config: &Config) -> bool {
        let Some(action) = self.agent_action(host, config) else {
            return false;
        };
        let acted = self.act(host, &action, config);
        let crash =
            [Fault::AgentCrash, Fault::HostOff, Fault::JournalLost].iter().any(|f| self.left.contains(f));
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
            Action::Announce { .. } => {}
            Action::Journal { .. } => self.used_id(),
            Action::AddToNic { lease, .. } => match lease.ips.iter().find(|ip| self.wire.contains(*ip)) {
                Some(ip) => outcome = Outcome::Taken { ip: *ip, by: Stranger::default() },
                None => self.host_mut(host).nic.extend(&lease.ips),
            },
            Action::RemoveFromNic { ips } => self.host_mut(host).nic.retain(|ip| !ips.contains(ip)),
            Action::Report { node_uid, shows } => {
                let node = self.hosts[host].name.clone();
                let state = HostState {
                    node: node.clone(),
                    node_uid: node_uid.clone(),
                    stamp: self.fresh_stamp(),
                    shows: shows.clone(),
                };
                let store = self.store_mut();
                store.refresh.remove(&node);
                store.states.insert(node, state);
            }
            Action::Confirm { key, lease } => {
                let id = &self.hosts[host].host.journal[key].id;
                let backed = claim::confirms(self.store.ledger(), id, lease);
                outcome = Outcome::Backed(backed || config.breach == Some(Breach::Unconfirmed));
            }
            Action::Inherit { id, lease, node_uid, .. } => {
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
        let (now, policy, grown) = (self.now, self.store.policy, self.store.grown);
        let agent = &mut self.host_mut(host).host;
        let after = agent.after(action, &outcome);
        agent.done(action, &outcome, now);
        if let Some(follow_up) = after {
            agent.done(&follow_up, &Outcome::Done, now);
        }
        let world = self.host_mut(host);
        world.note_uids();
        if config.captures() > 1 {
            let nothing = BTreeMap::new();
            world.note_good(if policy { config.wants_of(host, grown) } else { &nothing });
        }
        true
    }

    /// The agent's writes to its own enactment.
    pub(in crate::model) fn write_own(&mut self, host: usize, action: &Action, config: &Config) {
        let node = self.hosts[host].name.clone();
        match action {
            Action::CreateEnactment { policy, node_uid, slots } => {
                let enactment = Enactment {
                    uid: self.fresh("e").as_str().into(),
                    node: node.clone(),
                    node_uid: node_uid.clone(),
                    policy: policy.clone(),
                    deleting: None,
                    slots: slots.clone(),
                };
                let by_policy = Rc::new(BTreeMap::from([(policy.clone(), enactment)]));
                self.store_mut().enactments.entry(node).or_insert(by_policy);
            }
            Action::WriteRequests { requests, .. } => {
                let Some(enactment) = self.store_mut().enactment_mut(&node) else {
                    return;
                };
                for (key, request) in requests {
                    enactment.slots.entry(key.clone()).or_default().request = Some(request.clone());
                }
            }
            Action::RemoveSlot { key } => {
                let Some(enactment) = self.store_mut().enactment_mut(&node) else {
                    return;
                };
                enactment.slots.remove(&key.slot());
                if config.breach == Some(Breach::ReleasedBeforeOff) {
                    self.host_mut(host).nic.clear();
                }
            }
            Action::DropEnactment { node_uid, .. } => {
                self.store_mut().remove_enactments(|old| old.node == node && old.node_uid == *node_uid);
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
        static NOTHING: BTreeMap<ClaimKey, Option<IpAddr>> = BTreeMap::new();
        static NO_POLICY: BTreeSet<PolicyName> = BTreeSet::new();
        let good =
            BTreeMap::from_iter(config.policies.iter().map(|policy| (policy.clone(), world.good().clone())));
        static NONE: BTreeMap<PolicyName, Enactment> = BTreeMap::new();
        let all_have_ids = world.host.journal.len() == config.wants.len();
        let believed_off = BTreeSet::new();
        let unreleased = config.breach == Some(Breach::ReleasedBeforeOff) && !self.store.policy;
        let seen = Seen {
            now: self.now,
            node: &node,
            ready: true,
            selected: if self.store.policy { &config.policies } else { &NO_POLICY },
            waits: &world.waits,
            wants: if self.store.policy { config.wants_of(host, self.store.grown) } else { &NOTHING },
            enactments: self.store.enactments.get(&world.name).map_or(&NONE, |own| own),
            state: self.store.states.get(&world.name),
            refresh: self.store.refresh.contains(&world.name),
            nic: if unreleased { &believed_off } else { &world.nic },
            good: &good,
            fresh_id: if all_have_ids { &NO_ID } else { &self.next_id(host, config) },
        };
        world.host.next(&seen)
    }

    /// An agent serves its own request: first the ledger, then the answer.
    pub(in crate::model) fn self_serve(&mut self, host: usize, config: &Config) -> bool {
        let world = &self.hosts[host];
        if world.agent != Agent::Running || !world.reachable {
            return false;
        }
        let Some(own) = self.store.enactment(&world.name) else {
            return false;
        };
        let live = self.store.is_live(&own.node, &own.node_uid);
        let labels = BTreeMap::new();
        let asked: Vec<Asked<'_>> = own
            .slots
            .keys()
            .map(|key| Asked { enactment: own, key, labels: &labels, live, ready: true, fresh: true })
            .collect();
        let Some(ledger) = self.store.ledger() else {
            return false;
        };
        let served =
            claim::serve(ledger, config.pool(self.store.first()), &Barred::default(), &asked, self.now);
        if let Some(ledger) = served.ledger {
            self.write_ledger(ledger);
            return true;
        }
        self.land(&served.answers, config)
    }
}
