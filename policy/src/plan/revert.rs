//! The way back: from whatever is there now to what was before, for what a plan may have touched.
//!
//! It doesn't walk the steps backwards: a plan may have failed in the middle, and the kernel does things of its
//! own. It takes what is there now, puts in what was before wherever the plan had a hand, and plans that. What nobody can
//! make again (a card that vanished, a veth whose other end is elsewhere) is left out and said as a loss.

use super::diff::{Asked, diff};
use super::loss::{Loss, can_be_made, without as without_its};
use super::memory::put;
use super::{Plan, Step};
use crate::state::{
    AcceptRa, Address, IfName, Kept, KeptKind, Link, NextHop, Observed, Route, RouteKey, RouteProtocol, Rule,
};
use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;

#[derive(Default)]
struct Touched<'a> {
    links: BTreeSet<&'a IfName>,
    /// These, and what may lose its carrier with them for a while: a bridge of whose ports one is touched, and what sits on that.
    carried: BTreeSet<&'a IfName>,
    /// What was put on a link; anything else that is new there is somebody else's doing, and stays.
    addresses: BTreeSet<(&'a IfName, IpAddr)>,
    /// Links that were made or removed: everything of theirs is the plan's.
    whole: BTreeSet<&'a IfName>,
    /// Names that people give, where they were changed.
    labelled: BTreeSet<&'a IfName>,
    routes: BTreeSet<RouteKey>,
    /// Routes that steps speak of.
    said: BTreeMap<RouteKey, Vec<&'a Route>>,
    rules: BTreeSet<&'a Rule>,
    dns: bool,
    hostname: bool,
}

pub(super) fn revert(plan: &Plan, now: &Observed, before: &Observed) -> Plan {
    let touched = touched(plan, now, before);
    let mut target = now.clone();
    let lost = lost(&touched, now, before);
    for name in &touched.links {
        match before.links.get(*name) {
            _ if lost.contains(*name) => {}
            Some(link) => target.insert(restored(link, now.links.get(*name), &touched)),
            None => {
                target.links.remove(*name);
            }
        }
    }
    // A bridge is as large as its ports let it be, unless somebody said.
    for name in &touched.links {
        let states = [before, now].into_iter().filter_map(|state| state.links.get(*name));
        for bridge in states.filter_map(|link| link.controller.as_ref()) {
            if let (Some(was), Some(link)) = (before.links.get(bridge), target.links.get_mut(bridge)) {
                link.mtu = was.mtu;
            }
        }
    }
    let concerns = |route: &Route| touched.routes.contains(&route.key());
    let known = by_key(&before.routes);
    // Routes that the kernel learns by itself are not brought back by hand.
    let now_routes = std::mem::take(&mut target.routes).into_iter();
    target.routes = now_routes
        .filter_map(|r| if is_learnt(&r, before) { Some(r) } else { touched.left_of(r, &known) })
        .collect();
    let back = before.routes.iter().filter(|r| !is_learnt(r, before) && concerns(r));
    target.routes.extend(back.filter_map(|r| without(r, &lost)));
    let there: BTreeSet<&Kept> = now.kept.iter().collect();
    let gone = before.kept.iter().filter(|kept| !there.contains(kept));
    let on_lost = |kept: &Kept| kept.hops.iter().any(|hop| lost.contains(&hop.dev));
    for kept in gone.filter(|kept| touched.took(kept, before) && !on_lost(kept)) {
        put(&mut target, kept);
    }
    target.rules.retain(|rule| !touched.rules.iter().any(|said| said.is(rule)));
    target
        .rules
        .extend(before.rules.iter().filter(|rule| touched.rules.iter().any(|said| said.is(rule))).cloned());
    if touched.dns {
        target.dns = before.dns.clone();
    }
    if touched.hostname {
        target.hostname.clone_from(&before.hostname);
    }
    // What was made by one end goes by that end.
    let made = plan.steps.iter().filter_map(|step| match step {
        Step::CreateLink(new) => Some(new.name.clone()),
        _ => None,
    });
    let asked = Asked { absent: made.collect(), ..Asked::default() };
    let mut plan = diff(now, &target, &asked).plan;
    plan.steps.extend(shrunk(&touched, now, before));
    let gone = lost.iter().filter_map(|name| before.links.get(*name));
    plan.losses.extend(gone.map(|link| Loss::Link { link: link.name.clone(), kind: link.kind.clone() }));
    // Said of what is there now: whether this plan makes it again, or an earlier round did.
    plan.losses.retain(|loss| !matches!(loss, Loss::Without { .. }));
    let again = touched.whole.iter().filter(|name| !lost.contains(**name));
    let again = again.filter_map(|name| before.links.get(*name));
    plan.losses.extend(again.flat_map(|link| without_its(link, now.links.get(&link.name))));
    plan
}

