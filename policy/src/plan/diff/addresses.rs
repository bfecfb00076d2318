//! Addresses, with their order. What can stay is never touched; an address that moves to another link is added
//! there before it goes here; what isn't Berth's is never taken away for the sake of order. So an address that shares its
//! subnet with a lease may come back as the lease's secondary where it was its primary.
//!
//! No IPv4 route that stays goes with the addresses of its link. Where all of them change, the new ones come first.
//! That can't be where old and new are of one subnet (`10.0.0.10/24` becomes `10.0.0.11/24`): added first, the new one
//! would be a secondary of the old, and what becomes of it when the old one goes is up to the host: with
//! `promote_secondaries` it takes its place, without it goes along, and a state doesn't say which it is. So the old one
//! goes first, and with the last address of a link the kernel takes every route through it. Therefore, where there are
//! such routes, the new address comes beforehand as a stand-in of its own (`10.0.0.11/32`), and goes when it has come
//! with its prefix: the link is never bare and keeps its routes. Only the subnet itself is out of sight between two
//! steps that follow each other; what is in it is then reached through the default route, if at all.
//!
//! What is left are direct routes through a link that is to have no address any more, and routes that have as their
//! source an address which has to go and come again: they are added as soon as the kernel will take them.

mod held;

use super::Walk;
use crate::plan::memory::{is_fixed, is_secondary, secondaries};
use crate::plan::step::Step;
use crate::plan::target::ip::arrange;
use crate::state::{
    Address, AddressProtocol, DesiredAddress, Family, IfName, Link, LinkKind, Observed, Route,
};
use held::Held;
use std::borrow::Cow;
use std::collections::BTreeSet;

/// What has to happen to one family of one link.
#[derive(Default)]
struct Change {
    remove: Vec<Address>,
    add: Vec<Address>,
    replace: Vec<Address>,
    /// Not Berth's: put back at once should the kernel take them along with a primary.
    pinned: Vec<Address>,
    order: Order,
}

/// Which go first.
#[derive(Clone, Copy, Default, PartialEq)]
enum Order {
    /// The old ones: some stay meanwhile.
    #[default]
    Old,
    /// The new ones: nothing of the old is in their way, and the link is never without an address.
    New,
    /// The old ones, and with them all there are: the link would be bare if nothing stood in.
    Swap,
}

