//! Whether a gateway can be reached directly, as the kernel will ask before it takes a route.

use crate::state::{IfName, Link, NextHop, Observed, Route};
use std::collections::BTreeMap;
use std::net::IpAddr;

/// Routes without a gateway, by link: they make their destinations reachable directly. Made once per question
/// of many routes.
pub(super) struct Direct<'a>(BTreeMap<&'a IfName, Vec<&'a Route>>);

impl<'a> Direct<'a> {
    pub(super) fn of(routes: impl IntoIterator<Item = &'a Route>) -> Self {
        let mut map: BTreeMap<_, Vec<_>> = BTreeMap::new();
        for route in routes {
            for hop in route.next_hops.iter().filter(|hop| hop.via.is_none()) {
                map.entry(&hop.dev).or_default().push(route);
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
            let direct = self.0.get(&hop.dev).map_or(&[][..], Vec::as_slice);
            direct.iter().any(|route| route.destination.contains(&via))
        }
    }
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