/// Links that are not Berth's, and grow again when what they sit on has: the kernel shrank them along with it, and that is
/// all that is done to them. Last, because they may be as large only then.
fn shrunk(touched: &Touched<'_>, now: &Observed, before: &Observed) -> Vec<Step> {
    let mut steps = Vec::new();
    let own = |name: &&&IfName| before.links.get(**name).is_none_or(|link| link.shrinks_with.is_none());
    let mut below: BTreeSet<&IfName> = touched.links.iter().filter(own).copied().collect();
    // Some sit on others of them.
    loop {
        let size = below.len();
        for link in before.links.values() {
            if !link.shrinks_with.as_ref().is_some_and(|base| below.contains(base))
                || !below.insert(&link.name)
            {
                continue;
            }
            let is = now.links.get(&link.name).filter(|l| l.kind == link.kind).and_then(|l| l.mtu);
            if let Some((mtu, _)) = link.mtu.zip(is).filter(|(was, is)| is < was) {
                steps.push(Step::SetMtu { link: link.name.clone(), mtu });
            }
        }
        if below.len() == size {
            return steps;
        }
    }
}

/// Links that are gone and that nobody can make again, with what sat on them.
fn lost<'a>(touched: &Touched<'a>, now: &Observed, before: &'a Observed) -> BTreeSet<&'a IfName> {
    let gone: Vec<&Link> = touched
        .links
        .iter()
        .filter(|name| !now.links.contains_key(**name))
        .filter_map(|name| before.links.get(*name))
        .collect();
    let mut lost: BTreeSet<&IfName> = gone.iter().filter(|l| !can_be_made(l)).map(|l| &l.name).collect();
    loop {
        let size = lost.len();
        let above = gone.iter().filter(|l| l.sits_on().is_some_and(|base| lost.contains(base)));
        let above: Vec<&IfName> = above.map(|l| &l.name).collect();
        lost.extend(above);
        if lost.len() == size {
            return lost;
        }
    }
}

/// The ways of a route that don't lead through these links; nothing, if there are none.
fn without(route: &Route, lost: &BTreeSet<&IfName>) -> Option<Route> {
    let mut route = route.clone();
    let ways = route.next_hops.len();
    route.next_hops.retain(|hop| !lost.contains(&hop.dev));
    (route.next_hops.len() == ways || !route.next_hops.is_empty()).then_some(route)
}

/// Routes that were there before, went with what a plan touched, are not there now, and are nobody's to bring back but the
/// kernel's: it learns them from routers, and one that was put there by hand would keep it from that.
pub(super) fn unreturned(plan: &Plan, now: &Observed, before: &Observed) -> Vec<Loss> {
    let touched = touched(plan, now, before);
    let there: BTreeSet<RouteKey> = now.routes.iter().map(Route::key).collect();
    let learnt = before.routes.iter().filter(|r| is_learnt(r, before) && touched.routes.contains(&r.key()));
    learnt.filter(|r| !there.contains(&r.key())).map(|r| Loss::Route { route: r.clone() }).collect()
}

