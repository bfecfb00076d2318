//! What others did while a change was under way is theirs, and is there after it is undone.

use super::{applied, desired, observed};
use crate::plan::plan;
use crate::state::{NextHop, Observed, RouteProtocol};

const HOST: &str = "
interfaces:
- {name: eth0, type: ethernet, state: up, ipv4: {enabled: true, address: [{ip: 10.0.0.5, prefix-length: 24}]},
   ipv6: {enabled: true, address: [{ip: 'fd00::5', prefix-length: 64}]}}
routes: {config: [{destination: 192.0.2.0/24, next-hop-interface: eth0, next-hop-address: 10.0.0.1}]}
route-rules: {config: [{ip-from: 10.9.0.0/24, route-table: 100, priority: 8}]}
";

const DOCUMENT: &str = "
routes:
  config:
  - {destination: 192.0.2.0/24, next-hop-interface: eth0, next-hop-address: 10.0.0.2}
  - {destination: 198.51.100.0/24, next-hop-interface: eth0, next-hop-address: 10.0.0.1}
  - {destination: 'fd01::/32', next-hop-interface: eth0, next-hop-address: 'fd00::1'}
route-rules: {config: [{ip-from: 10.0.0.0/24, route-table: 100, priority: 7, fwmark: 5, fwmask: 4294967295}]}
";

fn hop(via: &str) -> NextHop {
    let via = Some(via.parse().expect("an address"));
    NextHop { via, dev: crate::state::IfName::new("eth0").expect("a name"), weight: 1, onlink: false }
}

/// The same destination with another way, or as one more of it.
fn add(state: &mut Observed, like: &str, via: &str, metric: Option<u32>) {
    let found = state.routes.iter().find(|r| r.destination.to_string() == like);
    let mut route = found.unwrap_or_else(|| panic!("no route to {like}")).clone();
    (route.next_hops, route.protocol) = (vec![hop(via)], RouteProtocol::STATIC);
    route.metric = metric.unwrap_or(route.metric);
    state.routes.push(route);
}

#[test]
fn rules_and_routes_beside_those_of_a_plan_stay() {
    let before = observed(HOST);
    let plan = plan(&before, &desired(DOCUMENT)).unwrap_or_else(|e| panic!("{e}"));
    let mut now = applied(&before, &plan);
    // The kernel doesn't say that a mark counts with all its bits.
    now.rules.iter_mut().for_each(|rule| rule.fwmask = None);
    let mut theirs = now.rules.iter().find(|r| r.priority == 7).expect("the plan's").clone();
    theirs.from = "10.7.0.0/24".parse().ok();
    now.rules.push(theirs.clone());
    // Another metric, a twin of what is new, a twin of what was changed.
    add(&mut now, "198.51.100.0/24", "10.0.0.7", Some(50));
    add(&mut now, "198.51.100.0/24", "10.0.0.8", None);
    add(&mut now, "192.0.2.0/24", "10.0.0.9", None);
    // IPv6 makes one route of it.
    let shared =
        now.routes.iter_mut().find(|r| r.destination.to_string() == "fd01::/32").expect("the plan's");
    shared.next_hops.push(hop("fd00::9"));
    let after = applied(&now, &plan.revert_from(&now, &before));
    let mut routes: Vec<String> = after.routes.iter().map(ToString::to_string).collect();
    routes.sort();
    assert_eq!(
        routes,
        [
            "192.0.2.0/24 via 10.0.0.1 dev eth0",
            "192.0.2.0/24 via 10.0.0.9 dev eth0",
            "198.51.100.0/24 via 10.0.0.7 dev eth0 metric 50",
            "198.51.100.0/24 via 10.0.0.8 dev eth0",
            "fd01::/32 via fd00::9 dev eth0",
        ]
    );
    let rules: Vec<String> = after.rules.iter().map(ToString::to_string).collect();
    assert_eq!(rules, [before.rules[0].to_string(), theirs.to_string()]);
}
