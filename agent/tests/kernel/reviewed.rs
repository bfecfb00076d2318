//! What a reviewer broke by hand: documents that the kernel understands otherwise, twins, hands of others, bridges that
//! shrink. Each is undone whole, or done as asked.

use serde_json::{Value, json};

use crate::ground::Ground;

/// One card with addresses of both families.
fn node() -> (Ground, Ground) {
    let (ground, far) = Ground::with_cards(3);
    for card in 0..2 {
        ground.ip(&format!("addr add 10.{card}.0.1/24 dev eth{card}"));
        ground.ip(&format!("addr add fd0{card}::1/64 dev eth{card} nodad"));
    }
    (ground, far)
}

/// 0 is the kernel's word for its own default there, and no way to leave a route behind.
#[test]
fn metric_0_of_an_ipv6_route_is_the_default() {
    let (ground, _far) = node();
    let document = "routes: {config: [{destination: '::/0', next-hop-interface: eth0, next-hop-address: 'fe80::1', \
                    metric: 0}]}";
    ground.apply(document).ok();
    ground.is_settled(document);
    assert_eq!(ground.routes("-6"), ["default via fe80::1 dev eth0 metric 1024 pref medium"]);
}

/// Rules that would be for every packet, or that every host has.
#[test]
fn rules_that_mean_something_else() {
    let (ground, _far) = node();
    let before = ground.dump();
    for (rule, said) in [
        (json!({"family": "ipv4", "fwmark": 0, "route-table": 100}), "route-rules.config[0].fwmark"),
        (
            json!({"family": "ipv4", "suppress-prefix-length": 4_294_967_295u32, "route-table": 100}),
            "route-rules.config[0].suppress-prefix-length",
        ),
    ] {
        ground.apply(&json!({"route-rules": {"config": [rule]}}).to_string()).fails_with(said);
    }
    for (family, table, priority) in [("ipv4", 254, 32766), ("ipv4", 255, 0), ("ipv4", 253, 32767)] {
        let rule = json!({"family": family, "route-table": table, "priority": priority});
        let said = ground.apply(&json!({"route-rules": {"config": [rule]}}).to_string()).ok();
        assert_eq!(said, "nothing to do\n");
    }
    ground.is_as(&before);
    let masked =
        "route-rules: {config: [{family: ipv4, fwmark: 0, fwmask: 255, route-table: 100, priority: 500}]}";
    ground.apply(masked).ok();
    ground.is_settled(masked);
    // A rule that somebody made just like one of the kernel's is shown, and goes when asked.
    ground.ip("rule add priority 32766 table 254 protocol static");
    ground.shows_what_holds();
}

#[test]
fn a_percent_sign_is_no_name() {
    let (ground, _far) = node();
    let before = ground.dump();
    ground
        .apply("interfaces: [{name: 'br%d', type: linux-bridge, state: up}]")
        .fails_with("can't contain '%'");
    ground.is_as(&before);
}

/// Routes of one destination and metric that are several, by different hands: they stay several.
#[test]
fn twins_stay_twins() {
    let (ground, _far) = node();
    ground.ip("route add default via 10.0.0.254 proto static metric 1024");
    ground.ip("route append default via 10.1.0.254 proto dhcp metric 1024");
    ground.ip("route add 10.9.0.0/16 via 10.0.0.254");
    ground.ip("route append 10.9.0.0/16 via 10.1.0.254");
    ground.ip("route add 10.8.0.0/16 via 10.0.0.254 proto static");
    ground.ip("route append 10.8.0.0/16 via 10.1.0.254 proto bgp");
    ground.ip("-6 route add fd08::/32 via fd00::fe");
    ground.ip("-6 route append fd08::/32 dev eth1");
    let before = ground.dump();
    ground.shows_what_holds();
    ground.is_as(&before);
    // Asked for another way, only what was written goes.
    let document = "routes: {config: [{destination: 10.8.0.0/16, next-hop-interface: eth0, next-hop-address: 10.0.0.9}]}";
    ground.apply(document).ok();
    ground.is_settled(document);
    let there = ground.routes("-4");
    assert!(there.contains(&"10.8.0.0/16 via 10.1.0.254 dev eth1 proto bgp".to_owned()), "{there:?}");
    assert!(there.contains(&"10.8.0.0/16 via 10.0.0.9 dev eth0".to_owned()), "{there:?}");
    assert!(!there.contains(&"10.8.0.0/16 via 10.0.0.254 dev eth0".to_owned()), "{there:?}");
}

