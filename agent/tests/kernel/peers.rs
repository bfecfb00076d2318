//! What the peer gets wrong in its kernel-only mode, right; the fifth is in `no_gap`.

use std::net::{TcpListener, TcpStream};
use std::time::Duration;

use agent::netns::Namespace;
use serde_json::{Value, json};

use crate::ground::Ground;

/// 1: a bad route in the document; the peer leaves both addresses.
#[test]
fn a_step_that_fails_leaves_nothing_behind() {
    let (ground, _far) = Ground::with_cards(2);
    ground.ip("link add vx1 type vxlan id 7 dstport 4789");
    let before = ground.dump();
    let document = "
interfaces:
- {name: eth0, mtu: 1400, ipv4: {enabled: true, address: [{ip: 10.0.0.1, prefix-length: 24}]}}
- {name: eth1, ipv4: {enabled: true, address: [{ip: 10.1.0.1, prefix-length: 24}]}}
- {name: vx2, type: vxlan, state: up, vxlan: {id: 7, destination-port: 4789}}
routes: {config: [{destination: 10.9.0.0/16, next-hop-address: 10.0.0.254, next-hop-interface: eth0}]}
";
    let said = ground.apply(document).fails_with("the host is as it was before");
    // 8: the step, the interface, the errno and the kernel's own words.
    for part in ["create link vx2", "EEXIST", "VNI already exists"] {
        assert!(said.contains(part), "{part} is not in {said}");
    }
    ground.is_as(&before);
}

const NODE: &str = "
interfaces:
- name: br0
  type: linux-bridge
  state: up
  ipv4: {enabled: true, address: [{ip: 10.0.0.1, prefix-length: 24}, {ip: 10.0.0.2, prefix-length: 24}]}
  bridge: {options: {stp: {enabled: false}}, port: [{name: eth0}]}
- {name: eth0, ipv4: {enabled: false}}
routes: {config: [{destination: 0.0.0.0/0, next-hop-address: 10.0.0.254, next-hop-interface: br0}]}
";

fn node() -> (Ground, Ground) {
    let (ground, far) = Ground::with_cards(1);
    ground.ip("addr add 10.0.0.1/24 dev eth0");
    ground.ip("addr add 10.0.0.2/24 dev eth0");
    ground.ip("route add default via 10.0.0.254 proto static");
    (ground, far)
}

/// Whether a connection from one to the other comes about.
fn reaches(from: &Ground, to: &Ground, address: &str) -> bool {
    let namespace = |ground: &Ground| Namespace::Named(ground.name.clone());
    let listener = namespace(to).inside(|| TcpListener::bind(address).unwrap()).unwrap();
    let patience = Duration::from_secs(10);
    let connected =
        namespace(from).inside(|| TcpStream::connect_timeout(&address.parse().unwrap(), patience)).unwrap();
    drop(listener);
    connected.is_ok()
}

/// 2: a bridge over the NIC that holds the node's address and default route.
#[test]
fn a_bridge_over_the_nodes_own_nic_takes_address_and_route_along() {
    let (ground, far) = node();
    far.ip("addr add 10.0.0.254/24 dev far0");
    ground.apply(NODE).ok();
    assert_eq!(ground.addresses("br0", "inet"), ["10.0.0.1/24", "10.0.0.2/24"]);
    assert_eq!(ground.addresses("eth0", "inet"), [""; 0]);
    assert_eq!(ground.routes("-4"), ["default via 10.0.0.254 dev br0"]);
    assert!(reaches(&far, &ground, "10.0.0.1:7777"));
    ground.is_settled(NODE);
}

/// 2, when its last step fails: address, route and order are back.
#[test]
fn the_same_with_a_last_step_that_fails_is_all_undone() {
    let (ground, _far) = node();
    ground.break_resolver();
    let before = ground.dump();
    let document = format!("{NODE}dns-resolver: {{config: {{server: [10.0.0.53]}}}}\n");
    let said = ground.apply(&document).fails_with("the host is as it was before");
    assert!(said.contains("set dns"), "{said}");
    assert_eq!(ground.addresses("eth0", "inet"), ["10.0.0.1/24", "10.0.0.2/24"]);
    ground.is_as(&before);
}

