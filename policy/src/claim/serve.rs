//! Serving claims: one function, two callers (DESIGN 4). The controller serves a batch, an agent without
//! a controller serves itself; both write what comes out in one write guarded by [`super::Guard`].
//!
//! Cost: O(ledger) once per batch to index it, then O(log n) per request; one ledger write per batch and
//! one patch per answer that says something new.

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;

use super::ledger::{Entry, EntryKind, EntryState, Ledger, Quarantine, QuarantineReason};
use super::names::{CaptureName, EnactmentUid, NodeUid, PolicyName, RequestId};
use super::record::{Enactment, Grant, Lease, Refusal, RefusalReason, Request, Slot, SlotKey, Time};
use crate::pool::{self, Barred, Choice, Holder, NoAddress, NodeView, Pool, PoolView, Taken, Want};

/// One request as a server read it.
#[derive(Clone, Copy)]
pub struct Asked<'a> {
    pub enactment: &'a Enactment,
    pub key: &'a SlotKey,
    /// The Node's labels, for ranges with a selector.
    pub labels: &'a BTreeMap<String, String>,
    /// The Node of the enactment's UID exists; what a vanished Node still asks for is not served.
    pub live: bool,
    /// The Node is Ready: needed for a new address, never for one already held (R26).
    pub ready: bool,
    /// Read from the API server *after* the ledger was: only then may an entry change its id (rule 1).
    pub fresh: bool,
}

/// What to write into an enactment, if it is still the one that asked and asks the same (rule 2).
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Answer {
    pub enactment: EnactmentUid,
    pub key: SlotKey,
    pub id: RequestId,
    pub want: bool,
    pub reply: Reply,
}

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Reply {
    Grant(Grant),
    Refuse(Refusal),
}

impl Answer {
    /// May it be written into this slot? The JSON patch tests the same: the enactment's UID, the id, want.
    pub fn fits(&self, enactment: &Enactment) -> bool {
        enactment.uid == self.enactment
            && enactment
                .slots
                .get(&self.key)
                .and_then(|slot| slot.request.as_ref())
                .is_some_and(|request| request.id == self.id && request.want == self.want)
    }

    /// The slot with this answer in it.
    pub fn write(&self, slot: &mut Slot) {
        match &self.reply {
            Reply::Grant(grant) => {
                slot.grant = Some(grant.clone());
                slot.refused = None;
            }
            Reply::Refuse(refusal) => {
                slot.grant = None;
                slot.refused = Some(refusal.clone());
            }
        }
    }
}

/// What serving a batch comes to.
#[derive(Debug, Default)]
pub struct Served {
    /// The ledger to write, if anything changed.
    pub ledger: Option<Ledger>,
    /// Written after the ledger, never before.
    pub answers: Vec<Answer>,
    /// These must be read again from the API server and asked anew with `fresh: true`.
    pub reread: Vec<(EnactmentUid, SlotKey)>,
    /// A holder knows a later ledger than this one: put the pool on hold (rule 6); nothing was served.
    pub went_back: bool,
}

