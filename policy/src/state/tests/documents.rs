//! Desired documents: quoting, query-only fields, and refusals.

use super::{desired, refusals};
use crate::state::{Identifier, LinkKind, LinkState, OptValue};

#[test]
fn numbers_and_booleans_may_be_quoted() {
    let plain = desired(
        "
interfaces:
- {name: br0, type: linux-bridge, mtu: 1500, accept-all-mac-addresses: true,
   bridge: {options: {stp: {enabled: false, priority: 32768}, multicast-router: 1}, port: [{name: a, stp-path-cost: 7}]},
   ipv4: {enabled: true, dhcp: false, address: [{ip: 10.0.0.1, prefix-length: 24}]}}
routes: {config: [{destination: 0.0.0.0/0, next-hop-interface: br0, metric: 100, table-id: 254, weight: 1}]}
route-rules: {config: [{ip-from: 10.0.0.0/8, priority: 5, fwmark: 16, route-table: 7}]}
",
    );
    let quoted = desired(
        "
interfaces:
- {name: br0, type: linux-bridge, mtu: '1500', accept-all-mac-addresses: 'true',
   bridge: {options: {stp: {enabled: 'false', priority: '32768'}, multicast-router: auto},
            port: [{name: a, stp-path-cost: '7'}]},
   ipv4: {enabled: 'true', dhcp: 'false', address: [{ip: 10.0.0.1, prefix-length: '24'}]}}
routes: {config: [{destination: 0.0.0.0/0, next-hop-interface: br0, metric: '100', table-id: '254', weight: '1'}]}
route-rules: {config: [{ip-from: 10.0.0.0/8, priority: '5', fwmark: '0x10', route-table: '7'}]}
",
    );
    assert_eq!(plain, quoted);
}

#[test]
fn what_is_only_ever_shown_is_accepted_and_means_nothing() {
    let shown = desired(
        "
description: a remark
interfaces:
- {name: eth0, type: ethernet, driver: virtio, min-mtu: 68, max-mtu: 9000, permanent-mac-address: 02:00:00:00:00:01,
   profile-name: eth0, ipv4: {enabled: true, address: [{ip: 10.0.0.1, prefix-length: 24, valid-life-time: forever,
   preferred-life-time: forever, mptcp-flags: [], protocol: '99'}]}}
- {name: br0, type: linux-bridge, bridge: {options: {gc-timer: 1, hello-timer: 2}}}
routes: {running: [{bogus: 1}]}
dns-resolver: {running: {server: [x]}}
",
    );
    let plain = desired(
        "
interfaces:
- {name: eth0, type: ethernet, ipv4: {enabled: true, address: [{ip: 10.0.0.1, prefix-length: 24}]}}
- {name: br0, type: linux-bridge}
",
    );
    assert_eq!(shown, plain);
}

#[test]
fn null_means_not_mentioned() {
    assert_eq!(
        desired("interfaces: [{name: eth0, mtu: null, ipv4: null, type: null}]"),
        desired("interfaces: [{name: eth0}]")
    );
}

#[test]
fn an_ignored_entry_may_say_anything() {
    let document = desired("interfaces: [{name: x0, type: hovercraft, state: ignore, eels: full}]");
    assert_eq!(document.links[0].state, LinkState::Ignore);
}

#[test]
fn kinds_and_fields_that_are_not_applied_are_refused_by_path() {
    let text = refusals(
        "
interfaces:
- {name: ib0, type: infiniband}
- {name: x0, type: hovercraft, state: absent}
- {name: e0, type: ethernet, ethernet: {speed: 1000}, wait-ip: any, mptcp: {}, 802.1x: {}}
- {name: e1, type: ethernet, ipv6: {enabled: true, addr-gen-mode: eui64, token: '::1'}}
- {name: e2, identifier: pci-address}
- {name: e3, identifier: mac-address}
- {name: e4, ovs-bridge: {}}
- {name: b0, type: bond, bond: {mode: active-backup, options: {balance_slb: true}}}
",
    );
    let lines: Vec<&str> = text.lines().collect();
    assert_eq!(lines[0], "interfaces[0].type: infiniband is not supported");
    assert!(
        lines[1].starts_with("interfaces[1].type: expected one of ethernet, veth, linux-bridge"),
        "{}",
        lines[1]
    );
    assert_eq!(
        &lines[2..],
        [
            "interfaces[2].ethernet.speed: not supported",
            "interfaces[2].wait-ip: not supported",
            "interfaces[2].mptcp: not supported",
            "interfaces[2].802.1x: not supported",
            "interfaces[3].ipv6.addr-gen-mode: not supported",
            "interfaces[3].ipv6.token: not supported",
            "interfaces[4].identifier: pci-address is not supported",
            "interfaces[5].identifier: needs mac-address",
            "interfaces[6].ovs-bridge: not supported",
            "interfaces[7].bond.options.balance_slb: not supported",
        ]
    );
}

