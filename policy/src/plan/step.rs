//! One change to the kernel, with all that is needed to make it and to print it.

mod new_link;

use crate::state::{
    AcceptRa, Address, Attributes, Dns, Family, Hostname, IfName, Kept, KeptKind, LinkKind, Mac, Options,
    PortVlan, Route, Rule, VlanEntry, VlanRange,
};
use serde::Serialize;
use std::fmt;

pub use new_link::NewLink;

/// A step. Nothing is left to decide when it is executed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(tag = "step", rename_all = "kebab-case")]
pub enum Step {
    DeleteLink {
        link: IfName,
        kind: LinkKind,
    },
    CreateLink(NewLink),
    Detach {
        link: IfName,
        controller: IfName,
    },
    Attach {
        link: IfName,
        controller: IfName,
    },
    SetUp {
        link: IfName,
    },
    SetDown {
        link: IfName,
    },
    SetMac {
        link: IfName,
        mac: Mac,
    },
    SetMtu {
        link: IfName,
        mtu: u32,
    },
    /// Empty: none.
    SetAlias {
        link: IfName,
        alias: String,
    },
    SetPromiscuous {
        link: IfName,
        on: bool,
    },
    AddAltName {
        link: IfName,
        name: String,
    },
    DeleteAltName {
        link: IfName,
        name: String,
    },
    SetOptions {
        link: IfName,
        kind: LinkKind,
        options: Options,
    },
    SetPortOptions {
        link: IfName,
        kind: LinkKind,
        options: Options,
    },
    /// What of a link there is no word for, as it was, where it couldn't be given as the link was made.
    RestoreLink {
        link: IfName,
        kind: LinkKind,
        #[serde(skip)]
        attributes: Attributes,
        #[serde(skip)]
        kind_attributes: Attributes,
    },
    /// What of a port there is no word for, as it was.
    RestorePort {
        link: IfName,
        kind: LinkKind,
        #[serde(skip)]
        attributes: Attributes,
    },
    /// `vlan` is what the port then has; `remove` goes first.
    SetPortVlans {
        link: IfName,
        vlan: PortVlan,
        #[serde(skip_serializing_if = "Vec::is_empty")]
        remove: Vec<VlanRange>,
        #[serde(skip_serializing_if = "Vec::is_empty")]
        add: Vec<VlanEntry>,
    },
    /// All VLANs of a bridge's port, or of the bridge itself, as they were; `remove` goes first.
    RestoreVlans {
        link: IfName,
        /// Those of the bridge itself.
        own: bool,
        #[serde(skip)]
        vlan: PortVlan,
        #[serde(skip)]
        all: Vec<VlanEntry>,
        #[serde(skip_serializing_if = "Vec::is_empty")]
        remove: Vec<VlanRange>,
        #[serde(skip_serializing_if = "Vec::is_empty")]
        add: Vec<VlanEntry>,
    },
    /// `disable_ipv6`.
    SetIpv6 {
        link: IfName,
        on: bool,
    },
    /// `accept_ra`.
    SetAcceptRa {
        link: IfName,
        accept: AcceptRa,
    },
    SetForwarding {
        link: IfName,
        family: Family,
        on: bool,
    },
    AddAddress {
        link: IfName,
        address: Address,
    },
    /// Same address: another lifetime or mark.
    ReplaceAddress {
        link: IfName,
        address: Address,
    },
    DeleteAddress {
        link: IfName,
        address: Address,
    },
    AddRoute {
        route: Route,
    },
    /// Beside one with the same key.
    AppendRoute {
        route: Route,
    },
    /// In place of the one with the same key: no packet finds neither.
    ReplaceRoute {
        route: Route,
    },
    DeleteRoute {
        route: Route,
    },
    AddRule {
        rule: Rule,
    },
    DeleteRule {
        rule: Rule,
    },
    /// What no document has words for, as it was.
    Restore {
        #[serde(serialize_with = "in_words")]
        kept: Box<Kept>,
    },
    /// Out of the way of another; it is put back.
    Forget {
        #[serde(serialize_with = "in_words")]
        kept: Box<Kept>,
    },
    SetDns {
        dns: Dns,
    },
    SetHostname {
        hostname: Hostname,
    },
}

