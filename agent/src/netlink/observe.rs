//! The network state of a namespace: one dump per kind of object, whatever their number.
//!
//! Cost: six requests (links, addresses, routes, rules, neighbours, and those that are proxied, which the kernel shows only
//! by themselves and on any link); where there is a bridge one for VLANs, one for multicast groups and, as with tunnels, one
//! for what is forwarded; one for next hop objects where a route leads through one; one small file; and again all of them if something changed between two dumps so that an index has no name.

mod carrier;
mod dumps;
mod kept;
mod queues;

use std::collections::BTreeMap;
use std::net::IpAddr;

use policy::state::{
    AddressProtocol, Family, IfName, LinkKind, LinkLocal, NextHop, Observed, PortVlan, Route,
};

use carrier::Carriers;
use dumps::{Seen, Unnamed, dump_addresses, dump_links};

use super::decode::address::{Probe, SeenAddress};
use super::decode::link::SeenLink;
use super::decode::route::{SeenHop, SeenRoute};
use super::kind::{self, Names};
use super::socket::{NetlinkError, Socket};
use super::wire::{Attrs, Malformed};

/// Kinds that are not Berth's to change, whose MTU follows that of the link they sit on, and that go with it.
const SHRINKING: [&str; 4] = ["macvtap", "ipvlan", "ipvtap", "macsec"];
/// Times a state is read again that changed while it was read.
const TRIES: usize = 10;

/// Why a state couldn't be observed.
#[derive(Debug, thiserror::Error)]
pub enum ObserveError {
    #[error("can't read the {what} of this network namespace")]
    Dump { what: &'static str, source: NetlinkError },
    #[error("links came and went under each of {tries} readings of the network state")]
    Unsteady { tries: usize },
}

/// An address and where it is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Placed {
    pub link: IfName,
    pub ip: IpAddr,
}

/// A state, and what is true of it only now.
#[derive(Clone, Debug, Default)]
pub struct Observation {
    pub state: Observed,
    /// IPv6 addresses that are still being probed, on links where that can end.
    pub tentative: Vec<Placed>,
    /// The same on links whose carrier may come yet: their probe has not begun.
    pub unprobed: Vec<Placed>,
    /// IPv6 addresses that somebody else on the wire has.
    pub duplicate: Vec<Placed>,
    /// Messages of the kernel that couldn't be read: what they said is missing from the state.
    pub unreadable: usize,
}

/// Everything in the namespace of the socket.
pub(super) fn observe(socket: &mut Socket) -> Result<(Observation, Names), ObserveError> {
    for _ in 0..TRIES {
        let seen = Seen::dump(socket)?;
        if let Some((mut seen, names)) = seen.assemble() {
            seen.state.new_links_lack_ipv6 = new_links_lack_ipv6();
            queues::settle(&mut seen.state);
            return Ok((seen, names));
        }
    }
    Err(ObserveError::Unsteady { tries: TRIES })
}

/// No message says it. Where there is no such switch there is no IPv6 to speak of.
fn new_links_lack_ipv6() -> bool {
    let switch = std::fs::read_to_string("/proc/sys/net/ipv6/conf/default/disable_ipv6");
    switch.is_ok_and(|value| value.trim() != "0")
}

/// Whether an address is being probed, on a link where that can end.
pub(super) fn is_tentative(socket: &mut Socket, ip: IpAddr) -> Result<bool, ObserveError> {
    let links = dump_links(socket)?.items;
    let can_end = |index: u32| links.iter().any(|seen| seen.index == index && seen.running);
    let addresses = dump_addresses(socket)?.items;
    let probed = |seen: &SeenAddress| seen.address.ip == ip && seen.probe == Probe::Tentative;
    Ok(addresses.iter().any(|seen| probed(seen) && can_end(seen.index)))
}

/// Names and indexes of all links.
pub(super) fn names(socket: &mut Socket) -> Result<Names, ObserveError> {
    let links = dump_links(socket)?;
    Ok(names_of(&links.items))
}

