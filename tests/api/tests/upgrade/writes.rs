//! What is written to objects of kubernetes-nmstate once our CRDs are there: by Berth, by their owners, by nobody again.

use api_tests::server::Server;
use api_tests::server::paths::{ENACTMENTS, POLICIES, STATES, at};
use crds::Kind;
use serde_json::{Value, json};

use super::Known;

/// Fields of a status that only Berth has.
pub(super) const BERTHS: [&str; 6] =
    ["unavailableNodes", "abortedGeneration", "policyUID", "ippool", "stamp", "pooledAddresses"];

/// Policies that kubernetes-nmstate's schema takes and ours does not, each for the field that is named.
fn beyond() -> [(&'static str, Value, &'static str); 3] {
    let long = format!("interfaces.description==\"{}\"", "x".repeat(5000));
    [
        ("long-capture", json!({"capture": {"long": long}}), "spec.capture.long"),
        ("odd-selector", json!({"nodeSelector": {"rack": "rack 1"}}), "spec.nodeSelector"),
        // There it means a branch of the state that never is.
        ("half-a-pool", json!({"capture": {"branch": "ippool.traffic-1"}}), "spec.capture"),
    ]
}

fn policy(name: &str, spec: &Value) -> Value {
    json!({
        "apiVersion": "nmstate.io/v1", "kind": "NodeNetworkConfigurationPolicy", "metadata": {"name": name},
        "spec": spec,
    })
}

pub(super) fn refused_by_ours() -> Vec<Value> {
    beyond().iter().map(|(name, spec, _)| policy(name, spec)).collect()
}

/// One of each kind gets what Berth writes.
pub(super) async fn of_berth(s: &Server, known: &mut Known) {
    let request = json!({"traffic-1": {"requests": {"address": {"id": "a1", "want": true}}}});
    let writes = [
        (
            at(&POLICIES.replace("v1", "v1beta1"), "bond0-storage"),
            json!({"unavailableNodes": {"node02": 1}, "abortedGeneration": 1}),
        ),
        (at(ENACTMENTS, "node01.br1-over-default-nic"), json!({"policyUID": "some", "ippool": request})),
        (at(STATES, "node01"), json!({"stamp": "s1", "pooledAddresses": [{"ip": "10.10.10.8"}]})),
    ];
    for (path, status) in writes {
        let before = known.get(&path).unwrap_or_else(|| panic!("{path}"));
        let now = s.merge(&format!("{path}/status"), &json!({"status": status})).await.ok();
        for field in ["uid", "creationTimestamp", "labels", "ownerReferences"] {
            assert_eq!(now["metadata"][field], before["metadata"][field], "{path}");
        }
        assert_eq!(now["spec"], before["spec"], "{path}");
        known.insert(path, now);
    }
}

/// A label, a status, and another field of a spec: of whatever there is, also of what would be refused today. A rule is not
/// asked again of what stays as it was.
pub(super) async fn anything_can_be_written_again(s: &Server, known: &Known) {
    for (path, before) in known {
        let mut now = s.merge(path, &json!({"metadata": {"labels": {"seen": "yes"}}})).await.ok();
        assert_eq!(now["metadata"]["uid"], before["metadata"]["uid"], "{path}");
        if !now["status"]["conditions"].is_array() {
            now["status"]["conditions"] = json!([]);
        }
        let conditions = now["status"]["conditions"].as_array_mut().expect("conditions");
        conditions.push(json!({"type": "Seen", "status": "True"}));
        let written = s.put(&format!("{path}/status"), &now).await.ok();
        assert_eq!(written["status"], now["status"], "{path}");
        if before["kind"] == Kind::NodeNetworkConfigurationPolicy.name() {
            let edited = s.merge(path, &json!({"spec": {"maxUnavailable": 7}})).await.ok();
            let mut wanted = written["spec"].clone();
            wanted["maxUnavailable"] = json!(7);
            assert_eq!(edited["spec"], wanted, "{path}");
        }
    }
}

/// What is there stays as it is ([`anything_can_be_written_again`]); another like it, or a change to another of the kind, is
/// refused by the field.
pub(super) async fn what_ours_would_refuse_stays_usable(s: &Server) {
    for (name, spec, field) in beyond() {
        let refused = s.post(&format!("{POLICIES}?dryRun=All"), &policy("another", &spec)).await;
        let causes = refused.refused(422, "Invalid")["details"]["causes"].clone();
        let fields: Vec<&Value> =
            causes.as_array().expect("causes").iter().map(|cause| &cause["field"]).collect();
        assert!(fields.contains(&&json!(field)), "{name}: {causes}");
        // Mended, it is like any other; captures are for ever.
        let mended = s.merge(&at(POLICIES, name), &json!({"spec": {"nodeSelector": {"rack": "7"}}})).await;
        mended.ok();
    }
    let broken = json!({"spec": {"nodeSelector": {"rack": "rack 2"}}});
    s.merge(&at(POLICIES, "odd-selector"), &broken).await.refused(422, "Invalid");
}

pub(super) async fn everything_goes(s: &Server, known: &Known) {
    for (path, before) in known {
        assert_eq!(*path, super::path(before));
        s.delete(path).await.ok();
        s.get(path).await.refused(404, "NotFound");
    }
}
