//! bond: the options under the kernel's own names.

use super::{BARE, KindSpec, PortStyle};
use crate::state::option::{
    OptSpec,
    OptType::{Bool, Ips, Link, Mac, Word},
    When,
};

const MODES: &[(&str, u64)] = &[
    ("balance-rr", 0),
    ("active-backup", 1),
    ("balance-xor", 2),
    ("broadcast", 3),
    ("802.3ad", 4),
    ("balance-tlb", 5),
    ("balance-alb", 6),
];
const AD_SELECT: &[(&str, u64)] = &[("stable", 0), ("bandwidth", 1), ("count", 2)];
const ARP_ALL: &[(&str, u64)] = &[("any", 0), ("all", 1)];
const ARP_VALIDATE: &[(&str, u64)] = &[
    ("none", 0),
    ("active", 1),
    ("backup", 2),
    ("all", 3),
    ("filter", 4),
    ("filter_active", 5),
    ("filter_backup", 6),
];
const FAIL_OVER_MAC: &[(&str, u64)] = &[("none", 0), ("active", 1), ("follow", 2)];
const LACP_RATE: &[(&str, u64)] = &[("slow", 0), ("fast", 1)];
const RESELECT: &[(&str, u64)] = &[("always", 0), ("better", 1), ("failure", 2)];
const ALL_ACTIVE: &[(&str, u64)] = &[("dropped", 0), ("delivered", 1)];
const HASH: &[(&str, u64)] =
    &[("layer2", 0), ("layer3+4", 1), ("layer2+3", 2), ("encap2+3", 3), ("encap3+4", 4), ("vlan+srcmac", 5)];
const U31: u64 = i32::MAX as u64;

/// Where there is one active port at a time, or one that is preferred.
const WITH_PRIMARY: &[&str] = &["active-backup", "balance-tlb", "balance-alb"];
const WITH_ARP: &[&str] = &["balance-rr", "active-backup", "balance-xor", "broadcast"];
const WITH_LACP: &[&str] = &["802.3ad"];

/// A bond with ports can't change its mode: another mode is another bond.
pub const MODE: OptSpec = OptSpec::new("mode", Word(MODES)).when(When::Creation);

pub(super) static SPEC: KindSpec = KindSpec {
    sections: &["link-aggregation", "bond"],
    ports: PortStyle::Bond,
    required: &["mode"],
    options: &[
        MODE,
        OptSpec::int("options.ad_actor_sys_prio", 1, 65535).when(When::Down).modes(WITH_LACP),
        OptSpec::new("options.ad_actor_system", Mac).when(When::Down).modes(WITH_LACP),
        OptSpec::new("options.ad_select", Word(AD_SELECT)).when(When::Down),
        OptSpec::int("options.ad_user_port_key", 0, 1023).when(When::Down).modes(WITH_LACP),
        OptSpec::new("options.all_slaves_active", Word(ALL_ACTIVE)),
        OptSpec::new("options.arp_all_targets", Word(ARP_ALL)),
        OptSpec::int("options.arp_interval", 0, U31).modes(WITH_ARP),
        OptSpec::new("options.arp_ip_target", Ips),
        OptSpec::int("options.arp_missed_max", 1, 255),
        OptSpec::new("options.arp_validate", Word(ARP_VALIDATE)).modes(WITH_ARP),
        OptSpec::int("options.downdelay", 0, U31).with("options.miimon"),
        // Only while the bond has no ports, which is when it is made.
        OptSpec::new("options.fail_over_mac", Word(FAIL_OVER_MAC)).when(When::Creation),
        OptSpec::new("options.lacp_active", Bool).when(When::Down).modes(WITH_LACP),
        OptSpec::new("options.lacp_rate", Word(LACP_RATE)).when(When::Down).modes(WITH_LACP),
        OptSpec::int("options.lp_interval", 1, U31),
        OptSpec::int("options.miimon", 0, U31),
        OptSpec::int("options.min_links", 0, U31),
        OptSpec::new("options.ns_ip6_target", Ips),
        // One counter in the kernel under two names.
        OptSpec::int("options.num_grat_arp", 0, 255).alias("options.num_unsol_na"),
        OptSpec::int("options.packets_per_slave", 0, 65535).modes(&["balance-rr"]),
        OptSpec::int("options.peer_notif_delay", 0, 300_000).with("options.miimon"),
        OptSpec::new("options.primary", Link).when(When::AfterPorts).modes(WITH_PRIMARY),
        OptSpec::new("options.primary_reselect", Word(RESELECT)),
        OptSpec::int("options.resend_igmp", 0, 255),
        OptSpec::new("options.tlb_dynamic_lb", Bool).when(When::Down).modes(&["balance-tlb", "balance-alb"]),
        OptSpec::int("options.updelay", 0, U31).with("options.miimon"),
        OptSpec::new("options.use_carrier", Bool),
        OptSpec::new("options.xmit_hash_policy", Word(HASH)),
    ],
    port_options: &[OptSpec::int("priority", 0, U31).modes(WITH_PRIMARY), OptSpec::int("queue-id", 0, 65535)],
    unsupported: &["options.balance_slb"],
    ..BARE
};
