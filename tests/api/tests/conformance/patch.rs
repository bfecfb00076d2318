//! JSON patch and merge patch of objects; what else is called a patch.

use api_tests::server::paths::{LEASES, NODES, POOLS, at, lease, node, pool};
use api_tests::server::{APPLY_PATCH, JSON_PATCH, MERGE_PATCH, STRATEGIC_PATCH, Server};
use hyper::Method;
use serde_json::{Value, json};

use crate::differences::{applies, begins, patch_rejected};
use crate::support::{causes, version};

/// What a real server says of any JSON patch that it can't apply.
const REJECTED: &str = "the server rejected our request due to an error in our request";

async fn made(s: &Server) -> (String, Value) {
    let name = s.name("pool");
    let mut object = pool(&name);
    object["metadata"]["labels"] = json!({"a": "b"});
    (at(POOLS, &name), s.post(POOLS, &object).await.created())
}

pub(crate) async fn json_patch_does_all_six_operations(s: Server) {
    let (path, before) = made(&s).await;
    let patch = json!([
        {"op": "test", "path": "/metadata/uid", "value": before["metadata"]["uid"]},
        {"op": "add", "path": "/metadata/annotations", "value": {"x": "y"}},
        {"op": "add", "path": "/metadata/labels/c", "value": "d"},
        {"op": "replace", "path": "/spec/quarantine", "value": "8m"},
        {"op": "copy", "from": "/metadata/labels/a", "path": "/metadata/labels/copied"},
        {"op": "move", "from": "/metadata/labels/c", "path": "/metadata/labels/moved"},
        {"op": "remove", "path": "/metadata/labels/a"},
    ]);
    let after = s.json_patch(&path, &patch).await.ok();
    assert_eq!(after["metadata"]["labels"], json!({"copied": "b", "moved": "d"}));
    assert_eq!(after["metadata"]["annotations"], json!({"x": "y"}));
    assert_eq!(after["spec"]["quarantine"], "8m");
    assert_eq!(after["metadata"]["generation"], 2);
    assert_eq!(s.get(&path).await.ok(), after);
}

pub(crate) async fn a_failed_test_is_422_and_nothing_happens(s: Server) {
    let (path, before) = made(&s).await;
    let tests = [
        json!({"op": "test", "path": "/spec/quarantine", "value": "77m"}),
        json!({"op": "test", "path": "/metadata/uid", "value": "00000000-0000-0000-0000-000000000000"}),
        json!({"op": "test", "path": "/metadata/labels/nothing", "value": "x"}),
        json!({"op": "test", "path": "/metadata/labels", "value": {}}),
        json!({"op": "test", "path": "/metadata/labels/a", "value": null}),
        // Null holds for what a map doesn't have, not where there is no map.
        json!({"op": "test", "path": "/metadata/annotations/x", "value": null}),
        json!({"op": "test", "path": "/spec/nothing/x", "value": null}),
        json!({"op": "test", "path": "/spec/quarantine/x", "value": null}),
        json!({"op": "test", "path": "/metadata/finalizers/7", "value": null}),
    ];
    for test in tests {
        // Also when what comes before it would have worked.
        let patch = json!([{"op": "replace", "path": "/spec/quarantine", "value": "9m"}, test]);
        let patch = if test["path"] == "/spec/quarantine" { json!([test]) } else { patch };
        patch_rejected(&s, s.json_patch(&path, &patch).await);
        assert_eq!(s.get(&path).await.ok(), before);
    }
}

pub(crate) async fn null_holds_for_what_is_not_there(s: Server) {
    let (path, _) = made(&s).await;
    let patch = json!([
        {"op": "test", "path": "/metadata/annotations", "value": null},
        {"op": "test", "path": "/metadata/labels/nothing", "value": null},
    ]);
    s.json_patch(&path, &patch).await.ok();
}

pub(crate) async fn a_path_that_is_not_there_is_422(s: Server) {
    let (path, before) = made(&s).await;
    let operations = [
        json!({"op": "replace", "path": "/spec/nothing/x", "value": 1}),
        json!({"op": "remove", "path": "/spec/nothing"}),
        json!({"op": "add", "path": "/spec/a/b", "value": 1}),
        json!({"op": "add", "path": "/spec/range/exclude/7", "value": "10.10.10.9"}),
        json!({"op": "move", "from": "/spec/nothing", "path": "/spec/quarantine"}),
        json!({"op": "bogus", "path": "/spec", "value": 1}),
    ];
    for operation in operations {
        patch_rejected(&s, s.json_patch(&path, &json!([operation])).await);
    }
    assert_eq!(s.get(&path).await.ok(), before);
    // A key that is not there, of a map that is, may be replaced: then it is.
    let replace = json!([{"op": "replace", "path": "/metadata/labels/new", "value": "x"}]);
    assert_eq!(s.json_patch(&path, &replace).await.ok()["metadata"]["labels"]["new"], "x");
}

