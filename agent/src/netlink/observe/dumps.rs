//! What the kernel is asked for, and what came: one dump per kind of object.

use nix::errno::Errno;
use policy::state::{LinkKind, Rule};

use super::ObserveError;
use crate::netlink::decode::address::SeenAddress;
use crate::netlink::decode::kept::{NEXT_HOP_HEADER, SeenKept, read_next_hop};
use crate::netlink::decode::link::{IFLA_EXT_MASK, SeenLink};
use crate::netlink::decode::route::{SeenEntry, SeenMade, SeenRoute};
use crate::netlink::decode::rule::SeenRule;
use crate::netlink::decode::vlans::SeenVlans;
use crate::netlink::decode::{AF_BRIDGE, address, group, link, neighbour, route, rule, vlans};
use crate::netlink::socket::{DUMP, Dumped, REQUEST, Socket};
use crate::netlink::wire::{Malformed, Message};

const RTM_GETLINK: u16 = 18;
const RTM_GETADDR: u16 = 22;
const RTM_GETROUTE: u16 = 26;
const RTM_GETRULE: u16 = 34;
const RTM_GETNEXTHOP: u16 = 106;
const RTM_GETNEIGH: u16 = 30;
const RTM_GETMDB: u16 = 86;

/// Statistics are most of a link's bytes, and nobody reads them here.
const SKIP_STATISTICS: u32 = 8;
const COMPRESSED_VLANS: u32 = 4;

/// What the model has no words for, or may have none for.
pub(super) enum Unnamed {
    Kept(Box<SeenKept>),
    Made(SeenMade),
}

/// What the dumps brought.
pub(super) struct Seen {
    pub(super) links: Vec<SeenLink>,
    pub(super) addresses: Vec<SeenAddress>,
    pub(super) routes: Vec<SeenRoute>,
    pub(super) rules: Vec<Rule>,
    pub(super) next_hops: Vec<SeenKept>,
    /// Routes and rules that the model has no words for, in the order in which they came.
    pub(super) kept: Vec<Unnamed>,
    pub(super) vlans: Vec<SeenVlans>,
    pub(super) unreadable: usize,
}

fn dump<T>(
    socket: &mut Socket,
    what: &'static str,
    message: &Message,
    read: fn(&[u8]) -> Result<Option<T>, Malformed>,
) -> Result<Dumped<T>, ObserveError> {
    socket.dump(message, |frame| read(frame.payload)).map_err(|source| ObserveError::Dump { what, source })
}

pub(super) fn dump_links(socket: &mut Socket) -> Result<Dumped<SeenLink>, ObserveError> {
    let mut message = Message::new(RTM_GETLINK, REQUEST | DUMP);
    message.raw(&[0; link::HEADER]).u32(IFLA_EXT_MASK, SKIP_STATISTICS);
    dump(socket, "links", &message, link::read)
}

/// A request for all of a kind.
fn plain(kind: u16, header: usize) -> Message {
    let mut message = Message::new(kind, REQUEST | DUMP);
    message.raw(&vec![0; header]);
    message
}

pub(super) fn dump_addresses(socket: &mut Socket) -> Result<Dumped<SeenAddress>, ObserveError> {
    dump(socket, "addresses", &plain(RTM_GETADDR, address::HEADER), address::read)
}

/// Some kernels have no multicast groups on bridges, and say so.
fn dump_groups(socket: &mut Socket) -> Result<Dumped<Vec<SeenKept>>, ObserveError> {
    let mut message = Message::new(RTM_GETMDB, REQUEST | DUMP);
    let mut header = [0; group::HEADER];
    header[0] = AF_BRIDGE;
    message.raw(&header);
    match dump(socket, "multicast groups", &message, group::read) {
        Err(ObserveError::Dump { source, .. })
            if source.refused().is_some_and(|why| why.errno == Errno::EOPNOTSUPP) =>
        {
            Ok(Dumped { items: Vec::new(), unreadable: 0 })
        }
        found => found,
    }
}

