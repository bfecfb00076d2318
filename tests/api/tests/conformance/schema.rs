//! What a CRD's schema and rules do to what is written: pruned, defaulted, refused by field; and its two versions.

use api_tests::server::Server;
use api_tests::server::paths::{POLICIES, POOLS, STATES, at, policy, pool, state};
use hyper::Method;
use serde_json::{Value, json};

use crate::differences::{plain, refused_by_schema};
use crate::support::{causes, uid, version};

fn with_unknown(name: &str) -> Value {
    let mut object = pool(name);
    object["metadata"]["foo"] = json!(1);
    object["spec"]["range"]["bogus"] = json!(1);
    object["spec"]["x"] = json!({"deep": [1]});
    object["y"] = json!(3);
    object
}

pub(crate) async fn unknown_fields_are_pruned_and_warned_about(s: Server) {
    for query in ["", "?fieldValidation=Warn", "?fieldValidation="] {
        let name = s.name("pool");
        let answer = s.post(&format!("{POOLS}{query}"), &with_unknown(&name)).await;
        let unknown = ["metadata.foo", "spec.range.bogus", "spec.x", "y"];
        assert_eq!(answer.warnings(), unknown.map(|field| format!("unknown field \"{field}\"")), "{query}");
        let made = plain(answer.created());
        assert_eq!(
            made["spec"],
            json!({"quarantine": "5m", "range": {"cidr": "10.10.10.0/24"}, "staticBand": "Auto"})
        );
        assert_eq!((&made["y"], &made["metadata"]["foo"]), (&Value::Null, &Value::Null));
        assert_eq!(plain(s.get(&at(POOLS, &name)).await.ok()), made);
        let answer = s.merge(&at(POOLS, &name), &json!({"spec": {"bogus": 1}})).await;
        assert_eq!(answer.warnings(), ["unknown field \"spec.bogus\""]);
        let after = answer.ok();
        assert_eq!((&after["spec"]["bogus"], &after["metadata"]["generation"]), (&Value::Null, &json!(1)));
    }
}

/// Null where the schema doesn't allow it is as good as nothing: a default takes its place, and what is required is missing.
pub(crate) async fn nulls_are_as_good_as_nothing(s: Server) {
    let mut object = pool(&s.name("pool"));
    object["spec"]["quarantine"] = Value::Null;
    object["spec"]["ranges"] = Value::Null;
    object["spec"]["range"]["gateway"] = Value::Null;
    let made = s.post(POOLS, &object).await.created();
    let spec = json!({"quarantine": "5m", "range": {"cidr": "10.10.10.0/24"}, "staticBand": "Auto"});
    assert_eq!(made["spec"], spec);
    let mut object = pool(&s.name("pool"));
    object["spec"]["range"]["cidr"] = Value::Null;
    s.post(POOLS, &object).await.refused(422, "Invalid");
}

/// Headers have their bounds in every client and proxy.
pub(crate) async fn many_warnings_are_cut_short(s: Server) {
    for length in [8, 200] {
        let mut object = pool(&s.name("pool"));
        for number in 0..90 {
            object["spec"][format!("unknown{number:03}{}", "x".repeat(length))] = json!(1);
        }
        let answer = s.post(POOLS, &object).await;
        let warnings = answer.warnings();
        let told: usize = warnings.iter().map(|warning| warning.chars().count()).sum();
        // The one that goes beyond is the last.
        assert!(warnings.len() > 10 && told <= 4096 + 256, "{} warnings, {told} characters", warnings.len());
        assert!(warnings.iter().all(|warning| warning.starts_with("unknown field \"spec.unknown")));
        answer.created();
    }
}

