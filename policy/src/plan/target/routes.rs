//! Routes: what can stay stays, what moved with its addresses moves, absent is a filter, the rest is added or
//! replaced in place.
//!
//! Table, destination and metric make a route: entries of a document that share them are its next hops, and
//! together they are the whole of it. So changing a next hop needs no "absent" beside it.

mod filter;

use super::Merge;
use crate::plan::error::{Problem, ProblemKind};
use crate::plan::reach::Direct;
use crate::state::route::MAIN_TABLE;
use crate::state::{
    Desired, DesiredRoute, Family, IfName, NextHop, Observed, Route, RouteKey, RouteProtocol, RouteType,
};
use ipnet::IpNet;
use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;

pub(in crate::plan) use filter::matches;

type Place = (u32, IpNet);

impl Merge<'_> {
    pub(super) fn routes(&mut self, desired: &Desired) {
        let named: BTreeSet<Place> = desired.routes.iter().filter_map(place).collect();
        self.keep_routes(&named);
        for filter in desired.routes.iter().filter(|r| r.absent) {
            filter::remove(&mut self.state.routes, filter);
        }
        self.add_routes(desired);
    }

    /// Routes that were there, without those that can't be any more.
    fn keep_routes(&mut self, named: &BTreeSet<Place>) {
        let mut kept: Vec<Route> = Vec::with_capacity(self.observed.routes.len());
        let mut keys: BTreeSet<RouteKey> = BTreeSet::new();
        for mut route in std::mem::take(&mut self.state.routes) {
            // A written route follows the address it needs to the controller, unless the document has its own.
            let may_move = route.protocol.is_config() && !named.contains(&(route.table, route.destination));
            let mut moved = false;
            for hop in route.next_hops.iter_mut().filter(|_| may_move) {
                if let Some(controller) = self.moved.get(&hop.dev) {
                    hop.dev = controller.clone();
                    moved = true;
                }
            }
            let family = route.family();
            let before = route.next_hops.len();
            route.next_hops.retain(|hop| self.usable(&hop.dev, family));
            let gone = before > 0 && route.next_hops.is_empty();
            let twice = moved && keys.contains(&route.key());
            if !gone && !twice {
                route.next_hops.sort();
                keys.insert(route.key());
                kept.push(route);
            }
        }
        self.leave_with_subnets(&mut kept);
        self.leave_with_sources(&mut kept);
        self.state.routes = kept;
    }

    fn usable(&self, dev: &IfName, family: Family) -> bool {
        let observed = self.observed.links.get(dev);
        let Some(link) = self.state.links.get(dev) else {
            return observed.is_none();
        };
        let went_down = !link.up && !link.ignored && observed.is_none_or(|o| o.up);
        let went_off =
            family == Family::Ipv6 && !link.ipv6.enabled && observed.is_none_or(|o| o.ipv6.enabled);
        // Where there was no address IPv4 was off already, and a route that is there may stay.
        let had = family == Family::Ipv4 && observed.is_none_or(|o| !o.ipv4.addresses.is_empty());
        let said = self
            .wanted(dev)
            .and_then(|d| d.ip(family))
            .is_some_and(|ip| ip.enabled == Some(false));
        let said_off = said && had;
        !went_down && !went_off && !said_off
    }

    /// A gateway that could be reached and no longer can leaves with its subnet.
    fn leave_with_subnets(&self, kept: &mut Vec<Route>) {
        let before = Direct::of(self.observed.routes.iter().filter(|r| !r.has_gateway()));
        let direct: Vec<Route> = kept.iter().filter(|r| !r.has_gateway()).cloned().collect();
        let after = Direct::of(&direct);
        kept.retain_mut(|route| {
            let had = route.next_hops.len();
            route.next_hops.retain(|hop| {
                let moved = !self.observed.routes.is_empty() && self.moved.values().any(|c| *c == hop.dev);
                after.reaches(&self.state, hop) || !(moved || before.reaches(self.observed, hop))
            });
            had == 0 || !route.next_hops.is_empty()
        });
    }

    fn leave_with_sources(&self, kept: &mut Vec<Route>) {
        if kept.iter().all(|r| r.source.is_none()) {
            return;
        }
        let (before, after) = (locals(self.observed), locals(&self.state));
        kept.retain_mut(|route| match route.source {
            Some(ip) if before.contains(&ip) && !after.contains(&ip) => {
                route.source = None;
                ip.is_ipv6()
            }
            _ => true,
        });
    }

    fn add_routes(&mut self, desired: &Desired) {
        let mut groups: BTreeMap<(Place, Option<u32>), Vec<&DesiredRoute>> = BTreeMap::new();
        for route in desired.routes.iter().filter(|r| !r.absent) {
            if let Some(place) = place(route) {
                groups.entry((place, route.metric)).or_default().push(route);
            }
        }
        if groups.is_empty() {
            return;
        }
        let mut index: BTreeMap<Place, Vec<usize>> = BTreeMap::new();
        for (i, route) in self.state.routes.iter().enumerate() {
            index.entry((route.table, route.destination)).or_default().push(i);
        }
        let mut said: BTreeSet<RouteKey> = BTreeSet::new();
        let mut dead: BTreeSet<usize> = BTreeSet::new();
        // Entries that name their metric first: one that doesn't may take up with what is then there.
        let (exact, open): (Vec<_>, Vec<_>) = groups.iter().partition(|((_, metric), _)| metric.is_some());
        for ((place, metric), entries) in exact.into_iter().chain(open) {
            let (first, rest) = match entries.split_first() {
                Some(split) => split,
                None => continue,
            };
            rest.iter().for_each(|other| self.same_route(first, other));
            let hops = self.hops(entries, place.1);
            let kind = first.kind.unwrap_or(RouteType::Unicast);
            let there = index.entry(*place).or_default();
            let metric = metric.unwrap_or_else(|| {
                let twin = there
                    .iter()
                    .map(|i| &self.state.routes[*i])
                    .find(|r| r.kind == kind && leads(r, &hops));
                twin.map_or(Route::default_metric(Family::of_net(&place.1)), |r| r.metric)
            });
            let mut same = there
                .iter()
                .copied()
                .filter(|i| self.state.routes[*i].metric == metric);
            let found = same.next();
            dead.extend(same);
            let mut route = found.map_or_else(|| fresh(*place, metric), |i| self.state.routes[i].clone());
            let together = said.contains(&route.key());
            if together && route.kind != kind {
                let path = format!("routes.config[{}].route-type", first.index);
                let first = "another entry with this destination and metric".into();
                self.problems.push(Problem {
                    path,
                    kind: ProblemKind::RouteConflict { first },
                });
            }
            fill(&mut route, kind, &hops, entries, together);
            said.insert(route.key());
            match found {
                Some(i) => self.state.routes[i] = route,
                None => {
                    there.push(self.state.routes.len());
                    self.state.routes.push(route);
                }
            }
        }
        let mut i = 0;
        self.state.routes.retain(|_| {
            i += 1;
            !dead.contains(&(i - 1))
        });
        self.check_routes(desired);
    }

    /// Next hops of one route agree on everything else.
    fn same_route(&mut self, first: &DesiredRoute, other: &DesiredRoute) {
        let fields = [
            (
                "route-type",
                first.kind.unwrap_or(RouteType::Unicast) == other.kind.unwrap_or(RouteType::Unicast),
            ),
            ("source", first.source == other.source),
            ("mtu", first.mtu == other.mtu),
        ];
        for (field, _) in fields.into_iter().filter(|(_, same)| !same) {
            let kind = ProblemKind::RouteConflict {
                first: format!("routes.config[{}]", first.index),
            };
            self.problem(format!("routes.config[{}].{field}", other.index), kind);
        }
    }

    fn hops(&mut self, entries: &[&DesiredRoute], destination: IpNet) -> Vec<(NextHop, bool)> {
        let family = Family::of_net(&destination);
        let mut hops: Vec<(NextHop, bool)> = Vec::new();
        for entry in entries
            .iter()
            .filter(|e| e.kind.unwrap_or(RouteType::Unicast) == RouteType::Unicast)
        {
            let Some(dev) = &entry.dev else { continue };
            self.check_link(entry, dev, family);
            let via = entry.via.flatten();
            let hop = NextHop {
                via,
                dev: dev.clone(),
                weight: entry.weight.unwrap_or(1),
                onlink: false,
            };
            if !hops.iter().any(|(h, _)| (h.via, &h.dev) == (hop.via, &hop.dev)) {
                hops.push((hop, entry.weight.is_some()));
            }
        }
        hops
    }

    fn check_link(&mut self, entry: &DesiredRoute, dev: &IfName, family: Family) {
        let name = dev.clone();
        let ignored_here = self
            .docs
            .get(dev)
            .is_some_and(|d| d.state == crate::state::LinkState::Ignore);
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

    fn check_routes(&mut self, desired: &Desired) {
        let direct: Vec<Route> = self
            .state
            .routes
            .iter()
            .filter(|r| !r.has_gateway())
            .cloned()
            .collect();
        let reach = Direct::of(&direct);
        let locals = locals(&self.state);
        let mut found = Vec::new();
        for entry in desired.routes.iter().filter(|r| !r.absent) {
            if let (Some(via), Some(dev)) = (entry.via.flatten(), &entry.dev) {
                let hop = NextHop {
                    via: Some(via),
                    dev: dev.clone(),
                    weight: 1,
                    onlink: false,
                };
                let known = self.state.links.get(dev).is_some_and(|l| !l.ignored);
                if known && !reach.reaches(&self.state, &hop) && !self.already(entry) {
                    let path = format!("routes.config[{}].next-hop-address", entry.index);
                    found.push((
                        path,
                        ProblemKind::Gateway {
                            via,
                            name: dev.clone(),
                        },
                    ));
                }
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

fn place(route: &DesiredRoute) -> Option<Place> {
    Some((route.table.unwrap_or(MAIN_TABLE), route.destination?))
}

fn locals(state: &Observed) -> BTreeSet<IpAddr> {
    let links = state.links.values();
    links
        .flat_map(|l| l.ipv4.addresses.iter().chain(&l.ipv6.addresses))
        .map(|a| a.ip)
        .collect()
}

/// Whether a route has these next hops, whatever their shares.
fn leads(route: &Route, hops: &[(NextHop, bool)]) -> bool {
    route.next_hops.len() == hops.len()
        && hops.iter().all(|(hop, _)| {
            route
                .next_hops
                .iter()
                .any(|h| (h.via, &h.dev) == (hop.via, &hop.dev))
        })
}

fn fresh((table, destination): Place, metric: u32) -> Route {
    Route {
        destination,
        table,
        metric,
        kind: RouteType::Unicast,
        protocol: RouteProtocol::STATIC,
        next_hops: Vec::new(),
        source: None,
        mtu: None,
    }
}

/// Makes a route what the entries say; what they don't say stays. `together`: the document spoke of this route
/// before (once with its metric, once without), and these hops come on top.
fn fill(
    route: &mut Route,
    kind: RouteType,
    hops: &[(NextHop, bool)],
    entries: &[&DesiredRoute],
    together: bool,
) {
    if !leads(route, hops) && !route.protocol.is_config() {
        route.protocol = RouteProtocol::STATIC;
    }
    route.kind = kind;
    let old = std::mem::take(&mut route.next_hops);
    for (hop, weighed) in hops {
        let mut hop = hop.clone();
        if let Some(known) = old.iter().find(|h| (h.via, &h.dev) == (hop.via, &hop.dev)) {
            hop.onlink = known.onlink;
            if !weighed {
                hop.weight = known.weight;
            }
        }
        route.next_hops.push(hop);
    }
    if together {
        let more = old
            .into_iter()
            .filter(|h| !hops.iter().any(|(n, _)| (n.via, &n.dev) == (h.via, &h.dev)));
        route.next_hops.extend(more);
    }
    route.next_hops.sort();
    if let Some(first) = entries.first() {
        route.source = first.source.or(route.source);
        route.mtu = first.mtu.or(route.mtu);
    }
}
