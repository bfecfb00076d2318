//! The kinds of links as netlink spells them: one table per kind, by the names of `policy::state::kind`.
//!
//! A row says which attribute an option is and in what form; writing and reading both follow from it. What doesn't
//! fit a row (flags in one word, lists) is written out in the kind's own file. Options that the kernel doesn't
//! report are absent when read, never guessed.

mod bond;
mod bridge;
mod mac_vlan;
mod vlan;
mod vxlan;

use std::collections::BTreeMap;
use std::net::IpAddr;

use policy::state::option::{OptSpec, OptType};
use policy::state::{Attributes, IfName, LinkKind, Mac, OptValue, Options};

pub(super) use vxlan::BASE as VXLAN_BASE;

use super::decode::link::some;
use super::wire::{Attr, Attrs, Malformed, Message};

/// The kernel's clock ticks per second in what it shows to programs (`USER_HZ`).
const TICKS: u64 = 100;

/// How a value is laid out.
#[derive(Clone, Copy, Debug)]
enum Form {
    U8,
    U16,
    U32,
    U64,
    /// Sixteen bits in network order.
    Be16,
    /// Seconds here, clock ticks there.
    Seconds,
    Mac,
    /// The index of a link; absent for none.
    Index,
    /// A list of addresses under the numbers from 0.
    Ips,
}

/// An option and its attribute.
struct Row {
    path: &'static str,
    number: u16,
    form: Form,
}

const fn row(path: &'static str, number: u16, form: Form) -> Row {
    Row { path, number, form }
}

/// From names to indexes and back, for options that name a link.
#[derive(Debug, Default)]
pub(super) struct Names {
    pub(super) by_name: BTreeMap<IfName, u32>,
    pub(super) by_index: BTreeMap<u32, IfName>,
}

impl Names {
    pub(super) fn insert(&mut self, index: u32, name: IfName) {
        self.by_name.insert(name.clone(), index);
        self.by_index.insert(index, name);
    }
}

/// An option that can't be sent.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum OptionError {
    #[error("{option}: there is no link {link}")]
    NoLink { option: String, link: String },
    #[error("{option}: {value} is not a value of it")]
    Value { option: String, value: String },
    #[error("{option}: not an option of {kind}")]
    Unknown { option: String, kind: LinkKind },
}

/// As `IFLA_INFO_KIND` has it.
pub(super) fn kernel_name(kind: &LinkKind) -> Option<&'static str> {
    Some(match kind {
        LinkKind::Veth => "veth",
        LinkKind::LinuxBridge => "bridge",
        LinkKind::Bond => "bond",
        LinkKind::Vlan => "vlan",
        LinkKind::Vxlan => "vxlan",
        LinkKind::Vrf => "vrf",
        LinkKind::MacVlan => "macvlan",
        LinkKind::Dummy => "dummy",
        LinkKind::Ethernet | LinkKind::Loopback | LinkKind::Other(_) => return None,
    })
}

/// The kind of that kernel name.
pub(super) fn of_kernel_name(name: &str) -> LinkKind {
    let known = LinkKind::KNOWN.into_iter().find(|kind| kernel_name(kind) == Some(name));
    known.unwrap_or_else(|| LinkKind::Other(name.to_owned()))
}

static VRF: &[Row] = &[row("route-table-id", 1, Form::U32)];

fn rows(kind: &LinkKind) -> &'static [Row] {
    match kind {
        LinkKind::LinuxBridge => bridge::ROWS,
        LinkKind::Bond => bond::ROWS,
        LinkKind::Vlan => vlan::ROWS,
        LinkKind::Vxlan => vxlan::ROWS,
        LinkKind::MacVlan => mac_vlan::ROWS,
        LinkKind::Vrf => VRF,
        _ => &[],
    }
}

fn port_rows(controller: &LinkKind) -> &'static [Row] {
    match controller {
        LinkKind::LinuxBridge => bridge::PORT_ROWS,
        LinkKind::Bond => bond::PORT_ROWS,
        _ => &[],
    }
}

/// What of `IFLA_INFO_DATA` the model has no word for and a new link can be given: not what the kernel counts.
pub(super) fn kept(kind: &LinkKind, data: &[u8]) -> Attributes {
    match kind {
        LinkKind::LinuxBridge => bridge::kept(data),
        LinkKind::Vxlan => vxlan::kept(data),
        LinkKind::MacVlan => mac_vlan::kept(data),
        _ => Attributes::new(),
    }
}

