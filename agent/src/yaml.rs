//! YAML text ↔ JSON values. The only module that knows which YAML library is used.
//!
//! Called by the command line for every file. JSON is YAML, so it is read here too. What comes in is bounded (aliases,
//! nesting, nodes), so that no file can exhaust the machine; a key given twice is an error, never a silent choice.
//! Must never lose the place of an error: line, column, the line itself, a caret.
//!
//! Cost: linear in the text, and in what its aliases expand to.

use policy::capture::Spot;
use serde_json::Value;
use serde_saphyr::{Error, MessageFormatter, Options, UserMessageFormatter};
use thiserror::Error;

#[cfg(test)]
mod tests;

/// A node state of 5,000 links has about 500,000 nodes, the largest pool ledger (5,000 entries) 100,000: room for
/// both, and still a fraction of a second.
const NODES: usize = 4_000_000;
/// Each node is one event or, for maps and lists, two.
const EVENTS: usize = 2 * NODES;
/// nmstate's documents go ten deep, manifests a few more. Every reader of a value recurses.
const DEPTH: usize = 64;

/// Text that is no YAML.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("{}{message}{}", Where(.spot.as_ref()), Line(.spot.as_ref()))]
pub(crate) struct ParseError {
    /// Nothing for errors about the text as a whole.
    pub(crate) spot: Option<Spot>,
    pub(crate) message: String,
}

/// A value that can't be written as YAML.
#[derive(Debug, Error)]
#[error("write YAML")]
pub(crate) struct PrintError(#[from] serde_saphyr::ser_error::Error);

/// The documents in a text, those that are empty left out.
pub(crate) fn parse(text: &str) -> Result<Vec<Value>, ParseError> {
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let documents: Vec<Value> =
        serde_saphyr::from_multiple_with_options(text, options()).map_err(|error| refused(text, &error))?;
    Ok(documents
        .into_iter()
        .filter(|document| !document.is_null())
        .collect())
}

/// One document, ending in a line break.
pub(crate) fn print(value: &Value) -> Result<String, PrintError> {
    Ok(serde_saphyr::to_string(value)?)
}

fn options() -> Options {
    serde_saphyr::options! {
        budget: serde_saphyr::budget! { max_nodes: NODES, max_events: EVENTS, max_depth: DEPTH },
        with_snippet: false,
    }
}

fn refused(text: &str, error: &Error) -> ParseError {
    let place = error
        .location()
        .filter(|place| place.line() > 0)
        .and_then(|place| {
            Some((
                usize::try_from(place.line()).ok()?,
                usize::try_from(place.column()).ok()?,
            ))
        });
    ParseError {
        spot: place.map(|(line, column)| spot(text, line, column)),
        message: printable(&message(error)),
    }
}

fn spot(text: &str, line: usize, column: usize) -> Spot {
    Spot {
        line,
        column: column.max(1),
        text: text.lines().nth(line - 1).unwrap_or_default().to_owned(),
    }
}

/// What is wrong, in words that help somebody who writes a file: those of the library speak of its interface.
fn message(error: &Error) -> String {
    match error.without_snippet() {
        Error::DuplicateMappingKey { key: Some(key), .. } => format!("{key:?} is given twice in one map"),
        Error::UnknownAnchor { .. } => "this alias (*) names no anchor (&)".to_owned(),
        Error::Budget { .. }
        | Error::AliasReplayLimitExceeded { .. }
        | Error::AliasExpansionLimitExceeded { .. }
        | Error::AliasReplayStackDepthExceeded { .. } => {
            format!(
                "too large, too deep or too many aliases: {}",
                UserMessageFormatter.format_message(error)
            )
        }
        error => UserMessageFormatter.format_message(error).into_owned(),
    }
}

/// Control characters of a broken file must not reach a terminal.
fn printable(text: &str) -> String {
    text.chars()
        .map(|c| if c.is_control() { '\u{fffd}' } else { c })
        .collect()
}

struct Where<'a>(Option<&'a Spot>);

impl std::fmt::Display for Where<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.0
            .map_or(Ok(()), |spot| write!(f, "{}:{}: ", spot.line, spot.column))
    }
}

struct Line<'a>(Option<&'a Spot>);

impl std::fmt::Display for Line<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.0.map_or(Ok(()), |spot| write!(f, "\n{spot}"))
    }
}
