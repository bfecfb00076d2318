//! What may be written: the schema, then the rules, in the order and with the omissions of the API server.
//!
//! The embedded API calls it on every write, the CLI before it uses a file. Pure, and linear in the object.

use std::fmt;

use serde_json::Value;

use crate::{
    Kind,
    rules::Rule,
    schema::{self, place},
};

/// Why a value is refused, in the words of the API server's `causes`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Reason {
    Invalid,
    Forbidden,
    Required,
    Duplicate,
    NotSupported,
    TypeInvalid,
    TooLong,
    TooMany,
}

impl Reason {
    /// As it stands in `status.details.causes[].reason`, and in a CRD's rules.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Invalid => "FieldValueInvalid",
            Self::Forbidden => "FieldValueForbidden",
            Self::Required => "FieldValueRequired",
            Self::Duplicate => "FieldValueDuplicate",
            Self::NotSupported => "FieldValueNotSupported",
            Self::TypeInvalid => "FieldValueTypeInvalid",
            Self::TooLong => "FieldValueTooLong",
            Self::TooMany => "FieldValueTooMany",
        }
    }

    /// Whether rules can't be asked of such an object: they may rely on types, bounds and required fields.
    pub fn blocks_rules(self) -> bool {
        matches!(
            self,
            Self::Required | Self::NotSupported | Self::TypeInvalid | Self::TooLong | Self::TooMany
        )
    }
}

/// One thing wrong with an object.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Violation {
    /// Where, such as `spec.ranges[0].start`; empty for the object as a whole.
    pub path: String,
    /// What is wrong and, where it isn't obvious, what to do.
    pub message: String,
    pub reason: Reason,
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.path.is_empty() {
            f.write_str(&self.message)
        } else {
            write!(f, "{}: {}", self.path, self.message)
        }
    }
}

/// Everything that speaks against writing `new` where `old` was (or nothing was). Empty: it may be written.
///
/// Both may be as a person wrote them: defaults are filled in first, in copies.
pub fn validate(kind: Kind, old: Option<&Value>, new: &Value) -> Vec<Violation> {
    let definition = kind.definition();
    let defaulted = |value: &Value| {
        let mut value = value.clone();
        schema::apply_defaults(&definition.schema, &mut value);
        value
    };
    let (new, old) = (defaulted(new), old.map(defaulted));
    let mut found = schema::check(&definition.schema, &new, old.as_ref());
    if found.iter().any(|violation| violation.reason.blocks_rules()) {
        return found;
    }
    for placed in &definition.rules {
        for spot in place::spots(&definition.schema, placed.place, &new, old.as_ref()) {
            found.extend(ask(&placed.rule, spot.new, spot.old, &spot.path));
        }
    }
    for rule in &definition.admission {
        found.extend(rule.ask(&new, old.as_ref()));
    }
    found
}

/// One rule, of one value. A rule about a change is not asked of what is new; any other is not asked again of
/// what stays as it was.
fn ask(rule: &Rule, new: &Value, old: Option<&Value>, path: &str) -> Option<Violation> {
    let unasked = if rule.is_about_change() { old.is_none() } else { old == Some(new) };
    let before = old.unwrap_or(&Value::Null);
    if unasked || (rule.holds)(new, before) {
        return None;
    }
    Some(Violation {
        path: format!("{path}{}", rule.field).trim_start_matches('.').to_owned(),
        message: rule.message(new, before),
        reason: rule.reason,
    })
}
