//! Checks a value against a structural schema: types, required fields, bounds, patterns, map keys of lists.
//!
//! Reports everything that is wrong, not only the first. What an update leaves as it was is not judged again
//! (the API server calls that ratcheting): an object stored under older, laxer bounds stays writable.

use std::collections::{BTreeSet, HashMap};
use std::sync::{Arc, LazyLock, Mutex, PoisonError};

use k8s_openapi::jiff::civil::Date;
use regex_lite::Regex;
use serde_json::{Map, Value};

use super::TIME;
use super::place::{join, predecessor};
use crate::validate::{Reason, Violation};

/// What in `new` the schema forbids.
pub fn check(schema: &Value, new: &Value, old: Option<&Value>) -> Vec<Violation> {
    let mut found = Vec::new();
    node(schema, new, old, "", &mut found);
    found
}

fn node(schema: &Value, new: &Value, old: Option<&Value>, path: &str, found: &mut Vec<Violation>) {
    if old == Some(new) {
        return;
    }
    let mut report = |reason, message: String| {
        found.push(Violation { path: path.to_owned(), message, reason });
    };
    if let Some(wanted) = wrong_type(schema, new) {
        report(Reason::TypeInvalid, format!("must be of type {wanted}, is {}", type_name(new)));
        return;
    }
    let accepted = schema.get("enum").and_then(Value::as_array);
    if let Some(accepted) = accepted.filter(|accepted| !accepted.contains(new)) {
        let names: Vec<String> = accepted.iter().map(ToString::to_string).collect();
        report(Reason::NotSupported, format!("{new} is not one of {}", names.join(", ")));
    }
    match new {
        Value::String(text) => {
            for (reason, message) in wrong_text(schema, text).into_iter().chain(wrong_time(schema, text)) {
                report(reason, message);
            }
        }
        Value::Number(_) => {
            for (reason, message) in wrong_number(schema, new) {
                report(reason, message);
            }
            found.extend(unchecked(schema, new, path));
        }
        Value::Object(object) => check_object(schema, object, old, path, found),
        Value::Array(list) => check_list(schema, list, old, path, found),
        _ => {}
    }
}

fn check_object(
    schema: &Value,
    object: &Map<String, Value>,
    old: Option<&Value>,
    path: &str,
    found: &mut Vec<Violation>,
) {
    if let Some(max) = limit(schema, "maxProperties").filter(|max| object.len() as u64 > *max) {
        let message = format!("has {} entries, at most {max} are allowed", object.len());
        found.push(Violation { path: path.to_owned(), message, reason: Reason::TooMany });
    }
    let required = schema.get("required").and_then(Value::as_array).into_iter().flatten();
    for name in required.filter_map(Value::as_str).filter(|name| !object.contains_key(*name)) {
        let message = format!("{name} is required");
        found.push(Violation { path: join(path, name), message, reason: Reason::Required });
    }
    for (name, value) in object {
        let before = old.and_then(|old| old.get(name));
        if let Some(property) = schema.get("properties").and_then(|properties| properties.get(name)) {
            node(property, value, before, &join(path, name), found);
        } else if let Some(each) = schema.get("additionalProperties") {
            node(each, value, before, &join(path, name), found);
        }
    }
}

fn check_list(schema: &Value, list: &[Value], old: Option<&Value>, path: &str, found: &mut Vec<Violation>) {
    let count = list.len() as u64;
    if let Some(max) = limit(schema, "maxItems").filter(|max| count > *max) {
        let message = format!("has {count} items, at most {max} are allowed");
        found.push(Violation { path: path.to_owned(), message, reason: Reason::TooMany });
    }
    if let Some(min) = limit(schema, "minItems").filter(|min| count < *min) {
        let message = format!("has {count} items, at least {min} are needed");
        found.push(Violation { path: path.to_owned(), message, reason: Reason::Invalid });
    }
    let Some(each) = schema.get("items") else { return };
    let keys = schema.get("x-kubernetes-list-map-keys").and_then(Value::as_array);
    let mut seen = BTreeSet::new();
    for (index, item) in list.iter().enumerate() {
        let here = format!("{path}[{index}]");
        if let Some(keys) = keys {
            let key: Vec<String> = keys
                .iter()
                .filter_map(Value::as_str)
                .filter_map(|key| item.get(key).map(|value| format!("{key} {value}")))
                .collect();
            let named = key.join(", ");
            if !named.is_empty() && !seen.insert(named.clone()) {
                let message = format!("another item has the same {named}");
                found.push(Violation { path: here.clone(), message, reason: Reason::Duplicate });
            }
        }
        node(each, item, predecessor(schema, item, old), &here, found);
    }
}

fn wrong_text(schema: &Value, text: &str) -> Option<(Reason, String)> {
    let length = text.chars().count() as u64;
    if let Some(max) = limit(schema, "maxLength").filter(|max| length > *max) {
        return Some((Reason::TooLong, format!("has {length} characters, at most {max} are allowed")));
    }
    if let Some(min) = limit(schema, "minLength").filter(|min| length < *min) {
        return Some((Reason::Invalid, format!("has {length} characters, at least {min} are needed")));
    }
    let pattern = schema.get("pattern").and_then(Value::as_str).filter(|pattern| !fits(pattern, text))?;
    let message = match pattern {
        TIME => format!("{text:?} is no time of whole seconds in UTC, from 1970 to 2999: {AS_TIMES_ARE}"),
        pattern => format!("{text:?} does not match {pattern}"),
    };
    Some((Reason::Invalid, message))
}