pub(crate) async fn unknown_fields_are_refused_when_strict(s: Server) {
    let name = s.name("pool");
    s.post(&format!("{POOLS}?fieldValidation=Strict"), &with_unknown(&name)).await.says(
        400,
        "BadRequest",
        "NodeIPPool in version \"v1\" cannot be handled as a NodeIPPool: strict decoding error: unknown field \
         \"metadata.foo\", unknown field \"spec.range.bogus\", unknown field \"spec.x\", unknown field \"y\"",
    );
    s.get(&at(POOLS, &name)).await.refused(404, "NotFound");
    let before = s.post(&format!("{POOLS}?fieldValidation=Strict"), &pool(&name)).await.created();
    let strict = format!("{}?fieldValidation=Strict", at(POOLS, &name));
    let mut new = before.clone();
    new["spec"]["bogus"] = json!(1);
    s.put(&strict, &new).await.refused(400, "BadRequest");
    let status = s.merge(&strict, &json!({"spec": {"bogus": 1}})).await.refused(422, "Invalid");
    assert_eq!(causes(&status), [("patch", "FieldValueInvalid")]);
    let words = "strict decoding error: unknown field \"spec.bogus\"";
    assert!(status["message"].as_str().is_some_and(|message| message.ends_with(words)), "{status}");
    assert_eq!(s.get(&at(POOLS, &name)).await.ok(), before);
    let words = "CreateOptions.meta.k8s.io \"\" is invalid: fieldValidation: Unsupported value: \"Bogus\": supported values: \
                 \"\", \"Ignore\", \"Strict\", \"Warn\"";
    s.post(&format!("{POOLS}?fieldValidation=Bogus"), &pool(&name)).await.says(422, "Invalid", words);
}

pub(crate) async fn unknown_fields_are_ignored_when_asked(s: Server) {
    let answer = s.post(&format!("{POOLS}?fieldValidation=Ignore"), &with_unknown(&s.name("pool"))).await;
    assert_eq!(answer.warnings(), Vec::<String>::new());
    assert_eq!(answer.created()["spec"]["x"], Value::Null);
}

pub(crate) async fn duplicate_fields(s: Server) {
    let name = s.name("pool");
    let text = format!(
        r#"{{"apiVersion": "nmstate.io/v1", "kind": "NodeIPPool", "metadata": {{"name": "{name}"}},
            "spec": {{"range": {{"cidr": "10.0.0.0/24"}}}}, "spec": {{"range": {{"cidr": "10.0.1.0/24"}}}}}}"#
    );
    let ask =
        |query: &'static str| s.ask(Method::POST, query, Some("application/json"), text.clone().into_bytes());
    ask("/apis/nmstate.io/v1/nodeippools?fieldValidation=Strict").await.says(
        400,
        "BadRequest",
        "NodeIPPool in version \"v1\" cannot be handled as a NodeIPPool: strict decoding error: duplicate field \"spec\"",
    );
    let answer = ask(POOLS).await;
    assert_eq!(answer.warnings(), ["duplicate field \"spec\""]);
    assert_eq!(answer.created()["spec"]["range"]["cidr"], "10.0.1.0/24", "the last one counts");
}

pub(crate) async fn free_form_fields_keep_all(s: Server) {
    let name = s.name("policy");
    let desired = json!({
        "interfaces": [{"name": "eth1", "type": "ethernet", "x-unheard-of": {"a": [1, 2.5, null, true, "é"]}}],
        "dns-resolver": {}, "empty": [], "": "no key", "big": 9007199254740993_i64,
    });
    let mut object = policy(&name);
    object["spec"]["desiredState"] = desired.clone();
    let answer = s.post(&format!("{POLICIES}?fieldValidation=Strict"), &object).await;
    assert_eq!(answer.created()["spec"]["desiredState"], desired);
    assert_eq!(s.get(&at(POLICIES, &name)).await.ok()["spec"]["desiredState"], desired);
}

pub(crate) async fn defaults_are_filled_in(s: Server) {
    let made = s.post(POOLS, &pool(&s.name("pool"))).await.created();
    assert_eq!(made["spec"]["quarantine"], "5m");
    assert_eq!(made["spec"]["staticBand"], "Auto");
    assert_eq!(made["status"], json!({"allocations": {}, "sequence": 0}));
    let mut object = pool(&s.name("pool"));
    object["spec"] = json!({"ranges": [{"name": "a", "cidr": "10.0.0.0/24"}], "quarantine": null});
    let made = s.post(POOLS, &object).await.created();
    assert_eq!(made["spec"]["ranges"], json!([{"name": "a", "cidr": "10.0.0.0/24", "state": "Active"}]));
    assert_eq!(made["spec"]["quarantine"], "5m", "null is as good as nothing");
}

