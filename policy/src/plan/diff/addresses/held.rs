//! IPv4 routes that are there and stay: those that must outlast a change of addresses.

use crate::state::{Family, IfName, Route, RouteKey};
use std::collections::{BTreeMap, BTreeSet};

#[derive(Default)]
pub(super) struct Held<'a> {
    /// By each link they lead through, direct ones first: they make gateways reachable.
    through: BTreeMap<&'a IfName, Vec<&'a Route>>,
    /// They go with their source, whatever link it is on.
    sourced: Vec<&'a Route>,
    /// Links that any of them leads through, or one that stays until another of its key can take its place.
    links: BTreeSet<IfName>,
}

impl<'a> Held<'a> {
    /// The routes of `wanted` that are in `now`.
    pub(super) fn of(now: &[Route], wanted: &'a [Route]) -> Self {
        let now: BTreeSet<&Route> = now.iter().filter(|r| r.family() == Family::Ipv4).collect();
        let keys: BTreeSet<RouteKey> = wanted.iter().map(Route::key).collect();
        let mut stay: Vec<&Route> = wanted.iter().filter(|r| now.contains(r)).collect();
        stay.sort_by_key(|route| route.has_gateway());
        let last = now.iter().filter(|r| keys.contains(&r.key()));
        let links = last.flat_map(|r| r.next_hops.iter().map(|hop| hop.dev.clone())).collect();
        let mut held = Self { links, ..Self::default() };
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
        self.links.contains(link)
    }

    /// Those that a change of a link's addresses may take along.
    pub(super) fn of_link(&self, link: &IfName) -> impl Iterator<Item = &'a Route> {
        self.through.get(link).into_iter().flatten().chain(&self.sourced).copied()
    }
}
