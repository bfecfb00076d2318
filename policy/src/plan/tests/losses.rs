//! What goes without a step that says so, and what is not to be called lost.

use super::{applied, desired, observed};
use crate::plan::{Plan, plan};
use crate::state::Observed;

const HOST: &str = "
interfaces:
- {name: eth0, type: ethernet, state: up,
   ipv4: {enabled: true, address: [{ip: 10.0.0.5, prefix-length: 24}, {ip: 10.0.0.6, prefix-length: 24}]},
   ipv6: {enabled: true, address: [{ip: 2001:db8::5, prefix-length: 64}, {ip: 'fe80::5', prefix-length: 64}]}}
- {name: eth1, type: ethernet, state: up,
   ipv4: {enabled: true, address: [{ip: 10.1.0.5, prefix-length: 24}]},
   ipv6: {enabled: true, address: [{ip: 'fe80::6', prefix-length: 64}]}}
- {name: d0, type: dummy, state: up, ipv4: {enabled: true, address: [{ip: 10.2.0.5, prefix-length: 24}]}}
routes:
  config:
  - {destination: 0.0.0.0/0, next-hop-interface: eth0, next-hop-address: 10.0.0.1}
  - {destination: 198.51.100.0/24, next-hop-interface: eth0, next-hop-address: 10.0.0.1, source: 10.0.0.6}
  - {destination: 203.0.113.0/24, next-hop-interface: d0}
  - {destination: '2001:db8:1::/48', next-hop-interface: eth0, next-hop-address: 'fe80::1'}
  - {destination: '2001:db8:1::/48', next-hop-interface: eth1, next-hop-address: 'fe80::1'}
";

fn of(host: &Observed, document: &str) -> Plan {
    plan(host, &desired(document)).unwrap_or_else(|e| panic!("{e}"))
}

fn lost(document: &str) -> Vec<String> {
    of(&observed(HOST), document).losses.iter().map(ToString::to_string).collect()
}

#[test]
fn a_link_that_goes_down_loses_its_routes_and_ways() {
    assert_eq!(
        lost("interfaces: [{name: eth0, state: down}]"),
        [
            "route default via 10.0.0.1 dev eth0",
            "route 198.51.100.0/24 via 10.0.0.1 dev eth0 src 10.0.0.6",
            // The other way of it stays.
            "route 2001:db8:1::/48 via fe80::1 dev eth0",
            "no ipv4 default route is left",
        ]
    );
}

/// Its other end is elsewhere, so no revert can make it again: said beforehand, and left out on the way back.
#[test]
fn a_veth_whose_other_end_is_elsewhere() {
    let before = observed(
        "
interfaces:
- {name: eth0, type: ethernet, state: up, ipv4: {enabled: true, address: [{ip: 10.0.0.5, prefix-length: 24}]}}
- {name: v0, type: veth, state: up, ipv4: {enabled: true, address: [{ip: 10.1.0.5, prefix-length: 24}]}}
- {name: mv0, type: mac-vlan, state: up, mac-vlan: {base-iface: v0, mode: bridge}}
routes: {config: [{destination: 198.51.100.0/24, next-hop-interface: v0, next-hop-address: 10.1.0.1}]}
",
    );
    let said = |plan: &Plan| plan.losses.iter().map(ToString::to_string).collect::<Vec<_>>();
    let plan = of(&before, "interfaces: [{name: v0, type: veth, state: absent}, {name: eth0, mtu: 1400}]");
    let lost = "v0 can't be made again: its other end is in another network namespace";
    assert!(said(&plan).contains(&lost.to_owned()), "{plan}");
    let back = plan.revert(&before);
    let steps: Vec<String> = back.steps.iter().map(ToString::to_string).collect();
    assert!(steps.iter().all(|step| step.starts_with("set mtu eth0")), "{back}");
    assert!(said(&back).contains(&lost.to_owned()), "{back}");
    // What sat on it can't be there without it.
    assert!(
        said(&back).iter().any(|loss| loss == "mv0 can't be made again: what it sits on is gone"),
        "{back}"
    );
}

