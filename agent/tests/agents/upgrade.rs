//! A cluster that kubernetes-nmstate was on: our CRDs over its own, then controller and agent. What it left is taken over; where its
//! CRDs stay, that is said.

use api_tests::control_plane::{Kinds, Options};
use api_tests::kubernetes_nmstate::Whose::{Ours, Theirs};
use api_tests::kubernetes_nmstate::{OURS, make, put};
use api_tests::server::paths::{ENACTMENTS, STATES, at};
use api_tests::server::{Server, Which};
use serde_json::{Value, json};

use crate::SEEDS;
use crate::cluster::Cluster;
use crate::field::{Field, Host};
use crate::fleet::Fleet;
use crate::hold::{readiness, until};
use crate::on::{self, On};

#[test]
fn what_kubernetes_nmstate_left_is_taken_over() {
    on::own(&Options { kinds: Kinds::None, ..Options::default() }, taken_over);
}

async fn taken_over(real: &'static Cluster) {
    put(&real.plane, Theirs, &["create"]).await;
    let s = Server::new(Which::Real, real.client());
    real.node("node01").await;
    for object in left() {
        make(&s, &object).await;
    }
    let before = s.get(ENACTMENTS).await.ok()["items"].as_array().expect("items").clone();
    let state = s.get(&at(STATES, "node01")).await.ok();
    put(&real.plane, Ours, &["apply", "--server-side", "--force-conflicts"]).await;
    real.install();

    let field = Field::new(On::Real(real)).await;
    let mut host = field.machine("node01", 3);
    // What the policy found is no longer what it would find: it made it so.
    host.ip("link set eth1 mtu 1400");
    field.start(&mut host).await;
    for policy in ["once", "failed", "nothing", "pooled"] {
        let anew = |own: &Value| {
            let available = &own["status"]["conditions"][0];
            own["status"]["policyUID"].is_string() && available["status"] == "True"
        };
        field.until_enactment(&host, policy, "Berth's, and Available", anew).await;
        let done = |policy: &Value| {
            let conditions = policy["status"]["conditions"].as_array().cloned().unwrap_or_default();
            let said = |one: &Value| one["type"] == "Available" && one["status"] == "True";
            conditions.iter().any(|one| said(one) && one["message"] == "1/1 nodes successfully configured")
        };
        let policy = field.until_policy(policy, "Available", done).await;
        for count in ["unavailableNodeCountMap", "unavailableNodeCount", "lastUnavailableNodeCountUpdate"] {
            assert!(policy["status"][count].is_null(), "no slot is left: {policy:#}");
        }
    }
    let said =
        real.plane.run_kubectl(&["wait", "nncp", "--all", "--for=condition=Available", "--timeout=60s"]);
    assert_eq!(said.matches("condition met").count(), 4, "{said}");
    assert!(has_mtu(&host, "eth1", 1400), "as it was");
    assert!(has_mtu(&host, "eth0", 1450), "what failed there is done");
    adopted(&field, &host, &before).await;
    reported(&field, &host, &state).await;
    field.until_no_enactment(&host, "gone").await;
    pooled(&field, &host).await;
    field.agree().await;
}

/// As Helm would leave them, which puts no CRD over one that is there: its own stay, ours that are new are made. It is said once where
/// people look, and nothing is written again and again; with our CRDs over them the host goes on by itself.
#[test]
fn crds_that_are_still_kubernetes_nmstates_are_told_of() {
    on::own(&Options { kinds: Kinds::None, ..Options::default() }, left_out);
}

