//! The servers that are asked: who asks, and with what in hand.

use std::path::Path;
use std::process::Command;
use std::sync::LazyLock;

use agent::embedded::{Api, Caller};
use api_tests::RUNTIME;
use api_tests::control_plane::ControlPlane;
use api_tests::server::paths::{NODES, POLICIES, POOLS, at, node, policy, pool, status};
use api_tests::server::{Answer, JSON_PATCH, MERGE_PATCH, Server, Which};
use api_tests::wait::until;
use hyper::{Method, Request};
use kube::client::Body;
use kube::{Client, Config};
use serde_json::{Value, json};
use tower::ServiceExt;

use super::{row, table};

pub(crate) const HOST: &str = "node01";
const NAMESPACE: &str = "berth-system";
const VAPS: &str = "/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicies";

/// Of the two Nodes that there are.
pub(crate) struct Uids {
    pub(crate) node01: String,
    pub(crate) node02: String,
}

/// One who asks: a way to the server, and what else is said with each request.
pub(crate) struct Asker {
    pub(crate) server: Server,
    headers: Vec<(&'static str, String)>,
}

impl Asker {
    fn new(server: Server) -> Asker {
        Asker { server, headers: Vec::new() }
    }

    pub(crate) async fn ask(&self, method: Method, path: &str, content: &str, body: &Value) -> Answer {
        let mut request = Request::builder().method(method).uri(path).header("accept", "application/json");
        for (name, value) in &self.headers {
            request = request.header(*name, value);
        }
        let body = if body.is_null() { Vec::new() } else { body.to_string().into_bytes() };
        let request = request.header("content-type", content).body(Body::from(body)).expect("a request");
        self.server.send(request).await
    }
}

/// A server, and all who ask it.
pub(crate) struct Ground {
    pub(crate) admin: Server,
    pub(crate) uids: Uids,
    /// The agent of node01.
    pub(crate) agent: Asker,
    pub(crate) controller: Asker,
    /// An administrator, as `admin`.
    pub(crate) person: Asker,
    /// The same two, if RBAC let them do everything; nobody where there is no RBAC.
    pub(crate) unbridled: Option<(Asker, Asker)>,
    /// An agent's token that is bound to no Node, where there are tokens; and the same if RBAC let it do everything.
    pub(crate) unbound: Option<(Asker, Asker)>,
    /// The policies that are deployed.
    pub(crate) policies: Vec<String>,
}

impl Ground {
    pub(crate) fn embedded() -> Ground {
        let _inside = RUNTIME.enter();
        let api = Api::in_memory();
        let admin = Server::new(Which::Embedded, api.client());
        let uids = RUNTIME.block_on(nodes(&admin));
        let by = |caller: Caller| {
            let service = api.clone().map_request(move |mut request: Request<Body>| {
                request.extensions_mut().insert(caller.clone());
                request
            });
            Asker::new(Server::new(Which::Embedded, Client::new(service, "default")))
        };
        let agent = by(Caller::Host { name: HOST.to_owned(), elects: false });
        let controller = by(Caller::Controller);
        let person = Asker::new(admin.clone());
        Ground {
            admin,
            uids,
            agent,
            controller,
            person,
            unbridled: None,
            unbound: None,
            policies: Vec::new(),
        }
    }

    /// The real one, shared by all tests of this process.
    pub(crate) fn real() -> &'static Ground {
        static GROUND: LazyLock<Ground> = LazyLock::new(deployed);
        &GROUND
    }
}

async fn nodes(admin: &Server) -> Uids {
    let mut uids = Vec::new();
    for name in [HOST, "node02"] {
        let made = admin.post(NODES, &node(name)).await.created();
        uids.push(made["metadata"]["uid"].as_str().expect("a UID").to_owned());
    }
    let [node01, node02] = uids.try_into().expect("two Nodes");
    Uids { node01, node02 }
}

/// A control plane with what `deploy/` says, as an administrator brings it about.
fn deployed() -> Ground {
    let plane = ControlPlane::shared();
    // Objects of Nodes that never were are part of the table: nobody is to tidy them away.
    plane.pause_controllers().expect("the controllers pause");
    for folder in ["rbac", "admission"] {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../deploy").join(folder);
        let applied = Command::new(plane.kubectl())
            .arg("--kubeconfig")
            .arg(plane.kubeconfig())
            .args(["apply", "-k"])
            .arg(&folder)
            .output()
            .expect("kubectl");
        assert!(applied.status.success(), "{}", String::from_utf8_lossy(&applied.stderr));
    }
    let admin = Server::real();
    RUNTIME.block_on(async {
        let uids = nodes(&admin).await;
        let token_of = |account, bound| token(&admin, account, bound);
        let node = json!({"apiVersion": "v1", "kind": "Node", "name": HOST, "uid": uids.node01});
        let agent = with_token(plane, &token_of("berth-agent", Some(&node)).await);
        let controller = with_token(plane, &token_of("berth-controller", None).await);
        let unbound = with_token(plane, &token_of("berth-agent", None).await);
        let listed = admin.get(VAPS).await.ok();
        let named = |policy: &Value| policy["metadata"]["name"].as_str().map(str::to_owned);
        let policies = listed["items"].as_array().into_iter().flatten().filter_map(named).collect();
        let unbridled = Some((
            unbridled(&admin, "berth-agent", Some(&uids.node01)),
            unbridled(&admin, "berth-controller", None),
        ));
        let unbound = Some((unbound, self::unbridled(&admin, "berth-agent", None)));
        let person = Asker::new(admin.clone());
        let ground = Ground { admin, uids, agent, controller, person, unbridled, unbound, policies };
        wait_until_in_force(&ground).await;
        ground
    })
}

