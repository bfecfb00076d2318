//! Ledgers that must first be proven: new ones, reset ones, and those of a store that went back in time.
//!
//! Holders before waiters (rule 5): such a ledger gives nothing until it knows every holder. Only the
//! controller writes what comes out of here. Cost: O((entries + enactments + shown addresses) log n), one
//! ledger write.

mod claims;
mod inherit;
mod restored;
mod work;

use std::net::IpAddr;

use super::ledger::{Ledger, SEQUENCE_LEAP};
use super::names::{NodeUid, PolicyName, PoolName, RequestId};
use super::record::{Enactment, Lease, Request, Time};
use super::serve::knows_later;
use super::tend::Facts;
use crate::pool::Pool;
use claims::highest;
use work::{Candidate, gathered, take_in_shown};

pub use claims::outside;
pub(super) use claims::{Standing, claims, entry_for};
pub use inherit::{Inheritance, inherit};
pub use restored::{meet, reassert, went_back};

/// A rebuilt ledger, and whom it could not take in.
#[derive(Debug)]
pub struct Rebuilt {
    pub ledger: Ledger,
    /// Claims to an address that a later claim won; their agents are told by the next `serve`.
    pub lost: Vec<(RequestId, IpAddr)>,
    /// Addresses held that no range of the pool covers: reported, never moved (R33, R66).
    pub outside: Vec<(RequestId, IpAddr)>,
}

/// Whose part of a proven ledger is put together anew; the rest is left as it is.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Scope {
    /// What was claimed for this policy, on every node (R36).
    Policy(PolicyName),
    /// What this Node claimed, by whichever policy (R37).
    Node(NodeUid),
}

impl Scope {
    fn has(&self, policy: &PolicyName, node: &NodeUid) -> bool {
        match self {
            Self::Policy(of) => of == policy,
            Self::Node(of) => of == node,
        }
    }
}

/// Rebuilds a ledger from what enactments and hosts say.
pub fn rebuild(ledger: &Ledger, name: &PoolName, pool: &Pool, facts: &Facts<'_>, now: Time) -> Rebuilt {
    let work = gathered(ledger, name, pool, facts, None, now);
    let next = Ledger {
        sequence: highest(ledger, name, &facts.enactments).saturating_add(SEQUENCE_LEAP),
        rebuilt_for: Some(ledger.pool.clone()),
        offsets_agree: true,
        allocations: work.winners.into_iter().map(|(ip, winner)| (ip, winner.entry)).collect(),
        ..ledger.clone()
    };
    Rebuilt { ledger: next, lost: work.lost, outside: work.outside }
}

/// A proven ledger whose pool may have ranges by now that it had not when the ledger was proven: what live hosts show there and
/// nobody claims is set aside for them, as by a rebuild (rule 5), before anything is given. Read after the ledger, that is no
/// address which was just let go: its host said that it is off before. `None`: there is nothing of the kind.
pub fn notice(ledger: &Ledger, pool: &Pool, facts: &Facts<'_>, now: Time) -> Option<Ledger> {
    let mut next = ledger.clone();
    take_in_shown(&mut next, pool, facts, now);
    if !ledger.gives() || next.allocations == ledger.allocations {
        return None;
    }
    next.sequence = next.sequence.saturating_add(1);
    Some(next)
}

/// Puts a part of a proven ledger together anew. Nothing is taken from whoever is not in scope, whatever is
/// claimed: in a proven ledger the entry that is there counts. The sequence grows by one where something
/// changed, as with any write, and does not leap: what nobody was asked about must not be hidden.
///
/// `None`: not now. The ledger is not proven, so that all of it has to be rebuilt first; or a holder knows a
/// later one (rule 6), which [`super::serve()`] finds and puts on hold.
pub fn reset(
    ledger: &Ledger,
    name: &PoolName,
    pool: &Pool,
    facts: &Facts<'_>,
    scope: &Scope,
    now: Time,
) -> Option<Rebuilt> {
    let later = |(enactment, _, request, lease, standing): (&Enactment, _, &Request, &Lease, Standing)| {
        standing == Standing::Held
            && facts.is_live(&enactment.node, &enactment.node_uid)
            && knows_later(ledger, &request.id, lease)
    };
    if !ledger.gives() || claims(name, &facts.enactments).any(later) {
        return None;
    }
    let work = gathered(ledger, name, pool, facts, Some(scope), now);
    let sequence = ledger.sequence.saturating_add(1);
    let mut next = ledger.clone();
    for (ip, Candidate { mut entry, .. }) in work.winners {
        entry.sequence = entry.sequence.min(sequence);
        next.allocations.insert(ip, entry);
    }
    if next.allocations != ledger.allocations {
        next.sequence = sequence;
    }
    Some(Rebuilt { ledger: next, lost: work.lost, outside: work.outside })
}