/// Serves requests to one pool.
pub fn serve(ledger: &Ledger, pool: &Pool, barred: &Barred, asked: &[Asked<'_>], now: Time) -> Served {
    if asked.iter().any(|ask| asserts_later(ledger, ask)) {
        return Served {
            went_back: true,
            ..Served::default()
        };
    }
    let mut batch = Batch::new(ledger, pool, barred, now);
    let mut served = Served::default();
    // Holders before waiters (rule 5), in a batch too: what a journal names must not be given to the one
    // who happened to ask first.
    let holds =
        |ask: &&Asked<'_>| requested(ask).is_some_and(|request| request.want && request.holds.is_some());
    let (holders, waiters): (Vec<&Asked<'_>>, Vec<&Asked<'_>>) = asked.iter().partition(holds);
    for ask in holders.into_iter().chain(waiters) {
        let Some(slot) = ask.enactment.slots.get(ask.key) else {
            continue;
        };
        let Some(request) = &slot.request else { continue };
        let reply = match batch.reply(ask, request) {
            Outcome::Reply(reply) => reply,
            Outcome::Reread => {
                served.reread.push((ask.enactment.uid.clone(), ask.key.clone()));
                continue;
            }
            Outcome::Wait => continue,
        };
        if !already_says(slot, &reply) {
            served.answers.push(answer(ask, request, reply));
        }
    }
    served.ledger = batch.into_ledger();
    served
}

/// Answers requests to a pool that does not exist: what was let go is gone, the rest is refused.
pub fn serve_without_pool(asked: &[Asked<'_>]) -> Vec<Answer> {
    let mut answers = Vec::new();
    for ask in asked {
        let Some(slot) = ask.enactment.slots.get(ask.key) else {
            continue;
        };
        let Some(request) = &slot.request else { continue };
        // A holder keeps what it has: the pool may come back, and is then rebuilt from what is held.
        if request.want && (request.holds.is_some() || slot.grant.is_some()) {
            continue;
        }
        let reply = if request.want {
            refuse(
                request,
                RefusalReason::NoSuchPool,
                format!("no pool named {}", ask.key.pool),
            )
        } else {
            released(request)
        };
        if !already_says(slot, &reply) {
            answers.push(answer(ask, request, reply));
        }
    }
    answers
}

/// Does a holder know more than this ledger does? Then the store went back in time (rule 6).
fn asserts_later(ledger: &Ledger, ask: &Asked<'_>) -> bool {
    let Some(Request {
        id,
        want: true,
        holds: Some(lease),
        ..
    }) = requested(ask)
    else {
        return false;
    };
    if !ask.live || ledger.hold.is_some() || lease.pool != ledger.pool {
        return false;
    }
    lease.sequence > ledger.sequence
        || lease
            .ips
            .iter()
            .filter_map(|ip| ledger.allocations.get(ip))
            .any(|entry| {
                entry.is_held() && entry.request.as_ref() != Some(id) && entry.sequence < lease.sequence
            })
}

fn requested<'a>(ask: &Asked<'a>) -> Option<&'a Request> {
    ask.enactment.slots.get(ask.key)?.request.as_ref()
}

fn answer(ask: &Asked<'_>, request: &Request, reply: Reply) -> Answer {
    Answer {
        enactment: ask.enactment.uid.clone(),
        key: ask.key.clone(),
        id: request.id.clone(),
        want: request.want,
        reply,
    }
}

fn already_says(slot: &Slot, reply: &Reply) -> bool {
    match reply {
        Reply::Grant(grant) => slot.grant.as_ref() == Some(grant) && slot.refused.is_none(),
        Reply::Refuse(refusal) => slot.refused.as_ref() == Some(refusal) && slot.grant.is_none(),
    }
}

fn refuse(request: &Request, reason: RefusalReason, message: String) -> Reply {
    Reply::Refuse(Refusal {
        id: request.id.clone(),
        reason,
        message,
    })
}

fn released(request: &Request) -> Reply {
    refuse(request, RefusalReason::Released, String::new())
}

enum Outcome {
    Reply(Reply),
    /// Needs a read of the enactment that is later than the ledger's.
    Reread,
    /// Nothing to say now: the pool does not give, or nobody is there to be given.
    Wait,
}

/// The ledger while a batch is being served.
struct Batch<'a> {
    pool: &'a Pool,
    barred: &'a Barred,
    now: Time,
    gives: bool,
    ledger: Ledger,
    taken: Taken,
    by_id: BTreeMap<RequestId, BTreeSet<IpAddr>>,
    by_claim: BTreeMap<ClaimOf, BTreeSet<IpAddr>>,
    changed: bool,
}

type ClaimOf = (NodeUid, PolicyName, CaptureName);

impl<'a> Batch<'a> {
    fn new(ledger: &Ledger, pool: &'a Pool, barred: &'a Barred, now: Time) -> Self {
        let mut batch = Self {
            pool,
            barred,
            now,
            gives: ledger.gives(),
            taken: Taken::of(pool, ledger.allocations.keys().copied()),
            ledger: ledger.clone(),
            by_id: BTreeMap::new(),
            by_claim: BTreeMap::new(),
            changed: false,
        };
        for (ip, entry) in &ledger.allocations {
            batch.index(*ip, entry);
        }
        batch
    }

