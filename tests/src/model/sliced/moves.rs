//! What may happen next, and what comes of it.

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;

use policy::claim::{
    self, Action, Asked, Enactment, Facts, Hold, HostState, Ledger, NodeName, NodeSeen, NodeSlice, NodeUid,
    Outcome, Phase, RequestId, Scope, Seen, SlicedView, Stranger, Uncovered,
};
use policy::pool::{Barred, Pool};

use super::world::{Machine, QUARANTINE, Store, Stored, World, Write, block, key, name, policy, pool, slot};
use super::{Breach, Config, Fault};

/// One move.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Move {
    /// What the claim needs next: journal, NIC, report, enactment.
    Agent(usize),
    /// It reads what it decides on to serve itself.
    Think(usize),
    /// It writes the next of what it decided.
    Write(usize),
    LeadThink,
    LeadWrite,
    /// A quarantine is over.
    Tick,
    Fault(Fault, usize),
}

impl World {
    pub(super) fn moves(&self, config: &Config) -> Vec<Move> {
        let mut moves = Vec::new();
        for (at, host) in self.hosts.iter().enumerate() {
            moves.push(Move::Agent(at));
            moves.push(if host.pending.is_empty() { Move::Think(at) } else { Move::Write(at) });
        }
        moves.push(if self.lead.is_empty() { Move::LeadThink } else { Move::LeadWrite });
        moves.push(Move::Tick);
        for fault in &self.left {
            moves.extend((0..config.hosts).map(|host| Move::Fault(*fault, host)));
        }
        moves
    }

    /// Whether it changed anything.
    pub(super) fn make(&mut self, step: &Move, config: &Config) -> bool {
        match step {
            Move::Agent(host) => {
                let acted = self.agent(*host, config);
                // What only it can see follows at once, where no crash is to come.
                while acted
                    && !self.left.contains(&Fault::Crash)
                    && matches!(self.next_of(*host), Some(Action::Journal { .. } | Action::Announce { .. }))
                    && self.agent(*host, config)
                {}
                acted
            }
            Move::Think(host) => self.think(*host, config),
            Move::Write(host) => {
                let write = self.hosts[*host].pending.remove(0);
                if !self.write(&write, Some(*host), config) {
                    self.hosts[*host].pending.clear();
                }
                true
            }
            Move::LeadThink => self.lead_think(config),
            Move::LeadWrite => {
                let write = self.lead.remove(0);
                if !self.write(&write, None, config) {
                    self.lead.clear();
                }
                true
            }
            Move::Tick => self.tick(),
            Move::Fault(fault, host) => self.fault(*fault, *host, config),
        }
    }

