//! Delete: preconditions, finalizers, collections.

use api_tests::server::Server;
use api_tests::server::paths::{NODES, POOLS, STATES, at, node, pool, state};
use serde_json::{Value, json};

use crate::support::{causes, names, uid, version};

const HOLD: &str = "nmstate.io/hold";

async fn made(s: &Server) -> (String, Value) {
    let name = s.name("pool");
    (at(POOLS, &name), s.post(POOLS, &pool(&name)).await.created())
}

async fn held(s: &Server) -> (String, Value) {
    let name = s.name("pool");
    let mut object = pool(&name);
    object["metadata"]["finalizers"] = json!([HOLD]);
    (at(POOLS, &name), s.post(POOLS, &object).await.created())
}

pub(crate) async fn what_is_deleted_is_gone(s: Server) {
    let (path, before) = made(&s).await;
    let answer = s.delete(&path).await.ok();
    let details = json!({"name": before["metadata"]["name"], "group": "nmstate.io", "kind": "nodeippools", "uid": uid(&before)});
    assert_eq!(
        answer,
        json!({"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success", "details": details})
    );
    s.get(&path).await.refused(404, "NotFound");
    let name = s.name("node");
    let before = s.post(NODES, &node(&name)).await.created();
    let answer = s.delete(&at(NODES, &name)).await.ok();
    assert_eq!(answer["details"], json!({"name": name, "kind": "nodes", "uid": uid(&before)}));
    s.get(&at(NODES, &name)).await.refused(404, "NotFound");
}

pub(crate) async fn what_is_not_there_is_404(s: Server) {
    let name = s.name("pool");
    let words = format!("nodeippools.nmstate.io \"{name}\" not found");
    let status = s.delete(&at(POOLS, &name)).await.says(404, "NotFound", &words);
    assert_eq!(status["details"], json!({"name": name, "group": "nmstate.io", "kind": "nodeippools"}));
}

pub(crate) async fn preconditions_guard(s: Server) {
    let (path, before) = made(&s).await;
    let name = before["metadata"]["name"].as_str().expect("a name");
    let about = format!("Operation cannot be fulfilled on NodeIPPool.nmstate.io \"{name}\": ");
    let wrong = json!({"preconditions": {"uid": "wrong"}});
    s.delete_with(&path, &wrong).await.says(
        409,
        "Conflict",
        &format!(
            "{about}the UID in the precondition (wrong) does not match the UID in record ({}). The object might have \
             been deleted and then recreated",
            uid(&before)
        ),
    );
    let now = s.merge(&path, &json!({"metadata": {"labels": {"a": "b"}}})).await.ok();
    let stale = json!({"preconditions": {"resourceVersion": version(&before), "uid": uid(&before)}});
    s.delete_with(&path, &stale).await.says(
        409,
        "Conflict",
        &format!(
            "{about}the ResourceVersion in the precondition ({}) does not match the ResourceVersion in record ({}). \
             The object might have been modified",
            version(&before),
            version(&now)
        ),
    );
    assert_eq!(s.get(&path).await.ok(), now);
    let right = json!({"preconditions": {"resourceVersion": version(&now), "uid": uid(&now)}});
    s.delete_with(&path, &right).await.ok();
    s.get(&path).await.refused(404, "NotFound");
}

pub(crate) async fn options_are_checked(s: Server) {
    let (path, before) = made(&s).await;
    let status = s.delete_with(&path, &json!({"propagationPolicy": "Bogus"})).await.says(
        422,
        "Invalid",
        "DeleteOptions.meta.k8s.io \"\" is invalid: propagationPolicy: Unsupported value: \"Bogus\": supported values: \
         \"Foreground\", \"Background\", \"Orphan\", \"nil\"",
    );
    assert_eq!(causes(&status), [("propagationPolicy", "FieldValueNotSupported")]);
    let both = json!({"propagationPolicy": "Orphan", "orphanDependents": true});
    let status = s.delete_with(&path, &both).await.refused(422, "Invalid");
    assert_eq!(causes(&status), [("propagationPolicy", "FieldValueInvalid")]);
    let broken = s.ask(hyper::Method::DELETE, &path, Some("application/json"), "{\"bro".into()).await;
    broken.refused(400, "BadRequest");
    let blank = s.ask(hyper::Method::DELETE, &path, Some("application/json"), " ".into()).await;
    blank.refused(400, "BadRequest");
    for query in ["propagationPolicy=", "propagationPolicy=Bogus", "dryRun=", "dryRun=Some"] {
        s.delete(&format!("{path}?{query}")).await.refused(422, "Invalid");
    }
    s.delete(&format!("{path}?gracePeriodSeconds=x")).await.refused(400, "BadRequest");
    s.delete(&format!("{path}?gracePeriodSeconds=")).await.refused(400, "BadRequest");
    assert_eq!(s.get(&path).await.ok(), before);
}

/// What may be meant to keep an object must not be overlooked.
pub(crate) async fn options_of_wrong_types_delete_nothing(s: Server) {
    let (path, before) = made(&s).await;
    let wrong = [
        json!({"dryRun": "All"}),
        json!({"dryRun": [5]}),
        json!({"preconditions": "x"}),
        json!({"preconditions": []}),
        json!({"preconditions": {"uid": 5}}),
        json!({"preconditions": {"resourceVersion": 1}}),
        json!({"propagationPolicy": 5}),
        json!({"orphanDependents": "true"}),
        json!({"orphanDependents": 1}),
        json!({"gracePeriodSeconds": "x"}),
        json!({"gracePeriodSeconds": 1.5}),
        json!({"ignoreStoreReadErrorWithClusterBreakingPotential": "x"}),
        json!({"kind": 5}),
        json!({"kind": "NodeIPPool"}),
        json!({"apiVersion": 5}),
    ];
    for options in wrong {
        s.delete_with(&path, &options).await.refused(400, "BadRequest");
        s.delete_with(&format!("{POOLS}?labelSelector=a%3Dnobody"), &options)
            .await
            .refused(400, "BadRequest");
    }
    s.delete_with(&path, &json!({"dryRun": [null]})).await.refused(422, "Invalid");
    assert_eq!(s.get(&path).await.ok(), before);
    // Null is nothing.
    let nothing = json!({"dryRun": null, "preconditions": {"uid": null}, "propagationPolicy": null,
        "orphanDependents": null, "gracePeriodSeconds": null});
    s.delete_with(&path, &nothing).await.ok();
    s.get(&path).await.refused(404, "NotFound");
}