/// 3: a global IPv6 address in the document, and the link-local one stays.
#[test]
fn link_local_addresses_stay() {
    let (ground, _far) = Ground::with_cards(1);
    let local = |ground: &Ground| {
        let all = ground.json("-6 addr show dev eth0");
        let list = all[0]["addr_info"].as_array().unwrap();
        list.iter().find(|a| a["scope"] == "link").map(|a| a["local"].clone()).unwrap_or_default()
    };
    let before = local(&ground);
    assert!(before.is_string(), "{before}");
    let document =
        "interfaces: [{name: eth0, ipv6: {enabled: true, address: [{ip: 'fd00::1', prefix-length: 64}]}}]";
    ground.apply(document).ok();
    assert_eq!(local(&ground), before);
    assert_eq!(ground.addresses("eth0", "inet6"), ["fd00::1/64"]);
    // 4: show into apply.
    ground.is_settled(document);
}

/// 6: rules, tables above 255, several next hops, types and metrics.
#[test]
fn rules_tables_and_all_sorts_of_routes() {
    let (ground, _far) = Ground::with_cards(2);
    let document = "
interfaces:
- {name: eth0, ipv4: {enabled: true, address: [{ip: 10.0.0.1, prefix-length: 24}]},
   ipv6: {enabled: true, address: [{ip: 'fd00::1', prefix-length: 64}]}}
- {name: eth1, ipv4: {enabled: true, address: [{ip: 10.1.0.1, prefix-length: 24}]},
   ipv6: {enabled: true, address: [{ip: 'fd01::1', prefix-length: 64}]}}
routes:
  config:
  - {destination: 10.8.0.0/16, next-hop-address: 10.0.0.254, next-hop-interface: eth0, table-id: 100000, metric: 5, weight: 2}
  - {destination: 10.8.0.0/16, next-hop-address: 10.1.0.254, next-hop-interface: eth1, table-id: 100000, metric: 5, weight: 1}
  - {destination: 'fd08::/32', next-hop-address: 'fd00::fe', next-hop-interface: eth0, weight: 1}
  - {destination: 'fd08::/32', next-hop-address: 'fd01::fe', next-hop-interface: eth1, weight: 1}
  - {destination: 10.6.0.0/16, route-type: blackhole}
  - {destination: 10.5.0.0/16, route-type: unreachable, table-id: 300}
  - {destination: 'fd05::/32', route-type: prohibit}
  - {destination: 10.4.0.0/16, next-hop-address: 10.0.0.254, next-hop-interface: eth0, source: 10.0.0.1, mtu: 1300}
route-rules:
  config:
  - {ip-from: 10.0.0.0/24, route-table: 100000, priority: 100}
  - {ip-to: 'fd08::/32', route-table: 300, priority: 200, fwmark: 5, fwmask: 255}
  - {family: ipv4, iif: eth1, action: prohibit, priority: 300}
  - {family: ipv4, route-table: 254, priority: 400, suppress-prefix-length: 0}
";
    ground.apply(document).ok();
    let big = ground.json("route show table 100000");
    assert_eq!(big[0]["nexthops"].as_array().unwrap().len(), 2, "{big}");
    assert_eq!(big[0]["metric"], 5);
    let routes = ground.routes("-4").join("\n");
    assert!(routes.contains("blackhole 10.6.0.0/16"), "{routes}");
    assert!(routes.contains("10.4.0.0/16 via 10.0.0.254 dev eth0 src 10.0.0.1 mtu 1300"), "{routes}");
    assert!(ground.ip("route show table 300").contains("unreachable 10.5.0.0/16"));
    let six = ground.ip("-6 route show table main");
    assert!(six.contains("prohibit fd05::/32") && six.contains("nexthop via fd01::fe dev eth1"), "{six}");
    let rules = ground.ip("rule");
    for part in ["from 10.0.0.0/24 lookup 100000", "from all iif eth1 prohibit", "suppress_prefixlength 0"] {
        assert!(rules.contains(part), "{part} is not in\n{rules}");
    }
    assert!(ground.ip("-6 rule").contains("from all to fd08::/32 fwmark 0x5/0xff lookup 300"));
    ground.is_settled(document);
    // And away again.
    let away = "
routes: {config: [{state: absent, table-id: 100000}, {state: absent, destination: 10.6.0.0/16}]}
route-rules: {config: [{state: absent, priority: 100}]}
";
    ground.apply(away).ok();
    assert_eq!(ground.json("route show table 100000"), Value::Array(Vec::new()));
    assert!(!ground.ip("rule").contains("100000"));
}