    fn seen<R>(&self, at: usize, with: impl FnOnce(&Seen<'_>) -> R) -> R {
        let host = &self.hosts[at];
        let node = match self.store.nodes.get(&host.name) {
            Some(uid) => NodeSeen::Is(uid.clone()),
            None => NodeSeen::Gone,
        };
        let selected: BTreeSet<_> = host.selected.then(policy).into_iter().collect();
        let wants: BTreeMap<_, _> = host.selected.then(|| (key(), None)).into_iter().collect();
        let own = self.store.enactments.get(&host.name).cloned();
        let enactments: BTreeMap<_, _> = own.map(|own| (own.policy.clone(), own)).into_iter().collect();
        with(&Seen {
            now: self.now,
            node: &node,
            ready: true,
            selected: &selected,
            wants: &wants,
            waits: &BTreeSet::new(),
            enactments: &enactments,
            state: self.store.states.get(&host.name),
            refresh: self.store.asked.contains(&host.name),
            nic: &host.nic,
            good: &BTreeMap::new(),
            fresh_id: &RequestId::new(format!("{}-{}", host.name, host.ids)),
        })
    }

    pub(super) fn next_of(&self, at: usize) -> Option<Action> {
        self.seen(at, |seen| self.hosts[at].host.next(seen))
    }

    fn agent(&mut self, at: usize, config: &Config) -> bool {
        let Some(action) = self.next_of(at) else { return false };
        let node = self.hosts[at].name.clone();
        let mut outcome = Outcome::Done;
        match &action {
            Action::Announce { .. } => {}
            Action::Journal { record, .. } => {
                let made = format!("{node}-{}", self.hosts[at].ids);
                if record.as_ref().is_some_and(|record| record.id.as_str() == made) {
                    self.hosts[at].ids += 1;
                }
            }
            Action::AddToNic { lease, .. } => match lease.ips.iter().find(|ip| self.wire.contains(*ip)) {
                Some(ip) => outcome = Outcome::Taken { ip: *ip, by: Stranger::default() },
                None => self.hosts[at].nic.extend(&lease.ips),
            },
            Action::RemoveFromNic { ips } => self.hosts[at].nic.retain(|ip| !ips.contains(ip)),
            Action::Report { node_uid, shows } => {
                self.hosts[at].stamps += 1;
                let stamp = format!("{}", self.hosts[at].stamps).as_str().into();
                let state =
                    HostState { node: node.clone(), node_uid: node_uid.clone(), stamp, shows: shows.clone() };
                self.store.asked.remove(&node);
                self.store.states.insert(node, state);
            }
            Action::Confirm { key, lease } => {
                let id = &self.hosts[at].host.journal[key].id;
                let own = self.own(&node);
                let backed = claim::slices_confirm(&self.store.pool, &own, id, lease);
                outcome = Outcome::Backed(backed || config.breach == Some(Breach::Unconfirmed));
            }
            Action::Inherit { key, .. } => {
                let record = &self.hosts[at].host.journal[key];
                outcome = match record.phase {
                    Phase::Parked(_) => Outcome::NotOurs,
                    _ => Outcome::Asserted,
                };
            }
            Action::CreateEnactment { policy, node_uid, slots } => {
                let uid = self.fresh(&format!("e-{node}"));
                let made = Enactment {
                    uid: uid.as_str().into(),
                    node: node.clone(),
                    node_uid: node_uid.clone(),
                    policy: policy.clone(),
                    deleting: None,
                    slots: slots.clone(),
                };
                self.store.enactments.entry(node).or_insert(made);
            }
            Action::WriteRequests { requests, .. } => {
                let Some(own) = self.store.enactments.get_mut(&node) else { return false };
                for (key, request) in requests {
                    own.slots.entry(key.clone()).or_default().request = Some(request.clone());
                }
            }
            Action::RemoveSlot { key } => {
                let Some(own) = self.store.enactments.get_mut(&node) else { return false };
                own.slots.remove(&key.slot());
            }
            Action::DropEnactment { node_uid, .. } => {
                if self.store.enactments.get(&node).is_some_and(|own| own.node_uid == *node_uid) {
                    self.store.enactments.remove(&node);
                }
            }
        }
        let now = self.now;
        let host = &mut self.hosts[at].host;
        let before = host.clone();
        let after = host.after(&action, &outcome);
        host.done(&action, &outcome, now);
        if let Some(follow_up) = after {
            host.done(&follow_up, &Outcome::Done, now);
        }
        // A question that has no new answer is no move.
        !(matches!(action, Action::Confirm { .. } | Action::Inherit { .. }) && *host == before)
    }

    fn own(&self, node: &NodeName) -> Vec<NodeSlice> {
        let uid = self.store.nodes.get(node);
        let is_own = |slice: &NodeSlice| uid.is_some_and(|uid| slice.is_of(node, uid));
        self.slices().into_iter().filter(is_own).collect()
    }

    fn think(&mut self, at: usize, config: &Config) -> bool {
        let node = self.hosts[at].name.clone();
        let Some(uid) = self.store.nodes.get(&node).cloned() else { return false };
        let own = self.store.enactments.get(&node);
        let slices = self.own(&node);
        // Who asks for nothing looks when something is to be free.
        let is_over = || slices.iter().filter_map(NodeSlice::first_end).any(|end| end <= self.now);
        if own.is_none() && !is_over() {
            return false;
        }
        let others: BTreeMap<_, _> = self
            .store
            .slices
            .values()
            .map(|stored| &stored.slice)
            .filter(|slice| !slice.is_of(&node, &uid))
            .map(|slice| (slice.cidr, Some(slice.node.clone())))
            .collect();
        // Where the name is no lock nobody minds who else has it.
        let others = if config.breach == Some(Breach::NoLock) { BTreeMap::new() } else { others };
        let mut ledger = self.store.pool.clone();
        if config.breach == Some(Breach::PoolUnread) {
            ledger.allocations.clear();
        }
        if config.breach == Some(Breach::Unproven) {
            ledger.rebuilt_for = Some(ledger.pool.clone());
        }
        let host = &self.hosts[at];
        let known: BTreeSet<RequestId> = own
            .iter()
            .flat_map(|own| own.slots.values())
            .filter_map(|slot| Some(slot.request.as_ref()?.id.clone()))
            .chain(host.host.journal.values().map(|record| record.id.clone()))
            .collect();
        let announced = host.host.memory.announced.values().flat_map(|lease| lease.ips.iter().copied());
        let shown: BTreeSet<IpAddr> =
            host.nic.iter().copied().chain(host.host.held()).chain(announced).collect();
        let labels = BTreeMap::new();
        let slots = own.iter().flat_map(|own| own.slots.keys().map(move |key| (*own, key)));
        let asked: Vec<Asked<'_>> = slots
            .filter(|(_, key)| **key == slot())
            .map(|(own, key)| {
                let live = own.node_uid == uid;
                Asked { enactment: own, key, labels: &labels, live, ready: true, fresh: true }
            })
            .collect();
        let served = claim::serve_slices(&SlicedView {
            pool: pool(config, self.store.drains),
            ledger: &ledger,
            barred: &Barred::default(),
            own: &slices,
            others: &others,
            asked: &asked,
            known: &known,
            shown: &shown,
            now: self.now,
        });
        let version = |name: &String| self.store.slices.get(name).map_or(0, |stored| stored.version);
        let mut writes: Vec<Write> =
            served.create.into_iter().map(|new| Write::Create(new, uid.clone())).collect();
        writes.extend(served.ledgers.iter().map(|(name, ledger)| Write::Slice {
            name: name.clone(),
            version: version(name),
            ledger: ledger.clone(),
        }));
        writes.extend(served.give_back.iter().map(|name| {
            // Written by this very look before it is given back.
            let later = u32::from(served.ledgers.iter().any(|(written, _)| written == name));
            Write::Delete { name: name.clone(), version: version(name) + later }
        }));
        writes.extend(served.answers.into_iter().map(Write::Answer));
        self.hosts[at].pending = writes;
        !self.hosts[at].pending.is_empty()
    }

    /// Whether it landed.
    fn write(&mut self, write: &Write, by: Option<usize>, config: &Config) -> bool {
        match write {
            Write::Create(new, uid) => {
                let Some(host) = by else { return false };
                let stopped = self.store.pool.hold.is_some() || self.store.pool.reset;
                let is_taken =
                    self.store.slices.contains_key(&new.name) && config.breach != Some(Breach::NoLock);
                if is_taken || stopped {
                    return false;
                }
                let slice = NodeSlice {
                    name: new.name.clone(),
                    cidr: new.cidr,
                    node: self.hosts[host].name.clone(),
                    node_uid: uid.clone(),
                    ledger: new.ledger(self.fresh(&format!("s-{}", new.name)).as_str().into()),
                };
                let version = self.next_version(&new.name);
                self.store.slices.insert(new.name.clone(), Stored { slice, version });
                true
            }
            Write::Slice { name, version, ledger } => {
                let Some(stored) = self.store.slices.get_mut(name).filter(|s| s.version == *version) else {
                    return false;
                };
                stored.slice.ledger = ledger.clone();
                stored.version += 1;
                true
            }
            Write::Delete { name, version } => {
                let is_meant = self.store.slices.get(name).is_some_and(|stored| stored.version == *version);
                if is_meant {
                    self.store.slices.remove(name);
                }
                is_meant
            }
            Write::Answer(answer) => {
                let mut fitting = self.store.enactments.values_mut().filter(|own| answer.fits(own));
                let Some(slot) = fitting.next().and_then(|own| own.slots.get_mut(&answer.key)) else {
                    return false;
                };
                answer.write(slot);
                true
            }
            Write::Pool { version, ledger } => {
                if self.store.pool_version != *version || self.store.pool.pool != ledger.pool {
                    return false;
                }
                self.store.pool = ledger.clone();
                self.store.pool_version += 1;
                true
            }
            Write::Finish(node) => {
                let gone = |own: &Enactment, store: &Store| store.nodes.get(node) != Some(&own.node_uid);
                if self.store.enactments.get(node).is_some_and(|own| gone(own, &self.store)) {
                    self.store.enactments.remove(node);
                }
                true
            }
            Write::ResetDone(node) => self.store.resets.remove(node),
            Write::Ask(node) => {
                self.store.asked.insert(node.clone());
                true
            }
        }
    }

    /// A thousand apart: no version of an object that is made anew is one of the one before.
    fn next_version(&mut self, what: &str) -> u32 {
        self.count(what) * 1_000
    }

    /// The controller reads all, and decides; what it takes it takes by what it read.
    fn lead_think(&mut self, config: &Config) -> bool {
        let slices = self.slices();
        let witnessed: BTreeSet<NodeUid> = BTreeSet::new();
        let facts = Facts {
            nodes: &self.store.nodes,
            enactments: self.store.enactments.values().collect(),
            states: self.store.states.values().collect(),
            witnessed: &witnessed,
            confirmed: None,
        };
        let (ledger, version) = (&self.store.pool, self.store.pool_version);
        let pool = pool(config, self.store.drains);
        let pool_name = name();
        let put = |ledger: Ledger| vec![Write::Pool { version, ledger }];
        let none = Uncovered::of(&pool_name, &slices, &facts);
        let uncovered = match config.breach == Some(Breach::AllCovered) {
            true => Facts { enactments: Vec::new(), states: Vec::new(), ..facts.clone() },
            false => none.facts(&facts),
        };
        let writes = if ledger.hold.is_some() {
            claim::reassert(ledger, &pool_name, pool, &uncovered, self.now).map(put).unwrap_or_default()
        } else if ledger.needs_rebuild() {
            let rebuilt = claim::rebuild(ledger, &pool_name, pool, &uncovered, self.now).ledger;
            put(Ledger { reset: false, ..rebuilt })
        } else if let Some((node, next)) = self.reset(pool, &uncovered) {
            if next == *ledger { vec![Write::ResetDone(node)] } else { put(next) }
        } else if let Some(next) = claim::gather(ledger, &pool_name, pool, &slices, &facts, self.now)
            .filter(|_| config.breach.is_none())
        {
            put(next)
        } else {
            let quarantine = if config.breach == Some(Breach::NoQuarantine) { 0 } else { QUARANTINE };
            let tended = claim::tend(ledger, &facts, quarantine, self.now);
            let mut writes: Vec<Write> = tended.ask_word.iter().cloned().map(Write::Ask).collect();
            writes.retain(|ask| !matches!(ask, Write::Ask(node) if self.store.asked.contains(node)));
            writes.extend(tended.ledger.map(|ledger| Write::Pool { version, ledger }));
            let of = |name: &String| self.store.slices.get(name).map_or(0, |stored| stored.version);
            let taken = claim::tend_slices(&slices, Some(ledger), &facts, quarantine, self.now);
            writes.extend(taken.ledgers.into_iter().map(|(name, ledger)| Write::Slice {
                version: of(&name),
                name,
                ledger,
            }));
            writes.extend(taken.free.into_iter().map(|name| Write::Delete { version: of(&name), name }));
            let mut all = ledger.clone();
            slices.iter().for_each(|slice| all.allocations.extend(slice.ledger.allocations.clone()));
            let over = self.store.enactments.values().filter(|own| {
                !facts.is_live(&own.node, &own.node_uid)
                    && claim::may_finish(own, |_| Some(&all), QUARANTINE, self.now)
            });
            writes.extend(over.map(|own| Write::Finish(own.node.clone())));
            writes
        };
        self.lead = writes;
        !self.lead.is_empty()
    }

    /// What the first reset of a host's part comes to, if one is asked for and can be done now.
    fn reset(&self, pool: &Pool, facts: &Facts<'_>) -> Option<(NodeName, Ledger)> {
        let node = self.store.resets.first()?;
        let scope = Scope::Node(self.store.nodes.get(node)?.clone());
        let reset = claim::reset(&self.store.pool, &name(), pool, facts, &scope, self.now)?;
        Some((node.clone(), reset.ledger))
    }

    /// Whoever runs has heard by then of what it has to hear of: a host whose Node is gone has taken its addresses off, and
    /// one that was restored under has said what it holds.
    pub(super) fn tick(&mut self) -> bool {
        if self.ticks == 0 || !self.hosts.iter().enumerate().all(|(at, _)| self.has_heard(at)) {
            return false;
        }
        self.ticks -= 1;
        self.now += QUARANTINE;
        true
    }

    fn has_heard(&self, at: usize) -> bool {
        let host = &self.hosts[at];
        match self.store.nodes.get(&host.name) {
            None => host.nic.is_empty() && host.host.held().next().is_none() && host.pending.is_empty(),
            // Its report, and what it asserts.
            Some(_) => match self.next_of(at) {
                Some(Action::Report { .. } | Action::RemoveFromNic { .. } | Action::Inherit { .. }) => false,
                Some(
                    Action::CreateEnactment { .. } | Action::DropEnactment { .. } | Action::Journal { .. },
                ) => false,
                Some(action @ Action::WriteRequests { .. }) => !action.says_held(),
                _ => true,
            },
        }
    }

    fn fault(&mut self, fault: Fault, at: usize, config: &Config) -> bool {
        let node = self.hosts[at].name.clone();
        let happened = match fault {
            Fault::Crash => {
                let host = &mut self.hosts[at];
                host.host = host.host.restarted();
                host.pending.clear();
                true
            }
            Fault::NodeDeleted => self.delete_node(&node),
            Fault::NodeRecreated => {
                self.delete_node(&node);
                let uid = self.fresh(&format!("{node}-"));
                self.store.nodes.insert(node, NodeUid::new(uid));
                true
            }
            Fault::PoolRecreated => {
                if at > 0 {
                    return false;
                }
                let uid = self.fresh("p");
                self.store.pool = Ledger::new(uid.as_str().into());
                // The restore procedure covers pools made after it, too (rule 6).
                self.store.pool.hold = self.restored.then_some(Hold { until: self.now + QUARANTINE });
                self.store.pool_version = self.next_version("pool");
                true
            }
            Fault::SliceDeleted => {
                let own = self.store.slices.values_mut().find(|stored| stored.slice.node == node);
                let Some(own) = own.filter(|stored| !stored.slice.ledger.deleting) else { return false };
                own.slice.ledger.deleting = true;
                own.version += 1;
                true
            }
            Fault::SliceForced | Fault::SliceConfirmed => {
                let meant = |stored: &&Stored| {
                    let is_empty = stored.slice.ledger.allocations.is_empty();
                    stored.slice.node == node && is_empty == (fault == Fault::SliceForced)
                };
                let own = self.store.slices.values().find(meant);
                let Some(name) = own.map(|stored| stored.slice.name.clone()) else { return false };
                self.store.slices.remove(&name);
                true
            }
            Fault::Reset => {
                if at > 0 {
                    return false;
                }
                self.store.pool_version += 1;
                !std::mem::replace(&mut self.store.pool.reset, true)
            }
            Fault::NodeReset => {
                self.store.enactments.contains_key(&node) && self.store.resets.insert(node.clone())
            }
            Fault::RangeDrained => {
                if at > 0 || !config.may_happen() {
                    return false;
                }
                self.store.pool_version += 1;
                !std::mem::replace(&mut self.store.drains, true)
            }
            Fault::WireTaken => self.wire_taken(at, config),
            Fault::Unselected => {
                self.hosts[at].selected = !self.hosts[at].selected;
                true
            }
            Fault::StoreRestored => {
                let Some(backup) = self.backup.take().filter(|_| at == 0) else { return false };
                self.store = *backup;
                self.store.pool.hold = Some(Hold { until: self.now + QUARANTINE });
                self.store.pool_version = self.next_version("pool");
                self.restored = true;
                true
            }
        };
        if happened {
            let place = self.left.iter().position(|left| *left == fault);
            place.map(|place| self.left.remove(place));
        }
        happened
    }

    /// Nobody is left without: what strangers have would be given and tried again for ever.
    fn wire_taken(&mut self, at: usize, config: &Config) -> bool {
        let own = self.store.enactments.get(&self.hosts[at].name);
        let grant = own.and_then(|own| own.slots.get(&slot())?.grant.as_ref());
        let Some(ip) = grant.map(|grant| grant.lease.ips[0]) else { return false };
        let mut wire = self.wire.clone();
        let is_new = wire.insert(ip);
        let full = (0..config.blocks).filter(|at| block(*at).iter().all(|ip| wire.contains(ip))).count();
        if !is_new || (full > 0 && usize::from(config.blocks) - full < config.hosts) {
            return false;
        }
        self.wire = wire;
        let now = self.now;
        let Machine { host, nic, .. } = &mut self.hosts[at];
        if nic.contains(&ip)
            && let Some(journalled) = host.collided(ip, &Stranger::default())
        {
            host.done(&journalled, &Outcome::Done, now);
            nic.remove(&ip);
        }
        true
    }

    fn delete_node(&mut self, node: &NodeName) -> bool {
        let gone = self.store.nodes.remove(node).is_some();
        let now = self.now;
        if let Some(own) = self.store.enactments.get_mut(node) {
            own.deleting = Some(now);
        }
        gone
    }
}
