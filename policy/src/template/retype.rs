//! Types of a rendered document: "24" becomes 24 where nmstate's schema has a number.
//!
//! Text comes out of templates and `:=`, quoted numbers out of people's manifests. Known leaves are typed by a
//! table that mirrors nmstate's schema; what the table doesn't know, and what doesn't parse, is left as it is for
//! the plan to judge. An interface without `type` or `state` gets nmstate's defaults.
//!
//! Cost: one pass over the known fields of the document; a field is found by a scan of its section's short table.

mod schema;

use serde_json::{Map, Value};

use crate::state::scalar::boolean;
use schema::{Node, STATE};

/// Types a network state in place.
pub(crate) fn retype(state: &mut Value) {
    STATE.apply(state);
    let interfaces = state.get_mut("interfaces").and_then(Value::as_array_mut);
    for interface in interfaces.into_iter().flatten().filter_map(Value::as_object_mut) {
        default(interface, "type", "unknown", "name");
        default(interface, "state", "up", "type");
    }
}

/// Gives a missing key its default, after the key that people expect before it.
fn default(interface: &mut Map<String, Value>, key: &str, value: &str, after: &str) {
    if interface.get(key).is_none_or(Value::is_null) {
        interface.shift_remove(key);
        let position = interface.keys().position(|other| other == after).map_or(0, |at| at + 1);
        interface.shift_insert(position, key.to_owned(), Value::String(value.to_owned()));
    }
}

impl Node {
    fn apply(&self, value: &mut Value) {
        match (self, value) {
            (Self::Map(fields), Value::Object(map)) => {
                for (key, child) in map.iter_mut() {
                    if let Some((_, node)) = fields.iter().find(|(name, _)| name == key) {
                        node.apply(child);
                    }
                }
            }
            (Self::Each(node), Value::Object(map)) => map.values_mut().for_each(|child| node.apply(child)),
            (Self::List(node), Value::Array(items)) => items.iter_mut().for_each(|item| node.apply(item)),
            (Self::Int, value) => replace(value, integer),
            (Self::Bool, value) => replace(value, |text| boolean(text).map(Value::Bool)),
            (Self::Text, value) => {
                if let Value::Number(number) = value {
                    *value = Value::String(number.to_string());
                }
            }
            _ => {}
        }
    }
}

fn replace(value: &mut Value, parse: fn(&str) -> Option<Value>) {
    if let Some(typed) = value.as_str().and_then(|text| parse(text.trim())) {
        *value = typed;
    }
}

fn integer(text: &str) -> Option<Value> {
    text.parse::<u64>().map(Value::from).or_else(|_| text.parse::<i64>().map(Value::from)).ok()
}
