//! Sliced pools (`perNodeHostBits`): each node serves itself from blocks that nobody else writes (docs/slices.md).
//!
//! **Who may give what.** A `NodeIPSlice` is a block and its ledger. Creating it is claiming it: its name is the lock. Its
//! node's agent alone gives out of it ([`serve_slices`]) and takes back what is its own; the controller takes a slice only
//! when its Node is gone ([`tend_slices`]). The pool's own ledger stays, and says three things: whether anything may be given
//! at all (`rebuiltFor`, hold, deletion), what is held or shown inside the ranges by whoever has no slice around it, and so
//! which blocks nobody else may take. It is near empty where all is well.
//!
//! **Why nobody holds an address of a slice that was just made.** Whoever holds one has a slice around it, whose name is
//! then taken, or an entry in the pool's ledger, and a block with another's entry is not chosen. Both are so from the moment
//! that the pool is rebuilt (rule 5), which is before it gives its first slice: a rebuild takes in all that enactments hold
//! and hosts show, but for what lies in a slice of the very same Node ([`Uncovered`]). Slices outlive their pool: they bear
//! its name, not its UID.
//!
//! **Sequences** are no less than the time they are written at: of two claims to one address in two slices, one after the
//! other, the later has the higher, though neither ledger knows the other.
//!
//! **What a slice is made with.** Where one slice and one address in it is all that a claim needs, the address is in the object
//! that makes the slice ([`NewSlice::first`]): what the next look would have written is written with it.
//!
//! Cost: as `serve`, on the slices of one node: O(own entries log n), twice where a slice is made. A slice costs one write to take
//! with an address, two where it is not the only one or has several, one to give out of, two to give back. Choosing one is
//! O(log slices known).

mod controller;
mod grow;
mod own;

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;

use ipnet::IpNet;

use super::ledger::{Entry, EntryKind, Ledger};
use super::names::{EnactmentUid, NodeName, NodeUid, PoolUid, RequestId};
use super::record::{RefusalReason, Request, Slot, SlotKey, Time};
use super::serve::{Answer, Asked, Reply, refuse, serve, serve_without_pool};
use crate::pool::{Barred, NoAddress, Pool};

pub use controller::{SlicesTended, Uncovered, gather, tend_slices, vanished_slices};

/// A slice, with its ledger.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct NodeSlice {
    /// Of its object.
    pub name: String,
    pub cidr: IpNet,
    pub node: NodeName,
    pub node_uid: NodeUid,
    /// Its own UID stands for the pool's. Complete by its creation: whatever else it says, it is the whole of it.
    pub ledger: Ledger,
}

impl NodeSlice {
    pub fn is_of(&self, node: &NodeName, uid: &NodeUid) -> bool {
        self.node == *node && self.node_uid == *uid
    }

    /// When the first address of it is to be free that a stranger on the wire has: nothing else in it is freed by time alone.
    pub fn first_end(&self) -> Option<Time> {
        self.ledger.allocations.values().filter_map(Entry::collides_until).min()
    }

    /// May a new address be given out of it? Not while it goes, nor while somebody holds it up by hand.
    fn gives(&self) -> bool {
        !self.ledger.deleting && self.ledger.hold.is_none()
    }
}

/// What an agent knows when it serves itself from a sliced pool.
#[derive(Clone, Copy)]
pub struct SlicedView<'a> {
    pub pool: &'a Pool,
    /// The pool's own.
    pub ledger: &'a Ledger,
    pub barred: &'a Barred,
    /// This host's, under its present UID.
    pub own: &'a [NodeSlice],
    /// Slices known to be others', and whose, where that is known. More may be: the name is the lock.
    pub others: &'a BTreeMap<IpNet, Option<NodeName>>,
    /// This host's requests to the pool.
    pub asked: &'a [Asked<'a>],
    /// Ids that the journal or any own enactment knows.
    pub known: &'a BTreeSet<RequestId>,
    /// On a NIC, journalled or announced.
    pub shown: &'a BTreeSet<IpAddr>,
    pub now: Time,
}

/// A slice to be made.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct NewSlice {
    pub name: String,
    pub cidr: IpNet,
    pub range: String,
    /// Held from its creation on, as if its ledger had been written at once: all that its ledger would have.
    pub first: Option<(IpAddr, Entry)>,
}

