//! Literal addresses of a desired state that fall into a pool's range: each is claimed like any other (docs/claims.md, rule 11).
//!
//! Looks at the state as it is written: what a template gives is not literal. The agent and the command line claim what is
//! found here before any capture asks, so that no capture is given what the policy names itself.
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

impl Literal {
    /// What its claim is called.
    pub fn capture(&self) -> String {
        literal_capture(self.ip)
    }
}

const PREFIX: &str = "literal_";

/// What the claim of a literal address is called, where others have the name of a capture: `literal_10-0-0-5`,
/// `literal_fd00--7`. By the address alone, so that it stays when the document is put in another order or the address moves to
/// another interface, and two interfaces that name it are one claim. Without dots and colons, which would hurt where captures
/// are keys of a map.
pub fn literal_capture(ip: IpAddr) -> String {
    format!("{PREFIX}{}", ip.to_canonical().to_string().replace(['.', ':'], "-"))
}

/// The address that a claim of this name is of, if it is of a literal. No IPv6 address is four decimal numbers, so none is
/// taken for one of the other family.
pub fn literal_of(capture: &str) -> Option<IpAddr> {
    let text = capture.strip_prefix(PREFIX)?;
    let parsed = |separator: &str| text.replace('-', separator).parse::<IpAddr>().ok();
    parsed(".").or_else(|| parsed(":")).filter(|ip| literal_capture(*ip) == capture)
}

/// Every literal address that is to be on an interface, with its path, in the order of the document; one that is named twice
/// is there once, at its first place. An interface that is to be absent or is left alone has none, nor has a family that is off.
pub fn literal_addresses(desired_state: &Value) -> Vec<(IpAddr, String)> {
    let mut found: Vec<(IpAddr, String)> = Vec::new();
    for (at, interface) in interfaces(desired_state).iter().enumerate() {
        if matches!(interface.get("state").and_then(Value::as_str), Some("absent" | "ignore")) {
            continue;
        }
        for family in FAMILIES.into_iter().filter(|family| !family.is_off(interface)) {
            for (position, entry) in family.addresses(interface).iter().enumerate() {
                let Some(ip) = entry.get("ip").and_then(Value::as_str).and_then(address_of) else {
                    continue;
                };
                if !found.iter().any(|(other, _)| *other == ip) {
                    found.push((ip, family.path(at, position, "ip")));
                }
            }
        }
    }
    found
}

/// The literal addresses in the ranges of these pools.
pub fn literals(desired_state: &Value, pools: &[&Pool]) -> Vec<Literal> {
    let mut found = Vec::new();
    for (ip, path) in literal_addresses(desired_state) {
        for pool in pools.iter().filter(|pool| pool.contains(ip)) {
            found.push(Literal { ip, pool: pool.name().to_owned(), path: path.clone() });
        }
    }
    found
}

/// An address as documents write it. One of IPv4 in the words of IPv6 is the same as the other.
pub fn address_of(text: &str) -> Option<IpAddr> {
    text.trim().parse().ok().map(|ip: IpAddr| ip.to_canonical())
}
