//! What somebody can do who has an agent's token: what that node's agent can, and no more.

use std::fs;

use cluster_tests::{Node, answer, run};
use serde_json::{Value, json};

use crate::field::{Field, NODES, POLICY, POOLS, field};

/// The token that a pod was given by its kubelet, read where its process finds it.
fn token(field: &Field, node: Node) -> String {
    let pod = &field.pods("agent", Some(node))[0];
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

#[test]
#[ignore = "a cluster: make test-cluster"]
fn a_pods_token_is_good_for_its_own_node_alone() {
    let field = field();
    let held = field.wait_configured(&NODES);
    let (own, other) = (NODES[0], NODES[1]);
    let token = token(&field, own);
    let refused = |arguments: &[&str], words: &str| match try_with(&field, own, &token, arguments) {
        Ok(done) => panic!("{arguments:?} is allowed: {done}"),
        Err(said) => assert!(said.contains(words), "{arguments:?}: {said}"),
    };

    let enactment = |node: Node| format!("{}.{POLICY}", node.name());
    let (theirs, mine) = (enactment(other), enactment(own));
    let file = |kind: &str, name: &str, status: Value| -> String {
        let path = field.cluster.folder().join("tried.json");
        let object = json!({"apiVersion": "nmstate.io/v1", "kind": kind, "metadata": {"name": name}, "status": status});
        fs::write(&path, object.to_string()).expect("a file");
        path.display().to_string()
    };
    // In one request, as an agent's: kubectl's own patch would read the status first, which no agent may.
    let says = file("NodeNetworkConfigurationEnactment", &theirs, json!({"conditions": []}));
    let apply =
        ["apply", "--server-side", "--force-conflicts", "--subresource=status", "--validate=false", "-f"];
    refused(&[&apply[..], &[&says]].concat(), "it is not host node01's");
    refused(&["delete", "nnce", &theirs], "it is not host node01's");
    refused(&["delete", "nns", &other.name()], "host node01 may not write the state of node node02");
    // Every address of a pool, freed. kubectl reads it first, which no agent does in that way; what is said of the write itself
    // is asked in `tests/api`.
    let (pool, _) = POOLS[0];
    let freed = file("NodeIPPool", pool, json!({"allocations": {}}));
    refused(&[&apply[..], &[&freed]].concat(), "orbidden");
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

    // What was said meanwhile has none of it. Pods of a node that is gone stay for a while, and have no log to be read.
    let of = |node: Node| ["agent", "controller"].map(|component| field.pods(component, Some(node))).concat();
    for pod in NODES.into_iter().flat_map(of) {
        let name = pod["metadata"]["name"].as_str().expect("a name");
        let log = field.cluster.kubectl(&["-n", "berth-system", "logs", name]);
        // A token's header, and a key's.
        for secret in [token.as_str(), "eyJ", "PRIVATE KEY", "Bearer"] {
            assert!(!log.contains(secret), "{name} says a secret");
        }
    }
}
