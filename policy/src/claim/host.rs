//! The agent's side of a claim: from a wish to an address on the NIC, and back (docs/claims.md).
//!
//! Level-triggered and without I/O: [`Host::next`] looks at what was read and says the one thing to do
//! next; the agent does it, tells [`Host::done`], and looks again. A crash between any two leaves
//! something that the next look recognises and finishes. `Host` itself is two things: the journal, which
//! is on disk before its content is used, and a memory that a restart may lose.
//!
//! Cost of a policy's new addresses, of however many pools: two writes to the enactment (requests, holds) and one to the
//! NodeNetworkState (announcement). Of each: one read of its pool (confirmation), two journal writes. At rest: none.

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;

use serde::{Deserialize, Serialize};

use super::ledger::Ledger;
use super::names::{CaptureName, NodeUid, PolicyName, PoolName, RequestId};
use super::record::{Enactment, HostState, Lease, RefusalReason, Request, Slot, SlotKey, Stranger, Time};

mod action;
mod claim;

pub use action::{Action, Outcome};

/// How long a confirmation holds good: long enough for a journal write, far shorter than any quarantine.
pub const CONFIRMED_FOR: Time = 10;

/// One claim of this host: a capture of a policy on a pool.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct ClaimKey {
    pub policy: PolicyName,
    pub pool: PoolName,
    pub capture: CaptureName,
}

impl ClaimKey {
    pub fn slot(&self) -> SlotKey {
        SlotKey { pool: self.pool.clone(), capture: self.capture.clone() }
    }
}

/// What the journal says of a claim.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Record {
    pub id: RequestId,
    /// The Node UID it was made under: the proof of identity when the Node is re-created (rule 7).
    pub node_uid: NodeUid,
    pub phase: Phase,
}

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum Phase {
    /// The id may have been sent; nothing is held.
    Asking { declined: BTreeMap<IpAddr, Stranger> },
    /// Ours: belongs on the NIC, at boot too.
    Holding(Lease),
    /// Was ours when the Node vanished; off the NIC, kept as proof only.
    Parked(Lease),
    /// Off the NIC for good; the id is being given back.
    Releasing,
}

/// The agent's own state: a journal on disk, and what a restart forgets.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Host {
    pub journal: BTreeMap<ClaimKey, Record>,
    pub memory: Memory,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Memory {
    /// The NodeNetworkState was written since this process started.
    pub reported: bool,
    /// Granted and about to be used: shown in the NodeNetworkState first.
    pub announced: BTreeMap<ClaimKey, Lease>,
    /// Grants that the pool backed, and when.
    pub confirmed: BTreeMap<ClaimKey, (Lease, Time)>,
    /// Grants that the pool did not back when asked: not announced until it does.
    pub doubted: BTreeMap<ClaimKey, Lease>,
}

/// What the API server said when asked for this host's Node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NodeSeen {
    Unreachable,
    Gone,
    Is(NodeUid),
}

/// What one look sees. All of it is read from the API server and the kernel.
#[derive(Clone, Copy)]
pub struct Seen<'a> {
    pub now: Time,
    pub node: &'a NodeSeen,
    /// The Node is Ready: needed to ask for a new address only (R26).
    pub ready: bool,
    /// The policies that select this node: their enactments stay, with claims or without.
    pub selected: &'a BTreeSet<PolicyName>,
    /// Claims that they make, with the literal address where there is one.
    pub wants: &'a BTreeMap<ClaimKey, Option<IpAddr>>,
    /// Policies that can't be put on the NIC now: no slot, a broken template, a kernel that refused. What they hold
    /// stays theirs.
    pub waits: &'a BTreeSet<PolicyName>,
    /// The enactments that bear this host's name, by policy: perhaps a predecessor's.
    pub enactments: &'a BTreeMap<PolicyName, Enactment>,
    pub state: Option<&'a HostState>,
    /// Somebody asks for a new report.
    pub refresh: bool,
    /// Pooled addresses on the NICs, told by their mark.
    pub nic: &'a BTreeSet<IpAddr>,
    /// What policies were last brought about with, on the NICs just now or not: of those whose last good state can be had
    /// again, since every pooled address in it is still held.
    pub good: &'a BTreeMap<PolicyName, BTreeSet<IpAddr>>,
    /// A random id, to be used if a new one is needed.
    pub fresh_id: &'a RequestId,
}

