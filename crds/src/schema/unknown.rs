//! Fields that a schema doesn't know: the API server drops them, and `kubectl` refuses them.

use serde_json::Value;

use super::place::join;

/// How many are told of, as the API server has it, and how much of each name is: somebody who sends a million, below a name
/// of a million letters, is told enough by the first of them.
const TOLD: usize = 100;
const TOLD_NAME: usize = 1024;

/// Every object has these, whatever its schema says.
pub(super) const OF_EVERY_OBJECT: [&str; 3] = ["apiVersion", "kind", "metadata"];

/// Where a value stands. Its path is put into words only where something is told of it.
enum Place<'a> {
    Top,
    Field(&'a Place<'a>, &'a str),
    Item(&'a Place<'a>, usize),
}

impl Place<'_> {
    fn path(&self) -> String {
        match self {
            Place::Top => String::new(),
            Place::Field(above, name) => {
                let name: String = name.chars().take(TOLD_NAME).collect();
                join(&above.path(), &name)
            }
            Place::Item(above, index) => format!("{}[{index}]", above.path()),
        }
    }
}

/// Paths of the fields of an object that the schema doesn't know; of very many, the first.
pub fn unknown_fields(schema: &Value, object: &Value) -> Vec<String> {
    let mut found = Vec::new();
    for (name, child) in object.as_object().into_iter().flatten() {
        if !OF_EVERY_OBJECT.contains(&name.as_str()) {
            field(schema, name, child, &Place::Top, &mut found);
        }
    }
    found
}

fn field(schema: &Value, name: &str, value: &Value, above: &Place<'_>, found: &mut Vec<String>) {
    let here = Place::Field(above, name);
    let known = schema.get("properties").and_then(|properties| properties.get(name));
    match known.or_else(|| schema.get("additionalProperties")) {
        Some(schema) => below(schema, value, &here, found),
        None if schema.get("x-kubernetes-preserve-unknown-fields") == Some(&Value::Bool(true)) => {}
        None if found.len() == TOLD => {}
        None => found.push(here.path()),
    }
}

fn below(schema: &Value, value: &Value, here: &Place<'_>, found: &mut Vec<String>) {
    match value {
        Value::Object(object) => {
            object.iter().for_each(|(name, child)| field(schema, name, child, here, found));
        }
        Value::Array(list) => {
            for (index, child) in list.iter().enumerate() {
                if let Some(each) = schema.get("items") {
                    below(each, child, &Place::Item(here, index), found);
                }
            }
        }
        _ => {}
    }
}
