//! bond (`IFLA_BOND_*`) and its ports (`IFLA_BOND_SLAVE_*`).

use super::Form::{Index, Ips, Mac, U8, U16, U32};
use super::{Row, row};

pub(super) static ROWS: &[Row] = &[
    row("mode", 1, U8),
    row("options.miimon", 3, U32),
    row("options.updelay", 4, U32),
    row("options.downdelay", 5, U32),
    row("options.use_carrier", 6, U8),
    row("options.arp_interval", 7, U32),
    row("options.arp_ip_target", 8, Ips),
    row("options.arp_validate", 9, U32),
    row("options.arp_all_targets", 10, U32),
    row("options.primary", 11, Index),
    row("options.primary_reselect", 12, U8),
    row("options.fail_over_mac", 13, U8),
    row("options.xmit_hash_policy", 14, U8),
    row("options.resend_igmp", 15, U32),
    row("options.num_grat_arp", 16, U8),
    row("options.all_slaves_active", 17, U8),
    row("options.min_links", 18, U32),
    row("options.lp_interval", 19, U32),
    row("options.packets_per_slave", 20, U32),
    row("options.lacp_rate", 21, U8),
    row("options.ad_select", 22, U8),
    row("options.ad_actor_sys_prio", 24, U16),
    row("options.ad_user_port_key", 25, U16),
    row("options.ad_actor_system", 26, Mac),
    row("options.tlb_dynamic_lb", 27, U8),
    row("options.peer_notif_delay", 28, U32),
    row("options.lacp_active", 29, U8),
    row("options.arp_missed_max", 30, U8),
    row("options.ns_ip6_target", 31, Ips),
];

pub(super) static PORT_ROWS: &[Row] = &[row("queue-id", 5, U16), row("priority", 9, U32)];
