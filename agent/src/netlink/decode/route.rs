//! `RTM_NEWROUTE`.

use std::net::IpAddr;

use ipnet::IpNet;
use policy::state::route::MAIN_TABLE;
use policy::state::{Family, KeptKind, Raw, Route, RouteProtocol, RouteType};

use super::kept::{SeenKept, pieces, renumbered, rewritten};
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
pub(in crate::netlink) const RTA_NH_ID: u16 = 30;
const RTA_ENCAP_TYPE: u16 = 21;
const RTA_EXPIRES: u16 = 23;
/// Not an attribute: a scope out of the ordinary, behind a byte that is 0.
pub(in crate::netlink) const HEAD: u16 = 0;

pub(in crate::netlink) const ONLINK: u32 = 4;
pub(in crate::netlink) const SCOPE_UNIVERSE: u8 = 0;
pub(in crate::netlink) const SCOPE_LINK: u8 = 253;
const SCOPE_HOST: u8 = 254;
const CLONED: u32 = 0x200;
/// The kernel's clock ticks per second in what it shows to programs.
const TICKS: u32 = 100;
/// Kinds that the model has no word for, by their numbers.
const KINDS: [(u8, &str); 5] =
    [(LOCAL, "local"), (3, "broadcast"), (4, "anycast"), (MULTICAST, "multicast"), (9, "throw")];
const LOCAL: u8 = 2;
const MULTICAST: u8 = 5;
const THROW: u8 = 9;
const HOP: usize = 8;

/// A route with the indexes of its next hops' links.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::netlink) struct SeenRoute {
    pub(in crate::netlink) destination: IpNet,
    pub(in crate::netlink) table: u32,
    pub(in crate::netlink) metric: u32,
    pub(in crate::netlink) tos: u8,
    pub(in crate::netlink) kind: RouteType,
    pub(in crate::netlink) protocol: RouteProtocol,
    pub(in crate::netlink) hops: Vec<SeenHop>,
    pub(in crate::netlink) object: Option<u32>,
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

/// A route: one that the model has words for, one that is kept as it came, or one that the kernel says it made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::netlink) enum SeenEntry {
    Known(Box<SeenRoute>),
    Kept(Box<SeenKept>),
    Made(SeenMade),
}

/// A route that is said to be the kernel's: so it is, if an address accounts for it. Most of them are, three for a link or
/// so; they are not read further before that is known.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::netlink) struct SeenMade {
    pub(in crate::netlink) destination: IpNet,
    pub(in crate::netlink) metric: u32,
    pub(in crate::netlink) index: u32,
    payload: Vec<u8>,
}

impl SeenMade {
    /// As one that somebody else made under the kernel's name.
    pub(in crate::netlink) fn kept(&self) -> Result<SeenKept, Malformed> {
        Parts::read(&self.payload)?.map(|parts| parts.kept(&self.payload)).ok_or(Malformed)
    }
}

/// Left out: what the kernel makes from addresses (local, broadcast, anycast, multicast), and caches. What it says to have
/// made besides is kept, and whether it did is seen when the addresses are known.
pub(in crate::netlink) fn read(payload: &[u8]) -> Result<Option<SeenEntry>, Malformed> {
    let Some(parts) = Parts::read(payload)? else { return Ok(None) };
    if let (Some(kind), false) = (parts.kind, parts.made || parts.by_source() || parts.hops.say_more) {
        return parts.known(kind).map(|route| Some(SeenEntry::Known(Box::new(route))));
    }
    if parts.made && expires(parts.attrs).is_some() {
        // A prefix that routers announce.
        return Ok(None);
    }
    if let (true, None, [SeenHop { index, via: None, .. }]) =
        (parts.made, parts.object, parts.hops.list.as_slice())
    {
        let (destination, metric) = (parts.destination, parts.metric);
        let made = SeenMade { destination, metric, index: *index, payload: payload.to_vec() };
        return Ok(Some(SeenEntry::Made(made)));
    }
    Ok(Some(SeenEntry::Kept(Box::new(parts.kept(payload)))))
}

