//! The ledger while a batch of requests is being served: what rule 1 says of reuse, and all that changes an
//! entry. Called by [`super::serve`] only, request by request; the indexes follow every change.

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;

use super::index::{ClaimOf, Index};
use super::{Asked, Reply, refuse, released};
use crate::claim::ledger::{Entry, EntryKind, EntryState, Ledger, Quarantine, QuarantineReason};
use crate::claim::names::{NodeUid, RequestId};
use crate::claim::record::{Grant, Lease, RefusalReason, Request, Time};
use crate::pool::{self, Barred, Choice, Holder, NoAddress, NodeView, Pool, PoolView, Taken, Want};

/// What a request comes to.
pub(super) enum Outcome {
    Reply(Reply),
    /// Needs a read of the enactment that is later than the ledger's.
    Reread,
    /// Nothing to say now: the pool does not give, or nobody is there to be given.
    Wait,
}

/// The ledger while a batch is being served.
pub(super) struct Batch<'a> {
    pool: &'a Pool,
    barred: &'a Barred,
    now: Time,
    gives: bool,
    ledger: Ledger,
    taken: Taken,
    index: Index,
    /// Newly chosen, and not yet decided upon.
    chosen: Vec<(RequestId, IpAddr)>,
    changed: bool,
}

impl<'a> Batch<'a> {
    pub(super) fn new(ledger: &Ledger, pool: &'a Pool, barred: &'a Barred, now: Time) -> Self {
        let mut batch = Self {
            pool,
            barred,
            now,
            gives: ledger.gives(),
            taken: Taken::of(pool, ledger.allocations.keys().copied()),
            ledger: ledger.clone(),
            index: Index::default(),
            chosen: Vec::new(),
            changed: false,
        };
        for (ip, entry) in &ledger.allocations {
            batch.index.add(*ip, entry);
        }
        batch
    }

