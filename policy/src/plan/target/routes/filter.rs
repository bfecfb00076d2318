//! What an entry with `state: absent` means: what it doesn't say matches anything.

use crate::state::{DesiredRoute, NextHop, Route};

/// Takes away what a filter means: single next hops, and the route with its last one. Only routes that
/// somebody wrote.
pub(super) fn remove(routes: &mut Vec<Route>, filter: &DesiredRoute) {
    routes.retain_mut(|route| {
        if !route.protocol.is_config() || !matches_route(filter, route) {
            return true;
        }
        if route.next_hops.is_empty() {
            return filter.dev.is_some() || filter.via.flatten().is_some();
        }
        route.next_hops.retain(|hop| !matches_hop(filter, hop));
        !route.next_hops.is_empty()
    });
}

/// Whether anything of a route is what a filter means.
pub(in crate::plan) fn matches(filter: &DesiredRoute, route: &Route) -> bool {
    route.protocol.is_config()
        && matches_route(filter, route)
        && match route.next_hops.as_slice() {
            [] => filter.dev.is_none() && filter.via.flatten().is_none(),
            hops => hops.iter().any(|hop| matches_hop(filter, hop)),
        }
}

fn matches_route(filter: &DesiredRoute, route: &Route) -> bool {
    filter.destination.is_none_or(|d| d == route.destination)
        && filter.metric.is_none_or(|m| m == route.metric)
        && filter.table.is_none_or(|t| t == route.table)
        && filter.kind.is_none_or(|k| k == route.kind)
        && filter.source.is_none_or(|s| Some(s) == route.source)
        && filter.mtu.is_none_or(|m| Some(m) == route.mtu)
}

fn matches_hop(filter: &DesiredRoute, hop: &NextHop) -> bool {
    filter.dev.as_ref().is_none_or(|d| *d == hop.dev)
        && filter.via.is_none_or(|via| via == hop.via)
        && filter.weight.is_none_or(|w| w == hop.weight)
}
