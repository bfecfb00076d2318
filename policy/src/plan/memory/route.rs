//! Routes: what the kernel takes, and what it lets go of.

use super::{MemoryError, kept};
use crate::plan::reach::reaches_now;
use crate::state::{Family, IfName, KeptKind, Observed, Route};
use std::net::IpAddr;

fn check(state: &Observed, route: &Route) -> Result<(), MemoryError> {
    for hop in &route.next_hops {
        let Some(link) = state.links.get(&hop.dev) else {
            return Err(MemoryError::NoLink { link: hop.dev.clone() });
        };
        if !link.up && !link.ignored {
            return Err(MemoryError::LinkDown { link: hop.dev.clone() });
        }
        if route.family() == Family::Ipv6 && !link.ipv6.enabled {
            return Err(MemoryError::Ipv6Off { link: hop.dev.clone() });
        }
        if !link.ignored && !reaches_now(state, route.family(), hop) {
            return Err(MemoryError::Gateway { route: Box::new(route.clone()) });
        }
    }
    let is_object = |k: &crate::state::Kept| k.kind == KeptKind::NextHop && k.object == route.object;
    if route.object.is_some() && !state.kept.iter().any(is_object) {
        return Err(MemoryError::NoObject { route: Box::new(route.clone()) });
    }
    if !route.has_all_gateways() {
        return Err(MemoryError::HopWithoutGateway { route: Box::new(route.clone()) });
    }
    match route.source {
        Some(source) if !is_local(state, source) => {
            Err(MemoryError::Source { route: Box::new(route.clone()) })
        }
        _ => Ok(()),
    }
}

pub(in crate::plan) fn is_local(state: &Observed, ip: IpAddr) -> bool {
    let family = Family::of(&ip);
    state.links.values().any(|l| l.ip(family).addresses.iter().any(|a| a.ip == ip))
}

pub(super) fn add(state: &mut Observed, route: &Route, append: bool) -> Result<(), MemoryError> {
    check(state, route)?;
    let key = route.key();
    if state.routes.iter().any(|r| if append { r == route } else { r.key() == key }) {
        return Err(MemoryError::RouteExists { route: Box::new(route.clone()) });
    }
    state.routes.push(route.clone());
    Ok(())
}

pub(super) fn replace(state: &mut Observed, route: &Route) -> Result<(), MemoryError> {
    check(state, route)?;
    let key = route.key();
    match state.routes.iter_mut().find(|r| r.key() == key) {
        Some(found) => *found = route.clone(),
        None => state.routes.push(route.clone()),
    }
    Ok(())
}

pub(super) fn delete(state: &mut Observed, route: &Route) -> Result<(), MemoryError> {
    match state.routes.iter().position(|r| r == route) {
        Some(at) => {
            state.routes.remove(at);
            Ok(())
        }
        None => Err(MemoryError::NoRoute { route: Box::new(route.clone()) }),
    }
}

/// A link is gone or down: its routes go, both families.
pub(super) fn drop_link(state: &mut Observed, link: &IfName) {
    for family in Family::BOTH {
        drop_routes(state, link, family, true);
    }
    kept::drop_link(state, link);
}

/// A link has no address of that family any more. Next hop objects stay, and so do the routes that lead through them.
pub(super) fn drop_family(state: &mut Observed, link: &IfName, family: Family) {
    drop_routes(state, link, family, false);
    kept::drop_family(state, link, family);
}

/// A route goes with its last next hop. IPv4 keeps the other hops and marks this one dead, to be used again
/// when the link is back; IPv6 forgets it.
fn drop_routes(state: &mut Observed, link: &IfName, family: Family, with_objects: bool) {
    let links = &state.links;
    state.routes.retain_mut(|route| {
        let stays = route.object.is_some() && !with_objects;
        if route.family() != family || !route.uses(link) || stays {
            return true;
        }
        let lives = |dev: &IfName| dev != link && links.get(dev).is_some_and(|l| l.up || l.ignored);
        match family {
            Family::Ipv4 if links.contains_key(link) => route.next_hops.iter().any(|hop| lives(&hop.dev)),
            _ => {
                route.next_hops.retain(|hop| hop.dev != *link);
                route.settle_hops();
                !route.next_hops.is_empty()
            }
        }
    });
}

/// An address is gone from the host: IPv4 routes that send from it go too, IPv6 routes forget it.
pub(super) fn drop_source(state: &mut Observed, ip: IpAddr) {
    let sends = state.routes.iter().any(|r| r.source == Some(ip));
    let keeps = state.kept.iter().any(|k| k.source == Some(ip));
    if !sends && !keeps || is_local(state, ip) {
        return;
    }
    kept::drop_source(state, ip);
    state.routes.retain_mut(|route| {
        if route.source != Some(ip) {
            return true;
        }
        route.source = None;
        ip.is_ipv6()
    });
}
