//! What RBAC gives, and what it must never; and a token that is of no node.

use api_tests::RUNTIME;
use api_tests::server::paths::{
    ENACTMENTS, EVENTS, POLICIES, POOLS, SLICES, STATES, at, enactment, event, policy, pool, state, status,
};
use api_tests::server::{JSON_PATCH, Server};
use hyper::Method;
use serde_json::{Value, json};

use super::ground::{Asker, Ground, HOST};

/// Where roles are.
const ROLES: [&str; 3] = [
    "/apis/rbac.authorization.k8s.io/v1/clusterroles/berth-",
    "/apis/rbac.authorization.k8s.io/v1/namespaces/berth-system/roles/berth-",
    "/apis/rbac.authorization.k8s.io/v1/namespaces/default/roles/berth-",
];

/// It reads, and writes nothing: neither what an agent's token may, nor what it might if RBAC let it do everything. What there
/// is, is there afterwards as it was.
#[test]
fn a_token_without_a_node_writes_nothing() {
    let ground = Ground::real();
    let (token, unbridled) = ground.unbound.as_ref().expect("tokens");
    RUNTIME.block_on(async {
        let mut there = Vec::new();
        for (kind, object) in [
            (POOLS, pool("unbound")),
            (POLICIES, policy("unbound")),
            (ENACTMENTS, enactment("node02.unbound")),
            (STATES, state("unbound")),
            (SLICES, slice("10.0.0.0")),
            (EVENTS, event("unbound", HOST)),
        ] {
            let name = object["metadata"]["name"].as_str().expect("a name").to_owned();
            there.push((at(kind, &name), ground.admin.post(kind, &object).await.created()));
        }
        for (who, write) in [(token, with_a_right()), (unbridled, with_a_right()), (unbridled, without_one())]
        {
            for (method, path, content, mut body) in write {
                if method == Method::PUT {
                    // Of what there is now, as whoever replaces something says.
                    let now = ground.admin.get(path.trim_end_matches("/status")).await.ok();
                    body["metadata"]["resourceVersion"] = now["metadata"]["resourceVersion"].clone();
                }
                refused(who, method, &path, content, &body).await;
            }
        }
        token.server.get(POOLS).await.ok();
        for (path, before) in there {
            assert_eq!(ground.admin.get(&path).await.ok(), before, "{path}");
            ground.admin.delete(&path).await.ok();
        }
    });
}

async fn refused(who: &Asker, method: Method, path: &str, content: &str, body: &Value) {
    let told =
        "this token is bound to no node: use that of the agent's pod, or one that is bound to the Node";
    let refused = who.ask(method.clone(), path, content, body).await.refused(403, "Forbidden");
    let message = refused["message"].as_str().unwrap_or_default();
    assert!(message.ends_with(told), "{method} {path}: {message}");
}

/// A real API server keeps who wrote what and when as whoever writes says it, in everything that others list; one year that their
/// types have no place for, and they list nothing any more. (Beside a status it keeps its own, and the embedded API none at all.)
#[test]
fn nothing_is_written_that_was_written_after_the_last_year() {
    let ground = Ground::real();
    let uid = &ground.uids.node01;
    let wrote = |time: &str| {
        let fields = json!({"f:metadata": {"f:labels": {"f:x": {}}}});
        let entry = json!({"manager": "x", "operation": "Update", "apiVersion": "nmstate.io/v1", "time": time,
            "fieldsType": "FieldsV1", "fieldsV1": fields});
        json!([{"op": "add", "path": "/metadata/managedFields", "value": [entry]}])
    };
    let mut own = slice("10.0.1.0");
    own["spec"]["node"] = HOST.into();
    own["spec"]["nodeUID"] = uid.as_str().into();
    let mut ours = enactment(&format!("{HOST}.written"));
    let owner = json!({"apiVersion": "v1", "kind": "Node", "name": HOST, "uid": uid});
    let labels = json!({"nmstate.io/node": HOST, "nmstate.io/policy": "written"});
    (ours["metadata"]["ownerReferences"], ours["metadata"]["labels"]) = (json!([owner]), labels);
    RUNTIME.block_on(async {
        for (kind, object) in [(SLICES, own), (ENACTMENTS, ours)] {
            let made = ground.admin.post(kind, &object).await.created();
            let path = at(kind, made["metadata"]["name"].as_str().expect("a name"));
            let write = async |time| ground.agent.ask(Method::PATCH, &path, JSON_PATCH, &wrote(time)).await;
            let refused = write("9999-12-31T23:59:59Z").await.refused(403, "Forbidden");
            let message = refused["message"].as_str().unwrap_or_default();
            assert!(
                message.ends_with("host node01 may not say that something is written after 2999"),
                "{message}"
            );
            let kept = write("2999-12-31T23:59:59Z").await.ok();
            assert_eq!(kept["metadata"]["managedFields"][0]["time"], "2999-12-31T23:59:59Z", "{kept}");
            ground.admin.delete(&path).await.ok();
        }
    });
}

