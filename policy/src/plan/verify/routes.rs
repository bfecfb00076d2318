//! Routes and rules: wanted ones are there with all that was said, absent ones are not.

use super::{Check, words};
use crate::plan::target::{routes, rules};
use crate::state::route::MAIN_TABLE;
use crate::state::{Desired, DesiredRoute, Route, RouteType, Rule};
use std::collections::BTreeMap;

impl Check<'_> {
    pub(super) fn routes(&mut self, desired: &Desired) {
        if desired.routes.is_empty() {
            return;
        }
        let mut index: BTreeMap<_, Vec<&Route>> = BTreeMap::new();
        for route in &self.observed.routes {
            index.entry((route.table, route.destination)).or_default().push(route);
        }
        let mut held: Vec<&DesiredRoute> = Vec::new();
        for wish in desired.routes.iter().filter(|r| !r.absent) {
            let Some(destination) = wish.destination else {
                continue;
            };
            let there =
                index.get(&(wish.table.unwrap_or(MAIN_TABLE), destination)).cloned().unwrap_or_default();
            held.push(wish);
            if !there.iter().any(|route| is(wish, route)) {
                let path = format!("routes.config[{}]", wish.index);
                self.unmet(path, describe(wish), words(&there));
            }
        }
        for filter in desired.routes.iter().filter(|r| r.absent) {
            let left: Vec<&Route> = self
                .observed
                .routes
                .iter()
                .filter(|route| routes::matches(filter, route))
                .filter(|route| !held.iter().any(|wish| is(wish, route)))
                .collect();
            if !left.is_empty() {
                self.unmet(format!("routes.config[{}]", filter.index), "absent", words(&left));
            }
        }
    }

    pub(super) fn rules(&mut self, desired: &Desired) {
        for wish in &desired.rules {
            let path = format!("route-rules.config[{}]", wish.index);
            let found: Vec<&Rule> = self.observed.rules.iter().filter(|r| rules::matches(wish, r)).collect();
            let holds = || rules::is_born(wish) || self.observed.rules.iter().any(|r| rules::is(wish, r));
            if !wish.absent && !holds() {
                self.unmet(path, "this rule", words(&found));
            } else if wish.absent {
                let wanted = |r: &&Rule| !desired.rules.iter().any(|w| !w.absent && rules::is(w, r));
                let left: Vec<_> = found.into_iter().filter(|r| !r.is_kernels()).filter(wanted).collect();
                if !left.is_empty() {
                    self.unmet(path, "absent", words(&left));
                }
            }
        }
    }
}

/// Whether a route has the wish among its next hops, with all that was said of it.
fn is(wish: &DesiredRoute, route: &Route) -> bool {
    let kind = wish.kind.unwrap_or(RouteType::Unicast);
    let hop = kind != RouteType::Unicast
        || route.next_hops.iter().any(|hop| {
            Some(&hop.dev) == wish.dev.as_ref()
                && hop.via == wish.via.flatten()
                && wish.weight.is_none_or(|w| w == hop.weight || route.next_hops.len() == 1)
        });
    hop && Some(route.destination) == wish.destination
        && route.table == wish.table.unwrap_or(MAIN_TABLE)
        && route.kind == kind
        && route.tos == 0
        && wish.metric.is_none_or(|m| m == route.metric)
        && wish.source.is_none_or(|s| Some(s) == route.source)
        && wish.mtu.is_none_or(|m| Some(m) == route.mtu)
}

fn describe(wish: &DesiredRoute) -> String {
    let mut out = wish.destination.map_or(String::new(), |d| d.to_string());
    let mut say = |word: &str, text: Option<String>| {
        if let Some(text) = text {
            out.push_str(&format!(" {word} {text}"));
        }
    };
    say("type", wish.kind.map(|k| k.as_str().to_owned()));
    say("via", wish.via.flatten().map(|v| v.to_string()));
    say("dev", wish.dev.as_ref().map(ToString::to_string));
    say("weight", wish.weight.map(|w| w.to_string()));
    say("metric", wish.metric.map(|m| m.to_string()));
    say("table", wish.table.map(|t| t.to_string()));
    say("src", wish.source.map(|s| s.to_string()));
    say("mtu", wish.mtu.map(|m| m.to_string()));
    out
}
