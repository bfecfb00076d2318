//! Names for what is kept as it came, and which of it the kernel makes by itself.

use std::collections::BTreeMap;

use ipnet::IpNet;
use policy::state::{Address, Family, Kept, Link, OptValue};

use super::name_hop;
use crate::netlink::decode::address::{IFA_ADDRESS, IFA_FLAGS};
use crate::netlink::decode::kept::SeenKept;
use crate::netlink::decode::route::{SeenHop, SeenMade};
use crate::netlink::kind::Names;
use crate::netlink::wire::read_u32;

const IFA_RT_PRIORITY: u16 = 9;
const NO_PREFIX_ROUTE: u32 = 0x200;
/// What the kernel gives the subnets of IPv6 addresses.
const SUBNET_METRIC: u32 = 256;

/// Next hops by the number of the object that has them, groups included.
pub(super) fn by_object(objects: &[SeenKept]) -> BTreeMap<u32, Vec<SeenHop>> {
    let singles = objects.iter().filter(|seen| seen.members.is_empty());
    let mut map: BTreeMap<u32, Vec<SeenHop>> =
        singles.filter_map(|seen| Some((seen.object?, seen.hops.clone()))).collect();
    for group in objects.iter().filter(|seen| !seen.members.is_empty()) {
        let member = |(id, weight): &(u32, u16)| {
            let hops = map.get(id).cloned().unwrap_or_default();
            hops.into_iter().map(|hop| SeenHop { weight: *weight, ..hop }).collect::<Vec<_>>()
        };
        let hops = group.members.iter().flat_map(member).collect();
        map.extend(group.object.map(|id| (id, hops)));
    }
    map
}

/// With names in place of indexes; `None` if an index has none.
pub(super) fn name(mut seen: SeenKept, objects: &BTreeMap<u32, Vec<SeenHop>>, names: &Names) -> Option<Kept> {
    if seen.hops.is_empty()
        && let Some(hops) = seen.object.and_then(|id| objects.get(&id))
    {
        seen.hops.clone_from(hops);
    }
    let hops = seen.hops.iter().map(|hop| name_hop(hop, names)).collect::<Option<Vec<_>>>()?;
    let mut words = seen.lead;
    // A group is known by its members.
    for (i, hop) in hops.iter().enumerate().filter(|_| seen.members.is_empty()) {
        words.push_str(&format!("{}{hop}", if i == 0 { " " } else { " + " }));
    }
    words.push_str(&seen.tail);
    Some(Kept {
        kind: seen.kind,
        words,
        family: seen.family,
        hops,
        source: seen.source,
        object: seen.object,
        outlasts_down: seen.outlasts_down,
        rule: seen.rule.map(Box::new),
        payload: seen.payload,
        passing: seen.passing,
    })
}

/// Whether a tunnel has made an entry by itself, for its remote end; or a bridge, for itself or a port.
pub(super) fn is_default(seen: &SeenKept, links: &BTreeMap<u32, Link>) -> bool {
    if let Some(mac) = seen.own_mac {
        return seen.hops.iter().any(|hop| links.get(&hop.index).is_some_and(|link| link.mac == Some(mac)));
    }
    let (Some(to), Some(hop)) = (seen.default_of, seen.hops.first()) else { return false };
    let remote = |link: &Link| {
        let mut options = link.options.iter();
        options.any(|(name, value)| name.as_str() == "remote" && *value == OptValue::Text(to.to_string()))
    };
    links.get(&hop.index).is_some_and(remote)
}

/// Whether a route that is said to be the kernel's is: made for an address, and made again with it. Managers of networks
/// say the same of routes which they add themselves, beside addresses that make none.
pub(super) fn is_derived(seen: &SeenMade, links: &BTreeMap<u32, Link>) -> bool {
    let family = Family::of_net(&seen.destination);
    let addresses = links.get(&seen.index).map_or(&[][..], |link| link.ip(family).addresses.as_slice());
    addresses.iter().any(|address| makes(address, seen.destination, seen.metric, family))
}

fn makes(address: &Address, destination: IpNet, metric: u32, family: Family) -> bool {
    let said =
        |wanted: u16| address.raw.0.iter().find(|(number, _)| *number == wanted).map(|(_, b)| b.as_slice());
    let number = |wanted: u16| said(wanted).and_then(|bytes| read_u32(bytes, 0));
    let usual = match family {
        Family::Ipv4 => 0,
        Family::Ipv6 => SUBNET_METRIC,
    };
    let peer = said(IFA_ADDRESS).and_then(|bytes| match bytes.len() {
        4 => <[u8; 4]>::try_from(bytes).ok().map(std::net::IpAddr::from),
        _ => <[u8; 16]>::try_from(bytes).ok().map(std::net::IpAddr::from),
    });
    let far = peer.and_then(|ip| IpNet::new(ip, address.prefix).ok()).map(|net| net.trunc());
    let silent = number(IFA_FLAGS).is_some_and(|flags| flags & NO_PREFIX_ROUTE != 0);
    !silent
        && (address.subnet() == destination || far == Some(destination))
        && number(IFA_RT_PRIORITY).unwrap_or(usual) == metric
}
