//! The table of `crds/cases`: manifests, and what each is refused for. For tests alone (feature `testing`): `crds/tests` ask
//! it of the Rust rules and of their CEL, `tests/api` asks it of a real API server.
//!
//! Owns the table's format. Panics on a table that it can't read: there is nothing that a test could do about it.

use serde::Deserialize;
use serde_json::{Value, json};

use crate::Kind;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Table {
    kind: String,
    cases: Vec<Row>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Row {
    name: String,
    old: Option<Value>,
    new: Value,
    #[serde(default)]
    refused: Vec<Expected>,
    #[serde(default)]
    admission: bool,
}

/// One manifest, with what was there before if it is an update.
pub struct Case {
    pub name: String,
    pub old: Option<Value>,
    pub new: Value,
    /// Everything that is wrong with it; nothing: it is accepted.
    pub refused: Vec<Expected>,
    /// Only a ValidatingAdmissionPolicy refuses it: a CRD can't.
    pub is_admission: bool,
}

/// A violation, with a part of its message (none where the schema, not a rule, refuses).
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Expected {
    pub path: String,
    #[serde(default)]
    pub message: String,
}

/// All cases of a kind.
///
/// # Panics
/// If the table can't be read, or is another kind's.
pub fn cases(kind: Kind) -> Vec<Case> {
    let text = match kind {
        Kind::NodeIPPool => include_str!("../cases/nodeippool.yaml"),
        Kind::NodeIPSlice => include_str!("../cases/nodeipslice.yaml"),
        Kind::NodeNetworkConfigurationPolicy => {
            include_str!("../cases/nodenetworkconfigurationpolicy.yaml")
        }
        Kind::NodeNetworkConfigurationEnactment => {
            include_str!("../cases/nodenetworkconfigurationenactment.yaml")
        }
        Kind::NodeNetworkState => include_str!("../cases/nodenetworkstate.yaml"),
    };
    let table: Table =
        serde_saphyr::from_str(text).unwrap_or_else(|error| panic!("the cases of {}: {error}", kind.name()));
    assert_eq!(table.kind, kind.name(), "whose cases these are");
    let case = |row: Row| Case {
        name: row.name,
        old: row.old.as_ref().map(|value| manifest(kind, value)),
        new: manifest(kind, &row.new),
        refused: row.refused,
        is_admission: row.admission,
    };
    table.cases.into_iter().map(case).collect()
}

/// The cases leave out what is the same for all.
fn manifest(kind: Kind, value: &Value) -> Value {
    let version = &kind.definition().crd.spec.versions[0].name;
    let mut whole = json!({"apiVersion": format!("nmstate.io/{version}"), "kind": kind.name()});
    for (key, field) in value.as_object().into_iter().flatten() {
        whole[key] = field.clone();
    }
    whole
}
