//! What is wrong with a document: every finding with its path, all of them at once.

use super::NameError;
use std::fmt;
use std::net::IpAddr;

/// One thing in a document that Berth doesn't take.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{}{reason}", Prefix(path))]
pub struct Refusal {
    pub path: String,
    pub reason: Reason,
}

struct Prefix<'a>(&'a str);

impl fmt::Display for Prefix<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.0.is_empty() { Ok(()) } else { write!(f, "{}: ", self.0) }
    }
}

/// Why.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Reason {
    #[error("not supported")]
    NotSupported,
    #[error("{what} is not supported")]
    ValueNotSupported { what: String },
    #[error("unknown field")]
    UnknownField,
    #[error("expected {wanted}, found {found}")]
    Expected { wanted: &'static str, found: String },
    #[error("expected a number from {min} to {max}, found {found}")]
    OutOfRange { min: u64, max: u64, found: String },
    #[error("expected one of {}, found {found}", allowed.join(", "))]
    NotOneOf { allowed: Vec<&'static str>, found: String },
    #[error("{address} is {what}; give the address of one host")]
    NotAHost { address: IpAddr, what: &'static str },
    #[error("is missing")]
    Missing,
    #[error("{name} was already given at {first}; say it once")]
    Duplicate { name: String, first: String },
    #[error("is another name of {other}, which is given too; say it once")]
    OtherName { other: &'static str },
    #[error("{0}")]
    Name(#[from] NameError),
    #[error("can't be used together with {other}")]
    Conflict { other: &'static str },
    #[error("needs {other}")]
    Needs { other: &'static str },
    #[error("belongs to type {owner}, this interface is {found}")]
    WrongKind { owner: &'static str, found: String },
}

/// All that a desired document asks for and Berth doesn't do, one line each. As an error never empty.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refusals(pub Vec<Refusal>);

/// All that makes an observed state unreadable. Never empty.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StateErrors(pub Vec<Refusal>);

fn lines(items: &[Refusal], f: &mut fmt::Formatter<'_>) -> fmt::Result {
    for (i, item) in items.iter().enumerate() {
        if i > 0 {
            writeln!(f)?;
        }
        write!(f, "{item}")?;
    }
    Ok(())
}

impl fmt::Display for Refusals {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        lines(&self.0, f)
    }
}

impl fmt::Display for StateErrors {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        lines(&self.0, f)
    }
}

impl std::error::Error for Refusals {}
impl std::error::Error for StateErrors {}