pub(crate) async fn violations_name_their_field(s: Server) {
    let about = |name: &str| format!("NodeIPPool.nmstate.io \"{name}\" is invalid: ");
    let cases = [
        (
            json!({"range": {"cidr": "nonsense"}}),
            "spec.range.cidr",
            "FieldValueInvalid",
            "Invalid value: cidr nonsense is not a network such as 10.10.10.0/24 or 2001:db8::/64",
        ),
        (
            json!({"range": {"cidr": "10.0.0.0/24", "start": "10.0.1.1"}}),
            "spec.range.start",
            "FieldValueInvalid",
            "Invalid value: start 10.0.1.1 is not in 10.0.0.0/24",
        ),
    ];
    for (spec, field, reason, words) in cases {
        let name = s.name("pool");
        let mut object = pool(&name);
        object["spec"] = spec;
        let status =
            s.post(POOLS, &object).await.says(422, "Invalid", &format!("{}{field}: {words}", about(&name)));
        assert_eq!(causes(&status), [(field, reason)]);
        assert_eq!(status["details"]["causes"][0]["message"], words);
        assert_eq!(status["details"]["name"], name);
        assert_eq!(status["details"]["kind"], "NodeIPPool");
        assert_eq!(status["details"]["group"], "nmstate.io");
        s.get(&at(POOLS, &name)).await.refused(404, "NotFound");
    }
}

pub(crate) async fn every_violation_at_once(s: Server) {
    let name = s.name("pool");
    let mut object = pool(&name);
    object["spec"] = json!({"ranges": [
        {"name": "a", "cidr": "10.0.0.0/24", "start": "10.0.1.1"},
        {"name": "b", "cidr": "nonsense"},
    ]});
    let status = s.post(POOLS, &object).await.refused(422, "Invalid");
    let found = causes(&status);
    assert!(found.contains(&("spec.ranges[0].start", "FieldValueInvalid")), "{status}");
    assert!(found.contains(&("spec.ranges[1].cidr", "FieldValueInvalid")), "{status}");
    let message = status["message"].as_str().expect("a message");
    // Several stand in brackets, in any order.
    let about = format!("NodeIPPool.nmstate.io \"{name}\" is invalid: [spec.ranges[");
    assert!(message.starts_with(&about) && message.ends_with(']'), "{message}");
    for words in [
        "spec.ranges[0].start: Invalid value: start 10.0.1.1 is not in ",
        "spec.ranges[1].cidr: Invalid value: cidr nonsense ",
    ] {
        assert!(message.contains(words), "{message}");
    }
}

pub(crate) async fn changes_that_are_not_allowed(s: Server) {
    let name = s.name("pool");
    let path = at(POOLS, &name);
    let before = s.post(POOLS, &pool(&name)).await.created();
    let words = format!(
        "NodeIPPool.nmstate.io \"{name}\" is invalid: spec.range.cidr: Forbidden: an existing range can't be changed: make \
         it the first of ranges, as it is and with a name, append another and set this one to state: Draining, or delete \
         and re-create the pool (addresses that are held are kept)"
    );
    let status = s
        .merge(&path, &json!({"spec": {"range": {"cidr": "10.10.11.0/24"}}}))
        .await
        .says(422, "Invalid", &words);
    assert_eq!(causes(&status), [("spec.range.cidr", "FieldValueForbidden")]);
    let mut new = before.clone();
    new["spec"]["range"]["cidr"] = json!("10.10.11.0/24");
    s.put(&path, &new).await.says(422, "Invalid", &words);
    assert_eq!(s.get(&path).await.ok(), before);
}

pub(crate) async fn wrong_types_are_named(s: Server) {
    let name = s.name("pool");
    let mut object = pool(&name);
    object["spec"] = json!({"range": {"cidr": 7}, "quarantine": ["x"]});
    let fields = [("spec.range.cidr", "FieldValueTypeInvalid"), ("spec.quarantine", "FieldValueTypeInvalid")];
    refused_by_schema(s.post(POOLS, &object).await, &fields);
    object["spec"] = json!("text");
    refused_by_schema(s.post(POOLS, &object).await, &[("spec", "FieldValueTypeInvalid")]);
    object = pool(&name);
    object.as_object_mut().expect("an object").shift_remove("spec");
    refused_by_schema(s.post(POOLS, &object).await, &[("spec", "FieldValueRequired")]);
}

