//! Addresses, with their order. What can stay is never touched; an address that moves to another link is added
//! there before it goes here; what isn't Berth's is never taken away for the sake of order.
//!
//! One change leaves a link without routes for a moment: an IPv4 address that gives way to another one of the same
//! subnet (`10.0.0.10/24` becomes `10.0.0.11/24`). Added first, the new one would be a secondary of the old, and
//! what becomes of it when the old one goes is up to the host: with `promote_secondaries` it takes its place, without
//! it goes along, and a state doesn't say which it is. So the old one goes first. With the last IPv4 address of the
//! link go all its IPv4 routes, with any address the routes that have it as their source; they are away from that
//! step until the steps right after the addresses, of the same plan, add them again. Should one of those fail, the
//! revert brings back address and routes alike. Addresses of different subnets have no such gap: the new one comes
//! first.

use super::Walk;
use crate::plan::memory::{is_fixed, is_secondary};
use crate::plan::step::Step;
use crate::state::{Address, Family, IfName, LinkKind, Observed};
use std::collections::BTreeSet;

/// What has to happen to one family of one link.
#[derive(Default)]
struct Change {
    remove: Vec<Address>,
    add: Vec<Address>,
    replace: Vec<Address>,
    /// Not Berth's: put back at once should the kernel take them along with a primary.
    pinned: Vec<Address>,
    /// Nothing of the old is in the way of the new: the link is never without an address.
    add_first: bool,
}

impl Walk<'_> {
    /// Links that only gain addresses come first. Says which links have addresses to lose.
    pub(super) fn gains(&mut self, to: &Observed) -> BTreeSet<IfName> {
        let mut losing = BTreeSet::new();
        for (name, family) in self.differing(to) {
            let change = self.change(to, &name, family);
            if change.remove.is_empty() {
                self.change_address(&name, change);
            } else {
                losing.insert(name);
            }
        }
        losing
    }

    pub(super) fn addresses(&mut self, to: &Observed) {
        for (name, family) in self.differing(to) {
            let change = self.change(to, &name, family);
            self.change_address(&name, change);
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
        let (from, to) = (&now.ip(family).addresses, &wanted.ip(family).addresses);
        let mut change = match family {
            Family::Ipv4 => ipv4(from, to, &wanted.kind),
            Family::Ipv6 => ipv6(from, to, &wanted.kind),
        };
        change.pinned = from
            .iter()
            .filter(|a| is_pinned(a, to, &wanted.kind) && !a.is_kernel_link_local())
            .cloned()
            .collect();
        for wanted in to {
            let Some(found) = from.iter().find(|a| a.same(wanted)) else {
                continue;
            };
            let gone = change.remove.iter().any(|a| a.same(found));
            let marked = wanted.protocol.is_some() && wanted.protocol != found.protocol;
            if !gone && (marked || wanted.is_dynamic() != found.is_dynamic()) {
                change.replace.push(wanted.clone());
            }
        }
        change
    }

    fn change_address(&mut self, name: &IfName, change: Change) {
        let make = |list: Vec<Address>, step: fn(IfName, Address) -> Step| -> Vec<Step> {
            list.into_iter()
                .map(|address| step(name.clone(), address))
                .collect()
        };
        let mut adds = make(change.add, |link, address| Step::AddAddress { link, address });
        let removes = make(change.remove, |link, address| Step::DeleteAddress {
            link,
            address,
        });
        let replaces = make(change.replace, |link, address| Step::ReplaceAddress {
            link,
            address,
        });
        if change.add_first {
            adds.drain(..).for_each(|step| self.step(step));
        }
        removes.into_iter().for_each(|step| self.step(step));
        for address in change.pinned {
            let there = self
                .work
                .links
                .get(name)
                .map(|l| l.ip(address.family()).position(&address));
            if there == Some(None) {
                self.step(Step::AddAddress {
                    link: name.clone(),
                    address,
                });
            }
        }
        replaces.into_iter().chain(adds).for_each(|step| self.step(step));
    }
}

/// Stays where it is: not Berth's, and wanted as such. A lease that is to become static may be moved.
fn is_pinned(address: &Address, wanted: &[Address], kind: &LinkKind) -> bool {
    let theirs = |a: &Address| a.is_foreign() || is_fixed(kind, a);
    theirs(address) && wanted.iter().any(|w| w.same(address) && theirs(w))
}

/// Primaries and secondaries of a list, each in order.
fn roles(list: &[Address]) -> (Vec<&Address>, Vec<&Address>) {
    let (secondaries, primaries) =
        (0..list.len()).partition::<Vec<_>, _>(|i| is_secondary(&list[..*i], &list[*i]));
    (
        primaries.into_iter().map(|i| &list[i]).collect(),
        secondaries.into_iter().map(|i| &list[i]).collect(),
    )
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
    let mut kept = prefix(&first, &now_first, |_| true);
    let with_primary = |a: &Address| {
        let subnet = (a.subnet(), a.prefix);
        kept.iter()
            .chain(&pinned)
            .any(|k| (k.subnet(), k.prefix) == subnet)
    };
    let seconds = prefix(&second, &now_second, with_primary);
    kept.extend(seconds);
    kept.extend(pinned.iter().copied());
    let leave = |list: &[&Address]| -> Vec<Address> {
        list.iter()
            .rev()
            .filter(|a| !is_in(&kept, a))
            .map(|a| (*a).clone())
            .collect()
    };
    let mut remove = leave(&now_second);
    remove.extend(leave(&now_first));
    let add: Vec<Address> = wanted.iter().filter(|a| !is_in(&kept, a)).cloned().collect();
    let clash = |a: &Address| {
        remove
            .iter()
            .any(|r| r.subnet() == a.subnet() && r.prefix == a.prefix)
    };
    let add_first = kept.is_empty() && !add.iter().any(clash);
    Change {
        remove,
        add,
        add_first,
        ..Change::default()
    }
}

/// The kernel puts the newest first: an end can stay, and the first is added last. Link-locals that the kernel
/// made are left alone.
fn ipv6(now: &[Address], wanted: &[Address], kind: &LinkKind) -> Change {
    let stays = |a: &Address| a.is_kernel_link_local() || is_pinned(a, wanted, kind);
    let theirs: Vec<&Address> = now.iter().filter(|a| stays(a)).collect();
    let free: Vec<&Address> = wanted
        .iter()
        .rev()
        .filter(|a| !theirs.iter().any(|t| t.same(a)))
        .collect();
    let backwards: Vec<&Address> = now.iter().rev().filter(|a| !stays(a)).collect();
    let kept = prefix(&free, &backwards, |_| true);
    let is_kept = |a: &Address| kept.iter().any(|k| k.same(a));
    let remove = backwards
        .iter()
        .filter(|a| !is_kept(a))
        .map(|a| (*a).clone())
        .collect();
    let add = free
        .iter()
        .filter(|a| !is_kept(a))
        .map(|a| (*a).clone())
        .collect();
    Change {
        remove,
        add,
        ..Change::default()
    }
}
