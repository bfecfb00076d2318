//! Ledgers that must first be proven: new ones, reset ones, and those of a store that went back in time.
//!
//! Holders before waiters (rule 5): such a ledger gives nothing until it knows every holder. Only the
//! controller writes what comes out of here. Cost: O((entries + enactments + shown addresses) log n), one
//! ledger write.

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;

use super::ledger::{Entry, EntryKind, EntryState, Ledger, Quarantine, QuarantineReason, SEQUENCE_LEAP};
use super::names::{NodeName, NodeUid, PolicyName, PoolName, RequestId};
use super::record::{Enactment, HostState, Lease, Request, SlotKey, Time};
use super::serve::knows_later;
use super::tend::{Facts, Listings, States, begin};
use crate::pool::Pool;

/// A rebuilt ledger, and whom it could not take in.
#[derive(Debug)]
pub struct Rebuilt {
    pub ledger: Ledger,
    /// Claims to an address that a later claim won; their agents are told by the next `serve`.
    pub lost: Vec<(RequestId, IpAddr)>,
    /// Addresses held that no range of the pool covers: reported, never moved (R33, R66).
    pub outside: Vec<(RequestId, IpAddr)>,
}

/// Whose part of a proven ledger is put together anew; the rest is left as it is.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Scope {
    /// What was claimed for this policy, on every node (R36).
    Policy(PolicyName),
    /// What this Node claimed, by whichever policy (R37).
    Node(NodeUid),
}

impl Scope {
    fn has(&self, policy: &PolicyName, node: &NodeUid) -> bool {
        match self {
            Self::Policy(of) => of == policy,
            Self::Node(of) => of == node,
        }
    }
}

/// How well a claim to an address is founded; the order decides where sequences are equal.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Standing {
    /// A grant in an enactment that no journal has confirmed.
    Granted,
    /// The journal of a host says so.
    Held,
    /// It is in the ledger already.
    Recorded,
}

struct Candidate {
    standing: Standing,
    /// An enactment lists it: what hosts merely show yields to it.
    listed: bool,
    entry: Entry,
}

/// Rebuilds a ledger from what enactments and hosts say.
pub fn rebuild(ledger: &Ledger, name: &PoolName, pool: &Pool, facts: &Facts<'_>, now: Time) -> Rebuilt {
    let work = gathered(ledger, name, pool, facts, None, now);
    let next = Ledger {
        sequence: highest(ledger, name, &facts.enactments).saturating_add(SEQUENCE_LEAP),
        rebuilt_for: Some(ledger.pool.clone()),
        offsets_agree: true,
        allocations: work.winners.into_iter().map(|(ip, winner)| (ip, winner.entry)).collect(),
        ..ledger.clone()
    };
    Rebuilt { ledger: next, lost: work.lost, outside: work.outside }
}

/// Puts a part of a proven ledger together anew. Nothing is taken from whoever is not in scope, whatever is
/// claimed: in a proven ledger the entry that is there counts. The sequence grows by one where something
/// changed, as with any write, and does not leap: what nobody was asked about must not be hidden.
///
/// `None`: not now. The ledger is not proven, so that all of it has to be rebuilt first; or a holder knows a
/// later one (rule 6), which [`super::serve()`] finds and puts on hold.
pub fn reset(
    ledger: &Ledger,
    name: &PoolName,
    pool: &Pool,
    facts: &Facts<'_>,
    scope: &Scope,
    now: Time,
) -> Option<Rebuilt> {
    let later = |(enactment, _, request, lease, standing): (&Enactment, _, &Request, &Lease, Standing)| {
        standing == Standing::Held
            && facts.is_live(&enactment.node, &enactment.node_uid)
            && knows_later(ledger, &request.id, lease)
    };
    if !ledger.gives() || claims(name, &facts.enactments).any(later) {
        return None;
    }
    let work = gathered(ledger, name, pool, facts, Some(scope), now);
    let sequence = ledger.sequence.saturating_add(1);
    let mut next = ledger.clone();
    for (ip, Candidate { mut entry, .. }) in work.winners {
        entry.sequence = entry.sequence.min(sequence);
        next.allocations.insert(ip, entry);
    }
    if next.allocations != ledger.allocations {
        next.sequence = sequence;
    }
    Some(Rebuilt { ledger: next, lost: work.lost, outside: work.outside })
}