/// The same of `IFLA_INFO_SLAVE_DATA`.
pub(super) fn kept_of_ports(controller: &LinkKind) -> &'static [u16] {
    match controller {
        LinkKind::LinuxBridge => bridge::KEPT_OF_PORTS,
        _ => &[],
    }
}

/// Writes a link's options as the inside of `IFLA_INFO_DATA`.
pub(super) fn write(
    message: &mut Message,
    kind: &LinkKind,
    options: &Options,
    names: &Names,
) -> Result<(), OptionError> {
    let special = match kind {
        LinkKind::Vlan => vlan::write(message, options),
        LinkKind::Vxlan => vxlan::write(message, options),
        LinkKind::MacVlan => mac_vlan::write(message, options),
        _ => &[],
    };
    let table = |path: &str| kind.spec().option(path);
    write_rows(message, kind, rows(kind), special, options, table, names)
}

/// Writes the options of a port of such a controller as the inside of `IFLA_INFO_SLAVE_DATA`.
pub(super) fn write_port(
    message: &mut Message,
    controller: &LinkKind,
    options: &Options,
    names: &Names,
) -> Result<(), OptionError> {
    let table = |path: &str| controller.spec().port_option(path);
    write_rows(message, controller, port_rows(controller), &[], options, table, names)
}

fn write_rows(
    message: &mut Message,
    kind: &LinkKind,
    rows: &[Row],
    written: &[&str],
    options: &Options,
    table: impl Fn(&str) -> Option<&'static OptSpec>,
    names: &Names,
) -> Result<(), OptionError> {
    for (name, value) in options {
        let path = name.as_str();
        if written.contains(&path) {
            continue;
        }
        let option = || path.to_owned();
        let (Some(row), Some(spec)) = (rows.iter().find(|row| row.path == path), table(path)) else {
            return Err(OptionError::Unknown { option: option(), kind: kind.clone() });
        };
        let wrong = || OptionError::Value { option: option(), value: value.to_string() };
        match (row.form, value) {
            (Form::Mac, OptValue::Text(text)) => {
                let mac: Mac = text.parse().map_err(|_| wrong())?;
                message.attr(row.number, &mac.0);
            }
            (Form::Index, OptValue::Text(link)) => {
                let none = || OptionError::NoLink { option: option(), link: link.clone() };
                let index = match link.is_empty() {
                    true => 0,
                    false => *names.by_name.get(link.as_str()).ok_or_else(none)?,
                };
                message.u32(row.number, index);
            }
            (Form::Ips, OptValue::Text(list)) => {
                let ips: Result<Vec<IpAddr>, _> =
                    list.split(',').filter(|ip| !ip.is_empty()).map(str::parse).collect();
                let ips = ips.map_err(|_| wrong())?;
                message.nest(row.number, |inside| {
                    for (place, ip) in (0..).zip(ips) {
                        inside.ip(place, ip);
                    }
                });
            }
            (form, value) => {
                let number = to_number(spec, value).ok_or_else(wrong)?;
                write_number(message, row.number, form, number).ok_or_else(wrong)?;
            }
        }
    }
    Ok(())
}

fn write_number(message: &mut Message, number: u16, form: Form, value: u64) -> Option<()> {
    match form {
        Form::U8 => message.u8(number, value.try_into().ok()?),
        Form::U16 => message.u16(number, value.try_into().ok()?),
        Form::U32 => message.u32(number, value.try_into().ok()?),
        Form::U64 => message.attr(number, &value.to_ne_bytes()),
        Form::Be16 => message.attr(number, &u16::try_from(value).ok()?.to_be_bytes()),
        Form::Seconds => message.u32(number, value.checked_mul(TICKS)?.try_into().ok()?),
        Form::Mac | Form::Index | Form::Ips => return None,
    };
    Some(())
}

fn to_number(spec: &OptSpec, value: &OptValue) -> Option<u64> {
    match (value, spec.ty) {
        (OptValue::Bool(on), _) => Some(u64::from(*on)),
        (OptValue::Int(number), _) => Some(*number),
        (OptValue::Text(word), OptType::Word(words)) => {
            words.iter().find(|(known, _)| known == word).map(|(_, number)| *number)
        }
        _ => None,
    }
}

