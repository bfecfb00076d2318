//! The slices of one node as one ledger, and back. All of it is its agent's to write, so its word is enough to free.

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;

use super::{NodeSlice, SlicedView, requested};
use crate::claim::ledger::{Entry, EntryState, Ledger, Quarantine, QuarantineReason};
use crate::claim::names::RequestId;
use crate::claim::record::{Lease, Request, Time};
use crate::claim::serve::Asked;
use crate::pool::Pool;

/// The slices without what this host knows to be nobody's: it is the only one that could use it, and it shows, holds and
/// asks for none of it (rule 4: only holders free at once; here the holder is whoever asks).
pub(super) fn tidied(view: &SlicedView<'_>) -> Vec<NodeSlice> {
    let wanted: BTreeSet<&RequestId> =
        view.asked.iter().filter_map(requested).filter(|request| request.want).map(|r| &r.id).collect();
    let claims = |entry: &Entry| {
        view.asked.iter().any(|ask| {
            let own = ask.enactment;
            own.policy == entry.policy
                && ask.key.capture == entry.capture
                && own.node_uid == entry.node_uid
                && requested(ask).is_some_and(|request| request.want)
        })
    };
    // What the journal of this host names is so, whatever its slice remembers of before.
    let asserted: BTreeMap<IpAddr, &RequestId> = view
        .asked
        .iter()
        .filter_map(requested)
        .filter(|request| request.want)
        .flat_map(|request| {
            request.holds.iter().flat_map(move |l| l.ips.iter().map(move |ip| (*ip, &request.id)))
        })
        .collect();
    let held: BTreeSet<(&RequestId, bool)> = view
        .own
        .iter()
        .flat_map(|slice| &slice.ledger.allocations)
        .filter(|(_, entry)| entry.is_held())
        .filter_map(|(ip, entry)| Some((entry.request.as_ref()?, ip.is_ipv4())))
        .collect();
    let stays = |ip: &IpAddr, entry: &Entry| {
        if asserted.get(ip).is_some_and(|id| entry.request.as_ref() != Some(id)) {
            return false;
        }
        if view.shown.contains(ip) {
            return true;
        }
        // What a stranger has had stays as long as the pool's own ledger says otherwise, which would count again.
        if let Some(until) = entry.collides_until() {
            let pools = view.ledger.allocations.get(ip);
            return view.now < until || pools.is_some_and(|pools| entry.stands_against(pools));
        }
        let id = entry.request.as_ref();
        match &entry.state {
            EntryState::Quarantined(_) => {
                id.is_some_and(|id| wanted.contains(id) && !held.contains(&(id, ip.is_ipv4())))
            }
            EntryState::Held => id.is_some_and(|id| view.known.contains(id)) || claims(entry),
        }
    };
    let mut own = view.own.to_vec();
    for slice in &mut own {
        // What goes confirms nothing (rule 2): what was given out of it and is not in use yet never will be, and would keep its
        // holder from another.
        let goes = slice.ledger.deleting;
        let unused = |ip: &IpAddr, entry: &Entry| entry.is_recoverable() && !view.shown.contains(ip);
        slice.ledger.allocations.retain(|ip, entry| stays(ip, entry) && !(goes && unused(ip, entry)));
    }
    own
}

