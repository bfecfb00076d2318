//! Why no address was given: what was asked, what stands against it, what to do.

use std::net::IpAddr;

use crate::pool::explain::Why;
use crate::pool::family::Family;

/// Nothing was given.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum NoAddress {
    #[error(
        "pool {pool} is exhausted: no address left for node {node} in {}; {}add a range, or free addresses",
        listed(.full), shared(.barred)
    )]
    Exhausted {
        pool: String,
        node: String,
        /// The ranges that are for this node, and the family that each lacks.
        full: Vec<(String, Family)>,
        /// Who else owns addresses of these ranges, so that nobody gets them.
        barred: Vec<String>,
    },
    #[error(
        "no range of pool {pool} is for node {node}: add one whose nodeSelector matches it, or one without"
    )]
    NoRangeForNode { pool: String, node: String },
    #[error("pool {pool} gives nothing to node {node}: {} drains; add a range", .draining.join(", "))]
    AllDraining { pool: String, node: String, draining: Vec<String> },
    #[error("{ip} is in use in pool {pool}; choose another, or release it there first")]
    Held { ip: IpAddr, pool: String },
    #[error("{ip} is in no range of pool {pool}")]
    NotInPool { ip: IpAddr, pool: String },
    #[error("{ip} can't be had from pool {pool}: {why}")]
    Excluded { ip: IpAddr, pool: String, why: Why },
    #[error("{ip} of pool {pool} is reserved for node {node}")]
    Reserved { ip: IpAddr, pool: String, node: String },
    #[error("{ip} of pool {pool} belongs to {owner} too, so nobody gets it; make the two disjoint")]
    Barred { ip: IpAddr, pool: String, owner: String },
    #[error("{ip} of pool {pool} answers on the wire: another machine uses it")]
    Declined { ip: IpAddr, pool: String },
    #[error("{ip} of pool {pool} is in range {range}, which drains and gives nothing new")]
    Draining { ip: IpAddr, pool: String, range: String },
    #[error("slice {cidr} of pool {pool}, where {ip} lies, belongs to another node")]
    SliceHeld { ip: IpAddr, cidr: ipnet::IpNet, pool: String },
    #[error("pool {pool} is not cut into slices: its ranges have no perNodeHostBits")]
    NotSliced { pool: String },
}

fn listed(full: &[(String, Family)]) -> String {
    let names: Vec<String> = full.iter().map(|(range, family)| format!("range {range} ({family})")).collect();
    names.join(", ")
}

/// How many owners a message names; a pool may meet hundreds.
const NAMED: usize = 3;

fn shared(owners: &[String]) -> String {
    if owners.is_empty() {
        return String::new();
    }
    let mut names = owners.iter().take(NAMED).cloned().collect::<Vec<_>>().join(", ");
    if let Some(more) = owners.len().checked_sub(NAMED).filter(|more| *more > 0) {
        names.push_str(&format!(" and {more} more"));
    }
    format!("addresses there belong to {names} too, so nobody gets them: make them disjoint, ")
}