impl Seen {
    pub(super) fn dump(socket: &mut Socket) -> Result<Self, ObserveError> {
        let links = dump_links(socket)?;
        let addresses = dump_addresses(socket)?;
        let entries = dump(socket, "routes", &plain(RTM_GETROUTE, route::HEADER), route::read)?;
        let found = dump(socket, "rules", &plain(RTM_GETRULE, rule::HEADER), rule::read)?;
        let mut unreadable = links.unreadable + addresses.unreadable + entries.unreadable + found.unreadable;
        let (mut routes, mut rules, mut kept) =
            (Vec::with_capacity(entries.items.len()), Vec::new(), Vec::new());
        for entry in entries.items {
            match entry {
                SeenEntry::Known(route) => routes.push(*route),
                SeenEntry::Kept(seen) => kept.push(Unnamed::Kept(seen)),
                SeenEntry::Made(seen) => kept.push(Unnamed::Made(seen)),
            }
        }
        for rule in found.items {
            match rule {
                SeenRule::Known(rule) => rules.push(*rule),
                SeenRule::Kept(seen) => kept.push(Unnamed::Kept(seen)),
            }
        }
        let by_object = |seen: &Unnamed| matches!(seen, Unnamed::Kept(seen) if seen.object.is_some());
        let mut next_hops = Vec::new();
        if routes.iter().any(|route| route.object.is_some()) || kept.iter().any(by_object) {
            let plain = plain(RTM_GETNEXTHOP, NEXT_HOP_HEADER);
            let found = dump(socket, "next hop objects", &plain, read_next_hop)?;
            unreadable += found.unreadable;
            next_hops = found.items;
        }
        let neighbours =
            dump(socket, "neighbours", &plain(RTM_GETNEIGH, neighbour::HEADER), neighbour::read)?;
        unreadable += neighbours.unreadable;
        kept.extend(neighbours.items.into_iter().map(|seen| Unnamed::Kept(Box::new(seen))));
        let mut message = Message::new(RTM_GETNEIGH, REQUEST | DUMP);
        let mut header = [0; neighbour::HEADER];
        header[neighbour::FLAGS] = neighbour::PROXY;
        message.raw(&header);
        let proxies = dump(socket, "proxied neighbours", &message, neighbour::read)?;
        unreadable += proxies.unreadable;
        kept.extend(proxies.items.into_iter().map(|seen| Unnamed::Kept(Box::new(seen))));
        let forwards = |seen: &SeenLink| matches!(seen.link.kind, LinkKind::LinuxBridge | LinkKind::Vxlan);
        if links.items.iter().any(forwards) {
            let mut header = [0; neighbour::HEADER];
            header[0] = AF_BRIDGE;
            let mut message = Message::new(RTM_GETNEIGH, REQUEST | DUMP);
            message.raw(&header);
            let found = dump(socket, "forwarding entries", &message, neighbour::read_forwarding)?;
            unreadable += found.unreadable;
            kept.extend(found.items.into_iter().map(|seen| Unnamed::Kept(Box::new(seen))));
        }
        let has_bridge = links.items.iter().any(|seen| seen.link.kind == LinkKind::LinuxBridge);
        let mut vlans = Vec::new();
        if has_bridge {
            let groups = dump_groups(socket)?;
            unreadable += groups.unreadable;
            kept.extend(groups.items.into_iter().flatten().map(|seen| Unnamed::Kept(Box::new(seen))));
            let mut header = [0; link::HEADER];
            header[0] = AF_BRIDGE;
            let mut message = Message::new(RTM_GETLINK, REQUEST | DUMP);
            message.raw(&header).u32(IFLA_EXT_MASK, COMPRESSED_VLANS);
            let found = dump(socket, "bridge VLANs", &message, vlans::read)?;
            unreadable += found.unreadable;
            vlans = found.items;
        }
        Ok(Self {
            links: links.items,
            addresses: addresses.items,
            routes,
            rules,
            next_hops,
            kept,
            vlans,
            unreadable,
        })
    }
}