    fn into_ledger(mut self) -> Option<Ledger> {
        if !self.changed {
            return None;
        }
        self.ledger.sequence = self.next_sequence();
        Some(self.ledger)
    }

    fn next_sequence(&self) -> u64 {
        self.ledger.sequence.saturating_add(1)
    }

    fn reply(&mut self, ask: &Asked<'_>, request: &Request) -> Outcome {
        if !request.want {
            self.release(&request.id);
            return Outcome::Reply(released(request));
        }
        if !self.gives || !ask.live {
            return Outcome::Wait;
        }
        self.decline(request);
        // What the host's journal says comes before what the ledger remembers of this id.
        let asserts = request
            .holds
            .as_ref()
            .is_some_and(|lease| !self.backs(&request.id, lease));
        if !asserts && self.recover(ask, request) {
            return self.granted(request);
        }
        // The id's entry stands under another Node UID: it was, or is about to be, inherited (rule 7), and
        // this request is the predecessor's.
        if !asserts && self.has_elsewhere(ask, request) {
            return Outcome::Wait;
        }
        let claim = claim_of(ask);
        let kin = self.kin(&claim, request);
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

    /// Compare-and-delete by id: a stale or repeated release can't free somebody else's (rule 3). What
    /// answers on the wire stays in quarantine: its holder's word says nothing about the stranger.
    fn release(&mut self, id: &RequestId) {
        for ip in self.by_id.get(id).cloned().unwrap_or_default() {
            if self
                .ledger
                .allocations
                .get(&ip)
                .is_some_and(Entry::is_recoverable)
            {
                self.remove(ip);
            }
        }
    }

    /// Takes what was found in use on the wire out of circulation, and lets go of its other half: a claim
    /// has both families or none.
    fn decline(&mut self, request: &Request) {
        let mine: Vec<IpAddr> = self.recoverable(self.by_id.get(&request.id));
        if !mine.iter().any(|ip| request.declined.contains_key(ip)) {
            return;
        }
        for ip in mine {
            match request.declined.get(&ip) {
                Some(mac) => self.quarantine(ip, QuarantineReason::Collision { mac: mac.clone() }),
                None => self.remove(ip),
            }
        }
    }

    /// Reuse before allocate: the entry with this id, held or quarantined, is the answer (R24).
    fn recover(&mut self, ask: &Asked<'_>, request: &Request) -> bool {
        let mut mine = self.recoverable(self.by_id.get(&request.id));
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
        let mut covering = self
            .pool
            .ranges()
            .iter()
            .filter(|range| best.iter().all(|ip| range.contains(*ip)))
            .peekable();
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

    fn recoverable(&self, ips: Option<&BTreeSet<IpAddr>>) -> Vec<IpAddr> {
        let ips = ips.into_iter().flatten();
        ips.filter(|ip| self.ledger.allocations.get(ip).is_some_and(Entry::is_recoverable))
            .copied()
            .collect()
    }

    fn has_elsewhere(&self, ask: &Asked<'_>, request: &Request) -> bool {
        self.by_id.get(&request.id).into_iter().flatten().any(|ip| {
            self.ledger
                .allocations
                .get(ip)
                .is_some_and(|entry| entry.is_recoverable() && entry.node_uid != ask.enactment.node_uid)
        })
    }

    /// The entries of the same Node, policy and capture under another id: the journal was lost (rule 1).
    fn kin(&self, claim: &ClaimOf, request: &Request) -> Vec<IpAddr> {
        let mut kin = self.recoverable(self.by_claim.get(claim));
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
                && (entry.request.is_none() || claim_of(ask) == claim_of_entry(entry));
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
        let view = PoolView {
            pool: self.pool,
            taken: &self.taken,
            barred: self.barred,
        };
        let declined: Vec<IpAddr> = request.declined.keys().copied().collect();
        let node = ask.enactment.node.as_str();
        let holder = Holder {
            node,
            capture: ask.key.capture.as_str(),
            declined: &declined,
            want: request.literal.map_or(Want::Any, Want::Exactly),
        };
        match pool::choose(
            &view,
            &holder,
            &NodeView {
                name: node,
                labels: ask.labels,
            },
        ) {
            Ok(choice) => {
                for given in choice.given() {
                    self.hold(given.ip, ask, request, Some(&choice));
                }
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
        match holder {
            None => none.to_string(),
            Some(entry) if entry.policy.as_str().is_empty() => {
                format!("{none} (seen on node {})", entry.node)
            }
            Some(entry) => {
                let word = if entry.is_held() {
                    "held by"
                } else {
                    "in quarantine, was held by"
                };
                format!("{none} ({word} node {}, policy {})", entry.node, entry.policy)
            }
        }
    }

    fn granted(&self, request: &Request) -> Outcome {
        let ips = self.held(&request.id);
        let sequence = ips
            .iter()
            .filter_map(|ip| self.ledger.allocations.get(ip))
            .map(|entry| entry.sequence)
            .max();
        let Some(sequence) = sequence else {
            return Outcome::Wait;
        };
        let lease = Lease {
            ips,
            sequence,
            pool: self.ledger.pool.clone(),
        };
        Outcome::Reply(Reply::Grant(Grant {
            id: request.id.clone(),
            lease,
        }))
    }

    /// Makes this request the holder of an address, whatever stood there before.
    fn hold(&mut self, ip: IpAddr, ask: &Asked<'_>, request: &Request, choice: Option<&Choice>) {
        let before = self.ledger.allocations.get(&ip);
        let kind = match (choice, before) {
            (Some(choice), _) => choice.kind.into(),
            (None, Some(entry)) => entry.kind,
            (None, None) if request.literal.is_some() => EntryKind::Static,
            (None, None) => EntryKind::Dynamic,
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
        self.index(ip, &entry);
        self.taken.insert(ip);
        self.ledger.allocations.insert(ip, entry);
        self.changed = true;
    }

    fn quarantine(&mut self, ip: IpAddr, reason: QuarantineReason) {
        let until = self.now.saturating_add(self.pool.quarantine());
        if let Some(entry) = self.ledger.allocations.get_mut(&ip) {
            entry.state = EntryState::Quarantined(Quarantine {
                until,
                reason,
                witness: None,
            });
            self.changed = true;
        }
    }

    fn remove(&mut self, ip: IpAddr) {
        let Some(entry) = self.ledger.allocations.remove(&ip) else {
            return;
        };
        self.taken.remove(ip);
        if let Some(id) = &entry.request {
            forget(&mut self.by_id, id, ip);
        }
        forget(&mut self.by_claim, &claim_of_entry(&entry), ip);
        self.changed = true;
    }

    fn index(&mut self, ip: IpAddr, entry: &Entry) {
        let Some(id) = &entry.request else { return };
        self.by_id.entry(id.clone()).or_default().insert(ip);
        self.by_claim.entry(claim_of_entry(entry)).or_default().insert(ip);
    }

    fn backs(&self, id: &RequestId, lease: &Lease) -> bool {
        let held = self.held(id);
        lease.ips.iter().all(|ip| held.contains(ip))
    }

    fn held(&self, id: &RequestId) -> Vec<IpAddr> {
        let ips = self.by_id.get(id).into_iter().flatten();
        ips.filter(|ip| self.ledger.allocations.get(ip).is_some_and(Entry::is_held))
            .copied()
            .collect()
    }
}

fn forget<K: Ord>(index: &mut BTreeMap<K, BTreeSet<IpAddr>>, key: &K, ip: IpAddr) {
    if let Some(ips) = index.get_mut(key) {
        ips.remove(&ip);
        if ips.is_empty() {
            index.remove(key);
        }
    }
}

fn claim_of(ask: &Asked<'_>) -> ClaimOf {
    (
        ask.enactment.node_uid.clone(),
        ask.enactment.policy.clone(),
        ask.key.capture.clone(),
    )
}

fn claim_of_entry(entry: &Entry) -> ClaimOf {
    (
        entry.node_uid.clone(),
        entry.policy.clone(),
        entry.capture.clone(),
    )
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
