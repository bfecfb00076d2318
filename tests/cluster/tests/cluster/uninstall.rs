//! Berth goes, and hosts keep what they have.

use cluster_tests::{Watch, wait};

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
    // As people do who type what they typed to install it: all goes but the CRDs. It doesn't wait, which the right way does.
    field.disturb();
    let said = field.cluster.try_kubectl(&["delete", "-k", &deploy("base")]).expect_err("the CRDs are kept");
    assert_eq!(said.matches("denied request: kept: with it would go").count(), 5, "{said}");
    remove(&field);
    assert_eq!(field.cluster.get(&["pods", "-n", "berth-system"])["items"], serde_json::json!([]));
    for node in NODES {
        for (pool, card) in POOLS {
            let own = format!("{}/24", before[&(node.name(), pool.to_owned())]);
            assert_eq!(field.cluster.addresses(node, card), [own]);
        }
    }
    field.install();
    assert_eq!(field.wait_configured(&NODES), before);
    none_was_lost(watches);
}

/// As docs/uninstall.md tells who has typed it twice: CRDs, pools and policies are gone, and hosts have their addresses. With
/// CRDs, pools and policies put back before the agents, they keep them.
#[test]
#[ignore = "a cluster: make test-cluster"]
fn what_a_second_deletion_took_is_put_back_and_no_address_is_lost() {
    let field = field();
    let before = field.wait_configured(&NODES);
    let watches = NODES.map(|node| field.cluster.watch_addresses(node));
    remove(&field);
    let base = deploy("base");
    // The API server hears a moment later that nothing keeps them.
    wait::until("the CRDs to go", || {
        field.cluster.try_kubectl(&["delete", "-k", &base, "--ignore-not-found", "--wait=false"])
    });
    for kind in ["nnce", "nips", "nip"] {
        let left = field.cluster.try_kubectl(&["get", kind, "-o", "name"]).unwrap_or_default();
        for name in left.lines() {
            let patch = r#"--patch={"metadata":{"finalizers":null}}"#;
            field.cluster.kubectl(&["patch", name, "--type=merge", patch]);
        }
    }
    let crds = deploy("../crds/yaml");
    field.cluster.kubectl(&["delete", "-k", &crds, "--ignore-not-found"]);

    field.cluster.kubectl(&["apply", "-k", &crds]);
    field.cluster.kubectl(&["wait", "--for=condition=Established", "crd", "--all", "--timeout=60s"]);
    field.apply_seeds();
    field.install();
    assert_eq!(field.wait_configured(&NODES), before);
    none_was_lost(watches);
}

/// None of the pools' addresses was taken off a card meanwhile.
pub(crate) fn none_was_lost(watches: [Watch; NODES.len()]) {
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
