//! vxlan (`IFLA_VXLAN_*`). The link it sits on is among its options there, not `IFLA_LINK`.

use std::net::IpAddr;

use policy::state::{LinkKind, OptValue, Options};

use super::Form::{Be16, U8, U32};
use super::{Attrs, Message, Row, get, put, row};

/// The link it sits on.
pub(in crate::netlink) const BASE: u16 = 3;
const REMOTE: (u16, u16) = (2, 16);
const LOCAL: (u16, u16) = (4, 17);

pub(super) static ROWS: &[Row] =
    &[row("id", 1, U32), row("learning", 7, U8), row("destination-port", 15, Be16)];

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