async fn left_out(real: &'static Cluster) {
    put(&real.plane, Theirs, &["create"]).await;
    for new in ["nodeippool", "nodeipslice"] {
        real.plane.run_kubectl(&["apply", "-f", &format!("{OURS}/{new}.yaml")]);
    }
    real.plane.run_kubectl(&["wait", "--for=condition=Established", "crd", "--all", "--timeout=60s"]);
    real.install();
    let mut fleet = Fleet::new(On::Real(real)).await;
    fleet.health = true;
    fleet.controller("controller", None).await;
    fleet.pool("pool", json!({"range": {"cidr": SEEDS}})).await;
    fleet.policy("one", crate::crowd::policy()).await;
    fleet.host("node01", 1).await;
    let words = "the API leaves out status.stamp of what is written: the CRD nodenetworkstates.nmstate.io";
    until(words, || fleet.log("node01").contains(words)).await;
    let address = fleet.health_address("node01");
    until("on readyz", || readiness(&address).contains(words)).await;
    assert!(readiness(&address).starts_with("HTTP/1.1 503"));

    put(&real.plane, Ours, &["apply", "--server-side", "--force-conflicts"]).await;
    fleet.until_standing(&["node01"], "one", "Available").await;
    until("no longer", || readiness(&address).starts_with("HTTP/1.1 200")).await;
    assert!(!readiness(&address).contains("leaves out"));
    assert_eq!(fleet.log("node01").matches(words).count(), 1);

    // Its operator puts them back, by mistake: at the next write that is told, the host keeps what it holds, and is mended the same way.
    let has = fleet.machines["node01"].addresses("eth0");
    put(&real.plane, Theirs, &["replace"]).await;
    real.plane.run_kubectl(&["label", "nns", "node01", "nmstate.io/force-nns-refresh=1"]);
    until("again", || fleet.log("node01").matches(words).count() == 2).await;
    put(&real.plane, Ours, &["apply", "--server-side", "--force-conflicts"]).await;
    until("no longer", || !readiness(&address).contains("leaves out")).await;
    assert_eq!(fleet.machines["node01"].addresses("eth0"), has);
    assert_eq!(fleet.log("node01").matches(words).count(), 2);
    fleet.until_standing(&["node01"], "one", "Available").await;
    fleet.agree().await;
}

fn has_mtu(host: &Host, card: &str, mtu: u32) -> bool {
    host.ip(&format!("link show dev {card}")).contains(&format!("mtu {mtu} "))
}

/// The same objects, with what others rely on, and of this policy from now on.
async fn adopted(field: &Field, host: &Host, before: &[Value]) {
    for policy in ["once", "failed", "pooled"] {
        let name = format!("node01.{policy}");
        let was = before.iter().find(|one| one["metadata"]["name"] == name.as_str()).expect("it was there");
        let now = field.enactment(host, policy).await;
        for part in ["uid", "labels", "ownerReferences", "creationTimestamp"] {
            assert_eq!(now["metadata"][part], was["metadata"][part], "{name}");
        }
        assert!(now["status"]["policyUID"].is_string(), "{now:#}");
        assert_eq!(now["status"]["retryCount"], json!({"1": 0}), "{now:#}");
        assert_eq!(now["status"]["capturedStates"], was["status"]["capturedStates"], "{name}: time and all");
    }
    let once = field.enactment(host, "once").await;
    assert_eq!(once["status"]["desiredState"]["interfaces"][0]["name"], "eth1", "from what was kept");
    assert_eq!(once["status"]["features"], json!(["static-route"]), "of this very state");
}

/// The report is the host's, not what was last said of it there.
async fn reported(field: &Field, host: &Host, before: &Value) {
    let now = field.until_state(host, "Berth's", |state| state["status"]["stamp"].is_string()).await;
    assert_eq!(now["metadata"]["uid"], before["metadata"]["uid"]);
    assert!(now["status"]["hostNetworkManagerVersion"].is_null(), "{now:#}");
    let interfaces = now["status"]["currentState"]["interfaces"].as_array().expect("interfaces");
    let has = |name: &str| interfaces.iter().any(|one| one["name"] == name);
    assert!(has("eth1") && !has("br1"), "{interfaces:#?}");
}

/// A policy of before is edited, to take its address from a pool: the enactment is kept from then on, as any that holds one.
async fn pooled(field: &Field, host: &Host) {
    field.pool("traffic-1", json!({"range": {"cidr": SEEDS}})).await;
    let spec = json!({"desiredState": {"interfaces": [{"name": "eth2", "type": "veth", "state": "up",
        "ipv4": {"enabled": true, "address": [{"ipam": {"pool": "traffic-1"}}]}}]}});
    field.try_edit_policy("pooled", spec).await.expect("it is not in progress");
    host.wait_until("an address", || host.addresses("eth2").len() == 1).await;
    let own = field.enactment(host, "pooled").await;
    assert_eq!(own["metadata"]["finalizers"], json!(["nmstate.io/addresses"]));
    shown(&field.on.real().plane.run_kubectl(&["get", "nip"]));
    field.delete_policy("pooled").await;
    field.until_no_enactment(host, "pooled").await;
    assert!(host.addresses("eth2").is_empty());
}

/// A pool of which one address is given, as kubectl shows it.
fn shown(pools: &str) {
    let lines: Vec<Vec<&str>> = pools.lines().map(|line| line.split_whitespace().collect()).collect();
    let [head, row] = lines.as_slice() else { panic!("one pool: {pools}") };
    assert_eq!(head[..], ["NAME", "CIDR", "CAPACITY", "ALLOCATED", "AVAILABLE", "STATUS", "REASON", "AGE"]);
    assert_eq!(row[..7], ["traffic-1", SEEDS, "254", "1", "253", "True", "ReconciledPool"], "{pools}");
}

