//! `crds` and `policy` do not know each other, so nothing but this test keeps them of one mind: what the API
//! takes the core must be able to use, and what the core refuses the API must refuse first.

use std::collections::BTreeMap;
use std::net::IpAddr;

use crds::{Kind, validate};
use policy::pool::{Pool, PoolErrors, PoolSpec, change, check_encoding, hints};
use serde_json::{Value, json};

/// The table of manifests that the API's rules are tested with.
fn cases() -> Vec<Value> {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../crds/cases/nodeippool.yaml");
    let text = std::fs::read_to_string(path).expect("the table of cases is there");
    let table: Value = serde_saphyr::from_str(&text).expect("the table of cases is YAML");
    table["cases"].as_array().expect("a list of cases").clone()
}

fn manifest(spec: &Value) -> Value {
    let mut manifest = spec.clone();
    manifest["apiVersion"] = json!("nmstate.io/v1");
    manifest["kind"] = json!("NodeIPPool");
    manifest
}

const GRACE: &str = "the minute is a controller's to count, and said in the status";

/// What only the API refuses, and why the core need not: it never meets such a pool, and could use it.
const ONLY_THE_API: [(&str, &str); 9] = [
    ("prefix length with a leading zero", "a spelling: the network is clear"),
    ("cidr is written without its host bits (D4)", "a spelling: the network is the same"),
    ("cidr becomes a half (R94)", "a spelling: the network is the same"),
    ("exclude is written otherwise", "a spelling: the addresses are the same"),
    ("reservation not canonical", "a spelling: the address is clear"),
    ("reservation for a node that can't be", "names of nodes are the API's; nobody of that name will ask"),
    ("quarantine longer than a duration may be written", "a bound that keeps the rules cheap"),
    ("a draining range is removed before its minute is over (R65)", GRACE),
    ("another range is removed than the one whose minute is over (R65)", GRACE),
];

/// What either has against a pool, in its own words; the API's about the spec only, for a name or a status is no
/// business of the core.
fn compare(case: &Value) -> Option<String> {
    let (name, new) = (case["name"].as_str()?, manifest(&case["new"]));
    let old = case.get("old").map(manifest);
    let api = validate(Kind::NodeIPPool, old.as_ref(), &new);
    let (of_spec, others): (Vec<_>, Vec<_>) =
        api.iter().map(ToString::to_string).partition(|text| text.starts_with("spec"));
    let core = match &old {
        None => PoolSpec::from_manifest(&new).and_then(|spec| Pool::new(&spec)).map(drop),
        Some(old) => changed(old, &new),
    };
    let excused = ONLY_THE_API.iter().any(|(known, _)| *known == name);
    match (of_spec.is_empty(), core) {
        (true, Err(errors)) if others.is_empty() => Some(format!("{name}: only the core refuses: {errors}")),
        (false, Ok(())) if !excused => Some(format!("{name}: only the API refuses: {}", of_spec.join("; "))),
        (false, Err(_)) | (true, Ok(())) if excused => Some(format!("{name}: no longer a difference")),
        _ => None,
    }
}

fn changed(old: &Value, new: &Value) -> Result<(), PoolErrors> {
    let (before, after) = (PoolSpec::from_manifest(old)?, PoolSpec::from_manifest(new)?);
    let ledger = new.pointer("/status/allocations").and_then(Value::as_object);
    let held: Vec<IpAddr> =
        ledger.into_iter().flat_map(|ledger| ledger.keys()).filter_map(|key| key.parse().ok()).collect();
    change(&before, &after, &held).map_err(PoolErrors)
}

/// D4, R2, R3, R11, R61, R62: every pool that may be created or changed, and every one that may not.
#[test]
fn the_api_and_the_core_take_the_same_pools() {
    let cases = cases();
    let differences: Vec<String> = cases.iter().filter_map(compare).collect();
    assert!(cases.len() > 150, "the table has {} cases", cases.len());
    for (known, _) in ONLY_THE_API {
        assert!(cases.iter().any(|case| case["name"] == known), "no case {known}");
    }
    assert!(differences.is_empty(), "{} differences:\n{}", differences.len(), differences.join("\n"));
}

/// D12, R59: both crates speak of the same annotations and values.
#[test]
fn the_api_and_the_core_encode_alike() {
    use crds::names::annotation;
    let current = BTreeMap::from([
        (annotation::SCHEMA_VERSION.to_owned(), annotation::SCHEMA_VERSION_CURRENT.to_owned()),
        (annotation::LEDGER_ENCODING.to_owned(), annotation::LEDGER_ENCODING_CURRENT.to_owned()),
    ]);
    assert_eq!(check_encoding(&current), Ok(()));
    assert_eq!(hints(), current);
}
