//! Structural schemas: the OpenAPI part of a CRD, as JSON. `tidy` makes one of what the derive gives,
//! [`apply_defaults`] and [`check()`] do with it what the API server does before any rule is asked.
//!
//! Covers the keywords that our own schemas use (a test holds it to that), not all of OpenAPI.

use serde_json::Value;

mod check;
mod defaults;
pub mod place;
mod prune;
mod unknown;

pub use check::check;
pub use defaults::apply_defaults;
pub use prune::{drop_nulls, prune};
pub use unknown::unknown_fields;

/// Formats that Kubernetes knows. Others, such as schemars' `uint8`, only make it warn.
const FORMATS: [&str; 5] = ["int32", "int64", "float", "double", "date-time"];

/// Times as `metav1.Time` writes them, and so Berth and kubernetes-nmstate: whole seconds, UTC, from 1970 to 2999. By `date-time`
/// alone the API server takes offsets and years that Rust's types have no place for, and one such object would make every list
/// that it is in unreadable; or a time that is written otherwise than it was read.
pub(crate) const TIME: &str = "^(19[7-9]|2[0-9]{2})[0-9]-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-5][0-9]Z$";

/// Takes out of a derived schema what a person wouldn't have written: `nullable` (absent and null would be
/// two things; of an enum, too), defaults (those of serde are not those of the API: [`crate::definition`] has the few that the
/// API server shall fill in), titles, unknown formats, and line breaks in descriptions. Puts in what formats leave open: [`TIME`],
/// and bounds of 32-bit numbers, since not every API server holds numbers to their format.
pub(crate) fn tidy(schema: &mut Value) {
    let Value::Object(map) = schema else { return };
    for noise in ["nullable", "default", "title"] {
        map.shift_remove(noise);
    }
    if map.get("format").and_then(Value::as_str).is_some_and(|f| !FORMATS.contains(&f)) {
        map.shift_remove("format");
    }
    if let Some(Value::Array(accepted)) = map.get_mut("enum") {
        accepted.retain(|value| !value.is_null());
    }
    if let Some(Value::String(text)) = map.get_mut("description") {
        *text = text.split_whitespace().collect::<Vec<_>>().join(" ");
    }
    match map.get("format").and_then(Value::as_str) {
        Some("date-time") => drop(map.insert("pattern".to_owned(), TIME.into())),
        Some("int32") => {
            map.entry("minimum").or_insert(i32::MIN.into());
            map.entry("maximum").or_insert(i32::MAX.into());
        }
        _ => {}
    }
    for limit in ["minimum", "maximum"] {
        if let Some(number) = map.get_mut(limit) {
            *number = whole(number);
        }
    }
    for child in children_mut(map) {
        tidy(child);
    }
}

/// `0.0` as `0`: the typed CRD holds limits as floating point, no person writes them so.
pub(crate) fn whole(number: &Value) -> Value {
    match number.as_f64() {
        // Every limit in our schemas is far below 2^53, so the way through f64 is exact.
        Some(float) if float.fract() == 0.0 && float.abs() < 9e15 => Value::from(float as i64),
        _ => number.clone(),
    }
}

fn children_mut(map: &mut serde_json::Map<String, Value>) -> Vec<&mut Value> {
    let mut children = Vec::new();
    for (key, value) in map {
        match (key.as_str(), value) {
            ("properties", Value::Object(properties)) => children.extend(properties.values_mut()),
            ("items" | "additionalProperties", child) => children.push(child),
            _ => {}
        }
    }
    children
}

#[cfg(test)]
mod tests;
