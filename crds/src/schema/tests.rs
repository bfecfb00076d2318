use serde_json::json;

use super::*;
use crate::{Kind, Reason};

/// Keywords that [`check`] or [`apply_defaults`] heed, and those that need no heed.
const KNOWN: [&str; 21] = [
    "additionalProperties",
    "default",
    "description",
    "enum",
    "format",
    "items",
    "maxItems",
    "maxLength",
    "maxProperties",
    "maximum",
    "minItems",
    "minLength",
    "minimum",
    "pattern",
    "properties",
    "required",
    "type",
    "x-kubernetes-int-or-string",
    "x-kubernetes-list-map-keys",
    "x-kubernetes-list-type",
    "x-kubernetes-map-type",
];

fn walk(schema: &Value, path: &str, see: &mut impl FnMut(&str, &serde_json::Map<String, Value>)) {
    let Some(map) = schema.as_object() else { return };
    see(path, map);
    for (name, child) in map.get("properties").and_then(Value::as_object).into_iter().flatten() {
        walk(child, &format!("{path}.{name}"), see);
    }
    for key in ["items", "additionalProperties"] {
        if let Some(child) = map.get(key) {
            walk(child, &format!("{path}.{key}"), see);
        }
    }
}

#[test]
fn schemas_use_only_what_is_checked() {
    let heeded_elsewhere = ["x-kubernetes-preserve-unknown-fields", "x-kubernetes-validations"];
    for kind in Kind::ALL {
        walk(&kind.definition().schema, kind.name(), &mut |path, node| {
            for keyword in node.keys() {
                let known = KNOWN.contains(&keyword.as_str()) || heeded_elsewhere.contains(&keyword.as_str());
                assert!(known, "{path}: {keyword}");
            }
            let is_enum = node.get("enum").and_then(Value::as_array);
            assert!(is_enum.is_none_or(|values| values.iter().all(Value::is_string)), "{path}: {is_enum:?}");
        });
    }
}

#[test]
fn every_pattern_can_be_read() {
    for kind in Kind::ALL {
        walk(&kind.definition().schema, kind.name(), &mut |path, node| {
            if let Some(pattern) = node.get("pattern").and_then(Value::as_str) {
                assert!(regex_lite::Regex::new(pattern).is_ok(), "{path}: {pattern}");
            }
        });
    }
}

/// Lists are read whole, so one object that the API takes and a type can't read would stop everybody: a number is bounded as
/// its type is, a time is one that every reader reads.
#[test]
fn what_the_schema_takes_has_a_place_in_the_types() {
    let (mut numbers, mut times) = (0, 0);
    for kind in Kind::ALL {
        walk(&kind.definition().schema, kind.name(), &mut |path, node| {
            let text = |keyword: &str| node.get(keyword).and_then(Value::as_str);
            let bounds = ["minimum", "maximum"].map(|bound| node.get(bound).and_then(Value::as_i64));
            if text("type") == Some("integer") || node.contains_key("x-kubernetes-int-or-string") {
                numbers += 1;
                match (text("format"), bounds) {
                    // i64; what is beyond is no integer to any API server.
                    (Some("int64"), _) => {}
                    (Some("int32"), [Some(min), Some(max)]) => {
                        assert!(
                            i32::try_from(min).is_ok() && i32::try_from(max).is_ok(),
                            "{path}: {min} to {max}"
                        );
                    }
                    (None, [Some(min), Some(max)]) => {
                        let fits = match path.rsplit('.').next() {
                            Some("maxUnavailable") => {
                                i32::try_from(min).is_ok() && i32::try_from(max).is_ok()
                            }
                            Some("staticBand") => u32::try_from(min).is_ok() && u32::try_from(max).is_ok(),
                            _ => u8::try_from(min).is_ok() && u8::try_from(max).is_ok(),
                        };
                        assert!(fits, "{path}: {min} to {max}");
                    }
                    (format, bounds) => panic!("{path}: {format:?} within {bounds:?}"),
                }
            }
            assert_ne!(text("type"), Some("number"), "{path}");
            if text("format") == Some("date-time") {
                times += 1;
                assert_eq!(text("pattern"), Some(TIME), "{path}");
            }
        });
    }
    assert!(numbers > 20 && times > 15, "{numbers} numbers, {times} times");
}

#[test]
fn every_field_says_what_it_is_for_where_it_is_not_plain() {
    for (kind, at) in
        [(Kind::NodeIPPool, "spec"), (Kind::NodeIPPool, "spec.range"), (Kind::NodeIPSlice, "spec")]
    {
        let node = place::schema_at(&kind.definition().schema, at).expect(at);
        for (name, child) in node["properties"].as_object().expect(at) {
            assert!(child.get("description").is_some(), "{at}.{name}");
        }
    }
}

