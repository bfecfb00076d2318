//! Update: whole objects, guarded by resourceVersion.

use api_tests::server::Server;
use api_tests::server::paths::{POLICIES, POOLS, at, policy, pool};
use serde_json::{Value, json};

use crate::differences::{plain, unreadable};
use crate::support::{causes, uid, version};

const MODIFIED: &str =
    "the object has been modified; please apply your changes to the latest version and try again";

async fn made(s: &Server) -> (String, Value) {
    let name = s.name("pool");
    let made = s.post(POOLS, &pool(&name)).await.created();
    (at(POOLS, &name), made)
}

pub(crate) async fn an_update_replaces_all_but_the_servers_fields(s: Server) {
    let (path, before) = made(&s).await;
    let mut new = plain(before.clone());
    new["metadata"]["labels"] = json!({"rack": "1"});
    new["spec"]["quarantine"] = json!("6m");
    new["metadata"]["creationTimestamp"] = json!("2001-01-01T00:00:00Z");
    new["metadata"]["generation"] = json!(70);
    new["status"] = json!({"sequence": 7});
    let after = s.put(&path, &new).await.ok();
    assert_eq!(after["metadata"]["labels"], json!({"rack": "1"}));
    assert_eq!(after["spec"]["quarantine"], "6m");
    assert_eq!(after["status"]["sequence"], 0, "status has its own door");
    assert_eq!(after["metadata"]["creationTimestamp"], before["metadata"]["creationTimestamp"]);
    assert_eq!(after["metadata"]["generation"], 2);
    assert_eq!(uid(&after), uid(&before));
    let versions =
        [version(&before), version(&after)].map(|version| version.parse::<u64>().expect("a number"));
    assert!(versions[1] > versions[0], "{versions:?}");
    // What the new one doesn't have is gone.
    let mut bare = plain(after.clone());
    bare["metadata"].as_object_mut().expect("metadata").shift_remove("labels");
    bare["spec"].as_object_mut().expect("a spec").shift_remove("quarantine");
    let last = s.put(&path, &bare).await.ok();
    assert_eq!(last["metadata"]["labels"], json!(null));
    assert_eq!(last["spec"]["quarantine"], "5m", "but for defaults");
    assert_eq!(s.get(&path).await.ok(), last);
}

pub(crate) async fn a_resource_version_is_needed(s: Server) {
    let (path, before) = made(&s).await;
    let name = before["metadata"]["name"].as_str().expect("a name");
    let status = s.put(&path, &pool(name)).await.says(
        422,
        "Invalid",
        &format!(
            "nodeippools.nmstate.io \"{name}\" is invalid: metadata.resourceVersion: Invalid value: 0: must be \
             specified for an update"
        ),
    );
    assert_eq!(causes(&status), [("metadata.resourceVersion", "FieldValueInvalid")]);
    assert_eq!(s.get(&path).await.ok(), before);
}

pub(crate) async fn a_stale_one_conflicts_and_changes_nothing(s: Server) {
    let (path, before) = made(&s).await;
    let name = before["metadata"]["name"].as_str().expect("a name");
    let now = s.merge(&path, &json!({"metadata": {"labels": {"a": "b"}}})).await.ok();
    let mut stale = before.clone();
    stale["metadata"]["labels"] = json!({"late": "yes"});
    let status = s.put(&path, &stale).await.says(
        409,
        "Conflict",
        &format!("Operation cannot be fulfilled on nodeippools.nmstate.io \"{name}\": {MODIFIED}"),
    );
    assert_eq!(status["details"], json!({"name": name, "group": "nmstate.io", "kind": "nodeippools"}));
    assert_eq!(s.get(&path).await.ok(), now);
    // A version that is yet to come is no better.
    stale["metadata"]["resourceVersion"] = json!("99999999999");
    s.put(&path, &stale).await.refused(409, "Conflict");
    stale["metadata"]["resourceVersion"] = json!("abc");
    unreadable(&s, &s.put(&path, &stale).await);
    assert_eq!(s.get(&path).await.ok(), now);
}

pub(crate) async fn another_uid_conflicts(s: Server) {
    let (path, before) = made(&s).await;
    let mut other = before.clone();
    other["metadata"]["uid"] = json!("00000000-0000-0000-0000-000000000000");
    let status = s.put(&path, &other).await.refused(409, "Conflict");
    let message = status["message"].as_str().expect("a message");
    let words = format!(
        "Precondition failed: UID in precondition: 00000000-0000-0000-0000-000000000000, UID in object meta: {}",
        uid(&before)
    );
    assert!(message.ends_with(&words), "{message}");
    assert_eq!(s.get(&path).await.ok(), before);
}

pub(crate) async fn name_and_url_must_agree(s: Server) {
    let (path, before) = made(&s).await;
    let name = before["metadata"]["name"].as_str().expect("a name");
    let mut other = before.clone();
    other["metadata"]["name"] = json!("other");
    s.put(&path, &other).await.says(
        400,
        "BadRequest",
        &format!("the name of the object (other) does not match the name on the URL ({name})"),
    );
    other["metadata"].as_object_mut().expect("metadata").shift_remove("name");
    s.put(&path, &other).await.says(
        400,
        "BadRequest",
        &format!("the name of the object ({name} based on URL) was undeterminable: name must be provided"),
    );
    assert_eq!(s.get(&path).await.ok(), before);
}

pub(crate) async fn what_is_not_there_is_not_made(s: Server) {
    let name = s.name("pool");
    let words = format!("nodeippools.nmstate.io \"{name}\" not found");
    s.put(&at(POOLS, &name), &pool(&name)).await.says(404, "NotFound", &words);
    let mut versioned = pool(&name);
    versioned["metadata"]["resourceVersion"] = json!("5");
    s.put(&at(POOLS, &name), &versioned).await.says(404, "NotFound", &words);
}

pub(crate) async fn the_same_again_changes_nothing(s: Server) {
    let (path, before) = made(&s).await;
    // Twice: the first time a real server may write down who it was.
    let once = s.put(&path, &before).await.ok();
    let again = s.put(&path, &once).await.ok();
    assert_eq!(version(&again), version(&once));
    assert_eq!(s.get(&path).await.ok(), once);
}

pub(crate) async fn generation_grows_with_the_spec_alone(s: Server) {
    let name = s.name("policy");
    let path = at(POLICIES, &name);
    s.post(POLICIES, &policy(&name)).await.created();
    let generation = async |patch: Value| s.merge(&path, &patch).await.ok()["metadata"]["generation"].clone();
    assert_eq!(generation(json!({"metadata": {"labels": {"a": "b"}, "annotations": {"c": "d"}}})).await, 1);
    assert_eq!(generation(json!({"spec": {"maxUnavailable": 3}})).await, 2);
    assert_eq!(generation(json!({"spec": {"maxUnavailable": 3}})).await, 2);
    assert_eq!(generation(json!({"metadata": {"finalizers": ["nmstate.io/x"]}})).await, 2);
    assert_eq!(generation(json!({"spec": {"maxUnavailable": null}})).await, 3);
    let status = json!({"status": {"unavailableNodeCount": 1}});
    let after = s.merge(&format!("{path}/status"), &status).await.ok();
    assert_eq!(after["metadata"]["generation"], 3);
    assert_eq!(generation(json!({"metadata": {"finalizers": null}})).await, 3);
}