pub(crate) async fn finalizers_hold_it(s: Server) {
    let (path, before) = held(&s).await;
    let going = s.delete(&path).await.ok();
    assert_eq!(going["kind"], "NodeIPPool");
    assert_eq!(uid(&going), uid(&before));
    assert!(going["metadata"]["deletionTimestamp"].is_string(), "{going}");
    assert_eq!(going["metadata"]["deletionGracePeriodSeconds"], 0);
    assert_eq!(going["metadata"]["generation"], 2);
    assert_eq!(s.get(&path).await.ok(), going);
    // A second delete is no news, and it may still be changed.
    assert_eq!(s.delete(&path).await.ok(), going);
    let patch = json!({"metadata": {"labels": {"a": "b"}, "deletionTimestamp": null}});
    let changed = s.merge(&path, &patch).await.ok();
    assert_eq!(changed["metadata"]["deletionTimestamp"], going["metadata"]["deletionTimestamp"]);
    assert_eq!(changed["metadata"]["labels"], json!({"a": "b"}));
    assert_eq!(changed["metadata"]["generation"], 2);
    let last = s.merge(&path, &json!({"metadata": {"finalizers": null}})).await.ok();
    assert_eq!(last["metadata"]["finalizers"], json!(null));
    s.get(&path).await.refused(404, "NotFound");
}

pub(crate) async fn no_finalizer_is_added_while_it_goes(s: Server) {
    let (path, _) = held(&s).await;
    let going = s.delete(&path).await.ok();
    let patch = json!({"metadata": {"finalizers": [HOLD, "nmstate.io/more"]}});
    let status = s.merge(&path, &patch).await.refused(422, "Invalid");
    assert_eq!(causes(&status)[0], ("metadata.finalizers", "FieldValueForbidden"));
    let words = "metadata.finalizers: Forbidden: no new finalizers can be added if the object is being deleted, found \
                 new finalizers []string{\"nmstate.io/more\"}";
    assert!(status["message"].as_str().is_some_and(|message| message.contains(words)), "{status}");
    assert_eq!(s.get(&path).await.ok(), going);
    s.merge(&path, &json!({"metadata": {"finalizers": []}})).await.ok();
    s.get(&path).await.refused(404, "NotFound");
}

pub(crate) async fn a_name_that_goes_is_taken(s: Server) {
    let (path, before) = held(&s).await;
    s.delete(&path).await.ok();
    let name = before["metadata"]["name"].as_str().expect("a name");
    s.post(POOLS, &pool(name)).await.says(
        409,
        "AlreadyExists",
        &format!("object is being deleted: nodeippools.nmstate.io \"{name}\" already exists"),
    );
    s.merge(&path, &json!({"metadata": {"finalizers": null}})).await.ok();
    s.post(POOLS, &pool(name)).await.created();
}

pub(crate) async fn the_last_finalizer_by_update_too(s: Server) {
    let (path, _) = held(&s).await;
    let mut going = s.delete(&path).await.ok();
    going["metadata"]["finalizers"] = json!([]);
    s.put(&path, &going).await.ok();
    s.get(&path).await.refused(404, "NotFound");
    let (path, _) = held(&s).await;
    s.delete(&path).await.ok();
    let patch = json!([
        {"op": "test", "path": "/metadata/finalizers/0", "value": HOLD},
        {"op": "remove", "path": "/metadata/finalizers/0"},
    ]);
    s.json_patch(&path, &patch).await.ok();
    s.get(&path).await.refused(404, "NotFound");
}

pub(crate) async fn a_collection_goes_by_selector(s: Server) {
    let group = s.name("group");
    let mut made = Vec::new();
    for member in ["a", "b", "c"] {
        let mut object = state(&s.name("state"));
        object["metadata"]["labels"] = json!({"group": group, "member": member});
        made.push(s.post(STATES, &object).await.created()["metadata"]["name"].clone());
    }
    let gone = s.delete(&format!("{STATES}?labelSelector=group%3D{group},member!%3Db")).await.ok();
    assert_eq!(gone["kind"], "NodeNetworkStateList");
    assert_eq!(names(&gone), [&made[0], &made[2]]);
    let left = s.get(&format!("{STATES}?labelSelector=group%3D{group}")).await.ok();
    assert_eq!(names(&left), [&made[1]]);
}

pub(crate) async fn a_new_one_has_another_uid(s: Server) {
    let (path, before) = made(&s).await;
    s.delete(&path).await.ok();
    let name = before["metadata"]["name"].as_str().expect("a name");
    let after = s.post(POOLS, &pool(name)).await.created();
    assert_ne!(uid(&after), uid(&before));
    assert_eq!(after["metadata"]["generation"], 1);
    // What was meant for the first doesn't reach the second.
    s.put(&path, &before).await.refused(409, "Conflict");
    s.delete_with(&path, &json!({"preconditions": {"uid": uid(&before)}})).await.refused(409, "Conflict");
    assert_eq!(s.get(&path).await.ok(), after);
}
