//! What documents have no words for: when the kernel lets go of it, and when it takes it back.
//!
//! Next hop objects and IPv6 routes go with their link; an IPv4 route keeps its other ways; routes to the host itself
//! outlast a link that goes down, but not one that goes. Rules stay whatever happens to links. Neighbours go when their link
//! is down, or has no address of their family, or gets another hardware address; forwarding entries when it goes, or leaves
//! the bridge whose they are.

use super::MemoryError;
use super::route::is_local;
use crate::plan::reach::reaches_now;
use crate::state::{Family, IfName, Kept, KeptKind, Link, NextHop, Observed};
use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;

/// A link is down, or gone if the state has it no more.
pub(super) fn drop_link(state: &mut Observed, link: &IfName) {
    if !state.kept.iter().any(|kept| kept.uses(link)) {
        return;
    }
    let gone = !state.links.contains_key(link);
    let mut objects = BTreeSet::new();
    state.kept.retain_mut(|kept| {
        if kept.kind != KeptKind::NextHop || !kept.uses(link) {
            return true;
        }
        kept.hops.retain(|hop| hop.dev != *link);
        if kept.hops.is_empty() {
            objects.extend(kept.object);
        }
        !kept.hops.is_empty()
    });
    state.kept.retain(|kept| match kept.kind {
        KeptKind::Neighbour => !kept.uses(link),
        KeptKind::Forwarding | KeptKind::Group => !gone || !kept.uses(link),
        _ => true,
    });
    let links = &state.links;
    state.kept.retain_mut(|kept| {
        kept.kind != KeptKind::Route
            || !kept.object.is_some_and(|object| objects.contains(&object))
                && outlasts(kept, link, links, gone)
    });
}

/// A link has no address of that family any more.
pub(super) fn drop_family(state: &mut Observed, link: &IfName, family: Family) {
    drop_neighbours(state, link, |kept| kept.family == Some(family));
    let links = &state.links;
    state.kept.retain_mut(|kept| {
        let concerns = kept.kind == KeptKind::Route && kept.family == Some(family) && kept.object.is_none();
        !concerns || outlasts(kept, link, links, true)
    });
}

/// A link has another hardware address: whoever its neighbours are has to be found out anew.
pub(super) fn drop_neighbours(state: &mut Observed, link: &IfName, which: impl Fn(&Kept) -> bool) {
    state.kept.retain(|kept| kept.kind != KeptKind::Neighbour || !kept.uses(link) || !which(kept));
}

/// A link is no longer a port.
pub(super) fn drop_port(state: &mut Observed, link: &IfName, controller: &IfName) {
    state.kept.retain(|kept| kept.port() != Some((link, controller)));
}

fn outlasts(kept: &mut Kept, link: &IfName, links: &BTreeMap<IfName, Link>, gone: bool) -> bool {
    if !kept.uses(link) {
        return true;
    }
    let lives = |dev: &IfName| dev != link && links.get(dev).is_some_and(|l| l.up || l.ignored);
    match kept.family {
        Some(Family::Ipv4) => !gone && kept.outlasts_down || kept.hops.iter().any(|hop| lives(&hop.dev)),
        _ => {
            kept.hops.retain(|hop| hop.dev != *link);
            !kept.hops.is_empty()
        }
    }
}

/// An address is gone from the host.
pub(super) fn drop_source(state: &mut Observed, ip: IpAddr) {
    state.kept.retain_mut(|kept| {
        if kept.source != Some(ip) {
            return true;
        }
        kept.source = None;
        ip.is_ipv6()
    });
}

pub(super) fn restore(state: &mut Observed, kept: &Kept) -> Result<(), MemoryError> {
    let refused = || MemoryError::Kept { kept: Box::new(kept.clone()) };
    if matches!(kept.kind, KeptKind::Forwarding | KeptKind::Group) {
        let is_there = |hop: &NextHop| state.links.contains_key(&hop.dev);
        let is_port = |(port, bridge): (&IfName, &IfName)| {
            state.links.get(port).is_some_and(|l| l.controller.as_ref() == Some(bridge))
        };
        if !kept.hops.iter().all(is_there) || !kept.port().is_none_or(is_port) {
            return Err(refused());
        }
        put(state, kept);
        return Ok(());
    }
    for hop in &kept.hops {
        let link = state.links.get(&hop.dev).ok_or_else(refused)?;
        let off = kept.family == Some(Family::Ipv6) && !link.ipv6.enabled;
        if !link.ignored && (!link.up || off || !reaches_now(state, kept.family.unwrap_or(Family::Ipv4), hop))
        {
            return Err(refused());
        }
    }
    if kept.source.is_some_and(|ip| !is_local(state, ip)) {
        return Err(refused());
    }
    let is_object = |k: &Kept| k.kind == KeptKind::NextHop && k.object == kept.object;
    if kept.kind == KeptKind::Route && kept.object.is_some() && !state.kept.iter().any(is_object) {
        return Err(refused());
    }
    put(state, kept);
    Ok(())
}

/// There it is, whatever the model thinks of it.
pub(in crate::plan) fn put(state: &mut Observed, kept: &Kept) {
    state.kept.retain(|there| !there.is_same(kept));
    state.kept.push(kept.clone());
}

pub(super) fn forget(state: &mut Observed, kept: &Kept) -> Result<(), MemoryError> {
    match state.kept.iter().position(|there| there == kept) {
        Some(at) => {
            state.kept.remove(at);
            Ok(())
        }
        None => Err(MemoryError::Kept { kept: Box::new(kept.clone()) }),
    }
}
