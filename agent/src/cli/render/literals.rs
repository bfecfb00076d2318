//! Literal addresses of a policy in a pool's range: claimed for the node, or refused with who holds them (rule 11).
//!
//! Claimed in the ledger before any capture asks, so that no capture is given what the policy names itself.

use std::collections::BTreeMap;
use std::fmt;
use std::net::IpAddr;

use ipnet::IpNet;
use policy::capture::Place;
use policy::claim::{Entry, EntryKind, EntryState, Ledger, RequestId};
use policy::pool::{Holder, PoolView, SliceView, Taken, TakenSlices, Want, choose, choose_slice};
use policy::template::Literal;

use super::grants::{Claims, Why, ips};
use crate::ledger::claims::{NO_TIME, NotGiving};

/// Who stands in the way of a literal address.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Holds {
    Node {
        node: String,
        policy: String,
        quarantined: bool,
    },
    /// A capture of this very policy: the address would stand there twice.
    Capture(String),
    /// The pool lists offsets only.
    Nobody,
}

impl fmt::Display for Holds {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Node { node, policy, quarantined } => {
                let word = if *quarantined { "in quarantine: it was held by" } else { "held by" };
                write!(f, "{word} node {node}")?;
                if policy.is_empty() { Ok(()) } else { write!(f, ", policy {policy}") }
            }
            Self::Capture(capture) => {
                write!(f, "held by this node for capture {capture:?} of this policy: one of the two must go")
            }
            Self::Nobody => write!(f, "held, and the pool's status doesn't say by whom"),
        }
    }
}

impl Claims<'_> {
    /// Claims the literals in the ledger. Returns the slices that the node takes for them.
    pub(super) fn claim_literals(
        &self,
        ledger: &mut Ledger,
        refused: &mut BTreeMap<Place, Why>,
    ) -> Vec<IpNet> {
        let mut slices = Vec::new();
        for literal in &self.literals {
            match self.claim_literal(ledger, literal) {
                Ok(slice) => slices.extend(slice.filter(|slice| !slices.contains(slice))),
                Err(why) => drop(refused.insert(Place::Field(literal.path.clone()), why)),
            }
        }
        slices
    }

    /// Claims one, unless the node holds it already; with the slice that is taken for it.
    fn claim_literal(&self, ledger: &mut Ledger, literal: &Literal) -> Result<Option<IpNet>, Why> {
        let (ip, capture) = (literal.ip, literal.capture());
        let pool = self.known.pool.name().to_owned();
        if let Some(holder) = self.in_the_way(ledger, ip) {
            return Err(Why::Taken { ip, pool, holder });
        }
        if ledger.allocations.contains_key(&ip) {
            return Ok(None);
        }
        if !ledger.gives() {
            return Err(Why::NotGiving { pool, why: NotGiving::of(ledger) });
        }
        let slice = self.choose_literal(ledger, ip)?;
        let entry = Entry {
            node: self.node.name.into(),
            node_uid: self.node_uid(ledger, &capture),
            policy: self.policy.into(),
            request: Some(RequestId::new(format!("render:{capture}"))),
            capture: capture.as_str().into(),
            sequence: ledger.sequence,
            since: NO_TIME,
            kind: EntryKind::Static,
            state: EntryState::Held,
        };
        ledger.allocations.insert(ip, entry);
        Ok(slice)
    }

    /// Who else has it: not this policy on this node, unless by one of its captures.
    fn in_the_way(&self, ledger: &Ledger, ip: IpAddr) -> Option<Holds> {
        let capture = |wish: &str| Some(Holds::Capture(wish.to_owned()));
        if let Some(wish) =
            self.wishes.iter().find(|wish| wish.held.is_some_and(|held| ips(held).any(|one| one == ip)))
        {
            return capture(wish.capture);
        }
        let entry = ledger.allocations.get(&ip)?;
        // What the node merely shows is its own, too.
        let own = entry.node.as_str() == self.node.name && (entry.is_held() || entry.request.is_none());
        let same =
            |name: &&str| own && entry.policy.as_str() == self.policy && entry.capture.as_str() == *name;
        let is_ours = ["", self.policy].contains(&entry.policy.as_str());
        match self.wishes.iter().map(|wish| wish.capture).find(same) {
            Some(wish) => capture(wish),
            None if own && is_ours => None,
            None if entry.node.as_str().is_empty() => Some(Holds::Nobody),
            None => Some(Holds::Node {
                node: entry.node.to_string(),
                policy: entry.policy.to_string(),
                quarantined: !entry.is_held(),
            }),
        }
    }

    /// What the pool says to this very address; of a sliced pool, the slice around it.
    fn choose_literal(&self, ledger: &Ledger, ip: IpAddr) -> Result<Option<IpNet>, Why> {
        let (pool, barred) = (&self.known.pool, &self.barred);
        let holder = Holder { node: self.node.name, capture: "", declined: &[], want: Want::Exactly(ip) };
        if !pool.is_sliced() {
            let taken = Taken::of(pool, ledger.allocations.keys().copied());
            choose(&PoolView { pool, taken: &taken, barred }, &holder, &self.node)?;
            return Ok(None);
        }
        let around = self.known.slices.iter().find(|slice| slice.cidr.contains(&ip));
        if let Some(other) = around.filter(|slice| slice.node != self.node.name) {
            let (pool, cidr, node) = (pool.name().to_owned(), other.cidr, other.node.clone());
            return Err(Why::SliceOf { ip, pool, cidr, node });
        }
        // Its own slices don't stand in its way.
        let taken = TakenSlices::new(pool);
        let choice = choose_slice(&SliceView { pool, taken: &taken, barred }, &holder, &self.node)?;
        let chosen = choice.v4.or(choice.v6).map(|slice| slice.cidr);
        Ok(chosen.filter(|_| around.is_none()))
    }
}
