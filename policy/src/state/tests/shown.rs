//! Observed states: nothing vanishes, and what is printed reads as nmstate's.

use super::{observed, yaml};
use crate::plan::plan;
use crate::state::{Desired, Dns, LinkKind, Observed, RouteProtocol};
use serde_json::Value;

#[test]
fn kinds_and_fields_beyond_the_model_are_kept_and_shown_again() {
    let text = "
interfaces:
- {name: wg0, type: wireguard, state: up, wireguard: {port: 51820}}
- {name: eth0, type: ethernet, state: up, ethtool: {feature: {rx: true}}, lldp: {enabled: false},
   ethernet: {speed: 1000}, ipv6: {enabled: true, addr-gen-mode: eui64}}
ovs-db: {external_ids: {a: b}}
";
    let state = observed(text);
    let wg0 = state.link("wg0").expect("is there");
    assert!(wg0.ignored);
    assert_eq!(wg0.kind, LinkKind::Other("wireguard".into()));
    let shown = state.to_value();
    let link = |i: usize| shown["interfaces"][i].clone();
    assert_eq!((link(1)["name"].as_str(), link(1)["state"].as_str()), (Some("wg0"), Some("ignore")));
    assert_eq!(link(1)["wireguard"]["port"], 51820);
    assert_eq!(link(0)["ethtool"]["feature"]["rx"], true);
    assert_eq!(link(0)["ethernet"]["speed"], 1000);
    assert_eq!(link(0)["ipv6"]["addr-gen-mode"], "eui64");
    assert_eq!(shown["ovs-db"]["external_ids"]["a"], "b");
    assert_eq!(Observed::from_value(&shown).expect("reads").to_value(), shown);
}

#[test]
fn name_type_and_state_come_first() {
    let state = observed("interfaces: [{mtu: 1500, state: up, type: dummy, name: d0}]").to_value();
    let keys: Vec<&String> = state["interfaces"][0].as_object().expect("a mapping").keys().take(3).collect();
    assert_eq!(keys, ["name", "type", "state"]);
}

#[test]
fn a_port_that_was_left_out_is_still_a_port() {
    let state = observed("interfaces: [{name: br0, type: linux-bridge, bridge: {port: [{name: gone0}]}}]");
    let port = state.link("gone0").expect("is there");
    assert!(port.ignored);
    assert_eq!(port.controller.as_ref().map(|c| c.as_str()), Some("br0"));
}

#[test]
fn leases_show_as_dhcp_and_autoconf_and_are_not_asked_for() {
    let state = observed(
        "
interfaces:
- {name: e, type: ethernet, state: up,
   ipv4: {enabled: true, address: [{ip: 10.0.0.1, prefix-length: 24, valid-life-time: 60sec, preferred-life-time: 30sec}]},
   ipv6: {enabled: true, address: [{ip: '2001:db8::1', prefix-length: 64, valid-life-time: 60sec}]}}
",
    );
    let shown = state.to_value();
    assert_eq!(shown["interfaces"][0]["ipv4"]["dhcp"], true);
    assert_eq!(shown["interfaces"][0]["ipv6"]["autoconf"], true);
    let asked = Desired::from_value(&shown).expect("reads");
    assert_eq!(asked.links[0].ipv4.as_ref().and_then(|ip| ip.addresses.clone()), Some(vec![]));
}

#[test]
fn a_resolver_that_only_runs_is_not_a_configured_one() {
    let state = observed("dns-resolver: {running: {server: [192.0.2.1]}, config: {}}");
    assert_eq!(state.dns, Dns::default());
    assert_eq!(state.running_dns.servers, ["192.0.2.1"]);
    let shown = state.to_value();
    assert_eq!(shown["dns-resolver"], yaml("{running: {server: [192.0.2.1]}, config: {}}"));
    let asked = Desired::from_value(&shown).expect("reads");
    assert!(plan(&state, &asked).expect("a plan").is_empty());
    // What runs may be configured as well, and what is configured purged.
    let kept = Desired::from_value(&yaml("dns-resolver: {config: {server: [192.0.2.1]}}")).expect("reads");
    assert_eq!(plan(&state, &kept).expect("a plan").len(), 1);
    let configured = observed("dns-resolver: {running: {}, config: {server: [192.0.2.1]}}");
    assert_eq!(plan(&configured, &asked).expect("a plan").len(), 1);
}

#[test]
fn routes_with_one_key_are_one_route_and_config_tells_who_wrote_it() {
    let state = observed(
        "
routes:
  running:
  - {destination: 192.0.2.0/24, next-hop-interface: a, next-hop-address: 10.0.0.1, metric: 5}
  - {destination: 192.0.2.0/24, next-hop-interface: b, next-hop-address: 10.1.0.1, metric: 5, weight: 2}
  - {destination: 0.0.0.0/0, next-hop-interface: a, next-hop-address: 10.0.0.1}
  config:
  - {destination: 192.0.2.0/24, next-hop-interface: a, next-hop-address: 10.0.0.1, metric: 5}
",
    );
    assert_eq!(state.routes.len(), 2);
    let ecmp = state.routes.iter().find(|r| r.metric == 5).expect("is there");
    assert_eq!(ecmp.next_hops.len(), 2);
    assert_eq!(ecmp.protocol, RouteProtocol::STATIC);
    let default = state.routes.iter().find(|r| r.metric == 0).expect("is there");
    assert!(!default.protocol.is_config());
}

#[test]
fn a_wrong_value_is_an_error_with_its_path() {
    let wrong = yaml(
        "interfaces: [{name: e, mtu: many}, {name: f, ipv4: {address: [{ip: here, prefix-length: 24}]}}]",
    );
    let text = Observed::from_value(&wrong).expect_err("is wrong").to_string();
    assert_eq!(
        text.lines().collect::<Vec<_>>(),
        [
            "interfaces[0].mtu: expected a number, found \"many\"",
            "interfaces[1].ipv4.address[0].ip: expected an IP address, found \"here\"",
        ]
    );
    assert!(Observed::from_value(&Value::Null).is_ok_and(|o| o == Observed::default()));
}
