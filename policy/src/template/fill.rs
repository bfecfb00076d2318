//! Filling a document from bindings.

use serde_json::Value;

use super::field::Field;
use super::reference::{Part, split};
use super::{ipam, retype};
use crate::capture::path::{Located, Path, text_of};
use crate::capture::{Bindings, Diagnostic, Diagnostics, Found, Names, Place, Problem, Reference};

/// The desired state with every reference replaced, every `ipam` answered, and typed as nmstate types it. All
/// that is wrong is reported at once.
///
/// References work in values. Keys are left alone: they are the schema's words, and a key that differs from node
/// to node would make a document that no one can read or check beforehand.
pub fn fill(desired_state: &Value, bindings: &Bindings) -> Result<Value, Diagnostics> {
    let mut filled = desired_state.clone();
    let mut wrong = Vec::new();
    // First, while names are still as written: an anonymous capture is named after them.
    ipam::expand(&mut filled, bindings, &mut wrong);
    walk(&mut filled, bindings, &Field::Root, &mut wrong);
    retype::retype(&mut filled);
    Diagnostics::none_or(wrong, filled)
}

fn walk(value: &mut Value, bindings: &Bindings, field: &Field<'_>, wrong: &mut Vec<Diagnostic>) {
    match value {
        Value::String(source) => match string(source, bindings) {
            Ok(None) => {}
            // What a capture holds is a value, not a template: it isn't walked again.
            Ok(Some(filled)) => *value = filled,
            Err((at, problem)) => {
                wrong.push(Diagnostic::at(Place::Field(field.to_string()), source, at, problem));
            }
        },
        Value::Array(items) => {
            for (index, item) in items.iter_mut().enumerate() {
                walk(item, bindings, &Field::Index(field, index), wrong);
            }
        }
        Value::Object(map) => {
            for (key, child) in map.iter_mut() {
                walk(child, bindings, &Field::Key(field, key), wrong);
            }
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

/// The value of a string, if it has references. One that stands alone keeps its type; blanks around it don't
/// count, because block scalars end in a newline and no field means anything by them.
fn string(source: &str, bindings: &Bindings) -> Result<Option<Value>, Located> {
    let parts = split(source)?;
    let blank = |part: &&Part<'_>| matches!(part, Part::Text(text) if text.trim().is_empty());
    let mut solid = parts.iter().filter(|part| !blank(part));
    match (solid.next(), solid.next()) {
        (Some(Part::Value(reference, path)), None) => lookup(reference, path, bindings).cloned().map(Some),
        _ if parts.iter().all(|part| matches!(part, Part::Text(_))) => Ok(None),
        _ => embed(&parts, bindings).map(Some),
    }
}

fn embed(parts: &[Part<'_>], bindings: &Bindings) -> Result<Value, Located> {
    let mut text = String::new();
    for part in parts {
        match part {
            Part::Text(plain) => text.push_str(plain),
            Part::Value(reference, path) => {
                let value = lookup(reference, path, bindings)?;
                let scalar = text_of(value).ok_or_else(|| {
                    let path = dotted(reference, path);
                    (reference.at, Problem::NotEmbeddable { path, found: Found::of(value) })
                })?;
                text.push_str(&scalar);
            }
        }
    }
    Ok(Value::String(text))
}

fn lookup<'a>(reference: &Reference, path: &Path, bindings: &'a Bindings) -> Result<&'a Value, Located> {
    let state = bindings.get(&reference.name).ok_or_else(|| {
        let known = Names::of(bindings.names());
        (reference.at, Problem::UnknownCapture { name: reference.name.clone(), known })
    })?;
    path.walk(state).map_err(|stop| {
        path.stopped(&format!("capture.{}", reference.name), stop.depth, Found::of(stop.here))
    })
}

fn dotted(reference: &Reference, path: &Path) -> String {
    if path.is_empty() {
        format!("capture.{}", reference.name)
    } else {
        format!("capture.{}.{}", reference.name, path.dotted())
    }
}
