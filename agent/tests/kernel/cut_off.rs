//! What is said about a change that was cut off, and what becomes of it when not all can be brought back.

use agent::checkpoint::Store;
use agent::kernel::{Kernel, Live};
use agent::netns::{Identity, Namespace};
use serde_json::{Value, json};

use crate::dump::assert_same;
use crate::ground::Ground;

/// Leaves the checkpoint of a change that asks for `document`, as one who is killed before its first step.
fn leave_checkpoint(ground: &Ground, document: &Value) {
    let namespace = Namespace::Named(ground.name.clone());
    let write = || {
        let before = Live::open(&namespace).unwrap().observe().unwrap().state;
        let store = Store::lock(&ground.state_dir, Identity::here().unwrap()).unwrap();
        store.write(&before, document).unwrap();
    };
    namespace.inside(write).unwrap();
}

/// Checkpoints that were closed and kept.
fn kept(ground: &Ground) -> Vec<String> {
    let folders = std::fs::read_dir(&ground.state_dir).unwrap().flatten();
    let files = folders.flat_map(|folder| std::fs::read_dir(folder.path()).unwrap().flatten());
    let names = files.map(|file| file.file_name().to_string_lossy().into_owned());
    names.filter(|name| name.starts_with("checkpoint-")).collect()
}

const NOTHING: &str = "interfaces: [{name: lo, state: up}]";
const INTERRUPTED: &str = "an apply was interrupted and is not undone yet";

#[test]
fn what_was_undone_is_said() {
    let (ground, _far) = Ground::with_cards(1);
    let before = ground.dump();
    let document = json!({"interfaces": [{"name": "eth0", "mtu": 1400}]});
    leave_checkpoint(&ground, &document);
    ground.ip("link set eth0 mtu 1400");
    // Who only looks hears of it, and leaves it.
    for args in [&["show"][..], &["plan", "-f", "-"], &["apply", "-f", "-", "--dry-run"]] {
        let said = ground.berth(args, NOTHING);
        assert!(said.stderr.contains(INTERRUPTED) && said.code == 0, "{said:?}");
    }
    assert_eq!(ground.checkpoints(), 1);
    let said = ground.apply(NOTHING);
    assert!(said.stderr.contains("undone:\nSTEP"), "{said:?}");
    let row: Vec<&str> =
        said.stderr.lines().find(|line| line.contains("set mtu")).unwrap().split_whitespace().collect();
    assert_eq!(row, ["1", "set", "mtu", "eth0", "1500"]);
    assert_eq!(said.ok(), "nothing to do\n");
    assert_same(&before, &ground.dump(), "undone");
    assert_eq!(ground.berth(&["show"], "").stderr, "");
    // For machines.
    leave_checkpoint(&ground, &document);
    ground.ip("link set eth0 mtu 1400");
    let said = ground.berth(&["apply", "-f", "-", "-o", "json"], NOTHING).ok();
    let said: Value = serde_json::from_str(&said).unwrap();
    let step = json!({"step": "set-mtu", "link": "eth0", "mtu": 1500});
    assert_eq!(said, json!({"steps": [], "recovered": {"steps": [step]}}));
    // And where nothing had been done yet.
    leave_checkpoint(&ground, &document);
    let said = ground.apply(NOTHING);
    assert!(said.stderr.contains("nothing of it was left to undo"), "{said:?}");
}

/// A checkpoint of somebody who is at work is no change that was cut off.
#[test]
fn a_change_under_way_is_not_called_interrupted() {
    let (ground, _far) = Ground::with_cards(1);
    leave_checkpoint(&ground, &json!({"interfaces": [{"name": "eth0", "mtu": 1400}]}));
    let namespace = Namespace::Named(ground.name.clone());
    let lock = || Store::lock(&ground.state_dir, Identity::here().unwrap()).unwrap();
    let store = namespace.inside(lock).unwrap();
    let said = ground.berth(&["show"], "");
    assert!(said.stderr.contains("another berth is changing it now"), "{said:?}");
    drop(store);
    assert!(ground.berth(&["show"], "").stderr.contains(INTERRUPTED));
}

