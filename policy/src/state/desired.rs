//! A desired document, typed. Only what it mentions is there (`Option`), because what isn't mentioned isn't
//! touched.
//!
//! [`Desired::from_value`] refuses everything that Berth doesn't apply, all at once. What the host looks like
//! is not known here: that is the plan's business.

pub(super) mod ip;
pub(super) mod link;
pub(super) mod ports;
pub(super) mod resolver;
pub(super) mod route;
pub(super) mod rule;

use super::error::{Reason, Refusals};
use super::path::Path;
use super::scalar::Reader;
use super::{Family, Hostname, IfName, LinkKind, Mac, Options, PortVlan, RouteType, RuleAction};
use ipnet::IpNet;
use serde_json::Value;
use std::collections::BTreeMap;
use std::fmt;
use std::net::IpAddr;

/// What a document asks for.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Desired {
    pub links: Vec<DesiredLink>,
    pub routes: Vec<DesiredRoute>,
    pub rules: Vec<DesiredRule>,
    pub dns: Option<DesiredDns>,
    pub hostname: Option<Hostname>,
}

/// How a document says which link it means.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Identifier {
    /// By its name or an alternative name.
    Name,
    /// By its MAC address, permanent before current; the name is then only a label.
    Mac(Mac),
}

/// What a link shall be.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum LinkState {
    #[default]
    Up,
    Down,
    Absent,
    Ignore,
}

/// An alternative name to add or to take away.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AltName {
    pub name: String,
    pub absent: bool,
}

/// One entry of `interfaces`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DesiredLink {
    /// Where it stands in `interfaces`, for messages.
    pub index: usize,
    pub name: IfName,
    pub identifier: Identifier,
    pub kind: Option<LinkKind>,
    pub state: LinkState,
    pub alias: Option<String>,
    pub mac: Option<Mac>,
    pub mtu: Option<u32>,
    /// `Some(None)`: on no controller.
    pub controller: Option<Option<IfName>>,
    pub copy_mac_from: Option<IfName>,
    pub alt_names: Vec<AltName>,
    pub promiscuous: Option<bool>,
    pub base: Option<IfName>,
    pub peer: Option<IfName>,
    pub options: Options,
    pub ports: Option<Ports>,
    pub ipv4: Option<DesiredIp>,
    pub ipv6: Option<DesiredIp>,
}

/// A controller's port list: exact, unless extra ports are allowed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Ports {
    /// `None`: the list was not mentioned, only options of ports.
    pub list: Option<Vec<PortEntry>>,
    pub allow_extra: bool,
    /// A bond's `ports-config`: options of ports that are listed elsewhere.
    pub config: BTreeMap<IfName, PortConfig>,
}

/// One entry of `ports-config`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PortConfig {
    /// Where it stands in the list, for messages; the first place of a port that is there twice.
    pub index: usize,
    pub options: Options,
}

/// One port in a list.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PortEntry {
    pub name: IfName,
    pub options: Options,
    /// `None`: not mentioned, kept. `Some(default)`: `vlan: {}`, reset.
    pub vlan: Option<PortVlan>,
}

/// A family of a link.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DesiredIp {
    pub enabled: Option<bool>,
    pub dhcp: Option<bool>,
    pub autoconf: Option<bool>,
    pub forwarding: Option<bool>,
    /// The whole list of static addresses, first is primary. `None`: not mentioned.
    pub addresses: Option<Vec<DesiredAddress>>,
}

/// An address that shall be there.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct DesiredAddress {
    pub ip: IpAddr,
    pub prefix: u8,
    /// To be marked as pooled, in a document by its `protocol`: the agent sets it on what came from a pool.
    pub pooled: bool,
}

/// One entry of `routes.config`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DesiredRoute {
    pub index: usize,
    /// A filter: what it doesn't mention matches anything.
    pub absent: bool,
    pub destination: Option<IpNet>,
    /// `Some(None)`: said to be none.
    pub via: Option<Option<IpAddr>>,
    pub dev: Option<IfName>,
    pub metric: Option<u32>,
    pub table: Option<u32>,
    pub weight: Option<u16>,
    pub kind: Option<RouteType>,
    pub source: Option<IpAddr>,
    pub mtu: Option<u32>,
}

