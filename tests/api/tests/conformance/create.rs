//! Create: what the server adds, and what it doesn't take.

use api_tests::server::Server;
use api_tests::server::paths::{POLICIES, POOLS, STATES, at, pool, state};
use serde_json::json;

use crate::differences::plain;
use crate::support::{causes, uid, version};

pub(crate) async fn an_object_gets_its_metadata(s: Server) {
    let name = s.name("pool");
    let made = plain(s.post(POOLS, &pool(&name)).await.created());
    assert_eq!(made["apiVersion"], "nmstate.io/v1");
    assert_eq!(made["kind"], "NodeIPPool");
    assert_eq!(made["metadata"]["name"], name);
    assert_eq!(made["metadata"]["generation"], 1);
    assert_eq!(uid(&made).len(), 36, "{made}");
    assert!(version(&made).parse::<u64>().is_ok_and(|version| version > 0), "{made}");
    let created = made["metadata"]["creationTimestamp"].as_str().expect("a time");
    // Seconds, in UTC: 2024-05-01T10:00:00Z
    assert!(created.len() == 20 && created.ends_with('Z') && created.contains('T'), "{created}");
    assert_eq!(made["metadata"]["namespace"], json!(null));
    assert_eq!(plain(s.get(&at(POOLS, &name)).await.ok()), made);
}

pub(crate) async fn a_name_is_taken_once(s: Server) {
    let name = s.name("pool");
    let made = s.post(POOLS, &pool(&name)).await.created();
    let status = s.post(POOLS, &pool(&name)).await.says(
        409,
        "AlreadyExists",
        &format!("nodeippools.nmstate.io \"{name}\" already exists"),
    );
    assert_eq!(status["details"], json!({"name": name, "group": "nmstate.io", "kind": "nodeippools"}));
    assert_eq!(s.get(&at(POOLS, &name)).await.ok(), made);
}

pub(crate) async fn fields_of_the_server_are_its_own(s: Server) {
    let name = s.name("pool");
    let mut mine = pool(&name);
    mine["metadata"]["uid"] = json!("mine");
    mine["metadata"]["generation"] = json!(7);
    mine["metadata"]["creationTimestamp"] = json!("2001-01-01T00:00:00Z");
    mine["metadata"]["deletionTimestamp"] = json!("2001-01-01T00:00:00Z");
    mine["metadata"]["selfLink"] = json!("/somewhere");
    let made = s.post(POOLS, &mine).await.created();
    assert_eq!(uid(&made).len(), 36);
    assert_eq!(made["metadata"]["generation"], 1);
    assert_ne!(made["metadata"]["creationTimestamp"], "2001-01-01T00:00:00Z");
    assert_eq!(made["metadata"]["deletionTimestamp"], json!(null));
    assert_eq!(made["metadata"]["selfLink"], json!(null));
}

pub(crate) async fn a_resource_version_is_refused(s: Server) {
    let name = s.name("pool");
    let mut mine = pool(&name);
    mine["metadata"]["resourceVersion"] = json!("5");
    let refused = s.post(POOLS, &mine).await;
    refused.says(500, "", "resourceVersion should not be set on objects to be created");
    s.get(&at(POOLS, &name)).await.refused(404, "NotFound");
}

pub(crate) async fn names_are_made_from_a_prefix(s: Server) {
    let prefix = format!("{}-", s.name("made"));
    let mut unnamed = state("x");
    unnamed["metadata"] = json!({"generateName": prefix});
    let (first, second) =
        (s.post(STATES, &unnamed).await.created(), s.post(STATES, &unnamed).await.created());
    for made in [&first, &second] {
        let name = made["metadata"]["name"].as_str().expect("a name");
        let rest = name.strip_prefix(&prefix).expect("the prefix");
        assert_eq!(rest.len(), 5, "{name}");
        assert!(rest.bytes().all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit()), "{name}");
        assert_eq!(made["metadata"]["generateName"], prefix);
    }
    assert_ne!(first["metadata"]["name"], second["metadata"]["name"]);
    // A name that is given is the name.
    let name = s.name("given");
    let mut both = state(&name);
    both["metadata"]["generateName"] = json!(prefix);
    assert_eq!(s.post(STATES, &both).await.created()["metadata"]["name"], name);
}

pub(crate) async fn a_name_is_needed(s: Server) {
    let mut unnamed = state("x");
    unnamed["metadata"] = json!({});
    let status = s.post(STATES, &unnamed).await.refused(422, "Invalid");
    assert!(causes(&status).contains(&("metadata.name", "FieldValueRequired")), "{status}");
    let message = status["message"].as_str().expect("a message");
    assert!(message.contains("metadata.name: Required value: name or generateName is required"), "{message}");
    assert_eq!(status["details"]["kind"], "NodeNetworkState");
    assert_eq!(status["details"]["group"], "nmstate.io");
}

