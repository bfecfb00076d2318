//! Serving claims: one function, two callers (docs/claims.md). The controller serves a batch, an agent without
//! a controller serves itself; both write what comes out in one write guarded by [`super::Guard`].
//!
//! Cost: O(ledger) once per batch to index it, then O(log n) per request; one ledger write per batch and
//! one patch per answer that says something new.

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;

use super::ledger::Ledger;
use super::names::{EnactmentUid, NodeUid, RequestId};
use super::record::{Enactment, Grant, Lease, Refusal, RefusalReason, Request, Slot, SlotKey, Time};
use crate::pool::{Barred, NodeView, Pool, Want};

mod batch;
mod index;

use batch::{Batch, Outcome};

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
    /// The grant that the server saw: a late answer must not undo a later one.
    pub replaces: Option<Grant>,
    pub reply: Reply,
    /// Of a grant, by address: the name of the range whose prefix length, gateway and attributes it is written with. Empty
    /// where no range has it.
    pub ranges: Vec<String>,
}

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Reply {
    Grant(Grant),
    Refuse(Refusal),
}

impl Answer {
    /// May it be written into this slot? The JSON patch tests the same: the enactment's UID, the id, want,
    /// and the grant that it replaces.
    pub fn fits(&self, enactment: &Enactment) -> bool {
        let asks = |request: &Request| request.id == self.id && request.want == self.want;
        enactment.uid == self.enactment
            && enactment
                .slots
                .get(&self.key)
                .is_some_and(|slot| slot.request.as_ref().is_some_and(asks) && slot.grant == self.replaces)
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
        return Served { went_back: true, ..Served::default() };
    }
    let mut desk = Desk { batch: Batch::new(ledger, pool, barred, now), served: Served::default() };
    // What is let go can be had by who asks in the same batch: by its own node first, so that a policy that takes another's
    // place there names the same address, and nobody gets it in between (rule 11).
    let lets_go = |ask: &&Asked<'_>| requested(ask).is_some_and(|request| !request.want);
    let (leaving, asked): (Vec<&Asked<'_>>, Vec<&Asked<'_>>) = asked.iter().partition(lets_go);
    let handed: BTreeSet<(&NodeUid, IpAddr)> =
        leaving.iter().flat_map(|ask| desk.batch.hands_on(ask)).collect();
    desk.serve(&leaving);
    // Holders before waiters (rule 5), in a batch too: what a journal names must not be given to the one
    // who happened to ask first.
    let holds =
        |ask: &&Asked<'_>| requested(ask).is_some_and(|request| request.want && request.holds.is_some());
    let (holders, waiters): (Vec<&Asked<'_>>, Vec<&Asked<'_>>) = asked.into_iter().partition(holds);
    desk.serve(&holders);
    let takes_over = |ask: &&Asked<'_>| {
        let literal = requested(ask).and_then(|request| request.literal);
        literal.is_some_and(|ip| handed.contains(&(&ask.enactment.node_uid, ip)))
    };
    let mut waiters: Vec<&[&Asked<'_>]> =
        waiters.chunk_by(|one, other| one.enactment.uid == other.enactment.uid).collect();
    waiters.sort_by_key(|together| !together.iter().any(takes_over));
    for together in waiters {
        desk.serve(together);
    }
    Served { ledger: desk.batch.into_ledger(), ..desk.served }
}

/// A batch, and what has come of it so far.
struct Desk<'a> {
    batch: Batch<'a>,
    served: Served,
}

