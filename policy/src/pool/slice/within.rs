//! A pool cut down to the slices that a node owns.

use ipnet::IpNet;

use super::NotASlice;
use crate::pool::Pool;
use crate::pool::build::assemble;
use crate::pool::family::{Family, bounds, split};
use crate::pool::range::{Part, Range};

impl Pool {
    /// How many slices it is cut into (R118); of a dual-stack range, as many as the scarcer family has.
    pub fn slice_count(&self) -> u128 {
        self.ranges.iter().filter(|range| range.host_bits.is_some()).map(Range::size).sum()
    }

    /// The pool cut down to these slices, for `choose`. Of a dual-stack range every pair of an IPv4 and
    /// an IPv6 slice serves, and slices of one family alone serve literal addresses. The prefix length stays the range's (R114).
    pub fn within(&self, slices: &[IpNet]) -> Result<Pool, NotASlice> {
        let mut ranges: Vec<Range> = Vec::new();
        let mut halves: Vec<(&Range, Part)> = Vec::new();
        for cidr in slices {
            halves.push(self.cut(*cidr)?);
        }
        for (range, part) in &halves {
            let whole = |v4: Option<Part>, v6: Option<Part>, half| Range {
                host_bits: None,
                v4,
                v6,
                half,
                ..(*range).clone()
            };
            let alone = |half| match part.family {
                Family::V4 => whole(Some(part.clone()), None, half),
                Family::V6 => whole(None, Some(part.clone()), half),
            };
            let others = || {
                let same = halves.iter().filter(|(other, _)| std::ptr::eq(*other, *range));
                same.filter(|(_, half)| half.family != part.family).map(|(_, half)| half)
            };
            match (part.family, range.v4.is_some() && range.v6.is_some()) {
                (_, false) => ranges.push(alone(false)),
                (_, true) if others().next().is_none() => ranges.push(alone(true)),
                (Family::V6, true) => {}
                (Family::V4, true) => {
                    ranges.extend(others().map(|six| whole(Some(part.clone()), Some(six.clone()), false)));
                }
            }
        }
        let mut pool = assemble(self.name.clone(), ranges);
        pool.quarantine = self.quarantine;
        for (node, ip) in
            self.reservations.iter().flat_map(|(node, ips)| ips.iter().map(move |ip| (node, *ip)))
        {
            if pool.contains(ip) {
                let (family, number) = split(ip);
                pool.reserved.get_mut(family).insert(number, node.clone());
                pool.reservations.entry(node.clone()).or_default().push(ip);
            }
        }
        pool.draw();
        Ok(pool)
    }

    /// The range that a slice is of, and what of its part the slice is.
    fn cut(&self, cidr: IpNet) -> Result<(&Range, Part), NotASlice> {
        let (family, first, last) = bounds(cidr);
        let holds = |range: &&Range| {
            let (Some(part), Some(bits)) = (range.part(family), range.host_bits) else {
                return false;
            };
            let inside = part.block(part.first, bits).0 <= first && last <= part.block(part.last, bits).1;
            inside && cidr.prefix_len() == family.bits() - bits
        };
        let found = self.ranges.iter().find(holds).and_then(|range| Some((range, range.part(family)?)));
        let (range, part) = found.ok_or_else(|| NotASlice::Foreign { cidr, pool: self.name.clone() })?;
        let mut part = part.clone();
        (part.start, part.end) = (part.start.max(first), part.end.min(last));
        (part.first, part.last) = (part.first.max(first), part.last.min(last));
        part.size = last - first + 1;
        part.band = 0;
        let barren = part.first > part.last || part.start > part.end;
        if barren { Err(NotASlice::Barren { cidr, pool: self.name.clone() }) } else { Ok((range, part)) }
    }
}
