//! From nothing to addresses on cards.

use std::collections::BTreeSet;

use cluster_tests::{Node, wait};

use crate::field::{NODES, POLICY, POOLS, deploy, field};

#[test]
#[ignore = "a cluster: make test-cluster"]
fn three_nodes_have_addresses_of_their_own_and_reach_each_other() {
    let field = field();
    let held = field.wait_configured(&NODES);
    for (pool, card) in POOLS {
        let of = |node: Node| &held[&(node.name(), pool.to_owned())];
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

/// R56: a controller that leads counts the cluster, an agent what its host did; each is read where `deploy` has it listen.
#[test]
#[ignore = "a cluster: make test-cluster"]
fn metrics_count_what_there_is() {
    let field = field();
    let counted = [
        "berth_pool_allocated{pool=\"traffic-1\"} 3\n",
        "berth_pool_allocated{pool=\"traffic-2\"} 3\n",
        "kubernetes_nmstate_policies_status{status=\"Available\"} 1\n",
        "kubernetes_nmstate_enactments_status{node=\"node02\",status=\"Available\"} 1\n",
        "kubernetes_nmstate_network_interfaces{type=\"veth\",node=\"node03\"} ",
        "berth_node_ready{node=\"node01\"} 1\n",
    ];
    let lacks = |page: &str, all: &[&str]| all.iter().any(|line| !page.contains(line));
    wait::until("one controller to count the cluster, and the other nothing", || {
        let mut leaders = 0;
        for pod in field.pods("controller", None) {
            let name = pod["spec"]["nodeName"].as_str().unwrap_or_default();
            let node = NODES.into_iter().find(|node| node.name() == name).ok_or("a pod without a node")?;
            let url = format!("http://{}:9466/metrics", pod["status"]["podIP"].as_str().unwrap_or_default());
            let page = field.cluster.fetch(node, &url)?;
            if !page.contains("berth_pool_") {
                continue;
            }
            leaders += 1;
            if lacks(&page, &counted) {
                return Err(page);
            }
        }
        (leaders == 1).then_some(()).ok_or_else(|| format!("{leaders} controllers count"))
    });
    let own = [
        "berth_build_info{version=",
        "berth_claim_seconds_count ",
        "berth_apply_seconds_count{step=\"apply\"} ",
    ];
    let read = |node: Node| field.cluster.fetch(node, "http://127.0.0.1:9465/metrics");
    for node in NODES {
        wait::until("an agent to count what it did", || {
            let page = read(node)?;
            if lacks(&page, &own) { Err(page) } else { Ok(()) }
        });
    }
}
