//! What a policy would get.

use std::fs;

use serde_json::{Value, json};

use crate::field::{Field, held};

const POLICY: &str = "\
apiVersion: nmstate.io/v1
kind: NodeNetworkConfigurationPolicy
metadata: {name: static-ip}
spec:
  capture: {addr: ippool.small.allocate}
  desiredState: {interfaces: [{name: eth1, type: ethernet, state: up}]}
";

pub(crate) fn r22_r24_r32_a_preview_says_who_gets_what_and_who_nothing(field: &Field) {
    let range = json!({"cidr": "10.10.10.0/24", "start": "10.10.10.1", "end": "10.10.10.3"});
    let pool = field.pool("small", &range);
    let uids = ["node01", "node02", "node03", "node04"].map(|node| field.node(node, true));
    // R24: what a node holds it keeps.
    field.ledger("small", &pool, &[(2, "10.10.10.3", held("node02", &uids[1], "static-ip"))]);
    fs::write(field.folder.path().join("policy.yaml"), POLICY).expect("written");
    let before = field.get("nodeippools", "small");
    let text = field.berth("policy preview -f policy.yaml").ok();
    assert!(text.starts_with("policy static-ip matches 4 of 4 nodes\n"), "{text}");
    assert!(text.contains("10.10.10.3  holds it already"), "{text}");
    assert!(text.contains("pool small would run out: no address for node04\n"), "{text}");
    let found = field.berth("policy preview -f policy.yaml -o json").json();
    assert_eq!((&found["nodesMatching"], &found["pools"][0]["free"]), (&json!(4), &json!("2")));
    assert_eq!(found["pools"][0]["lacking"], json!(["node04"]));
    // R22: one of its own for each.
    let given: Vec<&Value> =
        found["nodes"].as_array().expect("it is there").iter().map(|one| &one["ips"][0]).collect();
    let mut distinct: Vec<&str> = given.iter().filter_map(|ip| ip.as_str()).collect();
    distinct.sort_unstable();
    assert_eq!(distinct, ["10.10.10.1", "10.10.10.2", "10.10.10.3"]);
    assert_eq!(found["nodes"][1]["reason"], "Holds");
    assert!(found["nodes"][3]["lacks"].as_str().expect("it is there").contains("pool small is exhausted"));
    // R79: nothing is written.
    assert_eq!(field.get("nodeippools", "small")["metadata"], before["metadata"]);

    // One that selects fewer, and brings a pool that is not there yet.
    let pool = "---\napiVersion: nmstate.io/v1\nkind: NodeIPPool\nmetadata: {name: new}\nspec: {range: {cidr: 10.30.0.0/24}}\n";
    let fewer = POLICY
        .replace("ippool.small", "ippool.new")
        .replace("spec:\n", "spec:\n  nodeSelector: {name: node03}\n");
    fs::write(field.folder.path().join("fewer.yaml"), fewer + pool).expect("written");
    let text = field.berth("policy preview -f fewer.yaml").ok();
    assert!(
        text.starts_with("policy static-ip matches 1 of 4 nodes\n") && text.contains("its hash"),
        "{text}"
    );
    let wrong = field.berth("policy preview -f nowhere.yaml").failed(1);
    assert!(wrong.contains("nowhere.yaml: can't be read"), "{wrong}");
}

/// R113: where every block is somebody's, what is left is nothing for a node without one; who has one is served.
pub(crate) fn r113_a_pool_whose_slices_are_all_cut_runs_out(field: &Field) {
    field.pool("small", &json!({"cidr": "10.30.0.0/27", "perNodeHostBits": 4}));
    let uids = ["node01", "node02", "node03"].map(|node| field.node(node, true));
    for (first, node) in [("10.30.0.0", 0), ("10.30.0.16", 1)] {
        let held = if node == 0 { "10.30.0.1" } else { "10.30.0.17" };
        field.slice("small", &format!("{first}/28"), &format!("node0{}", node + 1), &uids[node], held);
    }
    fs::write(field.folder.path().join("policy.yaml"), POLICY.replace("static-ip", "another"))
        .expect("written");
    let found = field.berth("policy preview -f policy.yaml -o json").json();
    let room = &found["pools"][0];
    assert_eq!(
        (&room["free"], &room["left"], &room["lacking"]),
        (&json!("0"), &json!("0"), &json!(["node03"]))
    );
    assert_eq!(found["nodes"][0]["reason"], "Slice");
    let text = field.berth("policy preview -f policy.yaml").ok();
    assert!(text.contains("pool small would run out: no address for node03\n"), "{text}");
}
