//! Single topics that goldens don't show: what is unmet, what a revert leaves alone, what the kernel does unasked.

use super::{applied, desired, observed};
use crate::plan::memory::{self, MemoryError};
use crate::plan::{Plan, Step, plan, verify};
use crate::state::{Address, AddressProtocol, IfName, Lifetime, Observed, RouteProtocol};

const HOST: &str = "
interfaces:
- {name: eth0, type: ethernet, state: up, mtu: 1500, max-mtu: 9000, alt-names: [{name: uplink-of-the-first-rack}],
   ipv4: {enabled: true, address: [{ip: 10.0.0.5, prefix-length: 24}, {ip: 10.0.0.6, prefix-length: 24}]},
   ipv6: {enabled: true, address: [{ip: 2001:db8::5, prefix-length: 64}, {ip: 'fe80::5', prefix-length: 64}]}}
- {name: eth1, type: ethernet, state: down}
- {name: eth0.7, type: vlan, state: up, mtu: 1500, vlan: {base-iface: eth0, id: 7},
   ipv4: {enabled: true, address: [{ip: 10.7.0.1, prefix-length: 24}]}}
routes:
  config:
  - {destination: 0.0.0.0/0, next-hop-interface: eth0, next-hop-address: 10.0.0.1, metric: 100}
  - {destination: 198.51.100.0/24, next-hop-interface: eth0, next-hop-address: 10.0.0.1, source: 10.0.0.6}
  - {destination: '::/0', next-hop-interface: eth0, next-hop-address: 'fe80::1'}
";

fn name(text: &str) -> IfName {
    IfName::new(text).expect("a name")
}

fn address(ip: &str, prefix: u8) -> Address {
    Address::new(ip.parse().expect("an address"), prefix)
}

fn steps(plan: &Plan) -> Vec<String> {
    plan.steps.iter().map(ToString::to_string).collect()
}

fn planned(document: &str) -> Vec<String> {
    steps(&plan(&observed(HOST), &desired(document)).unwrap_or_else(|e| panic!("{e}")))
}

fn refused(document: &str) -> String {
    plan(&observed(HOST), &desired(document)).expect_err("is refused").to_string()
}

#[test]
fn a_veth_is_removed_by_the_end_that_was_named() {
    let host = observed(
        "interfaces: [{name: v0, type: veth, veth: {peer: v1}}, {name: v1, type: veth, veth: {peer: v0}}]",
    );
    for end in ["v0", "v1"] {
        let asked = desired(&format!("interfaces: [{{name: {end}, state: absent}}]"));
        let plan = plan(&host, &asked).expect("a plan");
        let [Step::DeleteLink { link, .. }] = plan.steps.as_slice() else {
            panic!("{plan}");
        };
        assert_eq!(link.as_str(), end);
        assert!(applied(&host, &plan).links.is_empty());
    }
    // The way back of what was made by one end goes by that end.
    let made = desired("interfaces: [{name: v0, type: veth, veth: {peer: v1}}]");
    let bare = Observed::default();
    let back = plan(&bare, &made).expect("a plan").revert(&bare);
    let [Step::DeleteLink { link, .. }] = back.steps.as_slice() else {
        panic!("{back}");
    };
    assert_eq!(link.as_str(), "v0");
}

