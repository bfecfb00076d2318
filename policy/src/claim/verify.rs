//! Whether what is recorded of a pool agrees: its ledger, the enactments, and, where somebody looked, the interfaces.
//!
//! Called by `berth pool verify`, which reads and prints; nothing is repaired here, for what can be is repaired by the
//! controller all the time. What is under way is no difference: a request that was granted but is not said to be held yet, an
//! id that was let go, the enactment of a vanished Node that waits for its quarantine.
//!
//! What is read is never of one moment. A caller looks twice, and believes what it sees both times.
//!
//! Cost: O((entries + enactments + sightings) log n).

mod difference;

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;

pub use difference::{Claimant, Difference, Place};

use super::ledger::{EntryState, Ledger};
use super::names::{NodeName, NodeUid, PoolName, RequestId};
use super::record::{Enactment, Lease, Slot};
use super::tend::{Facts, Listings};
use crate::pool::{Pool, Status};

/// What was seen on interfaces.
#[derive(Clone, Debug, Default)]
pub struct Sightings {
    /// The Nodes that were looked at: what these lack is known to be lacking.
    pub looked: BTreeSet<NodeUid>,
    pub seen: Vec<Sighting>,
}

/// An address on an interface of a Node.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Sighting {
    pub ip: IpAddr,
    pub node: NodeName,
    pub node_uid: NodeUid,
    pub interface: String,
}

/// Every difference, by kind and then by address. `ledger` has the entries of the pool's slices too.
pub fn verify(
    name: &PoolName,
    pool: &Pool,
    ledger: &Ledger,
    facts: &Facts<'_>,
    sightings: &Sightings,
) -> Vec<Difference> {
    let look = Look { name, pool, ledger, facts, listings: Listings::new(ledger, &facts.enactments) };
    let mut found = Vec::new();
    if ledger.rebuilt_for.as_ref() != Some(&ledger.pool) || ledger.reset {
        found.push(Difference::Unproven);
    }
    if !ledger.offsets_agree {
        found.push(Difference::Offsets);
    }
    look.entries(&mut found);
    look.enactments(&mut found);
    look.interfaces(sightings, &mut found);
    found.sort();
    found.dedup();
    found
}

struct Look<'a> {
    name: &'a PoolName,
    pool: &'a Pool,
    ledger: &'a Ledger,
    facts: &'a Facts<'a>,
    listings: Listings,
}

impl Look<'_> {
    /// The ledger against itself, the Nodes and the enactments.
    fn entries(&self, found: &mut Vec<Difference>) {
        let mut first: BTreeMap<(&RequestId, bool), IpAddr> = BTreeMap::new();
        for (ip, entry) in self.ledger.allocations.iter().map(|(ip, entry)| (*ip, entry)) {
            let holder = Claimant::of(entry);
            if !self.pool.contains(ip) {
                found.push(Difference::OutOfRange { ip, holder: holder.clone() });
            }
            if !entry.is_held() {
                continue;
            }
            if let Some(id) = &entry.request
                && let Some(other) = first.insert((id, ip.is_ipv4()), ip)
            {
                found.push(Difference::Twice { ip, other, holder: holder.clone() });
            }
            if !self.facts.is_live(&entry.node, &entry.node_uid) {
                found.push(Difference::NodeGone { ip, holder });
            } else if !self.listings.has(ip, entry) {
                found.push(Difference::Unlisted { ip, holder });
            }
        }
    }

    /// What enactments of live Nodes say they have, against the ledger.
    fn enactments(&self, found: &mut Vec<Difference>) {
        let live = |own: &&&Enactment| self.facts.is_live(&own.node, &own.node_uid);
        for own in self.facts.enactments.iter().filter(live) {
            for (key, slot) in own.slots.iter().filter(|(key, _)| key.pool == *self.name) {
                let holder = Claimant {
                    node: own.node.clone(),
                    policy: own.policy.clone(),
                    capture: key.capture.clone(),
                };
                for (id, ip) in claimed(slot) {
                    let entry = self.ledger.allocations.get(&ip);
                    if entry.is_some_and(|entry| entry.request.as_ref() == Some(id)) {
                        continue;
                    }
                    let ledger = entry.map(Claimant::of);
                    found.push(Difference::Unbacked { ip, holder: holder.clone(), ledger });
                }
            }
        }
    }

    fn interfaces(&self, sightings: &Sightings, found: &mut Vec<Difference>) {
        for seen in sightings.seen.iter().filter(|seen| self.is_given(seen.ip)) {
            let ip = seen.ip;
            let at = Place { node: seen.node.clone(), interface: seen.interface.clone() };
            match self.ledger.allocations.get(&ip) {
                None => found.push(Difference::Unrecorded { ip, at }),
                Some(entry) if entry.node_uid != seen.node_uid => {
                    found.push(Difference::Elsewhere { ip, holder: Claimant::of(entry), at });
                }
                Some(entry) => {
                    if let EntryState::Quarantined(_) = entry.state {
                        found.push(Difference::SetAside { ip, holder: Claimant::of(entry), at });
                    }
                }
            }
        }
        let on: BTreeSet<(&NodeUid, IpAddr)> =
            sightings.seen.iter().map(|seen| (&seen.node_uid, seen.ip)).collect();
        let said = self.said();
        for (ip, entry) in self.ledger.allocations.iter().filter(|(_, entry)| entry.is_held()) {
            let looked = sightings.looked.contains(&entry.node_uid);
            let is_said = entry.request.as_ref().is_some_and(|id| said.contains(&(id, *ip)));
            if looked && is_said && !on.contains(&(&entry.node_uid, *ip)) {
                found.push(Difference::NotThere { ip: *ip, holder: Claimant::of(entry) });
            }
        }
    }

    /// May anybody be given it? Gateways and excluded addresses are on interfaces as they should be.
    fn is_given(&self, ip: IpAddr) -> bool {
        !matches!(self.pool.explain(ip), Status::OutOfRange | Status::Gateway { .. } | Status::Excluded(_))
    }

    /// What agents said that they have put to use. A grant alone is still on its way.
    fn said(&self) -> BTreeSet<(&RequestId, IpAddr)> {
        let slots = self.facts.enactments.iter().flat_map(|own| own.slots.values());
        let wanted = slots.filter_map(|slot| slot.request.as_ref()).filter(|request| request.want);
        let held = wanted.filter_map(|request| Some((&request.id, request.holds.as_ref()?)));
        held.flat_map(|(id, lease)| lease.ips.iter().map(move |ip| (id, *ip))).collect()
    }
}

/// What a slot says it has, unless it lets go of it.
fn claimed(slot: &Slot) -> BTreeSet<(&RequestId, IpAddr)> {
    let wanted = slot.request.as_ref().filter(|request| request.want);
    let Some(request) = wanted else { return BTreeSet::new() };
    let of = |id, lease: &Lease| lease.ips.iter().map(move |ip| (id, *ip)).collect::<Vec<_>>();
    let held = request.holds.as_ref().map(|lease| of(&request.id, lease));
    let granted = slot.grant.as_ref().map(|grant| of(&grant.id, &grant.lease));
    let declined = |(_, ip): &(&RequestId, IpAddr)| !request.declined.contains_key(ip);
    held.into_iter().chain(granted).flatten().filter(declined).collect()
}
