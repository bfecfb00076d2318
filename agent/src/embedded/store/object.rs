//! An object as it is kept: its JSON text, once, and the few facts that selectors and owner references need.
//!
//! The text begins with `apiVersion` and `kind`, so that another version of the same schema is another beginning, and a
//! list is its items' texts put together: nothing is parsed to be read. Must never be changed once made.
//!
//! Memory: the text and about 300 bytes. A parsed `Value` of the same object would take five to ten times its text.

use std::collections::BTreeMap;
use std::fmt;

use bytes::Bytes;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::embedded::resource::{Form, Table};

/// Which object.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Key {
    pub table: Table,
    /// Empty for what has none.
    pub namespace: Box<str>,
    pub name: Box<str>,
}

impl Key {
    pub fn new(table: Table, namespace: &str, name: &str) -> Self {
        Self { table, namespace: namespace.into(), name: name.into() }
    }

    /// As the store on disk spells it. No part can contain a slash.
    pub(super) fn path(&self) -> String {
        format!("{}/{}/{}", self.table.name(), self.namespace, self.name)
    }

    pub(super) fn parse(path: &str) -> Option<Self> {
        let mut parts = path.split('/');
        let (table, namespace, name) = (parts.next()?, parts.next()?, parts.next()?);
        Some(Self::new(Table::named(table)?, namespace, name))
    }
}

/// What happened to an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum What {
    Added,
    Modified,
    Deleted,
}

impl What {
    /// How a watch's line begins.
    pub(crate) fn head(self) -> &'static [u8] {
        match self {
            Self::Added => br#"{"type":"ADDED","object":"#,
            Self::Modified => br#"{"type":"MODIFIED","object":"#,
            Self::Deleted => br#"{"type":"DELETED","object":"#,
        }
    }
}

/// How a watch's line ends.
pub(crate) const TAIL: &[u8] = b"}\n";

/// A version of an object.
pub struct Object {
    pub key: Key,
    pub revision: u64,
    /// The line of a watch that tells of this version: every watcher gets this very text.
    line: Bytes,
    what: What,
    pub facts: Facts,
}

/// What selectors and owner references look at.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Facts {
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub labels: BTreeMap<String, String>,
    /// The fields that selectors may name, besides name and namespace.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub fields: BTreeMap<String, String>,
    #[serde(skip)]
    pub uid: String,
    #[serde(skip)]
    pub owners: Vec<Owner>,
}

/// An owner reference.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Owner {
    pub api_version: String,
    pub kind: String,
    pub name: String,
    pub uid: String,
    /// Whether the owner has to wait for this one, where it is deleted in the foreground.
    pub blocks: bool,
}

/// An object whose text is made, but for its revision: that is known only to the writer, and the rest need not be its work.
pub struct Draft {
    text: Vec<u8>,
    /// Where in the text the revision's digits go.
    at: usize,
    facts: Facts,
}

