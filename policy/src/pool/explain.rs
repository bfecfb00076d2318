//! What a pool's spec says of one address: for `berth pool explain`, and for refusals.

use std::fmt;
use std::net::IpAddr;

use super::Pool;
use super::family::{Family, split};
use super::line::is_octet_end;

/// The standing of an address, held or not.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Status {
    OutOfRange,
    Gateway { range: String },
    Excluded(Why),
    Reserved { node: String },
    StaticBand { range: String },
    Dynamic { range: String },
}

impl fmt::Display for Status {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Status::OutOfRange => f.write_str("not in the pool"),
            Status::Gateway { range } => write!(f, "gateway of range {range}"),
            Status::Excluded(why) => write!(f, "excluded: {why}"),
            Status::Reserved { node } => write!(f, "reserved for node {node}"),
            Status::StaticBand { .. } => f.write_str("static band"),
            Status::Dynamic { .. } => f.write_str("dynamic band"),
        }
    }
}

/// Why an address between start and end is never given.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Why {
    #[error("range {range} excludes it")]
    Listed { range: String },
    #[error("it is the gateway of range {range}")]
    Gateway { range: String },
    #[error("range {range} skips octet ends")]
    OctetEnd { range: String },
    #[error("it is the network or broadcast address of range {range}")]
    SubnetEnd { range: String },
    #[error("it is in no whole slice of range {range}")]
    NoWholeSlice { range: String },
}

impl Pool {
    /// What the spec says of this address. Who holds it is not asked.
    pub fn explain(&self, ip: IpAddr) -> Status {
        let why = self.never_given(ip);
        if let Some(Why::Gateway { range }) = why {
            return Status::Gateway { range };
        }
        let Some(range) = self.range_of(ip) else {
            return Status::OutOfRange;
        };
        if let Some(why) = why {
            return Status::Excluded(why);
        }
        if let Some(node) = self.reserved_for(ip) {
            return Status::Reserved { node: node.to_owned() };
        }
        let (family, number) = split(ip);
        let band = range.part(family).and_then(|part| part.static_run());
        let range = range.name.clone();
        match band.is_some_and(|(first, last)| (first..=last).contains(&number)) {
            true => Status::StaticBand { range },
            false => Status::Dynamic { range },
        }
    }

    /// Why nobody ever gets this address, whatever is free. Any range of the pool may say so.
    pub(crate) fn never_given(&self, ip: IpAddr) -> Option<Why> {
        let (family, number) = split(ip);
        let parts = || self.ranges.iter().filter_map(|range| Some((range, range.part(family)?)));
        for (range, part) in parts() {
            let name = || range.name.clone();
            if part.gateway == Some(number) {
                return Some(Why::Gateway { range: name() });
            }
            if part.exclude.contains(number) {
                return Some(Why::Listed { range: name() });
            }
            let skips = range.skip_octet_ends && family == Family::V4;
            if skips && part.usable(number) && is_octet_end(number) {
                return Some(Why::OctetEnd { range: name() });
            }
        }
        if parts().any(|(_, part)| part.usable(number)) {
            return None;
        }
        let (range, part) = parts().find(|(_, part)| part.contains(ip))?;
        let ip = family.address(number);
        let edge = ip == part.cidr.network() || (family == Family::V4 && ip == part.cidr.broadcast());
        let name = range.name.clone();
        Some(if edge { Why::SubnetEnd { range: name } } else { Why::NoWholeSlice { range: name } })
    }
}