impl Walk<'_> {
    /// Links that only gain addresses come first. Says which links have addresses to lose.
    pub(super) fn gains(&mut self, to: &Observed) -> BTreeSet<IfName> {
        let mut losing = BTreeSet::new();
        for (name, family) in self.differing(to) {
            let change = self.change(to, &name, family);
            if change.remove.is_empty() {
                self.change_address(&name, change, &Held::default());
            } else {
                losing.insert(name);
            }
        }
        losing
    }

    pub(super) fn addresses(&mut self, to: &Observed) {
        let differing = self.differing(to);
        if differing.is_empty() {
            return;
        }
        let held = Held::of(&self.work.routes, &to.routes);
        for (name, family) in differing {
            let change = self.change(to, &name, family);
            self.change_address(&name, change, &held);
        }
    }

    fn differing(&self, to: &Observed) -> Vec<(IfName, Family)> {
        let mut out = Vec::new();
        for wanted in to.links.values() {
            let Some(now) = self.work.links.get(&wanted.name).filter(|now| !now.ignored) else {
                continue;
            };
            for family in Family::BOTH {
                if now.ip(family).addresses != wanted.ip(family).addresses {
                    out.push((wanted.name.clone(), family));
                }
            }
        }
        out
    }

    fn change(&self, to: &Observed, name: &IfName, family: Family) -> Change {
        let (Some(now), Some(wanted)) = (self.work.links.get(name), to.links.get(name)) else {
            return Change::default();
        };
        let from = &now.ip(family).addresses;
        let to = &self.without_leases(now, wanted, family);
        let mut change = match family {
            Family::Ipv4 => ipv4(from, to, &wanted.kind),
            Family::Ipv6 => ipv6(from, to, &wanted.kind),
        };
        change.pinned = from
            .iter()
            .filter(|a| is_pinned(a, to, &wanted.kind) && !a.is_kernel_link_local())
            .cloned()
            .collect();
        // The kernel makes its own again, and whoever renews a lease does when the link is up: added by another to a
        // link that is down, it would never get its subnet's route.
        change.add.retain(|a| !a.is_kernel_link_local() && (now.up || !a.is_dynamic()));
        for wanted in to.iter() {
            let Some(found) = from.iter().find(|a| a.same(wanted)) else {
                continue;
            };
            let gone = change.remove.iter().any(|a| a.same(found));
            let by = wanted.protocol.filter(|by| *by != AddressProtocol::UNSPEC);
            let marked = by.is_some() && wanted.protocol != found.protocol;
            if !gone && (marked || wanted.is_dynamic() != found.is_dynamic()) {
                change.replace.push(wanted.clone());
            }
        }
        change
    }

    /// Nobody renews a lease of a link that is down: one that is gone and was asked for by name comes back as static.
    fn without_leases<'w>(&self, now: &Link, wanted: &'w Link, family: Family) -> Cow<'w, [Address]> {
        let (from, to) = (&now.ip(family).addresses, &wanted.ip(family).addresses);
        let is_gone = |a: &Address| a.is_dynamic() && !from.iter().any(|f| f.is_dynamic() && f.same(a));
        if now.up || !to.iter().any(is_gone) {
            return Cow::Borrowed(to);
        }
        let asked = self.asked.addresses.get(&now.name).into_iter().flatten();
        let list: Vec<DesiredAddress> =
            asked.filter(|a| a.ip.is_ipv4() == (family == Family::Ipv4)).cloned().collect();
        let is_lost = |a: &Address| is_gone(a) && list.iter().any(|l| l.ip == a.ip && l.prefix == a.prefix);
        if !to.iter().any(is_lost) {
            return Cow::Borrowed(to);
        }
        let forever = |a: &Address| Address { lifetime: a.lifetime.filter(|_| !is_lost(a)), ..a.clone() };
        let found: Vec<Address> = to.iter().map(forever).collect();
        Cow::Owned(arrange(&found, &list, &wanted.kind, family))
    }

    fn change_address(&mut self, link: &IfName, change: Change, held: &Held<'_>) {
        let routes = self.work.routes.len();
        let stand_in = self.stand_in(link, &change).filter(|_| held.has(link));
        if let Some(address) = stand_in.clone() {
            self.step(Step::AddAddress { link: link.clone(), address });
        }
        let (early, late) = match change.order {
            Order::New => (change.add, Vec::new()),
            Order::Old | Order::Swap => (Vec::new(), change.add),
        };
        for address in early {
            self.step(Step::AddAddress { link: link.clone(), address });
        }
        for address in change.remove {
            self.step(Step::DeleteAddress { link: link.clone(), address });
        }
        self.restore(routes, held.of_link(link));
        let taken = |address: &Address| !self.has(link, address);
        let back: Vec<Address> = change.pinned.into_iter().filter(taken).collect();
        for address in back {
            self.step(Step::AddAddress { link: link.clone(), address });
            self.restore(routes, held.of_link(link));
        }
        for address in change.replace {
            self.step(Step::ReplaceAddress { link: link.clone(), address });
        }
        for address in late {
            self.step(Step::AddAddress { link: link.clone(), address });
            self.restore(routes, held.of_link(link));
        }
        if let Some(address) = stand_in {
            self.step(Step::DeleteAddress { link: link.clone(), address });
        }
    }

    fn has(&self, link: &IfName, address: &Address) -> bool {
        self.work.links.get(link).is_some_and(|l| l.ip(address.family()).position(address).is_some())
    }

    /// For a link that would be bare: an address that is to come, as one of its own whatever subnet the old ones are
    /// of. Not one that is there like that, or is to be: it would get in the wrong place.
    fn stand_in(&self, link: &IfName, change: &Change) -> Option<Address> {
        let coming = || change.add.iter().chain(&change.pinned).filter(|_| change.order == Order::Swap);
        // Nobody's: a revert in the middle would leave a lease, or a mark that isn't Berth's, alone.
        let alone = |a: &Address| Address::new(a.ip, a.family().max_prefix());
        coming().map(alone).find(|a| !self.has(link, a) && !coming().any(|b| b.same(a)))
    }

    /// Adds again what the kernel took along, if there are fewer routes than before and as far as they can be by now;
    /// the rest comes with the other routes.
    fn restore<'r>(&mut self, before: usize, routes: impl Iterator<Item = &'r Route>) {
        if self.work.routes.len() >= before {
            return;
        }
        for route in routes {
            if !self.work.routes.contains(route) {
                self.attempt(Step::AddRoute { route: route.clone() });
            }
        }
    }
}

/// Stays where it is: not Berth's, and wanted as such. A lease that is to become static may be moved.
fn is_pinned(address: &Address, wanted: &[Address], kind: &LinkKind) -> bool {
    let theirs = |a: &Address| a.is_foreign() || is_fixed(kind, a);
    theirs(address) && wanted.iter().any(|w| w.same(address) && theirs(w))
}

