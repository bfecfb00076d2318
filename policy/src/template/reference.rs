//! Finding `{{ capture.NAME.PATH }}` in a string. Knows nothing of values. Linear.

use crate::capture::path::{Located, Path};
use crate::capture::{Problem, Reference, reference};

/// A piece of a string.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Part<'a> {
    Text(&'a str),
    Value(Reference, Path),
}

/// Splits a string into text and references. A lone brace is text; so are the outer ones of three, since `{{{` can
/// only be a brace before a reference.
pub(crate) fn split(source: &str) -> Result<Vec<Part<'_>>, Located> {
    let mut parts = Vec::new();
    let mut done = 0;
    while let Some(open) = source[done..].find("{{").map(|at| done + at) {
        let run = source[open..].bytes().take_while(|b| *b == b'{').count();
        let open = open + run - 2;
        let inner = open + 2;
        let Some(length) = source[inner..].find("}}") else {
            return Err((open, Problem::UnclosedReference));
        };
        if open > done {
            parts.push(Part::Text(&source[done..open]));
        }
        parts.push(parse(&source[inner..inner + length], inner)?);
        done = inner + length + 2;
    }
    if done < source.len() {
        parts.push(Part::Text(&source[done..]));
    }
    Ok(parts)
}

/// What stands between the braces; `start` is where in the source.
fn parse(inner: &str, start: usize) -> Result<Part<'_>, Located> {
    let word = inner.trim();
    let at = start + (inner.len() - inner.trim_start().len());
    let is_word = !word.contains(|c: char| c.is_whitespace() || "=!|\"':{}".contains(c));
    let is_reference = word == "capture" || word.starts_with("capture.");
    if !(is_word && is_reference) {
        return Err((at.min(start + inner.len()), Problem::NotReference { found: word.to_owned() }));
    }
    let (reference, path) = reference(&Path::parse(word, at)?)?;
    Ok(Part::Value(reference, path))
}
