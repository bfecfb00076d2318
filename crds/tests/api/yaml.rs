//! The committed YAML is what the code generates, and `kubectl apply` can take it.

use std::{collections::BTreeSet, fs, path::Path};

use crds::Kind;
use serde_json::{Value, json};

fn folder() -> std::path::PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("yaml")
}

#[test]
fn the_committed_yaml_is_up_to_date() {
    let mut stale = Vec::new();
    for kind in Kind::ALL {
        let file = folder().join(format!("{}.yaml", kind.name().to_lowercase()));
        let committed = fs::read_to_string(&file).unwrap_or_default();
        if committed != crds::yaml(kind).expect("YAML") {
            stale.push(file.display().to_string());
        }
    }
    assert!(stale.is_empty(), "run `cargo run -p crds --example generate`, these are stale: {stale:?}");
}

#[test]
fn there_is_no_other_file() {
    let found: BTreeSet<String> = fs::read_dir(folder())
        .expect("crds/yaml")
        .map(|entry| entry.expect("an entry").file_name().to_string_lossy().into_owned())
        .collect();
    let kinds = Kind::ALL.iter().map(|kind| format!("{}.yaml", kind.name().to_lowercase()));
    // By hand: what makes the folder one that others can take in. It names them all.
    let list = "kustomization.yaml".to_owned();
    assert_eq!(found, kinds.clone().chain([list.clone()]).collect());
    let list = fs::read_to_string(folder().join(list)).expect("a list");
    let missing: Vec<String> = kinds.filter(|name| !list.contains(&format!("- {name}\n"))).collect();
    assert!(missing.is_empty(), "kustomization.yaml lacks {missing:?}");
}

#[test]
fn yaml_says_what_the_crd_says() {
    fn no_null(value: &Value, path: &str) {
        match value {
            Value::Null => panic!("null at {path}"),
            Value::Object(map) => {
                map.iter().for_each(|(key, child)| no_null(child, &format!("{path}.{key}")));
            }
            Value::Array(list) => list.iter().for_each(|child| no_null(child, path)),
            _ => {}
        }
    }
    for (kind, crd) in Kind::ALL.into_iter().zip(crds::all()) {
        let read: Value = serde_saphyr::from_str(&crds::yaml(kind).expect("YAML")).expect("YAML");
        no_null(&read, kind.name());
        assert!(read.get("status").is_none());
        // Only a name, and a word to tools that would delete it with all its objects.
        let kept = json!({
            "argocd.argoproj.io/sync-options": "Prune=false,Delete=false",
            "kustomize.toolkit.fluxcd.io/prune": "disabled",
        });
        assert_eq!(read["metadata"], json!({"name": crd.metadata.name, "annotations": kept}));
        let back: k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition =
            serde_json::from_value(read).expect("a CRD");
        assert_eq!(back, crd);
    }
}
