//! Agents and controllers are replaced, or killed, while work goes on.

use std::collections::BTreeSet;

use cluster_tests::{Node, wait};
use serde_json::{Map, Value, json};

use crate::field::{Field, NODES, POLICY, POOLS, WORKLOADS, field};
use crate::uninstall::none_was_lost;

const CONTROLLER: &str = WORKLOADS[1];

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

/// The image that a component's pods are told to run, of those that are not on their way out.
fn asked(field: &Field, component: &str) -> Vec<String> {
    let image = |pod: &Value| pod["spec"]["containers"][0]["image"].as_str().map(str::to_owned);
    let pods = field.pods(component, None);
    pods.iter().filter(|pod| pod["metadata"]["deletionTimestamp"].is_null()).filter_map(image).collect()
}

/// Has both replaced by this image, agents as slowly as the base has it: five seconds between one and the next.
fn update(field: &Field, image: &str) {
    field.disturb();
    for (what, container, also) in [
        ("daemonset/berth-agent", "agent", json!({"minReadySeconds": 5})),
        ("deployment/berth-controller", "controller", json!({})),
    ] {
        let mut spec = also;
        spec["template"] = json!({"spec": {"containers": [{"name": container, "image": image}]}});
        let patch = json!({"spec": spec}).to_string();
        field.cluster.kubectl(&["-n", "berth-system", "patch", what, "--patch", &patch]);
    }
}

/// Stops the update of the agents where it is, or has it go on.
fn paused(field: &Field, is_paused: bool) {
    let strategy = match is_paused {
        true => json!({"type": "OnDelete", "rollingUpdate": null}),
        false => json!({"type": "RollingUpdate", "rollingUpdate": {"maxUnavailable": "10%"}}),
    };
    let patch = json!({"spec": {"updateStrategy": strategy}}).to_string();
    field.cluster.kubectl(&["-n", "berth-system", "patch", WORKLOADS[0], "--patch", &patch]);
}

/// A pool of the update's own; and policies that bring a bridge about with an address of it on every node.
const POOL: &str = "update";

fn pool() -> String {
    let spec = json!({"range": {"cidr": "10.10.40.0/24"}});
    json!({"apiVersion": "nmstate.io/v1", "kind": "NodeIPPool", "metadata": {"name": POOL}, "spec": spec})
        .to_string()
}

fn asking(policy: &str) -> String {
    let address = json!({"ip": "{{ capture.own.ip }}", "prefix-length": "{{ capture.own.prefix-length }}"});
    let bridge = json!({
        "name": format!("br-{policy}"), "type": "linux-bridge", "state": "up",
        "ipv4": {"enabled": true, "dhcp": false, "address": [address]},
    });
    let spec = json!({
        "capture": {"own": format!("ippool.{POOL}.allocate")}, "desiredState": {"interfaces": [bridge]},
    });
    json!({
        "apiVersion": "nmstate.io/v1", "kind": "NodeNetworkConfigurationPolicy", "metadata": {"name": policy},
        "spec": spec,
    })
    .to_string()
}

/// Every node has an address of its own by each of these policies, and the ledger has no other.
fn each_its_own(field: &Field, policies: &[&str]) {
    let ledger = field.cluster.get(&["nip", POOL])["status"]["allocations"].clone();
    let ledger: BTreeSet<String> =
        ledger.as_object().into_iter().flatten().map(|(ip, _)| ip.clone()).collect();
    let on_nodes = policies.iter().flat_map(|policy| {
        NODES.into_iter().flat_map(move |node| field.cluster.addresses(node, &format!("br-{policy}")))
    });
    let on_nodes: Vec<String> = on_nodes.map(|address| address.replace("/24", "")).collect();
    assert_eq!(on_nodes.len(), policies.len() * NODES.len(), "{on_nodes:?}");
    assert_eq!(on_nodes.into_iter().collect::<BTreeSet<_>>(), ledger);
}

/// When the last of the agents that run was made, as the API server has it: to the second.
fn last_agent_made(field: &Field) -> String {
    let made = |pod: &Value| pod["metadata"]["creationTimestamp"].as_str().map(str::to_owned);
    field.pods("agent", None).iter().filter_map(made).max().expect("agents")
}

/// The nodes on which this policy is brought about, by when.
fn brought_about(field: &Field, policy: &str) -> Vec<String> {
    let enactments = field.cluster.get(&["nnce", &format!("--selector=nmstate.io/policy={policy}")]);
    let of = |enactment: &Value| {
        let conditions = enactment["status"]["conditions"].as_array().cloned().unwrap_or_default();
        let available = conditions.into_iter().find(|one| one["type"] == "Available")?;
        (available["status"] == "True")
            .then(|| available["lastTransitionTime"].as_str().map(str::to_owned))?
    };
    enactments["items"].as_array().into_iter().flatten().filter_map(of).collect()
}

/// Was this policy made, and brought about on some node, while agents were still to be replaced? By what is on record.
fn was_meanwhile(field: &Field, policy: &str, last: &str) {
    let object = field.cluster.get(&["nncp", policy]);
    let made = object["metadata"]["creationTimestamp"].as_str().expect("a time");
    assert!(made < last, "{policy} was made at {made}, the last agent at {last}");
    let done = brought_about(field, policy);
    assert_eq!(done.len(), NODES.len(), "{done:?}");
    assert!(done.iter().any(|at| at.as_str() <= last), "{policy}: {done:?}, the last agent at {last}");
}

