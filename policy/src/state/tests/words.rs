//! Names, MAC addresses, VLANs of ports, and the default trunk.

use super::yaml;
use crate::state::{IfName, Mac, PortVlan, VlanRange, default_port_vlans};

#[test]
fn names_are_what_the_kernel_takes() {
    assert!(IfName::new("eth0.100").is_ok());
    for wrong in ["", "a-name-too-long!", ".", "..", "a/b", "a:b", "a b"] {
        assert!(IfName::new(wrong).is_err(), "{wrong:?}");
    }
    assert!(IfName::reference("an-alternative-name-may-be-longer").is_ok());
}

#[test]
fn macs_compare_by_value_and_print_in_upper_case() {
    let mac: Mac = "02:00:5e:10:00:aB".parse().expect("a MAC");
    assert_eq!(mac, "02-00-5E-10-00-AB".parse().expect("a MAC"));
    assert_eq!(mac.to_string(), "02:00:5E:10:00:AB");
    for wrong in ["", "02:00:5e:10:00", "02:00:5e:10:00:ab:01", "02:00:5e:10:00:zz", "+2:00:5e:10:00:01"] {
        assert!(wrong.parse::<Mac>().is_err(), "{wrong:?}");
    }
}

#[test]
fn vlan_ranges_merge() {
    let range = |min, max| VlanRange { min, max };
    let vlan = PortVlan::new(None, vec![range(10, 20), range(2, 5), range(6, 6), range(15, 30)]);
    assert_eq!(vlan.tagged, [range(2, 6), range(10, 30)]);
}

#[test]
fn ports_without_a_word_on_vlans_get_the_default_trunk() {
    let mut document = yaml(
        "
interfaces:
- {name: br0, type: linux-bridge, state: up, bridge: {port: [{name: a}, {name: b, vlan: {}}]}}
- {name: br1, type: linux-bridge, state: absent, bridge: {port: [{name: c}]}}
- {name: bond0, type: bond, link-aggregation: {port: [d]}}
",
    );
    let before = document.clone();
    default_port_vlans(&mut document);
    let trunk = yaml("{mode: trunk, trunk-tags: [{id-range: {min: 2, max: 4094}}]}");
    assert_eq!(document["interfaces"][0]["bridge"]["port"][0]["vlan"], trunk);
    assert_eq!(document["interfaces"][0]["bridge"]["port"][1]["vlan"], yaml("{}"));
    assert_eq!(document["interfaces"][1], before["interfaces"][1]);
    assert_eq!(document["interfaces"][2], before["interfaces"][2]);
}
