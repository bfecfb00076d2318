//! Pruning, as the API server does it to what is written: fields that the schema doesn't know are dropped, and so are
//! nulls where a default is to stand.

use serde_json::{Map, Value};

use super::unknown::OF_EVERY_OBJECT;

/// Drops from an object what its schema doesn't know. `x-kubernetes-preserve-unknown-fields` is honoured where it stands.
pub fn prune(schema: &Value, object: &mut Value) {
    let Some(map) = object.as_object_mut() else { return };
    let metadata: Vec<(String, Value)> = OF_EVERY_OBJECT
        .iter()
        .filter_map(|name| Some(((*name).to_owned(), map.get(*name)?.clone())))
        .collect();
    fields(schema, map);
    // Every object has these, whatever its schema says of them.
    for (name, value) in metadata {
        map.insert(name, value);
    }
}

/// Drops nulls of fields for which the schema doesn't allow them: a default may take their place.
pub fn drop_nulls(schema: &Value, value: &mut Value) {
    match value {
        Value::Object(map) => {
            let known = schema.get("properties");
            let replaced = |name: &str, child: &Value| {
                child.is_null()
                    && known
                        .and_then(|known| known.get(name))
                        .is_some_and(|schema| schema.get("nullable") != Some(&Value::Bool(true)))
            };
            map.retain(|name, child| !replaced(name, child));
            for (name, child) in map.iter_mut() {
                if let Some(schema) =
                    known.and_then(|known| known.get(name)).or_else(|| schema.get("additionalProperties"))
                {
                    drop_nulls(schema, child);
                }
            }
        }
        Value::Array(list) => {
            if let Some(each) = schema.get("items") {
                list.iter_mut().for_each(|child| drop_nulls(each, child));
            }
        }
        _ => {}
    }
}

fn fields(schema: &Value, map: &mut Map<String, Value>) {
    let known = schema.get("properties").and_then(Value::as_object);
    let others = schema.get("additionalProperties");
    let keeps = schema.get("x-kubernetes-preserve-unknown-fields") == Some(&Value::Bool(true));
    map.retain(|name, _| keeps || others.is_some() || known.is_some_and(|known| known.contains_key(name)));
    for (name, child) in map.iter_mut() {
        if let Some(schema) = known.and_then(|known| known.get(name)).or(others) {
            below(schema, child);
        }
    }
}

fn below(schema: &Value, value: &mut Value) {
    match value {
        // Anything may stand where the schema says nothing more.
        _ if !schema.is_object() => {}
        Value::Object(map) => fields(schema, map),
        Value::Array(list) => {
            if let Some(each) = schema.get("items") {
                list.iter_mut().for_each(|child| below(each, child));
            }
        }
        _ => {}
    }
}