#[test]
#[ignore = "a cluster: make test-cluster"]
fn a_rolling_update_while_policies_are_applied_leaves_no_gap() {
    let field = field();
    let before = field.wait_configured(&NODES);
    // Another image, by its digest: what it does is the same.
    let next = field.next_image();
    let replaced = ["agent", "controller"].map(|component| images(&field, component));
    let watches = NODES.map(|node| field.cluster.watch_addresses(node));
    let pinger = |(pool, card): (&str, &'static str)| {
        [NODES[1], NODES[2]]
            .map(|other| field.cluster.pinger(NODES[0], card, &before[&(other.name(), pool.to_owned())]))
    };
    let pingers = POOLS.map(pinger);

    update(&field, &next);
    // A policy when one agent is another, and one when two are: for all nodes, so that old and new ones apply it. The update waits until
    // it is on one of them, or agents would be replaced sooner than a claim is served.
    field.cluster.kubectl_with(&["apply", "-f", "-"], &pool());
    let policies = [(1, "update-1"), (2, "update-2")];
    for (count, policy) in policies {
        wait::until(&format!("{count} agents to be replaced"), || {
            let run = asked(&field, "agent");
            let new = run.iter().filter(|&image| *image == next).count();
            if new >= count { Ok(()) } else { Err(format!("{run:?}")) }
        });
        paused(&field, true);
        field.cluster.kubectl_with(&["apply", "-f", "-"], &asking(policy));
        wait::until(&format!("{policy} to be on a node"), || match brought_about(&field, policy) {
            none if none.is_empty() => Err("on none".to_owned()),
            _ => Ok(()),
        });
        paused(&field, false);
    }
    field.wait_rolled_out();
    for (component, old) in ["agent", "controller"].into_iter().zip(replaced) {
        let new = images(&field, component);
        assert!(!new.is_empty() && new.is_disjoint(&old), "{component}: {old:?} {new:?}");
    }
    let last = last_agent_made(&field);
    let available = |policy: &str| {
        let policy = format!("nncp/{policy}");
        field.cluster.kubectl(&["wait", "--for=condition=Available", &policy, "--timeout=90s"]);
    };
    for (_, policy) in policies {
        available(policy);
        was_meanwhile(&field, policy, &last);
    }
    each_its_own(&field, &policies.map(|(_, policy)| policy));

    for pinger in pingers.into_iter().flatten() {
        let seen = pinger.seen();
        let (sent, answered) = counts(&seen).unwrap_or_else(|| panic!("no sum in {seen:#?}"));
        // The last one may have been under way.
        assert!(sent > 20 && answered + 1 >= sent, "{answered} of {sent}: {seen:#?}");
    }
    none_was_lost(watches);
    assert_eq!(field.wait_configured(&NODES), before);
    for (_, policy) in policies {
        let link = format!("br-{policy}");
        let absent = json!({"name": link, "type": "linux-bridge", "state": "absent"});
        // In place of the whole: what is asked for no more is given back.
        field.cluster.kubectl(&["delete", "nncp", policy]);
        field.apply_policy(policy, None, &absent);
        NODES.into_iter().for_each(|node| field.wait_no_link(node, &link));
        field.cluster.kubectl(&["delete", "nncp", policy]);
    }
    // Gone at once: nobody holds anything of it.
    field.cluster.kubectl(&["delete", "nip", POOL, "--timeout=60s"]);
}

/// Who leads, by the Lease: no two processes alike.
fn leader(field: &Field) -> Result<String, String> {
    let lease = field.cluster.try_get(&["lease", "-n", "berth-system", "berth-controller"])?;
    lease["spec"]["holderIdentity"].as_str().map(str::to_owned).ok_or_else(|| lease.to_string())
}

/// In the middle of a claim: an address is this node's in the ledger, and its enactment has no grant of that pool. Whose Lease it is
/// then. It stays so for as long as that Lease lasts, which nobody renews.
fn caught(field: &Field, node: Node) -> Result<String, String> {
    let entries = field.entries_of(node)?;
    let enactment = field.cluster.try_get(&["nnce", &format!("{}.{POLICY}", node.name())])?;
    let claims = &enactment["status"]["ippool"];
    match entries.iter().any(|(pool, _)| claims[pool]["grants"].as_object().is_none_or(Map::is_empty)) {
        true => leader(field),
        false => Err(format!("{entries:?} {claims}")),
    }
}

#[test]
#[ignore = "a cluster: make test-cluster"]
fn a_leader_that_is_killed_in_the_middle_of_a_claim_leaves_nothing_half_done() {
    let field = field();
    let before = field.wait_configured(&NODES);
    // Killed after every write of a ledger, before anybody is told.
    field.disturb();
    field.set_env(CONTROLLER, &["BERTH_FAULT=ledger-written".to_owned()]);
    field.wait_rolled_out();
    let fourth = Node(4);
    field.cluster.boot(fourth);
    field.wait_ready(fourth);
    let killed = wait::until("a leader that was killed in the middle", || caught(&field, fourth));
    // Finished by another: the next leader, or the node's agent itself.
    let mut after = field.wait_configured(&[fourth]);
    let next = wait::until("another leader", || match leader(&field)? {
        still if still == killed => Err(still),
        next => Ok(next),
    });
    // Its container is another by now; what the former said last is where it ended.
    let pod = killed.rsplit_once('-').expect("a pod's name and more").0;
    let said = field.cluster.kubectl(&["-n", "berth-system", "logs", pod, "--previous"]);
    assert!(said.contains("fault point ledger-written"), "{killed}, then {next}: {said}");
    after.retain(|(node, _), _| *node != fourth.name());
    assert_eq!(after, before);
    // Nobody dies of it any more once it is installed anew, which a test that fails here leaves to the next.
    field.install();
    let object = field.cluster.get(&["-n", "berth-system", CONTROLLER]);
    assert!(!object.to_string().contains("BERTH_FAULT"), "{object:#}");
}