/// What serving oneself comes to: done in the order of the fields.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct SlicesServed {
    /// To be made first; then look again. Where one can't be had, it is another's: look again with that known.
    pub create: Vec<NewSlice>,
    /// These enactments must be read again, and asked anew with `fresh: true`.
    pub reread: Vec<(EnactmentUid, SlotKey)>,
    /// The ledgers to write, by slice, and in this order: what is set aside before what is held in its place, so that nobody
    /// holds both (rule 1), wherever it is cut off.
    pub ledgers: Vec<(String, Ledger)>,
    /// Empty, and nobody waits for them: given back at once, since an empty slice is a block that no other node has. Before
    /// the answers: what was let go is asked about until it is answered, so a crash in between is finished.
    pub give_back: Vec<String>,
    pub answers: Vec<Answer>,
}

impl NewSlice {
    /// The ledger of the slice that was made, whose UID is this.
    pub fn ledger(&self, uid: PoolUid) -> Ledger {
        let empty = Ledger::new(uid);
        let Some((ip, entry)) = &self.first else { return empty };
        Ledger {
            sequence: entry.sequence,
            rebuilt_for: Some(empty.pool.clone()),
            allocations: BTreeMap::from([(*ip, entry.clone())]),
            ..empty
        }
    }
}

/// Serves this host's requests to a sliced pool.
pub fn serve_slices(view: &SlicedView<'_>) -> SlicesServed {
    let mut served = look(view);
    if served.reread.is_empty()
        && let [new] = &mut served.create[..]
    {
        new.first = first(view, new);
    }
    served
}

/// What the next look would write into a slice that is to be made, if that is all it would write, and one plain address.
fn first(view: &SlicedView<'_>, new: &NewSlice) -> Option<(IpAddr, Entry)> {
    let host = view.asked.first()?.enactment;
    let made = NodeSlice {
        name: new.name.clone(),
        cidr: new.cidr,
        node: host.node.clone(),
        node_uid: host.node_uid.clone(),
        // A UID that nothing is told by.
        ledger: Ledger::new(view.ledger.pool.clone()),
    };
    let own = [view.own, &[made]].concat();
    let next = look(&SlicedView { own: &own, ..*view });
    let is_all = next.create.is_empty() && next.reread.is_empty() && next.ledgers.len() == 1;
    let (_, ledger) = next.ledgers.iter().find(|(name, _)| *name == new.name).filter(|_| is_all)?;
    let (ip, entry) = ledger.allocations.first_key_value().filter(|_| ledger.allocations.len() == 1)?;
    let is_plain = entry.is_held()
        && entry.kind == EntryKind::Dynamic
        && entry.request.is_some()
        && entry.sequence == ledger.sequence;
    is_plain.then(|| (*ip, entry.clone()))
}

fn look(view: &SlicedView<'_>) -> SlicesServed {
    let own = own::tidied(view);
    let ledger = own::combined(view.ledger, &own, view.asked, view.now);
    let within = own::within(view.pool, &own);
    let served = serve(&ledger, &within, view.barred, view.asked, view.now);
    let next = served.ledger.as_ref().unwrap_or(&ledger);
    let waits: BTreeSet<&SlotKey> = served.reread.iter().map(|(_, key)| key).collect();
    let grown = grow::grow(view, &own, &within, next, &|key| waits.contains(key));
    if !grown.create.is_empty() || !served.reread.is_empty() {
        return SlicesServed { create: grown.create, reread: served.reread, ..SlicesServed::default() };
    }
    let ledgers = own::split(view.own, next);
    let is_empty = |slice: &&NodeSlice| {
        let written = ledgers.iter().find(|(name, _)| *name == slice.name);
        written.map_or(&slice.ledger, |(_, ledger)| ledger).allocations.is_empty()
    };
    // While nothing may be given nothing is moved about either; but what is being deleted goes, and what this host could not
    // use if it might: nobody would ask about it again.
    let goes =
        |slice: &&NodeSlice| view.ledger.gives() || slice.ledger.deleting || !may_use(view, &slice.cidr);
    let give_back = view.own.iter().filter(is_empty).filter(goes).map(|slice| slice.name.clone()).collect();
    SlicesServed { answers: answers(view, served.answers, &grown), ledgers, give_back, ..Default::default() }
}

/// Might this host use an address of this block, as soon as the pool gives again? It shows one, or has one by its journal or a
/// grant; or it waits for one, and will ask then.
fn may_use(view: &SlicedView<'_>, block: &IpNet) -> bool {
    let slots = view.asked.iter().filter_map(|ask| ask.enactment.slots.get(ask.key));
    let wanted = |slot: &Slot| slot.request.as_ref().is_some_and(|request| request.want);
    let uses = |slot: &Slot| {
        let held = slot.request.as_ref().and_then(|request| request.holds.as_ref());
        let lease = held.or(slot.grant.as_ref().map(|grant| &grant.lease));
        lease.is_none_or(|lease| lease.ips.iter().any(|ip| block.contains(ip)))
    };
    view.shown.iter().any(|ip| block.contains(ip)) || slots.filter(|slot| wanted(slot)).any(uses)
}

