//! Tending a ledger: what the controller takes back without its holder's word (rule 4).
//!
//! Nothing is freed at once: an entry is quarantined first, and freed when the quarantine is over and the
//! proof still stands. The facts must be read from the API server itself *after* the ledger that guards
//! the write; a cache may only be used to decide that a look is worth it.
//!
//! Cost: O((entries + enactments + shown addresses) log n) per look, one ledger write when something changed.

mod release;

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;

pub use release::{Fate, NotReleased, Released, release};

use super::ledger::{Entry, EntryState, Ledger, Quarantine, QuarantineReason};
use super::names::{NodeName, NodeUid, RequestId};
use super::record::{Enactment, HostState, Time};

/// What the API server says, read after the ledger.
#[derive(Clone)]
pub struct Facts<'a> {
    pub nodes: &'a BTreeMap<NodeName, NodeUid>,
    pub enactments: Vec<&'a Enactment>,
    pub states: Vec<&'a HostState>,
    /// Nodes whose deletion was seen happening: they don't count towards the brake.
    pub witnessed: &'a BTreeSet<NodeUid>,
    /// The administrator's word for a batch of this size (`nmstate.io/confirm-release`).
    pub confirmed: Option<usize>,
}

impl Facts<'_> {
    /// Being deleted or NotReady is not gone: only NotFound, or another UID under the name, is.
    pub fn is_live(&self, node: &NodeName, uid: &NodeUid) -> bool {
        self.nodes.get(node) == Some(uid)
    }

    /// Every address that the host of a live Node shows.
    pub(super) fn shown(&self) -> BTreeSet<IpAddr> {
        let live = self.states.iter().filter(|state| self.is_live(&state.node, &state.node_uid));
        live.flat_map(|state| state.shows.iter().copied()).collect()
    }

    pub(super) fn by_node(&self) -> States<'_> {
        self.states.iter().map(|state| (&state.node_uid, *state)).collect()
    }
}

/// What hosts report, by Node UID.
pub(super) type States<'a> = BTreeMap<&'a NodeUid, &'a HostState>;

/// A quarantine that begins now; the stamp it notes is the report that the agent's word must follow.
pub(super) fn begin(entry: &Entry, reason: QuarantineReason, states: &States<'_>, until: Time) -> EntryState {
    let witness = states.get(&entry.node_uid).map(|state| state.stamp.clone());
    EntryState::Quarantined(Quarantine { until, reason, witness })
}

/// What one look at a ledger comes to.
#[derive(Debug, Default)]
pub struct Tended {
    /// The ledger to write, if anything changed.
    pub ledger: Option<Ledger>,
    pub quarantined: Vec<IpAddr>,
    pub freed: Vec<IpAddr>,
    /// Live Nodes whose agent must report anew before their entries can be freed.
    pub ask_word: BTreeSet<NodeName>,
    pub braked: Option<Brake>,
}

/// Too many holders vanished unseen: somebody has to say that this is meant. Both count holders.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Brake {
    pub vanished: usize,
    pub allowed: usize,
}

/// More unwitnessed deletions at once than this stop: 5 % of the holders, but three at least, since losing
/// three nodes is an ordinary bad day in a small cluster.
pub fn brake_limit(holders: usize) -> usize {
    (holders / 20).max(3)
}

/// Quarantines what lost its holder, frees what has been quarantined long enough.
pub fn tend(ledger: &Ledger, facts: &Facts<'_>, quarantine: Time, now: Time) -> Tended {
    let mut tended = Tended::default();
    // An unproven ledger, or one that may be from the past, is in no state to take anything from anybody.
    if ledger.needs_rebuild() || ledger.hold.is_some() || ledger.deleting {
        return tended;
    }
    let look = Look::new(ledger, facts, now);
    tended.braked = look.brake();
    let mut next = ledger.clone();
    let latest = now.saturating_add(quarantine);
    for (ip, entry) in &ledger.allocations {
        match look.verdict(*ip, entry) {
            Verdict::Keep => next.allocations.extend(entry.ending_by(latest).map(|entry| (*ip, entry))),
            Verdict::AskWord => {
                tended.ask_word.insert(entry.node.clone());
            }
            Verdict::Quarantine(QuarantineReason::NodeGone)
                if tended.braked.is_some() && !facts.witnessed.contains(&entry.node_uid) => {}
            Verdict::Quarantine(reason) => {
                if reason != QuarantineReason::NodeGone {
                    tended.ask_word.insert(entry.node.clone());
                }
                let state = begin(entry, reason, &look.states, latest);
                next.allocations.insert(*ip, Entry { state, ..entry.clone() });
                tended.quarantined.push(*ip);
            }
            Verdict::Free => {
                next.allocations.remove(ip);
                tended.freed.push(*ip);
            }
        }
    }
    if next.allocations != ledger.allocations {
        next.sequence = next.sequence.saturating_add(1);
        tended.ledger = Some(next);
    }
    tended
}

/// May a vanished Node's enactment lose its finalizer? When its entries are free; where its pool does not
/// exist, after one quarantine, so that a pool created meanwhile still learns of it.
pub fn may_finish<'a>(
    enactment: &Enactment,
    ledger_of: impl Fn(&super::names::PoolName) -> Option<&'a Ledger>,
    quarantine: Time,
    now: Time,
) -> bool {
    let Some(since) = enactment.deleting else {
        return false;
    };
    enactment.slots.iter().all(|(key, slot)| {
        let ids = [slot.request.as_ref().map(|r| &r.id), slot.grant.as_ref().map(|g| &g.id)];
        match ledger_of(&key.pool) {
            Some(ledger) if ledger.needs_rebuild() || ledger.hold.is_some() => false,
            Some(ledger) => !ledger
                .allocations
                .values()
                .any(|entry| ids.iter().flatten().any(|id| entry.request.as_ref() == Some(id))),
            None => now >= since.saturating_add(quarantine),
        }
    })
}

