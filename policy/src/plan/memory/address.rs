//! Addresses: where the kernel puts them and what goes with them.

use std::collections::BTreeSet;

use super::{MemoryError, get, route};
use crate::state::{Address, Family, IfName, Ip, Observed};

/// An address is secondary where another one of its subnet stands before it. IPv4 only.
pub(in crate::plan) fn is_secondary(before: &[Address], address: &Address) -> bool {
    before.iter().any(|a| a.prefix == address.prefix && a.subnet() == address.subnet())
}

/// Of each of a list, in order, whether it is secondary. One pass: lists of thousands are real.
pub(in crate::plan) fn secondaries(list: &[Address]) -> impl Iterator<Item = bool> {
    let mut subnets = BTreeSet::new();
    list.iter().map(move |address| !subnets.insert(address.subnet()))
}

/// Where the kernel puts a new address. IPv4: primaries before secondaries, of the primaries narrow scopes before wide
/// ones, each in order of arrival. IPv6: wide scopes before narrow ones, the newest first.
pub(in crate::plan) fn place(list: &mut Vec<Address>, address: Address) {
    let at = match address.family() {
        Family::Ipv4 if is_secondary(list, &address) => list.len(),
        // From the end: as a rule all primaries come first, and there is nothing to step over.
        Family::Ipv4 => {
            let begins = |at: &usize| !is_secondary(&list[..*at], &list[*at]);
            let as_narrow = |at: &usize| list[*at].scope() >= address.scope();
            (0..list.len()).rev().find(|at| as_narrow(at) && begins(at)).map_or(0, |last| last + 1)
        }
        Family::Ipv6 => list.iter().position(|a| scope(a) <= scope(&address)).unwrap_or(list.len()),
    };
    list.insert(at, address);
}

fn scope(address: &Address) -> u8 {
    match address.ip {
        std::net::IpAddr::V6(ip) if ip.is_unicast_link_local() || ip.is_loopback() => 2,
        // Site-local, of old.
        std::net::IpAddr::V6(ip) if ip.segments()[0] & 0xffc0 == 0xfec0 => 5,
        _ => 14,
    }
}

pub(super) fn add(state: &mut Observed, name: &IfName, address: &Address) -> Result<(), MemoryError> {
    let link = get(state, name)?;
    if address.family() == Family::Ipv6 && !link.ipv6.enabled {
        return Err(MemoryError::Ipv6Off { link: name.clone() });
    }
    let ip = link.ip_mut(address.family());
    // IPv6 knows an address once, whatever its prefix; IPv4 once per prefix.
    let twin = ip.addresses.iter().any(|a| match address.family() {
        Family::Ipv4 => a.same(address),
        Family::Ipv6 => a.ip == address.ip,
    });
    if twin {
        return Err(MemoryError::AddressExists { link: name.clone(), address: address.clone() });
    }
    place(&mut ip.addresses, address.clone());
    ip.enabled = true;
    Ok(())
}

pub(super) fn replace(state: &mut Observed, name: &IfName, address: &Address) -> Result<(), MemoryError> {
    let ip = get(state, name)?.ip_mut(address.family());
    match ip.addresses.iter_mut().find(|a| a.same(address)) {
        Some(found) => {
            *found = address.clone();
            settle(ip);
            Ok(())
        }
        None => Err(MemoryError::NoAddress { link: name.clone(), address: address.clone() }),
    }
}

/// With nothing left that is renewed, nobody renews.
fn settle(ip: &mut Ip) {
    if !ip.addresses.iter().any(Address::is_dynamic) {
        (ip.dhcp, ip.autoconf) = (false, false);
    }
}

pub(super) fn delete(state: &mut Observed, name: &IfName, address: &Address) -> Result<(), MemoryError> {
    let ip = get(state, name)?.ip_mut(address.family());
    let Some(at) = ip.position(address) else {
        return Err(MemoryError::NoAddress { link: name.clone(), address: address.clone() });
    };
    let dynamic = address.is_dynamic() || ip.addresses[at].is_dynamic();
    let mut gone = vec![ip.addresses.remove(at)];
    if address.family() == Family::Ipv4 && !is_secondary(&ip.addresses[..at], address) {
        let (taken, kept) = std::mem::take(&mut ip.addresses)
            .into_iter()
            .partition(|a| a.prefix == address.prefix && a.subnet() == address.subnet());
        ip.addresses = kept;
        gone.extend::<Vec<_>>(taken);
    }
    if dynamic {
        settle(ip);
    }
    let last = address.family() == Family::Ipv4 && ip.addresses.is_empty();
    if last {
        ip.enabled = false;
        route::drop_family(state, name, Family::Ipv4);
    }
    for address in gone {
        route::drop_source(state, address.ip);
    }
    Ok(())
}

pub(super) fn set_ipv6(state: &mut Observed, name: &IfName, on: bool) -> Result<(), MemoryError> {
    let ip = &mut get(state, name)?.ipv6;
    ip.enabled = on;
    if !on {
        let gone = std::mem::take(&mut ip.addresses);
        (ip.autoconf, ip.dhcp) = (false, false);
        route::drop_family(state, name, Family::Ipv6);
        for address in gone {
            route::drop_source(state, address.ip);
        }
    }
    Ok(())
}
