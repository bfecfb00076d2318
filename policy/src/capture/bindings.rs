//! The values of captures, and the memory of earlier ones.
//!
//! A policy's captures are evaluated once in an enactment's life: what they found is stored in its
//! `capturedStates` and handed back as [`Cached`]. Addresses from pools are the exception: the grant is the only
//! truth about them, so they never come from this memory.

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};

use super::diagnostic::{Diagnostic, Diagnostics};
use super::grant::Granted;
use super::problem::{Found, Problem};

/// The version of `metaInfo`, as kubernetes-nmstate writes it.
const VERSION: &str = "0";

/// When and how a capture was evaluated; `time` is the caller's, this crate has no clock.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct MetaInfo {
    pub version: String,
    pub time: String,
}

/// A captured state of an earlier evaluation.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Captured {
    pub state: Value,
    pub meta: MetaInfo,
}

/// Captured states of an earlier evaluation, by capture.
pub type Cached = BTreeMap<String, Captured>;

/// Reads an enactment's `capturedStates`, or a file of the same form. An entry without `state` is a pool capture
/// as it is stored: the fields themselves.
pub fn read_cached(captured_states: &Value) -> Result<Cached, Diagnostics> {
    let entries = match captured_states {
        Value::Null => return Ok(Cached::new()),
        Value::Object(entries) => entries,
        other => return Err(shape("capturedStates", "a map of captured states", other).into()),
    };
    let mut cached = Cached::new();
    let mut wrong = Vec::new();
    for (name, entry) in entries {
        match entry {
            Value::Object(fields) => {
                wrong.extend(strangers(name, fields));
                cached.insert(name.clone(), read_one(fields));
            }
            other => wrong.push(shape(&format!("capturedStates.{name}"), "a captured state", other)),
        }
    }
    Diagnostics::none_or(wrong, cached)
}

/// What stands beside a captured state and is none of it: misspelt, it would be taken for the state, or for nothing. The
/// address that a pool gave stands there by itself.
fn strangers(name: &str, fields: &Map<String, Value>) -> Vec<Diagnostic> {
    let path = |field: &str| format!("capturedStates.{name}.{field}");
    if !fields.contains_key("state") && !fields.contains_key("ip") {
        return vec![shape(&path("state"), "the captured state", &Value::Null)];
    }
    let meta = fields.get("metaInfo").and_then(Value::as_object).into_iter().flatten();
    let meta = meta.filter(|(key, _)| !matches!(key.as_str(), "version" | "time"));
    let meta = meta
        .map(|(key, value)| shape(&path(&format!("metaInfo.{key}")), "nothing but version and time", value));
    let beside = fields
        .iter()
        .filter(|(key, _)| fields.contains_key("state") && !matches!(key.as_str(), "state" | "metaInfo"));
    let beside = beside.map(|(key, value)| shape(&path(key), "nothing but state and metaInfo", value));
    beside.chain(meta).collect()
}

fn read_one(fields: &Map<String, Value>) -> Captured {
    let text = |key| fields.get("metaInfo").and_then(|meta| meta.get(key)).and_then(Value::as_str);
    let meta = MetaInfo {
        version: text("version").unwrap_or(VERSION).to_owned(),
        time: text("time").unwrap_or_default().to_owned(),
    };
    let state = fields.get("state").cloned().unwrap_or_else(|| {
        Value::Object(
            fields
                .iter()
                .filter(|(key, _)| *key != "metaInfo")
                .map(|(k, v)| (k.clone(), v.clone()))
                .collect(),
        )
    });
    Captured { state, meta }
}

pub(crate) fn shape(path: &str, expected: &'static str, found: &Value) -> Diagnostic {
    Diagnostic::field(path, Problem::Shape { expected, found: Found::of(found) })
}

/// Where a binding's value came from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Source {
    /// Evaluated now.
    Fresh,
    /// Remembered from an earlier evaluation.
    Cached(MetaInfo),
    /// Given by a pool; with the earlier `metaInfo` if the very same was recorded before.
    Granted(Option<MetaInfo>),
}

/// A capture's value.
#[derive(Debug, Clone, PartialEq)]
pub struct Binding {
    pub state: Value,
    pub source: Source,
}

/// The values of captures by name: what templates are filled from.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Bindings(BTreeMap<String, Binding>);

impl Bindings {
    pub fn get(&self, name: &str) -> Option<&Value> {
        self.0.get(name).map(|binding| &binding.state)
    }

    pub fn iter(&self) -> impl Iterator<Item = (&str, &Binding)> {
        self.0.iter().map(|(name, binding)| (name.as_str(), binding))
    }

    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.0.keys().map(String::as_str)
    }

    pub(crate) fn insert(&mut self, name: &str, state: Value, source: Source) {
        self.0.insert(name.to_owned(), Binding { state, source });
    }

    /// Binds `name` to what a pool gave; `before` is what is remembered of it, so that recording the same address
    /// again doesn't change its time.
    pub fn grant(&mut self, name: &str, granted: &Granted, before: Option<&Captured>) {
        let state = granted.to_value();
        let meta = before.filter(|before| before.state == state).map(|before| before.meta.clone());
        self.insert(name, state, Source::Granted(meta));
    }

    /// What to store as the enactment's `capturedStates`. `now` is the time of what is new; what was remembered
    /// keeps its own.
    pub fn captured_states(&self, now: &str) -> Map<String, Value> {
        self.0.iter().map(|(name, binding)| (name.clone(), binding.captured_state(now))).collect()
    }
}

impl Binding {
    fn captured_state(&self, now: &str) -> Value {
        let (version, time) = match &self.source {
            Source::Cached(meta) | Source::Granted(Some(meta)) => (meta.version.as_str(), meta.time.as_str()),
            Source::Fresh | Source::Granted(None) => (VERSION, now),
        };
        let meta = json!({"version": version, "time": time});
        match (&self.source, &self.state) {
            (Source::Granted(_), Value::Object(fields)) => {
                let mut fields = fields.clone();
                fields.insert("metaInfo".into(), meta);
                Value::Object(fields)
            }
            (_, state) => json!({"state": state, "metaInfo": meta}),
        }
    }
}
