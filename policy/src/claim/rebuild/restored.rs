//! A store that went back in time (rule 6): on hold, what holders' journals name is put together anew.

use std::collections::BTreeMap;
use std::net::IpAddr;

use super::claims::{Standing, claims, entry_for, highest};
use super::work::take_in_shown;
use crate::claim::ledger::{Entry, Hold, Ledger, QuarantineReason, SEQUENCE_LEAP};
use crate::claim::names::{PoolName, RequestId};
use crate::claim::record::{Lease, Time};
use crate::claim::tend::{Facts, States, begin};
use crate::pool::Pool;

/// What a pool on hold learns from its holders' journals (rule 6): asserted sequences decide, and grants
/// never count. When the time is over, what live hosts show and nobody claims is set aside, the ledger's
/// sequence leaps above all that was seen, and the caller takes the hold off. `None`: nothing new.
///
/// An address that no range of the pool has is reported, nothing else (R99): it is of a pool of the name that was before. Not if this
/// very pool gave it: then its ranges went back in time as well, and whoever appends that one again must find who has what.
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
        let is_of_pool = |ip: &&IpAddr| pool.contains(**ip) || lease.pool == ledger.pool;
        for ip in lease.ips.iter().filter(is_of_pool) {
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
        take_in_shown(&mut next, pool, facts, now);
        next.sequence = highest(ledger, name, &facts.enactments).saturating_add(SEQUENCE_LEAP);
        next.hold = None;
    } else if next != *ledger {
        next.sequence = next.sequence.saturating_add(1);
    }
    (next != *ledger).then_some(next)
}

/// A hold that a leader meets and hasn't begun: it counts from then, and for a whole quarantine. When it was begun says nothing, for it
/// may come out of a backup of days ago, and nobody has been heard since.
pub fn meet(hold: Hold, quarantine: Time, now: Time) -> Hold {
    Hold { until: hold.until.max(now.saturating_add(quarantine)) }
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