pub(crate) async fn a_patch_that_can_not_be_read_is_400(s: Server) {
    let (path, before) = made(&s).await;
    let bodies = [
        (JSON_PATCH, "{\"op\": \"test\"}"),
        (JSON_PATCH, "["),
        (JSON_PATCH, "\"x\""),
        (MERGE_PATCH, "{\"spec\":"),
        (MERGE_PATCH, "[]"),
        (MERGE_PATCH, "\"x\""),
        (MERGE_PATCH, "7"),
    ];
    for (content_type, body) in bodies {
        let answer = s.ask(Method::PATCH, &path, Some(content_type), body.into()).await;
        begins(answer, 400, "BadRequest", "error decoding patch: ");
    }
    assert_eq!(s.get(&path).await.ok(), before);
}

pub(crate) async fn merge_patch_merges_and_removes(s: Server) {
    let (path, _) = made(&s).await;
    let patch = json!({
        "metadata": {"labels": {"c": "d"}, "annotations": {"x": "y"}},
        "spec": {"quarantine": "8m", "reservations": [{"node": "node01", "ip": "10.10.10.3"}]},
    });
    let after = s.merge(&path, &patch).await.ok();
    assert_eq!(after["metadata"]["labels"], json!({"a": "b", "c": "d"}));
    assert_eq!(after["spec"]["quarantine"], "8m");
    assert_eq!(after["spec"]["range"]["cidr"], "10.10.10.0/24");
    // Null removes, and lists are replaced.
    let patch = json!({
        "metadata": {"labels": {"a": null}, "annotations": null},
        "spec": {"quarantine": null, "reservations": [{"node": "node02", "ip": "10.10.10.4"}]},
    });
    let after = s.merge(&path, &patch).await.ok();
    assert_eq!(after["metadata"]["labels"], json!({"c": "d"}));
    assert_eq!(after["metadata"]["annotations"], json!(null));
    assert_eq!(after["spec"]["quarantine"], "5m", "the default");
    assert_eq!(after["spec"]["reservations"], json!([{"node": "node02", "ip": "10.10.10.4"}]));
    assert_eq!(s.get(&path).await.ok(), after);
}

pub(crate) async fn a_resource_version_in_a_patch_guards_it(s: Server) {
    let (path, before) = made(&s).await;
    let patch = |version: &str, label: &str| json!({"metadata": {"resourceVersion": version, "labels": {"a": label}}});
    let after = s.merge(&path, &patch(version(&before), "c")).await.ok();
    let status = s.merge(&path, &patch(version(&before), "d")).await.refused(409, "Conflict");
    assert!(
        status["message"].as_str().is_some_and(|m| m.contains("the object has been modified")),
        "{status}"
    );
    assert_eq!(s.get(&path).await.ok(), after);
    // The same as an operation.
    let replace = |version: &str| {
        json!([
            {"op": "replace", "path": "/metadata/resourceVersion", "value": version},
            {"op": "replace", "path": "/metadata/labels/a", "value": "e"},
        ])
    };
    s.json_patch(&path, &replace(version(&before))).await.refused(409, "Conflict");
    assert_eq!(s.json_patch(&path, &replace(version(&after))).await.ok()["metadata"]["labels"]["a"], "e");
}

pub(crate) async fn test_of_the_resource_version_guards_it(s: Server) {
    let (path, before) = made(&s).await;
    let patch = |label: &str| {
        json!([
            {"op": "test", "path": "/metadata/resourceVersion", "value": version(&before)},
            {"op": "replace", "path": "/metadata/labels/a", "value": label},
        ])
    };
    let after = s.json_patch(&path, &patch("c")).await.ok();
    s.json_patch(&path, &patch("d")).await.says(422, "Invalid", REJECTED);
    assert_eq!(s.get(&path).await.ok(), after);
}

