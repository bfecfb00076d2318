//! `RTM_NEWNEIGH`: neighbours, and what bridges and tunnels forward, as far as somebody set them for good.
//!
//! What was learned is traffic and comes again by itself; of the entries that the kernel makes for itself (the hardware
//! addresses of ports and bridges, groups that were joined, a tunnel's own remote end) none is anybody's to give back. Left
//! out besides: entries in the filters of cards, which can't be told from the kernel's own, and proxies for all links at
//! once, which no link takes along.

use policy::state::{Family, KeptKind};

use super::kept::{SeenKept, pieces, rewritten};
use super::route::SeenHop;
use super::{AF_BRIDGE, AF_INET, AF_INET6};
use crate::netlink::kind::read_mac;
use crate::netlink::wire::{Attr, Attrs, Malformed, read_u16, read_u32};

pub(in crate::netlink) const HEADER: usize = 12;
/// Where in the header flags are.
pub(in crate::netlink) const FLAGS: usize = 10;
/// Where in the header the link's number is.
pub(in crate::netlink) const INDEX: std::ops::Range<usize> = 4..8;
pub(in crate::netlink) const NDA_IFINDEX: u16 = 8;
const NDA_DST: u16 = 1;
const NDA_LLADDR: u16 = 2;
const NDA_VLAN: u16 = 5;
const NDA_MASTER: u16 = 9;
const NDA_LINK_NETNSID: u16 = 10;
/// What a request may say: the two addresses, VLAN, port, VNIs, the way out, who set it, next hop object, more flags.
const ASKED: [u16; 10] = [1, 2, 5, 6, 7, NDA_IFINDEX, 11, 12, 13, 15];

const REACHABLE: u16 = 0x02;
const NOARP: u16 = 0x40;
const PERMANENT: u16 = 0x80;
const BY_LINK: u8 = 0x02;
const BY_BRIDGE: u8 = 0x04;
pub(in crate::netlink) const PROXY: u8 = 0x08;
/// The kernel's own words: learned elsewhere, done by hardware.
const NOT_ASKED: u8 = 0x10 | 0x20;

/// A neighbour that is there for good.
pub(in crate::netlink) fn read(payload: &[u8]) -> Result<Option<SeenKept>, Malformed> {
    let entry = Entry::read(payload)?;
    let family = match payload.first() {
        Some(&AF_INET) => Family::Ipv4,
        Some(&AF_INET6) => Family::Ipv6,
        _ => return Ok(None),
    };
    // They come in dumps of their own.
    let proxy = entry.flags & PROXY != 0;
    if entry.state & PERMANENT == 0 && !proxy || entry.index == 0 {
        return Ok(None);
    }
    let ip = entry.attrs.ip(NDA_DST).ok_or(Malformed)?;
    let mut seen = entry.kept(KeptKind::Neighbour, payload);
    seen.family = Some(family);
    seen.lead = if proxy { format!("proxy {ip}") } else { ip.to_string() };
    seen.tail = entry.mac().map(|mac| format!(" lladdr {mac}")).unwrap_or_default();
    Ok(Some(seen))
}

/// An entry of a bridge or a tunnel that is there for good.
pub(in crate::netlink) fn read_forwarding(payload: &[u8]) -> Result<Option<SeenKept>, Malformed> {
    let mut entry = Entry::read(payload)?;
    let far = entry.attrs.get(NDA_LINK_NETNSID).is_some();
    if payload.first() != Some(&AF_BRIDGE) || far {
        return Ok(None);
    }
    let to = entry.attrs.ip(NDA_DST);
    let bridge = entry.attrs.u32(NDA_MASTER);
    let by_link = entry.flags & BY_LINK != 0;
    let permanent = entry.state & PERMANENT != 0;
    let set = match bridge {
        Some(_) => !by_link && entry.state & (NOARP | PERMANENT) != 0,
        // Only tunnels say where to.
        None => by_link && entry.state & (NOARP | PERMANENT) != 0 && to.is_some(),
    };
    let Some(mac) = entry.mac().filter(|_| set) else { return Ok(None) };
    // A bridge doesn't say that it is one, and has to be told; about itself it takes it as a link.
    let port_of = bridge.filter(|bridge| *bridge != entry.index);
    if bridge.is_some() {
        entry.flags |= if port_of.is_some() { BY_BRIDGE } else { BY_LINK };
    }
    let mut seen = entry.kept(KeptKind::Forwarding, payload);
    seen.hops.extend(port_of.map(hop));
    // Permanent ones may be the addresses of the bridge and its ports.
    seen.own_mac = entry.attrs.get(NDA_LLADDR).and_then(read_mac).filter(|_| permanent && bridge.is_some());
    seen.hops.extend(entry.attrs.u32(NDA_IFINDEX).map(hop));
    seen.lead = mac;
    if let Some(vlan) = entry.attrs.get(NDA_VLAN).and_then(Attr::u16) {
        seen.tail.push_str(&format!(" vlan {vlan}"));
    }
    if let Some(to) = to {
        seen.tail.push_str(&format!(" dst {to}"));
        seen.default_of = (seen.lead == NOBODY).then_some(to);
    }
    Ok(Some(seen))
}

/// Frames for whom nobody knows: the entry that a tunnel with a remote end makes itself.
const NOBODY: &str = "00:00:00:00:00:00";

struct Entry<'a> {
    attrs: Attrs<'a>,
    index: u32,
    state: u16,
    flags: u8,
}

impl<'a> Entry<'a> {
    fn read(payload: &'a [u8]) -> Result<Self, Malformed> {
        Ok(Self {
            attrs: Attrs::after(payload, HEADER)?,
            index: read_u32(payload, INDEX.start).ok_or(Malformed)?,
            state: read_u16(payload, 8).ok_or(Malformed)?,
            flags: *payload.get(FLAGS).ok_or(Malformed)?,
        })
    }

    fn mac(&self) -> Option<String> {
        let mac = self.attrs.get(NDA_LLADDR)?.payload;
        Some(mac.iter().map(|byte| format!("{byte:02x}")).collect::<Vec<_>>().join(":"))
    }

    /// The message without what the kernel owns, and without the numbers of links.
    fn kept(&self, kind: KeptKind, payload: &[u8]) -> SeenKept {
        let mut header = [0; HEADER];
        header[0] = payload[0];
        let state = match self.state & (NOARP | PERMANENT) {
            // As it is asked for; tunnels take it no other way.
            NOARP => NOARP | REACHABLE,
            other => other,
        };
        header[8..10].copy_from_slice(&state.to_ne_bytes());
        header[FLAGS] = self.flags & !NOT_ASKED;
        let bytes = rewritten(&header, &pieces(payload, HEADER), |number, inside| match number {
            NDA_IFINDEX => Some(vec![0; 4]),
            number => ASKED.contains(&number).then(|| inside.to_vec()),
        });
        let mut seen = SeenKept::new(kind, None, bytes);
        seen.hops.push(hop(self.index));
        seen
    }
}

fn hop(index: u32) -> SeenHop {
    SeenHop { index, via: None, weight: 1, onlink: false }
}