impl Draft {
    /// Makes the text of a value. Its `apiVersion` and `kind` become those that the table stores, its `resourceVersion`
    /// is to come.
    pub fn new(key: &Key, value: &Value) -> Self {
        let mut text = beginning(key.table, key.table.resource().stored).into_bytes();
        text.extend_from_slice(br#""metadata":{"#);
        for (name, value) in value["metadata"].as_object().into_iter().flatten() {
            if name != "resourceVersion" {
                write(&mut text, name, value);
                text.push(b',');
            }
        }
        text.extend_from_slice(br#""resourceVersion":""#);
        let at = text.len();
        text.extend_from_slice(br#""}"#);
        let fields = value.as_object().into_iter().flatten();
        for (name, value) in
            fields.filter(|(name, _)| !matches!(name.as_str(), "apiVersion" | "kind" | "metadata"))
        {
            text.push(b',');
            write(&mut text, name, value);
        }
        text.push(b'}');
        Self { text, at, facts: Facts::of(key, value) }
    }

    /// The object, once its revision is known.
    pub(super) fn finish(self, key: Key, revision: u64, what: What) -> Object {
        let (before, after) = self.text.split_at(self.at);
        let line = [what.head(), before, revision.to_string().as_bytes(), after, TAIL].concat();
        Object { key, revision, line: line.into(), what, facts: self.facts }
    }
}

impl Object {
    /// An object that is not stored: as an answer to a dry run has it. Its `resourceVersion` is the value's own.
    pub fn unstored(key: Key, revision: u64, what: What, value: &Value) -> Self {
        let mut text = what.head().to_vec();
        text.extend_from_slice(beginning(key.table, key.table.resource().stored).as_bytes());
        let fields = value.as_object().into_iter().flatten();
        let mut rest = fields.filter(|(name, _)| !matches!(name.as_str(), "apiVersion" | "kind"));
        if let Some((name, value)) = rest.next() {
            write(&mut text, name, value);
        }
        for (name, value) in rest {
            text.push(b',');
            write(&mut text, name, value);
        }
        text.push(b'}');
        text.extend_from_slice(TAIL);
        let facts = Facts::of(&key, value);
        Self { key, revision, line: text.into(), what, facts }
    }

    /// The object that a value is at a revision.
    pub(super) fn new(key: Key, revision: u64, what: What, value: &Value) -> Self {
        Draft::new(&key, value).finish(key, revision, what)
    }

    /// Reads a text that [`Draft`] made.
    pub(super) fn read(key: Key, what: What, body: &[u8]) -> Option<Self> {
        let value: Value = serde_json::from_slice(body).ok()?;
        let revision = value.pointer("/metadata/resourceVersion")?.as_str()?.parse().ok()?;
        let line = [what.head(), body, TAIL].concat();
        let facts = Facts::of(&key, &value);
        Some(Self { key, revision, line: line.into(), what, facts })
    }

    /// Its JSON text, in the stored version.
    pub fn text(&self) -> Bytes {
        self.line.slice(self.what.head().len()..self.line.len() - TAIL.len())
    }

    /// Its JSON text in a version of its resource.
    pub fn text_as(&self, version: usize) -> Bytes {
        if version == self.key.table.resource().stored {
            return self.text();
        }
        let begin = beginning(self.key.table, version);
        [begin.as_bytes(), &self.bare()].concat().into()
    }

    /// Its text without `apiVersion` and `kind`, and without the brace before them.
    pub fn bare(&self) -> Bytes {
        let text = self.text();
        text.slice(beginning(self.key.table, self.key.table.resource().stored).len()..)
    }

    /// The line of a watch that tells what happened; shared where it is what this version was made by.
    pub fn line(&self, what: What, version: usize) -> Bytes {
        if what == self.what && version == self.key.table.resource().stored {
            return self.line.clone();
        }
        [what.head(), &self.text_as(version), TAIL].concat().into()
    }

    /// Its content.
    pub fn value(&self) -> Value {
        serde_json::from_slice(&self.text()).unwrap_or_default()
    }

    /// How much memory its text takes.
    pub fn size(&self) -> usize {
        self.line.len()
    }
}

impl fmt::Debug for Object {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}@{}", self.key.path(), self.revision)
    }
}

/// Adds a field. A value of JSON can always be written into memory.
fn write(text: &mut Vec<u8>, name: &str, value: &Value) {
    let _ = serde_json::to_writer(&mut *text, name);
    text.push(b':');
    let _ = serde_json::to_writer(text, value);
}

/// `{"apiVersion":"…","kind":"…",`: how every object of a table begins in a version.
fn beginning(table: Table, version: usize) -> String {
    let resource = table.resource();
    format!(r#"{{"apiVersion":"{}","kind":"{}","#, resource.api_version(version), resource.kind)
}

impl Facts {
    fn of(key: &Key, value: &Value) -> Self {
        let meta = &value["metadata"];
        let labels = meta["labels"].as_object().into_iter().flatten();
        let owners = meta["ownerReferences"].as_array().into_iter().flatten();
        Self {
            labels: labels.map(|(name, value)| (name.clone(), text(value))).collect(),
            fields: fields(key, value),
            uid: text(&meta["uid"]),
            owners: owners.map(Owner::of).collect(),
        }
    }

    /// Whether a selector can't tell these from those.
    pub(super) fn select_alike(&self, other: &Self) -> bool {
        self.labels == other.labels && self.fields == other.fields
    }
}

impl Owner {
    fn of(value: &Value) -> Self {
        Self {
            api_version: text(&value["apiVersion"]),
            kind: text(&value["kind"]),
            name: text(&value["name"]),
            uid: text(&value["uid"]),
            blocks: value["blockOwnerDeletion"] == true,
        }
    }
}

/// What field selectors can name, beyond name and namespace: as kube-apiserver has it for these kinds.
fn fields(key: &Key, value: &Value) -> BTreeMap<String, String> {
    let at = |pointer: &str| text(value.pointer(pointer).unwrap_or(&Value::Null));
    let mut fields = BTreeMap::new();
    match key.table.resource().form {
        Form::Node => {
            let closed = value.pointer("/spec/unschedulable") == Some(&Value::Bool(true));
            fields.insert("spec.unschedulable".to_owned(), closed.to_string());
        }
        Form::Namespace => {
            fields.insert("status.phase".to_owned(), at("/status/phase"));
        }
        Form::CoreEvent => {
            for part in ["kind", "namespace", "name", "uid", "apiVersion", "resourceVersion", "fieldPath"] {
                fields.insert(format!("involvedObject.{part}"), at(&format!("/involvedObject/{part}")));
            }
            for part in ["reason", "reportingComponent", "type"] {
                fields.insert(part.to_owned(), at(&format!("/{part}")));
            }
            let source = at("/source/component");
            let source = if source.is_empty() { at("/reportingComponent") } else { source };
            fields.insert("source".to_owned(), source);
        }
        _ => {}
    }
    fields
}

fn text(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}
