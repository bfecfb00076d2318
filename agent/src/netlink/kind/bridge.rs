//! linux-bridge (`IFLA_BR_*`) and its ports (`IFLA_BRPORT_*`). Port VLANs are in `vlans`.

use policy::state::{Attributes, Options};

use super::Form::{Be16, Mac, Seconds, U8, U16, U32, U64};
use super::{Attr, Attrs, Row, row, some};

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

/// Netfilter on it, statistics, versions of IGMP and MLD, switches of one bit, how much it may learn.
const KEPT: &[u16] = &[36, 37, 38, 41, 42, 43, 44, 45, BITS, 49];
/// Values and a mask, four bytes each.
const BITS: u16 = 46;
/// Multicast per VLAN: only taken where VLANs are filtered, which a new bridge doesn't.
const PER_VLAN: u8 = 1 << 1;

/// Guards, learning, flooding, proxying, multicast, tunnels, suppression, isolation, locks.
pub(super) static KEPT_OF_PORTS: &[u16] =
    &[5, 6, 7, 8, 9, 10, 12, 25, 27, 28, 29, 30, 31, 32, 33, 37, 39, 40, 42, 43];

/// `IFLA_BR_TOPOLOGY_CHANGE`.
const TOPOLOGY_CHANGE: u16 = 14;
const STP_STATE: u16 = 5;
/// The kernel's own spanning tree, not that of a daemon.
const KERNEL_STP: u32 = 1;

/// While a topology changes the kernel forgets addresses sooner, and shows that time (twice the forward delay) for the one
/// that is set, which it has besides and shows nowhere: then there is no telling.
pub(super) fn read(data: Attrs<'_>, options: &mut Options) {
    let changing = data.get(TOPOLOGY_CHANGE).and_then(Attr::u8).is_some_and(|on| on != 0);
    if changing && data.u32(STP_STATE) == Some(KERNEL_STP) {
        options.retain(|name, _| name.as_str() != "options.mac-ageing-time");
    }
}

pub(super) fn kept(data: &[u8]) -> Attributes {
    let mut kept = some(data, 0, KEPT);
    for (_, bits) in kept.iter_mut().filter(|(number, bits)| *number == BITS && bits.len() == 8) {
        // Off is what a new bridge has, and some kernels refuse to hear of a switch that they lack.
        let low = if cfg!(target_endian = "little") { 0 } else { 3 };
        bits[low] &= !PER_VLAN;
        bits.copy_within(..4, 4);
    }
    kept.retain(|(number, bits)| *number != BITS || bits.iter().any(|byte| *byte != 0));
    kept
}
