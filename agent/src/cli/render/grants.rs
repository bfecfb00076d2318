//! Addresses for a policy's captures: what a server of claims would answer, from what the files say.
//!
//! The order is the server's (DESIGN 4, rule 1): what the enactment holds, what the ledger has for this node, policy and
//! capture (R24), a reservation, the next one chosen. In a sliced pool the choice is made within the node's slices, and
//! within the next slice it would take where they are full.

use std::collections::BTreeMap;
use std::fmt;
use std::net::IpAddr;

use ipnet::IpNet;
use policy::capture::{Granted, GrantedAddress, Grants};
use policy::pool::{
    Barred, Family, Given, Holder, NoAddress, NodeView, NotASlice, Pool, PoolView, SliceView, Taken,
    TakenSlices, Want, choose, choose_slice,
};
use thiserror::Error;

use super::captured::Captured;
use crate::cli::UsageError;
use crate::pools::{KnownPool, Pools};

/// Who asks.
pub(super) struct Asker<'a> {
    pub(super) node: Option<&'a str>,
    pub(super) labels: &'a BTreeMap<String, String>,
    /// Empty for a bare document.
    pub(super) policy: &'a str,
}

pub(super) enum Failure {
    Usage(UsageError),
    Refused(Refusals),
}

/// Every capture that gets no address: all at once, for all of them must get one or none does.
#[derive(Debug)]
pub(super) struct Refusals(Vec<Refusal>);

impl fmt::Display for Refusals {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (i, refusal) in self.0.iter().enumerate() {
            write!(f, "{}{refusal}", if i == 0 { "" } else { "\n" })?;
        }
        Ok(())
    }
}

impl std::error::Error for Refusals {}

#[derive(Debug, Error)]
#[error("capture {capture:?}: {why}")]
struct Refusal {
    capture: String,
    why: Why,
}

#[derive(Debug, Error)]
enum Why {
    #[error("unknown pool {pool:?}; {}", Known(.known))]
    UnknownPool { pool: String, known: Vec<String> },
    #[error("the enactment holds {ip}, but pool {pool} says that {holder} does")]
    HeldByAnother {
        ip: IpAddr,
        pool: String,
        holder: String,
    },
    #[error(transparent)]
    NoAddress(#[from] NoAddress),
    #[error(transparent)]
    NotASlice(#[from] NotASlice),
}

struct Known<'a>(&'a [String]);

impl fmt::Display for Known<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            [] => write!(f, "no pool is given: name its file with --pool"),
            known => write!(f, "known: {}", known.join(", ")),
        }
    }
}

/// An address for each capture (capture → pool).
pub(super) fn grants(
    wanted: &BTreeMap<String, String>,
    pools: &Pools,
    captured: &Captured,
    asker: &Asker<'_>,
) -> Result<Grants, Failure> {
    let mut grants = Grants::new();
    let mut refused = Vec::new();
    let mut taken: BTreeMap<&str, Taken> = BTreeMap::new();
    for (capture, pool) in wanted {
        let known = pools.get(pool);
        if let Some(held) = captured.held(pool, capture) {
            match known.and_then(|known| held_by_another(known, held, asker)) {
                None => drop(grants.insert(capture.clone(), held.clone())),
                Some(why) => refused.push((capture, why)),
            }
            continue;
        }
        let Some(node) = asker.node else {
            return Err(Failure::Usage(UsageError::NodeMissing {
                capture: capture.clone(),
                pool: pool.clone(),
            }));
        };
        let Some(known) = known else {
            let why = Why::UnknownPool {
                pool: pool.clone(),
                known: pools.names(),
            };
            refused.push((capture, why));
            continue;
        };
        let claim = Claim {
            known,
            barred: pools.barred_for(pool),
            node: NodeView {
                name: node,
                labels: asker.labels,
            },
            policy: asker.policy,
            capture,
        };
        let taken = taken.entry(pool).or_insert_with(|| known.taken());
        match claim.serve(taken) {
            Ok(granted) => drop(grants.insert(capture.clone(), granted)),
            Err(why) => refused.push((capture, why)),
        }
    }
    if refused.is_empty() {
        return Ok(grants);
    }
    let refusal = |(capture, why): (&String, Why)| Refusal {
        capture: capture.clone(),
        why,
    };
    Err(Failure::Refused(Refusals(
        refused.into_iter().map(refusal).collect(),
    )))
}

