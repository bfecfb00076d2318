//! The givable addresses of one family in a row, without the holes between them.
//!
//! Excluded addresses, gateways, reservations and octet ends can never be chosen by a scan. `Line`
//! numbers what is left: the *place* of an address is how many givable addresses lie below it. Sets of
//! held addresses are kept in places, not in addresses, so two holders with a hole between them are
//! neighbours and merge into one run: no alternation of held and never-given addresses makes a scan
//! longer than one lookup.
//!
//! A line is a list of segments, one more at most than there are holes written in the spec; octet ends
//! are arithmetic inside a segment and cost nothing. Cost: O(log segments) either way.

use super::runs::{Run, Runs};

/// Addresses per octet that are neither .0 nor .255.
const INNER: u128 = 254;

#[derive(Debug, Clone, PartialEq, Eq)]
struct Segment {
    first: u128,
    last: u128,
    /// .0 and .255 inside are not givable.
    skip_octet_ends: bool,
    /// Place of the first givable address of this segment.
    place: u128,
}

impl Segment {
    /// How many givable addresses of this segment lie below `address`.
    fn below(&self, address: u128) -> u128 {
        if self.skip_octet_ends {
            inner_below(address) - inner_below(self.first)
        } else {
            address - self.first
        }
    }

    fn len(&self) -> u128 {
        self.below(self.last + 1)
    }
}

/// How many numbers below `n` are not octet ends.
fn inner_below(n: u128) -> u128 {
    (n / 256) * INNER + (n % 256).saturating_sub(1)
}

/// The number that has `count` non-ends below it and is no end itself.
fn inner_at(count: u128) -> u128 {
    (count / INNER) * 256 + count % INNER + 1
}

pub(crate) fn is_octet_end(n: u128) -> bool {
    matches!(n % 256, 0 | 255)
}

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Line {
    segments: Vec<Segment>,
    len: u128,
}

impl Line {
    /// `windows`: where ranges may give; `holes`: what they never give; `skipping`: where octet ends don't count.
    pub(crate) fn new(windows: &Runs, holes: &Runs, skipping: &Runs) -> Line {
        let open = windows.minus(holes);
        let plain = open.minus(skipping);
        let skipped = open.and(skipping);
        let mut pieces: Vec<(Run, bool)> = plain.iter().map(|run| (run, false)).collect();
        pieces.extend(skipped.iter().map(|run| (run, true)));
        pieces.sort_unstable();

        let mut line = Line::default();
        for ((first, last), skip_octet_ends) in pieces {
            let segment = Segment { first, last, skip_octet_ends, place: line.len };
            let len = segment.len();
            if len > 0 {
                line.len += len;
                line.segments.push(segment);
            }
        }
        line
    }

    /// The place of the first givable address at or after `address`; the number of all where there is none.
    pub(crate) fn place(&self, address: u128) -> u128 {
        let after = self.segments.partition_point(|s| s.first <= address);
        match after.checked_sub(1).and_then(|i| self.segments.get(i)) {
            None => 0,
            Some(s) if address > s.last => s.place + s.len(),
            Some(s) => s.place + s.below(address),
        }
    }

    /// The place of this very address, if it is givable.
    pub(crate) fn place_of(&self, address: u128) -> Option<u128> {
        let after = self.segments.partition_point(|s| s.first <= address);
        let segment = self.segments.get(after.checked_sub(1)?)?;
        let givable = address <= segment.last && !(segment.skip_octet_ends && is_octet_end(address));
        givable.then(|| segment.place + segment.below(address))
    }

    /// The address at a place.
    pub(crate) fn at(&self, place: u128) -> Option<u128> {
        if place >= self.len {
            return None;
        }
        let after = self.segments.partition_point(|s| s.place <= place);
        let segment = self.segments.get(after.checked_sub(1)?)?;
        let step = place - segment.place;
        Some(if segment.skip_octet_ends {
            inner_at(inner_below(segment.first) + step)
        } else {
            segment.first + step
        })
    }

    /// The places of the givable addresses in `first..=last`, as (from, to), `to` exclusive.
    pub(crate) fn places(&self, first: u128, last: u128) -> (u128, u128) {
        (self.place(first), self.place(last.saturating_add(1)))
    }
}