enum Verdict {
    Keep,
    AskWord,
    Quarantine(QuarantineReason),
    Free,
}

struct Look<'a> {
    ledger: &'a Ledger,
    facts: &'a Facts<'a>,
    listings: Listings,
    states: States<'a>,
    /// What live hosts show.
    shown: BTreeSet<IpAddr>,
    now: Time,
}

impl<'a> Look<'a> {
    fn new(ledger: &'a Ledger, facts: &'a Facts<'a>, now: Time) -> Self {
        let listings = Listings::new(ledger, &facts.enactments);
        Self { ledger, facts, listings, states: facts.by_node(), shown: facts.shown(), now }
    }
}

impl Look<'_> {
    fn verdict(&self, ip: IpAddr, entry: &Entry) -> Verdict {
        let live = self.facts.is_live(&entry.node, &entry.node_uid);
        let listed = self.listings.has(ip, entry);
        match &entry.state {
            EntryState::Held if !live => Verdict::Quarantine(QuarantineReason::NodeGone),
            EntryState::Held if !listed => Verdict::Quarantine(QuarantineReason::Orphan),
            EntryState::Held => Verdict::Keep,
            EntryState::Quarantined(quarantine) => self.quarantined(ip, entry, quarantine, live, listed),
        }
    }

    fn quarantined(
        &self,
        ip: IpAddr,
        entry: &Entry,
        quarantine: &Quarantine,
        live: bool,
        listed: bool,
    ) -> Verdict {
        let state = self.states.get(&entry.node_uid);
        let spoken = state.filter(|state| Some(&state.stamp) != quarantine.witness.as_ref());
        if live && listed && entry.is_recoverable() {
            return Verdict::Keep;
        }
        // What was set aside for another reason has now lost its Node: its host gets a whole quarantine to
        // hear of it, as any other.
        let vanished = matches!(quarantine.reason, QuarantineReason::Orphan | QuarantineReason::Observed);
        if !live && vanished {
            return Verdict::Quarantine(QuarantineReason::NodeGone);
        }
        match (live, spoken) {
            (true, None) => Verdict::AskWord,
            _ if self.now < quarantine.until => Verdict::Keep,
            // Visibly in use, by whomever: a successor that has yet to assert it, say (rule 7).
            _ if self.shown.contains(&ip) => Verdict::Keep,
            _ => Verdict::Free,
        }
    }

    fn brake(&self) -> Option<Brake> {
        // Holders are counted, not addresses: with two families one holder has two.
        let held = || self.ledger.allocations.values().filter(|entry| entry.is_held());
        let vanished = held()
            .filter(|entry| !self.facts.is_live(&entry.node, &entry.node_uid))
            .filter(|entry| !self.facts.witnessed.contains(&entry.node_uid));
        let holders = |entries: &mut dyn Iterator<Item = &Entry>| {
            entries.map(|entry| &entry.request).collect::<BTreeSet<_>>().len()
        };
        let vanished = holders(&mut vanished.into_iter());
        let allowed = brake_limit(holders(&mut held()));
        (vanished > allowed && self.facts.confirmed != Some(vanished)).then_some(Brake { vanished, allowed })
    }
}

/// Which entries the enactments list: a grant of this address and id, or a request wanting this id that has
/// no other entry Held in that family, and whose host doesn't say that it holds another there (in a slice, say).
pub(super) struct Listings {
    granted: BTreeSet<(NodeUid, RequestId, IpAddr)>,
    /// With what their hosts say they hold.
    wanted: BTreeMap<(NodeUid, RequestId), Vec<IpAddr>>,
    /// The one entry of an id and family that a mere wish may stand for.
    first: BTreeMap<(RequestId, bool), IpAddr>,
}

impl Listings {
    pub(super) fn new(ledger: &Ledger, enactments: &[&Enactment]) -> Self {
        let mut listings = Self { granted: BTreeSet::new(), wanted: BTreeMap::new(), first: BTreeMap::new() };
        for enactment in enactments {
            for slot in enactment.slots.values() {
                if let Some(grant) = &slot.grant {
                    let keys =
                        grant.lease.ips.iter().map(|ip| (enactment.node_uid.clone(), grant.id.clone(), *ip));
                    listings.granted.extend(keys);
                }
                if let Some(request) = slot.request.as_ref().filter(|request| request.want) {
                    let holds = request.holds.as_ref().map(|lease| lease.ips.clone()).unwrap_or_default();
                    listings.wanted.insert((enactment.node_uid.clone(), request.id.clone()), holds);
                }
            }
        }
        // Held ones first: a wish stands for what is held, and for what is quarantined only if nothing is.
        for held in [true, false] {
            for (ip, entry) in ledger.allocations.iter().filter(|(_, entry)| entry.is_held() == held) {
                if let Some(id) = entry.request.as_ref().filter(|_| entry.is_recoverable()) {
                    listings.first.entry((id.clone(), ip.is_ipv4())).or_insert(*ip);
                }
            }
        }
        listings
    }

    pub(super) fn has(&self, ip: IpAddr, entry: &Entry) -> bool {
        let Some(id) = &entry.request else { return false };
        let is_another = |held: &IpAddr| held.is_ipv4() == ip.is_ipv4() && *held != ip;
        let wanted = self.wanted.get(&(entry.node_uid.clone(), id.clone()));
        self.granted.contains(&(entry.node_uid.clone(), id.clone(), ip))
            || (wanted.is_some_and(|holds| !holds.iter().any(is_another))
                && self.first.get(&(id.clone(), ip.is_ipv4())) == Some(&ip))
    }
}
