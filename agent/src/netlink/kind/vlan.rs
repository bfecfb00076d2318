//! vlan (`IFLA_VLAN_*`): its flags are bits of one word, its priority maps lists of pairs.

use std::collections::BTreeMap;

use policy::state::{LinkKind, OptValue, Options};

use super::Form::{Be16, U16};
use super::{Attrs, Malformed, Message, Row, get, put, row};
use crate::netlink::wire::read_u32;

const FLAGS: u16 = 2;
const EGRESS: u16 = 3;
const INGRESS: u16 = 4;
const MAPPING: u16 = 1;

const REORDER: u32 = 1;
const GVRP: u32 = 2;
const LOOSE: u32 = 4;
const MVRP: u32 = 8;

pub(super) static ROWS: &[Row] = &[row("id", 1, U16), row("protocol", 5, Be16)];

pub(super) fn write(message: &mut Message, options: &Options) -> &'static [&'static str] {
    let (mut flags, mut mask) = (0, 0);
    let mut flag = |bit: u32, on: bool| {
        mask |= bit;
        flags |= if on { bit } else { 0 };
    };
    if let Some(OptValue::Bool(on)) = get(options, "reorder-headers") {
        flag(REORDER, *on);
    }
    if let Some(OptValue::Bool(on)) = get(options, "loose-binding") {
        flag(LOOSE, *on);
    }
    if let Some(OptValue::Text(word)) = get(options, "registration-protocol") {
        flag(GVRP, word == "gvrp");
        flag(MVRP, word == "mvrp");
    }
    if mask != 0 {
        let [a, b, c, d] = u32::to_ne_bytes(flags);
        let [e, f, g, h] = u32::to_ne_bytes(mask);
        message.attr(FLAGS, &[a, b, c, d, e, f, g, h]);
    }
    if let Some(OptValue::Pairs(pairs)) = get(options, "ingress-qos-map") {
        // All eight: what is not mapped any more goes back to 0.
        let mut all: BTreeMap<u32, u32> = (0..8).map(|from| (from, 0)).collect();
        all.extend(pairs.iter().copied());
        write_pairs(message, INGRESS, all);
    }
    if let Some(OptValue::Pairs(pairs)) = get(options, "egress-qos-map") {
        write_pairs(message, EGRESS, pairs.iter().copied());
    }
    &["reorder-headers", "loose-binding", "registration-protocol", "ingress-qos-map", "egress-qos-map"]
}

fn write_pairs(message: &mut Message, number: u16, pairs: impl IntoIterator<Item = (u32, u32)>) {
    message.nest(number, |inside| {
        for (from, to) in pairs {
            let [a, b, c, d] = from.to_ne_bytes();
            let [e, f, g, h] = to.to_ne_bytes();
            inside.attr(MAPPING, &[a, b, c, d, e, f, g, h]);
        }
    });
}

pub(super) fn read(data: Attrs<'_>, options: &mut Options) -> Result<(), Malformed> {
    let mut say = |path: &str, value: OptValue| put(options, &LinkKind::Vlan, path, value);
    if let Some(flags) = data.get(FLAGS).and_then(super::Attr::u32) {
        say("reorder-headers", OptValue::Bool(flags & REORDER != 0));
        say("loose-binding", OptValue::Bool(flags & LOOSE != 0));
        let word = match flags & (GVRP | MVRP) {
            0 => "none",
            GVRP => "gvrp",
            _ => "mvrp",
        };
        say("registration-protocol", OptValue::Text(word.to_owned()));
    }
    say("ingress-qos-map", OptValue::Pairs(read_pairs(data, INGRESS)?));
    say("egress-qos-map", OptValue::Pairs(read_pairs(data, EGRESS)?));
    Ok(())
}

fn read_pairs(data: Attrs<'_>, number: u16) -> Result<Vec<(u32, u32)>, Malformed> {
    let Some(list) = data.nested(number)? else { return Ok(Vec::new()) };
    let pair = |bytes: &[u8]| Some((read_u32(bytes, 0)?, read_u32(bytes, 4)?));
    let mut pairs: Vec<(u32, u32)> = list.iter().filter_map(|attr| pair(attr.payload)).collect();
    pairs.sort_unstable();
    Ok(pairs)
}
