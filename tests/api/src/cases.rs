//! What Rust says of the table of `crds/cases`, in the form of a server's answer.

use crds::testing::Case;
use crds::{Kind, Violation};
use serde_json::Value;

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