/// Everything that is claimed and shown, in scope, with whoever wins each address.
fn gathered<'a>(
    ledger: &'a Ledger,
    name: &PoolName,
    pool: &'a Pool,
    facts: &'a Facts<'a>,
    scope: Option<&'a Scope>,
    now: Time,
) -> Work<'a> {
    let asserted = claims(name, &facts.enactments)
        .filter(|(.., standing)| *standing == Standing::Held)
        .flat_map(|(_, _, request, lease, _)| lease.ips.iter().map(|ip| (request.id.clone(), *ip)))
        .collect();
    let mut work = Work {
        ledger,
        pool,
        facts,
        scope,
        states: facts.by_node(),
        asserted,
        now,
        winners: BTreeMap::new(),
        lost: Vec::new(),
        outside: Vec::new(),
    };
    let listings = Listings::new(ledger, &facts.enactments);
    for (ip, entry) in &ledger.allocations {
        work.recorded(*ip, entry, listings.has(*ip, entry));
    }
    for (enactment, key, request, lease, standing) in claims(name, &facts.enactments) {
        if work.in_scope(&enactment.policy, &enactment.node_uid) {
            work.claimed(enactment, key, request, lease, standing);
        }
    }
    work.one_address_per_id();
    work.observed();
    work
}

/// What a pool on hold learns from its holders' journals (rule 6): asserted sequences decide, and grants
/// never count. When the time is over, what live hosts show and nobody claims is set aside, the ledger's
/// sequence leaps above all that was seen, and the caller takes the hold off. `None`: nothing new.
pub fn reassert(
    ledger: &Ledger,
    name: &PoolName,
    pool: &Pool,
    facts: &Facts<'_>,
    now: Time,
) -> Option<Ledger> {
    let hold = ledger.hold?;
    let mut next = ledger.clone();
    let mut asserted = BTreeMap::new();
    for (enactment, key, request, lease, standing) in claims(name, &facts.enactments) {
        if standing != Standing::Held {
            continue;
        }
        // A Node that vanished meanwhile counts too: its host has a quarantine to hear of it, which begins
        // when its entry is tended (rule 4). But nothing is given back to it.
        let live = facts.is_live(&enactment.node, &enactment.node_uid);
        for ip in &lease.ips {
            let claimed = entry_for(enactment, key, request, lease, now);
            match next.allocations.get(ip) {
                Some(entry) if entry.request.as_ref() == Some(&request.id) => {
                    if live && (!entry.is_held() || entry.node_uid != enactment.node_uid) {
                        next.allocations
                            .insert(*ip, Entry { since: entry.since, kind: entry.kind, ..claimed });
                    }
                }
                Some(entry) if entry.sequence >= lease.sequence => {}
                _ => {
                    next.allocations.insert(*ip, claimed);
                }
            }
        }
        asserted.insert(&request.id, lease);
    }
    set_aside_others(&mut next, &asserted, &facts.by_node(), hold.until);
    if now >= hold.until {
        for state in facts.states.iter().filter(|state| facts.is_live(&state.node, &state.node_uid)) {
            for ip in state.shows.iter().filter(|ip| pool.contains(**ip)) {
                let until = now.saturating_add(pool.quarantine());
                next.allocations.entry(*ip).or_insert_with(|| shown_by(state, ledger.sequence, until, now));
            }
        }
        next.sequence = highest(ledger, name, &facts.enactments).saturating_add(SEQUENCE_LEAP);
        next.hold = None;
    } else if next != *ledger {
        next.sequence = next.sequence.saturating_add(1);
    }
    (next != *ledger).then_some(next)
}

/// An address that a live host shows and no claim stands behind: set aside until that host's agent says that
/// it is off, or a journal names it (rule 5).
fn shown_by(state: &HostState, sequence: u64, until: Time, now: Time) -> Entry {
    let witness = Some(state.stamp.clone());
    Entry {
        node: state.node.clone(),
        node_uid: state.node_uid.clone(),
        policy: "".into(),
        capture: "".into(),
        request: None,
        sequence,
        since: now,
        kind: EntryKind::Dynamic,
        state: EntryState::Quarantined(Quarantine { until, reason: QuarantineReason::Observed, witness }),
    }
}

