//! The status subresource: a door of its own, in both directions.

use api_tests::server::Server;
use api_tests::server::paths::{POOLS, at, pool, status};
use serde_json::{Value, json};

use crate::differences::plain;
use crate::support::{causes, version};

async fn made(s: &Server) -> (String, String, Value) {
    let name = s.name("pool");
    let made = s.post(POOLS, &pool(&name)).await.created();
    (at(POOLS, &name), status(POOLS, &name), made)
}

/// Everything but status, versions and who wrote.
fn rest(object: &Value) -> Value {
    let mut object = plain(object.clone());
    object.as_object_mut().expect("an object").shift_remove("status");
    object["metadata"].as_object_mut().expect("metadata").shift_remove("resourceVersion");
    object
}

pub(crate) async fn a_patch_of_status_touches_status_alone(s: Server) {
    let (path, door, before) = made(&s).await;
    let patch = json!({
        "status": {"sequence": 5},
        "spec": {"quarantine": "99m"},
        "metadata": {"labels": {"x": "y"}, "annotations": {"q": "r"}, "finalizers": ["nmstate.io/x"]},
    });
    let after = s.merge(&door, &patch).await.ok();
    assert_eq!(after["status"]["sequence"], 5);
    assert_eq!(rest(&after), rest(&before));
    assert_ne!(version(&after), version(&before));
    assert_eq!(s.get(&path).await.ok(), after);
}

pub(crate) async fn an_update_of_status_touches_status_alone(s: Server) {
    let (path, door, before) = made(&s).await;
    let mut new = before.clone();
    new["status"]["sequence"] = json!(6);
    new["spec"]["quarantine"] = json!("99m");
    new["metadata"]["labels"] = json!({"x": "y"});
    let after = s.put(&door, &new).await.ok();
    assert_eq!(after["status"]["sequence"], 6);
    assert_eq!(rest(&after), rest(&before));
    assert_eq!(s.get(&path).await.ok(), after);
}

pub(crate) async fn a_patch_of_the_object_leaves_status(s: Server) {
    let (path, door, _) = made(&s).await;
    let before = s.merge(&door, &json!({"status": {"sequence": 5}})).await.ok();
    // Alone it changes nothing at all.
    assert_eq!(version(&s.merge(&path, &json!({"status": {"sequence": 9}})).await.ok()), version(&before));
    let patch = json!([
        {"op": "replace", "path": "/status/sequence", "value": 9},
        {"op": "replace", "path": "/spec/quarantine", "value": "7m"},
    ]);
    let after = s.json_patch(&path, &patch).await.ok();
    assert_eq!((&after["status"]["sequence"], &after["spec"]["quarantine"]), (&json!(5), &json!("7m")));
    let removed = s.json_patch(&path, &json!([{"op": "remove", "path": "/status"}])).await.ok();
    assert_eq!(removed["status"]["sequence"], 5);
}

/// The ledger's way: into a map that nobody has made, because the schema's default did. R43: alike in every store, in memory, on
/// disk and a cluster's, as all of this suite is.
pub(crate) async fn an_entry_can_be_added_to_a_fresh_status(s: Server) {
    let (path, door, before) = made(&s).await;
    let patch = json!([
        {"op": "test", "path": "/metadata/resourceVersion", "value": version(&before)},
        {"op": "test", "path": "/status/sequence", "value": 0},
        {"op": "test", "path": "/status/allocations/10.10.10.8", "value": null},
        {"op": "add", "path": "/status/allocations/10.10.10.8", "value": {"node": "node01", "request": "r1"}},
        {"op": "replace", "path": "/status/sequence", "value": 1},
    ]);
    let after = s.json_patch(&door, &patch).await.ok();
    assert_eq!(after["status"]["allocations"]["10.10.10.8"]["node"], "node01");
    assert_eq!(after["status"]["sequence"], 1);
    s.json_patch(&door, &patch).await.refused(422, "Invalid");
    let release = json!([
        {"op": "test", "path": "/status/allocations/10.10.10.8/request", "value": "r1"},
        {"op": "remove", "path": "/status/allocations/10.10.10.8"},
    ]);
    let after = s.json_patch(&door, &release).await.ok();
    assert_eq!(after["status"]["allocations"], json!({}));
    assert_eq!(s.get(&path).await.ok(), after);
}

pub(crate) async fn status_is_guarded_too(s: Server) {
    let (path, door, before) = made(&s).await;
    let now = s.merge(&path, &json!({"spec": {"quarantine": "6m"}})).await.ok();
    s.put(&door, &before).await.refused(409, "Conflict");
    let patch = json!({"metadata": {"resourceVersion": version(&before)}, "status": {"sequence": 1}});
    s.merge(&door, &patch).await.refused(409, "Conflict");
    assert_eq!(s.get(&path).await.ok(), now);
}

pub(crate) async fn status_can_be_read(s: Server) {
    let (path, door, before) = made(&s).await;
    assert_eq!(s.get(&door).await.ok(), before);
    assert_eq!(s.get(&path).await.ok(), before);
}

pub(crate) async fn rules_hold_in_status(s: Server) {
    let (path, door, before) = made(&s).await;
    let answer = s.merge(&door, &json!({"status": {"sequence": "many"}})).await;
    let status = answer.refused(422, "Invalid");
    assert!(causes(&status).iter().any(|(field, _)| *field == "status.sequence"), "{status}");
    let answer = s.merge(&door, &json!({"status": {"nothing": 1}})).await;
    assert_eq!(answer.warnings(), ["unknown field \"status.nothing\""]);
    assert_eq!(answer.ok()["status"]["nothing"], json!(null));
    assert_eq!(rest(&s.get(&path).await.ok()), rest(&before));
}
