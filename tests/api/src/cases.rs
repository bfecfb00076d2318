//! The table of `crds/cases`: manifests, and what each is refused for. `crds/tests` asks it of the Rust rules and of their
//! CEL; here it is read to be asked of a server.

use std::path::Path;

use crds::{Kind, Violation};
use serde::Deserialize;
use serde_json::{Value, json};

#[derive(Deserialize)]
struct Table {
    cases: Vec<Row>,
}

#[derive(Deserialize)]
struct Row {
    name: String,
    old: Option<Value>,
    new: Value,
    #[serde(default)]
    admission: bool,
}

/// One manifest, with what was there before if it is an update.
pub struct Case {
    pub name: String,
    pub old: Option<Value>,
    pub new: Value,
    /// Only a ValidatingAdmissionPolicy refuses it: a CRD can't.
    pub is_admission: bool,
}

/// All of a kind.
pub fn load(kind: Kind) -> Vec<Case> {
    let file = format!("../../crds/cases/{}.yaml", kind.name().to_lowercase());
    let text = std::fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join(&file)).expect(&file);
    let table: Table = serde_saphyr::from_str(&text).unwrap_or_else(|wrong| panic!("{file}: {wrong}"));
    let case = |row: Row| Case {
        name: row.name,
        old: row.old.as_ref().map(|value| manifest(kind, value)),
        new: manifest(kind, &row.new),
        is_admission: row.admission,
    };
    table.cases.into_iter().map(case).collect()
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

/// Where the server has them.
pub fn collection(kind: Kind) -> String {
    let spec = &kind.definition().crd.spec;
    format!("/apis/{}/{}/{}", spec.group, spec.versions[0].name, spec.names.plural)
}

/// What Rust says of a case, as a server's causes have it: the field, the reason, and the words where a rule said them.
/// The schema has words of its own on either side.
pub fn expected(kind: Kind, case: &Case) -> Vec<Cause> {
    let schema = &kind.definition().schema;
    let defaulted = |value: &Value| {
        let mut value = value.clone();
        crds::schema::apply_defaults(schema, &mut value);
        value
    };
    let by_schema =
        crds::schema::check(schema, &defaulted(&case.new), case.old.as_ref().map(defaulted).as_ref());
    let cause = |violation: Violation| Cause {
        words: (!by_schema.contains(&violation)).then(|| violation.message.clone()),
        field: violation.path,
        reason: violation.reason.as_str().to_owned(),
    };
    let mut found: Vec<Cause> =
        crds::validate(kind, case.old.as_ref(), &case.new).into_iter().map(cause).collect();
    found.sort();
    found
}

/// One thing that is wrong.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Cause {
    pub field: String,
    pub reason: String,
    pub words: Option<String>,
}
