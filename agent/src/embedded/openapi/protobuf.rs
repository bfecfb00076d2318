//! Version 2 in protobuf, which is the only form in which kubectl asks for it.
//!
//! The messages are gnostic's `openapi.v2.Document` and what is below it, as far as schemas need them; the numbers are its
//! fields'. Pure; called once per process. Must never fail: a word that has no field is left out, as other servers do.

use serde_json::{Map, Value};

/// A message under way.
#[derive(Default)]
struct Message(Vec<u8>);

impl Message {
    fn varint(&mut self, mut number: u64) {
        while number >= 0x80 {
            self.0.push(u8::try_from(number & 0x7f).unwrap_or_default() | 0x80);
            number >>= 7;
        }
        self.0.push(u8::try_from(number).unwrap_or_default());
    }

    /// A field's number and how it is written: 0 as a varint, 1 in eight bytes, 2 with its length first.
    fn tag(&mut self, field: u64, form: u64) {
        self.varint(field << 3 | form);
    }

    fn bytes(&mut self, field: u64, bytes: &[u8]) {
        self.tag(field, 2);
        self.varint(bytes.len() as u64);
        self.0.extend_from_slice(bytes);
    }

    fn text(&mut self, field: u64, text: Option<&Value>) {
        if let Some(text) = text.and_then(Value::as_str) {
            self.bytes(field, text.as_bytes());
        }
    }

    fn message(&mut self, field: u64, message: &Self) {
        self.bytes(field, &message.0);
    }

    fn integer(&mut self, field: u64, number: Option<&Value>) {
        if let Some(number) = number.and_then(Value::as_u64) {
            self.tag(field, 0);
            self.varint(number);
        }
    }

    fn double(&mut self, field: u64, number: Option<&Value>) {
        if let Some(number) = number.and_then(Value::as_f64) {
            self.tag(field, 1);
            self.0.extend_from_slice(&number.to_le_bytes());
        }
    }

    fn flag(&mut self, field: u64, flag: Option<&Value>) {
        if flag.and_then(Value::as_bool) == Some(true) {
            self.tag(field, 0);
            self.varint(1);
        }
    }
}

/// The whole document.
pub(super) fn document(document: &Value) -> Vec<u8> {
    let mut message = Message::default();
    message.text(1, document.get("swagger"));
    let mut info = Message::default();
    info.text(1, document["info"].get("title"));
    info.text(2, document["info"].get("version"));
    message.message(2, &info);
    // No path is listed, but the field is not optional.
    message.message(8, &Message::default());
    message.message(9, &named(document["definitions"].as_object()));
    message.0
}

/// Schemas by name.
fn named(schemas: Option<&Map<String, Value>>) -> Message {
    let mut all = Message::default();
    for (name, value) in schemas.into_iter().flatten() {
        let mut entry = Message::default();
        entry.bytes(1, name.as_bytes());
        entry.message(2, &schema(value));
        all.message(1, &entry);
    }
    all
}

/// A value as it is: JSON is YAML.
fn any(value: &Value) -> Message {
    let mut message = Message::default();
    message.bytes(2, value.to_string().as_bytes());
    message
}

fn schema(of: &Value) -> Message {
    let mut message = Message::default();
    let Some(fields) = of.as_object() else { return message };
    let get = |name: &str| fields.get(name);
    message.text(1, get("$ref"));
    message.text(2, get("format"));
    message.text(3, get("title"));
    message.text(4, get("description"));
    if let Some(default) = get("default") {
        message.message(5, &any(default));
    }
    message.double(6, get("multipleOf"));
    message.double(7, get("maximum"));
    message.flag(8, get("exclusiveMaximum"));
    message.double(9, get("minimum"));
    message.flag(10, get("exclusiveMinimum"));
    message.integer(11, get("maxLength"));
    message.integer(12, get("minLength"));
    message.text(13, get("pattern"));
    message.integer(14, get("maxItems"));
    message.integer(15, get("minItems"));
    message.flag(16, get("uniqueItems"));
    message.integer(17, get("maxProperties"));
    message.integer(18, get("minProperties"));
    for name in get("required").and_then(Value::as_array).into_iter().flatten() {
        message.text(19, Some(name));
    }
    for value in get("enum").and_then(Value::as_array).into_iter().flatten() {
        message.message(20, &any(value));
    }
    if let Some(additional) = get("additionalProperties") {
        let mut item = Message::default();
        match additional.as_bool() {
            Some(_) => item.flag(2, Some(additional)),
            None => item.message(1, &schema(additional)),
        }
        message.message(21, &item);
    }
    if let Some(kind) = get("type") {
        let mut item = Message::default();
        item.text(1, Some(kind));
        message.message(22, &item);
    }
    if let Some(items) = get("items") {
        let mut item = Message::default();
        item.message(1, &schema(items));
        message.message(23, &item);
    }
    for part in get("allOf").and_then(Value::as_array).into_iter().flatten() {
        message.message(24, &schema(part));
    }
    if let Some(properties) = get("properties") {
        message.message(25, &named(properties.as_object()));
    }
    for (name, value) in fields.iter().filter(|(name, _)| name.starts_with("x-")) {
        let mut entry = Message::default();
        entry.bytes(1, name.as_bytes());
        entry.message(2, &any(value));
        message.message(31, &entry);
    }
    message
}
