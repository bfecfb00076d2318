//! mac-vlan (`IFLA_MACVLAN_*`).

use policy::state::{Attributes, LinkKind, OptValue, Options};

use super::Form::U32;
use super::{Attrs, Message, Row, get, put, row, some};
use crate::netlink::decode::kept::{NUMBER, pieces, rewritten};

const FLAGS: u16 = 2;
/// `MACVLAN_FLAG_NOPROMISC`: the base is not made promiscuous for it.
const NOT_PROMISCUOUS: u16 = 1;

pub(super) static ROWS: &[Row] = &[row("mode", 1, U32)];

/// What is done with the list of sources, and the list.
const SOURCES_ARE: u16 = 3;
const SOURCES: u16 = 5;
const SET: u32 = 3;
/// The list, the length of the queue for broadcasts, and from how many of them on.
const KEPT: &[u16] = &[SOURCES, 7, 9];

/// A list is taken only with a word on what to do with it.
pub(super) fn kept(data: &[u8]) -> Attributes {
    let mut kept = some(data, 0, KEPT);
    for (_, list) in kept.iter_mut().filter(|(number, _)| *number & NUMBER == SOURCES) {
        // The kernel shows them in the order of a hash.
        let mut sources = pieces(list, 0);
        sources.sort_unstable();
        *list = rewritten(&[], &sources, |_, source| Some(source.to_vec()));
    }
    if kept.iter().any(|(number, _)| *number & NUMBER == SOURCES) {
        kept.insert(0, (SOURCES_ARE, SET.to_ne_bytes().to_vec()));
    }
    kept
}

pub(super) fn write(message: &mut Message, options: &Options) -> &'static [&'static str] {
    if let Some(OptValue::Bool(on)) = get(options, "promiscuous") {
        message.u16(FLAGS, if *on { 0 } else { NOT_PROMISCUOUS });
    }
    &["promiscuous"]
}

pub(super) fn read(data: Attrs<'_>, options: &mut Options) {
    if let Some(flags) = data.get(FLAGS).and_then(super::Attr::u16) {
        put(options, &LinkKind::MacVlan, "promiscuous", OptValue::Bool(flags & NOT_PROMISCUOUS == 0));
    }
}
