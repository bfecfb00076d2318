//! YAML text ↔ JSON values. The only module that knows which YAML library is used.
//!
//! Called by the command line for every file. JSON is YAML, so it is read here too, by a quicker way (`json`). What comes in is bounded (aliases,
//! nesting, nodes), so that no file can exhaust the machine; a key given twice is an error, never a silent choice.
//! Must never lose the place of an error: line, column, the line itself, a caret.
//!
//! Cost: linear in the text, and in what its aliases expand to.

mod json;

use std::fmt;

use policy::capture::Spot;
use serde::de::{Deserialize, Deserializer, MapAccess, Visitor};
use serde_json::Value;
use serde_saphyr::budget::BudgetBreach;
use serde_saphyr::{Error, MessageFormatter, Options, Spanned, UserMessageFormatter};
use thiserror::Error;

#[cfg(test)]
mod tests;

/// A node state of 5,000 links has about 500,000 nodes, the largest pool ledger (5,000 entries) 100,000: room for
/// both several times over.
const NODES: usize = 4_000_000;
/// Each node is one event or, for maps and lists, two.
const EVENTS: usize = 2 * NODES;
/// People use aliases for a bond's ports or a list of servers: a thousand times that.
const ALIASED: usize = 100_000;
/// nmstate's documents go ten deep, manifests a few more. Every reader of a value recurses.
const DEPTH: usize = 64;
/// So much of a line is shown with an error: a terminal's width.
const WIDTH: usize = 96;

/// Text that is no YAML.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("{}{message}{}", At(.place), Shown(.place))]
pub(crate) struct ParseError {
    /// Nothing for errors about the text as a whole.
    pub(crate) place: Option<Place>,
    pub(crate) message: String,
}

/// Where in the text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Place {
    /// Both from 1, columns in characters.
    pub(crate) line: usize,
    pub(crate) column: usize,
    /// The line, or what of a long one stands around the column, with the caret's place in that.
    pub(crate) shown: Spot,
}

/// A value that can't be written as YAML.
#[derive(Debug, Error)]
#[error("write YAML")]
pub(crate) struct PrintError(#[from] serde_saphyr::ser_error::Error);

/// The documents in a text, those that are empty left out.
pub(crate) fn parse(text: &str) -> Result<Vec<Value>, ParseError> {
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    if let Some(document) = json::parse(text) {
        return Ok(vec![document]);
    }
    parse_yaml(text)
}

fn parse_yaml(text: &str) -> Result<Vec<Value>, ParseError> {
    let documents: Vec<Value> =
        serde_saphyr::from_multiple_with_options(text, options()).map_err(|error| refused(text, &error))?;
    Ok(documents.into_iter().filter(|document| !document.is_null()).collect())
}

/// An entry of a map, with the line that its key stands on.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Entry {
    pub(crate) key: String,
    pub(crate) line: usize,
    pub(crate) value: Value,
}

/// The entries of a document that is one map; none of an empty one.
pub(crate) fn entries(text: &str) -> Result<Vec<Entry>, ParseError> {
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let read: Option<Entries> =
        serde_saphyr::from_str_with_options(text, options()).map_err(|error| refused(text, &error))?;
    Ok(read.map(|Entries(entries)| entries).unwrap_or_default())
}

struct Entries(Vec<Entry>);

impl<'de> Deserialize<'de> for Entries {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Map;
        impl<'de> Visitor<'de> for Map {
            type Value = Entries;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a map of settings")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Entries, A::Error> {
                let mut entries = Vec::new();
                while let Some((key, value)) = map.next_entry::<Spanned<String>, Value>()? {
                    let line = usize::try_from(key.referenced.line()).unwrap_or_default();
                    entries.push(Entry { key: key.value, line, value });
                }
                Ok(Entries(entries))
            }
        }
        deserializer.deserialize_map(Map)
    }
}

/// One document, ending in a line break.
pub(crate) fn print(value: &Value) -> Result<String, PrintError> {
    Ok(serde_saphyr::to_string(value)?)
}

fn options() -> Options {
    serde_saphyr::options! {
        budget: serde_saphyr::budget! {
            max_nodes: NODES,
            max_events: EVENTS,
            max_depth: DEPTH,
            max_recorded_anchor_events: ALIASED,
        },
        alias_limits: serde_saphyr::alias_limits! { max_total_replayed_events: ALIASED },
        with_snippet: false,
    }
}

fn refused(text: &str, error: &Error) -> ParseError {
    let found = error.location().filter(|found| found.line() > 0);
    let found = found.and_then(|found| {
        let (line, column) = (found.line().try_into().ok()?, found.column().try_into().ok()?);
        Some(place(text, line, column))
    });
    ParseError { place: found, message: printable(&message(error)) }
}

fn place(text: &str, line: usize, column: usize) -> Place {
    let column = column.max(1);
    let whole = text.lines().nth(line - 1).unwrap_or_default();
    let skipped = match whole.chars().count() {
        0..=WIDTH => 0,
        _ => column.saturating_sub(WIDTH / 2),
    };
    Place {
        line,
        column,
        shown: Spot {
            line,
            column: column - skipped,
            text: whole.chars().skip(skipped).take(WIDTH).collect(),
        },
    }
}

/// What is wrong, in words that help somebody who writes a file: those of the library speak of its interface.
fn message(error: &Error) -> String {
    match error.without_snippet() {
        Error::AliasError { error, .. } => message(error),
        Error::DuplicateMappingKey { key: Some(key), .. } => format!("{key:?} is given twice in one map"),
        Error::UnknownAnchor { .. } => "this alias (*) names no anchor (&)".to_owned(),
        Error::Budget { breach: BudgetBreach::Depth { .. }, .. } => too_deep(),
        // The scanner has a limit of its own, which a row of brackets meets before ours is looked at.
        Error::ExternalMessage { msg, .. } if msg.contains("recursion limit") => too_deep(),
        Error::Budget { .. }
        | Error::AliasReplayLimitExceeded { .. }
        | Error::AliasExpansionLimitExceeded { .. }
        | Error::AliasReplayStackDepthExceeded { .. } => {
            "too large from here on, or too much by its aliases".to_owned()
        }
        error => UserMessageFormatter.format_message(error).into_owned(),
    }
}

fn too_deep() -> String {
    format!("nested deeper than {DEPTH} levels")
}

/// Control characters of a broken file must not reach a terminal.
fn printable(text: &str) -> String {
    text.chars().map(|c| if c.is_control() { '\u{fffd}' } else { c }).collect()
}

struct At<'a>(&'a Option<Place>);

impl fmt::Display for At<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            Some(place) => write!(f, "{}:{}: ", place.line, place.column),
            None => Ok(()),
        }
    }
}

struct Shown<'a>(&'a Option<Place>);

impl fmt::Display for Shown<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            Some(place) => write!(f, "\n{}", place.shown),
            None => Ok(()),
        }
    }
}
