//! What a host's enactment says of each pool can be read: pools wait for what can't be read of what a host holds, so who could
//! write it could stop them. The schema knows texts; that they are addresses is asked here, of hosts alone, since an object that
//! is broken must not keep others from mending it.

use std::collections::BTreeSet;
use std::net::IpAddr;

use crds::address::{ip, is_canonical};
use crds::enactment::{Grant, PoolClaims, Request};
use serde::Deserialize;
use serde_json::Value;

/// Asked of what is new only.
pub(super) fn may_write(old: &Value, new: &Value) -> Result<(), String> {
    let before = &old["status"]["ippool"];
    let claims = new["status"]["ippool"].as_object().into_iter().flatten();
    let mut changed = claims.filter(|(pool, claims)| before.get(pool.as_str()) != Some(claims));
    let garbled =
        changed.find(|(_, claims)| !PoolClaims::deserialize(*claims).is_ok_and(|of| is_readable(&of)));
    garbled.map_or(Ok(()), |(pool, _)| {
        Err(format!(
            "status.ippool.{pool} can't be read: each address must be one, of two the first IPv4 and the second IPv6, and none declined twice"
        ))
    })
}

fn is_readable(claims: &PoolClaims) -> bool {
    claims.requests.values().all(request) && claims.grants.values().all(grant)
}

fn request(Request { id: _, want: _, holds, declined, literal }: &Request) -> bool {
    let once: BTreeSet<&str> =
        declined.iter().map(|declined| declined.ip.as_str()).filter(|text| is_canonical(text)).collect();
    let is_held = holds.as_ref().is_none_or(|holds| match &holds.ipv6 {
        None => is_ip(&holds.ip),
        Some(ipv6) => are_both(&holds.ip, ipv6),
    });
    is_held && literal.as_deref().is_none_or(is_ip) && once.len() == declined.len()
}

fn grant(grant: &Grant) -> bool {
    match (&grant.ipv4, &grant.ipv6) {
        (None, None) => is_ip(&grant.address.ip),
        (Some(ipv4), Some(ipv6)) => ipv4.ip == grant.address.ip && are_both(&ipv4.ip, &ipv6.ip),
        _ => false,
    }
}

fn is_ip(text: &str) -> bool {
    ip(text).is_some()
}

fn are_both(ipv4: &str, ipv6: &str) -> bool {
    matches!((ip(ipv4), ip(ipv6)), (Some(IpAddr::V4(_)), Some(IpAddr::V6(_))))
}