/// The kind is refused, and so is what is wrong with what every kind has.
#[test]
fn a_kind_that_is_not_applied_hides_nothing_else() {
    let text = refusals(
        "interfaces: [{name: o, type: ovs-bridge, mtu: abc, lldp: {enabled: true}, ipv4: {adress: []}, bridge: {}}]",
    );
    let lines: Vec<&str> = text.lines().map(|line| line.split(':').next().unwrap()).collect();
    assert_eq!(
        lines,
        ["interfaces[0].type", "interfaces[0].mtu", "interfaces[0].lldp", "interfaces[0].ipv4.adress"]
    );
}

#[test]
fn what_concerns_dhcp_is_taken_where_it_means_nothing() {
    desired(
        "interfaces: [{name: e, ipv4: {dhcp: true, auto-dns: true, auto-gateway: true, auto-route-table-id: 0}}]",
    );
    desired("interfaces: [{name: e, ipv4: {dhcp: false, auto-dns: false, dhcp-client-id: ll}}]");
    let text = refusals("interfaces: [{name: e, ipv4: {dhcp: true, auto-dns: false}}]");
    assert_eq!(text, "interfaces[0].ipv4.auto-dns: not supported");
}

#[test]
fn port_vlans_that_contradict_themselves_are_refused() {
    let text = refusals(
        "
interfaces:
- name: br0
  type: linux-bridge
  bridge:
    port:
    - {name: a, vlan: {mode: trunk, tag: 5}}
    - {name: b, vlan: {mode: access, tag: 5, trunk-tags: [{id: 6}]}}
    - {name: c, vlan: {mode: trunk, trunk-tags: [{id-range: {min: 9, max: 3}}, {id: 4095}]}}
    - {name: a}
",
    );
    let paths: Vec<&str> = text.lines().map(|l| l.split(": ").next().unwrap_or_default()).collect();
    assert_eq!(
        paths,
        [
            "interfaces[0].bridge.port[0].vlan.tag",
            "interfaces[0].bridge.port[1].vlan.trunk-tags",
            "interfaces[0].bridge.port[2].vlan.trunk-tags[0]",
            "interfaces[0].bridge.port[2].vlan.trunk-tags[1].id",
            "interfaces[0].bridge.port[3]",
        ]
    );
}

#[test]
fn a_section_alone_says_what_a_link_is() {
    let document = desired(
        "interfaces: [{name: v, vlan: {base-iface: e, id: 3}}, {name: p, type: ethernet, veth: {peer: q}}]",
    );
    assert_eq!(document.links[0].kind, Some(LinkKind::Vlan));
    assert_eq!(document.links[1].kind, Some(LinkKind::Veth));
}

#[test]
fn a_mac_that_identifies_is_not_one_to_set() {
    let document =
        desired("interfaces: [{name: wan, identifier: mac-address, mac-address: '02:00:00:00:00:01'}]");
    assert!(matches!(document.links[0].identifier, Identifier::Mac(_)));
    assert_eq!(document.links[0].mac, None);
}

#[test]
fn route_defaults_and_host_bits() {
    let document = desired(
        "routes: {config: [{destination: 10.1.2.3/8, next-hop-interface: e, metric: -1, table-id: 0, next-hop-address: ''}]}",
    );
    let route = &document.routes[0];
    assert_eq!(route.destination.map(|d| d.to_string()).as_deref(), Some("10.0.0.0/8"));
    assert_eq!((route.metric, route.table, route.via), (None, None, Some(None)));
}

#[test]
fn bond_options_have_the_kernels_names_and_numbers() {
    let document = desired(
        "interfaces: [{name: b, type: bond, link-aggregation: {mode: 4, options: {num_unsol_na: 3, lacp_rate: 1, arp_ip_target: '10.0.0.1, 10.0.0.2'}}}]",
    );
    let shown: Vec<String> = document.links[0].options.iter().map(|(k, v)| format!("{k}={v}")).collect();
    assert_eq!(
        shown,
        ["mode=802.3ad", "arp_ip_target=10.0.0.1,10.0.0.2", "lacp_rate=fast", "num_grat_arp=3"]
    );
    assert!(document.links[0].options.values().any(|v| *v == OptValue::Int(3)));
}

/// nmstate knows `address` only: a list under a name that nobody reads must not be taken for one.
#[test]
fn addresses_is_no_field() {
    let text = refusals("interfaces: [{name: e, ipv4: {enabled: true, addresses: []}}]");
    assert_eq!(text, "interfaces[0].ipv4.addresses: unknown field");
}

