//! The kinds of links, each with its table. One file per kind; the same names are found in the plan and in
//! the netlink code.

mod bond;
mod bridge;
mod mac_vlan;
mod vlan;
mod vrf;
mod vxlan;

use super::option::OptSpec;
use serde::{Deserialize, Serialize};
use std::fmt;

pub use bond::MODE as BOND_MODE;
pub use bridge::{DEFAULT_PVID, VLAN_FILTERING};

/// What a link is.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum LinkKind {
    Ethernet,
    Veth,
    LinuxBridge,
    Bond,
    Vlan,
    Vxlan,
    Vrf,
    MacVlan,
    Dummy,
    Loopback,
    /// A kind the model doesn't know, by the name it was shown under. Never touched.
    Other(String),
}

/// How a kind lists its ports.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PortStyle {
    None,
    /// `port: [{name: …}]` with options and VLANs.
    Bridge,
    /// `port: [name]`, options in `ports-config`.
    Bond,
    /// `port: [name]`.
    Vrf,
}

/// A kind's table.
#[derive(Debug)]
pub struct KindSpec {
    /// The section's name in the YAML, canonical first.
    pub sections: &'static [&'static str],
    /// Whether it sits on another link (`base-iface`).
    pub base: bool,
    pub ports: PortStyle,
    pub options: &'static [OptSpec],
    pub port_options: &'static [OptSpec],
    /// Options without which a new link can't be made.
    pub required: &'static [&'static str],
    /// What nmstate has there and Berth doesn't apply, or that is only ever shown.
    pub unsupported: &'static [&'static str],
    pub query_only: &'static [&'static str],
}

const BARE: KindSpec = KindSpec {
    sections: &[],
    base: false,
    ports: PortStyle::None,
    options: &[],
    port_options: &[],
    required: &[],
    unsupported: &[],
    query_only: &[],
};

static ETHERNET: KindSpec = KindSpec {
    sections: &["ethernet"],
    unsupported: &["auto-negotiation", "speed", "duplex", "sr-iov"],
    ..BARE
};
static VETH: KindSpec = KindSpec { sections: &["veth"], ..BARE };
static PLAIN: KindSpec = BARE;

/// Types nmstate knows and Berth doesn't; told apart from misspelt ones.
const FOREIGN: &[&str] = &[
    "ovs-bridge",
    "ovs-interface",
    "ipvlan",
    "ip-vlan",
    "infiniband",
    "mac-vtap",
    "macsec",
    "tun",
    "hsr",
    "ipsec",
    "xfrm",
    "wireguard",
    "other",
];

impl LinkKind {
    /// Every kind Berth makes or configures, by its canonical name.
    pub const KNOWN: [LinkKind; 10] = [
        LinkKind::Ethernet,
        LinkKind::Veth,
        LinkKind::LinuxBridge,
        LinkKind::Bond,
        LinkKind::Vlan,
        LinkKind::Vxlan,
        LinkKind::Vrf,
        LinkKind::MacVlan,
        LinkKind::Dummy,
        LinkKind::Loopback,
    ];

    pub fn as_str(&self) -> &str {
        match self {
            LinkKind::Other(name) => name,
            known => known.spec_name(),
        }
    }

    /// The kind of that name; anything else is [`LinkKind::Other`].
    pub fn from_name(name: &str) -> Self {
        match name {
            "macvlan" => LinkKind::MacVlan,
            "bridge" => LinkKind::LinuxBridge,
            _ => Self::KNOWN
                .into_iter()
                .find(|k| k.as_str() == name)
                .unwrap_or_else(|| LinkKind::Other(name.to_owned())),
        }
    }

    /// The name of a kind that has a table.
    pub(crate) fn spec_name(&self) -> &'static str {
        match self {
            LinkKind::Ethernet => "ethernet",
            LinkKind::Veth => "veth",
            LinkKind::LinuxBridge => "linux-bridge",
            LinkKind::Bond => "bond",
            LinkKind::Vlan => "vlan",
            LinkKind::Vxlan => "vxlan",
            LinkKind::Vrf => "vrf",
            LinkKind::MacVlan => "mac-vlan",
            LinkKind::Dummy => "dummy",
            LinkKind::Loopback => "loopback",
            LinkKind::Other(_) => "other",
        }
    }

    /// Whether nmstate has that kind, though Berth doesn't.
    pub(crate) fn is_foreign(name: &str) -> bool {
        FOREIGN.contains(&name)
    }

    pub fn spec(&self) -> &'static KindSpec {
        match self {
            LinkKind::Ethernet => &ETHERNET,
            LinkKind::Veth => &VETH,
            LinkKind::LinuxBridge => &bridge::SPEC,
            LinkKind::Bond => &bond::SPEC,
            LinkKind::Vlan => &vlan::SPEC,
            LinkKind::Vxlan => &vxlan::SPEC,
            LinkKind::Vrf => &vrf::SPEC,
            LinkKind::MacVlan => &mac_vlan::SPEC,
            LinkKind::Dummy | LinkKind::Loopback | LinkKind::Other(_) => &PLAIN,
        }
    }

    /// Whether the kernel can make and remove it.
    pub fn is_virtual(&self) -> bool {
        !matches!(self, LinkKind::Ethernet | LinkKind::Loopback | LinkKind::Other(_))
    }

    /// Whether two kinds may stand for the same link: nmstate shows a veth as either.
    pub fn agrees(&self, other: &LinkKind) -> bool {
        let pair = |a: &LinkKind, b: &LinkKind| *a == LinkKind::Ethernet && *b == LinkKind::Veth;
        self == other || pair(self, other) || pair(other, self)
    }

    /// Whether its ports may hold addresses of their own.
    pub fn ports_have_ip(&self) -> bool {
        *self == LinkKind::Vrf
    }
}

impl fmt::Display for LinkKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

impl KindSpec {
    pub fn option(&self, path: &str) -> Option<&'static OptSpec> {
        self.options.iter().find(|s| s.path == path || s.alias == Some(path))
    }

    pub fn port_option(&self, path: &str) -> Option<&'static OptSpec> {
        self.port_options.iter().find(|s| s.path == path || s.alias == Some(path))
    }
}

/// Every option of every table.
pub(crate) fn all_options() -> impl Iterator<Item = &'static OptSpec> {
    LinkKind::KNOWN.into_iter().flat_map(|k| k.spec().options.iter().chain(k.spec().port_options))
}

/// The kind a section belongs to.
pub(crate) fn of_section(section: &str) -> Option<LinkKind> {
    LinkKind::KNOWN.into_iter().find(|k| k.spec().sections.contains(&section))
}
