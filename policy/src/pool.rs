//! Pools of addresses: what may be given to whom, and which one next.
//!
//! Owns ranges, exclusions, offsets, bands, reservations, node selection and slices. `policy::claim`
//! calls `choose` while it serves; the controller counts and compares specs; the CLI explains. Nothing
//! here reads or writes: who holds what is passed in as `Taken`, and the same input gives the same
//! answer, always.
//!
//! **How an address is chosen.** A reservation of the node first. Else the ranges for the node, best
//! match first (`rank`); in each, the dynamic band from a hash of (node, pool, capture) on, forward and
//! round, then the static band in the same way. The static band starts at the hash too, not at its lowest
//! address: nodes that fall back at the same time stay apart, and each finds the same address again.
//! Dual stack: both families of one range, or the next range.
//!
//! **Never given:** excluded addresses (by any range of the pool: an exclusion says that the address is
//! not ours), gateways, octet ends where they are skipped, what is taken, what the holder declined, what
//! is barred (other pools, Service CIDRs), what is reserved for another node. A literal address
//! (`Want::Exactly`) is bound by the same list, but not by bands and selectors: it was named.
//!
//! **Cost.** Nothing proportional to a range is ever built. What is never given is folded away by
//! `Line`, and what is taken is kept as maximal runs on that line, so one lookup passes any run, also one
//! with holes in it. `choose` makes at most 1 + B + D steps per band, B the barred runs inside the range
//! (usually none: a pool that overlaps another says so in its condition) and D what this holder declined;
//! a step is O(log runs + log holes). It allocates the answer and, with several ranges, their ranking.

mod band;
mod barred;
mod bitmap;
mod build;
mod change;
mod choose;
mod count;
mod encoding;
mod error;
mod explain;
mod family;
pub mod hash;
mod line;
mod range;
mod rank;
mod runs;
mod selector;
mod slice;
mod speak;
mod spec;
mod standing;
mod taken;
mod tally;
#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;
use std::sync::Arc;

use ipnet::IpNet;

pub use band::StaticBand;
pub use barred::Barred;
pub use bitmap::{Bitmap, BitmapError};
pub use change::change;
pub use choose::{Choice, Given, Holder, Kind, NoAddress, NodeView, PoolView, Want, choose};
pub use count::{Counts, RangeCounts};
pub use encoding::{
    LEDGER_ENCODING, MADE_WITH, SCHEMA_VERSION, UnknownEncoding, check_encoding, check_slice_encoding, hints,
};
pub use error::{PoolError, PoolErrors, PoolWarning, Problem, Remark};
pub use explain::{Status, Why};
pub use family::Family;
pub use range::{Part, Range, SINGLE};
pub use rank::rank;
pub use selector::{NodeSelector, Requirement, Selector, Term};
pub use slice::{NotASlice, Slice, SliceChoice, SliceView, TakenSlices, choose_slice};
pub use spec::{BlockSpec, PoolSpec, RangeSpec, RangeState, Reservation};
pub use standing::{Band, Recorded, Standing, Word};
pub use taken::Taken;
pub use tally::Tally;

use family::{Both, split};
use line::Line;

/// The largest offset that `status.allocated-offsets` may hold: what every JSON reader keeps exact.
const LARGEST_LISTED_OFFSET: u128 = (1 << 53) - 1;

/// A checked pool.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pool {
    name: String,
    ranges: Vec<Range>,
    /// Written as `range`, not as `ranges`.
    single: bool,
    /// In spec order.
    reservations: BTreeMap<String, Vec<IpAddr>>,
    reserved: Both<BTreeMap<u128, String>>,
    quarantine: u64,
    warnings: Vec<PoolWarning>,
    lines: Both<Arc<Line>>,
}

impl Pool {
    /// Checks a spec; all that is wrong with it, or a pool.
    pub fn new(spec: &PoolSpec) -> Result<Pool, PoolErrors> {
        build::pool(spec)
    }

    pub fn name(&self) -> &str {
        &self.name
    }

    /// In the order of the spec.
    pub fn ranges(&self) -> &[Range] {
        &self.ranges
    }

    /// What its author should hear of, though it is no error.
    pub fn warnings(&self) -> &[PoolWarning] {
        &self.warnings
    }

    /// Seconds that an address whose holder vanished stays unused.
    pub fn quarantine(&self) -> u64 {
        self.quarantine
    }

