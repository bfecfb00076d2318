//! Releasing one holder's addresses by an administrator's word: what [`super::tend`] would do, for one holder, now.
//!
//! Called by `berth pool release`. The verdicts are those of rule 4, so that there is no second way to free an address: what
//! has lost its holder is quarantined, what has been quarantined long enough is freed, what is in use stays. The one thing
//! that an administrator's word replaces is the brake. Facts must be read after the ledger, as for tending.
//!
//! Cost: as one look at the ledger.

use std::net::IpAddr;

use thiserror::Error;

use super::{EntryState, Facts, Look, QuarantineReason, Verdict, begin};
use crate::claim::ledger::{Entry, Ledger};
use crate::claim::names::{CaptureName, NodeName, PolicyName};
use crate::claim::record::Time;

/// What becomes of a holder's addresses.
#[derive(Clone, Debug)]
pub struct Released {
    /// The ledger to write.
    pub ledger: Ledger,
    /// All addresses of that holder: a claim on both families has one of each, given and lost together (R92).
    pub ips: Vec<IpAddr>,
    /// Who had them.
    pub was: Entry,
    pub fate: Fate,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Fate {
    /// Nobody gets it before then (rule 4).
    Quarantined { until: Time, reason: QuarantineReason },
    /// Its quarantine was over, and what it was quarantined for still holds.
    Freed,
}

/// Why an address stays as it is.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum NotReleased {
    #[error("{ip} is held by nobody: there is nothing to release")]
    Free { ip: IpAddr },
    #[error("nothing is taken from a pool that is being deleted, is on hold, or has to be rebuilt first")]
    Unsettled,
    #[error(
        "{ip} is in use: node {node} is there, and its enactment of policy {policy} (capture {capture}) lists it; \
         take the policy from the node, or delete the Node"
    )]
    Listed { ip: IpAddr, node: NodeName, policy: PolicyName, capture: CaptureName },
    #[error("{ip} is in use: node {node} is there, and its NodeNetworkState shows it")]
    Shown { ip: IpAddr, node: NodeName },
    #[error("{ip} is quarantined already, until {until} s after 1970")]
    Waits { ip: IpAddr, until: Time },
    #[error(
        "{ip} is quarantined, and node {node} is there: it is freed as soon as that node's agent has reported without it"
    )]
    Unspoken { ip: IpAddr, node: NodeName },
}

/// Takes back what the holder of this address has. Nobody's word but rule 4's frees anything at once.
pub fn release(
    ledger: &Ledger,
    ip: IpAddr,
    facts: &Facts<'_>,
    quarantine: Time,
    now: Time,
) -> Result<Released, NotReleased> {
    let ip = ip.to_canonical();
    let was = ledger.allocations.get(&ip).ok_or(NotReleased::Free { ip })?;
    if ledger.needs_rebuild() || ledger.hold.is_some() || ledger.deleting {
        return Err(NotReleased::Unsettled);
    }
    let look = Look::new(ledger, facts, now);
    let verdict = look.verdict(ip, was);
    look.in_use(ip, was, &verdict)?;
    let ips = of_holder(ledger, ip, was);
    let mut next = ledger.clone();
    next.sequence = next.sequence.saturating_add(1);
    let fate = match verdict {
        Verdict::Free => {
            ips.iter().for_each(|ip| drop(next.allocations.remove(ip)));
            Fate::Freed
        }
        Verdict::Quarantine(reason) => {
            let until = now.saturating_add(quarantine);
            for ip in &ips {
                if let Some(entry) = next.allocations.get_mut(ip) {
                    entry.state = begin(entry, reason.clone(), &look.states, until);
                }
            }
            Fate::Quarantined { until, reason }
        }
        Verdict::Keep | Verdict::AskWord => return Err(look.waits(ip, was)),
    };
    Ok(Released { ledger: next, ips, was: was.clone(), fate })
}

/// The addresses of one claim that stand alike.
fn of_holder(ledger: &Ledger, ip: IpAddr, was: &Entry) -> Vec<IpAddr> {
    let alike = |entry: &Entry| {
        was.request.is_some() && entry.request == was.request && entry.is_held() == was.is_held()
    };
    let others = ledger.allocations.iter().filter(|(other, entry)| **other == ip || alike(entry));
    others.map(|(ip, _)| *ip).collect()
}

impl Look<'_> {
    /// A live holder keeps what it has: its enactment lists it, or its host shows it.
    fn in_use(&self, ip: IpAddr, entry: &Entry, verdict: &Verdict) -> Result<(), NotReleased> {
        let node = entry.node.clone();
        if !self.facts.is_live(&entry.node, &entry.node_uid) || matches!(verdict, Verdict::Free) {
            return Ok(());
        }
        if entry.is_recoverable() && self.listings.has(ip, entry) {
            let (policy, capture) = (entry.policy.clone(), entry.capture.clone());
            return Err(NotReleased::Listed { ip, node, policy, capture });
        }
        let shows = self.states.get(&entry.node_uid).is_some_and(|state| state.shows.contains(&ip));
        if shows { Err(NotReleased::Shown { ip, node }) } else { Ok(()) }
    }

    /// Why an entry is neither set aside nor freed now.
    fn waits(&self, ip: IpAddr, entry: &Entry) -> NotReleased {
        let node = entry.node.clone();
        match &entry.state {
            EntryState::Quarantined(quarantine) if self.now < quarantine.until => {
                NotReleased::Waits { ip, until: quarantine.until }
            }
            EntryState::Quarantined(_) if self.shown.contains(&ip) => {
                let shows = |state: &&&crate::claim::HostState| state.shows.contains(&ip);
                let by = self.facts.states.iter().find(shows).map_or(node, |state| state.node.clone());
                NotReleased::Shown { ip, node: by }
            }
            EntryState::Held | EntryState::Quarantined(_) => NotReleased::Unspoken { ip, node },
        }
    }
}