const AS_TIMES_ARE: &str = "such as 2006-01-02T15:04:05Z";

/// What the API server says of `date-time`, beside a pattern: that there is such a day and such a time of day.
fn wrong_time(schema: &Value, text: &str) -> Option<(Reason, String)> {
    const CLOCK: &str = r"^([01][0-9]|2[0-3])(:[0-5][0-9]){2}(.[0-9]+)?(z|[+-][0-9]{2}:[0-9]{2})$";
    let text_is_time = || {
        let lower = text.to_lowercase();
        let (day, rest) = lower.split_once('t')?;
        let clock = rest.split('t').next()?;
        let is_day = fits("^[0-9]{4}-[0-9]{2}-[0-9]{2}$", day) && day.parse::<Date>().is_ok();
        (is_day && fits(CLOCK, clock)).then_some(())
    };
    let is_time = schema.get("format").and_then(Value::as_str) == Some("date-time");
    (is_time && text_is_time().is_none())
        .then(|| (Reason::TypeInvalid, format!("{text:?} is not a time {AS_TIMES_ARE}")))
}

/// The API server says it twice of a number that its type has no place for: once more of the status, or of the
/// object as a whole.
fn unchecked(schema: &Value, number: &Value, path: &str) -> Option<Violation> {
    let text = |keyword| schema.get(keyword).and_then(Value::as_str);
    let format = text("format");
    let fits = match format {
        Some("int32") => number.as_i64().is_some_and(|number| i32::try_from(number).is_ok()),
        _ => number.as_i64().is_some(),
    };
    if fits || text("type") != Some("integer") {
        return None;
    }
    let (part, name) = match path.split_once('.')? {
        ("status", name) => ("status", name),
        ("spec", _) => ("", path),
        _ => return None,
    };
    let format =
        format.map_or_else(|| "(default format)".to_owned(), |format| format!("with format {format}"));
    let message = format!("Checked value must be of type integer {format} in {name}");
    Some(Violation { path: part.to_owned(), message, reason: Reason::Invalid })
}

/// Whether a text fits a pattern. Patterns are the schemas', a few dozen in all: each is compiled once, which takes longer
/// than all else about an object.
fn fits(pattern: &str, text: &str) -> bool {
    static COMPILED: LazyLock<Mutex<HashMap<String, Option<Arc<Regex>>>>> = LazyLock::new(Mutex::default);
    let regex = {
        let mut compiled = COMPILED.lock().unwrap_or_else(PoisonError::into_inner);
        match compiled.get(pattern) {
            Some(regex) => regex.clone(),
            None => {
                let regex = Regex::new(pattern).ok().map(Arc::new);
                compiled.insert(pattern.to_owned(), regex.clone());
                regex
            }
        }
    };
    regex.is_some_and(|regex| regex.is_match(text))
}

fn wrong_number(schema: &Value, number: &Value) -> Vec<(Reason, String)> {
    let mut wrong = Vec::new();
    // Typed readers, the API server's among them, have no place for more: to it that is no integer at all.
    let is_integer = schema.get("type").and_then(Value::as_str) == Some("integer");
    if (is_integer || is_int_or_string(schema)) && number.as_i64().is_none() {
        wrong.push((Reason::TypeInvalid, format!("{number} is more than {}", i64::MAX)));
    }
    let Some(value) = number.as_f64() else { return wrong };
    let bound = |key| schema.get(key).and_then(Value::as_f64);
    if let Some(min) = bound("minimum").filter(|min| value < *min) {
        wrong.push((Reason::Invalid, format!("{number} is less than {min}")));
    }
    if let Some(max) = bound("maximum").filter(|max| value > *max) {
        wrong.push((Reason::Invalid, format!("{number} is more than {max}")));
    }
    wrong
}

/// The type that the schema wants, where the value has another.
fn wrong_type(schema: &Value, value: &Value) -> Option<String> {
    if is_int_or_string(schema) {
        let fits = value.is_string() || value.is_i64() || value.is_u64();
        return (!fits).then(|| "integer or string".to_owned());
    }
    let wanted = schema.get("type").and_then(Value::as_str)?;
    let fits = match wanted {
        "integer" => value.is_i64() || value.is_u64(),
        "number" => value.is_number(),
        other => type_name(value) == other,
    };
    (!fits).then(|| wanted.to_owned())
}

fn is_int_or_string(schema: &Value) -> bool {
    schema.get("x-kubernetes-int-or-string") == Some(&Value::Bool(true))
}

fn type_name(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "boolean",
        Value::Number(number) if number.is_f64() => "number",
        Value::Number(_) => "integer",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    }
}

fn limit(schema: &Value, keyword: &str) -> Option<u64> {
    schema.get(keyword).and_then(Value::as_u64)
}
