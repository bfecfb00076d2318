//! `crds` and `policy` do not know each other, so nothing but this test keeps them of one mind: what the API
//! takes the core must be able to use, and what the core refuses the API must refuse first.

use std::collections::BTreeMap;

use crds::{Kind, validate};
use policy::pool::{Pool, PoolSpec, check_encoding, hints};
use serde_json::{Value, json};

/// The table of manifests that the API's rules are tested with.
fn cases() -> Vec<Value> {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../crds/cases/nodeippool.yaml");
    let text = std::fs::read_to_string(path).expect("the table of cases is there");
    let table: Value = serde_saphyr::from_str(&text).expect("the table of cases is YAML");
    table["cases"].as_array().expect("a list of cases").clone()
}

fn manifest(case: &Value) -> Value {
    let mut manifest = case["new"].clone();
    manifest["apiVersion"] = json!("nmstate.io/v1");
    manifest["kind"] = json!("NodeIPPool");
    manifest
}

/// D4, R2, R3, R11: every pool that may be created, and every one that may not.
#[test]
fn the_api_and_the_core_take_the_same_pools() {
    let mut differences = Vec::new();
    let cases = cases();
    for case in cases.iter().filter(|case| case.get("old").is_none()) {
        let manifest = manifest(case);
        let api = validate(Kind::NodeIPPool, None, &manifest);
        // What is wrong outside the spec (its name, its status) is no business of the core.
        let refused: Vec<_> = api
            .iter()
            .filter(|violation| violation.path.starts_with("spec"))
            .collect();
        let core = PoolSpec::from_manifest(&manifest).and_then(|spec| Pool::new(&spec));
        match (refused.is_empty() && api.is_empty(), core) {
            (true, Err(errors)) => {
                differences.push(format!("{}: only the core refuses: {errors}", case["name"]))
            }
            (false, Ok(_)) if !refused.is_empty() => {
                differences.push(format!("{}: only the API refuses: {refused:?}", case["name"]));
            }
            _ => {}
        }
    }
    assert!(cases.len() > 60, "the table has {} cases", cases.len());
    assert!(
        differences.is_empty(),
        "{} differences:\n{}",
        differences.len(),
        differences.join("\n")
    );
}

/// D12, R59: both crates speak of the same annotations and values.
#[test]
fn the_api_and_the_core_encode_alike() {
    use crds::names::annotation;
    let current = BTreeMap::from([
        (
            annotation::SCHEMA_VERSION.to_owned(),
            annotation::SCHEMA_VERSION_CURRENT.to_owned(),
        ),
        (
            annotation::LEDGER_ENCODING.to_owned(),
            annotation::LEDGER_ENCODING_CURRENT.to_owned(),
        ),
    ]);
    assert_eq!(check_encoding(&current), Ok(()));
    assert_eq!(hints(), current);
}
