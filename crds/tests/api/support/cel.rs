//! Asks the CEL rules of a CRD, with a CEL evaluator of its own, the way the API server does.
//!
//! The evaluator checks one node at a time and this module walks: the evaluator by itself would find the
//! predecessor of a list's item by its index, where the API server goes by the list's map keys.

use crds::{
    Kind, Reason, Violation,
    rules::{AdmissionRule, Operation},
    schema::{
        self,
        place::{self, Spot},
    },
};
use kube_cel::{
    AdmissionRequest, CompiledSchema, ErrorKind, ValidationError, Validator, VapEvaluator, VapExpression,
};
use serde_json::Value;

/// The CEL rules of one CRD, compiled.
pub(crate) struct Evaluator {
    kind: Kind,
    places: Vec<Place>,
}

struct Place {
    at: &'static str,
    rules: CompiledSchema,
    /// Those about change alone: the others are not asked again of what stays as it was.
    about_change: CompiledSchema,
}

impl Evaluator {
    pub(crate) fn new(kind: Kind) -> Self {
        let definition = kind.definition();
        let mut places: Vec<&'static str> = definition.rules.iter().map(|placed| placed.place).collect();
        places.sort_unstable();
        places.dedup();
        let place = |at| {
            let mut node = place::schema_at(&definition.schema, at).expect(at).clone();
            for child in ["properties", "items", "additionalProperties"] {
                node.get_mut(child).into_iter().for_each(without_rules);
            }
            let rules = kube_cel::compile_schema(&node);
            if let Some(rules) = node["x-kubernetes-validations"].as_array_mut() {
                rules.retain(|rule| rule["rule"].as_str().is_some_and(|cel| cel.contains("oldSelf")));
            }
            Place { at, rules, about_change: kube_cel::compile_schema(&node) }
        };
        Self { kind, places: places.into_iter().map(place).collect() }
    }

    /// What the schema and the CEL rules say of an object.
    pub(crate) fn validate(&self, old: Option<&Value>, new: &Value) -> Vec<Violation> {
        let definition = self.kind.definition();
        let defaulted = |value: &Value| kube_cel::apply_defaults(&definition.schema, value);
        let (new, old) = (defaulted(new), old.map(defaulted));
        let mut found = schema::check(&definition.schema, &new, old.as_ref());
        if found.iter().any(|violation| violation.reason.blocks_rules()) {
            return found;
        }
        for place in &self.places {
            for spot in place::spots(&definition.schema, place.at, &new, old.as_ref()) {
                let rules = if spot.old == Some(spot.new) { &place.about_change } else { &place.rules };
                found.extend(ask(rules, &spot));
            }
        }
        found.extend(definition.admission.iter().filter_map(|rule| ask_policy(rule, &new, old.as_ref())));
        found
    }
}

fn ask(rules: &CompiledSchema, spot: &Spot<'_>) -> Vec<Violation> {
    let answer = Validator::new().validate_compiled(rules, spot.new, spot.old);
    let errors = answer.err().map(|errors| errors.into_vec()).unwrap_or_default();
    let violation = |error: ValidationError| {
        assert_eq!(error.kind, ErrorKind::ValidationFailure, "{error:?}");
        let field = error.field_path.trim_start_matches('.');
        let dot = if spot.path.is_empty() || field.is_empty() { "" } else { "." };
        Violation {
            path: format!("{}{dot}{field}", spot.path),
            message: error.message,
            reason: match error.reason.as_deref() {
                Some("FieldValueForbidden") => Reason::Forbidden,
                _ => Reason::Invalid,
            },
        }
    };
    errors.into_iter().map(violation).collect()
}

/// The types of what is below are needed, the rules there are not: they are asked at their own place.
fn without_rules(schema: &mut Value) {
    match schema {
        Value::Object(map) => {
            map.shift_remove("x-kubernetes-validations");
            map.values_mut().for_each(without_rules);
        }
        Value::Array(list) => list.iter_mut().for_each(without_rules),
        _ => {}
    }
}

fn ask_policy(rule: &AdmissionRule, new: &Value, old: Option<&Value>) -> Option<Violation> {
    let operation = if old.is_some() { Operation::Update } else { Operation::Create };
    if operation != rule.operation {
        return None;
    }
    let name = if old.is_some() { "UPDATE" } else { "CREATE" };
    let request = AdmissionRequest { operation: name.into(), ..AdmissionRequest::default() };
    let builder = VapEvaluator::builder().object(new.clone()).request(request);
    let builder = match old {
        Some(old) => builder.old_object(old.clone()),
        None => builder,
    };
    let expression = VapExpression {
        expression: rule.cel.to_owned(),
        message: None,
        message_expression: Some(rule.say.to_owned()),
    };
    let result = builder.build().evaluate(&[expression]).into_iter().next().expect("one answer");
    let message = result.message.unwrap_or_default();
    (!result.passed).then(|| Violation { path: rule.field.to_owned(), message, reason: rule.reason })
}
