//! vxlan (`IFLA_VXLAN_*`). The link it sits on is among its options there, not `IFLA_LINK`.

use std::net::IpAddr;

use policy::state::{Attributes, LinkKind, OptValue, Options};

use super::Form::{Be16, U8, U32};
use super::{Attrs, Message, Row, get, put, row, some};

/// The link it sits on.
pub(in crate::netlink) const BASE: u16 = 3;
const REMOTE: (u16, u16) = (2, 16);
const LOCAL: (u16, u16) = (4, 17);

pub(super) static ROWS: &[Row] =
    &[row("id", 1, U32), row("learning", 7, U8), row("destination-port", 15, Be16)];

/// All that can be asked for beside the rows: TTL, TOS, ageing, limits, ports, proxying, checksums, extensions.
pub(super) static KEPT: &[u16] =
    &[5, 6, 8, 9, 10, 11, 12, 13, 14, 18, 19, 20, 21, 22, 23, 24, 25, 26, 27, 28, 29, 30, 31, 32, 34];

/// Shown as a number, asked for by being there.
const INHERITS_TTL: u16 = 28;

pub(super) fn kept(data: &[u8]) -> Attributes {
    let mut kept = some(data, 0, KEPT);
    kept.retain(|(number, value)| *number != INHERITS_TTL || value.first().is_some_and(|on| *on != 0));
    kept.iter_mut().filter(|(number, _)| *number == INHERITS_TTL).for_each(|(_, value)| value.clear());
    kept
}

/// Each family has an attribute of its own.
pub(super) fn write(message: &mut Message, options: &Options) -> &'static [&'static str] {
    for (path, (v4, v6)) in [("remote", REMOTE), ("local", LOCAL)] {
        if let Some(OptValue::Text(text)) = get(options, path)
            && let Ok(ip) = text.parse::<IpAddr>()
        {
            message.ip(if ip.is_ipv4() { v4 } else { v6 }, ip);
        }
    }
    &["remote", "local"]
}

pub(super) fn read(data: Attrs<'_>, options: &mut Options) {
    for (path, (v4, v6)) in [("remote", REMOTE), ("local", LOCAL)] {
        let ip = data.ip(v4).or_else(|| data.ip(v6));
        let text = ip.map(|ip| ip.to_string()).unwrap_or_default();
        put(options, &LinkKind::Vxlan, path, OptValue::Text(text));
    }
}
