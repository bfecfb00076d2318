//! What the model has no words for, as it came: routes, rules and next hop objects, ready to be sent again.
//!
//! A payload is kept without what the kernel owns (flags, caches, counters) and without the numbers of links, so that the
//! same object is the same bytes whenever it is looked at. [`super::super::encode`] puts today's numbers in.

use std::fmt::Write as _;
use std::net::IpAddr;

use policy::state::{Family, KeptKind, Mac, Raw, Rule};

use super::route::{ONLINK, SeenHop};
use super::{AF_INET, AF_INET6};
use crate::netlink::wire::{Attr, Attrs, Malformed, Message, read_u16, read_u32};

pub(in crate::netlink) const NEXT_HOP_HEADER: usize = 8;
pub(in crate::netlink) const NHA_OIF: u16 = 5;
const NHA_ID: u16 = 1;
const NHA_GROUP: u16 = 2;
const NHA_GATEWAY: u16 = 6;
const NHA_RES_GROUP: u16 = 12;
/// What a request may say: id, group, its type, blackhole, link, gateway, encapsulation, fdb, resilience.
const NHA_ASKED: [u16; 10] = [1, 2, 3, 4, 5, 6, 7, 8, 11, 12];
/// Buckets and timers; how long a group has been out of balance is the kernel's to say.
const RES_ASKED: [u16; 3] = [1, 2, 3];
const MEMBER: usize = 8;

/// The number of an attribute without its flags.
pub(in crate::netlink) const NUMBER: u16 = 0x3fff;
/// A next hop in a list: length, flags, weight, link.
const HOP: usize = 8;

/// One of them, with the indexes of its links.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::netlink) struct SeenKept {
    pub(in crate::netlink) kind: KeptKind,
    pub(in crate::netlink) family: Option<Family>,
    /// Words before and after those for its next hops.
    pub(in crate::netlink) lead: String,
    pub(in crate::netlink) tail: String,
    pub(in crate::netlink) hops: Vec<SeenHop>,
    pub(in crate::netlink) source: Option<IpAddr>,
    pub(in crate::netlink) object: Option<u32>,
    /// A group's, with their shares.
    pub(in crate::netlink) members: Vec<(u32, u16)>,
    pub(in crate::netlink) outlasts_down: bool,
    /// A tunnel's entry for whatever it knows no other for, which it makes by itself if this is its remote end.
    pub(in crate::netlink) default_of: Option<IpAddr>,
    /// A hardware address that a bridge keeps by itself if it is its own or that of a port.
    pub(in crate::netlink) own_mac: Option<Mac>,
    pub(in crate::netlink) rule: Option<Rule>,
    pub(in crate::netlink) payload: Vec<u8>,
    pub(in crate::netlink) passing: Raw,
}

impl SeenKept {
    pub(in crate::netlink) fn new(kind: KeptKind, family: Option<Family>, payload: Vec<u8>) -> Self {
        Self {
            kind,
            family,
            lead: String::new(),
            tail: String::new(),
            hops: Vec::new(),
            source: None,
            object: None,
            members: Vec::new(),
            outlasts_down: false,
            default_of: None,
            own_mac: None,
            rule: None,
            payload,
            passing: Raw::default(),
        }
    }
}

/// The attributes behind a header with their whole type, flags included.
pub(in crate::netlink) fn pieces(payload: &[u8], header: usize) -> Vec<(u16, &[u8])> {
    let mut rest = payload.get(header..).unwrap_or_default();
    let mut out = Vec::new();
    while let (Some(length), Some(kind)) = (read_u16(rest, 0).map(usize::from), read_u16(rest, 2)) {
        let Some(inside) = rest.get(4..length) else { break };
        out.push((kind, inside));
        rest = rest.get(length.next_multiple_of(4)..).unwrap_or_default();
    }
    out
}

/// A header and some of the attributes behind it, each changed by `change` or left out.
pub(in crate::netlink) fn rewritten(
    header: &[u8],
    pieces: &[(u16, &[u8])],
    mut change: impl FnMut(u16, &[u8]) -> Option<Vec<u8>>,
) -> Vec<u8> {
    let mut message = Message::attributes();
    message.raw(header);
    for (kind, inside) in pieces {
        if let Some(bytes) = change(kind & NUMBER, inside) {
            message.attr(*kind, &bytes);
        }
    }
    message.into_attributes()
}

/// A list of next hops, each with the number that `index` gives for its place, and with no flag of the kernel's.
pub(in crate::netlink) fn renumbered(list: &[u8], mut index: impl FnMut(usize) -> u32) -> Vec<u8> {
    let mut list = list.to_vec();
    let (mut at, mut place) = (0, 0);
    while let Some(length) = read_u16(&list, at).map(usize::from).filter(|length| *length >= HOP) {
        let Some(head) = list.get_mut(at..at + HOP) else { break };
        head[2] &= ONLINK as u8;
        head[4..].copy_from_slice(&index(place).to_ne_bytes());
        at += length.next_multiple_of(4);
        place += 1;
    }
    list
}

/// `RTM_NEWNEXTHOP`.
pub(in crate::netlink) fn read_next_hop(payload: &[u8]) -> Result<Option<SeenKept>, Malformed> {
    let attrs = Attrs::after(payload, NEXT_HOP_HEADER)?;
    let &[family, _, protocol, ..] = payload else { return Err(Malformed) };
    let flags = read_u32(payload, 4).ok_or(Malformed)? & ONLINK;
    let id = attrs.u32(NHA_ID).ok_or(Malformed)?;
    let mut header = [family, 0, protocol, 0, 0, 0, 0, 0];
    header[4..].copy_from_slice(&flags.to_ne_bytes());
    let kept = rewritten(&header, &pieces(payload, NEXT_HOP_HEADER), |number, inside| match number {
        NHA_OIF => Some(vec![0; 4]),
        NHA_RES_GROUP => {
            let asked = |number: u16, inside: &[u8]| RES_ASKED.contains(&number).then(|| inside.to_vec());
            Some(rewritten(&[], &pieces(inside, 0), asked))
        }
        other => NHA_ASKED.contains(&other).then(|| inside.to_vec()),
    });
    let family = match family {
        AF_INET => Some(Family::Ipv4),
        AF_INET6 => Some(Family::Ipv6),
        _ => None,
    };
    let mut seen = SeenKept::new(KeptKind::NextHop, family, kept);
    seen.object = Some(id);
    seen.lead = id.to_string();
    if let Some(index) = attrs.u32(NHA_OIF) {
        let via = attrs.get(NHA_GATEWAY).and_then(Attr::ip);
        seen.hops.push(SeenHop { index, via, weight: 1, onlink: flags != 0 });
    }
    if let Some(group) = attrs.get(NHA_GROUP) {
        let member = |bytes: &[u8]| Some((read_u32(bytes, 0)?, u16::from(*bytes.get(4)?) + 1));
        seen.members = group.payload.chunks_exact(MEMBER).filter_map(member).collect();
        let ids: Vec<String> = seen.members.iter().map(|(id, _)| id.to_string()).collect();
        let _ = write!(seen.lead, " group {}", ids.join(" "));
    }
    Ok(Some(seen))
}

#[cfg(test)]
mod tests;