fn veth(name: &str, mtu: u32) -> Value {
    json!({"interfaces": [{"name": name, "type": "veth", "state": "up", "mtu": mtu}]})
}

fn conditions(types: &[&str], holds: &str, reason: &str) -> Value {
    let one = |kind: &&str| {
        json!({"type": kind, "status": if *kind == holds { "True" } else { "False" }, "reason": reason,
            "lastHeartbeatTime": "2026-03-02T10:00:00Z", "lastTransitionTime": "2026-03-02T10:00:00Z"})
    };
    types.iter().map(one).collect()
}

fn policy(name: &str, spec: &Value, holds: &str, reason: &str, slots: &Value) -> Value {
    let conditions = conditions(&["Available", "Degraded", "Progressing", "Ignored"], holds, reason);
    json!({"apiVersion": "nmstate.io/v1", "kind": "NodeNetworkConfigurationPolicy", "metadata": {"name": name},
        "spec": spec, "status": {"conditions": conditions, "unavailableNodeCountMap": slots}})
}

fn enactment(policy: &str, holds: &str, reason: &str, status: &Value) -> Value {
    let types = ["Available", "Failing", "Progressing", "Pending", "Aborted"];
    let mut object = json!({
        "apiVersion": "nmstate.io/v1beta1", "kind": "NodeNetworkConfigurationEnactment",
        "metadata": {
            "name": format!("node01.{policy}"),
            "labels": {"nmstate.io/node": "node01", "nmstate.io/policy": policy, "app.kubernetes.io/part-of": "cluster"},
            "ownerReferences": [{"apiVersion": "v1", "kind": "Node", "name": "node01", "uid": ""}],
        },
        "status": status,
    });
    object["status"]["policyGeneration"] = json!(1);
    object["status"]["conditions"] = conditions(&types, holds, reason);
    object
}

/// What handlers, operator and users leave: a policy in force whose captures would find nothing now, one that failed for
/// good and never gave its slot back, one without a spec, one to be edited; an enactment whose policy went while its node
/// was off; and a report.
fn left() -> Vec<Value> {
    let once = json!({"capture": {"nic": "interfaces.mtu == 1450"}, "desiredState": {"interfaces": [
        {"name": "{{ capture.nic.interfaces.0.name }}", "type": "veth", "state": "up", "mtu": 1400},
    ], "routes": {"config": []}}});
    let found = json!({"nic": {
        "state": {"interfaces": [{"name": "eth1", "type": "veth", "state": "up", "mtu": 1450}]},
        "metaInfo": {"version": "0", "time": "2026-03-02T10:00:00Z"},
    }});
    let (good, bad) = ("SuccessfullyConfigured", "FailedToConfigure");
    let report = json!({"interfaces": [{"name": "br1", "type": "linux-bridge", "state": "up"}]});
    let mut nothing = policy("nothing", &Value::Null, "Available", good, &json!({}));
    nothing.as_object_mut().expect("an object").remove("spec");
    let states = json!({
        "once": {"capturedStates": found, "desiredState": veth("eth1", 1400), "features": ["lldp"]},
        "failed": {"desiredState": veth("eth0", 1450), "retryCount": {"1": 5}},
        "pooled": {"desiredState": veth("eth2", 1500)},
        "gone": {"desiredState": {}},
    });
    let mut failed =
        policy("failed", &json!({"desiredState": veth("eth0", 1450)}), "Degraded", bad, &json!({"1": 1}));
    failed["status"]["unavailableNodeCount"] = json!(1);
    failed["status"]["lastUnavailableNodeCountUpdate"] = json!("2026-03-02T10:00:00Z");
    vec![
        policy("once", &once, "Available", good, &json!({})),
        failed,
        nothing,
        policy("pooled", &json!({"desiredState": veth("eth2", 1500)}), "Available", good, &json!({})),
        enactment("once", "Available", good, &states["once"]),
        enactment("failed", "Failing", bad, &states["failed"]),
        enactment("pooled", "Available", good, &states["pooled"]),
        enactment("gone", "Available", good, &states["gone"]),
        json!({"apiVersion": "nmstate.io/v1beta1", "kind": "NodeNetworkState", "metadata": {
            "name": "node01", "labels": {"nmstate.io/force-nns-refresh": "1765432100987654321"},
            "ownerReferences": [{"apiVersion": "v1", "kind": "Node", "name": "node01", "uid": ""}],
        }, "status": {"currentState": report, "hostNetworkManagerVersion": "1.52.0"}}),
    ]
}