pub(crate) async fn the_resource_version_can_not_be_taken_out(s: Server) {
    let patches = [
        (MERGE_PATCH, json!({"metadata": {"resourceVersion": null, "labels": {"c": "d"}}})),
        (MERGE_PATCH, json!({"metadata": {"resourceVersion": ""}})),
        (MERGE_PATCH, json!({"metadata": {"resourceVersion": "0"}})),
        (JSON_PATCH, json!([{"op": "remove", "path": "/metadata/resourceVersion"}])),
    ];
    let (path, before) = made(&s).await;
    let name = s.name("lease");
    let leased = s.post(LEASES, &lease(&name)).await.created();
    let words = "metadata.resourceVersion: Invalid value: 0: must be specified for an update";
    for (content_type, patch) in &patches {
        let (status, leases) = (format!("{path}/status"), at(LEASES, &name));
        for path in [&path, &status, &leases] {
            let refused = s.patch(path, content_type, patch).await.refused(422, "Invalid");
            assert_eq!(causes(&refused), [("metadata.resourceVersion", "FieldValueInvalid")]);
            assert!(refused["message"].as_str().is_some_and(|m| m.ends_with(words)), "{refused}");
        }
    }
    assert_eq!(s.get(&path).await.ok(), before);
    assert_eq!(s.get(&at(LEASES, &name)).await.ok(), leased);
    // Of other kinds an update needs none, nor does a patch.
    let name = s.name("node");
    s.post(NODES, &node(&name)).await.created();
    for (content_type, patch) in &patches {
        s.patch(&at(NODES, &name), content_type, patch).await.ok();
    }
}

/// Only a delete says that an object goes.
pub(crate) async fn going_can_not_be_written(s: Server) {
    let name = s.name("node");
    let (pool, before) = made(&s).await;
    let whole = s.post(NODES, &node(&name)).await.created();
    let node = at(NODES, &name);
    for field in
        [json!({"deletionTimestamp": "2024-01-01T00:00:00Z"}), json!({"deletionGracePeriodSeconds": 5})]
    {
        let patch = json!({"metadata": field});
        for path in [&pool, &node, &format!("{node}/status")] {
            let status = s.merge(path, &patch).await.refused(422, "Invalid");
            let path =
                format!("metadata.{}", field.as_object().expect("a map").keys().next().expect("a field"));
            assert_eq!(causes(&status)[0], (path.as_str(), "FieldValueInvalid"));
            assert!(status["message"].as_str().is_some_and(|m| m.contains("field is immutable")), "{status}");
        }
        // Beside the status of what comes of a CRD nothing is looked at.
        s.merge(&format!("{pool}/status"), &patch).await.ok();
        let mut going = s.get(&pool).await.ok();
        for (key, value) in field.as_object().expect("a map") {
            going["metadata"][key] = value.clone();
        }
        s.put(&pool, &going).await.refused(422, "Invalid");
    }
    let after = s.get(&pool).await.ok();
    assert_eq!(after["metadata"]["deletionTimestamp"], Value::Null);
    assert_eq!(after["spec"], before["spec"]);
    assert_eq!(s.get(&node).await.ok()["metadata"]["uid"], whole["metadata"]["uid"]);
}

pub(crate) async fn identity_can_not_be_patched(s: Server) {
    let (path, before) = made(&s).await;
    let name = before["metadata"]["name"].as_str().expect("a name");
    s.merge(&path, &json!({"metadata": {"name": "other"}})).await.says(
        400,
        "BadRequest",
        &format!("the name of the object (other) does not match the name on the URL ({name})"),
    );
    let words =
        format!("the name of the object ({name} based on URL) was undeterminable: name must be provided");
    s.merge(&path, &json!({"metadata": {"name": null}})).await.says(400, "BadRequest", &words);
    let status = s.merge(&path, &json!({"metadata": {"uid": "other"}})).await.refused(422, "Invalid");
    assert_eq!(causes(&status)[0], ("metadata.uid", "FieldValueInvalid"));
    assert!(status["message"].as_str().is_some_and(|m| m.contains("field is immutable")), "{status}");
    let status = s.merge(&path, &json!({"kind": "NodeIPSlice"})).await.refused(422, "Invalid");
    assert_eq!(causes(&status), [("kind", "FieldValueInvalid")]);
    assert!(status["message"].as_str().is_some_and(|m| m.ends_with("must be NodeIPPool")), "{status}");
    let status = s.merge(&path, &json!({"apiVersion": "nmstate.io/v9"})).await.refused(422, "Invalid");
    assert_eq!(causes(&status), [("apiVersion", "FieldValueInvalid")]);
    // These are the server's, and stay without a word.
    let patch = json!({"metadata": {"creationTimestamp": "2001-01-01T00:00:00Z", "generation": 40}});
    let after = s.merge(&path, &patch).await.ok();
    assert_eq!(after["metadata"]["creationTimestamp"], before["metadata"]["creationTimestamp"]);
    assert_eq!(after["metadata"]["generation"], 1);
}

pub(crate) async fn an_empty_patch_changes_nothing(s: Server) {
    let (path, _) = made(&s).await;
    // The first time a real server may write down who it was.
    let before = s.json_patch(&path, &json!([])).await.ok();
    assert_eq!(version(&s.json_patch(&path, &json!([])).await.ok()), version(&before));
    assert_eq!(version(&s.merge(&path, &json!({})).await.ok()), version(&before));
    assert_eq!(
        version(&s.merge(&path, &json!({"metadata": {"labels": {"a": "b"}}})).await.ok()),
        version(&before)
    );
}

