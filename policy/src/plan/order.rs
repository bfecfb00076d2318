//! Which link rests on which: a vlan on its base, a controller on its ports. One walk gives an order in which
//! everything comes after what it rests on, or names a circle.

use crate::state::{IfName, Observed};
use std::collections::BTreeMap;

/// A chain of links that ends where it began.
pub(super) struct Cycle(pub(super) Vec<IfName>);

#[derive(Clone, Copy, PartialEq)]
enum Mark {
    Open,
    Done,
}

/// All links, lowest first; ties by name. Iterative: a document may nest as deep as it likes.
pub(super) fn lowest_first(state: &Observed) -> Result<Vec<IfName>, Cycle> {
    let mut below: BTreeMap<&IfName, Vec<&IfName>> = BTreeMap::new();
    for link in state.links.values() {
        if let Some((base, _)) = link.base.as_ref().and_then(|b| state.links.get_key_value(b)) {
            below.entry(&link.name).or_default().push(base);
        }
        if let Some((controller, _)) = link.controller.as_ref().and_then(|c| state.links.get_key_value(c)) {
            below.entry(controller).or_default().push(&link.name);
        }
    }
    if below.is_empty() {
        return Ok(state.links.keys().cloned().collect());
    }
    let mut marks: BTreeMap<&IfName, Mark> = BTreeMap::new();
    let mut order = Vec::with_capacity(state.links.len());
    for start in state.links.keys() {
        let mut stack: Vec<(&IfName, usize)> = vec![(start, 0)];
        if marks.contains_key(start) {
            continue;
        }
        marks.insert(start, Mark::Open);
        while let Some((name, next)) = stack.pop() {
            let Some(lower) = below.get(name).and_then(|list| list.get(next)) else {
                marks.insert(name, Mark::Done);
                order.push(name.clone());
                continue;
            };
            stack.push((name, next + 1));
            match marks.get(lower) {
                None => {
                    marks.insert(lower, Mark::Open);
                    stack.push((lower, 0));
                }
                Some(Mark::Open) => {
                    let from = stack.iter().position(|(n, _)| n == lower).unwrap_or(0);
                    let mut names: Vec<_> = stack.iter().skip(from).map(|(n, _)| (*n).clone()).collect();
                    names.push((*lower).clone());
                    return Err(Cycle(names));
                }
                Some(Mark::Done) => {}
            }
        }
    }
    Ok(order)
}
