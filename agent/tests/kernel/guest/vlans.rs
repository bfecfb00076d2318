//! VLANs of bridges as the kernel has them, beyond what documents say.

use std::process::Command;

use serde_json::json;

use super::ground;
use crate::dump::lasting;
use crate::ground::run;

/// VLANs that documents have no words for: of the bridge itself, untagged without being the port's own, and none at all.
#[test]
#[ignore = "in a guest"]
fn all_vlans_of_a_bridge_and_its_ports_come_back() {
    let ground = ground();
    ground.ip("link add br0 type bridge vlan_filtering 1");
    for port in ["d0", "d1", "d2"] {
        ground.ip(&format!("link set {port} master br0"));
    }
    ground.ip("link set br0 up");
    let vlan = |line: &str| {
        run(Command::new("bridge").args(["-n", &ground.name, "vlan"]).args(line.split_whitespace()), "").ok()
    };
    vlan("add vid 20-30 dev br0 self");
    vlan("add vid 40 dev br0 self pvid untagged");
    vlan("add vid 5 dev d0 untagged");
    vlan("add vid 7-9 dev d0");
    vlan("del vid 1 dev d1");
    vlan("add vid 11 dev d1");
    vlan("del vid 1 dev d2");
    let fdb = ["-n", &ground.name, "fdb", "add", "02:00:00:00:00:11", "dev", "d0", "master", "vlan", "5"];
    run(Command::new("bridge").args(fdb), "").ok();
    let group = "mdb add dev br0 port d0 grp 239.1.1.1 permanent vid 7";
    run(Command::new("bridge").args(["-n", &ground.name]).args(group.split_whitespace()), "").ok();
    ground.shows_what_holds();
    ground.break_resolver();
    let before = lasting(&ground.dump());
    for part in ["vlans of \"br0\":", "\"vlan\":40", "02:00:00:00:00:11 dev d0 vlan 5", "239.1.1.1 permanent"]
    {
        assert!(before.contains(part), "{part} is not in {before}");
    }
    for change in [
        json!({"name": "br0", "type": "linux-bridge", "state": "absent"}),
        json!({"name": "d0", "controller": ""}),
        json!({"name": "br0", "type": "linux-bridge", "bridge": {"port": [
            {"name": "d0", "vlan": {"mode": "access", "tag": 9}}, {"name": "d1", "vlan": {}}]}}),
    ] {
        let fails = json!({"interfaces": [change], "dns-resolver": {"config": {"server": ["10.0.0.53"]}}});
        ground.apply(&fails.to_string()).fails_with("the host is as it was before");
        ground.is_still(&before, lasting, &fails.to_string());
    }
}