/// One entry of `route-rules.config`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DesiredRule {
    pub index: usize,
    /// A filter: what it doesn't mention matches anything.
    pub absent: bool,
    pub family: Option<Family>,
    pub from: Option<IpNet>,
    pub to: Option<IpNet>,
    pub priority: Option<u32>,
    pub table: Option<u32>,
    pub fwmark: Option<u32>,
    pub fwmask: Option<u32>,
    pub action: Option<RuleAction>,
    pub iif: Option<IfName>,
    pub suppress_prefix_length: Option<u32>,
}

/// `dns-resolver.config`; each list replaces the one that is there.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DesiredDns {
    pub servers: Option<Vec<String>>,
    pub search: Option<Vec<String>>,
    pub options: Option<Vec<String>>,
}

impl DesiredLink {
    pub(crate) fn new(index: usize, name: IfName) -> Self {
        Self {
            index,
            name,
            identifier: Identifier::Name,
            kind: None,
            state: LinkState::Up,
            alias: None,
            mac: None,
            mtu: None,
            controller: None,
            copy_mac_from: None,
            alt_names: Vec::new(),
            promiscuous: None,
            base: None,
            peer: None,
            options: Options::new(),
            ports: None,
            ipv4: None,
            ipv6: None,
        }
    }

    pub fn ip(&self, family: Family) -> Option<&DesiredIp> {
        match family {
            Family::Ipv4 => self.ipv4.as_ref(),
            Family::Ipv6 => self.ipv6.as_ref(),
        }
    }
}

impl fmt::Display for DesiredAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.ip, self.prefix)
    }
}

impl Desired {
    /// Reads a document. What Berth doesn't apply is refused by path, all of it at once.
    pub fn from_value(document: &Value) -> Result<Self, Refusals> {
        let (desired, refusals) = Self::read(document);
        if refusals.0.is_empty() { Ok(desired) } else { Err(refusals) }
    }

    /// Reads what can be read of a document: that, and all that is refused. What is refused counts as not
    /// mentioned, so where there is any the rest must not be applied.
    pub fn read(document: &Value) -> (Self, Refusals) {
        let mut r = Reader::strict();
        let desired = read(&mut r, document);
        (desired, Refusals(r.findings))
    }
}

fn read(r: &mut Reader, document: &Value) -> Desired {
    let root = Path::Root;
    let mut desired = Desired::default();
    for (key, value) in r.fields(&root, document) {
        let at = root.key(key);
        match key {
            "interfaces" => desired.links = read_links(r, &at, value),
            "routes" => desired.routes = section(r, &at, value, route::read_list),
            "route-rules" => desired.rules = section(r, &at, value, rule::read_list),
            "dns-resolver" => desired.dns = section(r, &at, value, |r, p, v| Some(resolver::read(r, p, v))),
            "hostname" => desired.hostname = resolver::read_hostname(r, &at, value),
            // A remark for people; nmstate has it too.
            "description" => {}
            "ovn" | "ovs-db" => r.unread(&at, true, value),
            _ => r.unread(&at, false, value),
        }
    }
    desired
}

/// The `config` of a section; `running` is there to be shown only.
fn section<T: Default>(
    r: &mut Reader,
    path: &Path<'_>,
    value: &Value,
    read: impl Fn(&mut Reader, &Path<'_>, &Value) -> T,
) -> T {
    let mut out = T::default();
    for (key, value) in r.fields(path, value) {
        let at = path.key(key);
        match key {
            "config" => out = read(r, &at, value),
            "running" => {}
            _ => r.unread(&at, false, value),
        }
    }
    out
}

/// Reads the list. A name given twice is refused: nmstate lets the last one win, which throws away half of
/// what somebody wrote, and which half depends on the order of a list.
fn read_links(r: &mut Reader, path: &Path<'_>, value: &Value) -> Vec<DesiredLink> {
    let mut links: Vec<DesiredLink> = Vec::new();
    let mut seen: BTreeMap<String, usize> = BTreeMap::new();
    for (i, item) in r.list(path, value).iter().enumerate() {
        let at = path.index(i);
        let Some((link, _)) = link::read(r, &at, i, item) else {
            continue;
        };
        match seen.get(link.name.as_str()) {
            Some(first) => {
                let (name, first) = (link.name.to_string(), path.index(*first).to_string());
                r.find(&at, Reason::Duplicate { name, first });
            }
            None => {
                seen.insert(link.name.to_string(), i);
                links.push(link);
            }
        }
    }
    links
}
