//! Links that are made again: with all that can be given to them, and the rest is said.

use super::{applied, desired, observed};
use crate::plan::{Plan, plan};
use crate::state::{IfName, Observed, PortVlan, VlanEntry, VlanRange};

fn planned(host: &Observed, document: &str) -> Plan {
    plan(host, &desired(document)).unwrap_or_else(|e| panic!("{e}"))
}

fn entry(min: u16, max: u16, pvid: bool, untagged: bool) -> VlanEntry {
    VlanEntry { range: VlanRange { min, max }, pvid, untagged }
}

/// A bridge with two ports whose VLANs no document could ask for.
fn host() -> Observed {
    let mut host = observed(
        "
interfaces:
- {name: br0, type: linux-bridge, state: up, bridge: {options: {vlan-default-pvid: 1}, port: [{name: eth0}, {name: eth1}]}}
- {name: eth0, type: ethernet, state: up, controller: br0}
- {name: eth1, type: ethernet, state: up, controller: br0}
",
    );
    let mut set = |name: &str, all: &[VlanEntry]| {
        host.links.get_mut(name).expect("it is there").vlans = Some(all.to_vec());
    };
    set("br0", &[entry(1, 1, false, true), entry(40, 40, true, true)]);
    set("eth0", &[entry(1, 1, true, true), entry(5, 5, false, true), entry(7, 9, false, false)]);
    set("eth1", &[]);
    host.links.get_mut("eth0").expect("it is there").port.vlan =
        PortVlan::new(None, vec![VlanRange { min: 7, max: 9 }]);
    host
}

fn vlans(host: &Observed) -> Vec<Option<Vec<VlanEntry>>> {
    ["br0", "eth0", "eth1"].map(|name| host.links[name].vlans.clone()).into()
}

#[test]
fn all_vlans_of_a_bridge_come_back() {
    let before = host();
    for document in [
        "interfaces: [{name: br0, state: absent}]",
        "interfaces: [{name: eth0, controller: ''}]",
        "interfaces: [{name: br0, type: linux-bridge, bridge: {port: [{name: eth0, vlan: {mode: access, tag: 9}}]}}]",
    ] {
        let plan = planned(&before, document);
        let back = plan.revert(&before);
        assert_eq!(vlans(&applied(&applied(&before, &plan), &back)), vlans(&before), "{document}\n{back}");
    }
    // A port without any has its default one taken away.
    let back = planned(&before, "interfaces: [{name: br0, state: absent}]").revert(&before);
    let steps: Vec<String> = back.steps.iter().map(ToString::to_string).collect();
    assert!(steps.contains(&"restore vlans eth0 1,5,7-9".to_owned()), "{back}");
    assert!(steps.iter().any(|step| step.trim_end() == "restore vlans eth1"), "{back}");
}

/// What a document asks for is neither undone nor mixed with what was there.
#[test]
fn vlans_that_are_asked_for_are_all_there_is() {
    let before = host();
    let plan = planned(
        &before,
        "interfaces: [{name: br0, type: linux-bridge, bridge: {port: [{name: eth0, vlan: {mode: access, tag: 9}}, {name: eth1}]}}]",
    );
    let steps: Vec<String> = plan.steps.iter().map(ToString::to_string).collect();
    assert!(steps.contains(&"set port vlans eth0 access 9".to_owned()), "{plan}");
    assert!(!steps.iter().any(|step| step.starts_with("restore vlans")), "{plan}");
    assert!(planned(&before, "interfaces: [{name: eth1, mtu: 1400}]").len() == 1);
}

#[test]
fn what_can_not_be_given_to_a_link_made_again_is_said() {
    let mut before = observed(
        "interfaces: [{name: va0, type: veth, state: up, veth: {peer: vb0}}, {name: vb0, type: veth, state: up, veth: {peer: va0}}]",
    );
    before.links.get_mut("vb0").expect("it is there").unkept.push("queueing discipline fq".to_owned());
    let said = |plan: &Plan| plan.losses.iter().map(ToString::to_string).collect::<Vec<_>>();
    let plan = planned(&before, "interfaces: [{name: va0, type: veth, state: absent}]");
    assert!(plan.losses.is_empty(), "gone for good is what was asked for: {plan}");
    let lost = ["vb0 is made again, without its queueing discipline fq"];
    let after = applied(&before, &plan);
    let back = plan.revert_from(&after, &before);
    assert_eq!(said(&back), lost);
    // Also when it is there again and nothing is left to do.
    let again = applied(&after, &back);
    let last = plan.revert_from(&again, &before);
    assert!(last.is_empty(), "{last}");
    assert_eq!(said(&last), lost);
    // Nothing has happened to it yet: nothing is lost.
    assert!(plan.revert_from(&before, &before).losses.is_empty());
    assert!(again.links.contains_key(&IfName::new("va0").expect("a name")));
}
