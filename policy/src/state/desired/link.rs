//! Reading one entry of `interfaces`.

use super::super::error::Reason;
use super::super::kind::{self, KindSpec, PortStyle};
use super::super::option::Options;
use super::super::path::Path;
use super::super::scalar::{Reader, shown};
use super::super::{IfName, LinkKind, Mac};
use super::{AltName, DesiredLink, Identifier, LinkState, Ports, ip, ports};
use serde_json::{Map, Value};

/// What a document may show about a link and nobody can ask for.
#[derive(Default)]
pub(crate) struct Shown {
    pub(in crate::state) permanent_mac: Option<Mac>,
    pub(in crate::state) min_mtu: Option<u32>,
    pub(in crate::state) max_mtu: Option<u32>,
    pub(in crate::state) addresses: [Vec<crate::state::Address>; 2],
    pub(in crate::state) extra: Map<String, Value>,
    /// A kind that the model doesn't know, or `state: ignore`.
    pub(in crate::state) ignored: bool,
}

/// Fields nmstate has and Berth doesn't apply.
const UNSUPPORTED: &[&str] = &[
    "ethtool",
    "mptcp",
    "lldp",
    "802.1x",
    "dispatch",
    "wait-ip",
    "ovs-db",
    "pci-address",
    "ovs-bridge",
    "ovn",
    "patch",
    "dpdk",
    "infiniband",
    "ipvlan",
    "ip-vlan",
    "mac-vtap",
    "macsec",
    "hsr",
    "ipsec",
    "xfrm",
    "tun",
    "libreswan",
];

const STATES: &[(&str, LinkState)] = &[
    ("up", LinkState::Up),
    ("down", LinkState::Down),
    ("absent", LinkState::Absent),
    ("ignore", LinkState::Ignore),
    // nmstate drops an entry whose state nobody knows.
    ("unknown", LinkState::Ignore),
];

pub(in crate::state) fn read(
    r: &mut Reader,
    path: &Path<'_>,
    index: usize,
    value: &Value,
) -> Option<(DesiredLink, Shown)> {
    let map = r.map(path, value)?;
    let name = match map.get("name") {
        Some(name) => r.reference(&path.key("name"), name)?,
        None => {
            r.find(&path.key("name"), Reason::Missing);
            return None;
        }
    };
    let mut link = DesiredLink::new(index, name);
    let mut seen = Shown::default();
    if let Some(state) = map.get("state").filter(|v| !v.is_null()) {
        link.state = r.word(&path.key("state"), state, STATES).unwrap_or_default();
    }
    link.kind = read_kind(r, path, map);
    let unknown_kind = matches!(link.kind, Some(LinkKind::Other(_)));
    if link.state == LinkState::Ignore || unknown_kind {
        // Nothing in an ignored entry is looked at: it may be of a kind that nobody here knows.
        refuse_kind(r, path, &link);
        seen.ignored = true;
        if r.lenient {
            seen.extra = map.clone();
        } else if link.state != LinkState::Ignore {
            // What every kind has is looked at all the same, so that all that is wrong is said at once; what else
            // such a kind may have, nobody here knows.
            let mut spare = DesiredLink::new(index, link.name.clone());
            for (key, value) in r.fields(path, value) {
                let at = path.key(key);
                let known = common(r, &at, key, value, &mut spare, &mut Shown::default());
                // Its own section goes with the kind, under whichever name.
                let refused = UNSUPPORTED.contains(&key) && !LinkKind::is_foreign(key);
                if !known && refused {
                    r.unread(&at, true, value);
                }
            }
        }
        return Some((link, seen));
    }
    if let Some(kind) = &link.kind {
        one_name(r, path, value, kind.spec().sections);
    }
    for (key, value) in r.fields(path, value) {
        let at = path.key(key);
        if !common(r, &at, key, value, &mut link, &mut seen) {
            read_section(r, &at, key, value, &mut link);
        }
    }
    if link.kind == Some(LinkKind::Ethernet) && link.peer.is_some() {
        // nmstate calls it either; only a veth has a peer.
        link.kind = Some(LinkKind::Veth);
    }
    read_identifier(r, path, map, &mut link);
    read_profile(r, path, map, &link);
    seen.extra = std::mem::take(&mut r.extra);
    Some((link, seen))
}

