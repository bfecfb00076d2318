//! From the kernel's messages to the model: pure functions, one file per kind of object.
//!
//! Each takes the payload of one message and returns what it says, `None` for an object that is none of Berth's
//! business (another family, a cached route), or [`Malformed`](super::wire::Malformed). Links are known by index
//! here; [`super::observe`] puts names in their place.

pub(super) mod address;
pub(super) mod group;
pub(super) mod kept;
pub(super) mod link;
pub(super) mod neighbour;
pub(super) mod route;
pub(super) mod rule;
pub(super) mod vlans;

pub(super) const AF_INET: u8 = 2;
pub(super) const AF_BRIDGE: u8 = 7;
pub(super) const AF_INET6: u8 = 10;