/// Does the pool back this grant now? The agent's last question before the journal (rule 2).
pub fn confirms(ledger: Option<&Ledger>, id: &RequestId, lease: &Lease) -> bool {
    ledger.is_some_and(|ledger| ledger.gives() && ledger.backs(id, lease))
}

impl Host {
    /// What a restarted agent knows: its journal.
    pub fn restarted(&self) -> Self {
        Self { journal: self.journal.clone(), memory: Memory::default() }
    }

    /// What is held, and so belongs on the NIC.
    pub fn held(&self) -> impl Iterator<Item = IpAddr> + '_ {
        self.held_by(|_| true)
    }

    /// The same, as far as it is for these policies.
    pub fn held_by<'a>(
        &'a self,
        counts: impl Fn(&PolicyName) -> bool + 'a,
    ) -> impl Iterator<Item = IpAddr> + 'a {
        let own = self.journal.iter().filter(move |(key, _)| counts(&key.policy));
        let leases = own.filter_map(|(_, record)| match &record.phase {
            Phase::Holding(lease) => Some(lease),
            Phase::Asking { .. } | Phase::Parked(_) | Phase::Releasing => None,
        });
        leases.flat_map(|lease| lease.ips.iter().copied())
    }

    /// The next thing to do; `None`: nothing until something changes or a server answers.
    pub fn next(&self, seen: &Seen<'_>) -> Option<Action> {
        match seen.node {
            NodeSeen::Unreachable => self.offline(seen),
            NodeSeen::Gone => self.node_gone(seen),
            NodeSeen::Is(uid) => self.online(seen, uid),
        }
    }

    /// Without the API the journal is all there is: what is held stays, and comes back after a boot.
    fn offline(&self, seen: &Seen<'_>) -> Option<Action> {
        self.journal.iter().find_map(|(key, record)| match &record.phase {
            Phase::Holding(lease) if !seen.waits.contains(&key.policy) => add_missing(key, lease, seen),
            _ => None,
        })
    }

    /// The Node is gone: the addresses will be somebody else's after the quarantine (rule 7).
    fn node_gone(&self, seen: &Seen<'_>) -> Option<Action> {
        if !seen.nic.is_empty() {
            return Some(Action::RemoveFromNic { ips: seen.nic.iter().copied().collect() });
        }
        self.journal.iter().find_map(|(key, record)| match &record.phase {
            Phase::Holding(lease) => Some(journal(key, record, Phase::Parked(lease.clone()))),
            _ => None,
        })
    }

    fn online(&self, seen: &Seen<'_>, uid: &NodeUid) -> Option<Action> {
        self.report(seen, uid).or_else(|| self.unknown_on_nic(seen, uid)).or_else(|| {
            let (next, again) = self.claims(seen, uid);
            next.or_else(|| self.finished_enactment(seen, uid)).or(again)
        })
    }

    /// The NodeNetworkState shows what is on NICs, journalled or announced, from the start of the process on.
    fn report(&self, seen: &Seen<'_>, uid: &NodeUid) -> Option<Action> {
        let announced = self.memory.announced.iter().filter(|(key, lease)| is_granted(key, lease, seen, uid));
        let announced = announced.flat_map(|(_, lease)| lease.ips.iter().copied());
        let shows: BTreeSet<IpAddr> = seen.nic.iter().copied().chain(self.held()).chain(announced).collect();
        let said = seen.state.is_some_and(|state| state.node_uid == *uid && state.shows == shows);
        let due = !self.memory.reported || seen.refresh || !said;
        due.then(|| Action::Report { node_uid: uid.clone(), shows })
    }

    /// A marked address that neither the journal nor the own enactment knows is taken off (rule 7).
    fn unknown_on_nic(&self, seen: &Seen<'_>, uid: &NodeUid) -> Option<Action> {
        let ips: Vec<IpAddr> = seen.nic.iter().filter(|ip| !self.knows(**ip, seen, uid)).copied().collect();
        (!ips.is_empty()).then_some(Action::RemoveFromNic { ips })
    }

    fn knows(&self, ip: IpAddr, seen: &Seen<'_>, uid: &NodeUid) -> bool {
        let journalled = self.held().any(|held| held == ip);
        let own = seen.enactments.values().filter(|enactment| enactment.node_uid == *uid);
        journalled
            || own.flat_map(|enactment| enactment.slots.values()).any(|slot| {
                let granted = slot.grant.as_ref().map(|grant| &grant.lease);
                let held = slot.request.as_ref().and_then(|request| request.holds.as_ref());
                granted.into_iter().chain(held).any(|lease| lease.ips.contains(&ip))
            })
    }

    /// The next thing that a claim needs; and a question that had no answer, for when there is nothing else to do.
    fn claims(&self, seen: &Seen<'_>, uid: &NodeUid) -> (Option<Action>, Option<Action>) {
        let mut keys: BTreeSet<ClaimKey> = self.journal.keys().chain(seen.wants.keys()).cloned().collect();
        for enactment in seen.enactments.values().filter(|enactment| enactment.node_uid == *uid) {
            keys.extend(enactment.slots.keys().map(|slot| ClaimKey {
                policy: enactment.policy.clone(),
                pool: slot.pool.clone(),
                capture: slot.capture.clone(),
            }));
        }
        let mut again = Vec::new();
        let mut writes = Vec::new();
        for key in &keys {
            match claim::next(self, key, seen, uid) {
                Some(action) if self.asks_again(key, &action) => again.push(action),
                Some(action) if action.says_requests() => writes.push(action),
                Some(action) => return (Some(action), None),
                None => {}
            }
        }
        // After the rest, so that what the claims of a policy have to say goes out in one write; what is held before what is
        // asked, which may be refused; and that before what is let go, which another policy here may have asked for by then.
        writes.sort_by_key(|write| (!write.says_held(), write.lets_go()));
        if let Some(write) = writes.into_iter().next() {
            return (Some(write), None);
        }
        // Not before the rest, so that one pool on hold keeps no other claim waiting; by the clock, so that each has its turn.
        let turn = seen.now.checked_rem(again.len() as Time).unwrap_or(0);
        (None, again.into_iter().nth(turn as usize))
    }

    /// A question that may go unanswered for as long as a pool is gone or on hold.
    fn asks_again(&self, key: &ClaimKey, action: &Action) -> bool {
        match action {
            Action::Confirm { lease, .. } => self.memory.doubted.get(key) == Some(lease),
            Action::Inherit { .. } => {
                self.journal.get(key).is_some_and(|record| matches!(record.phase, Phase::Parked(_)))
            }
            _ => false,
        }
    }

    /// An own enactment that nobody wants and that holds nothing is let go. A predecessor's goes when the
    /// journal proved the inheritance; otherwise the controller sees to it.
    fn finished_enactment(&self, seen: &Seen<'_>, uid: &NodeUid) -> Option<Action> {
        seen.enactments.values().find_map(|enactment| {
            let of_policy = |key: &&ClaimKey| key.policy == enactment.policy;
            let records = || self.journal.iter().filter(|(key, _)| of_policy(key)).map(|(_, record)| record);
            let finished = if enactment.node_uid == *uid {
                let wanted = seen.selected.contains(&enactment.policy);
                let idle =
                    enactment.slots.values().all(|slot| slot.request.is_none() && slot.grant.is_none());
                idle && records().next().is_none() && (!wanted || enactment.deleting.is_some())
            } else {
                // Parked claims ask again under the id they inherited.
                let inherited = |record: &Record| {
                    let requests = enactment.slots.values().filter_map(|slot| slot.request.as_ref());
                    matches!(record.phase, Phase::Holding(_))
                        || requests.into_iter().any(|request| request.id == record.id)
                };
                records().any(inherited) && records().all(|record| record.node_uid == *uid)
            };
            let node_uid = enactment.node_uid.clone();
            finished.then(|| Action::DropEnactment { policy: enactment.policy.clone(), node_uid })
        })
    }

    /// Takes in how an action went. Journal changes are applied by the same call that wrote them to disk.
    pub fn done(&mut self, action: &Action, outcome: &Outcome, now: Time) {
        match (action, outcome) {
            (Action::Journal { key, record }, _) => self.journalled(key, record.as_ref()),
            (Action::Report { .. }, _) => self.memory.reported = true,
            (Action::Announce { leases }, _) => self.memory.announced.extend(leases.clone()),
            (Action::Confirm { key, lease }, Outcome::Backed(true)) => {
                self.memory.doubted.remove(key);
                if self.memory.announced.get(key) == Some(lease) {
                    self.memory.confirmed.insert(key.clone(), (lease.clone(), now));
                }
            }
            (Action::Confirm { key, lease }, _) => {
                self.memory.announced.remove(key);
                self.memory.confirmed.remove(key);
                self.memory.doubted.insert(key.clone(), lease.clone());
            }
            _ => {}
        }
    }

    fn journalled(&mut self, key: &ClaimKey, record: Option<&Record>) {
        match record {
            Some(record) => self.journal.insert(key.clone(), record.clone()),
            None => self.journal.remove(key),
        };
        self.memory.announced.remove(key);
        self.memory.confirmed.remove(key);
        self.memory.doubted.remove(key);
    }

    /// Somebody else uses an address that this host holds, on its NIC or not yet there: what must be journalled. From then on
    /// it is off the NIC before a server hears of it, and another is asked for (rule 10).
    pub fn collided(&self, ip: IpAddr, by: &Stranger) -> Option<Action> {
        let holds =
            |record: &Record| matches!(&record.phase, Phase::Holding(lease) if lease.ips.contains(&ip));
        let (key, record) = self.journal.iter().find(|(_, record)| holds(record))?;
        Some(journal(key, record, Phase::Asking { declined: BTreeMap::from([(ip, by.clone())]) }))
    }

    /// What must be journalled after an outcome that changes what is held, if anything.
    pub fn after(&self, action: &Action, outcome: &Outcome) -> Option<Action> {
        match (action, outcome) {
            (Action::AddToNic { .. }, Outcome::Taken { ip, by }) => self.collided(*ip, by),
            (Action::Inherit { key, node_uid, .. }, Outcome::Inherited | Outcome::Asserted) => {
                let mut record = self.journal.get(key)?.clone();
                record.node_uid = node_uid.clone();
                if matches!(record.phase, Phase::Parked(_)) {
                    // What is not on the NIC can wait until the ledger has an answer.
                    if *outcome == Outcome::Asserted {
                        return None;
                    }
                    record.phase = Phase::Asking { declined: BTreeMap::new() };
                }
                Some(Action::Journal { key: key.clone(), record: Some(record) })
            }
            (Action::Inherit { key, .. }, Outcome::NotOurs) => {
                Some(Action::Journal { key: key.clone(), record: None })
            }
            _ => None,
        }
    }
}