#[test]
fn unknown_fields_are_found_and_free_form_ones_are_not() {
    let schema = &Kind::NodeIPPool.definition().schema;
    let pool = json!({
        "apiVersion": "nmstate.io/v1", "kind": "NodeIPPool",
        "metadata": {"name": "p", "labels": {"a": "b"}},
        "spec": {"range": {"cidr": "10.0.0.0/24", "excludes": []}, "ranges": [{"name": "a", "vlan": 1}]},
        "status": {"allocations": {"10.0.0.1": {"node": "a", "owner": "b"}}},
    });
    let expected =
        ["spec.range.excludes", "spec.ranges[0].vlan", "status.allocations.10.0.0.1.owner"].map(String::from);
    assert_eq!(unknown_fields(schema, &pool), expected);
    let policy = json!({"metadata": {}, "spec": {"desiredState": {"anything": {"goes": 1}}}});
    let schema = &Kind::NodeNetworkConfigurationPolicy.definition().schema;
    assert!(unknown_fields(schema, &policy).is_empty());
}

/// A path for each of many below a long name would be gigabytes.
#[test]
fn of_very_many_unknown_fields_the_first_are_told() {
    let name = "k".repeat(1 << 20);
    let many: serde_json::Map<String, Value> = (0..50_000).map(|n| (format!("f{n}"), json!(1))).collect();
    let pool = json!({"status": {"allocations": {name.as_str(): many}}});
    let found = unknown_fields(&Kind::NodeIPPool.definition().schema, &pool);
    assert_eq!(found.len(), 100);
    assert!(found[99].starts_with("status.allocations.kkk") && found[99].ends_with("k.f99"), "{}", found[99]);
    assert!(found[99].len() < 2000);
}

#[test]
fn what_stays_as_it_was_is_not_judged_again() {
    let schema = json!({"type": "object", "properties": {
        "a": {"type": "string", "maxLength": 1},
        "b": {"type": "integer"},
    }});
    let (old, new) = (json!({"a": "too long", "b": 1}), json!({"a": "too long", "b": 2}));
    assert_eq!(check(&schema, &new, Some(&old)), []);
    let fresh = check(&schema, &new, None);
    assert_eq!(
        fresh.iter().map(|v| (v.path.as_str(), v.reason)).collect::<Vec<_>>(),
        [("a", Reason::TooLong)]
    );
}

#[test]
fn pruning_drops_exactly_what_is_unknown() {
    let schema = &Kind::NodeIPPool.definition().schema;
    let mut pool = json!({
        "apiVersion": "nmstate.io/v1", "kind": "NodeIPPool", "extra": 1,
        "metadata": {"name": "p", "labels": {"a": "b"}},
        "spec": {"range": {"cidr": "10.0.0.0/24", "excludes": []}, "ranges": [{"name": "a", "vlan": 1}]},
        "status": {"allocations": {"10.0.0.1": {"node": "a", "owner": "b"}}},
    });
    assert!(!unknown_fields(schema, &pool).is_empty());
    prune(schema, &mut pool);
    assert_eq!(unknown_fields(schema, &pool), Vec::<String>::new());
    let expected = json!({
        "apiVersion": "nmstate.io/v1", "kind": "NodeIPPool",
        "metadata": {"name": "p", "labels": {"a": "b"}},
        "spec": {"range": {"cidr": "10.0.0.0/24"}, "ranges": [{"name": "a"}]},
        "status": {"allocations": {"10.0.0.1": {"node": "a"}}},
    });
    assert_eq!(pool, expected);
}

#[test]
fn what_a_schema_preserves_is_not_pruned() {
    for (kind, object) in [
        (Kind::NodeNetworkConfigurationPolicy, json!({"spec": {"desiredState": {"any": {"thing": [1]}}}})),
        (Kind::NodeNetworkConfigurationEnactment, json!({"future": {"field": 1}})),
    ] {
        let mut pruned = object.clone();
        prune(&kind.definition().schema, &mut pruned);
        assert_eq!(pruned, object, "{}", kind.name());
    }
}

#[test]
fn a_null_is_as_good_as_nothing() {
    let schema = &Kind::NodeIPPool.definition().schema;
    let mut pool = json!({"spec": {"quarantine": null, "range": null}, "status": null});
    drop_nulls(schema, &mut pool);
    assert_eq!(pool, json!({"spec": {}}));
}
