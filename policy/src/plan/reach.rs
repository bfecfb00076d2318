//! Whether a gateway can be reached directly, as the kernel will ask before it takes a route.

use crate::state::{IfName, Link, NextHop, Observed, Route};
use ipnet::IpNet;
use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;

/// Routes without a gateway, by link: they make their destinations reachable directly. Made once per question
/// of many routes.
///
/// Cost: n log n to make; an answer asks once per prefix length that is there, whatever the number of routes.
pub(super) struct Direct<'a>(BTreeMap<&'a IfName, Nets>);

/// Networks by the length of their prefix.
type Nets = BTreeMap<u8, BTreeSet<IpNet>>;

impl<'a> Direct<'a> {
    pub(super) fn of(routes: impl IntoIterator<Item = &'a Route>) -> Self {
        let mut map: BTreeMap<_, Nets> = BTreeMap::new();
        for route in routes {
            for hop in route.next_hops.iter().filter(|hop| hop.via.is_none()) {
                let net = route.destination.trunc();
                map.entry(&hop.dev).or_default().entry(net.prefix_len()).or_default().insert(net);
            }
        }
        Self(map)
    }

    /// Whether the next hop's gateway is in a subnet of its link, or behind a direct route. A default route
    /// without a gateway counts: on such a link everything is direct.
    pub(super) fn reaches(&self, state: &Observed, hop: &NextHop) -> bool {
        let Some(via) = hop.via else { return true };
        let Some(link) = state.links.get(&hop.dev) else {
            return false;
        };
        hop.onlink || on_link(link, via) || {
            let around = |length: u8| IpNet::new(via, length).ok().map(|net| net.trunc());
            let nets = self.0.get(&hop.dev).into_iter().flatten();
            nets.filter_map(|(length, nets)| Some((around(*length)?, nets)))
                .any(|(net, nets)| nets.contains(&net))
        }
    }
}

/// The same for one route that is about to be added, without looking at all others unless it has to.
pub(super) fn reaches_now(state: &Observed, family: crate::state::Family, hop: &NextHop) -> bool {
    let Some(via) = hop.via else { return true };
    let Some(link) = state.links.get(&hop.dev) else { return false };
    let leads = |h: &NextHop| h.via.is_none() && h.dev == hop.dev;
    let around = |r: &Route| r.destination.contains(&via) && r.next_hops.iter().any(leads);
    let direct = |r: &&Route| r.family() == family && !r.has_gateway();
    hop.onlink || on_link(link, via) || state.routes.iter().filter(direct).any(around)
}

/// In a subnet of one of the link's addresses: not what is said of every link, as link-local addresses are.
pub(super) fn has_neighbour(link: &Link, ip: IpAddr) -> bool {
    let addresses = &link.ip(crate::state::Family::of(&ip)).addresses;
    addresses.iter().any(|a| a.ip != ip && !a.is_kernel_link_local() && a.subnet().contains(&ip))
}

fn on_link(link: &Link, via: IpAddr) -> bool {
    match via {
        IpAddr::V6(ip) if ip.is_unicast_link_local() => link.ipv6.enabled,
        _ => {
            let family = crate::state::Family::of(&via);
            link.ip(family).addresses.iter().any(|a| a.ip != via && a.subnet().contains(&via))
        }
    }
}
