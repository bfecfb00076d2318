//! Undone means as it was, also in what documents have no word for.

use crate::dump::assert_same;
use crate::ground::Ground;

/// Fails at its very end, with a resolver that can't be replaced.
const FAILS: &str = "dns-resolver: {config: {server: [10.0.0.53]}}\n";

#[track_caller]
fn fails_and_changes_nothing(ground: &Ground, document: &str) {
    if !ground.resolv_conf().exists() {
        ground.break_resolver();
    }
    let before = ground.dump();
    let said = ground.apply(&format!("{document}{FAILS}")).fails_with("the host is as it was before");
    let file = ground.resolv_conf().display().to_string();
    assert!(said.contains("(set dns") && said.contains(&file), "{said}");
    ground.await_link_locals(&before);
    assert_same(&before, &ground.dump(), "after a failing last step");
}

#[test]
fn addresses_with_scope_label_peer_and_flags() {
    let (ground, _far) = Ground::with_cards(1);
    ground.ip("addr add 10.0.0.1/24 dev eth0 label eth0:one broadcast 10.0.0.99");
    ground.ip("addr add 10.1.0.1/24 dev eth0 noprefixroute");
    ground.ip("addr add 10.2.0.1 peer 10.2.0.2/32 dev eth0");
    ground.ip("addr add 10.3.0.1/32 dev eth0 scope host");
    ground.ip("addr add 169.254.20.10/32 dev eth0 scope global");
    ground.ip("addr add fd00::1/64 dev eth0 nodad noprefixroute");
    fails_and_changes_nothing(
        &ground,
        "interfaces: [{name: eth0, ipv4: {enabled: true, address: [{ip: 10.9.0.1, prefix-length: 24}]}, \
         ipv6: {enabled: true, address: [{ip: 'fd09::1', prefix-length: 64}]}}]\n",
    );
}

#[test]
fn routes_with_metrics_and_a_type_of_service() {
    let (ground, _far) = Ground::with_cards(1);
    ground.ip("addr add 10.0.0.1/24 dev eth0");
    ground.ip("route add 10.9.0.0/16 via 10.0.0.254 advmss 1200 mtu 1300 hoplimit 9");
    ground.ip("route add 10.8.0.0/16 via 10.0.0.254 tos 0x10");
    fails_and_changes_nothing(
        &ground,
        "routes: {config: [{destination: 10.9.0.0/16, state: absent}, {destination: 10.8.0.0/16, state: absent}]}\n",
    );
    fails_and_changes_nothing(&ground, "interfaces: [{name: eth0, state: down}]\n");
}

/// The kernel takes no route from an address whose probe is not over: it is waited for, there and back.
#[test]
fn an_ipv6_route_that_sends_from_an_address() {
    let (ground, _far) = Ground::with_cards(1);
    let document = "
interfaces: [{name: eth0, ipv6: {enabled: true, address: [{ip: 'fd00::5', prefix-length: 64}]}}]
routes: {config: [{destination: 'fd09::/32', next-hop-interface: eth0, next-hop-address: 'fd00::fe', source: 'fd00::5'}]}
";
    ground.apply(document).ok();
    ground.is_settled(document);
    fails_and_changes_nothing(&ground, "interfaces: [{name: eth0, ipv6: {enabled: false}}]\n");
    fails_and_changes_nothing(&ground, "interfaces: [{name: eth0, state: down}]\n");
}

#[test]
fn router_advertisements_heeded_although_routing() {
    let (ground, _far) = Ground::with_cards(1);
    let conf = "/proc/sys/net/ipv6/conf/eth0";
    ground.inside(&format!("echo 1 > {conf}/forwarding; echo 2 > {conf}/accept_ra")).ok();
    ground.ip("addr add fd00::7/64 dev eth0 valid_lft 3600 preferred_lft 1800 nodad");
    let before = ground.ip("-6 addr show dev eth0");
    ground.break_resolver();
    ground
        .apply(&format!("interfaces: [{{name: eth0, ipv6: {{enabled: true, autoconf: false}}}}]\n{FAILS}"))
        .fails_with("the host is as it was before");
    assert_eq!(ground.inside(&format!("cat {conf}/accept_ra")).stdout, "2\n");
    assert_eq!(ground.ip("-6 addr show dev eth0").lines().count(), before.lines().count());
}

#[test]
fn rules_that_differ_only_in_who_made_them() {
    let ground = Ground::new();
    ground.ip("rule add from 10.0.0.0/24 lookup 100 priority 1000 protocol 99");
    ground.ip("rule add from 10.0.0.0/24 lookup 100 priority 1000 protocol static");
    let absent = "route-rules: {config: [{ip-from: 10.0.0.0/24, state: absent}]}\n";
    fails_and_changes_nothing(&ground, absent);
    ground.apply(absent).ok();
    assert!(!ground.ip("rule").contains("1000:"), "{}", ground.ip("rule"));
}

/// There for good and never sent from: deprecated comes back deprecated.
#[test]
fn a_deprecated_address_stays_so() {
    let (ground, _far) = Ground::with_cards(1);
    ground.ip("addr add fd00::1/64 dev eth0 nodad");
    ground.ip("addr add fd00::2/64 dev eth0 nodad preferred_lft 0");
    assert!(ground.dump().contains("deprecated"));
    fails_and_changes_nothing(&ground, "interfaces: [{name: eth0, state: down}]\n");
}
