//! What can be wrong with a capture or a template, as fields; the prose is made here and nowhere else.
//!
//! Callers match on the variants (the agent waits on `NoGrant`, and fails a policy on all others).

use std::fmt;

use thiserror::Error;

/// More names than this in one message hide the message.
const LISTED: usize = 10;

/// What is wrong.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum Problem {
    // The wording of a capture.
    #[error("this quote is never closed")]
    UnclosedQuote,
    #[error("'{found}' alone is no operator: expected '{expected}'")]
    LoneOperator { found: char, expected: &'static str },
    #[error("unexpected {found}: expected {expected}")]
    Unexpected { found: String, expected: &'static str },
    #[error("a name is missing: a path is words with one dot between them")]
    EmptySegment,
    #[error("a path of {length} words: at most {limit}")]
    PathTooLong { length: usize, limit: usize },
    #[error("Unsupported capture keyword '{keyword}'")]
    UnsupportedKeyword { keyword: String },
    #[error("a property must follow '{section}'")]
    NoProperty { section: &'static str },
    #[error("exactly one property must follow '{section}', not '{property}'")]
    OneProperty { section: &'static str, property: String },
    #[error("only 'capture.<name>' may stand before '|'")]
    PipeSource { found: String },
    #[error("a rule takes its input from one capture only")]
    TwoInputs,
    #[error("'capture' must be followed by a name")]
    NoCaptureName,
    #[error("a path must follow 'capture.{name}'")]
    NoCapturePath { name: String },
    #[error("'ippool' is used as 'ippool.<pool>.allocate' and stands alone")]
    PoolSyntax,
    #[error(
        "\"{name}\" is no pool name: it is one DNS label, lower case letters, digits and '-', at most 63 of them"
    )]
    PoolName { name: String },

    #[error("nothing can refer to this name: it must have no '.', blank, '\"', '=', '!', '|' or ':' in it")]
    CaptureName,

    // References.
    #[error("unknown capture \"{name}\"; {}", Choice(known))]
    UnknownCapture { name: String, known: Names },
    #[error("captures need each other: {}", Ring(members))]
    Cycle { members: Vec<String> },
    #[error("{}", Missing { reached, missing, found })]
    NoPath { reached: String, missing: String, found: Found },
    #[error("'{text}' is no path: the current state has no '{first}'")]
    NoValue { text: String, first: String },
    #[error("{path} is {found}, not a single value")]
    NotScalar { path: String, found: Found },

    // Evaluation.
    #[error("{item} with '{property}{operator}{value}' not found")]
    NotFound { item: &'static str, property: String, operator: &'static str, value: String, seen: Seen },
    #[error("no {item} to change")]
    NothingToChange { item: &'static str },
    #[error("'{section}' is {found}, not a list")]
    NotList { section: &'static str, found: Found },
    #[error("pool \"{pool}\" has granted no address yet")]
    NoGrant { capture: String, pool: String },

    // Templates.
    #[error("this '{{{{' is never closed")]
    UnclosedReference,
    #[error("'{found}' is no reference: expected 'capture.<name>.<path>'")]
    NotReference { found: String },
    #[error("{path} is {found}: with text around it, a reference must be a single value")]
    NotEmbeddable { path: String, found: Found },
    #[error("ipam must be {{pool: <name>}}, and nothing else may stand beside it{}", Beside(beside))]
    IpamShape { beside: Option<String> },
    #[error("pool \"{pool}\" gave no {family} address")]
    IpamFamily { pool: String, family: &'static str },
    #[error("the name \"{name}\" is taken: it stands for the address that 'ipam' asks for")]
    ReservedName { name: String },
    #[error("the name \"{name}\" is taken: it stands for the claim of an address that a policy writes out")]
    LiteralName { name: String },

    // The document.
    #[error("{one} and {other} are two names for the same: give one of them")]
    SameTwice { one: &'static str, other: &'static str },
    #[error("expected {expected}, found {found}")]
    Shape { expected: &'static str, found: Found },
}

/// What the items that were searched have.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Seen {
    NoItems,
    /// No item has the property.
    Nowhere,
    /// The path meets a list.
    List,
    Values(Names),
}

/// What was there instead.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Found {
    Nothing,
    /// A list of so many items.
    List(usize),
    /// A map with these keys.
    Map(Names),
    /// A single value, as text.
    Scalar(String),
}

impl Problem {
    /// What to do about it, where that isn't plain from the message.
    pub fn hint(&self) -> Option<String> {
        match self {
            Self::UnsupportedKeyword { .. } => Some(
                "'==', '!=' and ':=' work on interfaces, routes.running, routes.config and route-rules.config; \
                 a path alone keeps any branch"
                    .into(),
            ),
            Self::TwoInputs => Some("give the first part a capture of its own and pipe that".into()),
            Self::NotFound { item, property, seen, .. } => Some(match seen {
                Seen::NoItems => format!("there is no {item} at all"),
                Seen::Nowhere => format!("no {item} has '{property}'"),
                Seen::List => {
                    "lists inside an item are not searched: name the place, as in 'address.0.ip'".into()
                }
                Seen::Values(values) => format!("'{property}' is there with: {values}"),
            }),
            Self::NoValue { text, .. } => {
                Some(format!("a plain value that contains a dot needs quotes: \"{text}\""))
            }
            Self::PipeSource { found } | Self::NotReference { found } => {
                found.strip_prefix("captures.").map(|rest| format!("did you mean 'capture.{rest}'?"))
            }
            Self::Cycle { .. } => Some("one of them must not use the others".into()),
            _ => None,
        }
    }
}

/// How the observed state is called in messages.
pub(crate) const CURRENT: &str = "the current state";

/// Names to choose from, as many as a message can hold.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Names {
    first: Vec<String>,
    more: usize,
}

impl Names {
    pub(crate) fn of<'a>(mut names: impl Iterator<Item = &'a str>) -> Self {
        let first = names.by_ref().take(LISTED).map(str::to_owned).collect();
        Self { first, more: names.count() }
    }

    fn is_empty(&self) -> bool {
        self.first.is_empty()
    }
}

impl fmt::Display for Names {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.first.join(", "))?;
        if self.more > 0 { write!(f, " and {} more", self.more) } else { Ok(()) }
    }
}

