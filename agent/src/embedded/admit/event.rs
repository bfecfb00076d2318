//! Events of `events.k8s.io` are those of the core group under other field names: converted on the way in and out.

use serde_json::{Map, Value};

/// The newer name, and the core group's.
const NAMES: [(&str, &str); 7] = [
    ("regarding", "involvedObject"),
    ("note", "message"),
    ("reportingController", "reportingComponent"),
    ("deprecatedSource", "source"),
    ("deprecatedFirstTimestamp", "firstTimestamp"),
    ("deprecatedLastTimestamp", "lastTimestamp"),
    ("deprecatedCount", "count"),
];

/// An Event as it is stored. Names of the core group are unknown in the newer one: they are marked, so that they are
/// dropped and told of.
pub fn to_core(object: &Value) -> Value {
    let mut event = renamed(object, |name| {
        let newer = NAMES.iter().find(|(newer, _)| *newer == name);
        let core = NAMES.iter().find(|(_, core)| *core == name);
        match (newer, core) {
            (Some((_, core)), _) => (*core).to_owned(),
            (None, Some(_)) => format!("{name} "),
            (None, None) => name.to_owned(),
        }
    });
    event["apiVersion"] = "v1".into();
    event
}

/// An Event as the newer group has it.
pub fn from_core(object: &Value) -> Value {
    let mut event = renamed(object, |name| {
        let core = NAMES.iter().find(|(_, core)| *core == name);
        core.map_or(name, |(newer, _)| newer).to_owned()
    });
    event["apiVersion"] = "events.k8s.io/v1".into();
    event
}

/// The newer name of a path in a stored Event.
pub fn path(core: &str) -> String {
    let (first, rest) = core.split_once('.').map_or((core, None), |(first, rest)| (first, Some(rest)));
    let first = NAMES.iter().find(|(_, core)| *core == first).map_or(first, |(newer, _)| newer).trim();
    rest.map_or(first.to_owned(), |rest| format!("{first}.{rest}"))
}

fn renamed(object: &Value, name: impl Fn(&str) -> String) -> Value {
    let fields = object.as_object().into_iter().flatten();
    let fields: Map<String, Value> = fields.map(|(key, value)| (name(key), value.clone())).collect();
    Value::Object(fields)
}