impl Step {
    /// What is done, in a word or two.
    pub fn verb(&self) -> &'static str {
        match self {
            Step::DeleteLink { .. } => "delete link",
            Step::CreateLink(_) => "create link",
            Step::Detach { .. } => "detach port",
            Step::Attach { .. } => "attach port",
            Step::SetUp { .. } => "set up",
            Step::SetDown { .. } => "set down",
            Step::SetMac { .. } => "set mac",
            Step::SetMtu { .. } => "set mtu",
            Step::SetAlias { .. } => "set alias",
            Step::SetPromiscuous { .. } => "set promiscuous",
            Step::AddAltName { .. } => "add name",
            Step::DeleteAltName { .. } => "delete name",
            Step::SetOptions { .. } => "set options",
            Step::SetPortOptions { .. } => "set port options",
            Step::RestoreLink { .. } => "restore link",
            Step::RestorePort { .. } => "restore port",
            Step::SetPortVlans { .. } => "set port vlans",
            Step::RestoreVlans { .. } => "restore vlans",
            Step::SetIpv6 { .. } => "set ipv6",
            Step::SetAcceptRa { .. } => "set accept-ra",
            Step::SetForwarding { .. } => "set forwarding",
            Step::AddAddress { .. } => "add address",
            Step::ReplaceAddress { .. } => "replace address",
            Step::DeleteAddress { .. } => "delete address",
            Step::AddRoute { .. } => "add route",
            Step::AppendRoute { .. } => "append route",
            Step::ReplaceRoute { .. } => "replace route",
            Step::DeleteRoute { .. } => "delete route",
            Step::AddRule { .. } => "add rule",
            Step::DeleteRule { .. } => "delete rule",
            Step::Restore { kept } => match kept.kind {
                KeptKind::NextHop => "restore next hop",
                KeptKind::Route => "restore route",
                KeptKind::Rule => "restore rule",
                KeptKind::Neighbour => "restore neighbour",
                KeptKind::Forwarding => "restore fdb entry",
                KeptKind::Group => "restore mdb entry",
            },
            Step::Forget { .. } => "lift out rule",
            Step::SetDns { .. } => "set dns",
            Step::SetHostname { .. } => "set hostname",
        }
    }

    /// The link it is about, if it is about one.
    pub fn link(&self) -> Option<&IfName> {
        match self {
            Step::DeleteLink { link, .. }
            | Step::CreateLink(NewLink { name: link, .. })
            | Step::Detach { link, .. }
            | Step::Attach { link, .. }
            | Step::SetUp { link }
            | Step::SetDown { link }
            | Step::SetMac { link, .. }
            | Step::SetMtu { link, .. }
            | Step::SetAlias { link, .. }
            | Step::SetPromiscuous { link, .. }
            | Step::AddAltName { link, .. }
            | Step::DeleteAltName { link, .. }
            | Step::SetOptions { link, .. }
            | Step::SetPortOptions { link, .. }
            | Step::RestoreLink { link, .. }
            | Step::RestorePort { link, .. }
            | Step::SetPortVlans { link, .. }
            | Step::RestoreVlans { link, .. }
            | Step::SetIpv6 { link, .. }
            | Step::SetAcceptRa { link, .. }
            | Step::SetForwarding { link, .. }
            | Step::AddAddress { link, .. }
            | Step::ReplaceAddress { link, .. }
            | Step::DeleteAddress { link, .. } => Some(link),
            Step::AddRoute { route }
            | Step::AppendRoute { route }
            | Step::ReplaceRoute { route }
            | Step::DeleteRoute { route } => match route.next_hops.as_slice() {
                [hop] => Some(&hop.dev),
                _ => None,
            },
            Step::Restore { kept } => match kept.hops.as_slice() {
                [hop] => Some(&hop.dev),
                _ => None,
            },
            Step::AddRule { .. }
            | Step::DeleteRule { .. }
            | Step::Forget { .. }
            | Step::SetDns { .. }
            | Step::SetHostname { .. } => None,
        }
    }

    /// The rest of it, for people.
    pub fn what(&self) -> String {
        match self {
            Step::DeleteLink { kind, .. } => kind.to_string(),
            Step::CreateLink(new) => new.to_string(),
            Step::Detach { controller, .. } => format!("from {controller}"),
            Step::Attach { controller, .. } => format!("to {controller}"),
            Step::SetUp { .. } | Step::SetDown { .. } => String::new(),
            Step::SetMac { mac, .. } => mac.to_string(),
            Step::SetMtu { mtu, .. } => mtu.to_string(),
            Step::SetAlias { alias, .. } if alias.is_empty() => "none".into(),
            Step::SetAlias { alias, .. } => alias.clone(),
            Step::AddAltName { name, .. } | Step::DeleteAltName { name, .. } => name.clone(),
            Step::SetOptions { options, .. } | Step::SetPortOptions { options, .. } => list(options),
            Step::RestoreLink { kind, .. } => format!("attributes as a {kind}"),
            Step::RestorePort { kind, .. } => format!("flags as a port of a {kind}"),
            Step::SetPortVlans { vlan, .. } => vlan.to_string(),
            Step::RestoreVlans { all, .. } => {
                all.iter().map(|entry| entry.range.to_string()).collect::<Vec<_>>().join(",")
            }
            Step::SetAcceptRa { accept, .. } => accept.as_str().into(),
            Step::SetPromiscuous { on, .. } | Step::SetIpv6 { on, .. } => on_off(*on).into(),
            Step::SetForwarding { family, on, .. } => format!("{family} {}", on_off(*on)),
            Step::AddAddress { address, .. } | Step::ReplaceAddress { address, .. } => match address.lifetime
            {
                Some(l) => format!("{address} for {}s", l.valid),
                None => address.to_string(),
            },
            Step::DeleteAddress { address, .. } => address.to_string(),
            Step::AddRoute { route }
            | Step::AppendRoute { route }
            | Step::ReplaceRoute { route }
            | Step::DeleteRoute { route } => route.to_string(),
            Step::AddRule { rule } | Step::DeleteRule { rule } => rule.to_string(),
            Step::Restore { kept } | Step::Forget { kept } => kept.words.clone(),
            Step::SetDns { dns } => dns.to_string(),
            Step::SetHostname { hostname } => hostname.to_string(),
        }
    }
}

/// The kernel's bytes are nobody's reading.
#[expect(clippy::borrowed_box, reason = "serde hands over the field as it is")]
fn in_words<S: serde::Serializer>(kept: &Box<Kept>, to: S) -> Result<S::Ok, S::Error> {
    to.collect_str(kept)
}

fn on_off(on: bool) -> &'static str {
    if on { "on" } else { "off" }
}

fn list(options: &Options) -> String {
    options.iter().map(|(name, value)| format!("{name}={value}")).collect::<Vec<_>>().join(" ")
}

impl fmt::Display for Step {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.verb())?;
        if let Some(link) = self.link() {
            write!(f, " {link}")?;
        }
        let what = self.what();
        if what.is_empty() { Ok(()) } else { write!(f, " {what}") }
    }
}
