//! `:=`: writing a value into every item of a section.
//!
//! Called by `eval` only. Copies the items it changes, and nothing else of the state.

use serde_json::{Map, Value};

use super::path::{Located, Path, index};
use super::problem::{Found, Problem};
use super::section::Section;
use crate::template::retype;

/// All items with `property` set, typed as nmstate types them. Null takes the property away, which is what is
/// left of a null once nmstate has typed it.
pub(crate) fn set(
    section: Section,
    items: &[Value],
    property: &Path,
    value: &Value,
) -> Result<Value, Located> {
    if items.is_empty() {
        return Err((property.at(), Problem::NothingToChange { item: section.item() }));
    }
    let mut changed = items.to_vec();
    for (position, item) in changed.iter_mut().enumerate() {
        match value {
            Value::Null => take(item, property),
            value => put(item, property, value).map_err(|(depth, found)| {
                let root = format!("{}.{position}", section.name());
                property.stopped(&root, depth, found)
            })?,
        }
    }
    let mut state = section.state_of(changed);
    retype::retype(&mut state);
    Ok(state)
}

/// Sets one property, making the maps that are missing on the way. Lists must be there: a number is an index,
/// never a key to make. An error tells how many words were good, and what was there.
fn put(item: &mut Value, property: &Path, value: &Value) -> Result<(), (usize, Found)> {
    let mut here = item;
    for (depth, segment) in property.segments.iter().enumerate() {
        let below = property.word(depth + 1);
        here = match here {
            Value::Object(map) => {
                let child = map.entry(segment.text.as_str()).or_insert(Value::Null);
                match below.map(index) {
                    Some(Some(_)) if child.is_null() => {
                        return Err((depth + 1, Found::Nothing));
                    }
                    Some(None) if child.is_null() => *child = Value::Object(Map::new()),
                    _ => {}
                }
                child
            }
            Value::Array(list) => {
                let found = Found::List(list.len());
                index(&segment.text).and_then(|index| list.get_mut(index)).ok_or((depth, found))?
            }
            other => {
                return Err((depth, Found::of(other)));
            }
        };
    }
    *here = value.clone();
    Ok(())
}

/// Takes one property away, if it is there.
fn take(item: &mut Value, property: &Path) {
    let Some((last, parents)) = property.segments.split_last() else {
        return;
    };
    let mut here = item;
    for segment in parents {
        let child = match here {
            Value::Object(map) => map.get_mut(&segment.text),
            Value::Array(list) => index(&segment.text).and_then(|index| list.get_mut(index)),
            _ => None,
        };
        let Some(child) = child else { return };
        here = child;
    }
    match here {
        Value::Object(map) => drop(map.shift_remove(&last.text)),
        Value::Array(list) => {
            if let Some(index) = index(&last.text).filter(|index| *index < list.len()) {
                list.remove(index);
            }
        }
        _ => {}
    }
}
