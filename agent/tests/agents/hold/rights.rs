//! An agent that may not do all it has to says what, where people look.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::{Duration, Instant};

use k8s_openapi::api::core::v1::ServiceAccount;
use k8s_openapi::api::rbac::v1::{ClusterRole, ClusterRoleBinding, Role, RoleBinding};
use kube::api::{Api, Patch, PatchParams};
use serde_json::{Value, json};

use crate::cluster::{AGENT, NAMESPACE};
use crate::fleet::{Fleet, PATIENCE};
use crate::on::On;

/// A service account as the agents' but for this.
const LACKING: &str = "berth-agent-lacking";

/// What is left of these rules without these verbs on this resource.
fn without(rules: &impl serde::Serialize, resource: &str, verbs: &[&str]) -> Value {
    let mut rules = json!(rules);
    for rule in rules.as_array_mut().into_iter().flatten() {
        let is_it = |all: &Value| all.as_array().is_some_and(|all| all.iter().any(|one| one == resource));
        if is_it(&rule["resources"])
            && let Some(allowed) = rule["verbs"].as_array_mut()
        {
            allowed.retain(|verb| !verbs.iter().any(|one| verb == one));
        }
    }
    let allows = |rule: &Value| rule["verbs"].as_array().is_some_and(|verbs| !verbs.is_empty());
    let rules: Vec<&Value> = rules.as_array().into_iter().flatten().filter(|rule| allows(rule)).collect();
    json!(rules)
}

async fn put<K>(api: Api<K>, name: &str, mut object: Value)
where
    K: kube::Resource + Clone + serde::de::DeserializeOwned + std::fmt::Debug,
    K::DynamicType: Default,
{
    object["apiVersion"] = json!(K::api_version(&Default::default()));
    object["kind"] = json!(K::kind(&Default::default()));
    object["metadata"]["name"] = json!(name);
    let params = PatchParams::apply("test").force();
    api.patch(name, &params, &Patch::Apply(object)).await.expect("it is taken");
}

/// Where the agents have a role beside the one that is for the whole cluster: the Lease's namespace, and that of Events.
const NAMESPACES: [&str; 2] = [NAMESPACE, "default"];

/// The account has the agents' roles without these verbs on this resource.
async fn grant_all_but(fleet: &Fleet, resource: &str, verbs: &[&str]) {
    let client = fleet.on.real().client();
    put::<ServiceAccount>(Api::namespaced(client.clone(), NAMESPACE), LACKING, json!({})).await;
    let binding = |kind: &str| {
        let subject = json!({"kind": "ServiceAccount", "name": LACKING, "namespace": NAMESPACE});
        let role = json!({"apiGroup": "rbac.authorization.k8s.io", "kind": kind, "name": LACKING});
        json!({"roleRef": role, "subjects": [subject]})
    };
    let roles: Api<ClusterRole> = Api::all(client.clone());
    let whole = roles.get(AGENT).await.expect("deploy has it").rules;
    put(roles, LACKING, json!({"rules": without(&whole, resource, verbs)})).await;
    put::<ClusterRoleBinding>(Api::all(client.clone()), LACKING, binding("ClusterRole")).await;
    for namespace in NAMESPACES {
        let roles: Api<Role> = Api::namespaced(client.clone(), namespace);
        let whole = roles.get(AGENT).await.expect("deploy has it").rules;
        put(roles, LACKING, json!({"rules": without(&whole, resource, verbs)})).await;
        put::<RoleBinding>(Api::namespaced(client.clone(), namespace), LACKING, binding("Role")).await;
    }
}

/// What it answers there, if it answers.
pub(crate) fn readiness(address: &str) -> String {
    let ask = || -> std::io::Result<String> {
        let mut stream = TcpStream::connect(address)?;
        write!(stream, "GET /readyz HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n\r\n")?;
        let mut text = String::new();
        stream.read_to_string(&mut text)?;
        Ok(text)
    };
    ask().unwrap_or_default()
}