pub(crate) async fn two_versions_of_one_object(s: Server) {
    let (old, new) = ("/apis/nmstate.io/v1beta1/nodenetworkconfigurationpolicies", POLICIES);
    let name = s.name("policy");
    let mut object = policy(&name);
    object["apiVersion"] = json!("nmstate.io/v1beta1");
    let made = s.post(old, &object).await.created();
    assert_eq!(made["apiVersion"], "nmstate.io/v1beta1");
    let found = s.get(&at(new, &name)).await.ok();
    assert_eq!(found["apiVersion"], "nmstate.io/v1");
    assert_eq!((uid(&found), version(&found), &found["spec"]), (uid(&made), version(&made), &made["spec"]));
    let changed = s.merge(&at(new, &name), &json!({"spec": {"maxUnavailable": 2}})).await.ok();
    let seen = s.get(&at(old, &name)).await.ok();
    assert_eq!((version(&seen), &seen["spec"]["maxUnavailable"]), (version(&changed), &json!(2)));
    // An update by the other version, guarded by what this one was told.
    let mut back = plain(seen);
    back["spec"]["maxUnavailable"] = json!("10%");
    let back = s.put(&at(old, &name), &back).await.ok();
    assert_eq!(
        (&back["apiVersion"], &back["metadata"]["generation"]),
        (&json!("nmstate.io/v1beta1"), &json!(3))
    );
    object["apiVersion"] = json!("nmstate.io/v1");
    s.post(new, &object).await.refused(409, "AlreadyExists");
    s.post(old, &object).await.says(
        400,
        "BadRequest",
        "the API version in the data (nmstate.io/v1) does not match the expected API version (nmstate.io/v1beta1)",
    );
    s.delete(&at(old, &name)).await.ok();
    s.get(&at(new, &name)).await.refused(404, "NotFound");
}

pub(crate) async fn both_versions_are_watched(s: Server) {
    let new = "/apis/nmstate.io/v1/nodenetworkstates";
    let name = s.name("state");
    let made = s.post(STATES, &state(&name)).await.created();
    let mut watch = s
        .watch(&format!("{new}?fieldSelector=metadata.name%3D{name}&resourceVersion={}", version(&made)))
        .await;
    s.merge(&at(STATES, &name), &json!({"metadata": {"labels": {"a": "b"}}})).await.ok();
    s.delete(&at(new, &name)).await.ok();
    for kind in ["MODIFIED", "DELETED"] {
        let event = watch.next().await;
        assert_eq!((event.kind.as_str(), &event.object["apiVersion"]), (kind, &json!("nmstate.io/v1")));
    }
}

pub(crate) async fn lists_say_their_kind(s: Server) {
    let name = s.name("policy");
    s.post(POLICIES, &policy(&name)).await.created();
    for version in ["v1", "v1beta1"] {
        let path = format!(
            "/apis/nmstate.io/{version}/nodenetworkconfigurationpolicies?fieldSelector=metadata.name%3D{name}"
        );
        let list = s.get(&path).await.ok();
        assert_eq!(list["kind"], "NodeNetworkConfigurationPolicyList");
        assert_eq!(list["apiVersion"], format!("nmstate.io/{version}"));
        assert_eq!(list["items"][0]["apiVersion"], format!("nmstate.io/{version}"));
        assert_eq!(list["items"][0]["kind"], "NodeNetworkConfigurationPolicy");
    }
    // Of built-in kinds items don't say what they are: the list does.
    let list = s.get("/api/v1/namespaces?fieldSelector=metadata.name%3Ddefault").await.ok();
    assert_eq!((&list["kind"], &list["apiVersion"]), (&json!("NamespaceList"), &json!("v1")));
    assert_eq!(list["items"][0]["metadata"]["name"], "default");
}
