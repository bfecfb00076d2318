//! Text to tokens. Knows quotes, operators and words, nothing of what they mean. Linear, and borrows its words.

use super::path::Located;
use super::problem::Problem;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Operator {
    Equal,
    NotEqual,
    Assign,
    Pipe,
}

impl Operator {
    pub(crate) fn text(self) -> &'static str {
        match self {
            Self::Equal => "==",
            Self::NotEqual => "!=",
            Self::Assign => ":=",
            Self::Pipe => "|",
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind<'a> {
    /// A bare word, dots included.
    Word(&'a str),
    /// What stood between quotes, taken as it is: there are no escapes; the other kind of quote may stand inside.
    Quoted(&'a str),
    Operator(Operator),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Token<'a> {
    pub(crate) kind: Kind<'a>,
    /// Byte of the source where it starts.
    pub(crate) at: usize,
}

/// Splits a capture's text. White space of any kind separates (block scalars bring newlines, web pages
/// non-breaking spaces).
pub(crate) fn lex(source: &str) -> Result<Vec<Token<'_>>, Located> {
    let mut tokens: Vec<Token<'_>> = Vec::new();
    let mut at = 0;
    // After a comparison or an assignment comes a value: there a colon that is not `:=` belongs to the word, so
    // that MAC and IPv6 addresses need no quotes.
    let mut in_value = false;
    while let Some(first) = source[at..].chars().next() {
        let rest = &source[at..];
        let (kind, length) = match first {
            blank if blank.is_whitespace() => {
                at += blank.len_utf8();
                continue;
            }
            '"' | '\'' => quoted(rest, first).ok_or((at, Problem::UnclosedQuote))?,
            '|' => (Kind::Operator(Operator::Pipe), 1),
            '=' | '!' => operator(rest, first).ok_or_else(|| (at, lone(first)))?,
            ':' if operator(rest, first).is_some() => (Kind::Operator(Operator::Assign), 2),
            ':' if !in_value => return Err((at, lone(first))),
            _ => word(rest, in_value),
        };
        in_value |= matches!(kind, Kind::Operator(operator) if operator != Operator::Pipe);
        tokens.push(Token { kind, at });
        at += length;
    }
    Ok(tokens)
}

fn quoted(rest: &str, quote: char) -> Option<(Kind<'_>, usize)> {
    let inner = &rest[1..];
    let end = inner.find(quote)?;
    Some((Kind::Quoted(&inner[..end]), end + 2))
}

fn operator(rest: &str, first: char) -> Option<(Kind<'_>, usize)> {
    let operator = match first {
        '=' => Operator::Equal,
        '!' => Operator::NotEqual,
        _ => Operator::Assign,
    };
    rest.starts_with(operator.text()).then_some((Kind::Operator(operator), 2))
}

fn lone(found: char) -> Problem {
    let expected = match found {
        '=' => "==",
        '!' => "!=",
        _ => ":=",
    };
    Problem::LoneOperator { found, expected }
}

fn word(rest: &str, in_value: bool) -> (Kind<'_>, usize) {
    let ends = |(at, c): (usize, char)| {
        let delimits = match c {
            '=' | '!' | '|' | '"' => true,
            ':' => !in_value || rest[at..].starts_with(":="),
            other => other.is_whitespace(),
        };
        delimits.then_some(at)
    };
    let length = rest.char_indices().find_map(ends).unwrap_or(rest.len());
    (Kind::Word(&rest[..length]), length)
}
