//! What RBAC gives, and what it must never; and a token that is of no node.

use api_tests::RUNTIME;
use api_tests::server::paths::{
    ENACTMENTS, EVENTS, POLICIES, POOLS, STATES, enactment, event, policy, pool, status,
};
use api_tests::server::{JSON_PATCH, Server};
use hyper::Method;
use serde_json::{Value, json};

use super::ground::{Ground, HOST};
use super::table;

/// Where roles are.
const ROLES: [&str; 3] = [
    "/apis/rbac.authorization.k8s.io/v1/clusterroles/berth-",
    "/apis/rbac.authorization.k8s.io/v1/namespaces/berth-system/roles/berth-",
    "/apis/rbac.authorization.k8s.io/v1/namespaces/default/roles/berth-",
];

/// Each reads one thing that it writes by, and writes nothing.
#[test]
fn a_token_without_a_node_writes_nothing() {
    let ground = Ground::real();
    let told =
        "this token is bound to no node: use that of the agent's pod, or one that is bound to the Node";
    let unbound = ground.unbound.as_ref().expect("tokens");
    RUNTIME.block_on(async {
        ground.admin.post(POOLS, &pool("unbound")).await.created();
        ground.admin.post(POLICIES, &policy("unbound")).await.created();
        let conditions = json!([{"op": "add", "path": "/status/conditions", "value": []}]);
        let theirs = |kind: &str| table::theirs(kind, &ground.uids);
        ground.admin.post(ENACTMENTS, &enactment("node02.unbound")).await.created();
        let there = format!("{ENACTMENTS}/node02.unbound");
        let (post, patch, delete) = (Method::POST, Method::PATCH, Method::DELETE);
        for (method, path, content, body) in [
            (&post, ENACTMENTS.to_owned(), "application/json", theirs(ENACTMENTS)),
            (&post, STATES.to_owned(), "application/json", theirs(STATES)),
            (&delete, there.clone(), "application/json", Value::Null),
            (&post, EVENTS.to_owned(), "application/json", event("unbound", HOST)),
            (&patch, status(POOLS, "unbound"), JSON_PATCH, conditions.clone()),
            (&patch, status(POLICIES, "unbound"), JSON_PATCH, conditions),
        ] {
            let refused = unbound.ask(method.clone(), &path, content, &body).await.refused(403, "Forbidden");
            let message = refused["message"].as_str().unwrap_or_default();
            assert!(message.ends_with(told), "{path}: {message}");
        }
        unbound.server.get(POOLS).await.ok();
        ground.admin.get(&there).await.ok();
    });
}

async fn rules(admin: &Server, account: &str) -> Vec<Value> {
    let mut all = Vec::new();
    for roles in ROLES {
        let role = admin.get(&format!("{roles}{account}")).await.ok();
        all.extend(role["rules"].as_array().cloned().unwrap_or_default());
    }
    all
}

#[test]
fn no_right_is_given_to_everything() {
    let ground = Ground::real();
    RUNTIME.block_on(async {
        for account in ["agent", "controller"] {
            let rules = rules(&ground.admin, account).await;
            assert!(rules.len() > 8, "{account}: {rules:?}");
            for rule in rules {
                let text = rule.to_string();
                assert!(!text.contains('*') && !text.contains("deletecollection"), "{account}: {text}");
            }
        }
    });
}

/// Whether RBAC gives an account a right: verb, group, resource with subresource, namespace.
async fn has(
    admin: &Server,
    account: &str,
    (verb, group, resource, namespace): (&str, &str, &str, &str),
) -> bool {
    let (resource, subresource) = resource.split_once('/').unwrap_or((resource, ""));
    let review = json!({
        "apiVersion": "authorization.k8s.io/v1", "kind": "SubjectAccessReview",
        "spec": {
            "user": format!("system:serviceaccount:berth-system:berth-{account}"),
            "resourceAttributes": {"verb": verb, "group": group, "resource": resource, "subresource": subresource, "namespace": namespace},
        },
    });
    let path = "/apis/authorization.k8s.io/v1/subjectaccessreviews";
    admin.post(path, &review).await.created()["status"]["allowed"] == true
}

#[test]
fn what_must_never_be_given_is_not() {
    let ground = Ground::real();
    let ours = "nmstate.io";
    let nobody = [
        // Kubelets register Nodes; deleting one is an administrator's word.
        ("create", "", "nodes", ""),
        ("patch", "", "nodes", ""),
        ("patch", "", "nodes/status", ""),
        ("delete", "", "nodes", ""),
        ("deletecollection", ours, "nodenetworkconfigurationenactments", ""),
        ("deletecollection", ours, "nodenetworkstates", ""),
        ("deletecollection", ours, "nodeipslices", ""),
        ("create", ours, "nodeippools", ""),
        ("delete", ours, "nodeippools", ""),
        ("create", ours, "nodenetworkconfigurationpolicies", ""),
        ("patch", ours, "nodenetworkconfigurationpolicies", ""),
        ("delete", ours, "nodenetworkconfigurationpolicies", ""),
        ("get", "", "secrets", "berth-system"),
        ("create", "", "pods", "berth-system"),
        ("create", "", "serviceaccounts/token", "berth-system"),
        ("patch", "apiextensions.k8s.io", "customresourcedefinitions", ""),
        ("patch", "admissionregistration.k8s.io", "validatingadmissionpolicies", ""),
        ("patch", "rbac.authorization.k8s.io", "clusterroles", ""),
        ("update", "coordination.k8s.io", "leases", "kube-node-lease"),
    ];
    let not_agents = [
        ("patch", ours, "nodeippools", ""),
        ("watch", ours, "nodeippools", ""),
        ("create", "coordination.k8s.io", "leases", "berth-system"),
        ("list", "coordination.k8s.io", "leases", "berth-system"),
    ];
    let not_controllers = [
        ("create", ours, "nodenetworkconfigurationenactments", ""),
        ("delete", ours, "nodenetworkconfigurationenactments", ""),
        ("update", ours, "nodenetworkstates/status", ""),
        ("delete", ours, "nodenetworkstates", ""),
    ];
    RUNTIME.block_on(async {
        for account in ["agent", "controller"] {
            let own = if account == "agent" { &not_agents } else { &not_controllers };
            for right in nobody.iter().chain(own) {
                assert!(!has(&ground.admin, account, *right).await, "{account}: {right:?}");
            }
            assert!(
                has(&ground.admin, account, ("patch", ours, "nodeippools/status", "")).await,
                "{account}"
            );
        }
    });
}
