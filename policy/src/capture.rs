//! The capture language: what a policy looks up on its host before it says what it wants.
//!
//! Owns lexing, parsing, ordering and evaluating captures, and the diagnostics of all text in a policy. The agent
//! and the command line call it through [`Captures`], or through [`crate::template::render()`]. It must never ask
//! anything of the world: the observed state, earlier results and pool grants are passed in.
//!
//! The state is a plain JSON document, not the typed one: a capture may look at kinds that can't be applied.
//!
//! Cost: parsing is linear, ordering O(n log n), evaluating one pass over the section that a rule names.

mod bindings;
mod change;
mod diagnostic;
mod eval;
mod grant;
mod lex;
mod order;
mod parse;
pub(crate) mod path;
mod problem;
mod section;
mod select;
#[cfg(test)]
pub(crate) mod tests;

use std::collections::BTreeMap;

pub(crate) use bindings::shape;
pub use bindings::{Binding, Bindings, Cached, Captured, MetaInfo, Source, read_cached};
pub use diagnostic::{Diagnostic, Diagnostics, Place, Spot};
pub use grant::{Granted, GrantedAddress, Grants};
pub(crate) use parse::{Reference, is_label, reference};
pub use problem::{Found, Names, Problem, Seen};

use parse::{Expr, is_name, parse};

/// A policy's captures, parsed and in order.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Captures {
    captures: BTreeMap<String, Capture>,
    /// Each after those it needs.
    order: Vec<String>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Capture {
    source: String,
    expr: Expr,
}

impl Captures {
    /// Parses `spec.capture`. Every line that is wrong is reported; unknown names and rings once all lines can be
    /// read.
    pub fn parse(lines: &BTreeMap<String, String>) -> Result<Self, Diagnostics> {
        let mut captures = BTreeMap::new();
        let mut wrong = Vec::new();
        for (name, source) in lines {
            if !is_name(name) {
                let place = Place::Capture(name.clone());
                wrong.push(Diagnostic { place, spot: None, problem: Problem::CaptureName });
            }
            match parse(source) {
                Ok(expr) => drop(captures.insert(name.clone(), Capture { source: source.clone(), expr })),
                Err((at, problem)) => {
                    wrong.push(Diagnostic::at(Place::Capture(name.clone()), source, at, problem));
                }
            }
        }
        let captures = Diagnostics::none_or(wrong, captures)?;
        let order = order::order(&captures).map_err(Diagnostics::all)?;
        Ok(Self { captures, order })
    }

    /// The captures that ask a pool for an address: capture → pool. Evaluates nothing, so that the addresses can
    /// be asked for first.
    pub fn pools(&self) -> BTreeMap<&str, &str> {
        self.captures.iter().filter_map(|(name, capture)| Some((name.as_str(), capture.pool()?))).collect()
    }

    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.captures.keys().map(String::as_str)
    }
}

impl Capture {
    fn pool(&self) -> Option<&str> {
        match &self.expr {
            Expr::Pool { name, .. } => Some(name),
            Expr::Rule { .. } => None,
        }
    }
}