#[test]
fn what_is_unmet_is_named_with_what_was_wanted_and_found() {
    let unmet = verify(
        &observed(HOST),
        &desired(
            "
hostname: {config: other}
dns-resolver: {config: {server: [192.0.2.1]}}
interfaces:
- {name: eth0, mtu: 9000, description: x, mac-address: '02:00:00:00:00:01',
   ipv4: {enabled: true, address: [{ip: 10.0.0.6, prefix-length: 24}, {ip: 10.0.0.5, prefix-length: 24}]},
   ipv6: {enabled: false}}
- {name: eth1, state: up}
- {name: eth9, type: dummy}
- {name: eth0.7, state: absent}
routes:
  config:
  - {destination: 0.0.0.0/0, next-hop-interface: eth0, next-hop-address: 10.0.0.1, metric: 200}
  - {destination: 198.51.100.0/24, state: absent}
route-rules:
  config: [{ip-from: 192.0.2.0/24, route-table: 100}]
",
        ),
    );
    let text: Vec<String> = unmet.iter().map(ToString::to_string).collect();
    assert_eq!(
        text,
        [
            "interfaces[0].mtu: wanted 9000, found 1500",
            "interfaces[0].mac-address: wanted 02:00:00:00:00:01, found none",
            "interfaces[0].description: wanted x, found ",
            "interfaces[0].ipv4.address: wanted 10.0.0.6/24 10.0.0.5/24, found 10.0.0.5/24 10.0.0.6/24",
            "interfaces[0].ipv6.enabled: wanted false, found true (2001:db8::5/64 fe80::5/64)",
            "interfaces[1].state: wanted up, found down",
            "interfaces[2].name: wanted eth9, found no such interface",
            "interfaces[3].state: wanted absent, found up",
            "routes.config[0]: wanted 0.0.0.0/0 via 10.0.0.1 dev eth0 metric 200, \
             found default via 10.0.0.1 dev eth0 metric 100",
            "routes.config[1]: wanted absent, found 198.51.100.0/24 via 10.0.0.1 dev eth0 src 10.0.0.6",
            "route-rules.config[0]: wanted this rule, found none",
            "dns-resolver.config.server: wanted 192.0.2.1, found none",
            "hostname.running: wanted other, found none",
            "hostname.config: wanted other, found none",
        ]
    );
}

#[test]
fn links_that_are_not_named_are_untouched() {
    let host = observed(HOST);
    let plan = plan(&host, &desired("interfaces: [{name: eth1, type: ethernet, state: up, mtu: 1400}]"))
        .expect("can be");
    let after = applied(&host, &plan);
    for name in ["eth0", "eth0.7"] {
        assert_eq!(after.link(name), host.link(name));
    }
    assert_eq!(after.routes, host.routes);
}

#[test]
fn an_alternative_name_stands_for_its_link() {
    let document = "interfaces: [{name: uplink-of-the-first-rack, mtu: 1450}]";
    // The vlan on it shrinks with it, by the kernel's own hand.
    assert_eq!(planned(document), ["set mtu eth0 1450"]);
}

#[test]
fn a_vlan_is_never_larger_than_its_base() {
    let text = refused("interfaces: [{name: eth0.7, mtu: 9000}]");
    assert_eq!(text, "interfaces[0].mtu: 9000 is more than the 1500 of eth0, which it sits on");
    let both = "interfaces: [{name: eth0.7, mtu: 9000}, {name: eth0, mtu: 9000}]";
    assert_eq!(planned(both), ["set mtu eth0 9000", "set mtu eth0.7 9000"]);
}

#[test]
fn a_vlan_wanted_up_on_a_link_wanted_down_is_refused() {
    let text = refused("interfaces: [{name: eth0, state: down}, {name: eth0.7, state: up}]");
    assert_eq!(text, "interfaces[1].state: eth0, which it sits on, is down");
}

#[test]
fn a_vlan_is_never_larger_than_the_ports_of_a_new_bridge() {
    let host = "interfaces: [{name: eth0, type: ethernet, state: up, mtu: 1400}]";
    let wish = "interfaces: [{name: br0, type: linux-bridge, state: up, bridge: {port: [{name: eth0}]}},
        {name: br0.7, type: vlan, state: up, mtu: 1500, vlan: {base-iface: br0, id: 7}}]";
    let text = plan(&observed(host), &desired(wish)).expect_err("is refused").to_string();
    assert_eq!(text, "interfaces[1].mtu: 1500 is more than the 1400 of br0, which it sits on");
}

#[test]
fn an_orphan_that_is_wanted_is_refused() {
    let host = "interfaces: [{name: d0, type: dummy, state: up}, {name: d0.1, type: vlan, vlan: {base-iface: d0, id: 1}}]";
    let wish = "interfaces: [{name: d0, state: absent}, {name: d0.1, type: vlan, state: up}]";
    let text = plan(&observed(host), &desired(wish)).expect_err("is refused").to_string();
    assert_eq!(text, "interfaces[1].vlan.base-iface: d0, which it sits on, is to be absent");
}

