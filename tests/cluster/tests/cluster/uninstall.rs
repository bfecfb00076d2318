//! Berth goes, and hosts keep what they have.

use cluster_tests::wait;

use crate::field::{NODES, POOLS, base, field};

#[test]
#[ignore = "a cluster: make test-cluster"]
fn without_berth_hosts_keep_their_configuration_and_with_it_again_they_hold_it() {
    let field = field();
    let before = field.wait_configured(&NODES);
    let watches = NODES.map(|node| field.cluster.watch_addresses(node));
    // It may refuse to take something, and goes on.
    let said = field.cluster.try_kubectl(&["delete", "-k", &base(), "--ignore-not-found"]);
    println!("{said:?}");
    wait::until("the agents to be gone", || {
        match field.cluster.try_kubectl(&["get", "namespace", "berth-system"]) {
            Ok(shown) => Err(shown),
            Err(_) => Ok(()),
        }
    });
    for node in NODES {
        for (pool, card) in POOLS {
            let own = format!("{}/24", before[&(node.name(), pool.to_owned())]);
            assert_eq!(field.cluster.addresses(node, card), [own]);
        }
    }
    field.install();
    assert_eq!(field.wait_configured(&NODES), before);
    for watch in watches {
        let lost: Vec<String> = watch.seen().into_iter().filter(|line| line.contains("Deleted")).collect();
        assert!(!lost.iter().any(|line| line.contains(" inet 10.10.1")), "{lost:#?}");
    }
}
