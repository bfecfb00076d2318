//! Tokens to an expression. All that can be refused without looking at a state is refused here:
//!
//! ```text
//! expr  := [capture.NAME "|"] ( nothing | PATH | PATH ("==" | "!=" | ":=") VALUE )  |  ippool.POOL.allocate
//! PATH  := [capture.NAME.] word "." word …            a single bare word is a value, not a path
//! VALUE := "quoted" | 'quoted' | word | null | PATH | capture.NAME.PATH
//! ```
//!
//! `capture.NAME.PATH` on the left is a second way to write the pipe.

use super::lex::{Kind, Operator, Token, lex};
use super::path::{Located, Path};
use super::problem::Problem;
use super::section::Section;

/// A use of another capture, and the byte of the source where it starts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Reference {
    pub(crate) name: String,
    pub(crate) at: usize,
}

/// One capture, parsed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Expr {
    /// `ippool.<name>.allocate`
    Pool { name: String, at: usize },
    /// Anything else: what is done to the input, which is a capture or else the current state.
    Rule { input: Option<Reference>, action: Action },
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Action {
    /// The whole input under a new name.
    All,
    /// The branch at this path.
    Keep(Path),
    /// The items whose property equals (or not) the value.
    Select { section: Section, property: Path, equal: bool, value: Operand },
    /// All items, with the property set to the value.
    Set { section: Section, property: Path, value: Operand },
}

/// The right side.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Operand {
    Text(String),
    Null,
    /// From the current state, also in a rule with an input, as in the peer's engine.
    Current(Path),
    Capture(Reference, Path),
}

impl Expr {
    /// The captures that must be there first.
    pub(crate) fn needs(&self) -> impl Iterator<Item = &Reference> {
        let (input, value) = match self {
            Self::Pool { .. } => (None, None),
            Self::Rule { input, action } => (input.as_ref(), action.operand()),
        };
        let value = match value {
            Some(Operand::Capture(reference, _)) => Some(reference),
            _ => None,
        };
        input.into_iter().chain(value)
    }
}

impl Action {
    fn operand(&self) -> Option<&Operand> {
        match self {
            Self::Select { value, .. } | Self::Set { value, .. } => Some(value),
            Self::All | Self::Keep(_) => None,
        }
    }
}

impl Operand {
    /// Where it starts in the source, and how it reads.
    pub(crate) fn origin(&self) -> (usize, String) {
        match self {
            Self::Text(text) => (0, text.clone()),
            Self::Null => (0, "null".into()),
            Self::Current(path) => (path.at(), path.dotted()),
            Self::Capture(reference, path) => {
                (reference.at, format!("capture.{}.{}", reference.name, path.dotted()))
            }
        }
    }
}

/// Parses one capture's text.
pub(crate) fn parse(source: &str) -> Result<Expr, Located> {
    let tokens = lex(source)?;
    let end = source.trim_end().len();
    if let Some(pool) = pool(&tokens)? {
        return Ok(pool);
    }
    let is_pipe = |token: &Token<'_>| token.kind == Kind::Operator(Operator::Pipe);
    let Some(pipe) = tokens.iter().position(is_pipe) else {
        return rule(None, &tokens, end);
    };
    let (left, right) = (&tokens[..pipe], &tokens[pipe + 1..]);
    if let Some(second) = right.iter().find(|token| is_pipe(token)) {
        return Err((second.at, Problem::TwoInputs));
    }
    rule(Some(piped(left, tokens[pipe].at)?), right, end)
}

/// The pool a line asks, if any word of it speaks of pools: such a line means nothing else, and taking it for a
/// path (as an engine that doesn't know pools would) must never happen silently.
fn pool(tokens: &[Token<'_>]) -> Result<Option<Expr>, Located> {
    let speaks = |token: &&Token<'_>| match token.kind {
        Kind::Word(word) => word == "ippool" || word.starts_with("ippool."),
        _ => false,
    };
    let Some(token) = tokens.iter().find(speaks) else {
        return Ok(None);
    };
    let Kind::Word(word) = token.kind else {
        return Ok(None);
    };
    let path = Path::parse(word, token.at)?;
    match (path.word(1), path.word(2), path.len(), tokens.len()) {
        (Some(name), Some("allocate"), 3, 1) if is_label(name) => {
            Ok(Some(Expr::Pool { name: name.to_owned(), at: token.at }))
        }
        (Some(name), Some("allocate"), 3, 1) => {
            Err((token.at + "ippool.".len(), Problem::PoolName { name: name.to_owned() }))
        }
        _ => Err((token.at, Problem::PoolSyntax)),
    }
}

/// One DNS label (RFC 1123): what a pool may be called.
pub(crate) fn is_label(name: &str) -> bool {
    let plain = |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit();
    let inner = name.bytes().all(|b| plain(b) || b == b'-');
    let ends = name.bytes().next().is_some_and(plain) && name.bytes().last().is_some_and(plain);
    inner && ends && name.len() <= 63
}

/// Whether a capture of this name can be referred to: it is one word of a path.
pub(crate) fn is_name(name: &str) -> bool {
    !name.is_empty() && !name.contains(|c: char| c.is_whitespace() || ".=!|\":".contains(c))
}