/// Of several names of one field a document may use one: which of them would count, nobody could tell.
fn one_name(r: &mut Reader, path: &Path<'_>, value: &Value, names: &'static [&'static str]) {
    let mut given = names.iter().filter(|name| value.get(**name).is_some_and(|value| !value.is_null()));
    let Some(first) = given.next().filter(|_| !r.lenient) else {
        return;
    };
    for name in given {
        r.find(&path.key(name), Reason::OtherName { other: first });
    }
}

/// Nobody here has profiles; one that is called as its link says nothing.
fn read_profile(r: &mut Reader, path: &Path<'_>, map: &Map<String, Value>, link: &DesiredLink) {
    let Some(profile) = map.get("profile-name").filter(|v| !v.is_null() && !r.lenient) else {
        return;
    };
    if link.identifier == Identifier::Name && profile.as_str() != Some(link.name.as_str()) {
        r.unread(&path.key("profile-name"), true, profile);
    }
}

fn read_kind(r: &mut Reader, path: &Path<'_>, map: &Map<String, Value>) -> Option<LinkKind> {
    if let Some(value) = map.get("type").filter(|v| !v.is_null()) {
        let name = r.text(&path.key("type"), value)?;
        return if name == "unknown" { None } else { Some(LinkKind::from_name(name)) };
    }
    // No type said, but a section only one kind has: that is as good.
    map.keys().find_map(|key| kind::of_section(key))
}

fn refuse_kind(r: &mut Reader, path: &Path<'_>, link: &DesiredLink) {
    let Some(LinkKind::Other(name)) = &link.kind else {
        return;
    };
    // Taking away what nobody here can make is refused too: the plan couldn't put it back.
    if r.lenient || link.state == LinkState::Ignore {
        return;
    }
    let at = path.key("type");
    if LinkKind::is_foreign(name) {
        r.find(&at, Reason::ValueNotSupported { what: name.clone() });
    } else {
        let allowed = LinkKind::KNOWN.iter().map(|k| k.spec_name()).collect();
        r.find(&at, Reason::NotOneOf { allowed, found: format!("{name:?}") });
    }
}

/// The fields that every kind has. False: not one of them.
fn common(
    r: &mut Reader,
    at: &Path<'_>,
    key: &str,
    value: &Value,
    link: &mut DesiredLink,
    seen: &mut Shown,
) -> bool {
    match key {
        "name" | "type" | "state" | "identifier" | "profile-name" => {}
        "driver" => {
            if r.lenient {
                r.unread(at, true, value);
            }
        }
        "permanent-mac-address" if r.lenient => seen.permanent_mac = r.mac(at, value),
        "min-mtu" if r.lenient => seen.min_mtu = r.u32(at, value),
        "max-mtu" if r.lenient => seen.max_mtu = r.u32(at, value),
        "permanent-mac-address" | "min-mtu" | "max-mtu" => {}
        "description" => link.alias = r.text(at, value).map(str::to_owned),
        "mac-address" => link.mac = r.mac(at, value),
        // 68 is the least any link takes (IPv4); the link's own limits are the plan's to check.
        "mtu" => {
            link.mtu = r.int(at, value, 68, u32::MAX.into()).and_then(|n| u32::try_from(n).ok());
        }
        "controller" => {
            link.controller = match value.as_str() {
                Some("") => Some(None),
                _ => r.reference(at, value).map(Some),
            };
        }
        "copy-mac-from" => link.copy_mac_from = r.reference(at, value),
        "accept-all-mac-addresses" => link.promiscuous = r.boolean(at, value),
        "alt-names" => link.alt_names = read_alt_names(r, at, value),
        "ipv4" | "ipv6" => ip::read(r, at, key, value, link, seen),
        _ => return false,
    }
    true
}

fn read_alt_names(r: &mut Reader, path: &Path<'_>, value: &Value) -> Vec<AltName> {
    let mut names = Vec::new();
    for (i, item) in r.list(path, value).iter().enumerate() {
        let at = path.index(i);
        let (mut name, mut absent) = (None, false);
        if let Value::String(_) = item {
            name = r.reference(&at, item);
        } else {
            for (key, value) in r.fields(&at, item) {
                let at = at.key(key);
                match key {
                    "name" => name = r.reference(&at, value),
                    "state" => {
                        absent = r.word(&at, value, &[("absent", true), ("up", false)]).unwrap_or(false);
                    }
                    _ => r.unread(&at, false, value),
                }
            }
        }
        match name {
            Some(name) => names.push(AltName { name: name.into(), absent }),
            None => r.find(&at.key("name"), Reason::Missing),
        }
    }
    names
}

fn read_identifier(r: &mut Reader, path: &Path<'_>, map: &Map<String, Value>, link: &mut DesiredLink) {
    let Some(value) = map.get("identifier").filter(|v| !v.is_null()) else {
        return;
    };
    let at = path.key("identifier");
    match value.as_str() {
        Some("name") => {}
        Some("mac-address") => match link.mac.take() {
            // The MAC is then a selector, not a setting.
            Some(mac) => link.identifier = Identifier::Mac(mac),
            None => r.find(&at, Reason::Needs { other: "mac-address" }),
        },
        Some("pci-address") => r.find(&at, Reason::ValueNotSupported { what: "pci-address".into() }),
        _ => r.find(&at, Reason::NotOneOf { allowed: vec!["name", "mac-address"], found: shown(value) }),
    }
}

/// A section that belongs to one kind.
fn read_section(r: &mut Reader, at: &Path<'_>, key: &str, value: &Value, link: &mut DesiredLink) {
    let Some(owner) = kind::of_section(key) else {
        r.unread(at, UNSUPPORTED.contains(&key), value);
        return;
    };
    // nmstate shows both ends of a veth as ethernet with a veth section.
    if let Some(kind) = link.kind.as_ref().filter(|k| !k.agrees(&owner)) {
        let found = kind.to_string();
        if !r.lenient {
            r.find(at, Reason::WrongKind { owner: owner.spec_name(), found });
        }
        return;
    }
    let spec = owner.spec();
    if link.kind.is_none() {
        link.kind = Some(owner);
    }
    let mut out = Section { spec, link };
    out.read(r, at, "", value);
}

/// What a port list may be called.
const PORTS: &[&str] = &["port", "ports", "slaves"];

struct Section<'a> {
    spec: &'static KindSpec,
    link: &'a mut DesiredLink,
}