/// An id holds what its journal names and nothing else (rule 1).
fn set_aside_others(
    ledger: &mut Ledger,
    asserted: &BTreeMap<&RequestId, &Lease>,
    states: &States<'_>,
    until: Time,
) {
    for (ip, entry) in &mut ledger.allocations {
        let named = entry.request.as_ref().and_then(|id| asserted.get(id));
        if entry.is_held() && named.is_some_and(|lease| !lease.ips.contains(ip)) {
            entry.state = begin(entry, QuarantineReason::Orphan, states, until);
        }
    }
}

/// Has a server that remembers `remembered` proof that the store went back in time?
pub fn went_back(ledger: &Ledger, remembered: u64) -> bool {
    ledger.hold.is_none() && ledger.sequence < remembered
}

/// A Node re-created under its name takes over what its journal proves to be its own (rule 7).
#[derive(Debug, PartialEq, Eq)]
pub enum Inheritance {
    /// Write this ledger; then the entry is the new Node's.
    Write(Ledger),
    /// It is the new Node's already.
    Done,
    /// The ledger has no such entry any more: the address is not ours.
    Lost,
    /// The pool is rebuilding or on hold: assert by `holds` instead.
    NotNow,
}

pub fn inherit(ledger: &Ledger, id: &RequestId, lease: &Lease, uid: &NodeUid) -> Inheritance {
    if ledger.needs_rebuild() || ledger.hold.is_some() || ledger.deleting {
        return Inheritance::NotNow;
    }
    let mut next = ledger.clone();
    next.sequence = next.sequence.saturating_add(1);
    let mut changed = false;
    for ip in &lease.ips {
        let Some(entry) = next.allocations.get_mut(ip) else {
            return Inheritance::Lost;
        };
        if entry.request.as_ref() != Some(id) || !entry.is_recoverable() {
            return Inheritance::Lost;
        }
        if !entry.is_held() || entry.node_uid != *uid {
            entry.node_uid = uid.clone();
            entry.state = EntryState::Held;
            entry.sequence = next.sequence;
            changed = true;
        }
    }
    if changed { Inheritance::Write(next) } else { Inheritance::Done }
}

struct Work<'a> {
    ledger: &'a Ledger,
    pool: &'a Pool,
    facts: &'a Facts<'a>,
    /// None: all of it.
    scope: Option<&'a Scope>,
    states: States<'a>,
    /// What journals name.
    asserted: BTreeSet<(RequestId, IpAddr)>,
    now: Time,
    winners: BTreeMap<IpAddr, Candidate>,
    lost: Vec<(RequestId, IpAddr)>,
    outside: Vec<(RequestId, IpAddr)>,
}