/// The other end is elsewhere, so nobody can make this one again: said beforehand, tried once, and not for ever after.
#[test]
fn a_veth_whose_other_end_is_elsewhere() {
    let (ground, _far) = Ground::with_cards(2);
    ground.ip("addr add 10.0.0.1/24 dev eth0");
    ground.ip("route add 10.9.0.0/16 via 10.0.0.254");
    let document = json!({
        "interfaces": [{"name": "eth0", "type": "veth", "state": "absent"}, {"name": "eth1", "mtu": 1400}],
    });
    let lost = "eth0 can't be made again: its other end is in another network namespace";
    let plan = ground.berth(&["plan", "-f", "-"], &document.to_string()).ok();
    assert!(plan.contains(&format!("WARNING: {lost}")), "{plan}");
    leave_checkpoint(&ground, &document);
    ground.ip("link del eth0");
    ground.ip("link set eth1 mtu 1400");
    let said = ground.apply(NOTHING);
    for part in
        ["undone:", "set mtu", &format!("can't be brought back: {lost}"), "what was before is kept in"]
    {
        assert!(said.stderr.contains(part), "{part} is not in {said:?}");
    }
    assert_eq!(said.ok(), "nothing to do\n");
    assert_eq!(ground.json("link show dev eth1")[0]["mtu"], 1500);
    // No end was made up, and it is over.
    assert_eq!(ground.json("link").as_array().unwrap().len(), 2);
    assert_eq!((ground.checkpoints(), kept(&ground).len()), (0, 1));
    assert_eq!(ground.apply(NOTHING).stderr, "");
}

/// The same without being killed: what fails afterwards is undone but for that, and so it is said.
#[test]
fn a_failure_after_such_a_veth_is_gone() {
    let (ground, _far) = Ground::with_cards(2);
    ground.break_resolver();
    let document = "
interfaces: [{name: eth0, type: veth, state: absent}, {name: eth1, mtu: 1400}]
dns-resolver: {config: {server: [10.0.0.53]}}
";
    let said = ground.apply(document).fails_with("NOT all of it could be put back");
    for part in ["put back:", "can't be brought back: eth0", "what was before is kept in", "(set dns"] {
        assert!(said.contains(part), "{part} is not in {said}");
    }
    assert!(!said.contains("tries again"), "{said}");
    assert_eq!(ground.json("link show dev eth1")[0]["mtu"], 1500);
    assert_eq!((ground.checkpoints(), kept(&ground).len()), (0, 1));
    assert_eq!(ground.apply(NOTHING).stderr, "");
}

/// A lease that comes back has what is left of it, and one that is over stays away.
#[test]
fn leases_come_back_with_what_is_left_of_them() {
    let (ground, _far) = Ground::with_cards(1);
    ground.ip("addr add 10.0.0.7/24 dev eth0 valid_lft 3600 preferred_lft 1800");
    ground.ip("addr add 10.1.0.7/24 dev eth0 valid_lft 60 preferred_lft 30");
    ground.ip("addr add fd00::7/64 dev eth0 valid_lft 3600 preferred_lft 500 nodad");
    let document = json!({"interfaces": [{"name": "eth0", "mtu": 1400}]});
    leave_checkpoint(&ground, &document);
    // As if it had been taken so long ago.
    let folder = std::fs::read_dir(&ground.state_dir).unwrap().flatten().next().unwrap().path();
    let path = folder.join("checkpoint.json");
    let mut checkpoint: Value = serde_json::from_str(&std::fs::read_to_string(&path).unwrap()).unwrap();
    // This machine may be up for less than that; a time before its boot is as good here.
    let then = checkpoint["uptime"].as_u64().unwrap();
    let ago = then.min(1000);
    assert!(ago > 60, "this machine has been up for {then} s only");
    checkpoint["uptime"] = json!(then - ago);
    std::fs::write(&path, checkpoint.to_string()).unwrap();
    for lease in ["10.0.0.7/24", "10.1.0.7/24", "fd00::7/64"] {
        ground.ip(&format!("addr del {lease} dev eth0"));
    }
    ground.apply(NOTHING).ok();
    let all = ground.json("addr show dev eth0");
    let list = all[0]["addr_info"].as_array().unwrap();
    let left = |ip: &str| {
        let found = list.iter().find(|address| address["local"] == ip);
        found.map(|a| (a["valid_life_time"].as_u64().unwrap(), a["preferred_life_time"].as_u64().unwrap()))
    };
    let (valid, preferred) = left("10.0.0.7").unwrap();
    assert!(valid <= 3600 - ago && preferred <= 1800 - ago, "{valid} {preferred} after {ago}");
    assert!(valid > 0 && preferred > 0, "{valid} {preferred} after {ago}");
    assert_eq!(left("10.1.0.7"), None, "it was over");
    let (valid, preferred) = left("fd00::7").unwrap();
    assert!(valid <= 3600 - ago && preferred <= 500u64.saturating_sub(ago), "{valid} {preferred}");
}
