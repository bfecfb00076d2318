//! What the model has no words for, sent as it came, with today's numbers of its links.

use policy::state::{Kept, KeptKind};

use super::route::RTM_NEWROUTE;
use super::rule::{RTM_DELRULE, RTM_NEWRULE};
use super::{EncodeError, Encoder, SET};
use crate::netlink::decode::kept::{NEXT_HOP_HEADER, NHA_OIF, pieces, renumbered, rewritten};
use crate::netlink::decode::route::{HEADER, RTA_MULTIPATH, RTA_OIF};
use crate::netlink::decode::{AF_BRIDGE, group, neighbour};
use crate::netlink::socket::{APPEND, CREATE, EXCLUSIVE, REPLACE};
use crate::netlink::wire::Message;

const RTM_NEWNEXTHOP: u16 = 104;
const RTM_NEWNEIGH: u16 = 28;
const RTM_NEWMDB: u16 = 84;

impl Encoder<'_> {
    pub(super) fn restore(&self, kept: &Kept) -> Result<Message, EncodeError> {
        let indexes: Vec<u32> =
            kept.hops.iter().map(|hop| self.index(&hop.dev)).collect::<Result<_, EncodeError>>()?;
        let index = |place: usize| indexes.get(place).copied().unwrap_or(0);
        // Routes beside others of their key, as they may have been; a group that lost a member gets it again.
        let (kind, flags) = match kept.kind {
            KeptKind::NextHop => (RTM_NEWNEXTHOP, SET | CREATE | REPLACE),
            KeptKind::Route => (RTM_NEWROUTE, SET | CREATE | APPEND),
            KeptKind::Rule => (RTM_NEWRULE, SET | CREATE),
            KeptKind::Neighbour => return Ok(entry(kept, REPLACE, index)),
            // A tunnel may have several for one hardware address.
            KeptKind::Forwarding => return Ok(entry(kept, APPEND, index)),
            KeptKind::Group => return Ok(multicast(kept, index)),
        };
        let (header, link) = match kept.kind {
            KeptKind::NextHop => (NEXT_HOP_HEADER, Some(NHA_OIF)),
            KeptKind::Route => (HEADER, Some(RTA_OIF)),
            KeptKind::Rule | KeptKind::Neighbour | KeptKind::Forwarding | KeptKind::Group => (HEADER, None),
        };
        let payload = rewritten(
            kept.payload.get(..header).unwrap_or_default(),
            &pieces(&kept.payload, header),
            |number, inside| match (kept.kind, number) {
                (_, number) if Some(number) == link => Some(index(0).to_ne_bytes().to_vec()),
                (KeptKind::Route, RTA_MULTIPATH) => Some(renumbered(inside, index)),
                _ => Some(inside.to_vec()),
            },
        );
        let mut message = Message::new(kind, flags);
        message.raw(&payload);
        for (number, bytes) in &kept.passing.0 {
            message.attr(*number, bytes);
        }
        Ok(message)
    }
}

/// A neighbour, or what is forwarded: its link is in the header.
fn entry(kept: &Kept, flags: u16, index: impl Fn(usize) -> u32) -> Message {
    let mut header = [0; neighbour::HEADER];
    let known = kept.payload.get(..header.len()).unwrap_or_default();
    header[..known.len()].copy_from_slice(known);
    header[neighbour::INDEX].copy_from_slice(&index(0).to_ne_bytes());
    let attributes = pieces(&kept.payload, neighbour::HEADER);
    let payload = rewritten(&header, &attributes, |number, inside| match number {
        neighbour::NDA_IFINDEX => Some(index(kept.hops.len() - 1).to_ne_bytes().to_vec()),
        _ => Some(inside.to_vec()),
    });
    let mut message = Message::new(RTM_NEWNEIGH, SET | CREATE | flags);
    message.raw(&payload);
    message
}

/// A group of a bridge: the bridge is in the header, the port in what it is about.
fn multicast(kept: &Kept, index: impl Fn(usize) -> u32) -> Message {
    let mut header = [0; group::HEADER];
    header[0] = AF_BRIDGE;
    header[group::INDEX].copy_from_slice(&index(1).to_ne_bytes());
    let payload = rewritten(&header, &pieces(&kept.payload, 0), |number, inside| match number {
        group::SET_ENTRY => {
            let mut inside = inside.to_vec();
            inside
                .get_mut(group::PORT)
                .into_iter()
                .for_each(|port| port.copy_from_slice(&index(0).to_ne_bytes()));
            Some(inside)
        }
        _ => Some(inside.to_vec()),
    });
    let mut message = Message::new(RTM_NEWMDB, SET | CREATE | EXCLUSIVE);
    message.raw(&payload);
    message
}

/// A rule; nothing else stands in anybody's way.
pub(super) fn forget(kept: &Kept) -> Message {
    let mut message = Message::new(RTM_DELRULE, SET);
    message.raw(&kept.payload);
    message
}