fn piped(left: &[Token<'_>], pipe: usize) -> Result<Reference, Located> {
    let [Token { kind: Kind::Word(word), at }] = left else {
        let at = left.first().map_or(pipe, |token| token.at);
        return Err((at, Problem::PipeSource { found: String::new() }));
    };
    match word.split_once('.') {
        Some(("capture", name)) if !name.is_empty() && !name.contains('.') => {
            Ok(Reference { name: name.to_owned(), at: *at })
        }
        _ => Err((*at, Problem::PipeSource { found: (*word).to_owned() })),
    }
}

/// What follows the pipe, or the whole line where there is none. `end` is where a missing token would stand.
fn rule(input: Option<Reference>, tokens: &[Token<'_>], end: usize) -> Result<Expr, Located> {
    let (input, action) = match tokens {
        [] => (input, Action::All),
        [only] => alone(input, only)?,
        [left, Token { kind: Kind::Operator(operator), .. }, right] => {
            let (input, path) = target(input, left, *operator)?;
            let (section, property) = Section::split(&path)?;
            let value = operand(right)?;
            let action = match operator {
                Operator::Assign => Action::Set { section, property, value },
                _ => Action::Select { section, property, equal: *operator == Operator::Equal, value },
            };
            (input, action)
        }
        _ => return Err(misplaced(tokens, end)),
    };
    Ok(Expr::Rule { input, action })
}

/// A line of one token. A path keeps its branch; what is no path stores the whole input.
fn alone(input: Option<Reference>, token: &Token<'_>) -> Result<(Option<Reference>, Action), Located> {
    match token.kind {
        Kind::Operator(_) => Err((token.at, unexpected(token, "a path before it"))),
        Kind::Word("capture") => Err((token.at, Problem::NoCaptureName)),
        Kind::Word(word) if word.contains('.') => {
            let (input, path) = resolve_input(input, Path::parse(word, token.at)?)?;
            Ok((input, if path.is_empty() { Action::All } else { Action::Keep(path) }))
        }
        Kind::Word(_) | Kind::Quoted(_) => Ok((input, Action::All)),
    }
}

/// The left side of an operator: a path, the property to look at or to set.
fn target(
    input: Option<Reference>,
    token: &Token<'_>,
    operator: Operator,
) -> Result<(Option<Reference>, Path), Located> {
    let expected = match operator {
        Operator::Assign => "the path of the property to set",
        _ => "the path of the property to compare",
    };
    let Kind::Word(word) = token.kind else {
        return Err((token.at, unexpected(token, expected)));
    };
    let (input, path) = resolve_input(input, Path::parse(word, token.at)?)?;
    match (&input, path.is_empty()) {
        (Some(reference), true) => Err((token.at, Problem::NoCapturePath { name: reference.name.clone() })),
        _ => Ok((input, path)),
    }
}

/// Splits `capture.NAME.PATH` into input and path; other paths keep the input there is.
fn resolve_input(input: Option<Reference>, path: Path) -> Result<(Option<Reference>, Path), Located> {
    if path.word(0) != Some("capture") {
        return Ok((input, path));
    }
    if input.is_some() {
        return Err((path.at(), Problem::TwoInputs));
    }
    let (reference, rest) = reference(&path)?;
    Ok((Some(reference), rest))
}

/// Splits a path that begins with `capture` into the name and what follows.
pub(crate) fn reference(path: &Path) -> Result<(Reference, Path), Located> {
    let name = path.word(1).ok_or((path.at(), Problem::NoCaptureName))?;
    Ok((Reference { name: name.to_owned(), at: path.at() }, path.skip(2)))
}

fn operand(token: &Token<'_>) -> Result<Operand, Located> {
    match token.kind {
        Kind::Operator(_) => Err((token.at, unexpected(token, "a value"))),
        Kind::Quoted(text) => Ok(Operand::Text(text.to_owned())),
        Kind::Word("null") => Ok(Operand::Null),
        Kind::Word(word) if !word.contains('.') => Ok(Operand::Text(word.to_owned())),
        Kind::Word(word) => {
            let path = Path::parse(word, token.at)?;
            if path.word(0) != Some("capture") {
                return Ok(Operand::Current(path));
            }
            match reference(&path)? {
                (reference, rest) if rest.is_empty() => {
                    Err((token.at, Problem::NoCapturePath { name: reference.name }))
                }
                (reference, rest) => Ok(Operand::Capture(reference, rest)),
            }
        }
    }
}

/// The first token that doesn't fit `PATH operator VALUE`, or the end if one is missing.
fn misplaced(tokens: &[Token<'_>], end: usize) -> Located {
    let is_operator = |token: &Token<'_>| matches!(token.kind, Kind::Operator(_));
    match tokens {
        [first, ..] if is_operator(first) => (first.at, unexpected(first, "a path before it")),
        [_, second, ..] if !is_operator(second) => {
            (second.at, unexpected(second, "'==', '!=', ':=' or the end"))
        }
        [_, _, third, ..] if is_operator(third) => (third.at, unexpected(third, "a value")),
        [_, _, _, fourth, ..] => {
            (fourth.at, unexpected(fourth, "the end: a rule has one operator and one value"))
        }
        _ => (end, Problem::Unexpected { found: "end".into(), expected: "a value" }),
    }
}

fn unexpected(token: &Token<'_>, expected: &'static str) -> Problem {
    let found = match token.kind {
        Kind::Operator(operator) => format!("'{}'", operator.text()),
        Kind::Word(word) => format!("'{word}'"),
        Kind::Quoted(text) => format!("\"{text}\""),
    };
    Problem::Unexpected { found, expected }
}
