//! `RTM_NEWMDB`: who gets the frames of multicast groups, as far as somebody set it for good.
//!
//! One message has all groups of a bridge. What was learned is traffic and comes again by itself. Left out besides: groups
//! of the bridge itself, which the kernel joins as it sees fit and shows no otherwise than ones that were set.

use std::net::{Ipv4Addr, Ipv6Addr};

use policy::state::{KeptKind, Mac};

use super::kept::{SeenKept, pieces};
use super::route::SeenHop;
use crate::netlink::wire::{Attr, Attrs, Malformed, Message, read_u16, read_u32};

/// Family and, aligned, the number of the bridge.
pub(in crate::netlink) const HEADER: usize = 8;
pub(in crate::netlink) const INDEX: std::ops::Range<usize> = 4..8;
/// What is asked for: an entry, and what more is said of it.
pub(in crate::netlink) const SET_ENTRY: u16 = 1;
const SET_ATTRIBUTES: u16 = 2;

/// Where in an entry its port is.
pub(in crate::netlink) const PORT: std::ops::Range<usize> = 0..4;
/// Port, state, flags, VLAN, an address of up to sixteen bytes, its protocol.
const ENTRY: usize = 28;
const STATE: usize = 4;
const VLAN: usize = 6;
const ADDRESS: usize = 8;
const PROTOCOL: usize = 24;
const PERMANENT: u8 = 1;
const IPV4: u16 = 0x0800;
const IPV6: u16 = 0x86dd;

const LIST: u16 = 1;
const GROUP: u16 = 1;
const PORT_OF_GROUP: u16 = 1;
/// What is shown of an entry beside itself, the number under which it is asked for, and the value that goes without saying,
/// since kernels before 6.2 know it no other way: source, mode, who set it. Sources of a group have a shape of their own.
const FROM: (u16, u16) = (4, 1);
const MODE: (u16, u16, u8) = (3, 3, 0);
const BY: (u16, u16, u8) = (5, 4, 4);
const SOURCES: (u16, u16) = (2, 2);
const SOURCE: u16 = 1;
const SOURCE_ADDRESS: u16 = 1;

/// All that were set for good on the ports of a bridge.
pub(in crate::netlink) fn read(payload: &[u8]) -> Result<Option<Vec<SeenKept>>, Malformed> {
    let attrs = Attrs::after(payload, HEADER)?;
    let bridge = read_u32(payload, INDEX.start).ok_or(Malformed)?;
    let Some(list) = attrs.nested(LIST)? else { return Ok(None) };
    let mut found = Vec::new();
    for group in list.iter().filter(|attr| attr.number == GROUP) {
        for port in group.attrs()?.iter().filter(|attr| attr.number == PORT_OF_GROUP) {
            found.extend(entry(port.payload, bridge)?);
        }
    }
    Ok(Some(found))
}

fn entry(payload: &[u8], bridge: u32) -> Result<Option<SeenKept>, Malformed> {
    let port = read_u32(payload, PORT.start).ok_or(Malformed)?;
    let shown = Attrs::after(payload, ENTRY)?;
    if port == bridge || payload.get(STATE) != Some(&PERMANENT) {
        return Ok(None);
    }
    let mut asked = payload[..ENTRY].to_vec();
    asked[PORT].fill(0);
    // Flags are the kernel's words.
    asked[STATE + 1] = 0;
    let mut message = Message::attributes();
    message.attr(SET_ENTRY, &asked);
    let sources = sources(shown)?;
    let from = shown.get(FROM.0);
    let mut more: Vec<(u16, &[u8])> = from.iter().map(|attr| (FROM.1, attr.payload)).collect();
    for (shown_as, asked_as, usual) in [MODE, BY] {
        let said = shown.get(shown_as).filter(|attr| attr.u8() != Some(usual));
        // What comes from one source has no mode.
        let said = said.filter(|_| from.is_none() || shown_as != MODE.0);
        more.extend(said.map(|attr| (asked_as, attr.payload)));
    }
    if !more.is_empty() || !sources.is_empty() {
        message.nest(SET_ATTRIBUTES, |inside| {
            more.iter().for_each(|(number, bytes)| {
                inside.attr(*number, bytes);
            });
            if !sources.is_empty() {
                inside.nest(SOURCES.1, |list| {
                    sources.iter().for_each(|source| {
                        list.nest(SOURCE, |one| {
                            one.attr(SOURCE_ADDRESS, source);
                        });
                    });
                });
            }
        });
    }
    let mut seen = SeenKept::new(KeptKind::Group, None, message.into_attributes());
    seen.hops.extend([port, bridge].map(|index| SeenHop { index, via: None, weight: 1, onlink: false }));
    seen.lead = address(payload).ok_or(Malformed)?;
    if let Some(source) = from.and_then(Attr::ip) {
        seen.lead.push_str(&format!(" src {source}"));
    }
    let vlan = read_u16(payload, VLAN).unwrap_or(0);
    if vlan != 0 {
        seen.tail.push_str(&format!(" vlan {vlan}"));
    }
    Ok(Some(seen))
}

/// The addresses from which a group is taken, or is not.
fn sources<'a>(shown: Attrs<'a>) -> Result<Vec<&'a [u8]>, Malformed> {
    let Some(list) = shown.get(SOURCES.0) else { return Ok(Vec::new()) };
    let entries = pieces(list.payload, 0);
    let address = |(_, inside): &(u16, &'a [u8])| Some(Attrs::of(inside).ok()?.get(SOURCE_ADDRESS)?.payload);
    entries.iter().map(|entry| address(entry).ok_or(Malformed)).collect()
}

fn address(payload: &[u8]) -> Option<String> {
    let bytes = payload.get(ADDRESS..PROTOCOL)?;
    Some(match u16::from_be(read_u16(payload, PROTOCOL)?) {
        IPV4 => Ipv4Addr::from(<[u8; 4]>::try_from(bytes.get(..4)?).ok()?).to_string(),
        IPV6 => Ipv6Addr::from(<[u8; 16]>::try_from(bytes).ok()?).to_string(),
        _ => Mac(bytes.get(..6)?.try_into().ok()?).to_string(),
    })
}
