//! `berth show`, against what `ip` says.

use serde_json::{Value, json};

use crate::ground::Ground;

fn interface<'a>(state: &'a Value, name: &str) -> &'a Value {
    let all = state["interfaces"].as_array().unwrap();
    all.iter().find(|link| link["name"] == name).unwrap_or_else(|| panic!("no {name} in {state:#}"))
}

#[test]
fn every_link_address_and_route_is_there() {
    let (ground, _far) = Ground::with_cards(2);
    ground.ip("link set eth1 alias uplink");
    ground.ip("link property add dev eth1 altname enp9s0");
    ground.ip("addr add 10.0.0.1/24 dev eth0");
    ground.ip("addr add 10.0.0.2/24 dev eth0");
    ground.ip("addr add fd00::1/64 dev eth0 nodad");
    ground.ip("route add 10.9.0.0/16 via 10.0.0.254 metric 7 table 1000");
    ground.ip("route add default nexthop via 10.0.0.253 weight 3 nexthop via 10.0.0.254");
    ground.ip("rule add from 10.0.0.0/24 lookup 1000 priority 100");
    let state = ground.show();
    let eth0 = interface(&state, "eth0");
    let ips: Vec<&Value> = eth0["ipv4"]["address"].as_array().unwrap().iter().map(|a| &a["ip"]).collect();
    assert_eq!(ips, ["10.0.0.1", "10.0.0.2"]);
    assert_eq!(eth0["ipv6"]["address"][0]["ip"], "fd00::1");
    let eth1 = interface(&state, "eth1");
    assert_eq!((&eth1["description"], &eth1["alt-names"]), (&json!("uplink"), &json!([{"name": "enp9s0"}])));
    let routes = state["routes"]["config"].as_array().unwrap();
    let find = |to: &str| routes.iter().filter(|route| route["destination"] == to).collect::<Vec<_>>();
    assert_eq!(
        (&find("10.9.0.0/16")[0]["table-id"], &find("10.9.0.0/16")[0]["metric"]),
        (&json!(1000), &json!(7))
    );
    assert_eq!(find("0.0.0.0/0").len(), 2);
    assert_eq!(find("0.0.0.0/0")[0]["weight"], 3);
    assert_eq!(state["route-rules"]["config"][0]["ip-from"], "10.0.0.0/24");
    ground.shows_what_holds();
}

#[test]
fn kinds_it_does_not_know_are_shown_as_ignored_and_left_alone() {
    let ground = Ground::new();
    ground.ip("tuntap add tap0 mode tap");
    let state = ground.show();
    assert_eq!(interface(&state, "tap0")["state"], "ignore");
    let before = ground.dump();
    ground.apply("interfaces: [{name: lo, mtu: 4000}]").ok();
    ground.apply("interfaces: [{name: lo, mtu: 65536}]").ok();
    ground.is_as(&before);
}

#[test]
fn renewed_addresses_are_somebody_elses() {
    let (ground, _far) = Ground::with_cards(1);
    ground.ip("addr add 10.0.0.7/24 dev eth0 valid_lft 3600 preferred_lft 1800");
    ground.ip("addr add fd00::7/64 dev eth0 valid_lft 3600 preferred_lft 1800 nodad");
    let state = ground.show();
    let eth0 = interface(&state, "eth0");
    assert_eq!((&eth0["ipv4"]["dhcp"], &eth0["ipv6"]["autoconf"]), (&json!(true), &json!(true)));
    ground.shows_what_holds();
    // A document that gives the link a static address leaves them there.
    ground.apply("interfaces: [{name: eth0, mtu: 1400}]").ok();
    assert_eq!(ground.addresses("eth0", "inet"), ["10.0.0.7/24"]);
}

#[test]
fn only_the_interfaces_asked_for() {
    let (ground, _far) = Ground::with_cards(2);
    ground.ip("link property add dev eth1 altname enp9s0");
    ground.ip("addr add 10.0.0.1/24 dev eth0");
    ground.ip("addr add 10.1.0.1/24 dev eth1");
    ground.ip("route add 10.8.0.0/16 via 10.0.0.254");
    ground.ip("route add 10.9.0.0/16 via 10.1.0.254");
    let shown: Value =
        serde_json::from_str(&ground.berth(&["show", "enp9s0", "-o", "json"], "").ok()).unwrap();
    let names: Vec<&Value> = shown["interfaces"].as_array().unwrap().iter().map(|i| &i["name"]).collect();
    assert_eq!(names, ["eth1"]);
    assert_eq!(shown["routes"]["config"].as_array().unwrap().len(), 1);
    assert_eq!(shown["routes"]["config"][0]["destination"], "10.9.0.0/16");
    let said = ground.berth(&["show", "eth7"], "").fails_with("there is no interface eth7");
    assert!(said.contains("eth0, eth1, lo"), "{said}");
}

#[test]
fn a_namespace_that_is_not_there() {
    let ground = Ground::new();
    let mut missing = Ground::new();
    let real = std::mem::replace(&mut missing.name, "berth-no-such".to_owned());
    missing.berth(&["show"], "").fails_with("there is no network namespace berth-no-such");
    missing.name = real;
    drop(ground);
}

/// Requests per observation, whatever the number of interfaces.
#[test]
fn an_observation_costs_the_same_requests_for_one_and_for_five_hundred_links() {
    use agent::kernel::{Kernel, Live};
    use agent::netns::Namespace;

    let ground = Ground::new();
    let namespace = Namespace::Named(ground.name.clone());
    let requests = || {
        let count = || {
            let mut kernel = Live::open(&namespace).unwrap();
            let links = kernel.observe().unwrap().state.links.len();
            (links, kernel.sent())
        };
        namespace.inside(count).unwrap()
    };
    let few = requests();
    let lines: String = (0..250).map(|n| format!("link add a{n} type veth peer name b{n}\n")).collect();
    crate::ground::run(std::process::Command::new("ip").args(["-n", &ground.name, "-batch", "-"]), &lines)
        .ok();
    let many = requests();
    assert_eq!((few.0, many.0), (1, 501));
    assert_eq!(few.1, many.1);
}
