//! What the controller does about slices: it frees those of Nodes that are gone, and keeps in the pool's own ledger what is
//! held without a slice. It never gives.

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;

use super::NodeSlice;
use crate::claim::ledger::{Entry, EntryState, Ledger, Quarantine, QuarantineReason};
use crate::claim::names::{NodeName, NodeUid, PoolName, RequestId};
use crate::claim::rebuild::{Standing, claims, entry_for};
use crate::claim::record::{Enactment, HostState, Lease, Time};
use crate::claim::tend::{Brake, Facts, brake_limit};
use crate::pool::Pool;

/// What one look at a pool's slices comes to.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct SlicesTended {
    /// To be written, by slice.
    pub ledgers: BTreeMap<String, Ledger>,
    /// Of gone Nodes, and empty: to be deleted as they were read.
    pub free: Vec<String>,
    pub quarantined: Vec<IpAddr>,
    pub freed: Vec<IpAddr>,
    pub braked: Option<Brake>,
    /// When the next quarantine is over.
    pub until: Option<Time>,
}

/// Slices of Nodes that are gone (rule 4): what is in them is quarantined first, then freed, and an empty one goes. An empty
/// one needs no quarantine: the ledger is written before the NIC, and a write that comes late finds it gone.
///
/// `ledger` is the pool's own. The brake counts holders in all slices together: one slice is one node's, and would vanish
/// whole. What a live host shows stays, unless the pool's own ledger keeps it by now: then a re-created Node asserted it.
pub fn tend_slices(
    slices: &[NodeSlice],
    ledger: Option<&Ledger>,
    facts: &Facts<'_>,
    quarantine: Time,
    now: Time,
) -> SlicesTended {
    let mut tended = SlicesTended::default();
    if ledger.is_some_and(|ledger| ledger.needs_rebuild() || ledger.hold.is_some()) {
        return tended;
    }
    tended.braked = brake(slices, facts);
    let shown = facts.shown();
    let gone = slices.iter().filter(|slice| !facts.is_live(&slice.node, &slice.node_uid));
    for slice in gone {
        if slice.ledger.allocations.is_empty() {
            tended.free.push(slice.name.clone());
            continue;
        }
        let stopped = tended.braked.is_some() && !facts.witnessed.contains(&slice.node_uid);
        let kept = |ip: &IpAddr| ledger.is_some_and(|ledger| ledger.allocations.contains_key(ip));
        let mut next = slice.ledger.clone();
        let latest = now.saturating_add(quarantine);
        for (ip, entry) in &slice.ledger.allocations {
            match &entry.state {
                EntryState::Quarantined(aside) if is_final(&aside.reason) => {
                    if now < aside.until {
                        let end = aside.until.min(latest);
                        tended.until = Some(tended.until.map_or(end, |until| until.min(end)));
                        next.allocations.extend(entry.ending_by(latest).map(|entry| (*ip, entry)));
                    } else if !shown.contains(ip) || kept(ip) {
                        next.allocations.remove(ip);
                        tended.freed.push(*ip);
                    }
                }
                EntryState::Held if stopped => {}
                EntryState::Held | EntryState::Quarantined(_) => {
                    let reason = QuarantineReason::NodeGone;
                    let state = EntryState::Quarantined(Quarantine { until: latest, reason, witness: None });
                    next.allocations.insert(*ip, Entry { state, ..entry.clone() });
                    tended.quarantined.push(*ip);
                }
            }
        }
        if next != slice.ledger {
            next.sequence = next.sequence.saturating_add(1);
            next.rebuilt_for = Some(next.pool.clone());
            tended.ledgers.insert(slice.name.clone(), next);
        }
    }
    tended
}

fn is_final(reason: &QuarantineReason) -> bool {
    matches!(reason, QuarantineReason::NodeGone | QuarantineReason::Collision { .. })
}

/// Slices in which something is held by a Node that is gone, and nobody saw it go: what the brake counts, and holds up.
pub fn vanished_slices<'a>(
    slices: &'a [NodeSlice],
    facts: &'a Facts<'a>,
) -> impl Iterator<Item = &'a NodeSlice> {
    slices.iter().filter(|slice| {
        let is_unseen =
            !facts.is_live(&slice.node, &slice.node_uid) && !facts.witnessed.contains(&slice.node_uid);
        is_unseen && slice.ledger.allocations.values().any(Entry::is_held)
    })
}

fn brake(slices: &[NodeSlice], facts: &Facts<'_>) -> Option<Brake> {
    let holders = |slices: Vec<&NodeSlice>| {
        let held = slices.iter().flat_map(|slice| slice.ledger.allocations.values()).filter(|e| e.is_held());
        held.map(|entry| &entry.request).collect::<BTreeSet<_>>().len()
    };
    let vanished = holders(vanished_slices(slices, facts).collect());
    let allowed = brake_limit(holders(slices.iter().collect()));
    (vanished > allowed && facts.confirmed != Some(vanished)).then_some(Brake { vanished, allowed })
}

