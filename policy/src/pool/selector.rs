//! Which nodes a range is for: core/v1 `NodeSelector`, by its rules.
//!
//! Terms are ORed, what stands in a term is ANDed, and an empty term (or a selector without terms)
//! matches nothing. `Pool::new` checks and compiles the text; matching allocates nothing.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use super::choose::NodeView;
use super::error::{Findings, Problem};

/// `nodeSelector`, as written.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct NodeSelector {
    pub terms: Vec<Term>,
}

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Term {
    pub expressions: Vec<Requirement>,
    pub fields: Vec<Requirement>,
}

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Requirement {
    pub key: String,
    pub operator: String,
    pub values: Vec<String>,
}

/// The one field that nodes can be selected by.
const NAME_FIELD: &str = "metadata.name";

#[derive(Debug, Clone, PartialEq, Eq)]
enum Test {
    In(BTreeSet<String>),
    NotIn(BTreeSet<String>),
    Exists,
    DoesNotExist,
    Above(i64),
    Below(i64),
}

impl Test {
    /// A missing label passes `NotIn` and `DoesNotExist` and nothing else, as in Kubernetes.
    fn passes(&self, value: Option<&str>) -> bool {
        let number = || value.and_then(|v| v.parse::<i64>().ok());
        match self {
            Test::In(set) => value.is_some_and(|v| set.contains(v)),
            Test::NotIn(set) => value.is_none_or(|v| !set.contains(v)),
            Test::Exists => value.is_some(),
            Test::DoesNotExist => value.is_none(),
            Test::Above(n) => number().is_some_and(|v| v > *n),
            Test::Below(n) => number().is_some_and(|v| v < *n),
        }
    }
}

#[derive(Debug, Clone, Default, PartialEq, Eq)]
struct CompiledTerm {
    labels: BTreeMap<String, Vec<Test>>,
    name: Vec<Test>,
}

impl CompiledTerm {
    /// How many labels and fields of the node this term speaks of, if it matches.
    fn score(&self, node: &NodeView<'_>) -> Option<usize> {
        if self.labels.is_empty() && self.name.is_empty() {
            return None;
        }
        let mut score = usize::from(!self.name.is_empty());
        if !self.name.iter().all(|test| test.passes(Some(node.name))) {
            return None;
        }
        for (key, tests) in &self.labels {
            let value = node.labels.get(key).map(String::as_str);
            if !tests.iter().all(|test| test.passes(value)) {
                return None;
            }
            score += usize::from(value.is_some());
        }
        Some(score)
    }
}

/// A checked selector.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Selector {
    terms: Vec<CompiledTerm>,
    text: String,
}

impl Selector {
    pub(crate) fn compile(spec: &NodeSelector, path: &str, found: &mut Findings) -> Selector {
        let terms = spec.terms.iter().enumerate().map(|(i, term)| {
            let path = format!("{path}.nodeSelectorTerms[{i}]");
            let mut compiled = CompiledTerm::default();
            for (j, requirement) in term.expressions.iter().enumerate() {
                let path = format!("{path}.matchExpressions[{j}]");
                if requirement.key.is_empty() {
                    found.error(format!("{path}.key"), Problem::Missing);
                }
                if let Some(test) = compile(requirement, &path, found) {
                    compiled.labels.entry(requirement.key.clone()).or_default().push(test);
                }
            }
            for (j, requirement) in term.fields.iter().enumerate() {
                let path = format!("{path}.matchFields[{j}]");
                compiled.name.extend(compile_field(requirement, &path, found));
            }
            compiled
        });
        Selector { terms: terms.collect(), text: spec.to_string() }
    }

    /// `None`: doesn't match. `Some(n)`: matches, through n labels and fields of the node (R87); of
    /// several terms that match the one that says most counts.
    pub fn score(&self, node: &NodeView<'_>) -> Option<usize> {
        self.terms.iter().filter_map(|term| term.score(node)).max()
    }

    /// The selector in one line; ranges that tie in all else are ordered by it (R89).
    pub fn text(&self) -> &str {
        &self.text
    }
}

fn compile_field(requirement: &Requirement, path: &str, found: &mut Findings) -> Option<Test> {
    if requirement.key != NAME_FIELD {
        found.error(format!("{path}.key"), Problem::NotAField { key: requirement.key.clone() });
    }
    let test = compile(requirement, path, found)?;
    if matches!(test, Test::In(_) | Test::NotIn(_)) {
        return Some(test);
    }
    let operator = requirement.operator.clone();
    found.error(format!("{path}.operator"), Problem::NotAFieldOperator { operator });
    None
}

fn compile(requirement: &Requirement, path: &str, found: &mut Findings) -> Option<Test> {
    let operator = requirement.operator.clone();
    let values = || requirement.values.iter().cloned().collect::<BTreeSet<_>>();
    let integer = || match requirement.values.as_slice() {
        [one] => one.parse::<i64>().ok(),
        _ => None,
    };
    let empty = requirement.values.is_empty();
    let problem = match requirement.operator.as_str() {
        "In" | "NotIn" if empty => Problem::NeedsValues { operator },
        "Exists" | "DoesNotExist" if !empty => Problem::NeedsNoValues { operator },
        "In" => return Some(Test::In(values())),
        "NotIn" => return Some(Test::NotIn(values())),
        "Exists" => return Some(Test::Exists),
        "DoesNotExist" => return Some(Test::DoesNotExist),
        "Gt" | "Lt" => match integer() {
            Some(n) if operator == "Gt" => return Some(Test::Above(n)),
            Some(n) => return Some(Test::Below(n)),
            None => Problem::NeedsInteger { operator },
        },
        _ => {
            found.error(format!("{path}.operator"), Problem::NotAnOperator { text: operator });
            return None;
        }
    };
    found.error(format!("{path}.values"), problem);
    None
}

impl fmt::Display for NodeSelector {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (i, term) in self.terms.iter().enumerate() {
            f.write_str(if i > 0 { " | " } else { "" })?;
            for (j, r) in term.expressions.iter().chain(&term.fields).enumerate() {
                f.write_str(if j > 0 { ", " } else { "" })?;
                write!(f, "{} {}", r.key, r.operator)?;
                if !r.values.is_empty() {
                    write!(f, " ({})", r.values.join(", "))?;
                }
            }
        }
        Ok(())
    }
}