/// An enactment's word counts only as far as the ledger backs it.
fn held_by_another(known: &KnownPool, held: &Granted, asker: &Asker<'_>) -> Option<Why> {
    let node = asker.node?;
    let addresses = [Some(&held.address), held.second.as_ref()];
    addresses.into_iter().flatten().find_map(|one| {
        let ip = one.address.addr();
        let holder = known.held.get(&ip)?.by.as_ref().filter(|by| by.node != node)?;
        Some(Why::HeldByAnother {
            ip,
            pool: known.pool.name().to_owned(),
            holder: holder.node.clone(),
        })
    })
}

/// One capture's wish.
struct Claim<'a> {
    known: &'a KnownPool,
    barred: Barred,
    node: NodeView<'a>,
    policy: &'a str,
    capture: &'a str,
}

impl Claim<'_> {
    fn serve(&self, taken: &mut Taken) -> Result<Granted, Why> {
        if let Some(granted) = self.held() {
            return Ok(granted);
        }
        let granted = match self.known.pool.is_sliced() {
            true => self.within_slices(taken)?,
            false => self.choose(&self.known.pool, taken)?,
        };
        taken.extend(
            [Some(&granted.address), granted.second.as_ref()]
                .into_iter()
                .flatten()
                .map(|one| one.address.addr()),
        );
        Ok(granted)
    }

    /// What the ledger has for this claim already.
    fn held(&self) -> Option<Granted> {
        let mine: Vec<Given> = self
            .known
            .held
            .iter()
            .filter(|(_, holding)| holding.is_recoverable())
            .filter(|(_, holding)| {
                holding.by.as_ref().is_some_and(|by| {
                    by.node == self.node.name && by.policy == self.policy && by.capture == self.capture
                })
            })
            .filter_map(|(ip, _)| self.given(*ip))
            .collect();
        let range = self.known.pool.range_of(mine.first()?.ip)?;
        granted(&mine, range.name(), range.attributes())
    }

    fn given(&self, ip: IpAddr) -> Option<Given> {
        let part = self.known.pool.range_of(ip)?.part(Family::of(ip))?;
        Some(Given {
            ip,
            prefix_length: part.prefix_length(),
            gateway: part.gateway(),
        })
    }

    fn holder(&self) -> Holder<'_> {
        Holder {
            node: self.node.name,
            capture: self.capture,
            declined: &[],
            want: Want::Any,
        }
    }

    fn choose(&self, pool: &Pool, taken: &Taken) -> Result<Granted, NoAddress> {
        let view = PoolView {
            pool,
            taken,
            barred: &self.barred,
        };
        let choice = choose(&view, &self.holder(), &self.node)?;
        let given: Vec<Given> = choice.given().cloned().collect();
        granted(&given, &choice.range, &choice.attributes).ok_or_else(|| NoAddress::NoRangeForNode {
            pool: pool.name().to_owned(),
            node: self.node.name.to_owned(),
        })
    }

    fn within_slices(&self, taken: &Taken) -> Result<Granted, Why> {
        let slices = &self.known.slices;
        let own: Vec<IpNet> = slices
            .iter()
            .filter(|slice| slice.node == self.node.name)
            .map(|slice| slice.cidr)
            .collect();
        if !own.is_empty()
            && let Ok(granted) = self.choose(&self.known.pool.within(&own)?, taken)
        {
            return Ok(granted);
        }
        let all = TakenSlices::of(&self.known.pool, slices.iter().map(|slice| slice.cidr));
        let view = SliceView {
            pool: &self.known.pool,
            taken: &all,
            barred: &self.barred,
        };
        let next = choose_slice(&view, &self.holder(), &self.node)?;
        let next: Vec<IpNet> = next.v4.iter().chain(&next.v6).map(|slice| slice.cidr).collect();
        Ok(self.choose(&self.known.pool.within(&next)?, taken)?)
    }
}

/// The first address and the first of the other family; nothing if there is none.
fn granted(given: &[Given], range: &str, attributes: &BTreeMap<String, String>) -> Option<Granted> {
    let mut addresses = given.iter().filter_map(|one| {
        Some(GrantedAddress {
            address: IpNet::new(one.ip, one.prefix_length).ok()?,
            gateway: one.gateway,
        })
    });
    let address = addresses.next()?;
    let other = |one: &GrantedAddress| one.address.addr().is_ipv4() != address.address.addr().is_ipv4();
    Some(Granted {
        second: addresses.find(other),
        address,
        range: range.to_owned(),
        attributes: attributes.clone(),
    })
}
