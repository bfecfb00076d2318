//! The slices that exist, as runs on the pool's lines.

use std::borrow::Cow;
use std::collections::BTreeSet;
use std::sync::Arc;

use ipnet::IpNet;

use crate::pool::Pool;
use crate::pool::family::{Both, Family, bounds};
use crate::pool::line::Line;
use crate::pool::runs::{Run, Runs};

/// A set of slices, made for one pool. A network that this pool would not cut (left from another spec)
/// takes every slice it touches: what it holds may be in use.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TakenSlices {
    lines: Both<Arc<Line>>,
    /// Where slices lie and how large they are.
    cuts: Vec<(Family, Run, u8)>,
    runs: Both<Runs>,
    slices: Both<BTreeSet<Run>>,
}

impl TakenSlices {
    pub fn new(pool: &Pool) -> TakenSlices {
        TakenSlices {
            cuts: cuts(pool).collect(),
            lines: pool.lines.clone(),
            runs: Both::default(),
            slices: Both::default(),
        }
    }

    pub fn of(pool: &Pool, slices: impl IntoIterator<Item = IpNet>) -> TakenSlices {
        let mut taken = TakenSlices::new(pool);
        for slice in slices {
            taken.insert(slice);
        }
        taken
    }

    /// Whether it was not in before.
    pub fn insert(&mut self, slice: IpNet) -> bool {
        let (family, first, last) = bounds(slice);
        let new = self.slices.get_mut(family).insert((first, last));
        if new {
            self.cover(family, (first, last));
        }
        new
    }

    /// Whether it was in.
    pub fn remove(&mut self, slice: IpNet) -> bool {
        let (family, first, last) = bounds(slice);
        let was = self.slices.get_mut(family).remove(&(first, last));
        if was {
            let (from, to) = self.widen(family, (first, last));
            let (low, high) = self.lines.get(family).places(from, to);
            if low < high {
                self.runs.get_mut(family).remove(low, high - 1);
            }
            for run in self.meeting(family, (from, to)) {
                self.cover(family, run);
            }
        }
        was
    }

    pub fn contains(&self, slice: IpNet) -> bool {
        let (family, first, last) = bounds(slice);
        self.slices.get(family).contains(&(first, last))
    }

    pub fn len(&self) -> usize {
        self.slices.v4.len() + self.slices.v6.len()
    }

    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Whether a slice that exists has any address of this run.
    pub(crate) fn touches(&self, family: Family, run: Run) -> bool {
        !self.meeting(family, run).is_empty()
    }

    /// Whether the block around this address is taken.
    pub(crate) fn takes(&self, family: Family, number: u128) -> bool {
        self.touches(family, self.widen(family, (number, number)))
    }

    pub(crate) fn runs(&self, family: Family) -> &Runs {
        self.runs.get(family)
    }

    /// The same slices, for this pool: made for another spec of it, its places mean nothing. Never guess, refit.
    pub(crate) fn fitted(&self, pool: &Pool) -> Cow<'_, TakenSlices> {
        if self.lines == pool.lines && self.cuts.iter().copied().eq(cuts(pool)) {
            return Cow::Borrowed(self);
        }
        let mut taken = TakenSlices::new(pool);
        for family in Family::BOTH {
            for run in self.slices.get(family) {
                taken.slices.get_mut(family).insert(*run);
                taken.cover(family, *run);
            }
        }
        Cow::Owned(taken)
    }

    fn cover(&mut self, family: Family, run: Run) {
        let (first, last) = self.widen(family, run);
        let (low, high) = self.lines.get(family).places(first, last);
        if low < high {
            self.runs.get_mut(family).insert(low, high - 1);
        }
    }

    /// To whole slices at both ends.
    fn widen(&self, family: Family, (first, last): Run) -> Run {
        let bits = |n: u128| {
            let cut = |(f, (a, b), _): &&(Family, Run, u8)| *f == family && (*a..=*b).contains(&n);
            self.cuts.iter().find(cut).map_or(0, |(_, _, bits)| *bits)
        };
        (first & !((1 << bits(first)) - 1), last | ((1 << bits(last)) - 1))
    }

    /// The slices that have an address of this run: those that start in it, and those around its start,
    /// which, being networks, can only be the ever larger aligned blocks around it.
    fn meeting(&self, family: Family, (first, last): Run) -> Vec<Run> {
        let slices = self.slices.get(family);
        let around = (0..family.bits()).map(|bits| {
            let mask = (1_u128 << bits) - 1;
            (first & !mask, first | mask)
        });
        let around = around.filter(|run| run.0 < first && slices.contains(run));
        around.chain(slices.range((first, 0)..=(last, u128::MAX)).copied()).collect()
    }
}

fn cuts(pool: &Pool) -> impl Iterator<Item = (Family, Run, u8)> + '_ {
    let sliced = pool.ranges.iter().filter_map(|range| Some((range, range.host_bits?)));
    sliced
        .flat_map(|(range, bits)| range.parts().map(move |part| (part.family, (part.first, part.last), bits)))
}