impl Work<'_> {
    fn in_scope(&self, policy: &PolicyName, node: &NodeUid) -> bool {
        self.scope.is_none_or(|scope| scope.has(policy, node))
    }

    fn has(&self, entry: &Entry) -> bool {
        self.in_scope(&entry.policy, &entry.node_uid)
    }

    fn recorded(&mut self, ip: IpAddr, entry: &Entry, listed: bool) {
        let mut entry = entry.clone();
        if entry.is_held() && !listed && self.has(&entry) {
            entry.state = self.quarantined(&entry, QuarantineReason::Orphan);
        }
        self.winners.insert(ip, Candidate { standing: Standing::Recorded, listed, entry });
    }

    fn claimed(
        &mut self,
        enactment: &Enactment,
        key: &SlotKey,
        request: &Request,
        lease: &Lease,
        standing: Standing,
    ) {
        for ip in &lease.ips {
            if !self.pool.contains(*ip) {
                self.outside.push((request.id.clone(), *ip));
                continue;
            }
            let mut entry = entry_for(enactment, key, request, lease, self.now);
            match self.winners.get(ip) {
                Some(winner) if !self.has(&winner.entry) => {
                    // What was merely seen on this very host is its own as soon as it asks (rule 5).
                    let seen = winner.entry.request.is_none() && winner.entry.node_uid == entry.node_uid;
                    if !seen && winner.entry.request.as_ref() != Some(&request.id) {
                        self.lost.push((request.id.clone(), *ip));
                    }
                }
                Some(winner) if winner.entry.request.as_ref() == Some(&request.id) => {
                    if !winner.entry.is_recoverable() || request.declined.contains_key(ip) {
                        continue;
                    }
                    entry = Entry {
                        since: winner.entry.since,
                        kind: winner.entry.kind,
                        sequence: winner.entry.sequence.max(entry.sequence),
                        ..entry
                    };
                    let listed = winner.listed || standing == Standing::Held;
                    let standing = winner.standing.max(standing);
                    self.winners.insert(*ip, Candidate { standing, listed, entry });
                }
                Some(winner) if (winner.entry.sequence, winner.standing) >= (entry.sequence, standing) => {
                    self.lost.push((request.id.clone(), *ip));
                }
                other => {
                    if let Some(id) = other.and_then(|loser| loser.entry.request.clone()) {
                        self.lost.push((id, *ip));
                    }
                    let listed = standing == Standing::Held;
                    self.winners.insert(*ip, Candidate { standing, listed, entry });
                }
            }
        }
    }

    /// An id has at most one Held entry in a family (rule 1): what its journal names, else the latest.
    fn one_address_per_id(&mut self) {
        let mut best: BTreeMap<(RequestId, bool), (bool, u64, IpAddr)> = BTreeMap::new();
        for (ip, winner) in self.winners.iter().filter(|(_, winner)| winner.entry.is_held()) {
            let Some(id) = &winner.entry.request else { continue };
            let rank = (self.asserted.contains(&(id.clone(), *ip)), winner.entry.sequence, *ip);
            let place = best.entry((id.clone(), ip.is_ipv4())).or_insert(rank);
            *place = rank.max(*place);
        }
        let extra: Vec<IpAddr> = self
            .winners
            .iter()
            .filter(|(_, winner)| winner.entry.is_held() && self.has(&winner.entry))
            .filter(|(ip, winner)| {
                let id = winner.entry.request.clone();
                id.and_then(|id| best.get(&(id, ip.is_ipv4()))).is_none_or(|(_, _, best)| best != *ip)
            })
            .map(|(ip, _)| *ip)
            .collect();
        for ip in extra {
            self.put_aside(ip, QuarantineReason::Orphan);
        }
    }

    /// What live hosts show inside the ranges is in use, whoever says otherwise; only `holds` or a listed
    /// entry outranks it.
    fn observed(&mut self) {
        for state in &self.facts.states {
            // Which policy an address on a NIC is of, a host doesn't show.
            let asked = self.scope.is_none_or(|scope| *scope == Scope::Node(state.node_uid.clone()));
            if !asked || !self.facts.is_live(&state.node, &state.node_uid) {
                continue;
            }
            for ip in state.shows.iter().filter(|ip| self.pool.contains(**ip)) {
                let stands =
                    |winner: &Candidate| !self.has(&winner.entry) || self.outranks(winner, *ip, state);
                if self.winners.get(ip).is_some_and(stands) {
                    continue;
                }
                // A predecessor's entry keeps its id: the journal of the Node re-created under this name may
                // prove that it is its own (rule 7).
                let until = self.now.saturating_add(self.pool.quarantine());
                let recorded = self.winners.get(ip).filter(|winner| winner.standing == Standing::Recorded);
                let before = recorded
                    .map(|winner| &winner.entry)
                    .filter(|entry| entry.node == state.node && entry.is_recoverable());
                let mut entry =
                    before.cloned().unwrap_or_else(|| shown_by(state, self.ledger.sequence, until, self.now));
                entry.node_uid = state.node_uid.clone();
                entry.state = self.quarantined(&entry, QuarantineReason::Observed);
                self.winners.insert(*ip, Candidate { standing: Standing::Recorded, listed: true, entry });
            }
        }
    }

    /// Does a claim stand although this host shows the address? By `holds` or a listing, always; what is
    /// recorded and unlisted only if it is this host's own, its holder shows it too, or a stranger on the
    /// wire is the reason.
    fn outranks(&self, winner: &Candidate, ip: IpAddr, state: &HostState) -> bool {
        let entry = &winner.entry;
        let own = |shown: &HostState| shown.node_uid == entry.node_uid && shown.shows.contains(&ip);
        let shows = self.facts.is_live(&entry.node, &entry.node_uid)
            && self.states.get(&entry.node_uid).is_some_and(|shown| own(shown));
        winner.listed
            || (winner.standing == Standing::Recorded
                && (shows || entry.node_uid == state.node_uid || !entry.is_recoverable()))
    }

    fn put_aside(&mut self, ip: IpAddr, reason: QuarantineReason) {
        let Some(entry) = self.winners.get(&ip).map(|winner| winner.entry.clone()) else {
            return;
        };
        let state = self.quarantined(&entry, reason);
        if let Some(winner) = self.winners.get_mut(&ip) {
            winner.entry.state = state;
        }
    }

    fn quarantined(&self, entry: &Entry, reason: QuarantineReason) -> EntryState {
        begin(entry, reason, &self.states, self.now.saturating_add(self.pool.quarantine()))
    }
}

