//! What enactments say is held of a pool, and how well founded that is.

use std::net::IpAddr;

use crate::claim::ledger::{Entry, EntryKind, EntryState, Ledger};
use crate::claim::names::{NodeName, PoolName};
use crate::claim::record::{Enactment, Lease, Request, SlotKey, Time};
use crate::pool::Pool;

/// How well a claim to an address is founded; the order decides where sequences are equal.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(in crate::claim) enum Standing {
    /// A grant in an enactment that no journal has confirmed.
    Granted,
    /// The journal of a host says so.
    Held,
    /// It is in the ledger already.
    Recorded,
}

/// Every address that a wanting request of this pool holds by its journal, or else was granted.
pub(in crate::claim) fn claims<'a>(
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

/// The highest sequence anybody has spoken of.
pub(super) fn highest(ledger: &Ledger, pool: &PoolName, enactments: &[&Enactment]) -> u64 {
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

pub(in crate::claim) fn entry_for(
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
