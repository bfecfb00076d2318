//! Addresses and networks as the API server's CEL reads them (`isIP`, `isCIDR`, …), so that a rule and its twin
//! agree: no zone, no IPv4 in IPv6, no leading zeros, any spelling unless canonical is asked for.

use std::net::IpAddr;

use ipnet::IpNet;

/// `ip(text)`.
pub fn ip(text: &str) -> Option<IpAddr> {
    text.parse().ok().filter(|addr: &IpAddr| !is_mapped(*addr))
}

/// `cidr(text)`; host bits are kept.
pub fn cidr(text: &str) -> Option<IpNet> {
    // A prefix length is digits without a leading zero: `/08` and `/+8` are none.
    let (_, length) = text.split_once('/')?;
    let plain = length.bytes().all(|c| c.is_ascii_digit()) && (length == "0" || !length.starts_with('0'));
    text.parse().ok().filter(|net: &IpNet| plain && !is_mapped(net.addr()))
}

/// `ip.isCanonical(text)`, false where it is no address.
pub fn is_canonical(text: &str) -> bool {
    ip(text).is_some_and(|addr| addr.to_string() == text)
}

/// `cidr(net).containsIP(text)`, false where either can't be read.
pub fn contains_ip(net: &str, text: &str) -> bool {
    match (cidr(net), ip(text)) {
        (Some(net), Some(addr)) => net.contains(&addr),
        _ => false,
    }
}

/// `cidr(outer).containsCIDR(inner)`, false where either can't be read.
pub fn contains_cidr(outer: &str, inner: &str) -> bool {
    match (cidr(outer), cidr(inner)) {
        (Some(outer), Some(inner)) => outer.trunc().contains(&inner.trunc()),
        _ => false,
    }
}

/// How many bits of the network number its hosts.
pub fn host_bits(net: &IpNet) -> u8 {
    net.max_prefix_len() - net.prefix_len()
}

fn is_mapped(addr: IpAddr) -> bool {
    matches!(addr, IpAddr::V6(v6) if v6.to_ipv4_mapped().is_some())
}
