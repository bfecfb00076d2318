//! Policies as files have them: whole manifests, or a bare document of what is rendered.

use anyhow::Context;
use crds::Kind;
use serde_json::{Map, Value};

use super::output;
use crate::pools;

/// What a bare document may have: nmstate refuses anything else, and a misspelt key must not vanish.
const BARE: [&str; 3] = ["capture", "desiredState", "desired"];
/// What belongs under `spec`.
const SPEC: [&str; 4] = ["nodeSelector", "capture", "desiredState", "maxUnavailable"];

/// Whether a document without `kind` is a policy.
pub(super) fn is_bare_policy(value: &Value) -> bool {
    let Some(fields) = value.as_object() else {
        return false;
    };
    !fields.is_empty() && fields.keys().all(|key| BARE.contains(&key.as_str()))
}

/// What was refused, for the head of an error.
pub(super) fn refused(file: &str, manifest: &Value) -> String {
    let kind = manifest.get("kind").and_then(Value::as_str).unwrap_or_default();
    let name = manifest.pointer("/metadata/name").and_then(Value::as_str).unwrap_or("without a name");
    let hint = if names_a_boolean(manifest) { BOOLEANS } else { "" };
    format!("{file}: {kind} {name} can't be used{hint}")
}

const BOOLEANS: &str = " (y, n, yes, no, on and off are booleans in YAML: a node of that name needs quotes)";

/// Whether somewhere a node is called by a boolean.
fn names_a_boolean(value: &Value) -> bool {
    match value {
        Value::Object(fields) => {
            fields.get("node").is_some_and(Value::is_boolean) || fields.values().any(names_a_boolean)
        }
        Value::Array(items) => items.iter().any(names_a_boolean),
        _ => false,
    }
}

/// The manifest, if the API server would take it. `capture` and `desiredState` beside `spec` instead of under it, as the
/// proposal that brought pools to policies shows them, are moved to where they belong.
pub(super) fn checked(file: &str, mut manifest: Value) -> anyhow::Result<Value> {
    if let Value::Object(fields) = &mut manifest
        && !fields.contains_key("spec")
    {
        let mut spec = Map::new();
        for key in SPEC {
            if let Some(value) = fields.shift_remove(key) {
                spec.insert(key.to_owned(), value);
            }
        }
        if !spec.is_empty() {
            let keys: Vec<&str> = spec.keys().map(String::as_str).collect();
            let keys = keys.join(" and ");
            output::warn(
                file,
                format!("{keys} must stand under spec: a cluster would drop them where they are"),
            );
            fields.insert("spec".to_owned(), Value::Object(spec));
        }
    }
    pools::check(Kind::NodeNetworkConfigurationPolicy, &manifest)
        .with_context(|| refused(file, &manifest))?;
    Ok(manifest)
}
