//! What the kernel would ask of a route: that its link can be used, its gateway reached and its source sent from.

use super::super::Merge;
use super::{Place, locals, place};
use crate::plan::error::ProblemKind;
use crate::plan::reach::Direct;
use crate::state::{Desired, DesiredRoute, Family, IfName, Link, LinkState, NextHop, Route};
use std::collections::BTreeMap;
use std::net::IpAddr;

impl Merge<'_> {
    pub(super) fn check_link(&mut self, entry: &DesiredRoute, dev: &IfName, family: Family) {
        let name = dev.clone();
        let ignored_here = self.docs.get(dev).is_some_and(|d| d.state == LinkState::Ignore);
        let kind = match self.state.links.get(dev) {
            None => ProblemKind::RouteLinkMissing { name },
            Some(link) if link.ignored || ignored_here => ProblemKind::RouteLinkIgnored { name },
            Some(link) if !link.up => ProblemKind::RouteLinkDown { name },
            Some(link) if family == Family::Ipv6 && !link.ipv6.enabled => {
                ProblemKind::RouteFamilyOff { name, family }
            }
            Some(_) => return,
        };
        // What is already so may be said again: a state that was shown asks for nothing.
        if self.state.links.contains_key(dev) && self.already(entry) {
            return;
        }
        self.problem(format!("routes.config[{}].next-hop-interface", entry.index), kind);
    }

    /// Whether the kernel has taken such a next hop before, and nothing about its link takes it away.
    fn already(&self, entry: &DesiredRoute) -> bool {
        self.state.routes.iter().any(|r| {
            Some(r.destination) == entry.destination
                && r.next_hops
                    .iter()
                    .any(|h| Some(&h.dev) == entry.dev.as_ref() && h.via == entry.via.flatten())
                && self.observed.routes.contains(r)
        })
    }

    /// Whether the route it is a next hop of needs a gateway here.
    fn lacks_gateway(&self, entry: &DesiredRoute, lacking: &BTreeMap<Place, Vec<usize>>) -> bool {
        let there = place(entry).and_then(|place| lacking.get(&place)).into_iter().flatten();
        there.map(|i| &self.state.routes[*i]).any(|r| {
            entry.metric.is_none_or(|metric| metric == r.metric)
                && r.next_hops.iter().any(|h| Some(&h.dev) == entry.dev.as_ref() && h.via.is_none())
        })
    }

    /// The link of this host that has the address of a gateway. A link-local one counts only on the route's own link, and
    /// links under a controller (a vrf) may be a world of their own.
    fn own_gateway(&self, via: IpAddr, dev: &IfName) -> Option<IfName> {
        let family = Family::of(&via);
        let has = |link: &Link| link.ip(family).addresses.iter().any(|a| a.ip == via);
        let out = self.state.links.get(dev)?;
        if has(out) {
            return Some(dev.clone());
        }
        let near = matches!(via, IpAddr::V6(ip) if ip.is_unicast_link_local());
        let other = |link: &&Link| link.controller.is_none() && has(link);
        let found = self.state.links.values().filter(|_| !near && out.controller.is_none()).find(other);
        found.map(|link| link.name.clone())
    }

    pub(super) fn check_routes(&mut self, desired: &Desired) {
        let direct: Vec<Route> = self.state.routes.iter().filter(|r| !r.has_gateway()).cloned().collect();
        let reach = Direct::of(&direct);
        let locals = locals(&self.state);
        // By place, so that a document of thousands is gone through once.
        let mut lacking: BTreeMap<Place, Vec<usize>> = BTreeMap::new();
        for (i, route) in self.state.routes.iter().enumerate().filter(|(_, r)| !r.has_all_gateways()) {
            lacking.entry((route.table, route.destination)).or_default().push(i);
        }
        let mut found = Vec::new();
        for entry in desired.routes.iter().filter(|r| !r.absent) {
            if let (Some(via), Some(dev)) = (entry.via.flatten(), &entry.dev) {
                let hop = NextHop { via: Some(via), dev: dev.clone(), weight: 1, onlink: false };
                let known = self.state.links.get(dev).is_some_and(|l| !l.ignored);
                let own = locals.contains(&via).then(|| self.own_gateway(via, dev)).flatten();
                // Of IPv4 the kernel takes one of its own, and takes it for none; of IPv6 it takes none.
                let refused = !reach.reaches(&self.state, &hop) || via.is_ipv6() && own.is_some();
                if known && refused && !self.already(entry) {
                    let path = format!("routes.config[{}].next-hop-address", entry.index);
                    let kind = match own {
                        Some(name) => ProblemKind::OwnGateway { via, name },
                        None => ProblemKind::Gateway { via, name: dev.clone() },
                    };
                    found.push((path, kind));
                }
            }
            if entry.via.flatten().is_none() && self.lacks_gateway(entry, &lacking) && !self.already(entry) {
                let path = format!("routes.config[{}].next-hop-address", entry.index);
                found.push((path, ProblemKind::HopWithoutGateway));
            }
            if let Some(source_ip) = entry.source.filter(|ip| !locals.contains(ip)) {
                found.push((
                    format!("routes.config[{}].source", entry.index),
                    ProblemKind::Source { source_ip },
                ));
            }
        }
        for (path, kind) in found {
            self.problem(path, kind);
        }
    }
}
