//! linux-bridge: options of the bridge and of its ports. Port VLANs are in `port`.

use super::{BARE, KindSpec, PortStyle};
use crate::state::option::{OptSpec, OptType::Bool, OptType::Mac, OptType::Word};

/// Not in nmstate's YAML: on if and only if a port has VLANs.
pub const VLAN_FILTERING: OptSpec = OptSpec::new("vlan-filtering", Bool).hidden();

/// The VLAN untagged frames get where a port says nothing.
pub const DEFAULT_PVID: OptSpec = OptSpec::int("options.vlan-default-pvid", 0, 4094);

const ROUTER: &[(&str, u64)] = &[("disabled", 0), ("auto", 1), ("enabled", 2)];
pub(super) const ETHERTYPE: &[(&str, u64)] = &[("802.1q", 0x8100), ("802.1ad", 0x88a8)];
const U32: u64 = u32::MAX as u64;
const U64: u64 = u64::MAX;

pub(super) static SPEC: KindSpec = KindSpec {
    sections: &["bridge"],
    ports: PortStyle::Bridge,
    options: &[
        // While it spreads the word of a changed topology a bridge shows a shorter one, and not its own.
        OptSpec::int("options.mac-ageing-time", 0, U32).wavers(),
        OptSpec::int("options.group-forward-mask", 0, 0xffff).alias("options.group-fwd-mask"),
        OptSpec::new("options.group-addr", Mac),
        OptSpec::int("options.hash-max", 1, U32),
        OptSpec::new("options.multicast-snooping", Bool),
        OptSpec::new("options.multicast-router", Word(ROUTER)),
        OptSpec::new("options.multicast-querier", Bool),
        OptSpec::int("options.multicast-querier-interval", 0, U64).ticks(),
        OptSpec::int("options.multicast-query-interval", 0, U64).ticks(),
        OptSpec::int("options.multicast-query-response-interval", 0, U64).ticks(),
        OptSpec::new("options.multicast-query-use-ifaddr", Bool),
        OptSpec::int("options.multicast-last-member-count", 0, U32),
        OptSpec::int("options.multicast-last-member-interval", 0, U64).ticks(),
        OptSpec::int("options.multicast-membership-interval", 0, U64).ticks(),
        OptSpec::int("options.multicast-startup-query-count", 0, U32),
        OptSpec::int("options.multicast-startup-query-interval", 0, U64).ticks(),
        OptSpec::new("options.stp.enabled", Bool),
        OptSpec::int("options.stp.priority", 0, 0xffff),
        OptSpec::int("options.stp.hello-time", 1, 10),
        OptSpec::int("options.stp.max-age", 6, 40),
        OptSpec::int("options.stp.forward-delay", 2, 30),
        OptSpec::new("options.vlan-protocol", Word(ETHERTYPE)),
        DEFAULT_PVID,
        VLAN_FILTERING,
    ],
    port_options: &[
        OptSpec::new("stp-hairpin-mode", Bool),
        OptSpec::int("stp-path-cost", 1, 0xffff),
        OptSpec::int("stp-priority", 0, 63),
    ],
    query_only: &["options.gc-timer", "options.hello-timer"],
    ..BARE
};
