//! A kubelet that is down is not an agent that is down.

use std::time::Instant;

use cluster_tests::{run, wait};
use serde_json::json;

use crate::field::{NODES, POOLS, field};

#[test]
#[ignore = "a cluster: make test-cluster"]
fn without_a_kubelet_the_agent_works_on_and_nothing_is_taken_from_its_node() {
    let field = field();
    let before = field.wait_configured(&NODES);
    let node = NODES[2];
    let ready = |is: &str| {
        let wanted = format!("--for=condition=Ready={is}");
        field.cluster.kubectl(&["wait", &wanted, &format!("node/{}", node.name()), "--timeout=90s"]);
    };
    // So that those who see nothing elsewhere are known to look: here something goes.
    let watch = field.cluster.watch_addresses(node);
    field.cluster.signal_kubelet(node, "KILL");
    ready("Unknown");

    // What somebody takes off is put back.
    let (pool, card) = POOLS[0];
    let own = format!("{}/24", before[&(node.name(), pool.to_owned())]);
    run(field.cluster.on(node, "ip").args(["address", "delete", &own, "dev", card]));
    let began = Instant::now();
    wait::until("the address to be back", || match field.cluster.addresses(node, card) {
        found if found == [own.clone()] => Ok(()),
        found => Err(format!("{found:?}")),
    });
    assert!(began.elapsed().as_secs() < 10, "put back after {:?}", began.elapsed());
    let seen = watch.seen();
    let is_loss = |line: &String| line.contains("Deleted") && line.contains(&format!(" inet {own}"));
    assert!(seen.iter().any(is_loss), "the loss of {own} was not seen: {seen:#?}");
    // What a new policy says is done.
    let bridge = json!({"name": "br-beside", "type": "linux-bridge", "state": "up"});
    field.apply_policy("beside", Some(node), &bridge);
    field.wait_enactment(node, "beside", "Available");
    run(field.cluster.on(node, "ip").args(["link", "show", "br-beside"]));
    assert_eq!(field.held().expect("ledgers"), before);

    field.cluster.start_kubelet(node);
    ready("True");
    let gone = json!({"name": "br-beside", "type": "linux-bridge", "state": "absent"});
    field.apply_policy("beside", Some(node), &gone);
    field.wait_no_link(node, "br-beside");
    field.cluster.kubectl(&["delete", "nncp", "beside"]);
    assert_eq!(field.wait_configured(&NODES), before);
}