    /// Whether nodes own slices of it instead of sharing one ledger.
    pub fn is_sliced(&self) -> bool {
        self.ranges.iter().any(|range| range.host_bits.is_some())
    }

    /// Between start and end of some range, excluded or not.
    pub fn contains(&self, ip: IpAddr) -> bool {
        self.range_of(ip).is_some()
    }

    /// The first range, in the order of the spec, that has this address; one that gives before one that doesn't. For where it
    /// stands; what its holder is told of it is [`Self::speakers`]' to say.
    pub fn range_of(&self, ip: IpAddr) -> Option<&Range> {
        let of = |gives| self.ranges.iter().find(move |r| r.gives() == gives && r.contains(ip));
        of(true).or_else(|| of(false))
    }

    /// The part that offsets count in: of a pool with a single `range` of one family.
    fn counted(&self) -> Option<&Part> {
        let [range] = self.ranges.as_slice() else {
            return None;
        };
        match (&range.v4, &range.v6) {
            (Some(part), None) | (None, Some(part)) if self.single => Some(part),
            _ => None,
        }
    }

    /// `address − start`, in a pool with a single `range` of one family (R4, R9).
    pub fn offset_of(&self, ip: IpAddr) -> Option<u128> {
        self.counted()?.offset_of(ip)
    }

    pub fn address_at(&self, offset: u128) -> Option<IpAddr> {
        self.counted()?.address_at(offset)
    }

    /// Whether `status.allocated-offsets` is kept: a single `range` of one family whose offsets a JSON
    /// number holds exactly. In an IPv6 /64 they would not even fit the API's 64-bit integers.
    pub fn lists_offsets(&self) -> bool {
        !self.is_sliced() && self.counted().is_some_and(|part| part.last_offset() <= LARGEST_LISTED_OFFSET)
    }

    /// The addresses reserved for a node, in spec order.
    pub fn reservations_for(&self, node: &str) -> &[IpAddr] {
        self.reservations.get(node).map_or(&[], Vec::as_slice)
    }

    /// The node that an address is reserved for.
    pub fn reserved_for(&self, ip: IpAddr) -> Option<&str> {
        let (family, number) = split(ip);
        self.reserved.get(family).get(&number).map(String::as_str)
    }

    fn parts(&self) -> impl Iterator<Item = &Part> {
        self.ranges.iter().flat_map(Range::parts)
    }

    /// Draining ranges that hold nothing but what a range that doesn't drain has too, and of which no slice is cut: what could go,
    /// all of it in one edit (R62, R74, R75), so that no two of them cover for each other. A slice is somebody's as a whole, also
    /// where its first address and its last lie outside of start and end.
    pub fn idle(
        &self,
        held: impl Iterator<Item = IpAddr>,
        slices: impl Iterator<Item = IpNet>,
    ) -> BTreeSet<&str> {
        let draining = self.ranges.iter().filter(|range| !range.gives());
        let mut idle: BTreeSet<&str> = draining.map(Range::name).collect();
        if idle.is_empty() {
            return idle;
        }
        for ip in held {
            let (stay, drain): (Vec<&Range>, Vec<&Range>) =
                self.ranges.iter().filter(|range| range.contains(ip)).partition(|range| range.gives());
            if stay.is_empty() {
                drain.into_iter().for_each(|range| {
                    idle.remove(range.name());
                });
            }
        }
        for cidr in slices {
            self.ranges.iter().filter(|range| range.touches(cidr)).for_each(|range| {
                idle.remove(range.name());
            });
        }
        idle
    }

    /// Is there a range of this name that gives nothing new?
    pub fn is_draining(&self, range: &str) -> bool {
        self.ranges.iter().any(|own| own.name == range && !own.gives())
    }

    /// Where two pools meet: an address of both, if there is one (`OverlappingIPPool`, R16).
    pub fn overlaps(&self, other: &Pool) -> Option<IpAddr> {
        self.parts()
            .flat_map(|mine| other.parts().map(move |their| (mine, their)))
            .filter(|(mine, their)| mine.family == their.family)
            .map(|(mine, their)| (mine.family, mine.start.max(their.start), mine.end.min(their.end)))
            .find(|(_, first, last)| first <= last)
            .map(|(family, first, _)| family.address(first))
    }
}
