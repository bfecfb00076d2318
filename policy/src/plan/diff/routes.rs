//! Routes: replaced in place, new before old, what the kernel dropped on the way put back.

use super::{Walk, sorted};
use crate::plan::step::Step;
use crate::state::{IfName, Observed, Route, RouteKey};
use std::collections::{BTreeMap, BTreeSet};

type ByKey = BTreeMap<RouteKey, Vec<Route>>;

fn by_key(routes: &[Route]) -> ByKey {
    let mut out = ByKey::new();
    for route in routes {
        out.entry(route.key()).or_default().push(route.clone());
    }
    out.values_mut().for_each(|list| list.sort());
    out
}

impl Walk<'_> {
    /// Routes that can lead another way before addresses go: those through links that lose nothing. A route
    /// whose address moves to a bridge is replaced while the old one still works.
    pub(super) fn early_routes(&mut self, to: &Observed, losing: &BTreeSet<IfName>) {
        if losing.is_empty() || sorted(&self.work.routes) == sorted(&to.routes) {
            return;
        }
        let safe = |route: &Route| {
            !route.next_hops.is_empty() && !route.next_hops.iter().any(|hop| losing.contains(&hop.dev))
        };
        let now = by_key(&self.work.routes);
        for (step, route) in additions(&now, &by_key(&to.routes)) {
            if safe(&route) {
                self.attempt(step);
            }
        }
    }

    pub(super) fn routes(&mut self, to: &Observed) {
        if self.work.routes == to.routes {
            return;
        }
        let wanted = by_key(&to.routes);
        for (step, _) in additions(&by_key(&self.work.routes), &wanted) {
            self.step(step);
        }
        let now = by_key(&self.work.routes);
        let mut old: Vec<Route> = now
            .iter()
            .flat_map(|(key, list)| list.iter().map(move |r| (key, r)))
            .filter(|(key, route)| !wanted.get(key).is_some_and(|list| list.contains(route)))
            .map(|(_, route)| route.clone())
            .collect();
        // Gateways before the routes that make them reachable.
        old.sort_by_key(|route| !route.has_gateway());
        for route in old {
            self.step(Step::DeleteRoute { route });
        }
    }
}

/// What has to be added or replaced, direct routes first: they make gateways reachable.
fn additions(now: &ByKey, wanted: &ByKey) -> Vec<(Step, Route)> {
    let mut out = Vec::new();
    for (key, list) in wanted {
        let there = now.get(key).map_or(&[][..], Vec::as_slice);
        if there == list.as_slice() {
            continue;
        }
        for (i, route) in list.iter().filter(|r| !there.contains(r)).enumerate() {
            // One that is wanted as it is must not be replaced by its neighbour.
            let in_the_way = there.iter().any(|r| !list.contains(r));
            let kept = there.iter().any(|r| list.contains(r));
            let step = match (i, in_the_way, kept) {
                (0, false, false) => Step::AddRoute { route: route.clone() },
                (0, true, false) => Step::ReplaceRoute { route: route.clone() },
                _ => Step::AppendRoute { route: route.clone() },
            };
            out.push((step, route.clone()));
        }
    }
    out.sort_by_key(|(_, route)| route.has_gateway());
    out
}
