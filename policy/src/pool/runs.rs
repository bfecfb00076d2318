//! Sets of numbers kept as runs: maximal, disjoint and never touching.
//!
//! `Runs` is the one set type of this module: held addresses, barred networks, exclusions. Because
//! runs are maximal, the first number after a run is never in the set: that is what makes a scan one
//! lookup, however long the run. All bounds are inclusive, so that the last address of a family needs
//! no special case. Cost: O(log runs) for a point, O(log runs + runs touched) for an interval.

use std::collections::BTreeMap;

/// First and last, both inclusive.
pub(crate) type Run = (u128, u128);

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Runs {
    /// First → last.
    runs: BTreeMap<u128, u128>,
}

impl Runs {
    pub(crate) fn of(runs: impl IntoIterator<Item = Run>) -> Runs {
        let mut set = Runs::default();
        for (first, last) in runs {
            set.insert(first, last);
        }
        set
    }

    /// The run that holds `n`.
    pub(crate) fn run_at(&self, n: u128) -> Option<Run> {
        let (&first, &last) = self.runs.range(..=n).next_back()?;
        (last >= n).then_some((first, last))
    }

    pub(crate) fn contains(&self, n: u128) -> bool {
        self.run_at(n).is_some()
    }

    /// Adds all numbers from `first` to `last`, merging whatever it touches.
    pub(crate) fn insert(&mut self, mut first: u128, mut last: u128) {
        if first > last {
            return;
        }
        if let Some((&before, &end)) = self.runs.range(..first).next_back()
            && end.saturating_add(1) >= first
        {
            first = before;
            last = last.max(end);
        }
        while let Some((&next, &end)) = self.runs.range(first..=last.saturating_add(1)).next() {
            self.runs.remove(&next);
            last = last.max(end);
        }
        self.runs.insert(first, last);
    }

    /// Takes all numbers from `first` to `last` out, splitting what it cuts.
    pub(crate) fn remove(&mut self, first: u128, last: u128) {
        if first > last {
            return;
        }
        if let Some((before, end)) = self.run_at(first)
            && before < first
        {
            self.runs.insert(before, first - 1);
            if end > last {
                self.runs.insert(last + 1, end);
                return;
            }
        }
        while let Some((&next, &end)) = self.runs.range(first..=last).next() {
            self.runs.remove(&next);
            if end > last {
                self.runs.insert(last + 1, end);
            }
        }
    }

    /// The runs that meet `first..=last`, cut to it.
    pub(crate) fn within(&self, first: u128, last: u128) -> impl Iterator<Item = Run> + '_ {
        let from = self.run_at(first).map_or(first, |(start, _)| start);
        // An empty interval (first > last) must not reach `BTreeMap::range`, which panics on it.
        let to = last.max(from);
        self.runs.range(from..=to).map(move |(&a, &b)| (a.max(first), b.min(last))).filter(|(a, b)| a <= b)
    }

    /// How many numbers of `first..=last` are in the set. O(runs inside).
    pub(crate) fn count(&self, first: u128, last: u128) -> u128 {
        self.within(first, last).map(|(a, b)| b - a + 1).sum()
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = Run> + '_ {
        self.runs.iter().map(|(&first, &last)| (first, last))
    }

    /// What is in `self` and not in `other`.
    pub(crate) fn minus(&self, other: &Runs) -> Runs {
        let mut left = self.clone();
        for (first, last) in other.iter() {
            left.remove(first, last);
        }
        left
    }

    /// What is in both.
    pub(crate) fn and(&self, other: &Runs) -> Runs {
        Runs::of(self.iter().flat_map(|(first, last)| other.within(first, last)))
    }
}