fn names_of(links: &[SeenLink]) -> Names {
    let mut names = Names::default();
    for seen in links {
        names.insert(seen.index, seen.link.name.clone());
    }
    names
}

impl Seen {
    /// Names in place of indexes; `None` if an index has none, because a link came or went between the dumps.
    fn assemble(self) -> Option<(Observation, Names)> {
        let names = names_of(&self.links);
        let mut seen = Observation { unreadable: self.unreadable, ..Observation::default() };
        let kinds: BTreeMap<u32, LinkKind> =
            self.links.iter().map(|seen| (seen.index, seen.link.kind.clone())).collect();
        let running: BTreeMap<u32, bool> = self.links.iter().map(|seen| (seen.index, seen.running)).collect();
        let ways: BTreeMap<IfName, LinkLocal> =
            self.links.iter().filter_map(|seen| Some((seen.link.name.clone(), seen.link_local?))).collect();
        let mut links: BTreeMap<u32, policy::state::Link> = BTreeMap::new();
        for mut link in self.links {
            if complete(&mut link, &names, &kinds)? {
                seen.unreadable += 1;
            }
            links.insert(link.index, link.link);
        }
        drop_pointless(&mut links, &names);
        let mut unprobed = Vec::new();
        for found in self.addresses {
            let link = links.get_mut(&found.index)?;
            let place = || Placed { link: link.name.clone(), ip: found.address.ip };
            match found.probe {
                Probe::Tentative if running.get(&found.index) == Some(&true) => seen.tentative.push(place()),
                Probe::Tentative => unprobed.push((found.index, place())),
                Probe::Failed => seen.duplicate.push(place()),
                _ => {}
            }
            add_address(link, found.address);
        }
        let carriers = Carriers { links: &links, running: &running };
        unprobed.retain(|(index, _)| carriers.may_come(*index));
        seen.unprobed = unprobed.into_iter().map(|(_, place)| place).collect();
        for vlans in self.vlans {
            // The bridge itself is listed among its ports.
            let link = links.get(&vlans.index)?;
            let own = link.kind == LinkKind::LinuxBridge;
            let bridge = if own { Some(vlans.index) } else { bridge_of(link, &names) };
            let Some(bridge) = bridge.and_then(|index| links.get(&index)) else { continue };
            // Some kernels have no VLANs on bridges.
            let can = bridge.options.contains_key(&policy::state::kind::DEFAULT_PVID.name());
            let native = vlans.pvid.filter(|id| *id != bridge.default_pvid());
            let link = links.get_mut(&vlans.index)?;
            link.vlans = Some(vlans.all).filter(|_| can);
            if !own {
                link.port.vlan = PortVlan::new(native, vlans.tagged);
            }
        }
        let objects = kept::by_object(&self.next_hops);
        for mut found in self.routes {
            if found.hops.is_empty()
                && let Some(hops) = found.object.and_then(|id| objects.get(&id))
            {
                found.hops.clone_from(hops);
            }
            seen.state.routes.push(name_route(found, &names)?);
        }
        for found in self.next_hops {
            seen.state.kept.push(kept::name(found, &objects, &names)?);
        }
        for found in self.kept {
            let found = match found {
                Unnamed::Kept(found) if kept::is_default(&found, &links) => continue,
                Unnamed::Kept(found) => *found,
                Unnamed::Made(made) if kept::is_derived(&made, &links) => continue,
                Unnamed::Made(made) => match made.kept() {
                    Ok(found) => found,
                    Err(Malformed) => {
                        seen.unreadable += 1;
                        continue;
                    }
                },
            };
            seen.state.kept.push(kept::name(found, &objects, &names)?);
        }
        seen.state.rules = self.rules;
        seen.state.links = links.into_values().map(|link| (link.name.clone(), link)).collect();
        seen.state.tell_link_locals(|name| ways.get(name).copied());
        Some((seen, names))
    }
}

/// The bridge whose port a link is.
fn bridge_of(link: &policy::state::Link, names: &Names) -> Option<u32> {
    names.by_name.get(link.controller.as_ref()?).copied()
}

