use serde_json::json;

use super::*;

fn said(kind: Kind, object: &Value) -> Vec<String> {
    warnings(kind, object).iter().map(ToString::to_string).collect()
}

#[test]
fn host_bits_are_worth_a_word() {
    // D4
    let pool = json!({"spec": {"range": {"cidr": "10.10.11.0/16"}}});
    assert_eq!(
        said(Kind::NodeIPPool, &pool),
        ["spec.range.cidr: 10.10.11.0/16 has host bits, it is taken as 10.10.0.0/16"]
    );
    let pool = json!({"spec": {"ranges": [
        {"name": "a", "cidr": "10.0.0.0/24"},
        {"name": "b", "ipv4": {"cidr": "10.0.1.0/24"}, "ipv6": {"cidr": "2001:db8::1/64"}},
    ]}});
    let expected = ["spec.ranges[1].ipv6.cidr: 2001:db8::1/64 has host bits, it is taken as 2001:db8::/64"];
    assert_eq!(said(Kind::NodeIPPool, &pool), expected);
}

#[test]
fn a_field_that_has_no_effect_is_worth_a_word() {
    let pool = json!({"spec": {"range": {"cidr": "10.0.0.0/24", "excludes": ["10.0.0.1"]}}});
    assert_eq!(said(Kind::NodeIPPool, &pool), ["spec.range.excludes: unknown field, it has no effect"]);
}

#[test]
fn a_limit_that_cannot_be_read_is_worth_a_word() {
    let policy = |limit: Value| json!({"spec": {"maxUnavailable": limit}});
    for fine in [json!(3), json!("50%"), json!("0%")] {
        assert!(said(Kind::NodeNetworkConfigurationPolicy, &policy(fine)).is_empty());
    }
    for odd in ["asdf", "42", "%"] {
        let said = said(Kind::NodeNetworkConfigurationPolicy, &policy(json!(odd)));
        assert_eq!(
            said,
            [format!(
                "spec.maxUnavailable: {odd:?} is neither a number nor a percentage, 50% is used instead"
            )]
        );
    }
}
