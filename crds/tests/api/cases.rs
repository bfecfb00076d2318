//! One table of manifests, asked of the Rust rules. `tests/api` asks the same table of a real API server, with the CEL that
//! stands beside them in the CRDs: both must agree on every path, reason and word.

use std::collections::BTreeSet;

use crds::testing::{Case, cases};
use crds::{Kind, Violation, validate};
use serde_json::{Value, json};

/// Every difference between what a case expects and what was said.
fn misses(case: &Case, said: &[Violation]) -> Vec<String> {
    let mut unclaimed: Vec<&Violation> = said.iter().collect();
    let mut misses = Vec::new();
    for expected in &case.refused {
        let fits =
            |found: &&Violation| found.path == expected.path && found.message.contains(&expected.message);
        match unclaimed.iter().position(fits) {
            Some(index) => drop(unclaimed.remove(index)),
            None => misses.push(format!("expected {expected:?}")),
        }
    }
    misses.extend(unclaimed.iter().map(|found| format!("unexpected {found:?}")));
    misses
}

fn check(kind: Kind) {
    let mut failures = Vec::new();
    for case in cases(kind) {
        let wrong = misses(&case, &validate(kind, case.old.as_ref(), &case.new));
        failures.extend(wrong.into_iter().map(|wrong| format!("{}: {wrong}", case.name)));
    }
    assert!(failures.is_empty(), "{} of {}:\n{}", failures.len(), kind.name(), failures.join("\n"));
}

#[test]
fn node_ip_pool() {
    // R1, R2, R3, R11, R61, R62, R94
    check(Kind::NodeIPPool);
}

#[test]
fn node_ip_slice() {
    check(Kind::NodeIPSlice);
}

#[test]
fn node_network_configuration_policy() {
    // R18, R31
    check(Kind::NodeNetworkConfigurationPolicy);
}

#[test]
fn node_network_configuration_enactment() {
    // R21
    check(Kind::NodeNetworkConfigurationEnactment);
}

#[test]
fn node_network_state() {
    check(Kind::NodeNetworkState);
}

/// A rule that no case breaks is not known to work.
#[test]
fn every_rule_is_broken_by_some_case() {
    let mut unbroken = Vec::new();
    for kind in Kind::ALL {
        let said: BTreeSet<String> = cases(kind)
            .iter()
            .flat_map(|case| validate(kind, case.old.as_ref(), &case.new))
            .map(|violation| violation.message)
            .collect();
        let texts =
            kind.definition().rules.iter().map(|placed| (placed.rule.text, placed.rule.say.is_some()));
        for (text, _) in texts.filter(|(text, says_more)| !says_more && !said.contains(*text)) {
            unbroken.push(format!("{}: {text}", kind.name()));
        }
    }
    assert!(unbroken.is_empty(), "no case breaks:\n{}", unbroken.join("\n"));
}

/// R11, R61, R84, R94: each field of a pool's spec is tried to be changed by some case, so that none can be added of which nobody said
/// whether it may.
#[test]
fn r11_every_field_of_a_pools_spec_is_changed_by_some_case() {
    let crd = serde_json::to_value(&Kind::NodeIPPool.definition().crd).expect("a CRD is JSON");
    let schema = &crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"];
    let (mut fields, mut changed) = (BTreeSet::new(), BTreeSet::new());
    leaves(schema, "spec", &mut fields);
    for case in cases(Kind::NodeIPPool) {
        if let Some(old) = &case.old {
            differences(&old["spec"], &case.new["spec"], "spec", &fields, &mut changed);
        }
    }
    let missing: Vec<&String> = fields.difference(&changed).collect();
    assert!(missing.is_empty(), "no case changes {missing:?}");
    assert!(fields.contains("spec.ranges[].ipv6.gateway"), "{fields:?}");
}

/// The places below which a schema has no fields of its own; a selector is one as a whole, and so are maps and lists of texts.
fn leaves(schema: &Value, place: &str, found: &mut BTreeSet<String>) {
    let item = schema.get("items").map(|item| (item, format!("{place}[]")));
    let (node, place) =
        item.filter(|(item, _)| item["properties"].is_object()).unwrap_or((schema, place.to_owned()));
    let fields = node["properties"].as_object().filter(|_| !place.ends_with(".nodeSelector"));
    match fields {
        Some(fields) => {
            for (name, field) in fields {
                leaves(field, &format!("{place}.{name}"), found);
            }
        }
        None => drop(found.insert(place)),
    }
}

/// Which of `fields` are not in both as they are in the other.
fn differences(
    old: &Value,
    new: &Value,
    place: &str,
    fields: &BTreeSet<String>,
    found: &mut BTreeSet<String>,
) {
    if old == new {
        return;
    }
    if fields.contains(place) {
        found.insert(place.to_owned());
        return;
    }
    let none = json!(null);
    match (old, new) {
        (Value::Array(old), Value::Array(new)) => {
            for i in 0..old.len().max(new.len()) {
                let (old, new) = (old.get(i).unwrap_or(&none), new.get(i).unwrap_or(&none));
                differences(old, new, &format!("{place}[]"), fields, found);
            }
        }
        (Value::Object(old), Value::Object(new)) => {
            for name in old.keys().chain(new.keys()) {
                let (old, new) = (old.get(name).unwrap_or(&none), new.get(name).unwrap_or(&none));
                differences(old, new, &format!("{place}.{name}"), fields, found);
            }
        }
        // Here altogether, or gone: no change of a field by itself.
        _ => {}
    }
}

#[test]
fn the_table_is_long_and_its_names_are_unique() {
    let mut names = BTreeSet::new();
    for kind in Kind::ALL {
        for case in cases(kind) {
            assert!(names.insert((kind, case.name.clone())), "{} twice in {}", case.name, kind.name());
        }
    }
    assert!(names.len() >= 200, "{} cases", names.len());
}
