//! `RTM_NEWROUTE`.

use std::net::IpAddr;

use ipnet::IpNet;
use policy::state::{Family, Raw, RouteProtocol, RouteType};

use super::{AF_INET, AF_INET6};
use crate::netlink::wire::{Attr, Attrs, Malformed, Message, read_u16, read_u32};

pub(in crate::netlink) const HEADER: usize = 12;

pub(in crate::netlink) const RTA_DST: u16 = 1;
const RTA_SRC: u16 = 2;
pub(in crate::netlink) const RTA_OIF: u16 = 4;
pub(in crate::netlink) const RTA_GATEWAY: u16 = 5;
pub(in crate::netlink) const RTA_PRIORITY: u16 = 6;
pub(in crate::netlink) const RTA_PREFSRC: u16 = 7;
pub(in crate::netlink) const RTA_METRICS: u16 = 8;
pub(in crate::netlink) const RTA_MULTIPATH: u16 = 9;
pub(in crate::netlink) const RTA_TABLE: u16 = 15;
pub(in crate::netlink) const RTA_VIA: u16 = 18;
pub(in crate::netlink) const RTAX_MTU: u16 = 2;

const RTA_CACHEINFO: u16 = 12;
const RTA_PREF: u16 = 20;
const RTA_NH_ID: u16 = 30;
/// Not an attribute: the type of service and the scope, two bytes of the header.
pub(in crate::netlink) const HEAD: u16 = 0;

pub(in crate::netlink) const ONLINK: u32 = 4;
pub(in crate::netlink) const SCOPE_UNIVERSE: u8 = 0;
pub(in crate::netlink) const SCOPE_LINK: u8 = 253;
const CLONED: u32 = 0x200;
const HOP: usize = 8;

/// A route with the indexes of its next hops' links.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::netlink) struct SeenRoute {
    pub(in crate::netlink) destination: IpNet,
    pub(in crate::netlink) table: u32,
    pub(in crate::netlink) metric: u32,
    pub(in crate::netlink) kind: RouteType,
    pub(in crate::netlink) protocol: RouteProtocol,
    pub(in crate::netlink) hops: Vec<SeenHop>,
    pub(in crate::netlink) source: Option<IpAddr>,
    pub(in crate::netlink) mtu: Option<u32>,
    pub(in crate::netlink) raw: Raw,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::netlink) struct SeenHop {
    pub(in crate::netlink) index: u32,
    pub(in crate::netlink) via: Option<IpAddr>,
    pub(in crate::netlink) weight: u16,
    pub(in crate::netlink) onlink: bool,
}

/// Its kind as the kernel numbers it.
pub(in crate::netlink) fn kind_number(kind: RouteType) -> u8 {
    match kind {
        RouteType::Unicast => 1,
        RouteType::Blackhole => 6,
        RouteType::Unreachable => 7,
        RouteType::Prohibit => 8,
    }
}

/// Left out: what the kernel makes from addresses (local, broadcast, connected), caches, routes by source.
pub(in crate::netlink) fn read(payload: &[u8]) -> Result<Option<SeenRoute>, Malformed> {
    let attrs = Attrs::after(payload, HEADER)?;
    let &[family, length, from, tos, table, protocol, scope, kind, ..] = payload else {
        return Err(Malformed);
    };
    let flags = read_u32(payload, 8).ok_or(Malformed)?;
    let family = match family {
        AF_INET => Family::Ipv4,
        AF_INET6 => Family::Ipv6,
        _ => return Ok(None),
    };
    let kinds = [RouteType::Unicast, RouteType::Blackhole, RouteType::Unreachable, RouteType::Prohibit];
    let Some(kind) = kinds.into_iter().find(|known| kind_number(*known) == kind) else { return Ok(None) };
    let protocol = RouteProtocol(protocol);
    let by_source = from != 0 || attrs.get(RTA_SRC).is_some();
    if protocol == RouteProtocol::KERNEL || flags & CLONED != 0 || by_source {
        return Ok(None);
    }
    let destination = match attrs.ip(RTA_DST) {
        Some(ip) => IpNet::new(ip, length).map_err(|_| Malformed)?,
        None if length == 0 => family.any(),
        None => return Err(Malformed),
    };
    let mtu = attrs.nested(RTA_METRICS)?.and_then(|metrics| metrics.u32(RTAX_MTU));
    Ok(Some(SeenRoute {
        destination,
        table: attrs.u32(RTA_TABLE).unwrap_or(u32::from(table)),
        metric: attrs.u32(RTA_PRIORITY).unwrap_or(0),
        kind,
        protocol,
        // Blackholes are shown with the loopback for a next hop.
        hops: if kind == RouteType::Unicast { read_hops(attrs, flags)? } else { Vec::new() },
        source: attrs.ip(RTA_PREFSRC),
        mtu: mtu.filter(|mtu| *mtu != 0),
        raw: raw(attrs, tos, scope)?,
    }))
}

