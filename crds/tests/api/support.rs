//! Reads the table of cases.

pub(crate) mod cel;

use std::{fs, path::Path};

use crds::Kind;
use serde::Deserialize;
use serde_json::{Value, json};

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Table {
    kind: String,
    cases: Vec<Case>,
}

/// One manifest, with what it was before if it is an update.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Case {
    pub(crate) name: String,
    old: Option<Value>,
    new: Value,
    /// Everything that is wrong with it; nothing: it is accepted.
    #[serde(default)]
    pub(crate) refused: Vec<Expected>,
    /// Only a ValidatingAdmissionPolicy refuses it: a CRD can't.
    #[serde(default, rename = "admission")]
    _admission: bool,
    /// Where the evaluator that the test uses is known to differ from the API server's, and how.
    pub(crate) evaluator: Option<String>,
}

/// A violation, with a part of its message (none where the schema, not a rule, refuses).
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Expected {
    pub(crate) path: String,
    #[serde(default)]
    pub(crate) message: String,
}

impl Case {
    pub(crate) fn before(&self, kind: Kind) -> Option<Value> {
        self.old.as_ref().map(|value| manifest(kind, value))
    }

    pub(crate) fn after(&self, kind: Kind) -> Value {
        manifest(kind, &self.new)
    }
}

/// The cases leave out what is the same for all.
fn manifest(kind: Kind, value: &Value) -> Value {
    let version = &kind.definition().crd.spec.versions[0].name;
    let mut whole = json!({"apiVersion": format!("nmstate.io/{version}"), "kind": kind.name()});
    for (key, field) in value.as_object().expect("a manifest is a map") {
        whole[key] = field.clone();
    }
    whole
}

pub(crate) fn load(kind: Kind) -> Vec<Case> {
    let file = format!("cases/{}.yaml", kind.name().to_lowercase());
    let text = fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join(&file)).expect(&file);
    let table: Table = serde_saphyr::from_str(&text).unwrap_or_else(|error| panic!("{file}: {error}"));
    assert_eq!(table.kind, kind.name(), "{file}");
    table.cases
}
