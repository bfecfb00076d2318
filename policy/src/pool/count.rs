//! How much a pool has and how much is left, by arithmetic on runs, never by counting addresses.
//!
//! A claim on a dual-stack range takes an address of each family, so such a range is worth the scarcer
//! of the two. Overlapping ranges count once. Cost: O(runs taken), like reading the ledger itself.

use super::choose::PoolView;
use super::family::Family;
use super::range::Range;
use super::runs::Runs;
use super::{Barred, Pool, Taken};

/// `status.capacity` and `status.available`, counted in claims.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Counts {
    /// What could be held at once: usable addresses, reserved ones included.
    pub capacity: u128,
    /// What can still be given: free, not barred, in a range that gives.
    pub available: u128,
}

impl Pool {
    /// How many claims it can serve at once, with nothing held.
    pub fn capacity(&self) -> u128 {
        let (taken, barred) = (Taken::new(self), Barred::default());
        claims(|family, which| self.free(family, which, &taken, &barred))
    }

    /// Free addresses of one family in the ranges that `which` picks.
    fn free(&self, family: Family, which: &dyn Fn(&Range) -> bool, taken: &Taken, barred: &Barred) -> u128 {
        let parts = self.ranges.iter().filter(|range| which(range)).filter_map(|range| range.part(family));
        let windows = Runs::of(parts.map(|part| (part.first, part.last)));
        let line = self.lines.get(family);
        let free_in = |first, last| match line.places(first, last) {
            (from, to) if from < to => (to - from) - taken.runs(family).count(from, to - 1),
            _ => 0,
        };
        let on_line: u128 = windows
            .iter()
            .map(|(first, last)| {
                let barred = barred.runs(family).within(first, last);
                free_in(first, last) - barred.map(|(a, b)| free_in(a, b)).sum::<u128>()
            })
            .sum();
        let reserved = self.reserved.get(family).keys().filter(|number| {
            let ip = family.address(**number);
            windows.contains(**number) && !taken.contains(ip) && !barred.contains(ip)
        });
        on_line + reserved.count() as u128
    }
}

impl PoolView<'_> {
    pub fn counts(&self) -> Counts {
        let refitted;
        let taken = if self.taken.fits(self.pool) {
            self.taken
        } else {
            refitted = self.taken.refit(self.pool);
            &refitted
        };
        let available = claims(|family, which| {
            self.pool.free(family, &|range: &Range| range.gives() && which(range), taken, self.barred)
        });
        Counts { capacity: self.pool.capacity(), available }
    }
}

type Which<'w> = &'w dyn Fn(&Range) -> bool;

/// Claims that so many addresses can serve: pairs as far as dual-stack ranges go, the rest singly.
fn claims(count: impl Fn(Family, Which<'_>) -> u128) -> u128 {
    let dual = |range: &Range| range.v4.is_some() && range.v6.is_some();
    let pairs = Family::BOTH.into_iter().map(|family| count(family, &dual)).min().unwrap_or(0);
    let single = |family| {
        let alone = count(family, &|range: &Range| !dual(range));
        alone.min(count(family, &|_: &Range| true).saturating_sub(pairs))
    };
    pairs + single(Family::V4) + single(Family::V6)
}
