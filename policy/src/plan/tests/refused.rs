//! What is refused with words before the kernel would refuse it with a number, or do something else.

use super::{desired, observed};
use crate::plan::plan;
use crate::state::Observed;

fn refusal(host: &Observed, document: &str) -> String {
    plan(host, &desired(document)).expect_err("refused").to_string()
}

#[test]
fn ipv6_on_a_link_that_is_too_small_for_it() {
    let host =
        observed("interfaces: [{name: eth0, type: ethernet, state: up, mtu: 1000, ipv6: {enabled: false}}]");
    let on = "interfaces: [{name: eth0, ipv6: {enabled: true}}]";
    let said = "interfaces[0].ipv6.enabled: eth0 has an MTU of 1000, too small for IPv6, which needs 1280; give it a larger one";
    assert_eq!(refusal(&host, on), said);
    let both = "interfaces: [{name: eth0, mtu: 1280, ipv6: {enabled: true}}]";
    assert_eq!(plan(&host, &desired(both)).map(|plan| plan.len()), Ok(2));
}

#[test]
fn a_name_that_takes_itself_away() {
    let host = observed(
        "interfaces: [{name: eth0, type: ethernet, state: up, alt-names: [{name: wan}, {name: old}]}]",
    );
    let own = "interfaces: [{name: wan, alt-names: [{name: wan, state: absent}]}]";
    assert_eq!(
        refusal(&host, own),
        "interfaces[0].alt-names: wan is how this entry names eth0: call it eth0 to take that name away"
    );
    let other = "interfaces: [{name: wan, alt-names: [{name: old, state: absent}]}]";
    assert_eq!(plan(&host, &desired(other)).map(|plan| plan.len()), Ok(1));
}

#[test]
fn a_mac_vlan_on_a_mac_vlan() {
    let host = observed(
        "
interfaces:
- {name: eth0, type: ethernet, state: up}
- {name: mv0, type: mac-vlan, state: up, mac-vlan: {base-iface: eth0, mode: bridge}}
",
    );
    let on = "interfaces: [{name: mv1, type: mac-vlan, mac-vlan: {base-iface: mv0, mode: bridge}}]";
    assert_eq!(
        refusal(&host, on),
        "interfaces[0].mac-vlan.base-iface: mv0 is a mac-vlan itself, and the kernel would put this one beside it; say eth0"
    );
}

/// Where new links start with IPv6 off it is switched on for those that shall have it, and left off for the others.
#[test]
fn ipv6_where_new_links_lack_it() {
    let mut host = observed("interfaces: []");
    host.new_links_lack_ipv6 = true;
    let steps = |document: &str| -> Vec<String> {
        let plan = plan(&host, &desired(document)).unwrap_or_else(|e| panic!("{e}"));
        plan.steps.iter().map(ToString::to_string).collect()
    };
    let on = steps("interfaces: [{name: br0, type: linux-bridge, state: up, ipv6: {enabled: true}}]");
    assert!(on.contains(&"set ipv6 br0 on".to_owned()), "{on:?}");
    let unsaid = steps("interfaces: [{name: br0, type: linux-bridge, state: up}]");
    assert!(!unsaid.iter().any(|step| step.contains("ipv6")), "{unsaid:?}");
}

/// What no kernel takes, with where it stands; the host is not touched for it.
#[test]
fn links_that_no_kernel_makes() {
    let host = "interfaces: [{name: eth0, type: ethernet, state: up}, {name: lo, type: loopback, state: up},
        {name: br1, type: linux-bridge, state: up}, {name: eth0.5, type: vlan, state: up, vlan: {base-iface: eth0, id: 5}}]";
    let bridge = |port: &str| {
        format!("{{name: br0, type: linux-bridge, state: up, bridge: {{port: [{{name: {port}}}]}}}}")
    };
    let vlan = |base: &str, id: u16| {
        format!("{{name: v0, type: vlan, state: up, vlan: {{base-iface: {base}, id: {id}}}}}")
    };
    let cant = "can't be a port of br0: no loopback can, no bridge of a bridge, nothing of itself";
    for (entry, words) in [
        (bridge("lo"), format!("interfaces[0].bridge.port[0]: lo {cant}")),
        (bridge("br1"), format!("interfaces[0].bridge.port[0]: br1 {cant}")),
        (bridge("br0"), format!("interfaces[0].bridge.port[0]: br0 {cant}")),
        (vlan("lo", 5), "interfaces[0].vlan.base-iface: nothing can sit on lo, a loopback".to_owned()),
        (vlan("eth0", 5), "interfaces[0].vlan.id: eth0.5 has this id on eth0 already".to_owned()),
    ] {
        let wish = desired(&format!("interfaces: [{entry}]"));
        assert_eq!(plan(&observed(host), &wish).expect_err("is refused").to_string(), words);
    }
    // Another id, another link, or the same one again.
    for entry in [
        vlan("eth0", 6),
        vlan("br1", 5),
        "{name: eth0.5, type: vlan, state: up, vlan: {base-iface: eth0, id: 5}}".to_owned(),
    ] {
        plan(&observed(host), &desired(&format!("interfaces: [{entry}]"))).unwrap_or_else(|e| panic!("{e}"));
    }
}

#[test]
fn problems_in_ports_config_say_which_entry() {
    let host = observed(
        "
interfaces:
- {name: eth0, type: ethernet, state: up}
- {name: eth1, type: ethernet, state: up}
- {name: b0, type: bond, state: up, link-aggregation: {mode: balance-rr, port: [eth0]}}
",
    );
    let document = "interfaces: [{name: b0, type: bond, link-aggregation: {mode: balance-rr, port: [eth0], \
        ports-config: [{name: eth0, queue-id: 1}, {name: eth1, queue-id: 2}, {name: eth0, priority: 3}]}}]";
    assert_eq!(
        refusal(&host, document).lines().collect::<Vec<_>>(),
        [
            "interfaces[0].link-aggregation.ports-config[1]: eth1 is not a port of it",
            "interfaces[0].link-aggregation.ports-config[0].priority: it has no meaning in mode balance-rr, only in active-backup, balance-tlb, balance-alb",
        ]
    );
}