/// What enactments and hosts say, without what lies in a slice of the very same Node: what is left belongs into the pool's
/// own ledger. Made for [`crate::claim::rebuild()`] and [`crate::claim::reassert`] of a sliced pool, so that its ledger
/// doesn't grow with its slices.
pub struct Uncovered {
    enactments: Vec<Enactment>,
    states: Vec<HostState>,
}

impl Uncovered {
    pub fn of(pool: &PoolName, slices: &[NodeSlice], facts: &Facts<'_>) -> Self {
        let is_covered = |node: &NodeName, uid: &NodeUid, ip: &IpAddr| {
            slices.iter().any(|slice| slice.is_of(node, uid) && slice.cidr.contains(ip))
        };
        let is_whole = |own: &Enactment, lease: &Lease| {
            lease.ips.iter().all(|ip| is_covered(&own.node, &own.node_uid, ip))
        };
        let enactments = facts.enactments.iter().map(|own| {
            let mut left = (*own).clone();
            left.slots.retain(|key, slot| {
                let held = slot.request.as_ref().and_then(|request| request.holds.as_ref());
                let lease = held.or(slot.grant.as_ref().map(|grant| &grant.lease));
                key.pool != *pool || !lease.is_some_and(|lease| is_whole(own, lease))
            });
            left
        });
        let states = facts.states.iter().map(|state| {
            let mut left = (*state).clone();
            left.shows.retain(|ip| !is_covered(&state.node, &state.node_uid, ip));
            left
        });
        Self { enactments: enactments.collect(), states: states.collect() }
    }

    pub fn facts<'a>(&'a self, facts: &Facts<'a>) -> Facts<'a> {
        Facts {
            enactments: self.enactments.iter().collect(),
            states: self.states.iter().collect(),
            ..facts.clone()
        }
    }
}

/// The pool's own ledger, with what journals of live Nodes name and no slice of theirs covers (a slice deleted by force, a
/// Node re-created under its name, a pool that was not sliced before), and without what a slice has by now, as held or as a
/// stranger's. `None`: it is so.
pub fn gather(
    ledger: &Ledger,
    name: &PoolName,
    pool: &Pool,
    slices: &[NodeSlice],
    facts: &Facts<'_>,
    now: Time,
) -> Option<Ledger> {
    if !ledger.gives() {
        return None;
    }
    let uncovered = Uncovered::of(name, slices, facts);
    let left: Vec<&Enactment> = uncovered.enactments.iter().collect();
    // What a journal names stays until the slice has it as Held.
    let asserted: BTreeSet<(&RequestId, IpAddr)> = claims(name, &facts.enactments)
        .filter(|(.., standing)| *standing == Standing::Held)
        .flat_map(|(_, _, request, lease, _)| lease.ips.iter().map(|ip| (&request.id, *ip)))
        .collect();
    let is_asserted =
        |ip: &IpAddr, entry: &Entry| entry.request.as_ref().is_some_and(|id| asserted.contains(&(id, *ip)));
    let mut next = ledger.clone();
    next.allocations.retain(|ip, entry| {
        let mut around = slices.iter().filter(|slice| slice.cidr.contains(ip));
        !around.any(|slice| {
            let there = slice.ledger.allocations.get(ip);
            slice.is_of(&entry.node, &entry.node_uid)
                && there.is_some_and(|there| match there.is_held() {
                    true => there.request == entry.request || there.stands_against(entry),
                    false => there.stands_against(entry) && !is_asserted(ip, entry),
                })
        })
    });
    for (own, key, request, lease, standing) in claims(name, &left) {
        if standing != Standing::Held || !facts.is_live(&own.node, &own.node_uid) {
            continue;
        }
        for ip in lease.ips.iter().filter(|ip| pool.contains(**ip)) {
            let claimed = || Entry {
                sequence: ledger.sequence.max(lease.sequence),
                ..entry_for(own, key, request, lease, now)
            };
            match next.allocations.get(ip) {
                // A slice that another node holds the address in: its holder is told by its own agent.
                _ if is_held_in_another(slices, own, ip) => {}
                Some(entry) if !entry.is_recoverable() => {}
                Some(entry) if entry.is_held_by(&request.id) && entry.node_uid == own.node_uid => {}
                Some(entry) if entry.request.as_ref() == Some(&request.id) || entry.request.is_none() => {
                    let since = entry.since;
                    next.allocations.insert(*ip, Entry { since, ..claimed() });
                }
                Some(_) => {}
                None => drop(next.allocations.insert(*ip, claimed())),
            }
        }
    }
    if next.allocations == ledger.allocations {
        return None;
    }
    next.sequence = next.sequence.saturating_add(1);
    Some(next)
}

fn is_held_in_another(slices: &[NodeSlice], own: &Enactment, ip: &IpAddr) -> bool {
    slices
        .iter()
        .filter(|slice| slice.node != own.node && slice.cidr.contains(ip))
        .any(|slice| slice.ledger.allocations.get(ip).is_some_and(Entry::is_held))
}
