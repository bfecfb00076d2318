//! What the model has no words for, sent as it came, with today's numbers of its links.

use policy::state::{Kept, KeptKind};

use super::route::RTM_NEWROUTE;
use super::rule::{RTM_DELRULE, RTM_NEWRULE};
use super::{EncodeError, Encoder, SET};
use crate::netlink::decode::kept::{NEXT_HOP_HEADER, NHA_OIF, pieces, renumbered, rewritten};
use crate::netlink::decode::route::{HEADER, RTA_MULTIPATH, RTA_OIF};
use crate::netlink::socket::{APPEND, CREATE, REPLACE};
use crate::netlink::wire::Message;

const RTM_NEWNEXTHOP: u16 = 104;

impl Encoder<'_> {
    pub(super) fn restore(&self, kept: &Kept) -> Result<Message, EncodeError> {
        // Routes beside others of their key, as they may have been; a group that lost a member gets it again.
        let (kind, flags) = match kept.kind {
            KeptKind::NextHop => (RTM_NEWNEXTHOP, SET | CREATE | REPLACE),
            KeptKind::Route => (RTM_NEWROUTE, SET | CREATE | APPEND),
            KeptKind::Rule => (RTM_NEWRULE, SET | CREATE),
        };
        let indexes: Vec<u32> =
            kept.hops.iter().map(|hop| self.index(&hop.dev)).collect::<Result<_, EncodeError>>()?;
        let index = |place: usize| indexes.get(place).copied().unwrap_or(0);
        let (header, link) = match kept.kind {
            KeptKind::NextHop => (NEXT_HOP_HEADER, Some(NHA_OIF)),
            KeptKind::Route => (HEADER, Some(RTA_OIF)),
            KeptKind::Rule => (HEADER, None),
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

/// A rule; nothing else stands in anybody's way.
pub(super) fn forget(kept: &Kept) -> Message {
    let mut message = Message::new(RTM_DELRULE, SET);
    message.raw(&kept.payload);
    message
}
