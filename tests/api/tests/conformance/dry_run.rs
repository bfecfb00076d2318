//! `dryRun=All`: everything is checked and answered, nothing is kept.

use api_tests::server::Server;
use api_tests::server::paths::{POOLS, at, pool};
use serde_json::{Value, json};

use crate::support::causes;

pub(crate) async fn nothing_is_made(s: Server) {
    let name = s.name("pool");
    let answer = s.post(&format!("{POOLS}?dryRun=All"), &pool(&name)).await.created();
    assert_eq!(answer["metadata"]["name"], name);
    assert_eq!(answer["metadata"]["generation"], 1);
    assert!(answer["metadata"]["uid"].is_string());
    assert_eq!(answer["metadata"]["resourceVersion"], Value::Null);
    assert_eq!(answer["spec"]["quarantine"], "5m");
    s.get(&at(POOLS, &name)).await.refused(404, "NotFound");
}

pub(crate) async fn nothing_is_changed(s: Server) {
    let name = s.name("pool");
    let path = at(POOLS, &name);
    let before = s.post(POOLS, &pool(&name)).await.created();
    let answer = s.merge(&format!("{path}?dryRun=All"), &json!({"spec": {"quarantine": "6m"}})).await.ok();
    assert_eq!(answer["spec"]["quarantine"], "6m");
    assert_eq!(answer["metadata"]["generation"], 2);
    assert_eq!(answer["metadata"]["resourceVersion"], before["metadata"]["resourceVersion"]);
    let mut new = before.clone();
    new["metadata"]["labels"] = json!({"a": "b"});
    assert_eq!(
        s.put(&format!("{path}?dryRun=All"), &new).await.ok()["metadata"]["labels"],
        json!({"a": "b"})
    );
    let patch = json!([{"op": "replace", "path": "/status/sequence", "value": 9}]);
    s.json_patch(&format!("{path}/status?dryRun=All"), &patch).await.ok();
    assert_eq!(s.get(&path).await.ok(), before);
}

pub(crate) async fn nothing_is_deleted(s: Server) {
    let name = s.name("pool");
    let path = at(POOLS, &name);
    let before = s.post(POOLS, &pool(&name)).await.created();
    assert_eq!(s.delete(&format!("{path}?dryRun=All")).await.ok()["status"], "Success");
    s.delete_with(&path, &json!({"dryRun": ["All"]})).await.ok();
    assert_eq!(s.get(&path).await.ok(), before);
}

pub(crate) async fn a_dry_run_is_checked_as_any(s: Server) {
    let name = s.name("pool");
    let dry = format!("{POOLS}?dryRun=All");
    s.post(POOLS, &pool(&name)).await.created();
    s.post(&dry, &pool(&name)).await.refused(409, "AlreadyExists");
    let mut wrong = pool(&s.name("pool"));
    wrong["spec"]["range"]["cidr"] = json!("nonsense");
    let status = s.post(&dry, &wrong).await.refused(422, "Invalid");
    assert_eq!(causes(&status), [("spec.range.cidr", "FieldValueInvalid")]);
    let failed = json!([{"op": "test", "path": "/spec/quarantine", "value": "1m"}]);
    s.json_patch(&format!("{}?dryRun=All", at(POOLS, &name)), &failed).await.refused(422, "Invalid");
}

pub(crate) async fn only_all_is_known(s: Server) {
    let name = s.name("pool");
    let words = "CreateOptions.meta.k8s.io \"\" is invalid: dryRun: Unsupported value: [\"Some\"]: supported values: \"All\"";
    let status = s.post(&format!("{POOLS}?dryRun=Some"), &pool(&name)).await.says(422, "Invalid", words);
    assert_eq!(causes(&status), [("dryRun", "FieldValueNotSupported")]);
    s.get(&at(POOLS, &name)).await.refused(404, "NotFound");
    let before = s.post(POOLS, &pool(&name)).await.created();
    let path = format!("{}?dryRun=All&dryRun=Some", at(POOLS, &name));
    let words = |options: &str| {
        format!(
            "{options}.meta.k8s.io \"\" is invalid: dryRun: Unsupported value: [\"All\",\"Some\"]: supported values: \"All\""
        )
    };
    s.put(&path, &before).await.says(422, "Invalid", &words("UpdateOptions"));
    s.merge(&path, &json!({})).await.says(422, "Invalid", &words("PatchOptions"));
    s.delete(&path).await.says(422, "Invalid", &words("DeleteOptions"));
    let options = json!({"dryRun": ["All", "Some"]});
    s.delete_with(&at(POOLS, &name), &options).await.says(422, "Invalid", &words("DeleteOptions"));
    assert_eq!(s.get(&at(POOLS, &name)).await.ok(), before);
}