#[test]
fn an_orphan_that_is_to_be_a_port_is_refused() {
    let host = "interfaces: [{name: d0, type: dummy, state: up}, {name: d0.1, type: vlan, vlan: {base-iface: d0, id: 1}}]";
    let wish = "interfaces: [{name: d0, state: absent}, {name: vrf0, type: vrf, state: up, vrf: {route-table-id: 7, port: [d0.1]}}]";
    let text = plan(&observed(host), &desired(wish)).expect_err("is refused").to_string();
    assert_eq!(
        text,
        "interfaces[1].vrf.port[0]: d0.1 goes with d0, which it sits on and which is to be absent"
    );
}

/// The key is the same, the gateway another: the old one stays until the new one can be.
#[test]
fn a_route_that_changes_with_all_addresses_is_never_away() {
    let host = "
interfaces:
- {name: eth1, type: ethernet, state: up, ipv4: {enabled: true, address: [{ip: 10.1.0.1, prefix-length: 24}]}}
routes: {config: [{destination: 192.0.2.0/24, next-hop-interface: eth1, next-hop-address: 10.1.0.101}]}";
    let wish = "
interfaces:
- {name: eth1, state: up, ipv4: {enabled: true, address: [{ip: 10.2.0.1, prefix-length: 24}, {ip: 10.1.0.1, prefix-length: 24}]}}
routes:
  config:
  - {destination: 192.0.2.0/24, next-hop-interface: eth1, state: absent}
  - {destination: 192.0.2.0/24, next-hop-interface: eth1, next-hop-address: 10.2.0.101}";
    let mut now = observed(host);
    let plan = plan(&now, &desired(wish)).unwrap_or_else(|e| panic!("{e}"));
    for step in &plan.steps {
        memory::apply(&mut now, step).unwrap_or_else(|e| panic!("{e}"));
        assert!(!now.routes.is_empty(), "none after {step}, of\n{plan}");
    }
}

#[test]
fn a_new_address_in_place_of_the_last_keeps_routes() {
    let document =
        "interfaces: [{name: eth0, ipv4: {enabled: true, address: [{ip: 10.0.0.9, prefix-length: 24}]}}]";
    assert_eq!(
        planned(document),
        [
            // As long as there is one the kernel keeps the routes.
            "add address eth0 10.0.0.9/32",
            "delete address eth0 10.0.0.6/24",
            "delete address eth0 10.0.0.5/24",
            "add address eth0 10.0.0.9/24",
            "delete address eth0 10.0.0.9/32",
        ]
    );
}

#[test]
fn without_routes_nothing_stands_in_for_an_address() {
    let document =
        "interfaces: [{name: eth0.7, ipv4: {enabled: true, address: [{ip: 10.7.0.2, prefix-length: 24}]}}]";
    assert_eq!(planned(document), ["delete address eth0.7 10.7.0.1/24", "add address eth0.7 10.7.0.2/24"]);
}

#[test]
fn what_goes_along_with_a_primary_comes_back_and_routes_stay() {
    let host = observed(
        "
interfaces:
- name: eth0
  type: ethernet
  state: up
  ipv4:
    enabled: true
    dhcp: true
    address:
    - {ip: 10.0.0.5, prefix-length: 24}
    - {ip: 10.0.0.77, prefix-length: 24, valid-life-time: 3600sec, preferred-life-time: 3600sec}
    - {ip: 10.0.0.6, prefix-length: 24}
routes: {config: [{destination: 0.0.0.0/0, next-hop-interface: eth0, next-hop-address: 10.0.0.1}]}
",
    );
    let one = desired("interfaces: [{name: eth0, ipv4: {address: [{ip: 10.0.0.6, prefix-length: 24}]}}]");
    let none = desired("interfaces: [{name: eth0, ipv4: {address: []}}]");
    for (document, expected) in [
        (
            one,
            &[
                "add address eth0 10.0.0.6/32",
                "delete address eth0 10.0.0.6/24",
                "delete address eth0 10.0.0.5/24",
                "add address eth0 10.0.0.77/24 for 3600s",
                "add address eth0 10.0.0.6/24",
                "delete address eth0 10.0.0.6/32",
            ][..],
        ),
        (
            none,
            &[
                "add address eth0 10.0.0.77/32",
                "delete address eth0 10.0.0.6/24",
                "delete address eth0 10.0.0.5/24",
                "add address eth0 10.0.0.77/24 for 3600s",
                "delete address eth0 10.0.0.77/32",
            ],
        ),
    ] {
        let plan = plan(&host, &document).unwrap_or_else(|e| panic!("{e}"));
        assert_eq!(steps(&plan), expected);
        let after = applied(&host, &plan);
        assert_eq!(verify(&after, &document), []);
        assert_eq!(after.routes, host.routes);
    }
}

