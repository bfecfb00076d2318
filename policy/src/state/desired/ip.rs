//! Reading `ipv4` and `ipv6` of a link.

use super::super::error::Reason;
use super::super::path::Path;
use super::super::scalar::{Reader, shown};
use super::super::{Address, AddressProtocol, Family, Lifetime};
use super::link::Shown;
use super::{DesiredAddress, DesiredIp, DesiredLink};
use serde_json::Value;
use std::collections::BTreeMap;
use std::net::IpAddr;

/// What only matters to who runs DHCP or listens to routers.
const AUTO: &[&str] = &[
    "auto-dns",
    "auto-gateway",
    "auto-routes",
    "auto-route-table-id",
    "auto-route-metric",
    "dhcp-client-id",
    "dhcp-send-hostname",
    "dhcp-custom-hostname",
    "dhcp-duid",
];

pub(super) fn read(
    r: &mut Reader,
    path: &Path<'_>,
    key: &str,
    value: &Value,
    link: &mut DesiredLink,
    seen: &mut Shown,
) {
    let family = if key == "ipv4" { Family::Ipv4 } else { Family::Ipv6 };
    let mut ip = DesiredIp::default();
    let mut auto = Vec::new();
    for (key, value) in r.fields(path, value) {
        let at = path.key(key);
        match key {
            "enabled" => ip.enabled = r.boolean(&at, value),
            "dhcp" => ip.dhcp = r.boolean(&at, value),
            "autoconf" if family == Family::Ipv6 => ip.autoconf = r.boolean(&at, value),
            "forwarding" => ip.forwarding = r.boolean(&at, value),
            "address" => {
                let list = read_addresses(r, &at, value, family);
                ip.addresses = Some(asked(&list));
                seen.addresses[family as usize] = list;
            }
            // Extra addresses are never left by Berth nor accepted by verification, whoever says which.
            "allow-extra-address" => {
                r.boolean(&at, value);
            }
            _ if AUTO.contains(&key) => auto.push((key, value)),
            "addr-gen-mode" | "token" | "prefix-route-metric" => r.unread(&at, true, value),
            _ => r.unread(&at, false, value),
        }
    }
    read_auto(r, path, &ip, &auto);
    if ip.enabled == Some(false) && !r.lenient {
        // Nothing can be asked of a family that is off; nmstate drops it, and so does this.
        ip = DesiredIp { enabled: Some(false), forwarding: ip.forwarding, ..DesiredIp::default() };
    }
    match family {
        Family::Ipv4 => link.ipv4 = Some(ip),
        Family::Ipv6 => link.ipv6 = Some(ip),
    }
}

/// Berth neither runs DHCP nor listens to routers, so what is about that is accepted where it means nothing: both are
/// off, or the value is the default.
fn read_auto(r: &mut Reader, path: &Path<'_>, ip: &DesiredIp, fields: &[(&str, &Value)]) {
    let off = ip.enabled == Some(false) || (ip.dhcp == Some(false) && ip.autoconf != Some(true));
    for (key, value) in fields {
        let default = match *key {
            "auto-dns" | "auto-gateway" | "auto-routes" | "dhcp-send-hostname" => {
                matches!(value, Value::Bool(true)) || value.as_str() == Some("true")
            }
            "auto-route-table-id" => value.as_u64() == Some(0) || value.as_str() == Some("0"),
            _ => value.as_str() == Some(""),
        };
        if !off && !default || r.lenient {
            r.unread(&path.key(key), true, value);
        }
    }
}

/// Those that somebody renews are not anybody's to ask for.
fn asked(list: &[Address]) -> Vec<DesiredAddress> {
    let fixed = list.iter().filter(|a| !a.is_dynamic());
    let pooled = |a: &Address| a.protocol == Some(AddressProtocol::BERTH);
    fixed.map(|a| DesiredAddress { ip: a.ip, prefix: a.prefix, pooled: pooled(a) }).collect()
}

