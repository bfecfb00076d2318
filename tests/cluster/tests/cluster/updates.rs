//! Agents and controllers are replaced, or killed, while work goes on.

use std::collections::BTreeSet;

use cluster_tests::wait;
use serde_json::{Value, json};

use crate::field::{Field, NODES, POOLS, field};

/// Of `230 packets transmitted, 230 packets received, 0% packet loss`: the numbers. A per cent would hide two in three hundred.
fn counts(seen: &[String]) -> Option<(u32, u32)> {
    let sum = seen.iter().find(|line| line.contains("packets transmitted"))?;
    let mut numbers = sum.split(", ").filter_map(|part| part.split(' ').next()?.parse().ok());
    Some((numbers.next()?, numbers.next()?))
}

/// What a component's pods run, by the digest that their kubelets say.
fn images(field: &Field, component: &str) -> BTreeSet<String> {
    let id = |pod: &Value| pod["status"]["containerStatuses"][0]["imageID"].as_str().map(str::to_owned);
    let pods = field.pods(component, None);
    // Those that are on their way out are not what is run.
    let pods = pods.iter().filter(|pod| pod["metadata"]["deletionTimestamp"].is_null());
    pods.map(|pod| id(pod).unwrap_or_else(|| panic!("no image in {pod:#}"))).collect()
}

#[test]
#[ignore = "a cluster: make test-cluster"]
fn a_rolling_update_leaves_no_gap() {
    let field = field();
    let before = field.wait_configured(&NODES);
    let watches = NODES.map(|node| field.cluster.watch_addresses(node));
    let (pool, card) = POOLS[0];
    let pingers = [NODES[1], NODES[2]]
        .map(|other| field.cluster.pinger(NODES[0], card, &before[&(other.name(), pool.to_owned())]));

    let replaced = ["agent", "controller"].map(|component| images(&field, component));
    let bridge = |state: &str| json!({"name": "br-update", "type": "linux-bridge", "state": state});
    field.apply_policy("during-update", None, &bridge("up"));
    // Another image, by its digest: what it does is the same.
    field.disturb();
    let next = field.next_image();
    for (what, container) in
        [("daemonset/berth-agent", "agent"), ("deployment/berth-controller", "controller")]
    {
        let image = format!("{container}={next}");
        field.cluster.kubectl(&["-n", "berth-system", "set", "image", what, &image]);
    }
    field.wait_rolled_out();
    for (component, old) in ["agent", "controller"].into_iter().zip(replaced) {
        let new = images(&field, component);
        assert!(!new.is_empty() && new.is_disjoint(&old), "{component}: {old:?} {new:?}");
    }
    field.cluster.kubectl(&["wait", "--for=condition=Available", "nncp/during-update", "--timeout=90s"]);
    for node in NODES {
        cluster_tests::run(field.cluster.on(node, "ip").args(["link", "show", "br-update"]));
    }

    for pinger in pingers {
        let seen = pinger.seen();
        let (sent, answered) = counts(&seen).unwrap_or_else(|| panic!("no sum in {seen:#?}"));
        // The last one may have been under way.
        assert!(sent > 20 && answered + 1 >= sent, "{answered} of {sent}: {seen:#?}");
    }
    for watch in watches {
        let lost: Vec<String> = watch.seen().into_iter().filter(|line| line.contains("Deleted")).collect();
        assert!(!lost.iter().any(|line| line.contains(" inet 10.10.1")), "{lost:#?}");
    }
    assert_eq!(field.wait_configured(&NODES), before);
    field.apply_policy("during-update", None, &bridge("absent"));
    field.cluster.kubectl(&["wait", "--for=condition=Available", "nncp/during-update", "--timeout=90s"]);
    field.cluster.kubectl(&["delete", "nncp", "during-update"]);
}

#[test]
#[ignore = "a cluster: make test-cluster"]
fn a_leader_that_is_killed_in_the_middle_of_a_claim_leaves_nothing_half_done() {
    let field = field();
    let before = field.wait_configured(&NODES);
    let fault = |setting: &str| {
        let place = ["-n", "berth-system", "set", "env", "deployment/berth-controller", setting];
        field.cluster.kubectl(&place);
        field.wait_rolled_out();
    };
    let restarts = || -> u64 {
        let of = |pod: &Value| pod["status"]["containerStatuses"][0]["restartCount"].as_u64();
        field.pods("controller", None).iter().filter_map(of).sum()
    };
    // Killed after every write of a ledger, before anybody is told.
    fault("BERTH_FAULT=ledger-written");
    let fourth = cluster_tests::Node(4);
    field.cluster.boot(fourth);
    field.wait_ready(fourth);
    let mut after = field.wait_configured(&[fourth]);
    wait::until("the leader to have been killed", || match restarts() {
        0 => Err("no restart".to_owned()),
        _ => Ok(()),
    });
    after.retain(|(node, _), _| *node != fourth.name());
    assert_eq!(after, before);
    fault("BERTH_FAULT-");
    field.take_away(fourth);
}
