//! How much a pool has and how much is left, by arithmetic on runs, never by counting addresses.
//!
//! A claim on a dual-stack range takes an address of each family, so such a range is worth the scarcer
//! of the two. Overlapping ranges count once. Cost: O(runs taken), like reading the ledger itself.

use std::net::IpAddr;

use ipnet::IpNet;

use super::choose::PoolView;
use super::family::Family;
use super::range::Range;
use super::runs::Runs;
use super::slice::SliceView;
use super::{Barred, Pool, Taken, TakenSlices};

/// `status.capacity` and `status.available`, counted in claims.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Counts {
    /// What could be held at once: usable addresses, reserved ones included.
    pub capacity: u128,
    /// What can still be given: free, not barred, in a range that gives.
    pub available: u128,
}

/// The same of one range, by itself, and what is held of it (R56).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RangeCounts {
    pub range: String,
    pub counts: Counts,
    /// Claims whose addresses it has, also where another range has them too.
    pub allocated: u128,
}

impl Pool {
    /// How many claims it can serve at once, with nothing held.
    pub fn capacity(&self) -> u128 {
        let (taken, barred) = (Taken::new(self), Barred::default());
        claims(|family, which| self.free(family, which, &taken, &barred))
    }

    /// Addresses of one family that nobody holds, in the ranges that `which` picks.
    fn free(&self, family: Family, which: Which<'_>, taken: &Taken, barred: &Barred) -> u128 {
        let is_held = |number| taken.contains(family.address(number));
        self.left(family, which, &Used { places: taken.runs(family), has: &is_held }, barred)
    }

    /// Both counts, with these addresses held, in slices or not, and these slices cut: of a sliced pool what no slice has is
    /// available, else what nobody has.
    pub fn counts(
        &self,
        held: impl IntoIterator<Item = IpAddr>,
        slices: impl IntoIterator<Item = IpNet>,
        barred: &Barred,
    ) -> Counts {
        if !self.is_sliced() {
            return PoolView { pool: self, taken: &Taken::of(self, held), barred }.counts();
        }
        let held = held.into_iter().map(IpNet::from);
        let taken = TakenSlices::of(self, slices.into_iter().chain(held));
        SliceView { pool: self, taken: &taken, barred }.counts()
    }

    /// Addresses of one family that are not used and not barred, in the ranges that `which` picks. One that is both counts once.
    fn left(&self, family: Family, which: Which<'_>, used: &Used<'_>, barred: &Barred) -> u128 {
        let parts = self.ranges.iter().filter(|range| which(range)).filter_map(|range| range.part(family));
        let windows = Runs::of(parts.map(|part| (part.first, part.last)));
        let line = self.lines.get(family);
        let free_in = |first, last| match line.places(first, last) {
            (from, to) if from < to => (to - from) - used.places.count(from, to - 1),
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
            let is_barred = barred.runs(family).contains(**number);
            windows.contains(**number) && !(used.has)(**number) && !is_barred
        });
        on_line + reserved.count() as u128
    }
}

/// What of a family is in use: in places of the pool's line, and of what has no place there, reserved addresses, one by one.
struct Used<'a> {
    places: &'a Runs,
    has: &'a dyn Fn(u128) -> bool,
}

impl PoolView<'_> {
    pub fn counts(&self) -> Counts {
        let taken = self.taken.fitted(self.pool);
        let available = claims(|family, which| {
            self.pool.free(family, &|range: &Range| range.gives() && which(range), &taken, self.barred)
        });
        Counts { capacity: self.pool.capacity(), available }
    }

    /// Each range by itself, in the order of the spec. Overlapping ranges each count what both have. Cost: as
    /// [`Self::counts`], for each range.
    pub fn by_range(&self, held: &[IpAddr]) -> Vec<RangeCounts> {
        let taken = self.taken.fitted(self.pool);
        self.pool.by_range(held, |family, which| self.pool.free(family, which, &taken, self.barred))
    }
}

impl SliceView<'_> {
    /// Of a sliced pool: what is available is what nobody's slice has, since a node without one can be given nothing else.
    pub fn counts(&self) -> Counts {
        let taken = self.taken.fitted(self.pool);
        let available =
            claims(|family, which| self.free(family, &|range: &Range| range.gives() && which(range), &taken));
        Counts { capacity: self.pool.capacity(), available }
    }

    /// The same of each range by itself, as [`PoolView::by_range`].
    pub fn by_range(&self, held: &[IpAddr]) -> Vec<RangeCounts> {
        let taken = self.taken.fitted(self.pool);
        self.pool.by_range(held, |family, which| self.free(family, which, &taken))
    }

    /// Addresses of one family that no slice has, in the ranges that `which` picks.
    fn free(&self, family: Family, which: Which<'_>, taken: &TakenSlices) -> u128 {
        let is_cut = |number| taken.takes(family, number);
        self.pool.left(family, which, &Used { places: taken.runs(family), has: &is_cut }, self.barred)
    }
}

impl Pool {
    /// `free`: addresses of one family in the ranges that are picked, whether they give or not.
    fn by_range(&self, held: &[IpAddr], free: impl Fn(Family, Which<'_>) -> u128) -> Vec<RangeCounts> {
        let (none, unbarred) = (Taken::new(self), Barred::default());
        let counted = |range: &Range| {
            let of = |free: &dyn Fn(Family, Which<'_>) -> u128| {
                claims(|family, which| {
                    let only = |other: &Range| other.name == range.name && which(other);
                    free(family, &only)
                })
            };
            let in_family = |v4: bool| {
                let own = held.iter().filter(|ip| ip.is_ipv4() == v4 && range.contains(**ip));
                own.count() as u128
            };
            RangeCounts {
                range: range.name.clone(),
                counts: Counts {
                    capacity: of(&|family, which| self.free(family, which, &none, &unbarred)),
                    available: if range.gives() { of(&free) } else { 0 },
                },
                allocated: in_family(true).max(in_family(false)),
            }
        };
        self.ranges.iter().map(counted).collect()
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