/// Primaries and secondaries of a list, each in order.
fn roles<'a>(list: &'a [Address]) -> (Vec<&'a Address>, Vec<&'a Address>) {
    let (second, first): (Vec<_>, Vec<_>) = list.iter().zip(secondaries(list)).partition(|(_, is)| *is);
    let bare = |list: Vec<(&'a Address, bool)>| list.into_iter().map(|(address, _)| address).collect();
    (bare(first), bare(second))
}

/// The longest beginning of `wanted` that stands in `now` in that order.
fn prefix<'a>(wanted: &[&'a Address], now: &[&Address], fits: impl Fn(&Address) -> bool) -> Vec<&'a Address> {
    let mut at = 0;
    let mut kept = Vec::new();
    for address in wanted {
        match now.iter().skip(at).position(|n| n.same(address)) {
            Some(offset) if fits(address) => {
                at += offset + 1;
                kept.push(*address);
            }
            _ => break,
        }
    }
    kept
}

/// The kernel appends: a beginning can stay. Secondaries stay only with their primary, and go before it does, so
/// that it makes no difference whether the host promotes secondaries.
fn ipv4(now: &[Address], wanted: &[Address], kind: &LinkKind) -> Change {
    let ((now_first, now_second), (first, second)) = (roles(now), roles(wanted));
    let pinned: Vec<&Address> = now.iter().filter(|a| is_pinned(a, wanted, kind)).collect();
    let is_in = |list: &[&Address], a: &Address| list.iter().any(|k| k.same(a));
    let free = |list: Vec<&'_ Address>| -> Vec<Address> {
        list.into_iter().filter(|a| !is_in(&pinned, a)).cloned().collect()
    };
    let (first, second) = (free(first), free(second));
    let (first, second): (Vec<&Address>, Vec<&Address>) = (first.iter().collect(), second.iter().collect());
    // Each scope has a row of its own among them, to whose end the kernel appends.
    let mut kept: Vec<&Address> = Vec::new();
    let scopes: BTreeSet<u8> = first.iter().map(|a| a.scope()).collect();
    for scope in scopes {
        let wanted: Vec<&Address> = first.iter().copied().filter(|a| a.scope() == scope).collect();
        let now: Vec<&Address> = now_first.iter().copied().filter(|a| a.scope() == scope).collect();
        kept.extend(prefix(&wanted, &now, |_| true));
    }
    // A lease may be a secondary itself, and then is nobody's primary.
    let leads = |a: &&&Address| is_in(&kept, a) || is_in(&pinned, a);
    let leaders: Vec<Address> = now_first.iter().filter(leads).map(|a| (*a).clone()).collect();
    let seconds = prefix(&second, &now_second, |a| is_secondary(&leaders, a));
    kept.extend(seconds);
    kept.extend(pinned.iter().copied());
    let leave = |list: &[&Address]| -> Vec<Address> {
        list.iter().rev().filter(|a| !is_in(&kept, a)).map(|a| (*a).clone()).collect()
    };
    let (mut remove, primaries) = (leave(&now_second), leave(&now_first));
    // Secondaries that stay (a lease) may go along with their primary, and are then put back.
    let bare = kept.iter().all(|k| is_secondary(&primaries, k));
    remove.extend(primaries);
    let add: Vec<Address> = wanted.iter().filter(|a| !is_in(&kept, a)).cloned().collect();
    let order = match add.iter().any(|a| is_secondary(&remove, a)) {
        false if kept.is_empty() => Order::New,
        _ if bare => Order::Swap,
        _ => Order::Old,
    };
    Change { remove, add, order, ..Change::default() }
}

/// The kernel puts the newest first: an end can stay, and the first is added last. Link-locals that the kernel
/// made are left alone.
fn ipv6(now: &[Address], wanted: &[Address], kind: &LinkKind) -> Change {
    let stays = |a: &Address| a.is_kernel_link_local() || is_pinned(a, wanted, kind);
    let theirs: Vec<&Address> = now.iter().filter(|a| stays(a)).collect();
    let free: Vec<&Address> = wanted.iter().rev().filter(|a| !theirs.iter().any(|t| t.same(a))).collect();
    let backwards: Vec<&Address> = now.iter().rev().filter(|a| !stays(a)).collect();
    let kept = prefix(&free, &backwards, |_| true);
    let is_kept = |a: &Address| kept.iter().any(|k| k.same(a));
    let remove = backwards.iter().filter(|a| !is_kept(a)).map(|a| (*a).clone()).collect();
    let add = free.iter().filter(|a| !is_kept(a)).map(|a| (*a).clone()).collect();
    Change { remove, add, ..Change::default() }
}
