//! Evaluation: what each rule finds in the current state or in another capture.
//!
//! Inputs are borrowed; only what a rule keeps is copied, so that a rule on a large state costs one pass over its
//! section. Same input, same answer.

use serde_json::{Map, Value};

use super::bindings::{Bindings, Cached, Source};
use super::diagnostic::{Diagnostic, Diagnostics, Place};
use super::grant::Grants;
use super::parse::{Action, Expr, Operand, Reference};
use super::path::{Located, Path, Stop, index, text_of};
use super::problem::{Found, Names, Problem};
use super::{Capture, Captures, change, select};

impl Captures {
    /// The value of every capture. `current` is nmstate's document as observed, also of kinds that can't be
    /// applied. A capture in `cached` is not evaluated again; one of a pool comes from `grants` only, and is a
    /// [`Problem::NoGrant`] where there is none. What needs a capture that failed isn't reported once more.
    pub fn eval(&self, current: &Value, cached: &Cached, grants: &Grants) -> Result<Bindings, Diagnostics> {
        let mut bindings = Bindings::default();
        let mut wrong = Vec::new();
        for name in &self.order {
            let Some(capture) = self.captures.get(name) else {
                continue;
            };
            let before = cached.get(name);
            match (&capture.expr, grants.get(name), before) {
                (Expr::Pool { .. }, Some(granted), before) => bindings.grant(name, granted, before),
                (Expr::Pool { name: pool, at }, None, _) => {
                    let problem = Problem::NoGrant { capture: name.clone(), pool: pool.clone() };
                    wrong.push(capture.diagnostic(name, (*at, problem)));
                }
                (Expr::Rule { .. }, _, Some(known)) => {
                    bindings.insert(name, known.state.clone(), Source::Cached(known.meta.clone()));
                }
                (Expr::Rule { input, action }, _, None) => {
                    if capture.expr.needs().any(|need| bindings.get(&need.name).is_none()) {
                        continue;
                    }
                    let scope = Scope { current, bindings: &bindings };
                    match scope.rule(input.as_ref(), action) {
                        Ok(state) => bindings.insert(name, state, Source::Fresh),
                        Err(problem) => wrong.push(capture.diagnostic(name, problem)),
                    }
                }
            }
        }
        Diagnostics::none_or(wrong, bindings)
    }
}

impl Capture {
    pub(crate) fn diagnostic(&self, name: &str, (at, problem): Located) -> Diagnostic {
        Diagnostic::at(Place::Capture(name.to_owned()), &self.source, at, problem)
    }
}

/// What a rule can see.
struct Scope<'a> {
    current: &'a Value,
    bindings: &'a Bindings,
}

impl<'a> Scope<'a> {
    fn rule(&self, input: Option<&Reference>, action: &Action) -> Result<Value, Located> {
        let (root, state) = match input {
            Some(reference) => (format!("capture.{}", reference.name), self.captured(reference)?),
            None => (String::new(), self.current),
        };
        match action {
            Action::All => Ok(state.clone()),
            Action::Keep(path) => {
                keep(state, path).map_err(|stop| path.stopped(&root, stop.depth, Found::of(stop.here)))
            }
            Action::Select { section, property, equal, value } => {
                let value = self.text(value)?;
                let items = section.items(state).map_err(|problem| (property.at(), problem))?;
                select::select(*section, items, property, *equal, value)
            }
            Action::Set { section, property, value } => {
                let value = self.value(value)?;
                let items = section.items(state).map_err(|problem| (property.at(), problem))?;
                change::set(*section, items, property, &value)
            }
        }
    }

    fn captured(&self, reference: &Reference) -> Result<&'a Value, Located> {
        self.bindings.get(&reference.name).ok_or_else(|| {
            let known = Names::of(self.bindings.names());
            (reference.at, Problem::UnknownCapture { name: reference.name.clone(), known })
        })
    }

    /// The right side as a value; one from a state keeps its type.
    fn value(&self, operand: &Operand) -> Result<Value, Located> {
        match operand {
            Operand::Text(text) => Ok(Value::String(text.clone())),
            Operand::Null => Ok(Value::Null),
            Operand::Current(path) => match path.walk(self.current) {
                Ok(value) => Ok(value.clone()),
                Err(Stop { depth: 0, .. }) => {
                    let first = path.word(0).unwrap_or_default().to_owned();
                    Err((path.at(), Problem::NoValue { text: path.dotted(), first }))
                }
                Err(stop) => Err(path.stopped("", stop.depth, Found::of(stop.here))),
            },
            Operand::Capture(reference, path) => {
                let root = format!("capture.{}", reference.name);
                let found = path.walk(self.captured(reference)?);
                found.cloned().map_err(|stop| path.stopped(&root, stop.depth, Found::of(stop.here)))
            }
        }
    }

    /// The right side of a comparison: text, or nothing for null.
    fn text(&self, operand: &Operand) -> Result<Option<String>, Located> {
        let value = self.value(operand)?;
        let not_scalar = || {
            let (at, path) = operand.origin();
            let found = Found::of(&value);
            (at, Problem::NotScalar { path, found })
        };
        match &value {
            Value::Null => Ok(None),
            value => text_of(value).map(Some).ok_or_else(not_scalar),
        }
    }
}

/// The branch at `path`, with the maps that lead to it and nothing beside it. Lists on the way are kept whole.
fn keep<'a>(state: &'a Value, path: &Path) -> Result<Value, Stop<'a>> {
    path_through_lists(state, path)?;
    Ok(keep_from(state, path, 0))
}

fn keep_from(value: &Value, path: &Path, depth: usize) -> Value {
    match (value, path.word(depth)) {
        (Value::Object(map), Some(word)) => {
            let kept = map.get(word).map(|child| (word.to_owned(), keep_from(child, path, depth + 1)));
            Value::Object(Map::from_iter(kept))
        }
        (other, _) => other.clone(),
    }
}

/// Whether there is anything at `path`: what matches nothing is an error. Below a list a property of its items
/// counts too, if any item has it.
fn path_through_lists<'a>(value: &'a Value, path: &Path) -> Result<(), Stop<'a>> {
    let stop = match path.walk(value) {
        Ok(_) => return Ok(()),
        Err(stop) => stop,
    };
    let after = path.skip(stop.depth);
    match (stop.here, after.word(0)) {
        (Value::Array(items), Some(word)) if index(word).is_none() => {
            let found = items.iter().any(|item| path_through_lists(item, &after).is_ok());
            if found { Ok(()) } else { Err(stop) }
        }
        _ => Err(stop),
    }
}