fn read_addresses(r: &mut Reader, path: &Path<'_>, value: &Value, family: Family) -> Vec<Address> {
    let mut out: Vec<Address> = Vec::new();
    let mut seen: BTreeMap<(IpAddr, u8), usize> = BTreeMap::new();
    for (i, item) in r.list(path, value).iter().enumerate() {
        let at = path.index(i);
        let Some(address) = read_address(r, &at, item, family) else {
            continue;
        };
        // The kernel takes an IPv4 address once for each prefix length, an IPv6 address once.
        let prefix = if family == Family::Ipv4 { address.prefix } else { 0 };
        match seen.get(&(address.ip, prefix)) {
            Some(first) if !r.lenient => {
                let (name, first) = (address.to_string(), path.index(*first).to_string());
                r.find(&at, Reason::Duplicate { name, first });
            }
            _ => {
                seen.insert((address.ip, prefix), i);
                out.push(address);
            }
        }
    }
    out
}

/// What no interface can have as its own, if it is that. Neither the kernel nor anybody on the wire would take it.
fn not_a_host(ip: IpAddr) -> Option<&'static str> {
    match ip {
        _ if ip.is_unspecified() => Some("the unspecified address"),
        _ if ip.is_multicast() => Some("a multicast address"),
        IpAddr::V4(v4) if v4.is_broadcast() => Some("the broadcast address"),
        IpAddr::V6(v6) if v6.to_ipv4_mapped().is_some() => Some("an IPv4 address mapped into IPv6"),
        _ => None,
    }
}

fn read_ip(r: &mut Reader, path: &Path<'_>, value: &Value, family: Family) -> Option<IpAddr> {
    let address = r.ip(path, value)?;
    if Family::of(&address) != family {
        let wanted = match family {
            Family::Ipv4 => "an IPv4 address",
            Family::Ipv6 => "an IPv6 address",
        };
        r.find(path, Reason::Expected { wanted, found: shown(value) });
        return None;
    }
    match not_a_host(address).filter(|_| !r.lenient) {
        Some(what) => {
            r.find(path, Reason::NotAHost { address, what });
            None
        }
        None => Some(address),
    }
}

fn read_address(r: &mut Reader, path: &Path<'_>, value: &Value, family: Family) -> Option<Address> {
    r.map(path, value)?;
    let (mut ip, mut prefix, mut protocol) = (None, None, None);
    let (mut valid, mut preferred) = (None, None);
    let (mut has_ip, mut has_prefix) = (false, false);
    for (key, value) in r.fields(path, value) {
        let at = path.key(key);
        match key {
            "ip" => {
                has_ip = true;
                ip = read_ip(r, &at, value, family);
            }
            "prefix-length" => {
                has_prefix = true;
                prefix = r.u8(&at, value, family.max_prefix());
            }
            "valid-life-time" | "valid-left" => valid = read_lifetime(value),
            "preferred-life-time" | "preferred-left" => preferred = read_lifetime(value),
            "protocol" => protocol = read_protocol(value),
            "mptcp-flags" => {}
            _ => r.unread(&at, false, value),
        }
    }
    if !has_ip {
        r.find(&path.key("ip"), Reason::Missing);
    }
    if !has_prefix {
        r.find(&path.key("prefix-length"), Reason::Missing);
    }
    let lifetime = valid.map(|valid| Lifetime { valid, preferred: preferred.unwrap_or(valid).min(valid) });
    Some(Address { lifetime, protocol, ..Address::new(ip?, prefix?) })
}

/// `forever`, `1200sec`, `1200`; what can't be read counts as for ever, as it is never asked for.
fn read_lifetime(value: &Value) -> Option<u32> {
    match value {
        Value::Number(n) => n.as_u64().and_then(|n| u32::try_from(n).ok()),
        Value::String(s) => s.trim().trim_end_matches("sec").trim().parse().ok(),
        _ => None,
    }
    .filter(|n| *n != u32::MAX)
}

fn read_protocol(value: &Value) -> Option<AddressProtocol> {
    match value {
        Value::Number(n) => n.as_u64().and_then(|n| u8::try_from(n).ok()).map(AddressProtocol),
        Value::String(s) => AddressProtocol::from_name(s),
        _ => None,
    }
}