/// Puts names to what a link says by index, and reads its options; whether some of it couldn't be read.
fn complete(seen: &mut SeenLink, names: &Names, kinds: &BTreeMap<u32, LinkKind>) -> Option<bool> {
    let link = &mut seen.link;
    if let Some(index) = seen.controller {
        link.controller = Some(names.by_index.get(&index)?.clone());
    }
    let lower = seen.lower.filter(|index| *index != seen.index);
    match link.kind {
        LinkKind::Vlan | LinkKind::Vxlan | LinkKind::MacVlan => {
            link.base = lower.and_then(|index| names.by_index.get(&index)).cloned();
        }
        // An end whose other end is elsewhere has an index that may be anybody's here.
        LinkKind::Veth => {
            let peer = lower.filter(|index| kinds.get(index) == Some(&LinkKind::Veth));
            link.peer = peer.and_then(|index| names.by_index.get(&index)).cloned();
        }
        LinkKind::Other(ref kind) if SHRINKING.contains(&kind.as_str()) => {
            link.shrinks_with = lower.and_then(|index| names.by_index.get(&index)).cloned();
        }
        _ => {}
    }
    let mut broken = false;
    match Attrs::of(&seen.data).and_then(|data| kind::read(&link.kind, data, names)) {
        Ok(options) if !seen.data.is_empty() => link.options = options,
        Ok(_) => {}
        Err(Malformed) => broken = true,
    }
    if let Some((controller, data)) = &seen.port {
        match Attrs::of(data).and_then(|data| kind::read_port(controller, data, names)) {
            Ok(options) => link.port.options = options,
            Err(Malformed) => broken = true,
        }
    }
    Some(broken)
}

/// Options of ports that mean nothing under their controller: the kernel shows them, and won't have them set.
fn drop_pointless(links: &mut BTreeMap<u32, policy::state::Link>, names: &Names) {
    let ports: Vec<(u32, u32)> = links
        .iter()
        .filter(|(_, link)| !link.port.options.is_empty())
        .filter_map(|(port, link)| Some((*port, *names.by_name.get(link.controller.as_ref()?)?)))
        .collect();
    for (port, controller) in ports {
        let Some(controller) = links.get(&controller) else { continue };
        let (spec, options) = (controller.kind.spec(), controller.options.clone());
        if let Some(link) = links.get_mut(&port) {
            let counts = |path: &str| spec.port_option(path).is_some_and(|s| s.pointless(&options).is_none());
            link.port.options.retain(|name, _| counts(name.as_str()));
        }
    }
}

fn add_address(link: &mut policy::state::Link, address: policy::state::Address) {
    let family = address.family();
    let ip = link.ip_mut(family);
    if address.is_dynamic() {
        let advertised = address.protocol == Some(AddressProtocol::KERNEL_RA)
            || (address.protocol.is_none() && address.prefix == 64);
        match family {
            Family::Ipv6 if advertised => ip.autoconf = true,
            _ => ip.dhcp = true,
        }
    }
    if family == Family::Ipv4 {
        ip.enabled = true;
    }
    ip.addresses.push(address);
}

fn name_hop(hop: &SeenHop, names: &Names) -> Option<NextHop> {
    let dev = names.by_index.get(&hop.index)?.clone();
    Some(NextHop { via: hop.via, dev, weight: hop.weight, onlink: hop.onlink })
}

fn name_route(seen: SeenRoute, names: &Names) -> Option<Route> {
    let next_hops = seen.hops.iter().map(|hop| name_hop(hop, names)).collect::<Option<Vec<_>>>()?;
    let mut route = Route {
        destination: seen.destination,
        table: seen.table,
        metric: seen.metric,
        tos: seen.tos,
        kind: seen.kind,
        protocol: seen.protocol,
        next_hops,
        object: seen.object,
        source: seen.source,
        mtu: seen.mtu,
        raw: seen.raw,
    };
    route.settle_hops();
    Some(route)
}
