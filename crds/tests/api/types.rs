//! The Rust types read and write what the schemas describe.

use crds::testing::cases;
use crds::{
    Kind, NodeIPPool, NodeIPSlice, NodeNetworkConfigurationEnactment, NodeNetworkConfigurationPolicy,
    NodeNetworkState, enactment::CapturedState, pool::StaticBand, schema,
};
use serde::{Serialize, de::DeserializeOwned};
use serde_json::{Value, json};

/// Every accepted manifest of the table passes through its type without loss.
fn round_trip<T: Serialize + DeserializeOwned>(kind: Kind) {
    let mut count = 0;
    for case in cases(kind).iter().filter(|case| case.refused.is_empty()) {
        let mut new = case.new.clone();
        schema::apply_defaults(&kind.definition().schema, &mut new);
        let typed: T = serde_json::from_value(new.clone()).unwrap_or_else(|e| panic!("{}: {e}", case.name));
        let mut back = serde_json::to_value(&typed).expect("JSON");
        schema::apply_defaults(&kind.definition().schema, &mut back);
        assert!(contains(&back, &new), "{}:\n{new}\n{back}", case.name);
        assert_eq!(
            crds::validate(kind, None, &back).len(),
            crds::validate(kind, None, &new).len(),
            "{}",
            case.name
        );
        count += 1;
    }
    assert!(count > 0);
}

/// All that `part` has, `whole` has too; what is empty need not be there.
fn contains(whole: &Value, part: &Value) -> bool {
    match (whole, part) {
        (Value::Object(whole), Value::Object(part)) => part.iter().all(|(key, value)| match whole.get(key) {
            Some(child) => contains(child, value),
            None => *value == json!([]) || *value == json!({}) || *value == json!(""),
        }),
        (Value::Array(whole), Value::Array(part)) => {
            whole.len() == part.len() && whole.iter().zip(part).all(|(a, b)| contains(a, b))
        }
        (whole, part) => whole == part,
    }
}

#[test]
fn manifests_pass_through_the_types() {
    round_trip::<NodeIPPool>(Kind::NodeIPPool);
    round_trip::<NodeIPSlice>(Kind::NodeIPSlice);
    round_trip::<NodeNetworkConfigurationPolicy>(Kind::NodeNetworkConfigurationPolicy);
    round_trip::<NodeNetworkConfigurationEnactment>(Kind::NodeNetworkConfigurationEnactment);
    round_trip::<NodeNetworkState>(Kind::NodeNetworkState);
}

#[test]
fn a_fresh_object_is_valid_and_knows_its_kind() {
    let state = serde_json::to_value(NodeNetworkState::new("node01", Default::default())).expect("JSON");
    assert_eq!(state["apiVersion"], "nmstate.io/v1beta1");
    assert_eq!(state["kind"], "NodeNetworkState");
    assert!(state.get("spec").is_none());
    assert_eq!(crds::validate(Kind::NodeNetworkState, None, &state), []);
}

#[test]
fn a_pool_capture_keeps_its_fields() {
    // R19, R21
    let json = json!({"ip": "10.10.10.8", "prefix-length": 24, "metaInfo": {"version": "0"}});
    let captured: CapturedState = serde_json::from_value(json.clone()).expect("a captured state");
    assert_eq!(captured.fields["prefix-length"], 24);
    assert_eq!(serde_json::to_value(&captured).expect("JSON"), json);
}

#[test]
fn a_static_band_is_a_word_or_a_number() {
    for (json, text) in
        [(json!("Auto"), "Mode(Auto)"), (json!("None"), "Mode(None)"), (json!(16), "Size(16)")]
    {
        let band: StaticBand = serde_json::from_value(json.clone()).expect("a band");
        assert_eq!(format!("{band:?}"), text);
        assert_eq!(serde_json::to_value(band).expect("JSON"), json);
    }
    assert!(serde_json::from_value::<StaticBand>(json!("auto")).is_err());
}

#[test]
fn the_name_of_a_slice_is_what_the_rule_asks_for() {
    let accepted = cases(Kind::NodeIPSlice).into_iter().filter(|case| case.refused.is_empty());
    for slice in accepted.map(|case| case.new) {
        let cidr = slice["spec"]["cidr"].as_str().and_then(crds::address::cidr).expect("a network");
        let pool = slice["spec"]["pool"].as_str().expect("a pool");
        assert_eq!(slice["metadata"]["name"], crds::slice::name(pool, cidr.addr()));
    }
}
