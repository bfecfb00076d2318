//! Slices: aligned blocks of 2^`perNodeHostBits` addresses, each owned by one node (docs/ARCHITECTURE.md).
//!
//! A node's agent calls `choose_slice` and creates the object of that name; the name is the lock.
//! Within its slices it serves itself: `Pool::within` is the pool cut down to them, for `choose`.
//!
//! Only whole blocks between start and end are slices. A slice without a single address to give (all
//! excluded, or reserved for others) is never chosen, nor is one in which anything is reserved for others: its node
//! could not have it any more. Slices that touch the static band are chosen last,
//! so that the addresses people pick by hand stay free of other nodes' slices for longest; inside a slice
//! there are no bands. Cost: as `choose`, for a taken slice is a run like any other.

mod taken;
mod within;

use std::borrow::Cow;
use std::net::IpAddr;

use ipnet::IpNet;

use super::choose::scan::Scan;
use super::choose::{Holder, Kind, NoAddress, NodeView, Want, literal};
use super::family::{Family, split};
use super::range::{Part, Range};
use super::rank::{matches, rank};
use super::runs::{Run, Runs};
use super::{Barred, Pool, hash};
pub use taken::TakenSlices;

/// A sliced pool with the slices that exist.
#[derive(Debug, Clone, Copy)]
pub struct SliceView<'a> {
    pub pool: &'a Pool,
    pub taken: &'a TakenSlices,
    pub barred: &'a Barred,
}

/// One block of one family.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Slice {
    pub cidr: IpNet,
    /// Of its `NodeIPSlice`.
    pub name: String,
}

/// The slice to take, or one of each family: both or none.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SliceChoice {
    pub range: String,
    pub kind: Kind,
    pub v4: Option<Slice>,
    pub v6: Option<Slice>,
}

/// Not a slice that this pool would cut.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum NotASlice {
    #[error("{cidr} is not a slice of pool {pool}: none of its ranges is cut that way")]
    Foreign { cidr: IpNet, pool: String },
    #[error("{cidr} of pool {pool} has no address to give")]
    Barren { cidr: IpNet, pool: String },
}

impl Part {
    /// The aligned block around an address.
    fn block(&self, number: u128, bits: u8) -> Run {
        let mask = (1_u128 << bits) - 1;
        (number & !mask, number | mask)
    }

    /// The slices in address order, as (those to choose first, those that touch the static band).
    fn slice_runs(&self, bits: u8) -> [Option<Run>; 2] {
        let Some((_, band_end)) = self.static_run() else {
            return [Some((self.first, self.last)), None];
        };
        let edge = self.block(band_end, bits).1;
        if edge >= self.last {
            return [None, Some((self.first, self.last))];
        }
        [Some((edge + 1, self.last)), Some((self.first, edge))]
    }

    fn slice_at(&self, number: u128, bits: u8, pool: &str) -> Slice {
        let cidr = self.slice_cidr(number, bits);
        Slice { cidr, name: name(pool, cidr.addr()) }
    }

    fn slice_cidr(&self, number: u128, bits: u8) -> IpNet {
        let first = self.family.address(self.block(number, bits).0);
        // A prefix of at most the family's bits is always valid.
        IpNet::new(first, self.family.bits() - bits).unwrap_or(IpNet::from(first))
    }
}

impl Range {
    /// The slice that an address lies in, whoever owns it, and whether it touches the static band: such slices are
    /// chosen last, and that is all that a band means here, for inside a slice there is none.
    pub fn slice_around(&self, ip: IpAddr) -> Option<(IpNet, bool)> {
        let (family, number) = split(ip);
        let (part, bits) = (self.part(family)?, self.host_bits?);
        let [_, last] = part.slice_runs(bits);
        let is_last = last.is_some_and(|(first, last)| (first..=last).contains(&number));
        part.usable(number).then(|| (part.slice_cidr(number, bits), is_last))
    }
}

/// `<pool>.<first address>`, ':' as '-'. A DNS label neither starts nor ends with '-', so a leading or
/// trailing `::` gets its zero: `fd00::` is `fd00--0`.
fn name(pool: &str, first: IpAddr) -> String {
    let mut text = first.to_string();
    if text.ends_with("::") {
        text.push('0');
    }
    if text.starts_with("::") {
        text.insert(0, '0');
    }
    format!("{pool}.{}", text.replace(':', "-"))
}

/// The next slice for this node. Same input, same answer.
pub fn choose_slice(
    view: &SliceView<'_>,
    holder: &Holder<'_>,
    node: &NodeView<'_>,
) -> Result<SliceChoice, NoAddress> {
    if !view.pool.is_sliced() {
        return Err(NoAddress::NotSliced { pool: view.pool.name.clone() });
    }
    let taken = view.taken.fitted(view.pool);
    let view = &SliceView { taken: &taken, ..*view };
    let search = Search { view, holder, hash: hash::start(holder.node, &view.pool.name, holder.capture) };
    let ranked = rank(view.pool, node);
    match holder.want {
        Want::Exactly(ip) => search.exactly(ip.to_canonical()),
        Want::Any => search.reserved(&ranked).map_or_else(|| search.any(&ranked, node), Ok),
    }
}

struct Search<'a> {
    view: &'a SliceView<'a>,
    holder: &'a Holder<'a>,
    hash: u128,
}

