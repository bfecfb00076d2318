//! The routes that a document asks for, merged into those that stay: each replaces the one of its key, or is new.

use super::super::Merge;
use super::{Place, place};
use crate::plan::error::{Problem, ProblemKind};
use crate::state::{Desired, DesiredRoute, Family, NextHop, Raw, Route, RouteKey, RouteProtocol, RouteType};
use ipnet::IpNet;
use std::collections::{BTreeMap, BTreeSet};

/// Entries that are one route: next hops of the same place and metric.
type Groups<'a> = BTreeMap<(Place, Option<u32>), Vec<&'a DesiredRoute>>;

/// Where the routes of the target are, while a document's come in.
struct Known {
    at: BTreeMap<Place, Vec<usize>>,
    /// Routes that the document has spoken of.
    said: BTreeSet<RouteKey>,
    /// Twins of those, which go.
    dead: BTreeSet<usize>,
}

impl Known {
    fn of(routes: &[Route]) -> Self {
        let mut at: BTreeMap<Place, Vec<usize>> = BTreeMap::new();
        for (i, route) in routes.iter().enumerate() {
            at.entry((route.table, route.destination)).or_default().push(i);
        }
        Self { at, said: BTreeSet::new(), dead: BTreeSet::new() }
    }
}

fn groups(desired: &Desired) -> Groups<'_> {
    let mut groups = Groups::new();
    for route in desired.routes.iter().filter(|r| !r.absent) {
        if let Some(place) = place(route) {
            groups.entry((place, route.metric)).or_default().push(route);
        }
    }
    groups
}

impl Merge<'_> {
    pub(super) fn add_routes(&mut self, desired: &Desired) {
        let groups = groups(desired);
        if groups.is_empty() {
            return;
        }
        let mut known = Known::of(&self.state.routes);
        // Entries that name their metric first: one that doesn't may take up with what is then there.
        let (exact, open): (Vec<_>, Vec<_>) = groups.iter().partition(|((_, metric), _)| metric.is_some());
        for ((place, metric), entries) in exact.into_iter().chain(open) {
            self.add_route(*place, *metric, entries, &mut known);
        }
        let mut i = 0;
        self.state.routes.retain(|_| {
            i += 1;
            !known.dead.contains(&(i - 1))
        });
        self.check_routes(desired);
    }

    fn add_route(&mut self, place: Place, metric: Option<u32>, entries: &[&DesiredRoute], known: &mut Known) {
        let Some((first, rest)) = entries.split_first() else {
            return;
        };
        rest.iter().for_each(|other| self.same_route(first, other));
        let hops = self.hops(entries, place.1);
        let kind = first.kind.unwrap_or(RouteType::Unicast);
        let there = known.at.entry(place).or_default();
        let metric = metric.unwrap_or_else(|| {
            let twin = there
                .iter()
                .map(|i| &self.state.routes[*i])
                .find(|r| r.tos == 0 && r.kind == kind && leads(r, &hops));
            twin.map_or(Route::default_metric(Family::of_net(&place.1)), |r| r.metric)
        });
        let same: Vec<usize> =
            there.iter().copied().filter(|i| is_here(&self.state.routes[*i], metric)).collect();
        let (met, mut unmet): (Vec<usize>, Vec<usize>) =
            same.into_iter().partition(|i| has_met(&self.state.routes[*i], kind, &hops, first));
        // Routes of daemons and of the kernel are not the document's to take away.
        let written = |routes: &[Route], i: usize| routes[i].protocol.is_config();
        if !met.is_empty() && hops.iter().all(|hop| met.iter().any(|i| has_hop(&self.state.routes[*i], hop)))
        {
            // What is asked for is there, be it as one route or as several: none of it is touched.
            known.dead.extend(unmet.into_iter().filter(|i| written(&self.state.routes, *i)));
            known.said.extend(met.iter().map(|i| self.state.routes[*i].key()));
            return;
        }
        unmet.extend(met);
        unmet.sort_by_key(|i| (!written(&self.state.routes, *i), *i));
        let mut same = unmet.into_iter();
        let found = same.next();
        known.dead.extend(same.filter(|i| written(&self.state.routes, *i)));
        let mut route = found.map_or_else(|| fresh(place, metric), |i| self.state.routes[i].clone());
        let together = known.said.contains(&route.key());
        if together && route.kind != kind {
            let path = format!("routes.config[{}].route-type", first.index);
            let first = "another entry with this destination and metric".into();
            self.problems.push(Problem { path, kind: ProblemKind::RouteConflict { first } });
        }
        fill(&mut route, kind, &hops, entries, together);
        known.said.insert(route.key());
        match found {
            Some(i) => self.state.routes[i] = route,
            None => {
                there.push(self.state.routes.len());
                self.state.routes.push(route);
            }
        }
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
            let kind = ProblemKind::RouteConflict { first: format!("routes.config[{}]", first.index) };
            self.problem(format!("routes.config[{}].{field}", other.index), kind);
        }
    }

    fn hops(&mut self, entries: &[&DesiredRoute], destination: IpNet) -> Vec<(NextHop, bool)> {
        let family = Family::of_net(&destination);
        let mut hops: Vec<(NextHop, bool)> = Vec::new();
        for entry in entries.iter().filter(|e| e.kind.unwrap_or(RouteType::Unicast) == RouteType::Unicast) {
            let Some(dev) = &entry.dev else { continue };
            self.check_link(entry, dev, family);
            let via = entry.via.flatten();
            let hop = NextHop { via, dev: dev.clone(), weight: entry.weight.unwrap_or(1), onlink: false };
            if !hops.iter().any(|(h, _)| h.is_same_way(&hop)) {
                hops.push((hop, entry.weight.is_some()));
            }
        }
        hops
    }
}

