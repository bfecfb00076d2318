//! Berth goes, and hosts keep what they have.

use crate::field::{Field, NODES, POOLS, deploy, field};

/// All but the CRDs.
pub(crate) fn remove(field: &Field) {
    field.disturb();
    field.cluster.kubectl(&["delete", "-k", &deploy("remove"), "--ignore-not-found"]);
}

#[test]
#[ignore = "a cluster: make test-cluster"]
fn without_berth_hosts_keep_their_configuration_and_with_it_again_they_hold_it() {
    let field = field();
    let before = field.wait_configured(&NODES);
    let watches = NODES.map(|node| field.cluster.watch_addresses(node));
    // Twice, as people do who are not sure.
    remove(&field);
    remove(&field);
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

/// As docs/uninstall.md tells.
#[test]
#[ignore = "a cluster: make test-cluster"]
fn all_of_it_goes() {
    let field = field();
    field.cluster.kubectl(&["delete", "nncp", "--all"]);
    field.cluster.kubectl(&["wait", "--for=delete", "nnce", "--all", "--timeout=2m"]);
    for node in NODES {
        for (_, card) in POOLS {
            assert_eq!(field.cluster.addresses(node, card), Vec::<String>::new());
        }
    }
    field.cluster.kubectl(&["delete", "nip", "--all"]);
    remove(&field);
    field.cluster.kubectl(&["delete", "-k", &deploy("../crds/yaml")]);
    let left = field.cluster.kubectl(&["api-resources", "--api-group=nmstate.io", "--no-headers"]);
    assert_eq!(left, "");
}