#[test]
fn a_family_that_is_switched_off_loses_addresses_and_routes() {
    assert_eq!(
        lost("interfaces: [{name: eth0, ipv6: {enabled: false}}]"),
        // The link-local one is the kernel's own.
        ["address 2001:db8::5/64 of eth0", "route 2001:db8:1::/48 via fe80::1 dev eth0"]
    );
    assert_eq!(
        // Its addresses go by steps.
        lost("interfaces: [{name: eth0, ipv4: {enabled: false}}]"),
        [
            "route default via 10.0.0.1 dev eth0",
            "route 198.51.100.0/24 via 10.0.0.1 dev eth0 src 10.0.0.6",
            "no ipv4 default route is left",
        ]
    );
}

#[test]
fn a_link_that_is_removed_loses_all_it_has() {
    assert_eq!(
        lost("interfaces: [{name: d0, state: absent}]"),
        ["address 10.2.0.5/24 of d0", "route 203.0.113.0/24 dev d0"]
    );
}

#[test]
fn an_address_that_moves_is_not_lost() {
    let document = "
interfaces:
- {name: d0, state: absent}
- {name: eth1, ipv4: {enabled: true, address: [{ip: 10.1.0.5, prefix-length: 24}, {ip: 10.2.0.5, prefix-length: 24}]}}
";
    assert_eq!(lost(document), ["route 203.0.113.0/24 dev d0"]);
}

#[test]
fn a_port_of_a_bridge_without_addresses_loses_its_routes() {
    let document = "interfaces: [{name: br0, type: linux-bridge, bridge: {port: [{name: eth0}]}}]";
    let found = lost(document);
    assert!(found.contains(&"route default via 10.0.0.1 dev eth0".into()), "{found:?}");
    assert_eq!(found.last().map(String::as_str), Some("no ipv4 default route is left"));
}

#[test]
fn what_a_vrf_takes_and_the_plan_puts_back_is_not_lost() {
    assert_eq!(
        lost("interfaces: [{name: red, type: vrf, vrf: {route-table-id: 9, port: [eth0]}}]"),
        <[&str; 0]>::default()
    );
}

#[test]
fn a_route_goes_with_its_source() {
    assert_eq!(
        lost("interfaces: [{name: eth0, ipv4: {address: [{ip: 10.0.0.5, prefix-length: 24}]}}]"),
        ["route 198.51.100.0/24 via 10.0.0.1 dev eth0 src 10.0.0.6"]
    );
}

#[test]
fn what_a_step_takes_away_is_not_lost_but_the_last_default_route_is_said() {
    let absent = "routes: {config: [{state: absent, destination: 0.0.0.0/0}]}";
    assert_eq!(lost(absent), ["no ipv4 default route is left"]);
    let mut host = observed(HOST);
    let mut second = host.routes[0].clone();
    second.metric = 500;
    host.routes.push(second);
    let one = "routes: {config: [{state: absent, destination: 0.0.0.0/0, metric: 500}]}";
    assert_eq!(of(&host, one).losses, []);
}

#[test]
fn a_default_route_of_another_table_is_none_of_the_hosts() {
    let mut host = observed(HOST);
    let mut other = host.routes[0].clone();
    other.table = 100;
    host.routes.push(other);
    let down = of(&host, "interfaces: [{name: eth0, state: down}]");
    assert_eq!(down.losses.last().map(ToString::to_string).as_deref(), Some("no ipv4 default route is left"));
}

#[test]
fn a_long_loss_goes_on_below_itself() {
    let mut host = observed(HOST);
    for i in 0..6 {
        let mut hop = host.routes[0].next_hops[0].clone();
        hop.via = format!("10.0.0.10{i}").parse().ok();
        host.routes[0].next_hops.push(hop);
    }
    let text = of(&host, "interfaces: [{name: eth0, state: down}]").to_string();
    assert!(text.lines().all(|line| line.chars().count() <= 100), "{text}");
    assert!(text.contains("\n           via ") || text.contains("\n           + "), "{text}");
}

#[test]
fn the_way_back_says_what_it_takes_too() {
    let host = observed(HOST);
    let document = "
interfaces: [{name: d1, type: dummy, state: up, ipv4: {enabled: true, address: [{ip: 10.3.0.1, prefix-length: 24}]}}]
";
    let plan = of(&host, document);
    assert_eq!(plan.losses, []);
    let back: Vec<String> = plan.revert(&host).losses.iter().map(ToString::to_string).collect();
    assert_eq!(back, ["address 10.3.0.1/24 of d1"]);
    assert_eq!(applied(&applied(&host, &plan), &plan.revert(&host)).routes, host.routes);
}
