//! What somebody can do who has an agent's token: what that node's agent can, and no more. And that nobody reads one in a log.

use std::fs;

use cluster_tests::{Node, answer, run};
use serde_json::{Value, json};

use crate::field::{Field, NODES, POLICY, POOLS, WORKLOADS, field};

/// The token that a pod was given by its kubelet, read where its process finds it.
fn token(field: &Field, pod: &Value) -> String {
    let node = NODES.into_iter().find(|node| pod["spec"]["nodeName"] == *node.name()).expect("a node");
    let uid = pod["metadata"]["uid"].as_str().expect("a UID");
    let place = format!("/var/lib/kubelet/pods/{uid}/volumes/kubernetes.io~projected");
    run(field.cluster.on(node, "sh").args(["-c", &format!("cat {place}/*/token")]))
}

/// kubectl on a node, with nothing but this token.
fn try_with(field: &Field, node: Node, token: &str, arguments: &[&str]) -> Result<String, String> {
    let mut command = field.cluster.bare_kubectl(node);
    answer(command.args(["--token", token]).args(arguments))
}

fn patch<'a>(what: &'a [&'a str], patch: &'a str) -> Vec<&'a str> {
    [&["patch"], what, &["--type=merge", "--patch", patch]].concat()
}

/// What the API server says to a merge patch of a status with this token: one request, as an agent sends it. kubectl would read
/// the status first, which no agent may, and so never get as far as the write.
fn patch_status(field: &Field, node: Node, token: &str, what: &str, status: &Value) -> Value {
    let mut curl = field.cluster.curl(node, &format!("/apis/nmstate.io/v1/{what}/status"));
    curl.args(["--request", "PATCH", "--header", "Content-Type: application/merge-patch+json"]);
    curl.args(["--header", &format!("Authorization: Bearer {token}")]);
    let said = run(curl.args(["--data", &json!({"status": status}).to_string()]));
    serde_json::from_str(&said).unwrap_or_else(|wrong| panic!("{wrong}: {said}"))
}

#[test]
#[ignore = "a cluster: make test-cluster"]
fn a_pods_token_is_good_for_its_own_node_alone() {
    let field = field();
    let held = field.wait_configured(&NODES);
    let (own, other) = (NODES[0], NODES[1]);
    let token = token(&field, &field.pods("agent", Some(own))[0]);
    let refused = |arguments: &[&str], words: &str| match try_with(&field, own, &token, arguments) {
        Ok(done) => panic!("{arguments:?} is allowed: {done}"),
        Err(said) => assert!(said.contains(words), "{arguments:?}: {said}"),
    };

    let enactment = |node: Node| format!("{}.{POLICY}", node.name());
    let (theirs, mine) = (enactment(other), enactment(own));
    let says = field.cluster.folder().join("tried.json");
    let object = json!({
        "apiVersion": "nmstate.io/v1", "kind": "NodeNetworkConfigurationEnactment", "metadata": {"name": theirs},
        "status": {"conditions": []},
    });
    fs::write(&says, object.to_string()).expect("a file");
    let says = says.display().to_string();
    // In one request, as an agent's: kubectl's own patch would read the status first, which no agent may.
    let apply =
        ["apply", "--server-side", "--force-conflicts", "--subresource=status", "--validate=false", "-f"];
    refused(&[&apply[..], &[&says]].concat(), "it is not host node01's");
    refused(&["delete", "nnce", &theirs], "it is not host node01's");
    refused(&["delete", "nns", &other.name()], "host node01 may not write the state of node node02");
    // Of a pool's ledger it may write its own: RBAC lets the write through, and admission looks at what is in it.
    let (pool, _) = POOLS[0];
    let what = format!("nodeippools/{pool}");
    let ledger = field.cluster.get(&["nodeippool", pool])["status"].clone();
    let next = ledger["sequence"].as_u64().expect("a sequence") + 1;
    let address = |node: Node| held[&(node.name(), pool.to_owned())].clone();
    let mut anothers = ledger["allocations"][address(own)].clone();
    anothers["sequence"] = json!(next);
    for (verb, entry) in [("release", Value::Null), ("change", anothers)] {
        let status = json!({"sequence": next, "allocations": {address(other): entry}});
        let said = patch_status(&field, own, &token, &what, &status);
        assert_eq!((&said["code"], &said["reason"]), (&json!(403), &json!("Forbidden")), "{said:#}");
        let message = said["message"].as_str().unwrap_or_default();
        let policy = "ValidatingAdmissionPolicy 'berth-agent-ledger'";
        let words = format!("host node01 may not {verb} {} of node node02", address(other));
        assert!(message.contains(policy) && message.contains(&words), "{message}");
    }
    // What no agent does.
    for arguments in [
        vec!["get", "secrets", "-A"],
        vec!["get", "pods", "-A"],
        vec!["delete", "node", "node02"],
        vec!["delete", "nodeippool", pool],
        patch(&["nncp", POLICY], r#"{"spec": {"maxUnavailable": 1}}"#),
    ] {
        refused(&arguments, "orbidden");
    }
    // And its own it may: the token is good.
    let label = r#"{"metadata": {"annotations": {"tried": "yes"}}}"#;
    let done = try_with(&field, own, &token, &patch(&["nnce", &mine], label));
    done.expect("its own may be written");
    assert_eq!(field.wait_configured(&NODES), held);
}

/// At the level at which most is said, after claims, a change, and a release.
#[test]
#[ignore = "a cluster: make test-cluster"]
fn logs_hold_no_secret() {
    let field = field();
    let before = field.wait_configured(&NODES);
    field.disturb();
    for what in WORKLOADS {
        field.set_env(what, &["BERTH_LOG_LEVEL=debug".to_owned()]);
    }
    field.wait_rolled_out();
    let (node, (pool, _)) = (NODES[0], POOLS[0]);
    let address = json!({"enabled": true, "address": [{"ipam": {"pool": pool}}]});
    let bridge = json!({"name": "br-said", "type": "linux-bridge", "state": "up", "ipv4": address});
    field.apply_policy("said", Some(node), &bridge);
    field.wait_enactment(node, "said", "Available");
    let gone = json!({"name": "br-said", "type": "linux-bridge", "state": "absent"});
    field.apply_policy("said", Some(node), &gone);
    field.wait_no_link(node, "br-said");
    field.cluster.kubectl(&["delete", "nncp", "said"]);
    assert_eq!(field.wait_configured(&NODES), before);

    // Pods of a node that is gone stay for a while, and have no log to be read.
    let of = |node: Node| ["agent", "controller"].map(|component| field.pods(component, Some(node))).concat();
    let pods: Vec<Value> = NODES.into_iter().flat_map(of).collect();
    let tokens: Vec<String> = pods.iter().map(|pod| token(&field, pod)).collect();
    // A token's header, and a key's.
    let general = ["eyJ", "PRIVATE KEY", "Bearer"];
    let secrets: Vec<&str> = tokens.iter().map(String::as_str).chain(general).collect();
    let mut said = String::new();
    for pod in pods {
        let name = pod["metadata"]["name"].as_str().expect("a name");
        let log = field.cluster.kubectl(&["-n", "berth-system", "logs", name]);
        assert!(log.lines().count() > 0, "{name} says nothing");
        assert!(!secrets.iter().any(|&secret| log.contains(secret)), "{name} says a secret");
        said += &log;
    }
    // What is said at that level alone.
    assert!(said.contains("node01: claim ClaimKey"), "{said}");
}