/// Whether the kernel had it from the wire. What routers announce may also be a daemon's to hear, where the kernel
/// doesn't.
fn is_learnt(route: &Route, before: &Observed) -> bool {
    let deaf = |dev: &IfName| before.links.get(dev).is_some_and(|l| l.ipv6.accept_ra == Some(AcceptRa::Off));
    let by_daemon = route.protocol == RouteProtocol::RA && route.next_hops.iter().all(|hop| deaf(&hop.dev));
    route.protocol.is_kernels() && !by_daemon
}

/// Routes by what tells them apart.
fn by_key(routes: &[Route]) -> BTreeMap<RouteKey, Vec<&Route>> {
    let mut map: BTreeMap<RouteKey, Vec<&Route>> = BTreeMap::new();
    for route in routes {
        map.entry(route.key()).or_default().push(route);
    }
    map
}

/// Whether two routes of one key have anything in common: a way, or having none.
fn have_a_way(one: &Route, other: &Route) -> bool {
    let shared = |hop: &NextHop| other.next_hops.iter().any(|h| h.is_same_way(hop));
    let neither = one.next_hops.is_empty() && other.next_hops.is_empty();
    neither && one.kind == other.kind || one.next_hops.iter().any(shared)
}

impl Touched<'_> {
    /// What of a route stays: all of it if it is somebody else's, who may have added one beside the plan's; nothing of the
    /// plan's, nor of one that is to be as it was. To one of IPv6 others may have added ways.
    fn left_of(&self, mut route: Route, known: &BTreeMap<RouteKey, Vec<&Route>>) -> Option<Route> {
        let key = route.key();
        let said = self.said.get(&key).map_or(&[][..], Vec::as_slice);
        let ours = said.iter().any(|r| have_a_way(r, &route));
        if let Some(was) = known.get(&key) {
            let goes = self.routes.contains(&key) && (ours || was.iter().any(|r| have_a_way(r, &route)));
            return (!goes).then_some(route);
        }
        if !ours || !route.protocol.is_config() {
            return Some(route);
        }
        let theirs = |hop: &NextHop| !said.iter().any(|r| r.next_hops.iter().any(|h| h.is_same_way(hop)));
        route.next_hops.retain(theirs);
        route.settle_hops();
        (!route.next_hops.is_empty()).then_some(route)
    }

    /// Whether the plan may be why it is gone.
    fn took(&self, kept: &Kept, before: &Observed) -> bool {
        if kept.kind == KeptKind::Rule {
            return kept
                .rule
                .as_ref()
                .is_some_and(|plain| self.rules.iter().any(|rule| rule.could_mean(plain)));
        }
        let sent_from = |ip: IpAddr| {
            let links = self.links.iter().filter_map(|name| before.links.get(*name));
            links.flat_map(|l| l.ipv4.addresses.iter().chain(&l.ipv6.addresses)).any(|a| a.ip == ip)
        };
        // Proxied neighbours go with their link's carrier, when the kernel notices: a moment later, or not at all if it is back by then.
        let near = if kept.kind == KeptKind::Neighbour { &self.carried } else { &self.links };
        kept.hops.iter().any(|hop| near.contains(&hop.dev)) || kept.source.is_some_and(sent_from)
    }
}

