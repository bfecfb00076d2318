//! Which range a node is served from: the order of KEP-2593 (R85 to R91).

use std::cmp::Reverse;

use super::Pool;
use super::choose::NodeView;
use super::family::bounds;
use super::range::{Part, Range};

/// Whether a range is for this node at all.
pub(crate) fn matches(range: &Range, node: &NodeView<'_>) -> bool {
    range.selector.as_ref().is_none_or(|selector| selector.score(node).is_some())
}

/// The ranges that give and are for this node, in the order they are tried:
/// with a selector before without (R85); most labels and fields matched (R87); fewest slices or
/// addresses in all (R88); smallest slices (R89); then selector text, CIDR and name, so that the order
/// never depends on the order of the spec.
pub fn rank<'p>(pool: &'p Pool, node: &NodeView<'_>) -> Vec<&'p Range> {
    ranked(pool, node, Range::gives)
}

/// Those of the ranges that `which` picks, in the same order.
pub(super) fn ranked<'p>(
    pool: &'p Pool,
    node: &NodeView<'_>,
    which: impl Fn(&Range) -> bool,
) -> Vec<&'p Range> {
    let mut ranked: Vec<(usize, &Range)> = pool
        .ranges
        .iter()
        .filter(|range| which(range))
        .filter_map(|range| match &range.selector {
            None => Some((0, range)),
            Some(selector) => Some((selector.score(node)?, range)),
        })
        .collect();
    ranked.sort_by(|(a_score, a), (b_score, b)| key(*a_score, a).cmp(&key(*b_score, b)));
    ranked.into_iter().map(|(_, range)| range).collect()
}

fn key(score: usize, range: &Range) -> impl Ord + '_ {
    let text = range.selector.as_ref().map_or("", |selector| selector.text());
    let net = |part: &Part| (bounds(part.cidr).1, part.prefix_length());
    (
        range.selector.is_none(),
        Reverse(score),
        range.size(),
        range.host_bits,
        text,
        (range.v4.as_ref().map(net), range.v6.as_ref().map(net)),
        range.name.as_str(),
    )
}