/// A message taken apart.
struct Parts<'a> {
    attrs: Attrs<'a>,
    family: Family,
    /// The length of the prefix that packets come from.
    from: u8,
    tos: u8,
    scope: u8,
    /// Its kind as the kernel numbers it, and ours, if we have one.
    number: u8,
    kind: Option<RouteType>,
    flags: u32,
    protocol: RouteProtocol,
    /// By the kernel, as it says.
    made: bool,
    destination: IpNet,
    table: u32,
    metric: u32,
    hops: Hops,
    object: Option<u32>,
    source: Option<IpAddr>,
}

impl<'a> Parts<'a> {
    fn read(payload: &'a [u8]) -> Result<Option<Self>, Malformed> {
        let attrs = Attrs::after(payload, HEADER)?;
        let &[family, length, from, tos, table, protocol, scope, number, ..] = payload else {
            return Err(Malformed);
        };
        let flags = read_u32(payload, 8).ok_or(Malformed)?;
        let family = match family {
            AF_INET => Family::Ipv4,
            AF_INET6 => Family::Ipv6,
            _ => return Ok(None),
        };
        let protocol = RouteProtocol(protocol);
        let made = protocol == RouteProtocol::KERNEL;
        let kinds = [RouteType::Unicast, RouteType::Blackhole, RouteType::Unreachable, RouteType::Prohibit];
        let kind = kinds.into_iter().find(|known| kind_number(*known) == number);
        let metric = attrs.u32(RTA_PRIORITY).unwrap_or(0);
        // The last resort of IPv6 is an unreachable default route that nobody can remove.
        let born = kind.is_none() && number != THROW || metric == u32::MAX;
        if flags & CLONED != 0 || made && born {
            return Ok(None);
        }
        let destination = match attrs.ip(RTA_DST) {
            Some(ip) => IpNet::new(ip, length).map_err(|_| Malformed)?,
            None if length == 0 => family.any(),
            None => return Err(Malformed),
        };
        let leads = matches!(kind, Some(RouteType::Unicast)) || [LOCAL, MULTICAST].contains(&number);
        // Blackholes are shown with the loopback for a next hop.
        let hops = if leads { read_hops(attrs, flags)? } else { Hops::default() };
        Ok(Some(Self {
            attrs,
            family,
            from,
            tos,
            scope,
            number,
            kind,
            flags,
            protocol,
            made,
            destination,
            table: attrs.u32(RTA_TABLE).unwrap_or(u32::from(table)),
            metric,
            hops,
            object: attrs.u32(RTA_NH_ID),
            source: attrs.ip(RTA_PREFSRC),
        }))
    }

    fn by_source(&self) -> bool {
        self.from != 0 || self.attrs.get(RTA_SRC).is_some()
    }

    fn known(self, kind: RouteType) -> Result<SeenRoute, Malformed> {
        let mtu = self.attrs.nested(RTA_METRICS)?.and_then(|metrics| metrics.u32(RTAX_MTU));
        Ok(SeenRoute {
            destination: self.destination,
            table: self.table,
            metric: self.metric,
            tos: self.tos,
            kind,
            protocol: self.protocol,
            hops: self.hops.list,
            object: self.object,
            source: self.source,
            mtu: mtu.filter(|mtu| *mtu != 0),
            raw: raw(self.attrs, self.scope)?,
        })
    }

    fn kept(self, payload: &[u8]) -> SeenKept {
        let (lead, tail) = self.words();
        let payload = bare(payload, self.flags, self.object.is_some());
        let mut seen = SeenKept::new(KeptKind::Route, Some(self.family), payload);
        (seen.lead, seen.tail) = (lead, tail);
        (seen.source, seen.object) = (self.source, self.object);
        seen.outlasts_down = self.family == Family::Ipv4 && self.scope == SCOPE_HOST;
        seen.passing = Raw(expires(self.attrs).into_iter().collect());
        seen.hops = self.hops.list;
        seen
    }

