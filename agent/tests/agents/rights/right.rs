//! Rights as values: what is given against what is asked for. Pure.

use std::collections::BTreeSet;
use std::fmt;

#[cfg(test)]
mod tests;

/// Of a role, or of a request.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Right {
    /// With the subresource: `nodeippools/status`.
    pub(super) resource: String,
    pub(super) group: String,
    pub(super) verb: String,
    /// Given: in this one only. Asked for: where it is, if it is in any.
    pub(super) namespace: Option<String>,
    /// Given: to this object only. Asked for: to which.
    pub(super) name: Option<String>,
}

/// What somebody asked for.
#[derive(Debug, Default)]
pub(super) struct Asked {
    pub(super) used: BTreeSet<Right>,
    pub(super) refused: BTreeSet<Right>,
}

impl Right {
    /// Is a request allowed by this?
    fn allows(&self, request: &Right) -> bool {
        let within = |bound: &Option<String>, asked: &Option<String>| bound.is_none() || bound == asked;
        let what = |right: &Right| (right.resource.clone(), right.group.clone(), right.verb.clone());
        what(self) == what(request)
            && within(&self.namespace, &request.namespace)
            && within(&self.name, &request.name)
    }

    /// Is this as much as the request takes? A right to what is in one namespace need not be one to all.
    fn is_for(&self, request: &Right) -> bool {
        self.allows(request) && self.namespace == request.namespace
    }
}

impl fmt::Display for Right {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {} (apiGroup {:?}", self.verb, self.resource, self.group)?;
        for (word, bound) in [("namespace", &self.namespace), ("name", &self.name)] {
            if let Some(bound) = bound {
                write!(f, ", {word} {bound}")?;
            }
        }
        write!(f, ")")
    }
}

/// Every right that is given and never used, and every one that is asked for and not given: a line each.
pub(super) fn wrong(account: &str, given: &BTreeSet<Right>, asked: &Asked) -> Vec<String> {
    let unused = given.iter().filter(|right| !asked.used.iter().any(|request| right.is_for(request)));
    let unused = unused.map(|right| format!("{account} is given and never uses: {right}"));
    unused.chain(missing(account, given, asked)).collect()
}

/// Every one that is asked for and not given.
pub(super) fn missing(account: &str, given: &BTreeSet<Right>, asked: &Asked) -> Vec<String> {
    let requests = asked.used.union(&asked.refused);
    let missing = requests.filter(|request| !given.iter().any(|right| right.allows(request)));
    missing.map(|right| format!("{account} asks for and is not given: {right}")).collect()
}