type Attempt = (Method, String, &'static str, Value);

/// Of a pool that no other test has.
fn slice(first: &str) -> Value {
    json!({
        "apiVersion": "nmstate.io/v1", "kind": "NodeIPSlice", "metadata": {"name": format!("unbound.{first}")},
        "spec": {"pool": "unbound", "cidr": format!("{first}/28"), "node": "node02", "nodeUID": "any"},
    })
}

/// What the agents' role lets them ask for.
fn with_a_right() -> Vec<Attempt> {
    const PLAIN: &str = "application/json";
    let conditions = || json!([{"op": "add", "path": "/status", "value": {"conditions": []}}]);
    let free = json!([{"op": "add", "path": "/metadata/finalizers", "value": []}]);
    let count = json!([{"op": "add", "path": "/count", "value": 2}]);
    let sequence = json!([{"op": "add", "path": "/status", "value": {"sequence": 1}}]);
    let (there, state_there, slice_there) = ("node02.unbound", "unbound", "unbound.10.0.0.0");
    vec![
        (Method::POST, ENACTMENTS.to_owned(), PLAIN, enactment("node02.web")),
        (Method::PATCH, at(ENACTMENTS, there), JSON_PATCH, free),
        (Method::PATCH, status(ENACTMENTS, there), JSON_PATCH, conditions()),
        (Method::DELETE, at(ENACTMENTS, there), PLAIN, Value::Null),
        (Method::POST, STATES.to_owned(), PLAIN, state("another")),
        (Method::PUT, status(STATES, state_there), PLAIN, reported(state_there)),
        (Method::DELETE, at(STATES, state_there), PLAIN, Value::Null),
        (Method::POST, EVENTS.to_owned(), PLAIN, event("another", HOST)),
        (Method::PATCH, at(EVENTS, "unbound"), JSON_PATCH, count),
        (Method::PATCH, status(POOLS, "unbound"), JSON_PATCH, conditions()),
        (Method::PATCH, status(POLICIES, "unbound"), JSON_PATCH, conditions()),
        (Method::POST, SLICES.to_owned(), PLAIN, slice("10.0.0.16")),
        (Method::PATCH, at(SLICES, slice_there), JSON_PATCH, kept()),
        (Method::PATCH, status(SLICES, slice_there), JSON_PATCH, sequence),
        (Method::DELETE, at(SLICES, slice_there), PLAIN, Value::Null),
    ]
}

fn kept() -> Value {
    json!([{"op": "add", "path": "/metadata/finalizers", "value": ["nmstate.io/addresses"]}])
}

/// What it doesn't.
fn without_one() -> Vec<Attempt> {
    const PLAIN: &str = "application/json";
    vec![
        (Method::POST, POOLS.to_owned(), PLAIN, pool("another")),
        (Method::PATCH, at(POOLS, "unbound"), JSON_PATCH, kept()),
        (Method::DELETE, at(POOLS, "unbound"), PLAIN, Value::Null),
        (Method::POST, POLICIES.to_owned(), PLAIN, policy("another")),
        (Method::DELETE, at(POLICIES, "unbound"), PLAIN, Value::Null),
        (Method::DELETE, at(EVENTS, "unbound"), PLAIN, Value::Null),
    ]
}

fn reported(name: &str) -> Value {
    let mut state = state(name);
    state["status"] = json!({"currentState": {"interfaces": []}});
    state
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
        ("delete", ours, "nodeippools", ""),
        ("create", ours, "nodenetworkconfigurationpolicies", ""),
        ("delete", ours, "nodenetworkconfigurationpolicies", ""),
        ("get", "", "secrets", "berth-system"),
        ("create", "", "pods", "berth-system"),
        ("create", "", "serviceaccounts/token", "berth-system"),
        ("patch", "apiextensions.k8s.io", "customresourcedefinitions", ""),
        ("patch", "admissionregistration.k8s.io", "validatingadmissionpolicies", ""),
        ("patch", "rbac.authorization.k8s.io", "clusterroles", ""),
        ("update", "coordination.k8s.io", "leases", "kube-node-lease"),
    ];
    // A controller makes the pools of its configuration, and takes annotations off policies; admission bounds both.
    let not_agents = [
        ("create", ours, "nodeippools", ""),
        ("patch", ours, "nodenetworkconfigurationpolicies", ""),
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
            let own: &[_] = if account == "agent" { &not_agents } else { &not_controllers };
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