pub(crate) async fn until(what: &str, holds: impl Fn() -> bool) {
    let begun = Instant::now();
    while !holds() {
        assert!(begun.elapsed() < PATIENCE, "never {what}");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

/// What a host lacks that comes to it by a policy, and how that is said.
const LACKED: [(&str, &[&str], &str); 13] = [
    ("nodenetworkstates", &["create"], "create nodenetworkstates (apiGroup \"nmstate.io\")"),
    ("nodenetworkstates/status", &["update"], "update nodenetworkstates/status (apiGroup \"nmstate.io\")"),
    ("nodes", &["list", "watch"], "list nodes (apiGroup \"\")"),
    (
        "nodenetworkconfigurationpolicies",
        &["list", "watch"],
        "list nodenetworkconfigurationpolicies (apiGroup \"nmstate.io\")",
    ),
    (
        "nodenetworkconfigurationenactments",
        &["create"],
        "create nodenetworkconfigurationenactments (apiGroup \"nmstate.io\")",
    ),
    (
        "nodenetworkconfigurationenactments/status",
        &["patch"],
        "patch nodenetworkconfigurationenactments/status (apiGroup \"nmstate.io\")",
    ),
    ("nodeippools", &["list"], "list nodeippools (apiGroup \"nmstate.io\")"),
    (SLICES, &["create"], "create nodeipslices (apiGroup \"nmstate.io\")"),
    (EVENTS, &["create"], "create events (apiGroup \"\", namespace default)"),
    // Nobody leads any more by then.
    ("leases", &["get"], "get leases (apiGroup \"coordination.k8s.io\", namespace berth-system)"),
    ("nodeippools/status", &["patch"], "patch nodeippools/status (apiGroup \"nmstate.io\")"),
    (
        "nodenetworkconfigurationpolicies/status",
        &["patch"],
        "patch nodenetworkconfigurationpolicies/status (apiGroup \"nmstate.io\")",
    ),
    (SERVICES, &["list"], "list servicecidrs (apiGroup \"networking.k8s.io\")"),
];

/// Of these a host with a sliced pool needs the first, and any host goes on without the others.
const SLICES: &str = "nodeipslices";
const EVENTS: &str = "events";
const SERVICES: &str = "servicecidrs";

/// So many of them an agent needs before it has any policy.
const FIRST: usize = 4;

/// Verb and resource, in the log and by /readyz; and no longer when it is granted: then the host has its address. Where it does
/// without, it has it anyway.
pub(crate) async fn a_right_that_is_lacking_is_named(on: On) {
    let mut fleet = Fleet::new(on).await;
    fleet.account = LACKING;
    fleet.health = true;
    fleet.controller("controller", None).await;
    fleet.pool("pool", json!({"range": {"cidr": crate::SEEDS}})).await;
    fleet.policy("one", crate::crowd::policy()).await;
    fleet.pool("sliced", json!({"range": {"cidr": "10.20.0.0/24", "perNodeHostBits": 4}})).await;
    let mut sliced = crate::field::address_on("sliced", "eth1");
    sliced["nodeSelector"] = json!({"sliced": "yes"});
    fleet.policy("two", sliced).await;
    for (number, (resource, verbs, named)) in LACKED.into_iter().enumerate() {
        if resource == "leases" {
            fleet.stop_controller("controller");
        }
        let host = format!("h{number}");
        grant_all_but(&fleet, resource, verbs).await;
        fleet.host(&host, 2).await;
        match resource {
            SLICES => fleet.label_node(&host, "sliced", "yes").await,
            // It has nothing to tell until something is put back.
            EVENTS => {
                fleet.until_standing(&[&host], "one", "Available").await;
                let machine = &fleet.machines[&host];
                machine.ip(&format!("addr del {} dev eth0", machine.addresses("eth0")[0]));
            }
            _ => {}
        }
        let words = format!("lacks the right to {named}");
        until(&words, || fleet.log(&host).contains(&words)).await;
        let address = fleet.health_address(&host);
        let answer = readiness(&address);
        assert!(answer.contains(&words), "{answer}");
        // Who can't even begin is not ready.
        assert!(number >= FIRST || answer.starts_with("HTTP/1.1 503"), "{answer}");
        if ![EVENTS, SERVICES].contains(&resource) {
            grant_all_but(&fleet, "nothing", &[]).await;
            let answer = || readiness(&address);
            until("granted", || answer().starts_with("HTTP/1.1 200") && !answer().contains("lacks")).await;
        }
        fleet.until_standing(&[&host], "one", "Available").await;
        if resource == SLICES {
            fleet.until_standing(&[&host], "two", "Available").await;
        }
    }
    fleet.agree().await;
}
