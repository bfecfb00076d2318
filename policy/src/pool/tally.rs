//! A pool from a distance: how many addresses of a stretch stand in which way, counted by runs and never one by one, so
//! that an IPv6 /64 can be drawn as a map of a thousand cells.
//!
//! Cost: O(log) for what the spec says, O(log) more for each address of the stretch that is held.

use std::net::IpAddr;

use super::family::{Family, split};
use super::range::Part;
use super::runs::{Run, Runs};
use super::{Barred, Pool};

/// How the addresses of a stretch stand; together they are all of them.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Tally {
    pub held: u128,
    pub quarantined: u128,
    /// Kept for a node that doesn't hold it.
    pub reserved: u128,
    /// Free, in the static band.
    pub band: u128,
    /// Free, in the dynamic band.
    pub free: u128,
    /// Given to nobody: excluded, gateways, ends of subnets, what belongs to somebody else.
    pub never: u128,
}

impl Pool {
    /// Counts the addresses of a part from one offset to another, both inclusive. `held`: what of them is in the ledger,
    /// and whether it is quarantined; what lies elsewhere is not counted.
    pub fn tally(
        &self,
        part: &Part,
        (from, to): (u128, u128),
        barred: &Barred,
        held: impl IntoIterator<Item = (IpAddr, bool)>,
    ) -> Tally {
        let to = to.min(part.last_offset());
        if from > to {
            return Tally::default();
        }
        let stretch = Stretch { pool: self, family: part.family, run: (part.start + from, part.start + to) };
        stretch.tally(barred, held)
    }
}

struct Stretch<'a> {
    pool: &'a Pool,
    family: Family,
    run: Run,
}

impl Stretch<'_> {
    fn tally(&self, barred: &Barred, held: impl IntoIterator<Item = (IpAddr, bool)>) -> Tally {
        let (first, last) = self.run;
        let bands = self.bands();
        let in_band = bands.within(first, last).map(|(a, b)| self.open(a, b, barred)).sum();
        let open = self.open(first, last, barred);
        let reserved = self.pool.reserved.get(self.family).range(first..=last).count() as u128;
        let mut tally = Tally { reserved, band: in_band, free: open - in_band, ..Tally::default() };
        tally.never = (last - first + 1) - open - reserved;
        for (ip, quarantined) in held {
            let (family, number) = split(ip);
            if family != self.family || !(first..=last).contains(&number) {
                continue;
            }
            let was = self.was(number, &bands, barred);
            *was.of(&mut tally) -= 1;
            *(if quarantined { &mut tally.quarantined } else { &mut tally.held }) += 1;
        }
        tally
    }

    /// The static bands of all ranges; inside slices there are none.
    fn bands(&self) -> Runs {
        let whole = self.pool.ranges.iter().filter(|range| range.host_bits.is_none());
        let parts = whole.filter_map(|range| range.part(self.family));
        Runs::of(parts.filter_map(Part::static_run))
    }

    /// Addresses that could be given between these two.
    fn open(&self, first: u128, last: u128, barred: &Barred) -> u128 {
        let line = self.pool.lines.get(self.family);
        let givable = |first, last| {
            let (from, to) = line.places(first, last);
            to.saturating_sub(from)
        };
        let others = barred.runs(self.family).within(first, last);
        givable(first, last) - others.map(|(a, b)| givable(a, b)).sum::<u128>()
    }

    /// How an address would stand, were it not held.
    fn was(&self, number: u128, bands: &Runs, barred: &Barred) -> Was {
        if self.pool.reserved.get(self.family).contains_key(&number) {
            return Was::Reserved;
        }
        let givable = self.pool.lines.get(self.family).place_of(number).is_some();
        match givable && !barred.runs(self.family).contains(number) {
            false => Was::Never,
            true if bands.contains(number) => Was::Band,
            true => Was::Free,
        }
    }
}

enum Was {
    Reserved,
    Band,
    Free,
    Never,
}

impl Was {
    fn of(self, tally: &mut Tally) -> &mut u128 {
        match self {
            Self::Reserved => &mut tally.reserved,
            Self::Band => &mut tally.band,
            Self::Free => &mut tally.free,
            Self::Never => &mut tally.never,
        }
    }
}