/// One ledger of all of them, which gives when the pool does. What the pool's own ledger has inside them counts more: it was
/// put together from what hosts hold, but for what [`Entry::stands_against`] it; what a host merely shows only keeps the address
/// from being given.
pub(super) fn combined(pool: &Ledger, own: &[NodeSlice], asked: &[Asked<'_>], now: Time) -> Ledger {
    let mut allocations: BTreeMap<IpAddr, Entry> = BTreeMap::new();
    for slice in own {
        allocations.extend(slice.ledger.allocations.clone());
    }
    for (ip, entry) in &pool.allocations {
        if !own.iter().any(|slice| slice.cidr.contains(ip)) {
            continue;
        }
        match entry.request {
            Some(_) if allocations.get(ip).is_some_and(|own| own.stands_against(entry)) => {}
            Some(_) => drop(allocations.insert(*ip, as_said(ip, entry, asked))),
            None => drop(allocations.entry(*ip).or_insert_with(|| entry.clone())),
        }
    }
    if pool.gives() {
        asked.iter().for_each(|ask| hold_again(&mut allocations, ask));
    }
    let asserted = asked.iter().filter_map(requested).filter_map(|request| request.holds.as_ref());
    let sequence = own.iter().map(|slice| slice.ledger.sequence).chain(asserted.map(|lease| lease.sequence));
    Ledger { sequence: sequence.fold(now, u64::max), allocations, ..pool.clone() }
}

/// What the pool's own ledger has as Held by an id whose journal names another address is no second one of it (rule 1): it is set
/// aside, until a controller has seen that too. So it is each time alike, and is written once.
fn as_said(ip: &IpAddr, entry: &Entry, asked: &[Asked<'_>]) -> Entry {
    let names_another = |lease: &Lease| {
        let mut family = lease.ips.iter().filter(|held| held.is_ipv4() == ip.is_ipv4()).peekable();
        family.peek().is_some() && family.all(|held| held != ip)
    };
    let is_another = asked.iter().any(|ask| {
        ask.enactment.node_uid == entry.node_uid
            && requested(ask).is_some_and(|request| {
                request.want
                    && entry.is_held_by(&request.id)
                    && request.holds.as_ref().is_some_and(names_another)
            })
    });
    let aside = || Quarantine { until: entry.since, reason: QuarantineReason::Orphan, witness: None };
    let state = if is_another { EntryState::Quarantined(aside()) } else { entry.state.clone() };
    Entry { state, ..entry.clone() }
}

/// What a journal names and is set aside under its id is Held again (rule 1), also in a slice that goes.
fn hold_again(allocations: &mut BTreeMap<IpAddr, Entry>, ask: &Asked<'_>) {
    let Some(Request { id, want: true, holds: Some(lease), .. }) = requested(ask) else { return };
    for ip in &lease.ips {
        let own = allocations.get_mut(ip).filter(|entry| entry.request.as_ref() == Some(id));
        if let Some(entry) =
            own.filter(|entry| entry.node_uid == ask.enactment.node_uid && entry.is_recoverable())
        {
            entry.state = EntryState::Held;
        }
    }
}

/// The pool cut down to them, as far as it would cut them and they are not on their way out.
pub(super) fn within(pool: &Pool, own: &[NodeSlice]) -> Pool {
    let gives = own.iter().filter(|slice| slice.gives()).map(|slice| slice.cidr);
    let cut: Vec<_> = gives.filter(|cidr| pool.within(&[*cidr]).is_ok()).collect();
    // Each is one by itself, so all are together.
    pool.within(&cut).unwrap_or_else(|_| pool.clone())
}

/// What changed, by slice: first where nothing is held that wasn't.
pub(super) fn split(own: &[NodeSlice], next: &Ledger) -> Vec<(String, Ledger)> {
    let (mut ledgers, mut gaining) = (Vec::new(), Vec::new());
    for slice in own {
        let mine = next.allocations.iter().filter(|(ip, entry)| {
            slice.cidr.contains(*ip) && entry.node == slice.node && entry.node_uid == slice.node_uid
        });
        let allocations: BTreeMap<IpAddr, Entry> = mine.map(|(ip, entry)| (*ip, entry.clone())).collect();
        if allocations == slice.ledger.allocations && slice.ledger.rebuilt_for.is_some() {
            continue;
        }
        // An empty one that was never written needs no ledger: it is filled, or given back.
        if allocations == slice.ledger.allocations && allocations.is_empty() {
            continue;
        }
        let sequence = next.sequence.max(slice.ledger.sequence.saturating_add(1));
        let rebuilt_for = Some(slice.ledger.pool.clone());
        let was_held = |ip: &IpAddr| slice.ledger.allocations.get(ip).is_some_and(Entry::is_held);
        let gains = allocations.iter().any(|(ip, entry)| entry.is_held() && !was_held(ip));
        let ledger = Ledger { sequence, rebuilt_for, allocations, ..slice.ledger.clone() };
        if gains { &mut gaining } else { &mut ledgers }.push((slice.name.clone(), ledger));
    }
    ledgers.append(&mut gaining);
    ledgers
}