/// Documents ask for no type of service.
fn is_here(route: &Route, metric: u32) -> bool {
    route.metric == metric && route.tos == 0
}

fn has_hop(route: &Route, (hop, weighed): &(NextHop, bool)) -> bool {
    let alone = route.next_hops.len() == 1;
    let same = |h: &NextHop| h.is_same_way(hop) && (!weighed || alone || h.weight == hop.weight);
    route.next_hops.iter().any(same)
}

/// Whether a route is some of what is asked for, and nothing else.
fn has_met(route: &Route, kind: RouteType, hops: &[(NextHop, bool)], said: &DesiredRoute) -> bool {
    let asked = |h: &NextHop| hops.iter().any(|(hop, _)| hop.is_same_way(h));
    route.kind == kind
        && route.next_hops.iter().all(asked)
        && hops.iter().filter(|(hop, _)| goes(route, hop)).all(|hop| has_hop(route, hop))
        && said.source.is_none_or(|source| route.source == Some(source))
        && said.mtu.is_none_or(|mtu| route.mtu == Some(mtu))
}

fn goes(route: &Route, hop: &NextHop) -> bool {
    route.next_hops.iter().any(|h| h.is_same_way(hop))
}

/// Whether a route has these next hops, whatever their shares.
fn leads(route: &Route, hops: &[(NextHop, bool)]) -> bool {
    route.next_hops.len() == hops.len() && hops.iter().all(|(hop, _)| goes(route, hop))
}

fn fresh((table, destination): Place, metric: u32) -> Route {
    Route {
        destination,
        table,
        metric,
        tos: 0,
        kind: RouteType::Unicast,
        protocol: RouteProtocol::STATIC,
        next_hops: Vec::new(),
        object: None,
        source: None,
        mtu: None,
        raw: Raw::default(),
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
        if let Some(known) = old.iter().find(|h| h.is_same_way(&hop)) {
            hop.onlink = known.onlink;
            if !weighed {
                hop.weight = known.weight;
            }
        }
        route.next_hops.push(hop);
    }
    if together {
        let more = old.iter().filter(|h| !hops.iter().any(|(n, _)| n.is_same_way(h))).cloned();
        route.next_hops.extend(more);
    }
    route.settle_hops();
    // Other ways than the object's are the route's own.
    if old != route.next_hops {
        route.object = None;
    }
    if let Some(first) = entries.first() {
        route.source = first.source.or(route.source);
        route.mtu = first.mtu.or(route.mtu);
    }
}
