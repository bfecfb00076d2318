//! Routes and their next hops.

use std::net::IpAddr;

use policy::state::{Family, Route, RouteProtocol, RouteType};

use super::{EncodeError, Encoder, family_number};
use crate::netlink::decode::AF_INET6;
use crate::netlink::decode::route::{
    HEAD, HEADER, ONLINK, RTA_DST, RTA_GATEWAY, RTA_METRICS, RTA_MULTIPATH, RTA_NH_ID, RTA_OIF, RTA_PREFSRC,
    RTA_PRIORITY, RTA_TABLE, RTA_VIA, RTAX_MTU, SCOPE_LINK, SCOPE_UNIVERSE, kind_number,
};
use crate::netlink::wire::Message;

pub(super) const RTM_NEWROUTE: u16 = 24;
pub(super) const RTM_DELROUTE: u16 = 25;

const SCOPE_NOWHERE: u8 = 255;

impl Encoder<'_> {
    pub(super) fn route(&self, kind: u16, flags: u16, route: &Route) -> Result<Message, EncodeError> {
        let deleting = kind == RTM_DELROUTE;
        let mut message = Message::new(kind, flags);
        let single = match route.next_hops.as_slice() {
            [hop] => Some(hop),
            _ => None,
        };
        let onlink = if route.object.is_none() && single.is_some_and(|hop| hop.onlink) { ONLINK } else { 0 };
        let scope = match (deleting, route.kind, route.family()) {
            (true, ..) => SCOPE_NOWHERE,
            // IPv4: what leads out of a link without a gateway is of that link.
            (_, RouteType::Unicast, Family::Ipv4) if !route.has_gateway() => SCOPE_LINK,
            _ => SCOPE_UNIVERSE,
        };
        let protocol = match route.protocol {
            RouteProtocol::UNSPEC if !deleting => RouteProtocol::STATIC,
            known => known,
        };
        let odd = route.raw.0.iter().find(|(number, _)| *number == HEAD).and_then(|(_, bytes)| bytes.get(1));
        let scope = odd.copied().filter(|_| !deleting).unwrap_or(scope);
        let mut header = [0; HEADER];
        // Tables from 256 on don't fit the header: RTA_TABLE says it for all.
        header[..8].copy_from_slice(&[
            family_number(route.family()),
            route.destination.prefix_len(),
            0,
            route.tos,
            0,
            protocol.0,
            scope,
            kind_number(route.kind),
        ]);
        header[8..].copy_from_slice(&onlink.to_ne_bytes());
        message.raw(&header).u32(RTA_TABLE, route.table).u32(RTA_PRIORITY, route.metric);
        if route.destination.prefix_len() > 0 {
            message.ip(RTA_DST, route.destination.addr());
        }
        if let Some(source) = route.source {
            message.ip(RTA_PREFSRC, source);
        }
        if !deleting {
            beyond(&mut message, route);
        }
        match (route.object, single) {
            // It says all of them, and nothing may be said beside it.
            (Some(object), _) => {
                message.u32(RTA_NH_ID, object);
            }
            (None, Some(hop)) => {
                message.u32(RTA_OIF, self.index(&hop.dev)?);
                gateway(&mut message, route.family(), hop.via);
            }
            (None, None) => self.hops(&mut message, route)?,
        }
        Ok(message)
    }

    fn hops(&self, message: &mut Message, route: &Route) -> Result<(), EncodeError> {
        let indexes: Result<Vec<u32>, _> = route.next_hops.iter().map(|hop| self.index(&hop.dev)).collect();
        let indexes = indexes?;
        if indexes.is_empty() {
            return Ok(());
        }
        let mut list = Vec::new();
        for (hop, index) in route.next_hops.iter().zip(indexes) {
            let mut inside = Message::attributes();
            gateway(&mut inside, route.family(), hop.via);
            let inside = inside.into_attributes();
            let length = u16::try_from(8 + inside.len()).unwrap_or(u16::MAX);
            let weight = u8::try_from(hop.weight.saturating_sub(1)).unwrap_or(u8::MAX);
            list.extend(length.to_ne_bytes());
            list.extend([if hop.onlink { ONLINK as u8 } else { 0 }, weight]);
            list.extend(index.to_ne_bytes());
            list.extend(inside);
        }
        message.attr(RTA_MULTIPATH, &list);
        Ok(())
    }
}

/// The MTU, and what the model has no word for.
fn beyond(message: &mut Message, route: &Route) {
    let raw = &route.raw.0;
    let others = raw.iter().find(|(number, _)| *number == RTA_METRICS);
    if others.is_some() || route.mtu.is_some() {
        message.nest(RTA_METRICS, |metrics| {
            others.map(|(_, bytes)| metrics.raw(bytes));
            route.mtu.map(|mtu| metrics.u32(RTAX_MTU, mtu));
        });
    }
    for (number, bytes) in raw.iter().filter(|(number, _)| ![RTA_METRICS, HEAD].contains(number)) {
        message.attr(*number, bytes);
    }
}

fn gateway(message: &mut Message, family: Family, via: Option<IpAddr>) {
    match via {
        Some(ip) if Family::of(&ip) == family => {
            message.ip(RTA_GATEWAY, ip);
        }
        Some(IpAddr::V6(ip)) => {
            let mut bytes = u16::from(AF_INET6).to_ne_bytes().to_vec();
            bytes.extend(ip.octets());
            message.attr(RTA_VIA, &bytes);
        }
        Some(IpAddr::V4(_)) | None => {}
    }
}
