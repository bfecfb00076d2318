//! What can happen next in a world, and what it does.

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;

use policy::claim::{
    self, Action, Asked, ClaimKey, Enactment, Facts, Hold, HostState, Inheritance, Ledger, NodeName,
    NodeSeen, Outcome, Phase, PoolName, Seen, SlotKey, Time,
};
use policy::pool::Barred;

use super::fault::{Breach, Fault};
use super::store::Store;
use super::world::{Agent, Config, QUARANTINE, Rival, World, claim_key};

/// One move; hosts by index.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) enum Move {
    /// The agent of a host does its next thing.
    Agent(usize),
    SelfServe(usize),
    Lead,
    RivalPeeks,
    RivalServes,
    RivalTends,
    RivalAnswers(usize),
    Start(usize),
    Resume(usize),
    Heal(usize),
    Boot(usize),
    CreateNode(usize),
    CreatePolicy,
    CreatePool,
    Backup,
    Tick,
    Fault(Fault, usize),
}

impl World {
    /// Every move that leads to another state, with that state (not yet normalised).
    pub(super) fn moves(&self, config: &Config) -> Vec<(Move, World)> {
        let mut moves: Vec<Move> = Vec::new();
        for host in 0..self.hosts.len() {
            moves.extend([
                Move::Agent(host),
                Move::Start(host),
                Move::Resume(host),
                Move::Heal(host),
            ]);
            moves.extend([Move::Boot(host), Move::CreateNode(host)]);
            if config.self_service {
                moves.push(Move::SelfServe(host));
            }
        }
        moves.extend([
            Move::Lead,
            Move::CreatePolicy,
            Move::CreatePool,
            Move::Backup,
            Move::Tick,
        ]);
        moves.extend([Move::RivalPeeks, Move::RivalServes, Move::RivalTends]);
        moves.extend((0..self.rival.pending.len()).map(Move::RivalAnswers));
        let kinds: BTreeSet<Fault> = self.left.iter().copied().collect();
        for kind in kinds {
            moves.extend((0..self.targets(kind, config)).map(|target| Move::Fault(kind, target)));
        }
        moves
            .into_iter()
            .filter_map(|step| Some((step, self.after(step, config)?)))
            .collect()
    }

    /// Hosts are alike, so the first fault meets the first of them without loss.
    fn targets(&self, fault: Fault, config: &Config) -> usize {
        let first = self.left.len() == config.faults.len();
        match fault {
            Fault::PolicyDeleted
            | Fault::PoolDeleted
            | Fault::Reset
            | Fault::StoreRestored
            | Fault::WireTaken => 1,
            _ if first => 1,
            _ => self.hosts.len(),
        }
    }

    /// The world after a move; `None` where it can't be made or changes nothing.
    pub(super) fn after(&self, step: Move, config: &Config) -> Option<World> {
        if !self.may(step) {
            return None;
        }
        let mut next = self.clone();
        let moved = match step {
            Move::Agent(host) => next.agent(host, config),
            Move::SelfServe(host) => next.self_serve(host, config),
            Move::Lead => next.lead(config),
            Move::RivalPeeks => next.rival_peeks(config),
            Move::RivalServes => next.rival_serves(config),
            Move::RivalTends => next.rival_tends(config),
            Move::RivalAnswers(index) => next.rival_answers(index),
            Move::Start(host) | Move::Resume(host) | Move::Boot(host) => {
                next.hosts[host].agent = Agent::Running;
                true
            }
            Move::Heal(host) => !std::mem::replace(&mut next.hosts[host].reachable, true),
            Move::CreateNode(host) => next.create_node(host, config),
            Move::CreatePolicy => !std::mem::replace(&mut next.store.policy, true),
            Move::CreatePool => {
                next.create_pool(config);
                true
            }
            Move::Backup => {
                next.backup = Some(Box::new(next.store.clone()));
                true
            }
            Move::Tick => next.tick(config),
            Move::Fault(fault, target) => next.fault(fault, target, config),
        };
        (moved && next != *self).then_some(next)
    }

    /// A quick look that spares a copy of the world for moves that can't be made.
    fn may(&self, step: Move) -> bool {
        match step {
            Move::Agent(host) | Move::SelfServe(host) => self.hosts[host].agent == Agent::Running,
            Move::Start(host) => self.hosts[host].agent == Agent::Down,
            Move::Resume(host) => self.hosts[host].agent == Agent::Paused,
            Move::Boot(host) => self.hosts[host].agent == Agent::Off,
            Move::Heal(host) => !self.hosts[host].reachable,
            Move::CreateNode(host) => !self.store.nodes.contains_key(&self.hosts[host].name),
            Move::CreatePolicy => !self.store.policy,
            Move::CreatePool => self.store.pool.is_none(),
            Move::Backup => self.backup.is_none() && self.left.contains(&Fault::StoreRestored),
            Move::RivalPeeks => self.peeks > 0,
            Move::RivalServes | Move::RivalTends => self.rival.cache.is_some(),
            Move::Lead | Move::RivalAnswers(_) | Move::Tick | Move::Fault(..) => true,
        }
    }

