//! Rules of a `nodeSelector`: what Kubernetes asks of one in a pod, and a CRD must ask for itself.

use serde_json::Value;

use super::{Rule, list, rule, text};

/// What holds for each of `matchExpressions` and `matchFields`: as many values as the operator needs.
pub(super) fn of_requirement() -> Vec<Rule> {
    const NONE: &str = "!has(self.values) || size(self.values) == 0";
    let cel = format!(
        "self.operator == 'In' || self.operator == 'NotIn' ? !({NONE}) : \
         self.operator == 'Exists' || self.operator == 'DoesNotExist' ? {NONE} : \
         has(self.values) && size(self.values) == 1 && self.values[0].matches('^[-+]?[0-9]{{1,18}}$')"
    );
    let say = "self.operator == 'In' || self.operator == 'NotIn' ? 'In and NotIn need at least one value' : \
         self.operator == 'Gt' || self.operator == 'Lt' ? 'Gt and Lt take exactly one value, an integer' : \
         'Exists and DoesNotExist take no values'";
    vec![
        rule("values must fit the operator", cel, |new, _| {
            let values = list(new, "values");
            match text(new, "operator") {
                Some("In" | "NotIn") => !values.is_empty(),
                Some("Exists" | "DoesNotExist") => values.is_empty(),
                _ => matches!(values, [one] if one.as_str().is_some_and(is_integer)),
            }
        })
        .at(".values")
        .say(say, |new, _| {
            let wrong = match text(new, "operator") {
                Some("In" | "NotIn") => "In and NotIn need at least one value",
                Some("Gt" | "Lt") => "Gt and Lt take exactly one value, an integer",
                _ => "Exists and DoesNotExist take no values",
            };
            wrong.to_owned()
        }),
    ]
}

/// What holds for each of `matchFields`, besides.
pub(super) fn of_field() -> Vec<Rule> {
    vec![
        rule("only the field metadata.name can be selected by", "self.key == 'metadata.name'", |new, _| {
            text(new, "key") == Some("metadata.name")
        })
        .at(".key"),
        rule(
            "only In and NotIn can be used with a field",
            "self.operator == 'In' || self.operator == 'NotIn'",
            |new: &Value, _: &Value| matches!(text(new, "operator"), Some("In" | "NotIn")),
        )
        .at(".operator"),
    ]
}

/// Of so many digits that it can be counted.
fn is_integer(text: &str) -> bool {
    let digits = text.strip_prefix(['-', '+']).unwrap_or(text);
    (1..=18).contains(&digits.len()) && digits.bytes().all(|c| c.is_ascii_digit())
}
