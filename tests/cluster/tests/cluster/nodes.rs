//! Nodes that come, go, and come back.

use cluster_tests::Node;

use crate::field::{NODES, POOLS, field};

#[test]
#[ignore = "a cluster: make test-cluster"]
fn a_fourth_node_joins_dies_and_comes_back() {
    let field = field();
    let before = field.wait_configured(&NODES);
    let fourth = Node(4);
    field.cluster.boot(fourth);
    field.wait_ready(fourth);
    // Nobody does anything for it.
    let held = field.wait_configured(&[fourth]);
    for node in NODES {
        for (pool, card) in POOLS {
            let own = &held[&(node.name(), pool.to_owned())];
            field.cluster.ping(fourth, card, own).expect("the others answer");
        }
    }

    field.retire(fourth);

    // With the disk that it had, on which its journal says what it held: its own again if nobody has it, or others; never
    // somebody else's, and the rest has what it had.
    field.cluster.boot(fourth);
    field.wait_ready(fourth);
    let mut after = field.wait_configured(&[NODES[0], NODES[1], NODES[2], fourth]);
    after.retain(|(node, _), _| *node != fourth.name());
    assert_eq!(after, before);
    field.retire(fourth);
}

#[test]
#[ignore = "a cluster: make test-cluster"]
fn a_node_that_reboots_keeps_its_addresses() {
    let field = field();
    let before = field.wait_configured(&NODES);
    field.cluster.power_cut(NODES[1]);
    field.cluster.boot(NODES[1]);
    field.wait_rolled_out();
    assert_eq!(field.wait_configured(&NODES), before);
}