pub(crate) async fn names_follow_the_rules_of_dns(s: Server) {
    let rule = "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must \
                start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is \
                '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')";
    for bad in ["Bad_Name", "-x", "x-", "a..b", "é", "a b"] {
        let status = s.post(STATES, &state(bad)).await.says(
            422,
            "Invalid",
            &format!(
                "NodeNetworkState.nmstate.io \"{bad}\" is invalid: metadata.name: Invalid value: \"{bad}\": {rule}"
            ),
        );
        assert_eq!(causes(&status), [("metadata.name", "FieldValueInvalid")]);
        assert_eq!(status["details"]["name"], bad);
    }
    let long = "a".repeat(254);
    let status = s.post(STATES, &state(&long)).await.refused(422, "Invalid");
    let message = status["message"].as_str().expect("a message");
    assert!(message.ends_with("must be no more than 253 characters"), "{message}");
    // Dots are fine, where a kind's own rule doesn't forbid them.
    let dotted = format!("{}.rack1.example.com", s.name("node"));
    s.post(STATES, &state(&dotted)).await.created();
}

pub(crate) async fn labels_annotations_finalizers_and_owners_are_checked(s: Server) {
    let wrong = [
        (
            json!({"labels": {"a b": "c"}}),
            "metadata.labels",
            "name part must consist of alphanumeric characters",
        ),
        (
            json!({"labels": {"a": "c d"}}),
            "metadata.labels",
            "a valid label must be an empty string or consist of",
        ),
        (
            json!({"annotations": {"a b": "c"}}),
            "metadata.annotations",
            "name part must consist of alphanumeric",
        ),
        (
            json!({"finalizers": ["Bad Name/x"]}),
            "metadata.finalizers",
            "prefix part a lowercase RFC 1123 subdomain",
        ),
        (
            json!({"ownerReferences": [{"apiVersion": "v1", "kind": "Node", "name": "", "uid": "u"}]}),
            "metadata.ownerReferences.name",
            "must not be empty",
        ),
        (
            json!({"ownerReferences": [{"apiVersion": "v1", "kind": "Node", "name": "n", "uid": ""}]}),
            "metadata.ownerReferences.uid",
            "must not be empty",
        ),
    ];
    for (metadata, field, words) in wrong {
        let name = s.name("state");
        let mut object = state(&name);
        for (key, value) in metadata.as_object().expect("metadata") {
            object["metadata"][key] = value.clone();
        }
        let status = s.post(STATES, &object).await.refused(422, "Invalid");
        assert_eq!(causes(&status), [(field, "FieldValueInvalid")], "{status}");
        assert!(status["message"].as_str().is_some_and(|message| message.contains(words)), "{status}");
    }
    let mut object = state(&s.name("state"));
    object["metadata"]["annotations"] = json!({"a": "y".repeat(257 * 1024)});
    let status = s.post(STATES, &object).await.refused(422, "Invalid");
    let message = status["message"].as_str().expect("a message");
    assert!(
        message.contains("metadata.annotations: Too long: may not be more than 262144 bytes"),
        "{message}"
    );
}

pub(crate) async fn a_finalizer_without_a_domain_is_warned_about(s: Server) {
    let mut object = state(&s.name("state"));
    object["metadata"]["finalizers"] = json!(["plain"]);
    let answer = s.post(STATES, &object).await;
    let warning = "metadata.finalizers: \"plain\": prefer a domain-qualified finalizer name to avoid accidental \
                   conflicts with other finalizer writers";
    assert_eq!(answer.warnings(), [warning]);
    answer.created();
}

pub(crate) async fn a_namespace_on_what_has_none_is_dropped(s: Server) {
    let mut object = state(&s.name("state"));
    object["metadata"]["namespace"] = json!("default");
    assert_eq!(s.post(STATES, &object).await.created()["metadata"]["namespace"], json!(null));
}

pub(crate) async fn status_is_dropped(s: Server) {
    let mut object = pool(&s.name("pool"));
    object["status"] = json!({"sequence": 41});
    assert_eq!(s.post(POOLS, &object).await.created()["status"]["sequence"], 0);
    let name = s.name("policy");
    let mut object = api_tests::server::paths::policy(&name);
    object["status"] = json!({"unavailableNodes": {"node01": 1}});
    let made = s.post(POLICIES, &object).await.created();
    assert_eq!(made["status"]["unavailableNodes"], json!({}));
}
