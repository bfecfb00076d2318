//! The order in which captures are evaluated: each after those it needs. A topological sort, so that captures may
//! stand in any order; a name nobody defined and a ring of captures are reported here.
//!
//! Cost: O(n log n). No recursion: a chain of any length is fine.

use std::collections::{BTreeMap, BTreeSet};

use super::Capture;
use super::diagnostic::{Diagnostic, Place};
use super::problem::{Names, Problem};

/// The names in order, or all unknown names and rings.
pub(crate) fn order(captures: &BTreeMap<String, Capture>) -> Result<Vec<String>, Vec<Diagnostic>> {
    let mut wrong = unknown(captures);
    let mut users: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    let mut waiting: BTreeMap<&str, usize> = BTreeMap::new();
    for (name, capture) in captures {
        let needed = capture.expr.needs().map(|need| need.name.as_str());
        let needed: BTreeSet<&str> = needed.filter(|need| captures.contains_key(*need)).collect();
        waiting.insert(name, needed.len());
        for need in needed {
            users.entry(need).or_default().push(name);
        }
    }
    let mut ready: BTreeSet<&str> =
        waiting.iter().filter(|(_, needs)| **needs == 0).map(|(name, _)| *name).collect();
    let mut sorted = Vec::with_capacity(captures.len());
    while let Some(name) = ready.pop_first() {
        waiting.remove(name);
        sorted.push(name.to_owned());
        for user in users.get(name).into_iter().flatten() {
            if let Some(left) = waiting.get_mut(user) {
                *left -= 1;
                if *left == 0 {
                    ready.insert(user);
                }
            }
        }
    }
    wrong.extend(rings(captures, &waiting));
    if wrong.is_empty() { Ok(sorted) } else { Err(wrong) }
}

fn unknown(captures: &BTreeMap<String, Capture>) -> Vec<Diagnostic> {
    let mut found = Vec::new();
    for (name, capture) in captures {
        for need in capture.expr.needs().filter(|need| !captures.contains_key(&need.name)) {
            // Itself is left out: a capture can't be the answer to its own question.
            let known = Names::of(captures.keys().filter(|other| *other != name).map(String::as_str));
            let problem = Problem::UnknownCapture { name: need.name.clone(), known };
            found.push(Diagnostic::at(Place::Capture(name.clone()), &capture.source, need.at, problem));
        }
    }
    found
}

/// What the sort left over is rings and what hangs on them. From each one follow the first need that is left
/// over too: that walk ends in a ring.
fn rings(captures: &BTreeMap<String, Capture>, left: &BTreeMap<&str, usize>) -> Vec<Diagnostic> {
    let mut seen: BTreeSet<&str> = BTreeSet::new();
    let mut found = Vec::new();
    for start in left.keys() {
        let mut walk: Vec<&str> = Vec::new();
        let mut here = *start;
        while seen.insert(here) {
            walk.push(here);
            let Some(next) = next(captures, left, here) else {
                break;
            };
            here = next;
        }
        // A walk that ran into an earlier walk found no ring of its own.
        if let Some(first) = walk.iter().position(|name| *name == here) {
            found.extend(ring(captures, left, &walk[first..]));
        }
    }
    found
}

fn next<'a>(
    captures: &'a BTreeMap<String, Capture>,
    left: &BTreeMap<&str, usize>,
    name: &str,
) -> Option<&'a str> {
    let needs = captures.get(name)?.expr.needs();
    needs.map(|need| need.name.as_str()).find(|need| left.contains_key(need))
}

/// The diagnostic of one ring, told from its member that comes first in the alphabet, at the reference that leads on.
fn ring(
    captures: &BTreeMap<String, Capture>,
    left: &BTreeMap<&str, usize>,
    ring: &[&str],
) -> Option<Diagnostic> {
    let first = ring.iter().enumerate().min_by_key(|(_, name)| **name)?.0;
    let (before, after) = ring.split_at(first);
    let mut members: Vec<String> = after.iter().chain(before).map(|name| (*name).to_owned()).collect();
    let name = members.first()?.clone();
    members.push(name.clone());
    let capture = captures.get(&name)?;
    let at = capture.expr.needs().find(|need| left.contains_key(need.name.as_str()))?.at;
    Some(Diagnostic::at(Place::Capture(name), &capture.source, at, Problem::Cycle { members }))
}