impl Desk<'_> {
    /// Of the requests that stand in one enactment all are given what is new to them, or none (rule 1):
    /// otherwise two nodes could each wait for ever for what the other has.
    ///
    /// Literal addresses come first: what the policy names itself must not be given to its other captures (rule 11).
    fn serve(&mut self, together: &[&Asked<'_>]) {
        let mut together = together.to_vec();
        together.sort_by_key(|ask| requested(ask).is_none_or(|request| request.literal.is_none()));
        let mut replies = Vec::new();
        for ask in together {
            let Some(request) = requested(ask) else { continue };
            match self.batch.reply(ask, request) {
                Outcome::Reply(reply) => replies.push((ask, request, reply)),
                Outcome::Reread => self.served.reread.push((ask.enactment.uid.clone(), ask.key.clone())),
                Outcome::Wait => {}
            }
        }
        let lacking = replies.iter().find_map(|(.., reply)| no_address(reply).map(str::to_owned));
        let taken_back = self.batch.decide(lacking.is_none());
        for (ask, request, mut reply) in replies {
            if let Some(lacking) = lacking.as_ref().filter(|_| taken_back.contains(&request.id)) {
                let message = format!("all captures of policy {} or none: {lacking}", ask.enactment.policy);
                reply = refuse(request, RefusalReason::NoAddress, message);
            }
            let said = ask.enactment.slots.get(ask.key).is_some_and(|slot| already_says(slot, &reply));
            if !said {
                let ranges = ranges(self.batch.pool(), ask, request, &reply);
                self.served.answers.push(Answer { ranges, ..answer(ask, request, reply) });
            }
        }
    }
}

fn no_address(reply: &Reply) -> Option<&str> {
    match reply {
        Reply::Refuse(refusal) if refusal.reason == RefusalReason::NoAddress => Some(&refusal.message),
        _ => None,
    }
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
            let message = format!("no pool named {}; make it, or correct the name", ask.key.pool);
            refuse(request, RefusalReason::NoSuchPool, message)
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
    let Some(Request { id, want: true, holds: Some(lease), .. }) = requested(ask) else {
        return false;
    };
    ask.live && knows_later(ledger, id, lease)
}

/// Is what this id has by its journal later than the ledger?
pub(super) fn knows_later(ledger: &Ledger, id: &RequestId, lease: &Lease) -> bool {
    if ledger.hold.is_some() || lease.pool != ledger.pool {
        return false;
    }
    lease.sequence > ledger.sequence
        || lease.ips.iter().filter_map(|ip| ledger.allocations.get(ip)).any(|entry| {
            entry.is_held() && entry.request.as_ref() != Some(id) && entry.sequence < lease.sequence
        })
}

fn requested<'a>(ask: &Asked<'a>) -> Option<&'a Request> {
    ask.enactment.slots.get(ask.key)?.request.as_ref()
}

pub(super) fn answer(ask: &Asked<'_>, request: &Request, reply: Reply) -> Answer {
    Answer {
        enactment: ask.enactment.uid.clone(),
        key: ask.key.clone(),
        id: request.id.clone(),
        want: request.want,
        replaces: ask.enactment.slots.get(ask.key).and_then(|slot| slot.grant.clone()),
        reply,
        ranges: Vec::new(),
    }
}

/// The ranges that an answer is written with. By the node's labels as they are when it is written, and never again for what is
/// written: a label that changes moves nobody.
pub(super) fn ranges(pool: &Pool, ask: &Asked<'_>, request: &Request, reply: &Reply) -> Vec<String> {
    let Reply::Grant(grant) = reply else { return Vec::new() };
    let node = NodeView { name: ask.enactment.node.as_str(), labels: ask.labels };
    let want = request.literal.map_or(Want::Any, Want::Exactly);
    let speakers = pool.speakers(&node, want, &grant.lease.ips).into_iter();
    speakers.map(|range| range.map(|range| range.name().to_owned()).unwrap_or_default()).collect()
}

pub(super) fn already_says(slot: &Slot, reply: &Reply) -> bool {
    match reply {
        Reply::Grant(grant) => slot.grant.as_ref() == Some(grant) && slot.refused.is_none(),
        Reply::Refuse(refusal) => slot.refused.as_ref() == Some(refusal) && slot.grant.is_none(),
    }
}

pub(super) fn refuse(request: &Request, reason: RefusalReason, message: String) -> Reply {
    Reply::Refuse(Refusal { id: request.id.clone(), reason, message })
}

fn released(request: &Request) -> Reply {
    refuse(request, RefusalReason::Released, String::new())
}