async fn token(admin: &Server, account: &str, bound: Option<&Value>) -> String {
    let mut request =
        json!({"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {"audiences": []}});
    if let Some(bound) = bound {
        request["spec"]["boundObjectRef"] = bound.clone();
    }
    let path = format!("/api/v1/namespaces/{NAMESPACE}/serviceaccounts/{account}/token");
    let made = admin.post(&path, &request).await.created();
    made["status"]["token"].as_str().expect("a token").to_owned()
}

fn with_token(plane: &ControlPlane, token: &str) -> Asker {
    let mut config: Config = plane.config();
    config.auth_info = serde_json::from_value(json!({"token": token})).expect("a token");
    let _inside = RUNTIME.enter();
    Asker::new(Server::new(Which::Real, Client::try_from(config).expect("a client")))
}

/// An account to which RBAC says yes whatever it asks: the administrator acts as it, in a group that may do all.
fn unbridled(admin: &Server, account: &str, node_uid: Option<&String>) -> Asker {
    let user = format!("system:serviceaccount:{NAMESPACE}:{account}");
    let mut headers = vec![("impersonate-user", user), ("impersonate-group", "system:masters".to_owned())];
    if let Some(uid) = node_uid {
        headers.push(("impersonate-extra-authentication.kubernetes.io%2Fnode-name", HOST.to_owned()));
        headers.push(("impersonate-extra-authentication.kubernetes.io%2Fnode-uid", uid.clone()));
    }
    Asker { server: admin.clone(), headers }
}

/// An API server takes a moment to hear of a policy, each by itself: something that each refuses is asked until it does.
async fn wait_until_in_force(ground: &Ground) {
    let admin = &ground.admin;
    admin.post(POOLS, &pool("probe")).await.created();
    admin.post(POLICIES, &policy("probe")).await.created();
    let conditions = json!({"status": {"conditions": [{"type": "Available", "status": "Unknown"}]}});
    admin.merge(&status(POLICIES, "probe"), &conditions).await.ok();
    let (unbridled, _) = ground.unbridled.as_ref().expect("RBAC");
    let uids = &ground.uids;
    let theirs = |kind: &str| table::theirs(kind, uids);
    let reset = json!([{"op": "add", "path": "/status/conditions", "value": []}]);
    let spec = json!({"spec": {"quarantine": "1m"}});
    let long = policy(&"a".repeat(64));
    let busy = json!({"spec": {"maxUnavailable": 1}});
    let everyone = &ground.person;
    let [enactments, states, slices] = table::COLLECTIONS;
    let held = table::held_slice(uids);
    row::set_up(admin, slices, &held).await;
    let held = at(slices, row::name(&held));
    let free = json!({"metadata": {"finalizers": null}});
    let (agent, controller) = (&ground.agent, &ground.controller);
    let (unbound, _) = ground.unbound.as_ref().expect("tokens");
    let (post, patch) = (Method::POST, Method::PATCH);
    let at_probe = |collection: &str| at(collection, "probe");
    for (policy, who, method, path, content, body) in [
        ("berth-agent", unbound, &post, states.to_owned(), "application/json", &theirs(states)),
        (
            "berth-agent-enactments",
            agent,
            &post,
            enactments.to_owned(),
            "application/json",
            &theirs(enactments),
        ),
        ("berth-agent-states", agent, &post, states.to_owned(), "application/json", &theirs(states)),
        ("berth-agent-slices", unbridled, &post, slices.to_owned(), "application/json", &theirs(slices)),
        (
            "berth-agent-slices-of-pools",
            unbridled,
            &post,
            slices.to_owned(),
            "application/json",
            &table::foreign_slice(uids),
        ),
        ("berth-agent-ledger", agent, &patch, status(POOLS, "probe"), JSON_PATCH, &reset),
        ("berth-agent-slots", agent, &patch, status(POLICIES, "probe"), JSON_PATCH, &reset),
        ("berth-controller", controller, &patch, at_probe(POOLS), MERGE_PATCH, &spec),
        ("berth-policies-create", everyone, &post, POLICIES.to_owned(), "application/json", &long),
        ("berth-policies-update", everyone, &patch, at_probe(POLICIES), MERGE_PATCH, &busy),
        ("berth-slices", everyone, &patch, held.clone(), MERGE_PATCH, &free),
    ] {
        assert!(ground.policies.iter().any(|deployed| deployed == policy), "{policy}: {:?}", ground.policies);
        until(&format!("{policy} in force"), || async {
            let answer = who.ask(method.clone(), &format!("{path}?dryRun=All"), content, body).await;
            let by = format!("ValidatingAdmissionPolicy '{policy}'");
            if answer.text.contains(&by) { Ok(()) } else { Err(answer.text) }
        })
        .await;
    }
    admin.delete(&at_probe(POOLS)).await.ok();
    admin.delete(&at_probe(POLICIES)).await.ok();
    row::tidy(admin, &held).await;
}
