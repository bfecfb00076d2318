//! Routes as the kernel has them: one route, one or several next hops.

use super::{Family, IfName, Raw};
use ipnet::IpNet;
use serde::{Deserialize, Serialize};
use std::fmt;
use std::net::IpAddr;

/// The main table; nmstate's `table-id: 0` means it too.
pub const MAIN_TABLE: u32 = 254;
/// What the kernel gives an IPv6 route that asks for no metric.
pub const IPV6_METRIC: u32 = 1024;

/// Who put a route there (`rtm_protocol`).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(transparent)]
pub struct RouteProtocol(pub u8);

impl RouteProtocol {
    pub const UNSPEC: Self = Self(0);
    pub const REDIRECT: Self = Self(1);
    pub const KERNEL: Self = Self(2);
    pub const BOOT: Self = Self(3);
    pub const STATIC: Self = Self(4);
    pub const RA: Self = Self(9);
    pub const DHCP: Self = Self(16);

    /// Somebody wrote it down, as opposed to a daemon or the kernel having learnt it: nmstate's `config`.
    pub fn is_config(self) -> bool {
        matches!(self, Self::BOOT | Self::STATIC)
    }

    /// The kernel makes it again by itself.
    pub fn is_kernels(self) -> bool {
        matches!(self, Self::KERNEL | Self::REDIRECT | Self::RA)
    }
}

/// What happens to a packet that takes it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum RouteType {
    Unicast,
    Blackhole,
    Unreachable,
    Prohibit,
}

impl RouteType {
    pub(crate) const WORDS: [(&'static str, RouteType); 4] = [
        ("unicast", RouteType::Unicast),
        ("blackhole", RouteType::Blackhole),
        ("unreachable", RouteType::Unreachable),
        ("prohibit", RouteType::Prohibit),
    ];

    pub fn as_str(self) -> &'static str {
        match self {
            RouteType::Unicast => "unicast",
            RouteType::Blackhole => "blackhole",
            RouteType::Unreachable => "unreachable",
            RouteType::Prohibit => "prohibit",
        }
    }
}

/// One way a route leads.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct NextHop {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub via: Option<IpAddr>,
    pub dev: IfName,
    /// Share among several; 1 to 256.
    pub weight: u16,
    /// The gateway is taken as directly reachable whatever the addresses say.
    pub onlink: bool,
}

impl NextHop {
    /// The same gateway through the same link, whatever its share.
    pub fn is_same_way(&self, other: &Self) -> bool {
        (self.via, &self.dev) == (other.via, &other.dev)
    }
}

impl fmt::Display for NextHop {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(via) = self.via {
            write!(f, "via {via} ")?;
        }
        write!(f, "dev {}", self.dev)?;
        if self.weight > 1 {
            write!(f, " weight {}", self.weight)?;
        }
        if self.onlink { f.write_str(" onlink") } else { Ok(()) }
    }
}

/// What tells routes apart: two with the same key are one route that changed.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct RouteKey {
    pub table: u32,
    pub destination: IpNet,
    pub metric: u32,
    pub tos: u8,
}

/// A route.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct Route {
    pub destination: IpNet,
    pub table: u32,
    /// IPv4: 0 where none was asked for; IPv6: 1024.
    pub metric: u32,
    /// Type of service: IPv4 looks at it first. Documents have no word for it, and ask for 0.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub tos: u8,
    #[serde(rename = "type")]
    pub kind: RouteType,
    pub protocol: RouteProtocol,
    /// Several: ECMP. None: blackhole and its kin. Sorted by (via, dev).
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub next_hops: Vec<NextHop>,
    /// The next hop object that it has them from.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub object: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub source: Option<IpAddr>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mtu: Option<u32>,
    #[serde(default, rename = "kernel-attributes", skip_serializing_if = "Raw::is_empty")]
    pub raw: Raw,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde asks so")]
fn is_zero(number: &u8) -> bool {
    *number == 0
}

impl Route {
    pub fn key(&self) -> RouteKey {
        RouteKey { table: self.table, destination: self.destination, metric: self.metric, tos: self.tos }
    }

    pub fn family(&self) -> Family {
        Family::of_net(&self.destination)
    }

    pub fn uses(&self, link: &IfName) -> bool {
        self.next_hops.iter().any(|hop| hop.dev == *link)
    }

    /// What the kernel gives a route that asks for no metric.
    pub fn default_metric(family: Family) -> u32 {
        match family {
            Family::Ipv4 => 0,
            Family::Ipv6 => IPV6_METRIC,
        }
    }

    /// Next hops in their order; the only one of a route has no share, and the kernel keeps none for it.
    pub fn settle_hops(&mut self) {
        self.next_hops.sort();
        if let [only] = self.next_hops.as_mut_slice() {
            only.weight = 1;
        }
    }

    /// IPv6 takes several next hops only with a gateway in each.
    pub fn has_all_gateways(&self) -> bool {
        let several = self.family() == Family::Ipv6 && self.next_hops.len() > 1;
        !several || self.next_hops.iter().all(|hop| hop.via.is_some())
    }

    pub fn has_gateway(&self) -> bool {
        self.next_hops.iter().any(|hop| hop.via.is_some())
    }
}

impl fmt::Display for Route {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.kind != RouteType::Unicast {
            write!(f, "{} ", self.kind.as_str())?;
        }
        if self.destination.prefix_len() == 0 {
            let family = if self.family() == Family::Ipv6 { " (ipv6)" } else { "" };
            write!(f, "default{family}")?;
        } else {
            write!(f, "{}", self.destination)?;
        }
        if self.tos != 0 {
            write!(f, " tos {:#04x}", self.tos)?;
        }
        if let Some(object) = self.object {
            write!(f, " nhid {object}")?;
        }
        for (i, hop) in self.next_hops.iter().enumerate() {
            write!(f, "{}{hop}", if i == 0 { " " } else { " + " })?;
        }
        if self.metric != Self::default_metric(self.family()) {
            write!(f, " metric {}", self.metric)?;
        }
        if self.table != MAIN_TABLE {
            write!(f, " table {}", self.table)?;
        }
        if let Some(source) = self.source {
            write!(f, " src {source}")?;
        }
        if let Some(mtu) = self.mtu { write!(f, " mtu {mtu}") } else { Ok(()) }
    }
}