struct Choice<'a>(&'a Names);

impl fmt::Display for Choice<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.0.is_empty() { write!(f, "there are no others") } else { write!(f, "known: {}", self.0) }
    }
}

/// A ring as its members in order, the first once more at the end; of a long one, its middle is left out.
struct Ring<'a>(&'a [String]);

impl fmt::Display for Ring<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let members = self.0;
        if members.len() <= LISTED {
            return write!(f, "{}", members.join(" -> "));
        }
        let (first, rest) = members.split_at(LISTED / 2);
        let last = &rest[rest.len().saturating_sub(LISTED / 2)..];
        let (first, last) = (first.join(" -> "), last.join(" -> "));
        write!(f, "{first} -> … -> {last} ({} captures)", members.len() - 1)
    }
}

struct Beside<'a>(&'a Option<String>);

impl fmt::Display for Beside<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.as_ref().map_or(Ok(()), |key| write!(f, " (found '{key}')"))
    }
}

struct Missing<'a> {
    reached: &'a str,
    missing: &'a str,
    found: &'a Found,
}

impl fmt::Display for Missing<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { reached, missing, found } = self;
        match found {
            Found::Nothing => write!(f, "{reached} is empty: no '{missing}' in it"),
            Found::List(items) if missing.bytes().all(|b| b.is_ascii_digit()) => {
                let noun = if *items == 1 { "item" } else { "items" };
                write!(f, "{reached} has only {items} {noun}: no index {missing} (the first is 0)")
            }
            Found::List(_) => write!(f, "{reached} is a list: an index must follow, not '{missing}'"),
            Found::Map(keys) if keys.is_empty() => write!(f, "{reached} is empty: no '{missing}' in it"),
            Found::Map(keys) => write!(f, "no '{missing}' in {reached}; it has: {keys}"),
            Found::Scalar(text) => write!(f, "{reached} is '{text}': there is no '{missing}' below it"),
        }
    }
}

impl fmt::Display for Found {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Nothing => write!(f, "null"),
            Self::List(_) => write!(f, "a list"),
            Self::Map(_) => write!(f, "a map"),
            Self::Scalar(text) => write!(f, "'{text}'"),
        }
    }
}
