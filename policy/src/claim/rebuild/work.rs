//! Who wins each address, of all that the ledger records, enactments claim and hosts show.

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;

use super::Scope;
use super::claims::{Standing, claims, entry_for};
use crate::claim::ledger::{Entry, EntryKind, EntryState, Ledger, Quarantine, QuarantineReason};
use crate::claim::names::{NodeUid, PolicyName, PoolName, RequestId};
use crate::claim::record::{Enactment, HostState, Lease, Request, SlotKey, Time};
use crate::claim::tend::{Facts, Listings, States, begin};
use crate::pool::Pool;

pub(super) struct Candidate {
    standing: Standing,
    /// An enactment lists it: what hosts merely show yields to it.
    listed: bool,
    pub(super) entry: Entry,
}

/// Everything that is claimed and shown, in scope, with whoever wins each address.
pub(super) fn gathered<'a>(
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

pub(super) struct Work<'a> {
    ledger: &'a Ledger,
    pool: &'a Pool,
    facts: &'a Facts<'a>,
    /// None: all of it.
    scope: Option<&'a Scope>,
    states: States<'a>,
    /// What journals name.
    asserted: BTreeSet<(RequestId, IpAddr)>,
    now: Time,
    pub(super) winners: BTreeMap<IpAddr, Candidate>,
    pub(super) lost: Vec<(RequestId, IpAddr)>,
    pub(super) outside: Vec<(RequestId, IpAddr)>,
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

/// What live hosts show inside the ranges and no entry is of.
pub(super) fn take_in_shown(ledger: &mut Ledger, pool: &Pool, facts: &Facts<'_>, now: Time) {
    let (sequence, until) = (ledger.sequence, now.saturating_add(pool.quarantine()));
    for state in facts.states.iter().filter(|state| facts.is_live(&state.node, &state.node_uid)) {
        for ip in state.shows.iter().filter(|ip| pool.contains(**ip)) {
            ledger.allocations.entry(*ip).or_insert_with(|| shown_by(state, sequence, until, now));
        }
    }
}

/// An address that a live host shows and no claim stands behind: set aside until that host's agent says that
/// it is off, or a journal names it (rule 5).
pub(super) fn shown_by(state: &HostState, sequence: u64, until: Time, now: Time) -> Entry {
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
