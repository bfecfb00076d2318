//! Addresses of a link, and a link's side of a family.

use super::Raw;
use ipnet::IpNet;
use serde::{Deserialize, Serialize};
use std::fmt;
use std::net::IpAddr;

/// IPv4 or IPv6.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Family {
    Ipv4,
    Ipv6,
}

impl Family {
    pub const BOTH: [Family; 2] = [Family::Ipv4, Family::Ipv6];

    pub fn of(ip: &IpAddr) -> Self {
        if ip.is_ipv4() { Family::Ipv4 } else { Family::Ipv6 }
    }

    pub fn of_net(net: &IpNet) -> Self {
        Self::of(&net.addr())
    }

    /// As the YAML calls it.
    pub fn as_str(self) -> &'static str {
        match self {
            Family::Ipv4 => "ipv4",
            Family::Ipv6 => "ipv6",
        }
    }

    pub fn max_prefix(self) -> u8 {
        match self {
            Family::Ipv4 => 32,
            Family::Ipv6 => 128,
        }
    }

    /// The network of everything.
    pub fn any(self) -> IpNet {
        match self {
            Family::Ipv4 => IpNet::V4(ipnet::Ipv4Net::default()),
            Family::Ipv6 => IpNet::V6(ipnet::Ipv6Net::default()),
        }
    }
}

impl fmt::Display for Family {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

/// Who put an address there (`IFA_PROTO`, kernels since 5.18).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(transparent)]
pub struct AddressProtocol(pub u8);

impl AddressProtocol {
    pub const UNSPEC: Self = Self(0);
    pub const KERNEL_LOOPBACK: Self = Self(1);
    pub const KERNEL_RA: Self = Self(2);
    pub const KERNEL_LINK_LOCAL: Self = Self(3);
    /// Berth's own mark on pooled addresses: 'b'. The kernel uses 0 to 3 and leaves the rest to user space.
    pub const BERTH: Self = Self(98);

    const NAMES: [(&'static str, Self); 3] = [
        ("kernel_lo", Self::KERNEL_LOOPBACK),
        ("kernel_ra", Self::KERNEL_RA),
        ("kernel_ll", Self::KERNEL_LINK_LOCAL),
    ];

    /// The kernel's word for an address that it made itself.
    pub fn is_kernels(self) -> bool {
        Self::NAMES.iter().any(|(_, known)| *known == self)
    }

    pub(crate) fn from_name(name: &str) -> Option<Self> {
        let known = Self::NAMES.iter().find(|(n, _)| *n == name).map(|(_, p)| *p);
        known.or_else(|| name.parse().ok().map(Self))
    }
}

impl fmt::Display for AddressProtocol {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match Self::NAMES.iter().find(|(_, p)| p == self) {
            Some((name, _)) => f.write_str(name),
            None => write!(f, "{}", self.0),
        }
    }
}

/// How long a renewed address lasts, in seconds as the kernel last said.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Lifetime {
    pub valid: u32,
    pub preferred: u32,
}

/// One address of a link.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Address {
    pub ip: IpAddr,
    pub prefix: u8,
    /// `None`: for ever, so static. Otherwise somebody renews it, and it is theirs.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub lifetime: Option<Lifetime>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub protocol: Option<AddressProtocol>,
    #[serde(default, rename = "kernel-attributes", skip_serializing_if = "Raw::is_empty")]
    pub raw: Raw,
}

impl Address {
    pub fn new(ip: IpAddr, prefix: u8) -> Self {
        Self { ip, prefix, lifetime: None, protocol: None, raw: Raw::default() }
    }

    pub fn family(&self) -> Family {
        Family::of(&self.ip)
    }

    /// Same address with the same prefix length, whoever put it there.
    pub fn same(&self, other: &Address) -> bool {
        self.ip == other.ip && self.prefix == other.prefix
    }

    /// The subnet it makes directly reachable.
    pub fn subnet(&self) -> IpNet {
        // A prefix beyond the family's length can't come through the border; a host route is the safe reading.
        let net = IpNet::new(self.ip, self.prefix).unwrap_or_else(|_| IpNet::from(self.ip));
        net.trunc()
    }

    /// How far it reaches, as the kernel numbers it: 0 everywhere, 253 the link, 254 the host.
    pub fn scope(&self) -> u8 {
        // Not an attribute: a scope out of the ordinary, as the agent keeps it.
        const SCOPE: u16 = 0;
        let kept =
            self.raw.0.iter().find(|(number, _)| *number == SCOPE).and_then(|(_, bytes)| bytes.first());
        kept.copied().unwrap_or(match self.ip {
            ip if ip.is_loopback() => 254,
            IpAddr::V4(ip) if ip.is_link_local() => 253,
            IpAddr::V6(ip) if ip.is_unicast_link_local() => 253,
            _ => 0,
        })
    }

    /// Somebody renews it.
    pub fn is_dynamic(&self) -> bool {
        self.lifetime.is_some()
    }

    /// Of fe80::/10.
    pub fn is_link_local(&self) -> bool {
        matches!(self.ip, IpAddr::V6(ip) if ip.is_unicast_link_local())
    }

    /// The link-local address that the kernel made, or that nobody can tell from it: see
    /// [`super::Observed::tell_link_locals`].
    pub fn is_kernel_link_local(&self) -> bool {
        self.is_link_local() && matches!(self.protocol, None | Some(AddressProtocol::KERNEL_LINK_LOCAL))
    }

    /// Not Berth's to remove because a list doesn't name it.
    pub fn is_foreign(&self) -> bool {
        let foreign_mark =
            !matches!(self.protocol, None | Some(AddressProtocol::UNSPEC | AddressProtocol::BERTH));
        self.is_dynamic() || self.is_kernel_link_local() || foreign_mark
    }
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.ip, self.prefix)
    }
}

/// Whether router advertisements are heeded.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum AcceptRa {
    Off,
    /// Unless the link routes packets on.
    On,
    Always,
}

impl AcceptRa {
    /// As the kernel numbers them.
    pub const ALL: [AcceptRa; 3] = [AcceptRa::Off, AcceptRa::On, AcceptRa::Always];

    pub fn as_str(self) -> &'static str {
        match self {
            AcceptRa::Off => "off",
            AcceptRa::On => "on",
            AcceptRa::Always => "always",
        }
    }
}

/// A link's side of one family.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct Ip {
    /// IPv6: not switched off by `disable_ipv6`. IPv4 has no such switch: it is on where there are addresses.
    pub enabled: bool,
    /// Something outside renews addresses here (IPv4: a DHCP client; IPv6: DHCPv6).
    pub dhcp: bool,
    /// IPv6: router advertisements gave addresses here.
    pub autoconf: bool,
    /// IPv6: whether router advertisements are heeded; `None` where nobody looked.
    pub accept_ra: Option<AcceptRa>,
    /// Packets are routed on from here; `None` where nobody looked.
    pub forwarding: Option<bool>,
    /// In the kernel's order: the first is the one that outgoing packets get.
    pub addresses: Vec<Address>,
}

impl Ip {
    /// Whether somebody else gives this link addresses.
    pub fn is_auto(&self) -> bool {
        self.dhcp || self.autoconf || self.addresses.iter().any(Address::is_dynamic)
    }

    pub fn position(&self, address: &Address) -> Option<usize> {
        self.addresses.iter().position(|a| a.same(address))
    }
}
