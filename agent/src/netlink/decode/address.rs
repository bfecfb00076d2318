//! `RTM_NEWADDR`.

use std::net::IpAddr;

use policy::state::{Address, AddressProtocol, Lifetime, Raw};

use crate::netlink::decode::route::{SCOPE_LINK, SCOPE_UNIVERSE};
use crate::netlink::decode::{AF_INET, AF_INET6};
use crate::netlink::wire::{Attr, Attrs, Malformed, read_u32};

pub(in crate::netlink) const HEADER: usize = 8;

pub(in crate::netlink) const IFA_ADDRESS: u16 = 1;
pub(in crate::netlink) const IFA_LOCAL: u16 = 2;
pub(in crate::netlink) const IFA_BROADCAST: u16 = 4;
pub(in crate::netlink) const IFA_CACHEINFO: u16 = 6;
pub(in crate::netlink) const IFA_FLAGS: u16 = 8;
pub(in crate::netlink) const IFA_PROTO: u16 = 11;

const DAD_FAILED: u32 = 0x08;
const TENTATIVE: u32 = 0x40;
/// Not an attribute: the scope, a byte of the header.
pub(in crate::netlink) const SCOPE: u16 = 0;
/// What somebody asked for, as opposed to what has become of it: no probe, home address, temporary ones managed, no
/// route for its prefix, joining groups, a stable id.
const ASKED_FOR: u32 = 0x02 | 0x10 | 0x100 | 0x200 | 0x400 | 0x800;
const SCOPE_HOST: u8 = 254;
/// A lifetime without end.
pub(in crate::netlink) const FOREVER: u32 = u32::MAX;

/// No longer preferred, valid without end.
const DEPRECATED: [u8; 4] = [0; 4];

/// Where an address stands in duplicate address detection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::netlink) enum Probe {
    /// Usable.
    Passed,
    /// Being asked for on the wire; not used yet.
    Tentative,
    /// Somebody else answered.
    Failed,
}

/// An address and the index of its link.
#[derive(Clone, Debug)]
pub(in crate::netlink) struct SeenAddress {
    pub(in crate::netlink) index: u32,
    pub(in crate::netlink) address: Address,
    pub(in crate::netlink) probe: Probe,
}

pub(in crate::netlink) fn read(payload: &[u8]) -> Result<Option<SeenAddress>, Malformed> {
    let attrs = Attrs::after(payload, HEADER)?;
    let (Some(family), Some(prefix), Some(short)) = (payload.first(), payload.get(1), payload.get(2)) else {
        return Err(Malformed);
    };
    if ![AF_INET, AF_INET6].contains(family) {
        return Ok(None);
    }
    // With a peer, `IFA_ADDRESS` is the peer.
    let ip = attrs.ip(IFA_LOCAL).or_else(|| attrs.ip(IFA_ADDRESS)).ok_or(Malformed)?;
    let mut address = Address::new(ip, *prefix);
    if let Some(info) = attrs.get(IFA_CACHEINFO) {
        let (preferred, valid) = (read_u32(info.payload, 0), read_u32(info.payload, 4));
        let (preferred, valid) = (preferred.ok_or(Malformed)?, valid.ok_or(Malformed)?);
        address.lifetime = (valid != FOREVER).then_some(Lifetime { valid, preferred });
    }
    let deprecated = attrs.get(IFA_CACHEINFO).is_some_and(|info| {
        read_u32(info.payload, 0) == Some(0) && read_u32(info.payload, 4) == Some(FOREVER)
    });
    address.protocol = attrs.get(IFA_PROTO).and_then(Attr::u8).map(AddressProtocol);
    let flags = attrs.u32(IFA_FLAGS).unwrap_or(u32::from(*short));
    let probe = match (flags & DAD_FAILED != 0, flags & TENTATIVE != 0) {
        (true, _) => Probe::Failed,
        (false, true) => Probe::Tentative,
        (false, false) => Probe::Passed,
    };
    address.raw = raw(attrs, ip, flags & ASKED_FOR);
    // There for good, and never sent from: somebody has set that.
    if deprecated {
        address.raw.0.push((IFA_CACHEINFO, DEPRECATED.to_vec()));
    }
    let scope = *payload.get(3).ok_or(Malformed)?;
    if scope != usual_scope(ip) {
        address.raw.0.push((SCOPE, vec![scope]));
    }
    let index = read_u32(payload, 4).ok_or(Malformed)?;
    Ok(Some(SeenAddress { index, address, probe }))
}

/// What the model has no word for: broadcast, label, peer, metric, flags.
fn raw(attrs: Attrs<'_>, ip: IpAddr, flags: u32) -> Raw {
    let known = [IFA_LOCAL, IFA_CACHEINFO, IFA_PROTO, IFA_FLAGS];
    let own = |attr: &Attr<'_>| attr.number == IFA_ADDRESS && attr.ip() == Some(ip);
    let rest = attrs.iter().filter(|attr| !known.contains(&attr.number) && !own(attr));
    let mut raw: Vec<(u16, Vec<u8>)> = rest.map(|attr| (attr.number, attr.payload.to_vec())).collect();
    if flags != 0 {
        raw.push((IFA_FLAGS, flags.to_ne_bytes().to_vec()));
    }
    Raw(raw)
}

/// The scope that a new address gets.
pub(in crate::netlink) fn usual_scope(ip: IpAddr) -> u8 {
    match ip {
        ip if ip.is_loopback() => SCOPE_HOST,
        IpAddr::V4(ip) if ip.is_link_local() => SCOPE_LINK,
        IpAddr::V6(ip) if ip.is_unicast_link_local() => SCOPE_LINK,
        _ => SCOPE_UNIVERSE,
    }
}