/// What journals name and no range of the pool has (R66): in the order of the addresses, with who holds it.
pub fn outside<'a>(
    name: &PoolName,
    pool: &Pool,
    enactments: impl Iterator<Item = &'a Enactment>,
) -> Vec<(IpAddr, NodeName)> {
    let enactments: Vec<&Enactment> = enactments.collect();
    let held = claims(name, &enactments).filter(|(.., standing)| *standing == Standing::Held);
    let ips = held.flat_map(|(own, _, _, lease, _)| lease.ips.iter().map(|ip| (*ip, own.node.clone())));
    let mut outside: Vec<(IpAddr, NodeName)> = ips.filter(|(ip, _)| !pool.contains(*ip)).collect();
    outside.sort();
    outside
}

/// Every address that a wanting request of this pool holds by its journal, or else was granted.
pub(super) fn claims<'a>(
    pool: &'a PoolName,
    enactments: &'a [&'a Enactment],
) -> impl Iterator<Item = (&'a Enactment, &'a SlotKey, &'a Request, &'a Lease, Standing)> {
    enactments.iter().copied().flat_map(move |enactment| {
        enactment.slots.iter().filter(move |(key, _)| key.pool == *pool).filter_map(move |(key, slot)| {
            let request = slot.request.as_ref().filter(|request| request.want)?;
            if let Some(lease) = &request.holds {
                return Some((enactment, key, request, lease, Standing::Held));
            }
            let grant = slot.grant.as_ref().filter(|grant| grant.id == request.id)?;
            Some((enactment, key, request, &grant.lease, Standing::Granted))
        })
    })
}

/// The highest sequence anybody has spoken of.
fn highest(ledger: &Ledger, pool: &PoolName, enactments: &[&Enactment]) -> u64 {
    let asserted = enactments
        .iter()
        .flat_map(|enactment| enactment.slots.iter())
        .filter(|(key, _)| key.pool == *pool)
        .flat_map(|(_, slot)| {
            let held = slot.request.as_ref().and_then(|request| request.holds.as_ref());
            [held, slot.grant.as_ref().map(|grant| &grant.lease)]
        })
        .flatten()
        .map(|lease| lease.sequence);
    let recorded = ledger.allocations.values().map(|entry| entry.sequence);
    asserted.chain(recorded).fold(ledger.sequence, u64::max)
}

pub(super) fn entry_for(
    enactment: &Enactment,
    key: &SlotKey,
    request: &Request,
    lease: &Lease,
    now: Time,
) -> Entry {
    Entry {
        node: enactment.node.clone(),
        node_uid: enactment.node_uid.clone(),
        policy: enactment.policy.clone(),
        capture: key.capture.clone(),
        request: Some(request.id.clone()),
        sequence: lease.sequence,
        since: now,
        kind: if request.literal.is_some() { EntryKind::Static } else { EntryKind::Dynamic },
        state: EntryState::Held,
    }
}
