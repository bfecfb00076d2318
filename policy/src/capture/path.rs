//! Dotted paths: parsing them, and walking a document along them.
//!
//! Used by the capture language and by templates alike, so that `a.b.0.c` means the same everywhere. A walk
//! borrows; it never copies the document. Cost: one lookup per word.

use serde_json::Value;

use super::problem::{CURRENT, Found, Names, Problem};

/// nmstate's deepest field lies about ten words down. The limit is what keeps a hostile path from building a
/// document so deep that dropping it overflows the stack.
const LONGEST: usize = 32;

/// One word of a path, and the byte of the source where it starts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Segment {
    pub(crate) text: String,
    pub(crate) at: usize,
}

/// A path below some root.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct Path {
    pub(crate) segments: Vec<Segment>,
}

/// A problem and the byte of the source it is at.
pub(crate) type Located = (usize, Problem);

impl Path {
    /// Splits the dotted `word` that starts at byte `start` of its source.
    pub(crate) fn parse(word: &str, start: usize) -> Result<Self, Located> {
        let mut segments = Vec::new();
        let mut at = start;
        for text in word.split('.') {
            if text.is_empty() {
                return Err((at, Problem::EmptySegment));
            }
            segments.push(Segment { text: text.to_owned(), at });
            at += text.len() + 1;
        }
        match segments.len() {
            length if length > LONGEST => Err((start, Problem::PathTooLong { length, limit: LONGEST })),
            _ => Ok(Self { segments }),
        }
    }

    /// The path without its first `count` words.
    pub(crate) fn skip(&self, count: usize) -> Self {
        Self { segments: self.segments.iter().skip(count).cloned().collect() }
    }

    pub(crate) fn word(&self, index: usize) -> Option<&str> {
        self.segments.get(index).map(|segment| segment.text.as_str())
    }

    pub(crate) fn len(&self) -> usize {
        self.segments.len()
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.segments.is_empty()
    }

    /// Where the path starts in its source.
    pub(crate) fn at(&self) -> usize {
        self.segments.first().map_or(0, |segment| segment.at)
    }

    pub(crate) fn dotted(&self) -> String {
        dotted(&self.segments)
    }

    /// What lies at the path, or how far one can go.
    pub(crate) fn walk<'a>(&self, root: &'a Value) -> Result<&'a Value, Stop<'a>> {
        let mut here = root;
        for (depth, segment) in self.segments.iter().enumerate() {
            here = child(here, &segment.text).ok_or(Stop { depth, here })?;
        }
        Ok(here)
    }

    /// The problem of a walk that stopped after `depth` words; `root` is what the root is called, empty for the
    /// current state.
    pub(crate) fn stopped(&self, root: &str, depth: usize, found: Found) -> Located {
        let reached = match (root, dotted(self.segments.get(..depth).unwrap_or_default())) {
            ("", below) if below.is_empty() => CURRENT.to_owned(),
            ("", below) => below,
            (root, below) if below.is_empty() => root.to_owned(),
            (root, below) => format!("{root}.{below}"),
        };
        let missing = self.word(depth).unwrap_or_default().to_owned();
        let at = self.segments.get(depth).map_or(self.at(), |segment| segment.at);
        (at, Problem::NoPath { reached, missing, found })
    }
}

fn dotted(segments: &[Segment]) -> String {
    segments.iter().map(|segment| segment.text.as_str()).collect::<Vec<_>>().join(".")
}

/// One step down: a key of a map, an index of a list.
fn child<'a>(value: &'a Value, word: &str) -> Option<&'a Value> {
    match value {
        Value::Object(map) => map.get(word),
        Value::Array(items) => items.get(index(word)?),
        _ => None,
    }
}

/// The word as an index; digits only, since `parse` alone would take `+1`.
pub(crate) fn index(word: &str) -> Option<usize> {
    word.bytes().all(|b| b.is_ascii_digit()).then(|| word.parse().ok()).flatten()
}

/// Where a walk ended: `depth` words were good, and led `here`. Items are walked by the hundred to see which have a
/// property at all, so what is wrong is put into words only by who reports it.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Stop<'a> {
    pub(crate) depth: usize,
    pub(crate) here: &'a Value,
}

impl Found {
    pub(crate) fn of(value: &Value) -> Self {
        match value {
            Value::Null => Self::Nothing,
            Value::Array(items) => Self::List(items.len()),
            Value::Object(map) => Self::Map(Names::of(map.keys().map(String::as_str))),
            scalar => Self::Scalar(text_of(scalar).unwrap_or_default()),
        }
    }
}

/// A single value as text, the way values are compared: `true` and "true", 9000 and "9000" are alike. Null, lists
/// and maps have none.
pub(crate) fn text_of(value: &Value) -> Option<String> {
    match value {
        Value::String(text) => Some(text.clone()),
        Value::Number(number) => Some(number.to_string()),
        Value::Bool(flag) => Some(flag.to_string()),
        Value::Null | Value::Array(_) | Value::Object(_) => None,
    }
}