/// To the kernel a rule that says less is the same as a narrower one of its priority: it won't add it beside, and
/// deletes the narrower one in its place.
#[test]
fn a_wide_rule_beside_a_narrow_one() {
    let ground = Ground::new();
    let narrow = "{ip-from: 10.0.0.0/24, route-table: 100, priority: 50}";
    let wide = "{family: ipv4, route-table: 100, priority: 50}";
    ground.apply(&format!("route-rules: {{config: [{narrow}]}}")).ok();
    let both = format!("route-rules: {{config: [{narrow}, {wide}]}}");
    ground.apply(&both).ok();
    ground.is_settled(&both);
    let rules = |ground: &Ground| ground.ip("rule").lines().filter(|line| line.starts_with("50:")).count();
    assert_eq!(rules(&ground), 2);
    ground.apply("route-rules: {config: [{family: ipv4, priority: 50, state: absent}, {ip-from: 10.0.0.0/24, route-table: 100, priority: 50}]}").ok();
    assert_eq!(rules(&ground), 1);
    assert!(ground.ip("rule").contains("50:\tfrom 10.0.0.0/24 lookup 100"), "{}", ground.ip("rule"));
}

/// 7: MTU, down, and IPv6 off for good.
#[test]
fn mtu_down_and_ipv6_off() {
    let (ground, _far) = Ground::with_cards(2);
    let document = "
interfaces:
- {name: eth0, mtu: 1400, ipv6: {enabled: false}}
- {name: eth1, state: down}
";
    ground.apply(document).ok();
    assert_eq!(ground.json("link show dev eth0")[0]["mtu"], 1400);
    let flags = &ground.json("link show dev eth1")[0]["flags"];
    assert!(!flags.as_array().unwrap().contains(&json!("UP")), "{flags}");
    assert_eq!(ground.inside("cat /proc/sys/net/ipv6/conf/eth0/disable_ipv6").stdout, "1\n");
    ground.ip("link set eth0 down");
    ground.ip("link set eth0 up");
    assert_eq!(ground.ip("-6 addr show dev eth0"), "");
    ground.is_settled(document);
}

/// 9: nothing to do is found with dumps alone.
#[test]
fn nothing_to_do_sends_dumps_only() {
    use agent::checkpoint::Store;
    use agent::kernel::Live;
    use agent::netns::Identity;
    use agent::transaction::{Manner, apply};

    let (ground, _far) = Ground::with_cards(3);
    let namespace = Namespace::Named(ground.name.clone());
    let links = [0, 1, 2].map(|n| {
        let list = json!([{"ip": format!("10.{n}.0.1"), "prefix-length": 24}]);
        json!({"name": format!("eth{n}"), "mtu": 1400, "ipv4": {"enabled": true, "address": list}})
    });
    let document = json!({"interfaces": links});
    let sent = |document: &Value| {
        let work = || {
            let mut kernel = Live::open(&namespace).unwrap();
            let store = Store::lock(&ground.state_dir, Identity::here().unwrap()).unwrap();
            let manner = Manner { verify: true, patience: Duration::from_secs(5) };
            let plan = apply(&mut kernel, &store, document, manner, &mut |_| {}, &|| false).unwrap();
            (plan.len(), kernel.sent())
        };
        namespace.inside(work).unwrap()
    };
    let (steps, _) = sent(&document);
    assert_eq!(steps, 6);
    let (steps, requests) = sent(&document);
    assert_eq!(steps, 0);
    assert_eq!(requests, 6, "links, addresses, routes, rules, neighbours and proxies; there is no bridge");
}
