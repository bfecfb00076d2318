//! From nothing to addresses on cards.

use std::collections::BTreeSet;

use crate::field::{NODES, POLICY, POOLS, deploy, field};

#[test]
#[ignore = "a cluster: make test-cluster"]
fn three_nodes_have_addresses_of_their_own_and_reach_each_other() {
    let field = field();
    let held = field.wait_configured(&NODES);
    for (pool, card) in POOLS {
        let of = |node: cluster_tests::Node| &held[&(node.name(), pool.to_owned())];
        let all: BTreeSet<&String> = NODES.into_iter().map(of).collect();
        assert_eq!(all.len(), NODES.len(), "of {pool}: {held:?}");
        for node in NODES {
            for other in NODES.into_iter().filter(|&other| other != node) {
                field.cluster.ping(node, card, of(other)).expect("the other answers");
            }
        }
    }
    field.cluster.kubectl(&["wait", "--for=condition=Available", "nncp", POLICY, "--timeout=60s"]);
}

/// The very line that docs/install.md has, without what makes it quicker for tests.
#[test]
#[ignore = "a cluster: make test-cluster"]
fn the_base_itself_is_rolled_out() {
    let field = field();
    let before = field.wait_configured(&NODES);
    field.disturb();
    field.cluster.kubectl(&["apply", "-k", &deploy("base")]);
    field.wait_rolled_out();
    assert_eq!(field.wait_configured(&NODES), before);
    field.install();
}