#[test]
fn a_direct_route_of_a_link_left_without_addresses_is_back_at_once() {
    let host = observed(
        "
interfaces:
- {name: eth0, type: ethernet, state: up, ipv4: {enabled: true, address: [{ip: 10.0.0.5, prefix-length: 24}]}}
- {name: eth1, type: ethernet, state: up, ipv4: {enabled: true, address: [{ip: 10.1.0.5, prefix-length: 24}]}}
routes: {config: [{destination: 192.0.2.0/24, next-hop-interface: eth0}]}
",
    );
    let document =
        desired("interfaces: [{name: eth0, ipv4: {address: []}}, {name: eth1, ipv4: {address: []}}]");
    let plan = plan(&host, &document).expect("can be");
    assert_eq!(
        steps(&plan),
        [
            "delete address eth0 10.0.0.5/24",
            "add route eth0 192.0.2.0/24 dev eth0",
            "delete address eth1 10.1.0.5/24",
        ]
    );
}

#[test]
fn an_address_that_is_to_stay_alone_does_not_stand_in() {
    let host = observed(
        "
interfaces:
- {name: eth0, type: ethernet, state: up, ipv4: {enabled: true, address: [{ip: 10.0.0.5, prefix-length: 24}]}}
routes: {config: [{destination: 0.0.0.0/0, next-hop-interface: eth0, next-hop-address: 10.0.0.1}]}
",
    );
    let document = desired(
        "interfaces: [{name: eth0, ipv4: {address: [{ip: 10.0.0.6, prefix-length: 24}, {ip: 10.0.0.6, prefix-length: 32}]}}]",
    );
    let plan = plan(&host, &document).expect("can be");
    assert_eq!(
        steps(&plan),
        [
            "delete address eth0 10.0.0.5/24",
            "add address eth0 10.0.0.6/24",
            // At once, not after all addresses.
            "add route eth0 default via 10.0.0.1 dev eth0",
            "add address eth0 10.0.0.6/32",
        ]
    );
    assert_eq!(verify(&applied(&host, &plan), &document), []);
}

