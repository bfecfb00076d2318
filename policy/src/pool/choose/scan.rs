//! The search along a line: from the hash forward, round, one lookup per run.

use std::net::IpAddr;

use crate::pool::family::Family;
use crate::pool::line::Line;
use crate::pool::range::Part;
use crate::pool::runs::{Run, Runs};

pub(crate) struct Scan<'a> {
    pub(crate) family: Family,
    pub(crate) line: &'a Line,
    /// In places of the line.
    pub(crate) taken: &'a Runs,
    /// In addresses.
    pub(crate) barred: &'a Runs,
    pub(crate) declined: &'a [IpAddr],
}

impl Scan<'_> {
    /// A free address of a part: dynamic band, then static band (R50, R53).
    pub(crate) fn part(&self, part: &Part, hash: u128) -> Option<u128> {
        let bands = part.dynamic_run().into_iter().chain(part.static_run());
        bands.into_iter().find_map(|band| self.band(band, hash))
    }

    /// A free address from `first` to `last`, looked for from the hash on and round. The start is taken
    /// in addresses, not in places: excluding or reserving one moves nobody else's start.
    pub(crate) fn band(&self, (first, last): Run, hash: u128) -> Option<u128> {
        self.from((first, last), first + hash % (last - first + 1))
    }

    /// A free address from `first` to `last`, looked for from `start` on and round.
    pub(crate) fn from(&self, (first, last): Run, start: u128) -> Option<u128> {
        let (low, high) = self.line.places(first, last);
        let middle = self.line.place(start);
        self.first_free(middle, high).or_else(|| self.first_free(low, middle.min(high)))
    }

    /// The first free address at a place of `from..to`. Every turn passes a whole run of what is taken
    /// or barred, or one declined address.
    fn first_free(&self, from: u128, to: u128) -> Option<u128> {
        let mut place = from;
        while place < to {
            if let Some((_, last)) = self.taken.run_at(place) {
                place = last + 1;
                continue;
            }
            let number = self.line.at(place)?;
            if let Some((_, last)) = self.barred.run_at(number) {
                place = self.line.place(last.saturating_add(1));
            } else if self.declines(number) {
                place += 1;
            } else {
                return Some(number);
            }
        }
        None
    }

    fn declines(&self, number: u128) -> bool {
        !self.declined.is_empty() && self.declined.contains(&self.family.address(number))
    }
}
