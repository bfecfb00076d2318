//! Files as arguments: reading them, and telling what is in them.
//!
//! Every error names its file. A file may hold several documents, and lists as `kubectl get -o yaml` prints them.

use std::fs;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use crds::Kind;
use serde_json::Value;
use thiserror::Error;

use super::UsageError;
use crate::yaml;

/// A file argument; `-` is standard input.
pub(super) fn is_stdin(path: &Path) -> bool {
    path.as_os_str() == "-"
}

/// Standard input can be read only once.
pub(super) fn stdin_once<'a>(paths: impl IntoIterator<Item = &'a PathBuf>) -> Result<(), UsageError> {
    match paths.into_iter().filter(|path| is_stdin(path)).count() {
        0 | 1 => Ok(()),
        _ => Err(UsageError::StdinTwice),
    }
}

/// Why a file can't be used.
#[derive(Debug, Error)]
pub(super) enum FileError {
    #[error("{file}: can't be read")]
    Read { file: String, source: io::Error },
    #[error("{file}: larger than {} MiB, which no document here needs", LARGEST >> 20)]
    TooLarge { file: String },
    #[error("{file}: not text in UTF-8")]
    NotText { file: String },
    #[error("{file}:{}{error}", if .error.place.is_some() { "" } else { " " })]
    Yaml { file: String, error: yaml::ParseError },
    #[error("{file}: there is no document in it")]
    Empty { file: String },
    #[error("{file}: {found} {what} in it; expected one")]
    Several { file: String, found: usize, what: &'static str },
    #[error("{file}: expected a map, found {found}")]
    NotAMap { file: String, found: &'static str },
    #[error("{file}: kind is {kind}; {expected}")]
    WrongKind { file: String, kind: String, expected: &'static str },
    #[error("{file}: apiVersion is {found}; for {kind} it is {}", .known.join(" or "))]
    ApiVersion { file: String, kind: &'static str, found: String, known: Vec<String> },
    #[error("{file}: desiredState and desired are two names for the same: give one of them")]
    SameTwice { file: String },
    #[error("{file}: {found}; {expected}")]
    NoneOfThese { file: String, found: String, expected: &'static str },
}

/// A file's documents.
#[derive(Debug)]
pub(super) struct File {
    /// How messages call it.
    pub(super) name: String,
    pub(super) documents: Vec<Document>,
}

/// What a document says it is.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Document {
    /// A manifest of one of our kinds.
    Manifest(Kind, Value),
    /// A manifest of another kind.
    Foreign(String),
    /// A map without `kind`.
    Bare(Value),
}

/// Reads a file of one or more documents.
pub(super) fn read(path: &Path) -> Result<File, FileError> {
    let name = if is_stdin(path) { "standard input".to_owned() } else { path.display().to_string() };
    let text = text(path, &name)?;
    let parsed = yaml::parse(&text).map_err(|error| FileError::Yaml { file: name.clone(), error })?;
    let mut documents = Vec::new();
    for value in parsed.into_iter().flat_map(items) {
        documents.push(classify(&name, value)?);
    }
    if documents.is_empty() {
        return Err(FileError::Empty { file: name });
    }
    Ok(File { name, documents })
}

/// An API server stores objects of at most about 1.5 MiB; a list of twenty of the largest is half of this. What is longer
/// is a mistake (`/dev/zero`, a disk image), and must not fill the memory before it is seen to be one.
const LARGEST: u64 = 64 << 20;

fn text(path: &Path, name: &str) -> Result<String, FileError> {
    let mut bytes = Vec::new();
    let read = if is_stdin(path) {
        io::stdin().lock().take(LARGEST + 1).read_to_end(&mut bytes)
    } else {
        fs::File::open(path).and_then(|file| file.take(LARGEST + 1).read_to_end(&mut bytes))
    };
    let length = read.map_err(|source| FileError::Read { file: name.to_owned(), source })?;
    if length as u64 > LARGEST {
        return Err(FileError::TooLarge { file: name.to_owned() });
    }
    String::from_utf8(bytes).map_err(|_| FileError::NotText { file: name.to_owned() })
}

/// The items of a list as `kubectl get` prints it, or the document itself.
fn items(document: Value) -> Vec<Value> {
    let is_list = document.get("kind").and_then(Value::as_str).is_some_and(|kind| kind.ends_with("List"));
    match document {
        Value::Object(mut fields) if is_list => match fields.shift_remove("items") {
            Some(Value::Array(items)) => items,
            _ => vec![Value::Object(fields)],
        },
        other => vec![other],
    }
}

fn classify(file: &str, value: Value) -> Result<Document, FileError> {
    if !value.is_object() {
        return Err(FileError::NotAMap { file: file.to_owned(), found: sort(&value) });
    }
    let Some(kind) = value.get("kind").and_then(Value::as_str) else {
        if value.get("desiredState").is_some() && value.get("desired").is_some() {
            return Err(FileError::SameTwice { file: file.to_owned() });
        }
        return Ok(Document::Bare(value));
    };
    let Some(kind) = Kind::from_name(kind) else {
        return Ok(Document::Foreign(kind.to_owned()));
    };
    check_version(file, kind, &value)?;
    Ok(Document::Manifest(kind, value))
}

/// A file without `apiVersion` is taken at its word; one with another's is something else of the same name.
fn check_version(file: &str, kind: Kind, manifest: &Value) -> Result<(), FileError> {
    let Some(found) = manifest.get("apiVersion").and_then(Value::as_str) else {
        return Ok(());
    };
    let crd = &kind.definition().crd.spec;
    let known: Vec<String> =
        crd.versions.iter().map(|version| format!("{}/{}", crd.group, version.name)).collect();
    if known.iter().any(|version| version == found) {
        return Ok(());
    }
    Err(FileError::ApiVersion { file: file.to_owned(), kind: kind.name(), found: found.to_owned(), known })
}

fn sort(value: &Value) -> &'static str {
    match value {
        Value::Null => "nothing",
        Value::Bool(_) | Value::Number(_) | Value::String(_) => "a single value",
        Value::Array(_) => "a list",
        Value::Object(_) => "a map",
    }
}

impl File {
    /// The one document of a file that may have only one.
    pub(super) fn only(mut self) -> Result<(String, Document), FileError> {
        match (self.documents.pop(), self.documents.len()) {
            (Some(document), 0) => Ok((self.name, document)),
            (_, others) => Err(FileError::Several { file: self.name, found: others + 1, what: "documents" }),
        }
    }
}

impl Document {
    /// An error that says what this is instead.
    pub(super) fn unexpected(&self, file: &str, expected: &'static str) -> FileError {
        let kind = match self {
            Self::Manifest(kind, _) => kind.name(),
            Self::Foreign(kind) => kind,
            Self::Bare(value) => {
                return FileError::NoneOfThese { file: file.to_owned(), found: keys(value), expected };
            }
        };
        FileError::WrongKind { file: file.to_owned(), kind: kind.to_owned(), expected }
    }
}

/// More than this many keys tell a reader no more.
const LISTED: usize = 5;

fn keys(value: &Value) -> String {
    let all: Vec<&str> =
        value.as_object().into_iter().flat_map(|map| map.keys()).map(String::as_str).collect();
    match all.len() {
        0 => "it is empty".to_owned(),
        1..=LISTED => format!("it has {}", all.join(", ")),
        more => format!("it has {} and {} more", all[..LISTED].join(", "), more - LISTED),
    }
}

const STATE: &str =
    "--current takes a network state (interfaces, routes, …) or a NodeNetworkState with status.currentState";
/// A network state has at least one of them.
const SECTIONS: [&str; 5] = ["interfaces", "routes", "route-rules", "dns-resolver", "hostname"];

/// Whether a document without `kind` is a network state.
pub(super) fn is_state(value: &Value) -> bool {
    SECTIONS.iter().any(|section| value.get(section).is_some())
}

/// A host's state: nmstate's document, or the one inside a `NodeNetworkState`.
pub(super) fn state(path: &Path) -> Result<(String, Value), FileError> {
    let (name, document) = read(path)?.only()?;
    let found = match &document {
        Document::Bare(value) if is_state(value) => Some(value.clone()),
        Document::Manifest(Kind::NodeNetworkState, manifest) => {
            manifest.pointer("/status/currentState").cloned()
        }
        _ => None,
    };
    match found {
        Some(state) => Ok((name, state)),
        None => Err(document.unexpected(&name, STATE)),
    }
}