    /// What is said of it, before and after its next hops.
    fn words(&self) -> (String, String) {
        let other = KINDS.iter().find(|(known, _)| *known == self.number).map(|(_, word)| *word);
        let plain = self.kind.filter(|kind| *kind != RouteType::Unicast).map(RouteType::as_str);
        let mut lead = match self.destination.prefix_len() {
            0 if self.family == Family::Ipv6 => "default (ipv6)".to_owned(),
            0 => "default".to_owned(),
            _ => self.destination.to_string(),
        };
        if let Some(word) = other.or(plain) {
            lead.insert_str(0, &format!("{word} "));
        }
        if let Some(ip) = self.attrs.ip(RTA_SRC) {
            lead.push_str(&format!(" from {ip}/{}", self.from));
        }
        if self.tos != 0 {
            lead.push_str(&format!(" tos {:#04x}", self.tos));
        }
        if let Some(object) = self.object {
            lead.push_str(&format!(" nhid {object}"));
        }
        let mut tail = String::new();
        if self.metric != Route::default_metric(self.family) {
            tail.push_str(&format!(" metric {}", self.metric));
        }
        if self.table != MAIN_TABLE {
            tail.push_str(&format!(" table {}", self.table));
        }
        if self.made {
            tail.push_str(" proto kernel");
        }
        if let Some(source) = self.source {
            tail.push_str(&format!(" src {source}"));
        }
        (lead, tail)
    }
}

/// The message without what the kernel owns, and without the numbers of links.
fn bare(payload: &[u8], flags: u32, by_object: bool) -> Vec<u8> {
    let mut header = [0; HEADER];
    header[..8].copy_from_slice(&payload[..8]);
    header[8..].copy_from_slice(&(flags & ONLINK).to_ne_bytes());
    rewritten(&header, &pieces(payload, HEADER), |number, inside| match number {
        RTA_CACHEINFO => None,
        // An object says it all, and nothing may be said beside it.
        RTA_OIF | RTA_MULTIPATH | RTA_GATEWAY | RTA_VIA if by_object => None,
        RTA_OIF => Some(vec![0; 4]),
        RTA_MULTIPATH => Some(renumbered(inside, |_| 0)),
        _ => Some(inside.to_vec()),
    })
}

/// How long a route still lives, as it is asked for.
fn expires(attrs: Attrs<'_>) -> Option<(u16, Vec<u8>)> {
    const AT: usize = 8;
    let ticks = read_u32(attrs.get(RTA_CACHEINFO)?.payload, AT)?;
    // Negative: it is over, and goes at any moment.
    let seconds = u32::try_from(ticks.cast_signed()).unwrap_or(1).div_ceil(TICKS);
    (ticks != 0).then(|| (RTA_EXPIRES, seconds.max(1).to_ne_bytes().to_vec()))
}

/// What the model has no word for: a lifetime, metrics but the MTU, encapsulation and more.
fn raw(attrs: Attrs<'_>, scope: u8) -> Result<Raw, Malformed> {
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
    raw.extend(expires(attrs));
    if ![SCOPE_UNIVERSE, SCOPE_LINK].contains(&scope) {
        raw.push((HEAD, vec![0, scope]));
    }
    Ok(Raw(raw))
}

#[derive(Default)]
struct Hops {
    list: Vec<SeenHop>,
    /// One of several says more than the model has words for: how it encapsulates.
    say_more: bool,
}

fn read_hops(attrs: Attrs<'_>, flags: u32) -> Result<Hops, Malformed> {
    let mut hops = Hops::default();
    if let Some(index) = attrs.u32(RTA_OIF) {
        hops.list.push(SeenHop { index, via: gateway(attrs), weight: 1, onlink: flags & ONLINK != 0 });
        return Ok(hops);
    }
    let Some(list) = attrs.get(RTA_MULTIPATH) else { return Ok(hops) };
    let mut rest = list.payload;
    while !rest.is_empty() {
        let length = usize::from(read_u16(rest, 0).ok_or(Malformed)?);
        let hop = rest.get(..length).filter(|hop| hop.len() >= HOP).ok_or(Malformed)?;
        let inside = Attrs::after(hop, HOP)?;
        hops.say_more |= inside.get(RTA_ENCAP_TYPE).is_some();
        hops.list.push(SeenHop {
            index: read_u32(hop, 4).ok_or(Malformed)?,
            via: gateway(inside),
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