    // ---- the agent -------------------------------------------------------------------------------------

    /// The agent does its next thing, and what only it can see follows at once: where no crash is to come,
    /// nothing can happen between.
    fn agent(&mut self, host: usize, config: &Config) -> bool {
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

    fn act(&mut self, host: usize, action: &Action, config: &Config) -> bool {
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
    fn write_own(&mut self, host: usize, action: &Action, config: &Config) {
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
    pub(super) fn agent_action(&self, host: usize, config: &Config) -> Option<Action> {
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
    fn self_serve(&mut self, host: usize, config: &Config) -> bool {
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

    // ---- the controllers -------------------------------------------------------------------------------

    /// The up-to-date controller does the first thing there is to do.
    fn lead(&mut self, config: &Config) -> bool {
        self.collect_garbage() || self.lead_ledger(config) || self.finish_enactments()
    }

    fn lead_ledger(&mut self, config: &Config) -> bool {
        let enactments = self.enactments_read();
        let Some(ledger) = self.store.ledger().cloned() else {
            let answers = claim::serve_without_pool(&asked(&self.store, &enactments, true));
            return self.land(&answers);
        };
        if let Some(next) = maintain(&ledger, &self.store, config, self.now) {
            self.write_ledger(next);
            return true;
        }
        let asks = asked(&self.store, &enactments, true);
        let served = claim::serve(&ledger, &config.pool, &Barred::default(), &asks, self.now);
        if served.went_back {
            let hold = Some(Hold {
                until: self.now + QUARANTINE,
            });
            self.write_ledger(Ledger { hold, ..ledger });
            return true;
        }
        let wrote = served.ledger.is_some();
        if let Some(next) = served.ledger {
            self.write_ledger(next);
        }
        if self.land(&served.answers) || wrote {
            return true;
        }
        let tended = tend(&ledger, &self.store, config, self.now);
        let asked_anew = tended
            .ask_word
            .iter()
            .filter(|node| self.store.nodes.contains_key(*node))
            .cloned();
        let before = self.store.refresh.len();
        self.store.refresh.extend(asked_anew);
        let asked_more = self.store.refresh.len() > before;
        if let Some(next) = tended.ledger {
            self.write_ledger(next);
            return true;
        }
        asked_more
    }

    /// What Kubernetes does by itself: objects whose owner is gone are deleted; finalizers hold enactments.
    fn collect_garbage(&mut self) -> bool {
        let nodes = self.store.nodes.clone();
        let gone = |node: &NodeName, uid: &claim::NodeUid| nodes.get(node) != Some(uid);
        let before = self.store.states.len();
        self.store
            .states
            .retain(|node, state| !gone(node, &state.node_uid));
        let mut changed = before != self.store.states.len();
        for (node, enactment) in &mut self.store.enactments {
            if gone(node, &enactment.node_uid) && enactment.deleting.is_none() {
                enactment.deleting = Some(self.now);
                changed = true;
            }
        }
        self.store.refresh.retain(|node| nodes.contains_key(node));
        changed
    }

    fn finish_enactments(&mut self) -> bool {
        let ledger = self.store.ledger().cloned();
        let before = self.store.enactments.len();
        let (nodes, now) = (self.store.nodes.clone(), self.now);
        self.store.enactments.retain(|node, enactment| {
            nodes.get(node) == Some(&enactment.node_uid)
                || !claim::may_finish(enactment, |_: &PoolName| ledger.as_ref(), QUARANTINE, now)
        });
        before != self.store.enactments.len()
    }

    /// Takes a copy of everything, to act on later. Only copies that lead to something are worth keeping.
    fn rival_peeks(&mut self, config: &Config) -> bool {
        let enactments = self.enactments_read();
        let Some(ledger) = self.store.ledger() else {
            return false;
        };
        let asks = asked(&self.store, &enactments, false);
        let served = claim::serve(ledger, &config.pool, &Barred::default(), &asks, self.now);
        let serves = served.ledger.is_some() || !served.answers.is_empty();
        let maintains = maintain(ledger, &self.store, config, self.now).is_some();
        let tends = tend(ledger, &self.store, config, self.now).ledger.is_some();
        if !serves && !maintains && !tends {
            return false;
        }
        self.peeks -= 1;
        self.rival = Rival {
            cache: Some(Box::new(self.store.clone())),
            pending: Vec::new(),
        };
        true
    }

    /// Serves what its old copy shows from the pool as it is now; the answers wait.
    fn rival_serves(&mut self, config: &Config) -> bool {
        let (Some(cache), Some(ledger)) = (&self.rival.cache, self.store.ledger()) else {
            return false;
        };
        let enactments: Vec<Enactment> = cache.enactments.values().cloned().collect();
        let asks = asked(cache, &enactments, false);
        let served = claim::serve(ledger, &config.pool, &Barred::default(), &asks, self.now);
        if served.ledger.is_none() && served.answers.is_empty() {
            return false;
        }
        self.rival = Rival {
            cache: None,
            pending: served.answers,
        };
        if let Some(next) = served.ledger {
            self.write_ledger(next);
        }
        true
    }

    /// Takes back, rebuilds or lifts a hold by its old copy: the write goes through only if the pool is
    /// still the one it read.
    fn rival_tends(&mut self, config: &Config) -> bool {
        let Some(cache) = self.rival.cache.take() else {
            return false;
        };
        let (Some(read), Some(current)) = (&cache.pool, &self.store.pool) else {
            return false;
        };
        let same_version = read.version == current.version || self.restored;
        if !same_version || read.ledger.guard() != current.ledger.guard() {
            return false;
        }
        let maintained = maintain(&read.ledger, &cache, config, self.now);
        let Some(next) = maintained.or_else(|| tend(&read.ledger, &cache, config, self.now).ledger) else {
            return false;
        };
        self.write_ledger(next);
        true
    }

    fn rival_answers(&mut self, index: usize) -> bool {
        let answer = self.rival.pending.remove(index);
        self.land(&[answer]);
        true
    }

    /// Writes answers where they still fit.
    fn land(&mut self, answers: &[claim::Answer]) -> bool {
        let mut landed = false;
        for answer in answers {
            let target = self
                .store
                .enactments
                .values_mut()
                .find(|enactment| answer.fits(enactment));
            if let Some(slot) = target.and_then(|enactment| enactment.slots.get_mut(&answer.key)) {
                answer.write(slot);
                landed = true;
            }
        }
        landed
    }

    fn enactments_read(&self) -> Vec<Enactment> {
        self.store.enactments.values().cloned().collect()
    }

    // ---- time, faults, recovery ------------------------------------------------------------------------

    /// A quarantine's length passes. Agents that run and reach the API have by then heard that their Node is
    /// gone, and re-asserted what they hold to a pool on hold; those that could not are excused (DESIGN 4).
    fn tick(&mut self, config: &Config) -> bool {
        let on_hold = self.store.ledger().is_some_and(|ledger| ledger.hold.is_some());
        for host in 0..self.hosts.len() {
            let able = self.hosts[host].agent == Agent::Running && self.hosts[host].reachable;
            if able && (on_hold || self.node_changed(host)) && self.after(Move::Agent(host), config).is_some()
            {
                return false;
            }
            if !able && self.holds_something(host) && (on_hold || self.node_changed(host)) {
                self.hosts[host].excused = true;
            }
        }
        self.now += QUARANTINE;
        true
    }

    /// Is the Node that this host's journal was made under gone?
    fn node_changed(&self, host: usize) -> bool {
        let world = &self.hosts[host];
        let live = self.store.nodes.get(&world.name);
        let stale = world
            .host
            .journal
            .values()
            .any(|record| Some(&record.node_uid) != live);
        stale || (live.is_none() && !world.nic.is_empty()) || self.unknown_on_nic(host)
    }

    /// A marked address of which the journal knows nothing (it was lost).
    fn unknown_on_nic(&self, host: usize) -> bool {
        let world = &self.hosts[host];
        let journalled: BTreeSet<IpAddr> = world
            .host
            .journal
            .values()
            .flat_map(|record| held(&record.phase))
            .collect();
        !world.nic.is_subset(&journalled)
    }

    fn holds_something(&self, host: usize) -> bool {
        let world = &self.hosts[host];
        !world.nic.is_empty()
            || world
                .host
                .journal
                .values()
                .any(|record| matches!(record.phase, Phase::Holding(_)))
    }

    fn create_node(&mut self, host: usize, config: &Config) -> bool {
        let name = self.hosts[host].name.clone();
        let uid = self.fresh_node();
        if config.breach == Some(Breach::InheritsByName) {
            self.hosts[host]
                .host
                .journal
                .values_mut()
                .for_each(|record| record.node_uid = uid.clone());
        }
        self.store.nodes.insert(name, uid);
        true
    }

    fn fault(&mut self, fault: Fault, target: usize, config: &Config) -> bool {
        let Some(at) = self.left.iter().position(|left| *left == fault) else {
            return false;
        };
        self.left.remove(at);
        match fault {
            Fault::AgentCrash => self.stop(target, Agent::Down, false),
            Fault::JournalLost => {
                // An exception that DESIGN 4 names: a journal lost together with a restore.
                self.hosts[target].excused |= config.faults.contains(&Fault::StoreRestored);
                self.stop(target, Agent::Down, true)
            }
            Fault::HostOff => {
                self.hosts[target].nic.clear();
                self.stop(target, Agent::Off, false)
            }
            Fault::AgentPause => {
                let running = self.hosts[target].agent == Agent::Running;
                self.hosts[target].agent = Agent::Paused;
                running
            }
            Fault::Partition => std::mem::replace(&mut self.hosts[target].reachable, false),
            Fault::NodeDeleted => self.store.nodes.remove(&self.hosts[target].name).is_some(),
            Fault::PolicyDeleted => std::mem::replace(&mut self.store.policy, false),
            Fault::PoolDeleted => self.store.pool.take().is_some(),
            Fault::Reset => {
                let Some(ledger) = self.store.ledger().cloned() else {
                    return false;
                };
                self.write_ledger(Ledger {
                    reset: true,
                    ..ledger
                });
                true
            }
            Fault::EnactmentDeleted => self.store.enactments.remove(&self.hosts[target].name).is_some(),
            Fault::StoreRestored => self.restore(config),
            Fault::WireTaken => {
                let free = config
                    .ips()
                    .find(|ip| !self.hosts.iter().any(|host| host.nic.contains(ip)));
                free.is_some_and(|ip| self.wire.insert(ip))
            }
        }
    }

    fn stop(&mut self, host: usize, to: Agent, wipe: bool) -> bool {
        let world = &mut self.hosts[host];
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
    fn restore(&mut self, config: &Config) -> bool {
        let Some(backup) = self.backup.take() else {
            return false;
        };
        self.store = *backup;
        self.restored = true;
        if let (Some(pool), true) = (&mut self.store.pool, config.breach != Some(Breach::NoHold)) {
            pool.ledger.hold = Some(Hold {
                until: self.now + QUARANTINE,
            });
        }
        true
    }
}

fn held(phase: &Phase) -> Vec<IpAddr> {
    match phase {
        Phase::Holding(lease) => lease.ips.clone(),
        _ => Vec::new(),
    }
}

fn asked<'a>(store: &Store, enactments: &'a [Enactment], fresh: bool) -> Vec<Asked<'a>> {
    static NO_LABELS: BTreeMap<String, String> = BTreeMap::new();
    enactments
        .iter()
        .flat_map(|enactment| enactment.slots.keys().map(move |key| (enactment, key)))
        .map(|(enactment, key)| Asked {
            enactment,
            key,
            labels: &NO_LABELS,
            live: store.is_live(&enactment.node, &enactment.node_uid),
            ready: true,
            fresh,
        })
        .collect()
}

/// Hold and rebuild come before everything else.
fn maintain(ledger: &Ledger, store: &Store, config: &Config, now: Time) -> Option<Ledger> {
    let read = Read::of(store, config);
    let name = claim_key().pool;
    if ledger.hold.is_some() {
        return claim::reassert(ledger, &name, &config.pool, &read.facts(store), now);
    }
    if !ledger.needs_rebuild() {
        return None;
    }
    let rebuilt = claim::rebuild(ledger, &name, &config.pool, &read.facts(store), now).ledger;
    Some(Ledger {
        reset: false,
        ..rebuilt
    })
}

fn tend(ledger: &Ledger, store: &Store, config: &Config, now: Time) -> claim::Tended {
    claim::tend(ledger, &Read::of(store, config).facts(store), QUARANTINE, now)
}

/// What a controller read of the store.
struct Read {
    enactments: Vec<Enactment>,
    states: Vec<HostState>,
    witnessed: BTreeSet<claim::NodeUid>,
}

impl Read {
    fn of(store: &Store, config: &Config) -> Self {
        let mut states: Vec<HostState> = store.states.values().cloned().collect();
        if config.breach == Some(Breach::FreedWithoutWord) {
            let recorded = format!("{:?}", store.ledger());
            let stamp = if recorded.contains("invented") {
                "made-up"
            } else {
                "invented"
            };
            for state in &mut states {
                state.shows.clear();
                state.stamp = stamp.into();
            }
        }
        Self {
            enactments: store.enactments.values().cloned().collect(),
            states,
            witnessed: BTreeSet::new(),
        }
    }

    fn facts<'a>(&'a self, store: &'a Store) -> Facts<'a> {
        Facts {
            nodes: &store.nodes,
            enactments: &self.enactments,
            states: &self.states,
            witnessed: &self.witnessed,
            confirmed: None,
        }
    }
}

impl World {
    /// The journalled id behind an address on a NIC.
    pub(super) fn holder_of(&self, host: usize, ip: IpAddr) -> Option<(&ClaimKey, &claim::Record)> {
        self.hosts[host]
            .host
            .journal
            .iter()
            .find(|(_, record)| held(&record.phase).contains(&ip))
    }
}
