//! The leaves of nmstate's schema that aren't plain text, section by section. Sections whose keys are the user's
//! own (OVS databases) are left out on purpose: there "1500" is text.

/// What a place in the document holds.
pub(crate) enum Node {
    Int,
    Bool,
    /// Text that may look like a number: an interface may be called 100.
    Text,
    Map(&'static [(&'static str, Node)]),
    /// A map with any keys.
    Each(&'static Node),
    List(&'static Node),
}

use Node::{Bool, Each, Int, List, Map, Text};

pub(crate) const STATE: Node = Map(&[
    ("interfaces", List(&INTERFACE)),
    ("routes", Map(&[("running", List(&ROUTE)), ("config", List(&ROUTE))])),
    ("route-rules", Map(&[("config", List(&RULE))])),
]);

const ROUTE: Node = Map(&[
    ("metric", Int),
    ("table-id", Int),
    ("weight", Int),
    ("mtu", Int),
    ("advmss", Int),
    ("cwnd", Int),
    ("initcwnd", Int),
    ("initrwnd", Int),
    ("quickack", Bool),
    ("next-hop-interface", Text),
]);

const RULE: Node = Map(&[
    ("priority", Int),
    ("route-table", Int),
    ("fwmark", Int),
    ("fwmask", Int),
    ("suppress-prefix-length", Int),
    ("iif", Text),
]);

const INTERFACE: Node = Map(&[
    ("name", Text),
    ("controller", Text),
    ("copy-mac-from", Text),
    ("mtu", Int),
    ("min-mtu", Int),
    ("max-mtu", Int),
    ("accept-all-mac-addresses", Bool),
    ("ipv4", IP),
    ("ipv6", IP),
    ("lldp", Map(&[("enabled", Bool)])),
    ("ethtool", ETHTOOL),
    ("ethernet", ETHERNET),
    ("veth", Map(&[("peer", Text)])),
    ("bridge", BRIDGE),
    ("link-aggregation", BOND),
    ("bond", BOND),
    ("vlan", VLAN),
    ("vxlan", VXLAN),
    ("mac-vlan", MACVLAN),
    ("mac-vtap", MACVLAN),
    ("ipvlan", Map(&[("base-iface", Text), ("private", Bool), ("vepa", Bool)])),
    ("vrf", Map(&[("port", List(&Text)), ("ports", List(&Text)), ("route-table-id", Int)])),
    ("infiniband", Map(&[("base-iface", Text)])),
    ("macsec", Map(&[("base-iface", Text), ("encrypt", Bool), ("send-sci", Bool), ("port", Int)])),
    ("hsr", Map(&[("port1", Text), ("port2", Text), ("multicast-spec", Int)])),
]);

const IP: Node = Map(&[
    ("enabled", Bool),
    ("dhcp", Bool),
    ("autoconf", Bool),
    ("address", List(&Map(&[("prefix-length", Int)]))),
    ("forwarding", Bool),
    ("allow-extra-address", Bool),
    ("auto-dns", Bool),
    ("auto-gateway", Bool),
    ("auto-routes", Bool),
    ("auto-route-table-id", Int),
    ("auto-route-metric", Int),
    ("prefix-route-metric", Int),
    ("dhcp-send-hostname", Bool),
]);

const ETHERNET: Node = Map(&[
    ("auto-negotiation", Bool),
    ("speed", Int),
    ("sr-iov", Map(&[("total-vfs", Int), ("drivers-autoprobe", Bool), ("vfs", List(&VF))])),
]);

const VF: Node = Map(&[
    ("id", Int),
    ("spoof-check", Bool),
    ("trust", Bool),
    ("min-tx-rate", Int),
    ("max-tx-rate", Int),
    ("vlan-id", Int),
    ("qos", Int),
]);

const ETHTOOL: Node =
    Map(&[("feature", Each(&Bool)), ("pause", Each(&Bool)), ("ring", Each(&Int)), ("coalesce", COALESCE)]);

const COALESCE: Node = Map(&[
    ("adaptive-rx", Bool),
    ("adaptive-tx", Bool),
    ("pkt-rate-high", Int),
    ("pkt-rate-low", Int),
    ("rx-frames", Int),
    ("rx-frames-high", Int),
    ("rx-frames-irq", Int),
    ("rx-frames-low", Int),
    ("rx-usecs", Int),
    ("rx-usecs-high", Int),
    ("rx-usecs-irq", Int),
    ("rx-usecs-low", Int),
    ("sample-interval", Int),
    ("stats-block-usecs", Int),
    ("tx-frames", Int),
    ("tx-frames-high", Int),
    ("tx-frames-irq", Int),
    ("tx-frames-low", Int),
    ("tx-usecs", Int),
    ("tx-usecs-high", Int),
    ("tx-usecs-irq", Int),
    ("tx-usecs-low", Int),
]);

const BRIDGE: Node = Map(&[
    ("allow-extra-ports", Bool),
    ("options", BRIDGE_OPTIONS),
    ("port", List(&BRIDGE_PORT)),
    ("ports", List(&BRIDGE_PORT)),
]);

const BRIDGE_OPTIONS: Node = Map(&[
    ("mac-ageing-time", Int),
    ("group-forward-mask", Int),
    ("group-fwd-mask", Int),
    ("hash-max", Int),
    ("multicast-snooping", Bool),
    ("multicast-querier", Bool),
    ("multicast-query-use-ifaddr", Bool),
    ("multicast-querier-interval", Int),
    ("multicast-query-interval", Int),
    ("multicast-query-response-interval", Int),
    ("multicast-last-member-count", Int),
    ("multicast-last-member-interval", Int),
    ("multicast-membership-interval", Int),
    ("multicast-startup-query-count", Int),
    ("multicast-startup-query-interval", Int),
    ("vlan-default-pvid", Int),
    ("stp", STP),
    // Open vSwitch
    ("mcast-snooping-enable", Bool),
    ("rstp", Bool),
]);

const STP: Node = Map(&[
    ("enabled", Bool),
    ("priority", Int),
    ("hello-time", Int),
    ("max-age", Int),
    ("forward-delay", Int),
]);

const BRIDGE_PORT: Node = Map(&[
    ("name", Text),
    ("stp-hairpin-mode", Bool),
    ("stp-path-cost", Int),
    ("stp-priority", Int),
    ("vlan", PORT_VLAN),
    ("link-aggregation", BOND),
]);

const PORT_VLAN: Node = Map(&[
    ("tag", Int),
    ("enable-native", Bool),
    ("trunk-tags", List(&Map(&[("id", Int), ("id-range", Map(&[("min", Int), ("max", Int)]))]))),
]);

const BOND: Node = Map(&[
    ("port", List(&Text)),
    ("ports", List(&Text)),
    ("ports-config", List(&Map(&[("name", Text), ("priority", Int), ("queue-id", Int)]))),
    ("options", BOND_OPTIONS),
]);

/// Bond options are the kernel's names; those with words for values (`xmit_hash_policy`, …) stay text.
const BOND_OPTIONS: Node = Map(&[
    ("ad_actor_sys_prio", Int),
    ("ad_user_port_key", Int),
    ("arp_interval", Int),
    ("downdelay", Int),
    ("lp_interval", Int),
    ("miimon", Int),
    ("min_links", Int),
    ("num_grat_arp", Int),
    ("num_unsol_na", Int),
    ("packets_per_slave", Int),
    ("peer_notif_delay", Int),
    ("resend_igmp", Int),
    ("tlb_dynamic_lb", Bool),
    ("updelay", Int),
    ("use_carrier", Bool),
]);

const VLAN: Node =
    Map(&[("base-iface", Text), ("id", Int), ("reorder-headers", Bool), ("loose-binding", Bool)]);

const VXLAN: Node = Map(&[("base-iface", Text), ("id", Int), ("learning", Bool), ("destination-port", Int)]);

const MACVLAN: Node = Map(&[("base-iface", Text), ("promiscuous", Bool)]);