fn journal(key: &ClaimKey, record: &Record, phase: Phase) -> Action {
    Action::Journal { key: key.clone(), record: Some(Record { phase, ..record.clone() }) }
}

fn add_missing(key: &ClaimKey, lease: &Lease, seen: &Seen<'_>) -> Option<Action> {
    let missing = lease.ips.iter().any(|ip| !seen.nic.contains(ip));
    missing.then(|| Action::AddToNic { key: key.clone(), lease: lease.clone() })
}

fn on_nic(ips: &[IpAddr], seen: &Seen<'_>) -> Option<Action> {
    let ips: Vec<IpAddr> = ips.iter().filter(|ip| seen.nic.contains(*ip)).copied().collect();
    (!ips.is_empty()).then_some(Action::RemoveFromNic { ips })
}

/// Does the own enactment still grant this? What is granted no more is announced no more.
fn is_granted(key: &ClaimKey, lease: &Lease, seen: &Seen<'_>, uid: &NodeUid) -> bool {
    let own = seen.enactments.get(&key.policy).filter(|enactment| enactment.node_uid == *uid);
    let grant = own.and_then(|own| own.slots.get(&key.slot())).and_then(|slot| slot.grant.as_ref());
    grant.is_some_and(|grant| grant.lease == *lease)
}

/// Is this refusal about something other than the end of a release?
fn is_refused(slot: &Slot, reason: RefusalReason) -> bool {
    slot.refused.as_ref().is_some_and(|refused| {
        refused.reason == reason && slot.request.as_ref().is_some_and(|request| request.id == refused.id)
    })
}
