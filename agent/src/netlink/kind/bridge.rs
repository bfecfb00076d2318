//! linux-bridge (`IFLA_BR_*`) and its ports (`IFLA_BRPORT_*`). Port VLANs are in `vlans`.

use super::Form::{Be16, Mac, Seconds, U8, U16, U32, U64};
use super::{Row, row};

pub(super) static ROWS: &[Row] = &[
    row("options.stp.forward-delay", 1, Seconds),
    row("options.stp.hello-time", 2, Seconds),
    row("options.stp.max-age", 3, Seconds),
    row("options.mac-ageing-time", 4, Seconds),
    row("options.stp.enabled", 5, U32),
    row("options.stp.priority", 6, U16),
    row("vlan-filtering", 7, U8),
    row("options.vlan-protocol", 8, Be16),
    row("options.group-forward-mask", 9, U16),
    row("options.group-addr", 20, Mac),
    row("options.multicast-router", 22, U8),
    row("options.multicast-snooping", 23, U8),
    row("options.multicast-query-use-ifaddr", 24, U8),
    row("options.multicast-querier", 25, U8),
    row("options.hash-max", 27, U32),
    row("options.multicast-last-member-count", 28, U32),
    row("options.multicast-startup-query-count", 29, U32),
    row("options.multicast-last-member-interval", 30, U64),
    row("options.multicast-membership-interval", 31, U64),
    row("options.multicast-querier-interval", 32, U64),
    row("options.multicast-query-interval", 33, U64),
    row("options.multicast-query-response-interval", 34, U64),
    row("options.multicast-startup-query-interval", 35, U64),
    row("options.vlan-default-pvid", 39, U16),
];

pub(super) static PORT_ROWS: &[Row] =
    &[row("stp-priority", 2, U16), row("stp-path-cost", 3, U32), row("stp-hairpin-mode", 4, U8)];