impl Search<'_> {
    fn scan(&self, part: &Part, bits: u8) -> Option<u128> {
        let barred = self.not_for_it(part, bits);
        let scan = Scan {
            family: part.family,
            line: self.view.pool.lines.get(part.family),
            taken: self.view.taken.runs(part.family),
            barred: &barred,
            declined: self.holder.declined,
        };
        part.slice_runs(bits).into_iter().flatten().find_map(|(first, last)| {
            let start = first + self.hash % (last - first + 1);
            scan.from((first, last), part.block(start, bits).0.max(first))
        })
    }

    /// What is barred, and whole blocks around what is reserved for other nodes. Never, and not last: the reservation would
    /// be lost when the pool is nearly full, which is what it is for. What that costs is the rest of a block, until its node
    /// takes it. A node that has a reservation in such a block too may take it, and so may who names an address in it:
    /// that was said, and the first has it. Cost: O(barred + reserved), where anything is reserved for others.
    fn not_for_it(&self, part: &Part, bits: u8) -> Cow<'_, Runs> {
        let mut barred = Cow::Borrowed(self.view.barred.runs(part.family));
        for (number, node) in self.view.pool.reserved.get(part.family) {
            if *node != self.holder.node && part.usable(*number) {
                let (first, last) = part.block(*number, bits);
                barred.to_mut().insert(first, last);
            }
        }
        barred
    }

    fn any(&self, ranked: &[&Range], node: &NodeView<'_>) -> Result<SliceChoice, NoAddress> {
        let mut full = Vec::new();
        for range in ranked {
            match self.fill(range, Kind::Dynamic, |part, bits| self.scan(part, bits)) {
                Ok(choice) => return Ok(choice),
                Err(family) => full.push((range.name.clone(), family)),
            }
        }
        let (pool, node_name) = (self.view.pool.name.clone(), node.name.to_owned());
        let for_node = self.view.pool.ranges.iter().filter(|range| matches(range, node));
        let draining: Vec<String> = for_node.map(|range| range.name.clone()).collect();
        Err(match (full.is_empty(), draining.is_empty()) {
            (false, _) => NoAddress::Exhausted {
                pool,
                node: node_name,
                barred: self.view.barred.owners_in(self.view.pool, &full),
                full,
            },
            (true, false) => NoAddress::AllDraining { pool, node: node_name, draining },
            (true, true) => NoAddress::NoRangeForNode { pool, node: node_name },
        })
    }

    /// The slice that holds a reservation of the node.
    fn reserved(&self, ranked: &[&Range]) -> Option<SliceChoice> {
        let mine = self.view.pool.reservations_for(self.holder.node);
        let own = |part: &Part, bits: u8| {
            let numbers = mine.iter().filter(|ip| part.family == Family::of(**ip)).map(|ip| split(*ip).1);
            numbers.filter(|n| part.usable(*n)).find(|n| self.is_free(part, *n, bits))
        };
        let others = self
            .view
            .pool
            .ranges
            .iter()
            .filter(|r| r.gives() && !ranked.iter().any(|s| std::ptr::eq(*s, *r)));
        ranked.iter().copied().chain(others).find_map(|range| {
            let bits = range.host_bits?;
            range.parts().find_map(|part| own(part, bits))?;
            self.fill(range, Kind::Reserved, |part, bits| own(part, bits).or_else(|| self.scan(part, bits)))
                .ok()
        })
    }

    fn is_free(&self, part: &Part, number: u128, bits: u8) -> bool {
        let ip = part.family.address(number);
        !self.view.taken.touches(part.family, part.block(number, bits))
            && !self.view.barred.contains(ip)
            && !self.holder.declined.contains(&ip)
    }

    fn fill(
        &self,
        range: &Range,
        kind: Kind,
        find: impl Fn(&Part, u8) -> Option<u128>,
    ) -> Result<SliceChoice, Family> {
        let bits = range.host_bits.unwrap_or(0);
        let slice = |family| match range.part(family) {
            None => Ok(None),
            Some(part) => match find(part, bits) {
                Some(number) => Ok(Some(part.slice_at(number, bits, &self.view.pool.name))),
                None => Err(family),
            },
        };
        Ok(SliceChoice { range: range.name.clone(), kind, v4: slice(Family::V4)?, v6: slice(Family::V6)? })
    }

    /// The slice around a literal address; of the other family nothing.
    fn exactly(&self, ip: IpAddr) -> Result<SliceChoice, NoAddress> {
        let (family, number) = split(ip);
        let (view, pool) = (self.view, self.view.pool.name.clone());
        let Some(range) = view.pool.range_of(ip) else {
            return Err(NoAddress::NotInPool { ip, pool });
        };
        let (Some(part), Some(bits)) = (range.part(family), range.host_bits) else {
            return Err(NoAddress::NotInPool { ip, pool });
        };
        let kind = literal(view.pool, view.barred, self.holder, ip)?;
        let slice = part.slice_at(number, bits, &pool);
        if view.taken.touches(family, part.block(number, bits)) {
            return Err(NoAddress::SliceHeld { ip, cidr: slice.cidr, pool });
        }
        if !range.gives() {
            return Err(NoAddress::Draining { ip, pool, range: range.name.clone() });
        }
        let (v4, v6) = match family {
            Family::V4 => (Some(slice), None),
            Family::V6 => (None, Some(slice)),
        };
        Ok(SliceChoice { range: range.name.clone(), kind, v4, v6 })
    }
}
