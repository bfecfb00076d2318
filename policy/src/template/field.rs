//! The path of a field in a document, as people write it: `interfaces[1].ipv4.address[0].ip`.
//!
//! A chain on the stack while a document is walked; becomes text only when there is something to report.

use std::fmt;

pub(crate) enum Field<'a> {
    Root,
    Key(&'a Field<'a>, &'a str),
    Index(&'a Field<'a>, usize),
}

impl fmt::Display for Field<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Root => Ok(()),
            Self::Key(Self::Root, key) => write!(f, "{key}"),
            Self::Key(parent, key) => write!(f, "{parent}.{key}"),
            Self::Index(parent, index) => write!(f, "{parent}[{index}]"),
        }
    }
}
