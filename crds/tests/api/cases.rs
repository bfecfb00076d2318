//! One table of manifests, asked of the Rust rules and of the CEL in the CRDs: they must agree on every path,
//! reason and word. `tests/api` asks the same table of a real API server.

use std::{
    collections::BTreeSet,
    net::{Ipv4Addr, Ipv6Addr},
};

use crate::support::cel::Evaluator;
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
    let evaluator = Evaluator::new(kind);
    let mut failures = Vec::new();
    for case in cases(kind) {
        let rust = validate(kind, case.old.as_ref(), &case.new);
        let cel = evaluator.validate(case.old.as_ref(), &case.new);
        let mut wrong = misses(&case, &rust);
        let (rust, cel): (BTreeSet<_>, BTreeSet<_>) = (rust.into_iter().collect(), cel.into_iter().collect());
        if let Some(how) = &case.evaluator {
            wrong.extend((rust == cel).then(|| format!("the evaluator no longer {how}")));
        } else {
            wrong.extend(rust.difference(&cel).map(|v| format!("only Rust says {v:?}")));
            wrong.extend(cel.difference(&rust).map(|v| format!("only CEL says {v:?}")));
        }
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

/// R2: CEL has no order of addresses, so the rule finds it bit by bit. Every bit must count.
#[test]
fn start_and_end_are_ordered_by_every_bit() {
    let evaluator = Evaluator::new(Kind::NodeIPPool);
    let pool = |cidr: &str, start: &str, end: &str| json!({"metadata": {"name": "p"}, "spec": {"range": {"cidr": cidr, "start": start, "end": end}}});
    // Below the bit that decides, the lower address is all ones and the higher all zeros.
    let v4 = (0..32).map(|bit| {
        let high = 0xA5A5_A5A5_u32 >> (31 - bit) << (31 - bit) | 1 << (31 - bit);
        ("0.0.0.0/0", Ipv4Addr::from(high - 1).to_string(), Ipv4Addr::from(high).to_string())
    });
    let v6 = (0..128).map(|bit| {
        let high = (u128::MAX / 3) >> (127 - bit) << (127 - bit) | 1 << (127 - bit);
        ("::/0", Ipv6Addr::from(high - 1).to_string(), Ipv6Addr::from(high).to_string())
    });
    let mut wrong = Vec::new();
    for (cidr, low, high) in v4.chain(v6) {
        for (start, end, ordered) in [(&low, &high, true), (&high, &low, false)] {
            let pool = pool(cidr, start, end);
            let (cel, rust) = (evaluator.validate(None, &pool), validate(Kind::NodeIPPool, None, &pool));
            // Only in networks that are refused for their size can the highest bits differ.
            let is_ordered = cel.iter().all(|violation| violation.path != "spec.range.start");
            if cel != rust || is_ordered != ordered {
                wrong.push(format!("{start} to {end}: {cel:?} {rust:?}"));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