#[test]
fn one_field_under_two_names_is_refused_and_both_are_named() {
    let text = refusals(
        "
interfaces:
- {name: br0, type: linux-bridge, bridge: {port: [{name: e0}], slaves: [{name: e1}],
   options: {group-forward-mask: 0, group-fwd-mask: 8}}}
- {name: b0, type: bond, link-aggregation: {mode: 1, port: [], ports: [e2], options: {num_grat_arp: 1, num_unsol_na: 2}}}
- {name: b1, type: bond, link-aggregation: {mode: 1}, bond: {mode: 0}}
- {name: red, type: vrf, vrf: {route-table-id: 10, port: [], ports: []}}
",
    );
    let lines: Vec<&str> = text.lines().collect();
    assert_eq!(
        lines,
        [
            "interfaces[0].bridge.slaves: is another name of port, which is given too; say it once",
            "interfaces[0].bridge.options.group-fwd-mask: is another name of group-forward-mask, which is given too; say it once",
            "interfaces[1].link-aggregation.ports: is another name of port, which is given too; say it once",
            "interfaces[1].link-aggregation.options.num_unsol_na: is another name of num_grat_arp, which is given too; say it once",
            "interfaces[2].bond: is another name of link-aggregation, which is given too; say it once",
            "interfaces[3].vrf.ports: is another name of port, which is given too; say it once",
        ]
    );
    // As nmstate shows them.
    let both = "interfaces: [{name: b, type: bond, link-aggregation: {mode: 1, options: {num_grat_arp: 1, num_unsol_na: '1'}}}]";
    assert_eq!(desired(both).links[0].options.len(), 2);
}

#[test]
fn an_empty_dns_config_purges_and_parts_stay_parts() {
    let all = desired("dns-resolver: {config: {}}").dns.expect("said");
    assert_eq!(all.servers.as_deref(), Some(&[][..]));
    let part = desired("dns-resolver: {config: {search: [a.example]}}").dns.expect("said");
    assert_eq!((part.servers, part.options), (None, None));
    let text = refusals("dns-resolver: {config: {search: ['a b'], server: [10.0.0.1]}}");
    assert_eq!(text, "dns-resolver.config.search[0]: expected a domain name, found \"a b\"");
}

#[test]
fn addresses_that_no_host_can_have_are_refused() {
    let text = refusals(
        "
interfaces:
- name: e
  ipv4:
    enabled: true
    address:
    - {ip: 0.0.0.0, prefix-length: 24}
    - {ip: 255.255.255.255, prefix-length: 32}
    - {ip: 224.0.0.1, prefix-length: 4}
    - {ip: 10.0.0.255, prefix-length: 16}
  ipv6:
    enabled: true
    address:
    - {ip: '::', prefix-length: 64}
    - {ip: 'ff02::1', prefix-length: 64}
    - {ip: '::ffff:10.0.0.1', prefix-length: 128}
",
    );
    let wrong = |family: &str, i: usize, what: &str| {
        format!("interfaces[0].{family}.address[{i}].ip: {what}; give the address of one host")
    };
    assert_eq!(
        text.lines().collect::<Vec<_>>(),
        [
            wrong("ipv4", 0, "0.0.0.0 is the unspecified address"),
            wrong("ipv4", 1, "255.255.255.255 is the broadcast address"),
            wrong("ipv4", 2, "224.0.0.1 is a multicast address"),
            wrong("ipv6", 0, ":: is the unspecified address"),
            wrong("ipv6", 1, "ff02::1 is a multicast address"),
            wrong("ipv6", 2, "::ffff:10.0.0.1 is an IPv4 address mapped into IPv6"),
        ]
    );
}

#[test]
fn an_address_given_twice_is_refused_where_the_kernel_would() {
    let text = refusals(
        "
interfaces:
- name: e
  ipv4: {enabled: true, address: [{ip: 10.0.0.1, prefix-length: 24}, {ip: 10.0.0.1, prefix-length: 16},
                                  {ip: 10.0.0.1, prefix-length: 24}]}
  ipv6: {enabled: true, address: [{ip: '2001:db8::1', prefix-length: 64}, {ip: '2001:db8:0::1', prefix-length: 128}]}
",
    );
    assert_eq!(
        text.lines().collect::<Vec<_>>(),
        [
            "interfaces[0].ipv4.address[2]: 10.0.0.1/24 was already given at interfaces[0].ipv4.address[0]; say it once",
            "interfaces[0].ipv6.address[1]: 2001:db8::1/128 was already given at interfaces[0].ipv6.address[0]; say it once",
        ]
    );
}

#[test]
fn not_a_document_at_all() {
    assert_eq!(refusals("[1, 2]"), "expected a mapping, found a list");
    assert_eq!(refusals("interfaces: {name: eth0}"), "interfaces: expected a list, found a mapping");
}
