//! Which range speaks for an address that is held: whose prefix length, gateway and attributes its holder is told.
//!
//! Ranges of a pool may overlap, and come and go while an address stays with its holder, so the ledger has addresses and no
//! ranges. Asked whenever a grant is to be written, be its address just chosen, used again or restored, and by the tools that
//! show the same. The order is that of `choose`: of what was just chosen the answer is the range that gave it.
//!
//! Cost: nothing to rank in a pool of one range; else as ranking, once for a claim.

use std::net::IpAddr;

use super::Pool;
use super::choose::{NodeView, Want};
use super::family::{Family, split};
use super::range::Range;
use super::rank::ranked;

impl Pool {
    /// The range that speaks for each of these addresses, which are one claim of this node. One that has all of them speaks
    /// for all; where it is gone, each has one that covers it, or none.
    pub fn speakers(&self, node: &NodeView<'_>, want: Want, ips: &[IpAddr]) -> Vec<Option<&Range>> {
        let whole = self.speaker(node, want, ips);
        let alone = |ip: &IpAddr| self.speaker(node, Want::Exactly(*ip), std::slice::from_ref(ip));
        ips.iter().map(|ip| whole.or_else(|| alone(ip))).collect()
    }

    /// Ranges that give before those that drain; of each, those that are for this node as they rank, then the others, of which
    /// a reservation or a literal address may be. Before them all comes who can have given the claim: a wide range gives the
    /// broadcast address of a narrow one, which never does.
    fn speaker(&self, node: &NodeView<'_>, want: Want, ips: &[IpAddr]) -> Option<&Range> {
        let has = |range: &&Range| ips.iter().all(|ip| range.contains(*ip));
        if let [only] = self.ranges.as_slice() {
            return Some(only).filter(has);
        }
        let mut having: Vec<&Range> = Vec::new();
        for gives in [true, false] {
            let fitting = ranked(self, node, |range| range.gives_named() == gives);
            let is_other = |range: &&Range| !fitting.iter().any(|one| std::ptr::eq(*one, *range));
            let others = self.ranges.iter().filter(|range| range.gives_named() == gives).filter(is_other);
            having.extend(fitting.iter().copied().chain(others).filter(has));
        }
        having.iter().find(|range| can_give(range, want, ips)).or(having.first()).copied()
    }
}

/// Can this range have given these addresses as a claim? Of two families it gives one of each, but for a literal, which is one.
fn can_give(range: &Range, want: Want, ips: &[IpAddr]) -> bool {
    let usable = |ip: &IpAddr| range.part(Family::of(*ip)).is_some_and(|part| part.usable(split(*ip).1));
    let whole = matches!(want, Want::Exactly(_)) || range.parts().count() == ips.len();
    whole && ips.iter().all(usable)
}
