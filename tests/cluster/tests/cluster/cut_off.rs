//! A policy that cuts a node off.

use cluster_tests::wait;
use serde_json::json;

use crate::field::{NODES, field};

#[test]
#[ignore = "a cluster: make test-cluster"]
fn a_policy_that_cuts_the_node_off_is_undone_and_says_so() {
    let field = field();
    let before = field.wait_configured(&NODES);
    let node = NODES[2];
    let down = json!({"name": "eth0", "type": "ethernet", "state": "down"});
    field.apply_policy("cut-off", Some(node), &down);
    let said = field.wait_enactment(node, "cut-off", "Failing");
    assert!(said.contains("worked before the change and no longer does"), "{said}");
    assert_eq!(field.cluster.addresses(node, "eth0"), [format!("{}/24", node.address())]);
    // What an administrator reads first.
    wait::until("an Event", || {
        let told = field.cluster.try_kubectl(&["describe", "nncp", "cut-off"])?;
        let words = ["ReconcileFailed", "node03.cut-off", "worked before the change and no longer does"];
        let names = words.iter().all(|word| told.contains(word));
        if names { Ok(()) } else { Err(told) }
    });
    let events = ["get", "events", "--field-selector", "involvedObject.name=cut-off"];
    let told = field.cluster.kubectl(&events);
    assert!(told.contains("ReconcileFailed") && told.contains("node03.cut-off"), "{told}");
    // Once, not again and again: its retries are used up.
    let enactment = field.cluster.get(&["nnce", "node03.cut-off"]);
    assert_eq!(enactment["status"]["retryCount"], json!({"1": 1}), "{enactment:#}");
    field.cluster.kubectl(&["delete", "nncp", "cut-off"]);
    field.wait_ready(node);
    assert_eq!(field.wait_configured(&NODES), before);
}