    pub(super) fn pool(&self) -> &'a Pool {
        self.pool
    }

    pub(super) fn into_ledger(mut self) -> Option<Ledger> {
        if !self.changed {
            return None;
        }
        self.ledger.sequence = self.next_sequence();
        Some(self.ledger)
    }

    /// Keeps what was chosen since the last decision, or takes it back: from whom.
    pub(super) fn decide(&mut self, keep: bool) -> BTreeSet<RequestId> {
        let chosen = std::mem::take(&mut self.chosen);
        if keep {
            self.changed |= !chosen.is_empty();
            return BTreeSet::new();
        }
        let changed = self.changed;
        for (_, ip) in &chosen {
            self.remove(*ip);
        }
        self.changed = changed;
        chosen.into_iter().map(|(id, _)| id).collect()
    }

    fn next_sequence(&self) -> u64 {
        self.ledger.sequence.saturating_add(1)
    }

    pub(super) fn reply(&mut self, ask: &Asked<'_>, request: &Request) -> Outcome {
        if !request.want {
            self.release(&request.id);
            return Outcome::Reply(released(request));
        }
        if !self.gives || !ask.live {
            return Outcome::Wait;
        }
        self.decline(request);
        // What the host's journal says comes before what the ledger remembers of this id.
        let asserts = request.holds.as_ref().is_some_and(|lease| !self.backs(&request.id, lease));
        if !asserts && self.recover(ask, request) {
            return self.granted(request);
        }
        // The id's entry stands under another Node UID: it was, or is about to be, inherited (rule 7), and
        // this request is the predecessor's.
        if !asserts && self.has_elsewhere(ask, request) {
            return Outcome::Wait;
        }
        let kin = self.kin(ask, request);
        if (request.holds.is_some() || !kin.is_empty()) && !ask.fresh {
            // Until then nobody else gets it.
            let asserted = request.holds.iter().flat_map(|lease| &lease.ips);
            self.taken.extend(asserted.copied());
            return Outcome::Reread;
        }
        if let Some(lease) = &request.holds {
            return self.restore(ask, request, lease);
        }
        if !kin.is_empty() {
            for ip in kin {
                self.hold(ip, ask, request, None);
            }
            return self.granted(request);
        }
        if !ask.ready {
            return Outcome::Wait;
        }
        // Half a claim is no claim (R92), and an id has one address of a family (rule 1).
        self.set_aside_all_but(&request.id, &[]);
        self.choose(ask, request)
    }

    /// What a node lets go of: its own entries of that id.
    pub(super) fn hands_on<'b>(&self, ask: &Asked<'b>) -> Vec<(&'b NodeUid, IpAddr)> {
        let Some(request) = super::requested(ask) else { return Vec::new() };
        let node = &ask.enactment.node_uid;
        let is_own =
            |ip: &IpAddr| self.ledger.allocations.get(ip).is_some_and(|entry| entry.node_uid == *node);
        self.index.of_id(&request.id).filter(is_own).map(|ip| (node, ip)).collect()
    }

    /// Compare-and-delete by id: a stale or repeated release can't free somebody else's (rule 3). What
    /// answers on the wire stays in quarantine: its holder's word says nothing about the stranger.
    fn release(&mut self, id: &RequestId) {
        let mine: Vec<IpAddr> = self.index.of_id(id).collect();
        for ip in mine {
            if self.ledger.allocations.get(&ip).is_some_and(Entry::is_recoverable) {
                self.remove(ip);
            }
        }
    }

    /// Takes what was found in use on the wire out of circulation, and lets go of its other half: a claim
    /// has both families or none.
    fn decline(&mut self, request: &Request) {
        let mine = self.recoverable(self.index.of_id(&request.id));
        if !mine.iter().any(|ip| request.declined.contains_key(ip)) {
            return;
        }
        for ip in mine {
            match request.declined.get(&ip) {
                Some(by) => self.quarantine(ip, QuarantineReason::Collision { by: by.clone() }),
                None => self.remove(ip),
            }
        }
    }

    /// Reuse before allocate: the entry with this id, held or quarantined, is the answer (R24).
    fn recover(&mut self, ask: &Asked<'_>, request: &Request) -> bool {
        let mut mine = self.recoverable(self.index.of_id(&request.id));
        mine.retain(|ip| {
            let entry = self.ledger.allocations.get(ip);
            entry.is_some_and(|entry| entry.node_uid == ask.enactment.node_uid)
                && !request.declined.contains_key(ip)
        });
        let mine = self.whole(mine, request);
        if mine.is_empty() {
            return false;
        }
        self.set_aside_all_but(&request.id, &mine);
        let sequence = self.next_sequence();
        for ip in mine {
            let entry = self.ledger.allocations.get_mut(&ip);
            if let Some(entry) = entry.filter(|entry| !entry.is_held()) {
                entry.state = EntryState::Held;
                entry.sequence = sequence;
                self.changed = true;
            }
        }
        true
    }

    /// Of these, one address per family: what is held before what is quarantined, the later before the
    /// earlier. None where a family of the range is lacking: a claim has both or none (R92).
    fn whole(&self, ips: Vec<IpAddr>, request: &Request) -> Vec<IpAddr> {
        let mut best: BTreeMap<bool, (bool, u64, IpAddr)> = BTreeMap::new();
        for ip in ips {
            let Some(entry) = self.ledger.allocations.get(&ip) else {
                continue;
            };
            let rank = (entry.is_held(), entry.sequence, ip);
            let place = best.entry(ip.is_ipv6()).or_insert(rank);
            *place = rank.max(*place);
        }
        let best: Vec<IpAddr> = best.into_values().map(|(.., ip)| ip).collect();
        let mut covering =
            self.pool.ranges().iter().filter(|range| best.iter().all(|ip| range.contains(*ip))).peekable();
        let whole = request.literal.is_some()
            || covering.peek().is_none()
            || covering.any(|range| range.parts().count() == best.len());
        if whole { best } else { Vec::new() }
    }

    /// An id has one address of a family (rule 1): what else it holds is nobody's. Its holder asks for, or
    /// asserts, something else, so any report that doesn't show it is the agent's word (rule 4).
    fn set_aside_all_but(&mut self, id: &RequestId, keep: &[IpAddr]) {
        for ip in self.held(id).into_iter().filter(|ip| !keep.contains(ip)) {
            self.quarantine(ip, QuarantineReason::Orphan);
        }
    }

    fn recoverable(&self, ips: impl Iterator<Item = IpAddr>) -> Vec<IpAddr> {
        ips.filter(|ip| self.ledger.allocations.get(ip).is_some_and(Entry::is_recoverable)).collect()
    }

    fn has_elsewhere(&self, ask: &Asked<'_>, request: &Request) -> bool {
        self.index.of_id(&request.id).any(|ip| {
            self.ledger
                .allocations
                .get(&ip)
                .is_some_and(|entry| entry.is_recoverable() && entry.node_uid != ask.enactment.node_uid)
        })
    }

    /// The entries of the same Node, policy and capture under another id: the journal was lost (rule 1). And a literal address
    /// that this very Node merely shows: it was there before the pool, and is its own as soon as it asks (rules 5 and 11).
    fn kin(&self, ask: &Asked<'_>, request: &Request) -> Vec<IpAddr> {
        let mut kin = self.recoverable(self.index.of_claim(&ClaimOf::asked(ask)));
        let shown = |ip: &IpAddr| {
            let entry = self.ledger.allocations.get(ip);
            entry.is_some_and(|entry| entry.request.is_none() && entry.node_uid == ask.enactment.node_uid)
        };
        kin.extend(request.literal.filter(shown));
        kin.retain(|ip| {
            !request.declined.contains_key(ip) && request.literal.is_none_or(|literal| literal == *ip)
        });
        self.whole(kin, request)
    }

    /// A holder whose entry is missing, deleted by force say, gets it back (R71), unless another has it. An
    /// address that no range covers is left alone: it is reported, nothing else (R99).
    fn restore(&mut self, ask: &Asked<'_>, request: &Request, lease: &Lease) -> Outcome {
        if lease.ips.is_empty() || lease.ips.iter().any(|ip| !self.pool.contains(*ip)) {
            return Outcome::Wait;
        }
        for ip in &lease.ips {
            let Some(entry) = self.ledger.allocations.get(ip) else {
                continue;
            };
            let own = entry.node_uid == ask.enactment.node_uid
                && (entry.request.is_none() || ClaimOf::asked(ask) == ClaimOf::entry(entry));
            if !own && entry.request.as_ref() != Some(&request.id) {
                let message = format!("{ip} is held by node {}, policy {}", entry.node, entry.policy);
                return Outcome::Reply(refuse(request, RefusalReason::HeldByAnother, message));
            }
        }
        self.set_aside_all_but(&request.id, &lease.ips);
        for ip in &lease.ips {
            self.hold(*ip, ask, request, None);
        }
        self.granted(request)
    }

    fn choose(&mut self, ask: &Asked<'_>, request: &Request) -> Outcome {
        let view = PoolView { pool: self.pool, taken: &self.taken, barred: self.barred };
        let declined: Vec<IpAddr> = request.declined.keys().copied().collect();
        let node = ask.enactment.node.as_str();
        let holder = Holder {
            node,
            capture: ask.key.capture.as_str(),
            declined: &declined,
            want: request.literal.map_or(Want::Any, Want::Exactly),
        };
        match pool::choose(&view, &holder, &NodeView { name: node, labels: ask.labels }) {
            Ok(choice) => {
                let changed = self.changed;
                for given in choice.given() {
                    self.hold(given.ip, ask, request, Some(&choice));
                    self.chosen.push((request.id.clone(), given.ip));
                }
                self.changed = changed;
                self.granted(request)
            }
            Err(none) => {
                let message = self.explain(&none);
                Outcome::Reply(refuse(request, RefusalReason::NoAddress, message))
            }
        }
    }

    /// Why there is none; of a literal address also who has it (rule 11), which the choice can't know.
    fn explain(&self, none: &NoAddress) -> String {
        let holder = match none {
            NoAddress::Held { ip, .. } => self.ledger.allocations.get(ip),
            _ => None,
        };
        let Some(Entry { node, policy, state, .. }) = holder else { return none.to_string() };
        let who = match state {
            EntryState::Quarantined(Quarantine { reason: QuarantineReason::Collision { by }, .. }) => {
                let mac = if by.mac.is_empty() { "another machine" } else { by.mac.as_str() };
                format!("{mac} answers for it on the wire of node {node}")
            }
            _ if policy.as_str().is_empty() => format!("seen on node {node}"),
            EntryState::Held => format!("held by node {node}, policy {policy}"),
            EntryState::Quarantined(_) => {
                format!("in quarantine, was held by node {node}, policy {policy}")
            }
        };
        format!("{none} ({who})")
    }

    fn granted(&self, request: &Request) -> Outcome {
        let ips = self.held(&request.id);
        let sequence =
            ips.iter().filter_map(|ip| self.ledger.allocations.get(ip)).map(|entry| entry.sequence).max();
        let Some(sequence) = sequence else {
            return Outcome::Wait;
        };
        let lease = Lease { ips, sequence, pool: self.ledger.pool.clone() };
        Outcome::Reply(Reply::Grant(Grant { id: request.id.clone(), lease }))
    }

    /// Makes this request the holder of an address, whatever stood there before.
    fn hold(&mut self, ip: IpAddr, ask: &Asked<'_>, request: &Request, choice: Option<&Choice>) {
        let before = self.ledger.allocations.get(&ip);
        let kind = match (choice, before) {
            (Some(choice), _) => choice.kind.into(),
            (None, Some(entry)) if entry.request.is_some() || request.literal.is_none() => entry.kind,
            (None, _) if request.literal.is_some() => EntryKind::Static,
            (None, _) => EntryKind::Dynamic,
        };
        let entry = Entry {
            node: ask.enactment.node.clone(),
            node_uid: ask.enactment.node_uid.clone(),
            policy: ask.enactment.policy.clone(),
            capture: ask.key.capture.clone(),
            request: Some(request.id.clone()),
            sequence: self.next_sequence(),
            since: before.map_or(self.now, |entry| entry.since),
            kind,
            state: EntryState::Held,
        };
        self.remove(ip);
        self.index.add(ip, &entry);
        self.taken.insert(ip);
        self.ledger.allocations.insert(ip, entry);
        self.changed = true;
    }

    fn quarantine(&mut self, ip: IpAddr, reason: QuarantineReason) {
        let until = self.now.saturating_add(self.pool.quarantine());
        if let Some(entry) = self.ledger.allocations.get_mut(&ip) {
            entry.state = EntryState::Quarantined(Quarantine { until, reason, witness: None });
            self.changed = true;
        }
    }

    fn remove(&mut self, ip: IpAddr) {
        let Some(entry) = self.ledger.allocations.remove(&ip) else {
            return;
        };
        self.taken.remove(ip);
        self.index.remove(ip, &entry);
        self.changed = true;
    }

    fn backs(&self, id: &RequestId, lease: &Lease) -> bool {
        let held = self.held(id);
        lease.ips.iter().all(|ip| held.contains(ip))
    }

    fn held(&self, id: &RequestId) -> Vec<IpAddr> {
        let ips = self.index.of_id(id);
        ips.filter(|ip| self.ledger.allocations.get(ip).is_some_and(Entry::is_held)).collect()
    }
}

impl From<pool::Kind> for EntryKind {
    fn from(kind: pool::Kind) -> Self {
        match kind {
            pool::Kind::Dynamic => Self::Dynamic,
            pool::Kind::Static => Self::Static,
            pool::Kind::Reserved => Self::Reserved,
        }
    }
}
