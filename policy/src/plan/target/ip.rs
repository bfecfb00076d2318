//! Addresses: a list is the whole list of static ones; what somebody else renews is theirs.

use super::Merge;
use crate::plan::error::ProblemKind;
use crate::plan::memory::{is_fixed, place, secondaries};
use crate::state::{
    AcceptRa, Address, AddressProtocol, DesiredAddress, DesiredIp, DesiredLink, Family, Ip, LinkKind,
    LinkState,
};
use std::net::IpAddr;

impl Merge<'_> {
    pub(super) fn ips(&mut self, doc: &DesiredLink) {
        if !matches!(doc.state, LinkState::Up | LinkState::Down) {
            return;
        }
        for family in Family::BOTH {
            let Some(wanted) = doc.ip(family) else { continue };
            self.automatic(doc, wanted, family);
            if let Some(link) = self.state.links.get_mut(&doc.name) {
                let kind = link.kind.clone();
                merge_ip(link.ip_mut(family), wanted, family, &kind);
            }
        }
    }

    /// Where addresses are given from outside that may be said; Berth doesn't start it.
    fn automatic(&mut self, doc: &DesiredLink, wanted: &DesiredIp, family: Family) {
        let Some(found) = self.observed.links.get(&doc.name).map(|l| l.ip(family)) else {
            for (field, said, who) in fields(wanted) {
                if said == Some(true) {
                    let kind = ProblemKind::NotAutomatic { name: doc.name.clone(), who };
                    self.link_problem(doc, &format!("{family}.{field}"), kind);
                }
            }
            return;
        };
        for (field, said, who) in fields(wanted) {
            let holds = found.is_auto()
                || (field == "autoconf" && found.accept_ra.is_some_and(|ra| ra != AcceptRa::Off));
            if said == Some(true) && !holds {
                let kind = ProblemKind::NotAutomatic { name: doc.name.clone(), who };
                self.link_problem(doc, &format!("{family}.{field}"), kind);
            }
        }
    }
}

fn fields(ip: &DesiredIp) -> [(&'static str, Option<bool>, &'static str); 2] {
    [("dhcp", ip.dhcp, "DHCP"), ("autoconf", ip.autoconf, "router advertisements")]
}

fn merge_ip(ip: &mut Ip, wanted: &DesiredIp, family: Family, kind: &LinkKind) {
    if wanted.forwarding.is_some() {
        ip.forwarding = wanted.forwarding;
    }
    if wanted.enabled == Some(false) {
        (ip.dhcp, ip.autoconf) = (false, false);
        match family {
            Family::Ipv4 => ip.addresses.retain(|a| is_fixed(kind, a)),
            Family::Ipv6 => {
                ip.enabled = false;
                ip.addresses.clear();
            }
        }
        return;
    }
    if family == Family::Ipv6 && (wanted.enabled == Some(true) || has_any(wanted)) {
        ip.enabled = true;
    }
    stop_automatic(ip, wanted, family);
    if let Some(list) = &wanted.addresses {
        ip.addresses = arrange(&ip.addresses, list, kind, family);
    }
}

fn has_any(wanted: &DesiredIp) -> bool {
    wanted.addresses.as_ref().is_some_and(|list| !list.is_empty())
}

/// `dhcp: false` where there was a lease: without a list the addresses stay, as static ones (as nmstate has
/// it); with a list, the list is all. `autoconf: false` stops listening to routers.
fn stop_automatic(ip: &mut Ip, wanted: &DesiredIp, family: Family) {
    let stops = match family {
        Family::Ipv4 => wanted.dhcp == Some(false),
        Family::Ipv6 => wanted.autoconf == Some(false) && wanted.dhcp != Some(true),
    };
    if !stops || !ip.is_auto() {
        return;
    }
    (ip.dhcp, ip.autoconf) = (false, false);
    if family == Family::Ipv6 {
        ip.accept_ra = Some(AcceptRa::Off);
        ip.addresses.retain(|a| !a.is_dynamic() || listed(wanted, a));
    }
    if wanted.addresses.is_some() {
        ip.addresses.retain(|a| !a.is_dynamic() || listed(wanted, a));
    }
    for address in &mut ip.addresses {
        address.lifetime = None;
    }
}

fn listed(wanted: &DesiredIp, address: &Address) -> bool {
    wanted.addresses.iter().flatten().any(|a| a.ip == address.ip && a.prefix == address.prefix)
}

/// Whether an address stays although a list doesn't name it: it is not Berth's, or it is a link-local address where the kernel
/// makes none and the list names none. Without one there is no IPv6, and whoever manages such a link has put it there.
pub(in crate::plan) fn stays(
    address: &Address,
    found: &[Address],
    list: &[DesiredAddress],
    kind: &LinkKind,
) -> bool {
    let local = |ip: IpAddr| Address::new(ip, 64).is_link_local();
    let needed = || !found.iter().any(Address::is_kernel_link_local) && !list.iter().any(|a| local(a.ip));
    address.is_foreign() || is_fixed(kind, address) || address.is_link_local() && needed()
}

/// The addresses in the order the kernel will keep them: as listed, with those that are not Berth's left after
/// the address they follow now.
pub(in crate::plan) fn arrange(
    found: &[Address],
    list: &[DesiredAddress],
    kind: &LinkKind,
    family: Family,
) -> Vec<Address> {
    let keeps = |a: &Address| stays(a, found, list, kind);
    let mut wanted: Vec<Address> = Vec::new();
    for entry in list {
        let mut address = Address::new(entry.ip, entry.prefix);
        let known = found.iter().find(|a| a.same(&address));
        if known.is_some_and(keeps) {
            // Named or not, it stays where it is: below.
            continue;
        }
        match known {
            Some(known) => address = known.clone(),
            None if entry.pooled => address.protocol = Some(AddressProtocol::BERTH),
            // A link-local address that somebody asked for is not the kernel's.
            None if address.is_kernel_link_local() => address.protocol = Some(AddressProtocol::UNSPEC),
            None => {}
        }
        if entry.pooled && address.protocol == Some(AddressProtocol::UNSPEC) {
            address.protocol = Some(AddressProtocol::BERTH);
        }
        wanted.push(address);
    }
    let mut after: Option<&Address> = None;
    for address in found {
        if wanted.iter().any(|w| w.same(address)) {
            after = Some(address);
        } else if keeps(address) {
            let at = after.and_then(|a| wanted.iter().position(|w| w.same(a))).map_or(0, |i| i + 1);
            wanted.insert(at, address.clone());
            after = Some(address);
        }
    }
    match family {
        Family::Ipv4 => {
            let (mut placed, mut second) = (Vec::with_capacity(wanted.len()), Vec::new());
            let roles: Vec<bool> = secondaries(&wanted).collect();
            for (address, secondary) in wanted.into_iter().zip(roles) {
                if secondary { second.push(address) } else { placed.push(address) }
            }
            // Whatever was asked for: the kernel has those of a narrow scope (169.254.0.0/16) first.
            placed.sort_by_key(|address| std::cmp::Reverse(address.scope()));
            placed.append(&mut second);
            placed
        }
        // The newest comes first there.
        Family::Ipv6 => {
            let mut placed = Vec::with_capacity(wanted.len());
            wanted.into_iter().rev().for_each(|address| place(&mut placed, address));
            placed
        }
    }
}