pub(crate) async fn what_is_not_there_is_404(s: Server) {
    let name = s.name("pool");
    let path = at(POOLS, &name);
    let words = format!("nodeippools.nmstate.io \"{name}\" not found");
    s.merge(&path, &json!({"spec": {}})).await.says(404, "NotFound", &words);
    s.json_patch(&path, &json!([])).await.says(404, "NotFound", &words);
    s.merge(&format!("{path}/status"), &json!({})).await.says(404, "NotFound", &words);
}

pub(crate) async fn strategic_merge_is_for_builtin_kinds(s: Server) {
    let (path, before) = made(&s).await;
    for content_type in [STRATEGIC_PATCH, "application/json", "text/plain"] {
        let answer = s.patch(&path, content_type, &json!({"spec": {"quarantine": "9m"}})).await;
        let status = answer.refused(415, "UnsupportedMediaType");
        let message = status["message"].as_str().expect("a message");
        let words = "the body of the request was in an unknown format - accepted media types include: \
                     application/json-patch+json, application/merge-patch+json";
        assert!(message.starts_with(words), "{message}");
    }
    assert_eq!(s.get(&path).await.ok(), before);
}

pub(crate) async fn server_side_apply_is_refused_or_works(s: Server) {
    let (path, before) = made(&s).await;
    let mut object = pool(before["metadata"]["name"].as_str().expect("a name"));
    object["metadata"]["labels"] = json!({"applied": "yes"});
    let answer = s.patch(&format!("{path}?fieldManager=test"), APPLY_PATCH, &object).await;
    if applies(&s) {
        assert_eq!(answer.ok()["metadata"]["labels"]["applied"], "yes");
    } else {
        answer.refused(415, "UnsupportedMediaType");
        assert_eq!(s.get(&path).await.ok(), before);
    }
}

pub(crate) async fn tildes_and_slashes_in_keys(s: Server) {
    let (path, _) = made(&s).await;
    let patch = json!([{"op": "add", "path": "/metadata/labels/nmstate.io~1node", "value": "node01"}]);
    assert_eq!(s.json_patch(&path, &patch).await.ok()["metadata"]["labels"]["nmstate.io/node"], "node01");
    let patch = json!([
        {"op": "test", "path": "/metadata/labels/nmstate.io~1node", "value": "node01"},
        {"op": "remove", "path": "/metadata/labels/nmstate.io~1node"},
    ]);
    assert_eq!(s.json_patch(&path, &patch).await.ok()["metadata"]["labels"], json!({"a": "b"}));
    let patch = json!([{"op": "add", "path": "/status/allocations/2001:db8::~0", "value": {}}]);
    // A key of which the schema knows nothing better is only refused by a rule: not for its tilde.
    assert_ne!(s.json_patch(&format!("{path}/status"), &patch).await.body["message"], REJECTED);
}

pub(crate) async fn items_of_lists_by_index(s: Server) {
    let (path, _) = made(&s).await;
    let add = |at: &str, value: &str| json!([{"op": "add", "path": format!("/metadata/finalizers{at}"), "value": value}]);
    let first = json!([{"op": "add", "path": "/metadata/finalizers", "value": ["nmstate.io/b"]}]);
    s.json_patch(&path, &first).await.ok();
    s.json_patch(&path, &add("/-", "nmstate.io/d")).await.ok();
    s.json_patch(&path, &add("/0", "nmstate.io/a")).await.ok();
    let after = s.json_patch(&path, &add("/2", "nmstate.io/c")).await.ok();
    let wanted = json!(["nmstate.io/a", "nmstate.io/b", "nmstate.io/c", "nmstate.io/d"]);
    assert_eq!(after["metadata"]["finalizers"], wanted);
    let patch = json!([
        {"op": "test", "path": "/metadata/finalizers/1", "value": "nmstate.io/b"},
        {"op": "remove", "path": "/metadata/finalizers/1"},
        {"op": "replace", "path": "/metadata/finalizers/0", "value": "nmstate.io/z"},
    ]);
    let after = s.json_patch(&path, &patch).await.ok();
    assert_eq!(after["metadata"]["finalizers"], json!(["nmstate.io/z", "nmstate.io/c", "nmstate.io/d"]));
    s.json_patch(&path, &add("/9", "nmstate.io/x")).await.says(422, "Invalid", REJECTED);
    s.merge(&path, &json!({"metadata": {"finalizers": null}})).await.ok();
}
