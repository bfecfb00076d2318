//! The rules, each once: CEL for the API server, and beside it the Rust function that says the same.
//!
//! [`crate::definition`] puts the CEL into the CRDs, [`mod@crate::validate`] asks the functions, and a test asks
//! both of every manifest in `crds/cases`. A rule without a case there is not trusted.
//!
//! The CEL is within what API servers from 1.31 on know and, by their estimate, can afford: no `format`, no text of
//! a number or of an address (`string(…)`), no lists of texts made in a rule, and no `==` of addresses, on all of
//! which they see no bound.
//!
//! In every function `new` and `old` are the values at the rule's place, as CEL's `self` and `oldSelf`. They may
//! rely on what the schema says (types, required fields, bounds) and must never panic.

use serde_json::Value;

use crate::{
    Kind,
    validate::{Reason, Violation},
};

mod policy;
mod pool;
mod range;
mod selector;
mod slice;
mod state;

type Test = Box<dyn Fn(&Value, &Value) -> bool + Send + Sync>;
type Words = Box<dyn Fn(&Value, &Value) -> String + Send + Sync>;

/// One rule of a CRD.
pub struct Rule {
    /// True if all is well; an entry of `x-kubernetes-validations`.
    pub cel: String,
    pub(crate) holds: Test,
    /// The field to blame, from the rule's place on, such as `.start`; empty: the place itself.
    pub field: &'static str,
    /// What is wrong, where nothing better can be said.
    pub text: &'static str,
    /// What is wrong, with the values at hand: as CEL, and as a function.
    pub say: Option<(String, Words)>,
    pub reason: Reason,
}

impl Rule {
    /// Whether it compares with what was: asked of updates only.
    pub fn is_about_change(&self) -> bool {
        self.cel.contains("oldSelf")
    }

    pub(crate) fn message(&self, new: &Value, old: &Value) -> String {
        self.say.as_ref().map_or_else(|| self.text.to_owned(), |(_, words)| words(new, old))
    }

    fn at(self, field: &'static str) -> Self {
        Self { field, ..self }
    }

    fn forbidden(self) -> Self {
        Self { reason: Reason::Forbidden, ..self }
    }

    fn say(
        self,
        cel: impl Into<String>,
        words: impl Fn(&Value, &Value) -> String + Send + Sync + 'static,
    ) -> Self {
        Self { say: Some((cel.into(), Box::new(words))), ..self }
    }
}

/// A rule that holds for the place itself, until [`Rule::at`] and the like say otherwise.
fn rule(
    text: &'static str,
    cel: impl Into<String>,
    holds: impl Fn(&Value, &Value) -> bool + Send + Sync + 'static,
) -> Rule {
    Rule { cel: cel.into(), holds: Box::new(holds), field: "", text, say: None, reason: Reason::Invalid }
}

/// A rule at its place in the schema ([`crate::schema::place`]).
pub struct Placed {
    pub place: &'static str,
    pub rule: Rule,
}

fn place(place: &'static str, rules: Vec<Rule>) -> impl Iterator<Item = Placed> {
    rules.into_iter().map(move |rule| Placed { place, rule })
}

/// The rules in the CRD of a kind.
pub fn of(kind: Kind) -> Vec<Placed> {
    match kind {
        Kind::NodeIPPool => pool::rules(),
        Kind::NodeIPSlice => slice::rules(),
        Kind::NodeNetworkConfigurationPolicy => policy::rules(),
        Kind::NodeNetworkConfigurationEnactment => Vec::new(),
        Kind::NodeNetworkState => state::rules(),
    }
}

/// A rule that a CRD can't have, because it asks for the operation or compares free-form fields: it belongs
/// into a ValidatingAdmissionPolicy. The CEL is about `object` and `oldObject`.
pub struct AdmissionRule {
    pub operation: Operation,
    pub cel: &'static str,
    /// `messageExpression`.
    pub say: &'static str,
    holds: fn(&Value, &Value) -> bool,
    words: fn(&Value) -> String,
    pub field: &'static str,
    pub reason: Reason,
}

/// When an admission rule is asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Operation {
    Create,
    Update,
}

impl AdmissionRule {
    pub(crate) fn ask(&self, new: &Value, old: Option<&Value>) -> Option<Violation> {
        let operation = if old.is_some() { Operation::Update } else { Operation::Create };
        if operation != self.operation || (self.holds)(new, old.unwrap_or(&Value::Null)) {
            return None;
        }
        Some(Violation { path: self.field.to_owned(), message: (self.words)(new), reason: self.reason })
    }
}

/// The rules for the ValidatingAdmissionPolicy of a kind.
pub fn admission(kind: Kind) -> Vec<AdmissionRule> {
    match kind {
        Kind::NodeNetworkConfigurationPolicy => policy::admission(),
        _ => Vec::new(),
    }
}

/// The name of an object, empty if it has none.
fn name(object: &Value) -> &str {
    object.get("metadata").and_then(|meta| text(meta, "name")).unwrap_or_default()
}

/// A string field, if it is there.
fn text<'a>(value: &'a Value, field: &str) -> Option<&'a str> {
    value.get(field).and_then(Value::as_str)
}

/// The items of a list field, none if it is not there.
fn list<'a>(value: &'a Value, field: &str) -> &'a [Value] {
    value.get(field).and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default()
}

/// CEL for: this field is what it was.
fn unchanged(field: &str) -> String {
    format!(
        "has(self.{field}) == has(oldSelf.{field}) && (!has(self.{field}) || self.{field} == oldSelf.{field})"
    )
}