/// A link as it was, but for what nobody puts back: link-locals that the kernel makes, leases that came or went
/// in the meantime on a link that stayed, and what somebody else did to it.
fn restored(before: &Link, now: Option<&Link>, touched: &Touched<'_>) -> Link {
    let mut link = before.clone();
    let Some(now) = now else {
        link.ipv6.addresses.retain(|a| !a.is_kernel_link_local());
        return link;
    };
    let has = |list: &[Address], a: &Address| list.iter().any(|b| b.same(a));
    link.ipv6.addresses.retain(|a| !a.is_kernel_link_local() || has(&now.ipv6.addresses, a));
    for family in crate::state::Family::BOTH {
        let there = &now.ip(family).addresses;
        let ip = link.ip_mut(family);
        let theirs = |a: &&Address| !touched.addresses.contains(&(&before.name, a.ip));
        let new: Vec<_> = there.iter().filter(|a| theirs(a) && !has(&ip.addresses, a)).cloned().collect();
        ip.addresses.extend(new);
    }
    if !touched.whole.contains(&before.name) && !touched.labelled.contains(&before.name) {
        link.alias.clone_from(&now.alias);
        link.alt_names.clone_from(&now.alt_names);
    }
    // Set as it is made; on a link that stayed it is somebody else's doing.
    if !touched.whole.contains(&before.name) {
        link.attributes.clone_from(&now.attributes);
        link.kind_attributes.clone_from(&now.kind_attributes);
        link.unkept.clone_from(&now.unkept);
    }
    // Where nobody looked before there is nothing to go back to.
    link.ipv6.accept_ra = link.ipv6.accept_ra.or(now.ipv6.accept_ra.map(|_| AcceptRa::On));
    link
}

/// Links with everything that rests on them or belongs to them, in both states; routes and rules by step.
fn touched<'a>(plan: &'a Plan, now: &'a Observed, before: &'a Observed) -> Touched<'a> {
    let mut out = Touched::default();
    for step in &plan.steps {
        match step {
            Step::AddRoute { route }
            | Step::AppendRoute { route }
            | Step::ReplaceRoute { route }
            | Step::DeleteRoute { route } => {
                out.routes.insert(route.key());
                out.said.entry(route.key()).or_default().push(route);
            }
            Step::AddRule { rule } | Step::DeleteRule { rule } => {
                out.rules.insert(rule);
            }
            Step::SetDns { .. } => out.dns = true,
            Step::SetHostname { .. } => out.hostname = true,
            Step::CreateLink(new) => {
                let both = std::iter::once(&new.name).chain(&new.peer);
                out.whole.extend(both.clone());
                out.links.extend(both);
            }
            other => {
                out.links.extend(other.link());
                match other {
                    Step::DeleteLink { link, .. } => {
                        out.whole.insert(link);
                        out.whole.extend(before.links.get(link).and_then(|link| link.peer.as_ref()));
                    }
                    Step::SetAlias { link, .. }
                    | Step::AddAltName { link, .. }
                    | Step::DeleteAltName { link, .. } => {
                        out.labelled.insert(link);
                    }
                    Step::AddAddress { link, address } | Step::ReplaceAddress { link, address } => {
                        out.addresses.insert((link, address.ip));
                    }
                    _ => {}
                }
            }
        }
    }
    if !out.links.is_empty() {
        spread(&mut out.links, now, before);
        out.carried = out.links.clone();
        let links = now.links.values().chain(before.links.values());
        let ports = links.filter(|link| out.links.contains(&link.name));
        out.carried.extend(ports.filter_map(|link| link.controller.as_ref()));
        spread(&mut out.carried, now, before);
        // A route may have lost one of several ways, and then is there but is another one.
        for route in now.routes.iter().chain(&before.routes) {
            if route.next_hops.iter().any(|hop| out.links.contains(&hop.dev)) {
                out.routes.insert(route.key());
            }
        }
    }
    out
}

/// A step on a link may have changed what sits on it, its ports, its other end.
fn spread<'a>(links: &mut BTreeSet<&'a IfName>, now: &'a Observed, before: &'a Observed) {
    loop {
        let size = links.len();
        for link in now.links.values().chain(before.links.values()) {
            let near = [link.sits_on(), link.controller.as_ref(), link.peer.as_ref()];
            if near.into_iter().flatten().any(|n| links.contains(n)) {
                links.insert(&link.name);
            }
        }
        if links.len() == size {
            return;
        }
    }
}
