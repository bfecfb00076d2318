//! mac-vlan (`IFLA_MACVLAN_*`).

use policy::state::{LinkKind, OptValue, Options};

use super::Form::U32;
use super::{Attrs, Message, Row, get, put, row};

const FLAGS: u16 = 2;
/// `MACVLAN_FLAG_NOPROMISC`: the base is not made promiscuous for it.
const NOT_PROMISCUOUS: u16 = 1;

pub(super) static ROWS: &[Row] = &[row("mode", 1, U32)];

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