#[test]
fn a_route_that_sends_from_an_address_on_the_move_is_back_at_once() {
    let host = observed(&HOST.replace(
        "- {destination: '::/0'",
        "- {destination: 203.0.113.0/24, next-hop-interface: eth0.7, next-hop-address: 10.7.0.254, source: 10.0.0.5}
  - {destination: '::/0'",
    ));
    // Another order: 10.0.0.5 has to go and come again. A second link changes after it.
    let document = desired(
        "
interfaces:
- {name: eth0, ipv4: {enabled: true, address: [{ip: 10.0.0.6, prefix-length: 24}, {ip: 10.0.0.5, prefix-length: 24}]}}
- {name: eth1, state: up, ipv4: {enabled: true, address: [{ip: 10.1.0.1, prefix-length: 24}]}}
",
    );
    let plan = plan(&host, &document).expect("can be");
    assert_eq!(
        steps(&plan),
        [
            "set up eth1",
            "add address eth1 10.1.0.1/24",
            "add address eth0 10.0.0.6/32",
            "delete address eth0 10.0.0.6/24",
            "delete address eth0 10.0.0.5/24",
            "add address eth0 10.0.0.6/24",
            "add address eth0 10.0.0.5/24",
            "add route eth0.7 203.0.113.0/24 via 10.7.0.254 dev eth0.7 src 10.0.0.5",
            "delete address eth0 10.0.0.6/32",
        ]
    );
    assert_eq!(plan.losses, []);
    assert_eq!(verify(&applied(&host, &plan), &document), []);
}

#[test]
fn a_pooled_address_is_marked_and_stays_berths() {
    let document = desired(
        "interfaces: [{name: eth1, ipv4: {enabled: true, address: [{ip: 10.1.0.1, prefix-length: 24, protocol: 98}]}}]",
    );
    let host = observed(HOST);
    let after = applied(&host, &plan(&host, &document).expect("can be"));
    let marked = &after.link("eth1").expect("eth1").ipv4.addresses[0];
    assert_eq!(marked.protocol, Some(AddressProtocol::BERTH));
    assert!(!marked.is_foreign());
}

#[test]
fn an_address_with_a_foreign_mark_is_left_alone() {
    let mut host = observed(HOST);
    let eth1 = host.links.get_mut("eth1").expect("eth1");
    eth1.ipv4.addresses.push(Address { protocol: Some(AddressProtocol(200)), ..address("10.9.9.9", 24) });
    eth1.up = true;
    let document = desired("interfaces: [{name: eth1, ipv4: {enabled: true, address: []}}]");
    assert!(plan(&host, &document).expect("can be").is_empty());
}

#[test]
fn a_revert_leaves_a_lease_that_came_in_the_meantime() {
    let host = observed(HOST);
    let plan = plan(&host, &desired("interfaces: [{name: eth0, mtu: 1400}]")).expect("can be");
    let mut now = applied(&host, &plan);
    let lease = Address { lifetime: Some(Lifetime { valid: 60, preferred: 60 }), ..address("10.8.0.9", 24) };
    memory::apply(&mut now, &Step::AddAddress { link: name("eth0"), address: lease.clone() }).expect("works");
    let back = applied(&now, &plan.revert_from(&now, &host));
    let eth0 = back.link("eth0").expect("eth0");
    assert_eq!(eth0.mtu, Some(1500));
    assert!(eth0.ipv4.addresses.contains(&lease));
}

#[test]
fn a_revert_of_nothing_is_nothing() {
    let host = observed(HOST);
    assert!(Plan::default().revert(&host).is_empty());
    let changed = observed("interfaces: []");
    assert!(Plan::default().revert_from(&changed, &host).is_empty());
}

#[test]
fn routes_that_others_made_are_no_ones_to_filter_away() {
    let mut host = observed(HOST);
    host.routes.iter_mut().for_each(|r| r.protocol = RouteProtocol::DHCP);
    let document = desired("routes: {config: [{state: absent, next-hop-interface: eth0}]}");
    assert!(plan(&host, &document).expect("can be").is_empty());
    assert!(verify(&host, &document).is_empty());
}

#[test]
fn a_filter_takes_one_way_of_several() {
    let host = observed(
        "
interfaces:
- {name: a0, type: ethernet, state: up, ipv4: {enabled: true, address: [{ip: 10.0.0.5, prefix-length: 24}]}}
- {name: b0, type: ethernet, state: up, ipv4: {enabled: true, address: [{ip: 10.1.0.5, prefix-length: 24}]}}
routes:
  config:
  - {destination: 192.0.2.0/24, next-hop-interface: a0, next-hop-address: 10.0.0.1, weight: 2}
  - {destination: 192.0.2.0/24, next-hop-interface: b0, next-hop-address: 10.1.0.1, weight: 1}
",
    );
    let document = desired("routes: {config: [{state: absent, next-hop-interface: b0}]}");
    let plan = plan(&host, &document).expect("can be");
    assert_eq!(steps(&plan), ["replace route a0 192.0.2.0/24 via 10.0.0.1 dev a0 weight 2"]);
    assert!(verify(&applied(&host, &plan), &document).is_empty());
}

#[test]
fn a_plan_prints_as_json_with_all_that_execution_needs() {
    let plan = plan(
        &observed(HOST),
        &desired(
            "interfaces: [{name: eth1, state: up, ipv4: {address: [{ip: 10.1.0.1, prefix-length: 24}]}}]",
        ),
    )
    .expect("can be");
    let address = serde_json::json!({"ip": "10.1.0.1", "prefix": 24});
    assert_eq!(
        serde_json::to_value(&plan).expect("prints"),
        serde_json::json!({"steps": [
            {"step": "set-up", "link": "eth1"},
            {"step": "add-address", "link": "eth1", "address": address},
        ]})
    );
}

/// A link that is down has nobody who would renew it, and one that goes down loses it.
#[test]
fn a_lease_that_is_asked_for_by_name_on_a_link_that_goes_down_becomes_static() {
    let mut host = observed(HOST);
    let eth0 = host.links.get_mut(&name("eth0")).expect("eth0");
    eth0.ipv6.addresses[0].lifetime = Some(Lifetime { valid: 3600, preferred: 1800 });
    let document = "interfaces: [{name: eth0, state: down, ipv6: {enabled: true, address: [{ip: 2001:db8::5, prefix-length: 64}]}}]";
    let plan = plan(&host, &desired(document)).unwrap_or_else(|e| panic!("{e}"));
    let after = applied(&host, &plan);
    assert_eq!(verify(&after, &desired(document)), []);
    let eth0 = after.link("eth0").expect("eth0");
    let address = eth0.ipv6.addresses.iter().find(|a| !a.is_link_local()).expect("it is there");
    assert!(!address.is_dynamic(), "{address:?}");
}

#[test]
fn a_port_that_comes_back_makes_its_bridge_as_small_as_it_was() {
    let host = observed(
        "interfaces:
        - {name: br0, type: linux-bridge, state: up, mtu: 1400, bridge: {port: [{name: eth0}, {name: eth1}]}}
        - {name: eth0, type: ethernet, state: up, mtu: 1400, controller: br0}
        - {name: eth1, type: ethernet, state: up, mtu: 1500, controller: br0}",
    );
    let plan =
        plan(&host, &desired("interfaces: [{name: eth0, state: absent}]")).unwrap_or_else(|e| panic!("{e}"));
    let mut now = host.clone();
    memory::apply(&mut now, &plan.steps[0]).expect("a planned step works");
    assert_eq!(now.link("br0").expect("br0").mtu, Some(1500), "{}", plan.steps[0]);
    let back = applied(&now, &plan.revert_from(&now, &host));
    assert_eq!(back.link("br0").expect("br0").mtu, Some(1400));
}

/// What the kernel does unasked.
mod kernel {
    use super::*;

    fn after(step: &Step) -> Observed {
        let mut host = observed(HOST);
        memory::apply(&mut host, step).unwrap_or_else(|e| panic!("{e}"));
        host
    }

    #[test]
    fn down_takes_routes_ipv6_addresses_and_vlans_along() {
        let host = after(&Step::SetDown { link: name("eth0") });
        assert!(host.routes.is_empty());
        let eth0 = host.link("eth0").expect("eth0");
        assert_eq!(eth0.ipv4.addresses.len(), 2);
        assert!(eth0.ipv6.addresses.iter().all(Address::is_kernel_link_local));
        assert!(!host.link("eth0.7").expect("vlan").up);
    }

    #[test]
    fn a_primary_takes_its_secondaries_and_the_last_address_the_routes() {
        let host = after(&Step::DeleteAddress { link: name("eth0"), address: address("10.0.0.5", 24) });
        assert!(host.link("eth0").expect("eth0").ipv4.addresses.is_empty());
        assert!(host.routes.iter().all(|r| r.destination.addr().is_ipv6()));
    }

    #[test]
    fn a_secondary_takes_only_routes_that_send_from_it() {
        let host = after(&Step::DeleteAddress { link: name("eth0"), address: address("10.0.0.6", 24) });
        assert_eq!(host.routes.iter().filter(|r| r.destination.addr().is_ipv4()).count(), 1);
    }

    #[test]
    fn it_refuses_what_a_kernel_refuses() {
        let mut host = observed(HOST);
        let mut refuses = |step: Step| memory::apply(&mut host, &step).expect_err("is refused");
        let route = observed(HOST).routes[0].clone();
        assert!(matches!(refuses(Step::AddRoute { route }), MemoryError::RouteExists { .. }));
        let address = address("10.0.0.5", 24);
        assert!(matches!(
            refuses(Step::AddAddress { link: name("eth0"), address }),
            MemoryError::AddressExists { .. }
        ));
        assert!(matches!(refuses(Step::SetMtu { link: name("eth0"), mtu: 9001 }), MemoryError::Mtu { .. }));
        assert!(matches!(refuses(Step::SetUp { link: name("nope") }), MemoryError::NoLink { .. }));
        let kind = crate::state::LinkKind::Ethernet;
        assert!(matches!(
            refuses(Step::DeleteLink { link: name("eth0"), kind }),
            MemoryError::NotVirtual { .. }
        ));
        assert_eq!(host, observed(HOST), "a refused step changes nothing");
    }
}