/// A bridge takes the MTU of its smallest port, unless it is told otherwise.
#[test]
fn a_bridge_with_a_smaller_port() {
    let (ground, _far) = node();
    ground.ip("link set eth2 mtu 1300");
    let document =
        "interfaces: [{name: br0, type: linux-bridge, state: up, mtu: 1500, bridge: {port: [{name: eth2}]}}]";
    ground.apply(document).ok();
    ground.is_settled(document);
    ground.ip("link add br1 type bridge");
    ground.ip("link set br1 up");
    ground.apply("interfaces: [{name: br0, type: linux-bridge, state: absent}]").ok();
    ground
        .apply("interfaces: [{name: br1, type: linux-bridge, state: up, bridge: {port: [{name: eth2}]}}]")
        .ok();
    assert_eq!(ground.json("link show dev br1")[0]["mtu"], 1500, "what wasn't named stays");
}

/// Below 1280 there is no IPv6; said together it is one change.
#[test]
fn a_small_mtu_without_ipv6() {
    let (ground, _far) = node();
    let document = "interfaces: [{name: eth2, mtu: 1000, ipv6: {enabled: false}}]";
    ground.apply(document).ok();
    ground.is_settled(document);
}

/// A link that can only be what is asked by being made anew comes without the old one's own link-local address.
#[test]
fn a_macvlan_changes_its_mode() {
    let (ground, _far) = node();
    ground.ip("link add link eth2 name mv0 type macvlan mode bridge");
    ground.ip("link set mv0 up");
    let shown =
        || ground.show()["interfaces"].as_array().unwrap().iter().find(|l| l["name"] == "mv0").cloned();
    let has_link_local =
        |link: Option<Value>| link.unwrap()["ipv6"]["address"].as_array().is_some_and(|l| !l.is_empty());
    ground.wait_until("mv0 has a link-local address", || has_link_local(shown()));
    let document =
        "interfaces: [{name: mv0, type: mac-vlan, state: up, mac-vlan: {base-iface: eth2, mode: private}}]";
    ground.apply(document).ok();
    assert_eq!(ground.json("link show dev mv0")[0]["linkinfo"]["info_data"]["mode"], "private");
}

/// A lease is its client's to bring back: added by another to a link that is down it would never get its subnet's route.
#[test]
fn a_lease_is_not_added_to_a_link_that_is_down() {
    let (ground, _far) = node();
    ground.ip("addr add fd00:8::7/64 dev eth0 valid_lft 3600 preferred_lft 1800 nodad");
    let plan = ground.berth(&["plan", "-f", "-"], "interfaces: [{name: eth0, state: down}]").ok();
    assert!(plan.contains("also lost: address fd00:8::7/64 of eth0"), "{plan}");
    assert_eq!(plan.matches("fd00:8::7").count(), 1, "{plan}");
}

#[test]
fn thousands_of_addresses_and_no_endless_wait() {
    let (ground, _far) = node();
    let list: Vec<Value> = (0..1000)
        .map(|i| json!({"ip": format!("10.{}.{}.1", 100 + i / 250, i % 250), "prefix-length": 24}))
        .collect();
    let document =
        json!({"interfaces": [{"name": "eth2", "ipv4": {"enabled": true, "address": list}}]}).to_string();
    ground.apply(&document).ok();
    ground.is_settled(&document);
    let said = ground.berth(&["apply", "-f", "-", "--timeout", "18446744073709551615"], &document);
    assert_eq!(said.code, 2, "{said:?}");
}
