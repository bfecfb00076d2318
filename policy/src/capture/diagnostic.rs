//! An error about text: whose text, where in it, what is wrong, and the line with a caret.
//!
//! Owns how such errors print. Made by `capture` and `template`; the agent matches on [`Problem`] and puts the
//! printed form into conditions, the command line prints it. Costs nothing until something is wrong: places in
//! the text are byte offsets, turned into line and column only here.

use std::fmt;

use super::problem::Problem;

/// One thing that is wrong, and where.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Diagnostic {
    /// Whose text it is.
    pub place: Place,
    /// Where in that text; nothing when the problem is not in the wording (a field of the wrong shape).
    pub spot: Option<Spot>,
    pub problem: Problem,
}

/// Whose text a diagnostic is about.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum Place {
    /// The capture of this name.
    Capture(String),
    /// A field of the document, as `interfaces[1].ipv4.address[0].ip`.
    Field(String),
}

/// A position in a text; line and column count from 1, columns in characters.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Spot {
    pub line: usize,
    pub column: usize,
    /// The line itself, without its end.
    pub text: String,
}

impl Spot {
    /// The position of byte `offset` of `source`. Any offset gives an answer: one past the end is the end.
    pub(crate) fn of(source: &str, offset: usize) -> Self {
        let offset =
            (0..=offset.min(source.len())).rev().find(|at| source.is_char_boundary(*at)).unwrap_or(0);
        let (before, after) = source.split_at(offset);
        let start = before.rfind('\n').map_or(0, |newline| newline + 1);
        let end = after.find('\n').map_or(source.len(), |newline| offset + newline);
        Self {
            line: before.matches('\n').count() + 1,
            column: before[start..].chars().count() + 1,
            text: source[start..end].trim_end_matches('\r').to_owned(),
        }
    }
}

impl Diagnostic {
    /// A problem at byte `offset` of `source`.
    pub(crate) fn at(place: Place, source: &str, offset: usize, problem: Problem) -> Self {
        Self { place, spot: Some(Spot::of(source, offset)), problem }
    }

    /// A problem of a field as a whole.
    pub(crate) fn field(path: impl Into<String>, problem: Problem) -> Self {
        Self { place: Place::Field(path.into()), spot: None, problem }
    }
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Capture(name) => write!(f, "capture {name:?}"),
            Self::Field(path) => write!(f, "{path}"),
        }
    }
}

/// The line as it may be printed: a control character would move the caret, or more, on a terminal.
fn printable(text: &str) -> String {
    text.chars().map(|c| if c.is_control() && c != '\t' { '\u{fffd}' } else { c }).collect()
}

/// How much of a line is printed: what fits a terminal and a condition's message. A capture may be a line of megabytes.
const WINDOW: usize = 100;

/// The part of a long line around character `at`, with `…` where something was cut off, and where `at` is in it.
fn window(text: &str, at: usize) -> (String, usize) {
    let length = text.chars().count();
    if length <= WINDOW {
        return (printable(text), at);
    }
    let at = at.min(length);
    let start = at.saturating_sub(WINDOW / 2).min(length - WINDOW);
    let cut: String = text.chars().skip(start).take(WINDOW).collect();
    let before = if start > 0 { "…" } else { "" };
    let after = if start + WINDOW < length { "…" } else { "" };
    let shown = format!("{before}{}{after}", printable(&cut));
    (shown, at - start + before.chars().count())
}

impl fmt::Display for Spot {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Tabs stay tabs in front of the caret, so that it stands under its character at any tab width.
        let (shown, at) = window(&self.text, self.column.saturating_sub(1));
        let indent: String = shown
            .chars()
            .chain(std::iter::repeat(' '))
            .take(at)
            .map(|c| if c == '\t' { c } else { ' ' })
            .collect();
        write!(f, "| {shown}\n| {indent}^")
    }
}

impl fmt::Display for Diagnostic {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: ", self.place)?;
        match &self.spot {
            Some(spot) => write!(f, "{}:{}: {}\n{spot}", spot.line, spot.column, self.problem)?,
            None => write!(f, "{}", self.problem)?,
        }
        match self.problem.hint() {
            Some(hint) => write!(f, "\nhint: {hint}"),
            None => Ok(()),
        }
    }
}

impl std::error::Error for Diagnostic {}

/// Everything that is wrong with a document, never empty: people fix a policy once, not error by error.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Diagnostics(Vec<Diagnostic>);

impl Diagnostics {
    /// What was found wrong; the caller has made sure that something was.
    pub(crate) fn all(found: Vec<Diagnostic>) -> Self {
        Self(found)
    }

    /// `value` if nothing was found wrong.
    pub(crate) fn none_or<T>(found: Vec<Diagnostic>, value: T) -> Result<T, Self> {
        if found.is_empty() { Ok(value) } else { Err(Self(found)) }
    }

    pub fn iter(&self) -> std::slice::Iter<'_, Diagnostic> {
        self.0.iter()
    }

    pub(crate) fn extend(&mut self, more: impl IntoIterator<Item = Diagnostic>) {
        self.0.extend(more);
    }

    /// True if all that is missing are addresses: the policy itself is sound and waits for its pools.
    pub fn only_missing_grants(&self) -> bool {
        self.0.iter().all(|one| matches!(one.problem, Problem::NoGrant { .. }))
    }

    /// `(capture, pool)` of each address that is missing.
    pub fn missing_grants(&self) -> impl Iterator<Item = (&str, &str)> {
        self.0.iter().filter_map(|one| match &one.problem {
            Problem::NoGrant { capture, pool } => Some((capture.as_str(), pool.as_str())),
            _ => None,
        })
    }
}

impl From<Diagnostic> for Diagnostics {
    fn from(one: Diagnostic) -> Self {
        Self(vec![one])
    }
}

impl IntoIterator for Diagnostics {
    type Item = Diagnostic;
    type IntoIter = std::vec::IntoIter<Diagnostic>;
    fn into_iter(self) -> Self::IntoIter {
        self.0.into_iter()
    }
}

impl<'a> IntoIterator for &'a Diagnostics {
    type Item = &'a Diagnostic;
    type IntoIter = std::slice::Iter<'a, Diagnostic>;
    fn into_iter(self) -> Self::IntoIter {
        self.iter()
    }
}

impl fmt::Display for Diagnostics {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, one) in self.0.iter().enumerate() {
            let separator = if index == 0 { "" } else { "\n" };
            write!(f, "{separator}{one}")?;
        }
        Ok(())
    }
}

impl std::error::Error for Diagnostics {}