/// The same while there is no such pool: what was let go is gone from the slices too, and so is, in its time, what a stranger
/// has; the rest stays.
pub fn serve_slices_without_pool(own: &[NodeSlice], asked: &[Asked<'_>], now: Time) -> SlicesServed {
    let gone =
        |id: &RequestId| asked.iter().filter_map(requested).any(|request| request.id == *id && !request.want);
    let mut served = SlicesServed { answers: serve_without_pool(asked), ..SlicesServed::default() };
    for slice in own {
        let mut next = slice.ledger.clone();
        next.allocations.retain(|_, entry| match entry.collides_until() {
            Some(until) => now < until,
            None => !entry.request.as_ref().is_some_and(gone),
        });
        if next.allocations.is_empty() {
            served.give_back.push(slice.name.clone());
        }
        if next.allocations != slice.ledger.allocations {
            next.sequence = next.sequence.max(now).saturating_add(1);
            served.ledgers.push((slice.name.clone(), next));
        }
    }
    served
}

/// Do these slices, and the pool, back this grant now (rule 2)? All of it read for this very question.
pub fn slices_confirm(
    ledger: &Ledger,
    own: &[NodeSlice],
    id: &RequestId,
    lease: &super::record::Lease,
) -> bool {
    let gives: Vec<NodeSlice> = own.iter().filter(|slice| slice.gives()).cloned().collect();
    let combined = own::combined(ledger, &gives, &[], 0);
    super::host::confirms(Some(&combined), id, lease)
}

/// Where no slice is to be had, that is the reason, in its own words; where another has the block around what a journal
/// names, its holder has lost it.
fn answers(view: &SlicedView<'_>, served: Vec<Answer>, grown: &grow::Grown) -> Vec<Answer> {
    let of = |answer: &Answer| {
        view.asked.iter().find(|ask| ask.enactment.uid == answer.enactment && *ask.key == answer.key)
    };
    let mut answers: Vec<Answer> = served
        .into_iter()
        .map(|mut answer| {
            if let (Reply::Refuse(refusal), Some(none)) = (&mut answer.reply, grown.lacking.get(&answer.id))
                && refusal.reason == RefusalReason::NoAddress
                && let Some(message) = words(view, none)
            {
                refusal.message = message;
            }
            // Serving had a pool cut down to what gives; of a slice that goes, it is the whole pool that has the range.
            if let Some((ask, request)) = of(&answer).and_then(|ask| Some((ask, requested(ask)?))) {
                answer.ranges = super::serve::ranges(view.pool, ask, request, &answer.reply);
            }
            answer
        })
        .collect();
    for ask in view.asked {
        let Some(request) = requested(ask) else { continue };
        let Some((ip, node)) = grown.lost.get(&request.id) else { continue };
        let message = format!("{ip} is in a slice of node {node}");
        answers.push(super::serve::answer(
            ask,
            request,
            refuse(request, RefusalReason::HeldByAnother, message),
        ));
    }
    answers.retain(|answer| {
        let slot = of(answer).and_then(|ask| ask.enactment.slots.get(ask.key));
        !slot.is_some_and(|slot| super::serve::already_says(slot, &answer.reply))
    });
    answers
}

/// Why no slice was found; nothing, where one's own is in the way: then what serving said of its holder is the reason. Of a
/// literal address it says whose the slice is (rule 11), as far as that is known.
fn words(view: &SlicedView<'_>, none: &NoAddress) -> Option<String> {
    let NoAddress::SliceHeld { ip, cidr, pool } = none else { return Some(none.to_string()) };
    if view.own.iter().any(|slice| slice.cidr == *cidr) {
        return None;
    }
    let entry = view.ledger.allocations.iter().find(|(ip, _)| cidr.contains(*ip));
    let node = view.others.get(cidr).cloned().flatten().or_else(|| Some(entry?.1.node.clone()));
    Some(match node {
        Some(node) => format!("slice {cidr} of pool {pool}, where {ip} lies, belongs to node {node}"),
        None => none.to_string(),
    })
}

fn requested<'a>(ask: &Asked<'a>) -> Option<&'a Request> {
    ask.enactment.slots.get(ask.key)?.request.as_ref()
}

/// Why no slice was found.
type Lacking = BTreeMap<RequestId, NoAddress>;
