//! A link as the kernel has it.

use super::{Attributes, Family, IfName, Ip, LinkKind, Mac, OptValue, Options, Port, VlanEntry, kind};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use std::collections::BTreeSet;

/// One network interface. What sits on a controller is said at the port (`controller`, `port`), as in the
/// kernel; port lists are made from it when a state is printed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct Link {
    pub name: IfName,
    pub kind: LinkKind,
    /// Administratively up.
    pub up: bool,
    /// Shown as `state: ignore`: neither read further nor touched.
    pub ignored: bool,
    /// `IFLA_IFALIAS`; nmstate's `description`.
    pub alias: Option<String>,
    pub mac: Option<Mac>,
    pub permanent_mac: Option<Mac>,
    pub mtu: Option<u32>,
    pub min_mtu: Option<u32>,
    pub max_mtu: Option<u32>,
    pub controller: Option<IfName>,
    pub port: Port,
    pub alt_names: BTreeSet<String>,
    pub promiscuous: bool,
    /// The link it sits on (vlan, vxlan, mac-vlan).
    pub base: Option<IfName>,
    /// What an ignored link sits on, where its MTU shrinks along with that one's, and it goes with it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub shrinks_with: Option<IfName>,
    /// All VLANs of a bridge, or of a port of one; `None` where nobody looked. Documents know those of ports only, and not
    /// all that a port may have: a revert puts these back.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub vlans: Option<Vec<VlanEntry>>,
    /// The other end of a veth, where it is in this namespace.
    pub peer: Option<IfName>,
    /// The kind's options.
    pub options: Options,
    /// What the kernel is told of a new link and the model has no word for: queue length, group; and of its kind.
    #[serde(default, skip_serializing_if = "Attributes::is_empty")]
    pub attributes: Attributes,
    #[serde(default, skip_serializing_if = "Attributes::is_empty")]
    pub kind_attributes: Attributes,
    /// What it has that can't be given to a link that is made again, in words.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub unkept: Vec<String>,
    pub ipv4: Ip,
    pub ipv6: Ip,
    /// What a document said about it beyond the model; shown again as it came.
    pub extra: Map<String, Value>,
}

impl Link {
    /// A link that is down and has nothing. IPv6 is on, as the kernel has it by default.
    pub fn new(name: IfName, kind: LinkKind) -> Self {
        Self {
            name,
            kind,
            up: false,
            ignored: false,
            alias: None,
            mac: None,
            permanent_mac: None,
            mtu: None,
            min_mtu: None,
            max_mtu: None,
            controller: None,
            port: Port::default(),
            alt_names: BTreeSet::new(),
            promiscuous: false,
            base: None,
            shrinks_with: None,
            vlans: None,
            peer: None,
            options: Options::new(),
            attributes: Attributes::new(),
            kind_attributes: Attributes::new(),
            unkept: Vec::new(),
            ipv4: Ip::default(),
            ipv6: Ip { enabled: true, ..Ip::default() },
            extra: Map::new(),
        }
    }

    /// What it sits on, whatever its kind.
    pub fn sits_on(&self) -> Option<&IfName> {
        self.base.as_ref().or(self.shrinks_with.as_ref())
    }

    pub fn ip(&self, family: Family) -> &Ip {
        match family {
            Family::Ipv4 => &self.ipv4,
            Family::Ipv6 => &self.ipv6,
        }
    }

    pub fn ip_mut(&mut self, family: Family) -> &mut Ip {
        match family {
            Family::Ipv4 => &mut self.ipv4,
            Family::Ipv6 => &mut self.ipv6,
        }
    }

    /// A bridge that looks at VLAN tags.
    pub fn filters_vlans(&self) -> bool {
        self.options.get(&kind::VLAN_FILTERING.name()) == Some(&OptValue::Bool(true))
    }

    /// The VLAN that a bridge gives untagged frames by default; the kernel's own default is 1.
    pub fn default_pvid(&self) -> u16 {
        match self.options.get(&kind::DEFAULT_PVID.name()) {
            Some(OptValue::Int(n)) => u16::try_from(*n).unwrap_or(1),
            _ => 1,
        }
    }
}
