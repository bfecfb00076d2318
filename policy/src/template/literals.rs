//! Literal addresses of a desired state that fall into a pool's range: each is claimed like any other (docs/claims.md, rule 11).
//!
//! Looks at the state as it is written: what a template gives is not literal. The command line claims what is found
//! here before any capture asks, so that no capture is given what the policy names itself; the agent doesn't yet.
//!
//! Cost: one pass over the addresses, each looked up in every pool.

use std::net::IpAddr;

use serde_json::Value;

use super::ipam::{FAMILIES, interfaces};
use crate::pool::Pool;

/// An address that a policy names and a pool has.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Literal {
    pub ip: IpAddr,
    pub pool: String,
    /// Where in the desired state, as `interfaces[1].ipv4.address[0].ip`.
    pub path: String,
}

/// The literal addresses in the ranges of these pools, in the order of the document; one that is named twice is one
/// claim, at its first place. An interface that is to be absent has none.
pub fn literals(desired_state: &Value, pools: &[&Pool]) -> Vec<Literal> {
    let mut found: Vec<Literal> = Vec::new();
    for (at, interface) in interfaces(desired_state).iter().enumerate() {
        if interface.get("state").and_then(Value::as_str) == Some("absent") {
            continue;
        }
        for family in FAMILIES {
            for (position, entry) in family.addresses(interface).iter().enumerate() {
                let Some(ip) = entry.get("ip").and_then(Value::as_str).and_then(literal) else {
                    continue;
                };
                for pool in pools.iter().filter(|pool| pool.contains(ip)) {
                    let pool = pool.name().to_owned();
                    if !found.iter().any(|one| one.ip == ip && one.pool == pool) {
                        found.push(Literal { ip, pool, path: family.path(at, position, "ip") });
                    }
                }
            }
        }
    }
    found
}

fn literal(text: &str) -> Option<IpAddr> {
    text.trim().parse().ok().map(|ip: IpAddr| ip.to_canonical())
}