/// What the model has no word for: type of service, metrics but the MTU, encapsulation and more. A next hop object
/// is left out: its next hops are there.
fn raw(attrs: Attrs<'_>, tos: u8, scope: u8) -> Result<Raw, Malformed> {
    let known = [
        RTA_DST,
        RTA_OIF,
        RTA_GATEWAY,
        RTA_PRIORITY,
        RTA_PREFSRC,
        RTA_METRICS,
        RTA_MULTIPATH,
        RTA_TABLE,
        RTA_VIA,
        RTA_CACHEINFO,
        RTA_NH_ID,
    ];
    let usual = |attr: &Attr<'_>| attr.number == RTA_PREF && attr.u8() == Some(0);
    let rest = attrs.iter().filter(|attr| !known.contains(&attr.number) && !usual(attr));
    let mut raw: Vec<(u16, Vec<u8>)> = rest.map(|attr| (attr.number, attr.payload.to_vec())).collect();
    if let Some(metrics) = attrs.nested(RTA_METRICS)? {
        let mut others = Message::attributes();
        metrics.iter().filter(|attr| attr.number != RTAX_MTU).for_each(|attr| {
            others.attr(attr.number, attr.payload);
        });
        let others = others.into_attributes();
        if !others.is_empty() {
            raw.push((RTA_METRICS, others));
        }
    }
    if tos != 0 || ![SCOPE_UNIVERSE, SCOPE_LINK].contains(&scope) {
        raw.push((HEAD, vec![tos, scope]));
    }
    Ok(Raw(raw))
}

fn read_hops(attrs: Attrs<'_>, flags: u32) -> Result<Vec<SeenHop>, Malformed> {
    if let Some(index) = attrs.u32(RTA_OIF) {
        return Ok(vec![SeenHop { index, via: gateway(attrs), weight: 1, onlink: flags & ONLINK != 0 }]);
    }
    let Some(list) = attrs.get(RTA_MULTIPATH) else { return Ok(Vec::new()) };
    let (mut rest, mut hops) = (list.payload, Vec::new());
    while !rest.is_empty() {
        let length = usize::from(read_u16(rest, 0).ok_or(Malformed)?);
        let hop = rest.get(..length).filter(|hop| hop.len() >= HOP).ok_or(Malformed)?;
        hops.push(SeenHop {
            index: read_u32(hop, 4).ok_or(Malformed)?,
            via: gateway(Attrs::after(hop, HOP)?),
            weight: u16::from(hop[3]) + 1,
            onlink: u32::from(hop[2]) & ONLINK != 0,
        });
        rest = rest.get(length.next_multiple_of(4)..).unwrap_or_default();
    }
    Ok(hops)
}

/// `RTA_VIA` is a gateway of the other family, behind two bytes that say which.
fn gateway(attrs: Attrs<'_>) -> Option<IpAddr> {
    let other = || attrs.get(RTA_VIA).and_then(|via| Attr { payload: via.payload.get(2..)?, ..via }.ip());
    attrs.ip(RTA_GATEWAY).or_else(other)
}
