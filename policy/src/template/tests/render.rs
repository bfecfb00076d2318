//! Documents as people hand them in, and rendering as a whole.

use serde_json::json;

use super::Value;
use crate::capture::{Cached, Granted, Grants, Problem, Source};
use crate::template::{PolicyDoc, render};

fn policy(document: &Value) -> Result<PolicyDoc, String> {
    PolicyDoc::from_value(document).map_err(|wrong| wrong.to_string())
}

#[test]
fn a_manifest_or_a_bare_document() {
    let body = json!({"capture": {"a": "routes.config"}, "desiredState": {"interfaces": []}});
    let bare = policy(&body).unwrap();
    assert_eq!(policy(&json!({"kind": "NodeNetworkConfigurationPolicy", "spec": body})).unwrap(), bare);
    assert_eq!(
        policy(&json!({"capture": {"a": "routes.config"}, "desired": {"interfaces": []}})).unwrap(),
        bare
    );
    assert_eq!(policy(&json!({"spec": {}})).unwrap(), PolicyDoc::default());
}

#[test]
fn shapes_that_are_refused() {
    assert_eq!(
        policy(&json!([])).unwrap_err(),
        "policy: expected a map with capture and desiredState, found a list"
    );
    assert_eq!(
        policy(&json!({"spec": null})).unwrap_err(),
        "spec: expected a map with capture and desiredState, found null"
    );
    let wrong = policy(&json!({"spec": {"capture": {"a": 1, "b": null}, "desiredState": "x"}})).unwrap_err();
    assert_eq!(
        wrong,
        "spec.capture.a: expected text, found '1'\nspec.capture.b: expected text, found null\nspec.desiredState: expected a map, found 'x'"
    );
}

fn mixed() -> PolicyDoc {
    policy(&json!({
        "capture": {"addr": "ippool.p1.allocate", "gone": "interfaces.name==nope"},
        "desiredState": {"interfaces": [{"name": "eth1", "ipv4": {"address": [{"ipam": {"pool": "p2"}}]}}]},
    }))
    .unwrap()
}

#[test]
fn all_addresses_to_ask_for() {
    let pools: Vec<_> = mixed().pools().unwrap().into_iter().collect();
    assert_eq!(pools, [("addr".into(), "p1".into()), ("ipam_eth1_p2".into(), "p2".into())]);
}

#[test]
fn all_missing_addresses_at_once() {
    let wrong = render(&mixed(), &json!({}), &Cached::new(), &Grants::new()).unwrap_err();
    assert_eq!(wrong.missing_grants().collect::<Vec<_>>(), [("addr", "p1"), ("ipam_eth1_p2", "p2")]);
    assert_eq!(wrong.iter().count(), 3, "and the capture that failed");
}

#[test]
fn a_capture_may_not_take_an_anonymous_name() {
    let mut policy = mixed();
    policy.capture.insert("ipam_eth1_p2".into(), "routes.config".into());
    let wrong = policy.pools().unwrap_err();
    assert_eq!(wrong.iter().next().unwrap().problem, Problem::ReservedName { name: "ipam_eth1_p2".into() });
}

#[test]
fn captures_and_shorthand_are_reported_together() {
    let policy = policy(&json!({
        "capture": {"a": "="},
        "desiredState": {"interfaces": [{"name": "eth1", "ipv4": {"address": [{"ipam": {}}]}}]},
    }));
    assert_eq!(policy.unwrap().pools().unwrap_err().iter().count(), 2);
}

#[test]
fn anonymous_captures_are_stored_and_keep_their_time() {
    let mut policy = mixed();
    policy.capture.clear();
    let grants = Grants::from([("ipam_eth1_p2".to_owned(), Granted::single("10.0.0.9/24".parse().unwrap()))]);
    let first = render(&policy, &json!({}), &Cached::new(), &grants).unwrap();
    assert_eq!(first.bindings.iter().next().unwrap().1.source, Source::Granted(None));
    let stored = first.bindings.captured_states("then");
    let cached = crate::capture::read_cached(&Value::Object(stored.clone())).unwrap();
    let second = render(&policy, &json!({}), &cached, &grants).unwrap();
    assert_eq!(second.bindings.captured_states("now"), stored);
}

#[test]
fn two_names_for_the_desired_state_are_refused() {
    let wrong =
        PolicyDoc::from_value(&json!({"desiredState": {}, "desired": {"interfaces": []}})).unwrap_err();
    let expected = "desired: desiredState and desired are two names for the same: give one of them";
    assert_eq!(wrong.to_string(), expected);
}
