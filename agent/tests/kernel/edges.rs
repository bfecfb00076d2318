//! Where the kernel does something else than one would think: refused with words, or done as asked.

use crate::ground::Ground;

/// Where new links start without IPv6 it is on for those that shall have it.
#[test]
fn ipv6_where_new_links_lack_it() {
    let (ground, _far) = Ground::with_cards(1);
    ground.inside("echo 1 > /proc/sys/net/ipv6/conf/default/disable_ipv6").ok();
    let document = "
interfaces:
- {name: br0, type: linux-bridge, state: up, ipv6: {enabled: true, address: [{ip: 'fd00::1', prefix-length: 64}]},
   bridge: {port: [{name: va0}]}}
- {name: va0, type: veth, state: up, veth: {peer: vb0}}
";
    ground.apply(document).ok();
    ground.is_settled(document);
    let off = |link: &str| ground.inside(&format!("cat /proc/sys/net/ipv6/conf/{link}/disable_ipv6")).stdout;
    assert_eq!((off("br0").as_str(), off("va0").as_str(), off("vb0").as_str()), ("0\n", "1\n", "1\n"));
}

#[test]
fn ipv6_on_a_link_that_is_too_small_for_it() {
    let (ground, _far) = Ground::with_cards(1);
    ground.ip("link set eth0 mtu 1000");
    let before = ground.dump();
    let on =
        "interfaces: [{name: eth0, ipv6: {enabled: true, address: [{ip: 'fd00::1', prefix-length: 64}]}}]";
    ground.apply(on).fails_with("interfaces[0].ipv6.enabled: eth0 has an MTU of 1000, too small for IPv6");
    assert_eq!(ground.dump(), before);
    let larger = "interfaces: [{name: eth0, mtu: 1400, ipv6: {enabled: true, address: [{ip: 'fd00::1', prefix-length: 64}]}}]";
    ground.apply(larger).ok();
    ground.is_settled(larger);
}

#[test]
fn a_mac_vlan_on_a_mac_vlan() {
    let (ground, _far) = Ground::with_cards(1);
    ground.ip("link add mv0 link eth0 type macvlan mode bridge");
    let on =
        "interfaces: [{name: mv1, type: mac-vlan, state: up, mac-vlan: {base-iface: mv0, mode: bridge}}]";
    ground.apply(on).fails_with("say eth0");
}

#[test]
fn a_name_that_takes_itself_away() {
    let (ground, _far) = Ground::with_cards(1);
    ground.ip("link property add dev eth0 altname wan");
    let own = "interfaces: [{name: wan, alt-names: [{name: wan, state: absent}]}]";
    ground.apply(own).fails_with("call it eth0 to take that name away");
    let by_name = "interfaces: [{name: eth0, alt-names: [{name: wan, state: absent}]}]";
    ground.apply(by_name).ok();
    ground.is_settled(by_name);
}

/// IPv4 over an IPv6 neighbour.
#[test]
fn an_ipv4_route_over_an_ipv6_gateway() {
    let (ground, _far) = Ground::with_cards(1);
    ground.ip("addr add 10.0.0.1/24 dev eth0");
    let document = "routes: {config: [{destination: 10.9.0.0/16, next-hop-interface: eth0, next-hop-address: 'fe80::1'}]}";
    ground.apply(document).ok();
    ground.is_settled(document);
    assert_eq!(ground.routes("-4"), ["10.9.0.0/16 via inet6 fe80::1 dev eth0"]);
    ground.apply("routes: {config: [{destination: 10.9.0.0/16, state: absent}]}").ok();
    assert_eq!(ground.routes("-4"), <[&str; 0]>::default());
}

/// Routes of very many ways don't fit one datagram, neither on the way there nor on the way back.
#[test]
fn routes_of_hundreds_of_ways() {
    let (ground, _far) = Ground::with_cards(1);
    ground.ip("addr add fd00::1/64 dev eth0 nodad");
    ground.break_resolver();
    let before = ground.dump();
    let way = |route: usize, way: usize| {
        let via = format!("fd00::{:x}", way + 2);
        serde_json::json!({"destination": format!("fd01:{route:x}::/48"), "next-hop-interface": "eth0",
            "next-hop-address": via})
    };
    let ways: Vec<_> = (0..32).flat_map(|route| (0..256).map(move |at| way(route, at))).collect();
    let document = serde_json::json!({"routes": {"config": ways}, "dns-resolver": {"config": {"server": ["10.0.0.53"]}}});
    let said = ground.apply(&document.to_string()).fails_with("the host is as it was before");
    assert!(said.contains("(set dns"), "{said}");
    ground.is_as(&before);
}
