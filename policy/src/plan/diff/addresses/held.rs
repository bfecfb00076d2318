//! IPv4 routes that are there and stay: those that must outlast a change of addresses.

use crate::state::{Family, IfName, Route, RouteKey};
use std::collections::{BTreeMap, BTreeSet};

#[derive(Default)]
pub(super) struct Held<'a> {
    /// By each link they lead through, direct ones first: they make gateways reachable.
    through: BTreeMap<&'a IfName, Vec<&'a Route>>,
    /// They go with their source, whatever link it is on.
    sourced: Vec<&'a Route>,
    /// Links with routes that another takes the place of: they stay until it can.
    replaced: BTreeSet<IfName>,
}

impl<'a> Held<'a> {
    /// The routes of `wanted` that are in `now`.
    pub(super) fn of(now: &[Route], wanted: &'a [Route]) -> Self {
        let now: BTreeSet<&Route> = now.iter().filter(|r| r.family() == Family::Ipv4).collect();
        let keys: BTreeSet<RouteKey> = wanted.iter().map(Route::key).collect();
        let mut stay: Vec<&Route> = wanted.iter().filter(|r| now.contains(r)).collect();
        stay.sort_by_key(|route| route.has_gateway());
        let replaced = now.iter().filter(|r| keys.contains(&r.key()));
        let replaced = replaced.flat_map(|r| r.next_hops.iter().map(|hop| hop.dev.clone())).collect();
        let mut held = Self { replaced, ..Self::default() };
        for route in stay {
            for hop in &route.next_hops {
                held.through.entry(&hop.dev).or_default().push(route);
            }
            if route.source.is_some() {
                held.sourced.push(route);
            }
        }
        held
    }

    /// Whether any leads through a link.
    pub(super) fn has(&self, link: &IfName) -> bool {
        self.through.contains_key(link) || self.replaced.contains(link)
    }

    /// Those that a change of a link's addresses may take along.
    pub(super) fn of_link(&self, link: &IfName) -> impl Iterator<Item = &'a Route> {
        self.through.get(link).into_iter().flatten().chain(&self.sourced).copied()
    }
}
