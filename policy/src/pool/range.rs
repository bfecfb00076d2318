//! A range: checked, in numbers. One `Part` per family it has.
//!
//! **Offsets** are linear, `offset = address − start`, and nothing ever renumbers (D1, D2): excluded
//! addresses keep theirs.
//!
//! **Usable** is what lies between start and end without the addresses no host may have: in IPv4 the
//! network and the broadcast address (prefixes up to /30; in a /31 and a /32 every address counts, RFC
//! 3021), in IPv6 the subnet-router anycast address, the first (up to /126; RFC 6164). The last IPv6
//! address is usable: there is no broadcast, and the anycast identifiers of RFC 2526 are used by nobody
//! who would miss one. They default start and end; where start or end names them, they count as
//! excluded and keep their offsets.

mod parse;

use std::collections::BTreeMap;
use std::net::IpAddr;

use ipnet::IpNet;

use super::family::{Family, bounds, split};
use super::runs::{Run, Runs};
use super::selector::Selector;
use super::spec::RangeState;

pub(crate) use parse::range;

/// The name of the single `range` of a pool that doesn't name its ranges.
pub const SINGLE: &str = "default";

/// A named part of a pool.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Range {
    pub(crate) name: String,
    pub(crate) v4: Option<Part>,
    pub(crate) v6: Option<Part>,
    pub(crate) skip_octet_ends: bool,
    pub(crate) host_bits: Option<u8>,
    pub(crate) selector: Option<Selector>,
    pub(crate) attributes: BTreeMap<String, String>,
    pub(crate) state: RangeState,
    /// One family of two, in slices of which the other has none: no claim is served by half (R92), and a literal address is one
    /// address (R51).
    pub(crate) half: bool,
}

/// The addresses of a range in one family.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Part {
    pub(crate) family: Family,
    pub(crate) cidr: IpNet,
    /// What belongs to the range: start and end, inclusive. Offset 0 is `start`.
    pub(crate) start: u128,
    pub(crate) end: u128,
    /// What may be given, holes aside.
    pub(crate) first: u128,
    pub(crate) last: u128,
    /// The size that bands are computed from (D11).
    pub(crate) size: u128,
    /// How many addresses from `first` on are the static band.
    pub(crate) band: u128,
    pub(crate) gateway: Option<u128>,
    pub(crate) exclude: Runs,
}

impl Range {
    pub fn name(&self) -> &str {
        &self.name
    }

    pub fn state(&self) -> RangeState {
        self.state
    }

    /// Whether it gives new addresses.
    pub fn gives(&self) -> bool {
        self.gives_named() && !self.half
    }

    /// Whether it gives an address that is asked for by name.
    pub(crate) fn gives_named(&self) -> bool {
        self.state == RangeState::Active
    }

    pub fn attributes(&self) -> &BTreeMap<String, String> {
        &self.attributes
    }

    pub fn selector(&self) -> Option<&Selector> {
        self.selector.as_ref()
    }

    /// `perNodeHostBits`, where the range is cut into slices.
    pub fn host_bits(&self) -> Option<u8> {
        self.host_bits
    }

    pub fn part(&self, family: Family) -> Option<&Part> {
        match family {
            Family::V4 => self.v4.as_ref(),
            Family::V6 => self.v6.as_ref(),
        }
    }

    /// Its one or two families, IPv4 first.
    pub fn parts(&self) -> impl Iterator<Item = &Part> {
        self.v4.iter().chain(&self.v6)
    }

    /// Between start and end of one of its families.
    pub fn contains(&self, ip: IpAddr) -> bool {
        self.part(Family::of(ip)).is_some_and(|part| part.contains(ip))
    }

    /// Is an address of this block between its start and its end?
    pub(crate) fn touches(&self, cidr: IpNet) -> bool {
        let (family, first, last) = bounds(cidr);
        self.part(family).is_some_and(|part| part.start <= last && first <= part.end)
    }

    /// Its size for ties (R88): how many slices, or addresses, it has in all; of two families the
    /// fewer. From what never changes, so that excluding an address moves no node to another range.
    pub fn size(&self) -> u128 {
        let bits = u32::from(self.host_bits.unwrap_or(0));
        self.parts().map(|part| part.size >> bits).min().unwrap_or(0)
    }
}

impl Part {
    pub fn family(&self) -> Family {
        self.family
    }

    pub fn cidr(&self) -> IpNet {
        self.cidr
    }

    /// The prefix length that a claim gets: the range's, also inside a slice (R19, R114).
    pub fn prefix_length(&self) -> u8 {
        self.cidr.prefix_len()
    }

    pub fn start(&self) -> IpAddr {
        self.family.address(self.start)
    }

    pub fn end(&self) -> IpAddr {
        self.family.address(self.end)
    }

    pub fn gateway(&self) -> Option<IpAddr> {
        self.gateway.map(|number| self.family.address(number))
    }

    pub fn contains(&self, ip: IpAddr) -> bool {
        let (family, number) = split(ip);
        family == self.family && (self.start..=self.end).contains(&number)
    }

    /// `address − start`, for any address from start to end, excluded ones too.
    pub fn offset_of(&self, ip: IpAddr) -> Option<u128> {
        self.contains(ip).then(|| split(ip).1 - self.start)
    }

    pub fn address_at(&self, offset: u128) -> Option<IpAddr> {
        (offset <= self.last_offset()).then(|| self.family.address(self.start + offset))
    }

    /// The offset of `end`.
    pub fn last_offset(&self) -> u128 {
        self.end - self.start
    }

    /// First and last address of the static band.
    pub fn static_band(&self) -> Option<(IpAddr, IpAddr)> {
        self.static_run().map(|(a, b)| (self.family.address(a), self.family.address(b)))
    }

    /// First and last address of the dynamic band.
    pub fn dynamic_band(&self) -> Option<(IpAddr, IpAddr)> {
        self.dynamic_run().map(|(a, b)| (self.family.address(a), self.family.address(b)))
    }

    pub(crate) fn static_run(&self) -> Option<Run> {
        (self.band > 0).then(|| (self.first, self.last.min(self.first + (self.band - 1))))
    }

    pub(crate) fn dynamic_run(&self) -> Option<Run> {
        (self.band <= self.last - self.first).then(|| (self.first + self.band, self.last))
    }

    /// Whether this address may be given as far as this range alone is concerned.
    pub(crate) fn usable(&self, number: u128) -> bool {
        (self.first..=self.last).contains(&number)
    }
}
