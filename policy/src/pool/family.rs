//! The two address families as one kind of number.
//!
//! An address is a `u128` with its family beside it, so every other file of this module does its
//! arithmetic once. An IPv4-mapped IPv6 address *is* the IPv4 address: otherwise one address could
//! be held twice under two spellings.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use ipnet::IpNet;

/// IPv4 or IPv6.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Family {
    V4,
    V6,
}

impl Family {
    pub const BOTH: [Family; 2] = [Family::V4, Family::V6];

    pub fn of(ip: IpAddr) -> Family {
        split(ip).0
    }

    /// How many bits an address has.
    pub fn bits(self) -> u8 {
        match self {
            Family::V4 => 32,
            Family::V6 => 128,
        }
    }

    pub(crate) fn address(self, number: u128) -> IpAddr {
        match self {
            // Numbers of this family come from addresses of this family: they fit.
            Family::V4 => IpAddr::V4(Ipv4Addr::from(number as u32)),
            Family::V6 => IpAddr::V6(Ipv6Addr::from(number)),
        }
    }
}

impl fmt::Display for Family {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Family::V4 => "IPv4",
            Family::V6 => "IPv6",
        })
    }
}

/// An address as family and number.
pub(crate) fn split(ip: IpAddr) -> (Family, u128) {
    match ip.to_canonical() {
        IpAddr::V4(v4) => (Family::V4, u128::from(u32::from(v4))),
        IpAddr::V6(v6) => (Family::V6, u128::from(v6)),
    }
}

/// First and last address of a network, both inclusive.
pub(crate) fn bounds(net: IpNet) -> (Family, u128, u128) {
    let (family, first) = split(net.network());
    let (_, last) = split(net.broadcast());
    (family, first, last)
}

/// One value per family.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Both<T> {
    pub(crate) v4: T,
    pub(crate) v6: T,
}

impl<T> Both<T> {
    pub(crate) fn get(&self, family: Family) -> &T {
        match family {
            Family::V4 => &self.v4,
            Family::V6 => &self.v6,
        }
    }

    pub(crate) fn get_mut(&mut self, family: Family) -> &mut T {
        match family {
            Family::V4 => &mut self.v4,
            Family::V6 => &mut self.v6,
        }
    }
}