/// The options in `IFLA_INFO_DATA`, without those that mean nothing with the others: the kernel shows them, and won't
/// have them set.
pub(super) fn read(kind: &LinkKind, data: Attrs<'_>, names: &Names) -> Result<Options, Malformed> {
    let mut options = Options::new();
    read_rows(rows(kind), |path| kind.spec().option(path), data, names, &mut options)?;
    match kind {
        LinkKind::LinuxBridge => bridge::read(data, &mut options),
        LinkKind::Vlan => vlan::read(data, &mut options)?,
        LinkKind::Vxlan => vxlan::read(data, &mut options),
        LinkKind::MacVlan => mac_vlan::read(data, &mut options),
        _ => {}
    }
    let whole = options.clone();
    options
        .retain(|name, _| kind.spec().option(name.as_str()).is_some_and(|s| s.pointless(&whole).is_none()));
    Ok(options)
}

/// The options in `IFLA_INFO_SLAVE_DATA` of a port of such a controller, whatever they mean there.
pub(super) fn read_port(controller: &LinkKind, data: Attrs<'_>, names: &Names) -> Result<Options, Malformed> {
    let mut options = Options::new();
    read_rows(port_rows(controller), |path| controller.spec().port_option(path), data, names, &mut options)?;
    Ok(options)
}

fn read_rows(
    rows: &[Row],
    table: impl Fn(&str) -> Option<&'static OptSpec>,
    data: Attrs<'_>,
    names: &Names,
    options: &mut Options,
) -> Result<(), Malformed> {
    for row in rows {
        let Some(spec) = table(row.path) else { continue };
        let value = match (data.get(row.number), row.form) {
            // What the kernel leaves out where there is nothing.
            (None, Form::Index | Form::Ips) => Some(OptValue::Text(String::new())),
            (None, _) => None,
            (Some(attr), Form::Index) => {
                let name = attr.u32().and_then(|index| names.by_index.get(&index));
                Some(OptValue::Text(name.map(ToString::to_string).unwrap_or_default()))
            }
            (Some(attr), Form::Ips) => {
                let ips: Vec<String> =
                    attr.attrs()?.iter().filter_map(Attr::ip).map(|ip| ip.to_string()).collect();
                Some(OptValue::Text(ips.join(",")))
            }
            (Some(attr), Form::Mac) => read_mac(attr).map(|mac| OptValue::Text(mac.to_string())),
            (Some(attr), form) => from_number(spec, read_number(attr, form).ok_or(Malformed)?),
        };
        if let Some(value) = value {
            options.insert(spec.name(), value);
        }
    }
    Ok(())
}

fn read_number(attr: Attr<'_>, form: Form) -> Option<u64> {
    match form {
        Form::U8 => attr.u8().map(u64::from),
        Form::U16 => attr.u16().map(u64::from),
        Form::U32 => attr.u32().map(u64::from),
        Form::U64 => attr.u64(),
        Form::Be16 => attr.u16().map(u16::from_be).map(u64::from),
        Form::Seconds => attr.u32().map(|ticks| u64::from(ticks) / TICKS),
        Form::Mac | Form::Index | Form::Ips => None,
    }
}

fn from_number(spec: &OptSpec, number: u64) -> Option<OptValue> {
    match spec.ty {
        OptType::Bool => Some(OptValue::Bool(number != 0)),
        OptType::Word(words) => {
            let word = words.iter().find(|(_, known)| *known == number);
            word.map(|(word, _)| OptValue::Text((*word).to_owned()))
        }
        _ => Some(OptValue::Int(number)),
    }
}

pub(super) fn read_mac(attr: Attr<'_>) -> Option<Mac> {
    attr.payload.try_into().ok().map(Mac)
}

/// An option of a kind's table, put among those read.
fn put(options: &mut Options, kind: &LinkKind, path: &str, value: OptValue) {
    if let Some(spec) = kind.spec().option(path) {
        options.insert(spec.name(), value);
    }
}

/// The value of an option, if it is among these.
fn get<'a>(options: &'a Options, path: &str) -> Option<&'a OptValue> {
    options.iter().find(|(name, _)| name.as_str() == path).map(|(_, value)| value)
}

#[cfg(test)]
mod tests;