impl Section<'_> {
    /// Walks a section; `prefix` is where in it we are ("", "options.", "options.stp.").
    fn read(&mut self, r: &mut Reader, path: &Path<'_>, prefix: &str, value: &Value) {
        if prefix.is_empty() && self.spec.ports != PortStyle::None {
            one_name(r, path, value, PORTS);
        }
        for (key, value) in r.fields(path, value) {
            let at = path.key(key);
            let full = format!("{prefix}{key}");
            if let Some(option) = self.spec.option(&full) {
                if let Some(value) = option.read(r, &at, value) {
                    let other = self.link.options.insert(option.name(), value.clone());
                    // nmstate shows such options under both names; what they say must only be the same.
                    let differs = other.is_some_and(|other| other != value) && !r.lenient;
                    if let Some(other) = option.other_name(&full).filter(|_| differs) {
                        r.find(&at, Reason::OtherName { other });
                    }
                }
            } else if self.spec.options.iter().any(|o| is_below(o.path, &full)) {
                self.read(r, &at, &format!("{full}."), value);
            } else if self.spec.query_only.contains(&full.as_str()) {
                if r.lenient {
                    r.unread(&at, true, value);
                }
            } else if !(prefix.is_empty() && self.special(r, &at, key, value)) {
                r.unread(&at, self.spec.unsupported.contains(&full.as_str()), value);
            }
        }
    }

    /// Fields of a section that are not options. False: not one of them.
    fn special(&mut self, r: &mut Reader, at: &Path<'_>, key: &str, value: &Value) -> bool {
        let link = &mut *self.link;
        match (key, self.spec.ports) {
            ("base-iface", _) if self.spec.base => {
                // nmstate shows a vxlan without a base as an empty name.
                if value.as_str() != Some("") {
                    link.base = r.reference(at, value);
                }
            }
            ("peer", _) if self.spec.sections.contains(&"veth") => link.peer = r.reference(at, value),
            (key, PortStyle::Bridge | PortStyle::Bond | PortStyle::Vrf) if PORTS.contains(&key) => {
                ports::read(r, at, value, self.spec, link.ports.get_or_insert_with(Ports::default));
            }
            ("allow-extra-ports", PortStyle::Bridge) => {
                link.ports.get_or_insert_with(Ports::default).allow_extra =
                    r.boolean(at, value).unwrap_or(false);
            }
            ("ports-config", PortStyle::Bond) => {
                let ports = link.ports.get_or_insert_with(Ports::default);
                ports::read_config(r, at, value, self.spec, ports);
            }
            _ => return false,
        }
        true
    }
}

fn is_below(path: &str, parent: &str) -> bool {
    path.strip_prefix(parent).is_some_and(|rest| rest.starts_with('.'))
}

/// Options of one port, read from a mapping that also names it.
pub(super) fn read_port_options(
    r: &mut Reader,
    path: &Path<'_>,
    value: &Value,
    spec: &'static KindSpec,
    mut other: impl FnMut(&mut Reader, &Path<'_>, &str, &Value) -> bool,
) -> (Option<IfName>, Options) {
    let (mut name, mut options) = (None, Options::new());
    for (key, value) in r.fields(path, value) {
        let at = path.key(key);
        if key == "name" {
            name = r.reference(&at, value);
        } else if let Some(option) = spec.port_option(key) {
            if let Some(value) = option.read(r, &at, value) {
                options.insert(option.name(), value);
            }
        } else if !other(r, &at, key, value) {
            r.unread(&at, false, value);
        }
    }
    if name.is_none() {
        r.find(&path.key("name"), Reason::Missing);
    }
    (name, options)
}
