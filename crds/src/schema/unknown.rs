//! Fields that a schema doesn't know: the API server drops them, and `kubectl` refuses them.

use serde_json::Value;

use super::place::join;

/// Every object has these, whatever its schema says.
pub(super) const OF_EVERY_OBJECT: [&str; 3] = ["apiVersion", "kind", "metadata"];

/// Paths of the fields of an object that the schema doesn't know.
pub fn unknown_fields(schema: &Value, object: &Value) -> Vec<String> {
    let mut found = Vec::new();
    for (name, child) in object.as_object().into_iter().flatten() {
        if !OF_EVERY_OBJECT.contains(&name.as_str()) {
            field(schema, name, child, "", &mut found);
        }
    }
    found
}

fn field(schema: &Value, name: &str, value: &Value, path: &str, found: &mut Vec<String>) {
    let here = join(path, name);
    let known = schema.get("properties").and_then(|properties| properties.get(name));
    match known.or_else(|| schema.get("additionalProperties")) {
        Some(schema) => below(schema, value, &here, found),
        None if schema.get("x-kubernetes-preserve-unknown-fields") == Some(&Value::Bool(true)) => {}
        None => found.push(here),
    }
}

fn below(schema: &Value, value: &Value, path: &str, found: &mut Vec<String>) {
    match value {
        Value::Object(object) => {
            object.iter().for_each(|(name, child)| field(schema, name, child, path, found));
        }
        Value::Array(list) => {
            for (index, child) in list.iter().enumerate() {
                if let Some(each) = schema.get("items") {
                    below(each, child, &format!("{path}[{index}]"), found);
                }
            }
        }
        _ => {}
    }
}
