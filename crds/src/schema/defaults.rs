//! Defaulting, as the API server does it on every write and read: before validation, into objects that exist.

use serde_json::Value;

/// Fills in what the schema has a default for and the object lacks.
pub fn apply_defaults(schema: &Value, value: &mut Value) {
    match value {
        Value::Object(object) => {
            for (name, property) in schema.get("properties").and_then(Value::as_object).into_iter().flatten()
            {
                if !object.contains_key(name)
                    && let Some(default) = property.get("default")
                {
                    object.insert(name.clone(), default.clone());
                }
                if let Some(child) = object.get_mut(name) {
                    apply_defaults(property, child);
                }
            }
            if let Some(each) = schema.get("additionalProperties").filter(|each| each.is_object()) {
                object.values_mut().for_each(|child| apply_defaults(each, child));
            }
        }
        Value::Array(list) => {
            if let Some(each) = schema.get("items") {
                list.iter_mut().for_each(|child| apply_defaults(each, child));
            }
        }
        _ => {}
    }
}
