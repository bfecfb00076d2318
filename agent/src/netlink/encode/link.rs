//! Links, their options, ports and VLANs.

use policy::plan::NewLink;
use policy::state::{Attributes, IfName, LinkKind, Mac, Options, VlanEntry, VlanRange};

use super::{ADD, EncodeError, Encoder, SET};
use crate::netlink::decode::AF_BRIDGE;
use crate::netlink::decode::link::{
    FLAGS, FLAGS_NUMBER, HEADER, IFLA_ADDRESS, IFLA_AF_SPEC, IFLA_ALT_IFNAME, IFLA_IFNAME, IFLA_LINK,
    IFLA_LINKINFO, IFLA_PROP_LIST, INFO_DATA, INFO_KIND, INFO_PORT_DATA, INFO_PORT_KIND,
};
use crate::netlink::decode::vlans::{PVID, RANGE_BEGIN, RANGE_END, UNTAGGED, VLAN_INFO};
use crate::netlink::kind::{self, OptionError};
use crate::netlink::wire::{Message, read_u32};

const RTM_NEWLINK: u16 = 16;
pub(super) const RTM_DELLINK: u16 = 17;
const RTM_SETLINK: u16 = 19;
pub(super) const RTM_NEWLINKPROP: u16 = 108;
pub(super) const RTM_DELLINKPROP: u16 = 109;

const VETH_PEER: u16 = 1;
/// VLANs of a bridge itself, not of a port.
const BRIDGE_FLAGS: u16 = 0;
const BY_ITSELF: u16 = 2;

impl Encoder<'_> {
    pub(super) fn link(&self, kind: u16, flags: u16, link: &IfName) -> Result<Message, EncodeError> {
        let mut message = Message::new(kind, flags);
        message.raw(&link_header(0, self.index(link)?, 0, 0));
        Ok(message)
    }

    pub(super) fn set(
        &self,
        link: &IfName,
        write: impl FnOnce(&mut Message) -> &mut Message,
    ) -> Result<Message, EncodeError> {
        let mut message = self.link(RTM_NEWLINK, SET, link)?;
        write(&mut message);
        Ok(message)
    }

    pub(super) fn flags(&self, link: &IfName, flag: u32, on: bool) -> Result<Message, EncodeError> {
        let mut message = Message::new(RTM_NEWLINK, SET);
        message.raw(&link_header(0, self.index(link)?, if on { flag } else { 0 }, flag));
        Ok(message)
    }

    pub(super) fn alt_name(
        &self,
        kind: u16,
        flags: u16,
        link: &IfName,
        name: &str,
    ) -> Result<Message, EncodeError> {
        let mut message = self.link(kind, flags, link)?;
        message.nest(IFLA_PROP_LIST, |inside| {
            inside.text(IFLA_ALT_IFNAME, name);
        });
        Ok(message)
    }

    pub(super) fn create(&self, new: &NewLink) -> Result<Message, EncodeError> {
        let not_virtual = || EncodeError::NotVirtual { kind: new.kind.clone() };
        let name = kind::kernel_name(&new.kind).ok_or_else(not_virtual)?;
        let base = new.base.as_ref().map(|base| self.index(base)).transpose()?;
        let mut message = Message::new(RTM_NEWLINK, ADD);
        let (flags, change) = flags_of(&new.attributes);
        message.raw(&link_header(0, 0, flags, change)).text(IFLA_IFNAME, new.name.as_str());
        if let Some(Mac(mac)) = new.mac {
            message.attr(IFLA_ADDRESS, &mac);
        }
        put(&mut message, &new.attributes);
        if let (Some(base), false) = (base, new.kind == LinkKind::Vxlan) {
            message.u32(IFLA_LINK, base);
        }
        info(&mut message, (INFO_KIND, INFO_DATA), name, |data| {
            if let (Some(base), LinkKind::Vxlan) = (base, &new.kind) {
                data.u32(kind::VXLAN_BASE, base);
            }
            if let (Some(peer), LinkKind::Veth) = (&new.peer, &new.kind) {
                let (flags, change) = flags_of(&new.peer_attributes);
                data.nest(VETH_PEER, |other| {
                    other.raw(&link_header(0, 0, flags, change)).text(IFLA_IFNAME, peer.as_str());
                    put(other, &new.peer_attributes);
                });
            }
            put(data, &new.kind_attributes);
            kind::write(data, &new.kind, &new.options, self.names)
        })?;
        Ok(message)
    }

    pub(super) fn options(
        &self,
        link: &IfName,
        kind: &LinkKind,
        options: &Options,
    ) -> Result<Message, EncodeError> {
        let mut message = self.link(RTM_NEWLINK, SET, link)?;
        let name = kind::kernel_name(kind).unwrap_or_default();
        info(&mut message, (INFO_KIND, INFO_DATA), name, |data| {
            kind::write(data, kind, options, self.names)
        })?;
        Ok(message)
    }

    pub(super) fn port_options(
        &self,
        link: &IfName,
        kind: &LinkKind,
        options: &Options,
    ) -> Result<Message, EncodeError> {
        let mut message = self.link(RTM_NEWLINK, SET, link)?;
        let name = kind::kernel_name(kind).unwrap_or_default();
        info(&mut message, (INFO_PORT_KIND, INFO_PORT_DATA), name, |data| {
            kind::write_port(data, kind, options, self.names)
        })?;
        Ok(message)
    }

    pub(super) fn attributes(
        &self,
        link: &IfName,
        kind: &LinkKind,
        attributes: &Attributes,
        kind_attributes: &Attributes,
    ) -> Result<Message, EncodeError> {
        let mut message = Message::new(RTM_NEWLINK, SET);
        let (flags, change) = flags_of(attributes);
        message.raw(&link_header(0, self.index(link)?, flags, change));
        put(&mut message, attributes);
        if let Some(name) = kind::kernel_name(kind).filter(|_| !kind_attributes.is_empty()) {
            info(&mut message, (INFO_KIND, INFO_DATA), name, |data| {
                put(data, kind_attributes);
                Ok(())
            })?;
        }
        Ok(message)
    }

    pub(super) fn port_attributes(
        &self,
        link: &IfName,
        kind: &LinkKind,
        attributes: &Attributes,
    ) -> Result<Message, EncodeError> {
        let mut message = self.link(RTM_NEWLINK, SET, link)?;
        let name = kind::kernel_name(kind).unwrap_or_default();
        info(&mut message, (INFO_PORT_KIND, INFO_PORT_DATA), name, |data| {
            put(data, attributes);
            Ok(())
        })?;
        Ok(message)
    }

    pub(super) fn vlans(
        &self,
        link: &IfName,
        own: bool,
        remove: &[VlanRange],
        add: &[VlanEntry],
    ) -> Result<Vec<Message>, EncodeError> {
        let index = self.index(link)?;
        let message = |kind: u16, write: &dyn Fn(&mut Message)| {
            let mut message = Message::new(kind, SET);
            message.raw(&link_header(AF_BRIDGE, index, 0, 0));
            message.nest(IFLA_AF_SPEC, |list| {
                if own {
                    list.u16(BRIDGE_FLAGS, BY_ITSELF);
                }
                write(list);
            });
            message
        };
        let mut messages = Vec::new();
        if !remove.is_empty() {
            messages.push(message(RTM_DELLINK, &|list| {
                remove.iter().for_each(|range| vlan_range(list, *range, 0));
            }));
        }
        if !add.is_empty() {
            messages.push(message(RTM_SETLINK, &|list| {
                for entry in add {
                    let flags = if entry.pvid { PVID } else { 0 } | if entry.untagged { UNTAGGED } else { 0 };
                    vlan_range(list, entry.range, flags);
                }
            }));
        }
        Ok(messages)
    }
}

/// What there is no word for, as it came; flags are in the header.
fn put(message: &mut Message, attributes: &Attributes) {
    for (kind, bytes) in attributes.iter().filter(|(kind, _)| *kind != FLAGS_NUMBER) {
        message.attr(*kind, bytes);
    }
}

/// Flags that there is no word for, and which of them are meant.
fn flags_of(attributes: &Attributes) -> (u32, u32) {
    let kept = attributes.iter().find(|(kind, _)| *kind == FLAGS_NUMBER);
    kept.and_then(|(_, bytes)| read_u32(bytes, 0)).map_or((0, 0), |flags| (flags, FLAGS))
}

/// What a link is, or is a port of, and the options that go with it, under these two numbers.
fn info(
    message: &mut Message,
    (kind, data): (u16, u16),
    name: &str,
    write: impl FnOnce(&mut Message) -> Result<(), OptionError>,
) -> Result<(), OptionError> {
    let mut written = Ok(());
    message.nest(IFLA_LINKINFO, |info| {
        info.attr(kind, name.as_bytes()).nest(data, |data| written = write(data));
    });
    written
}

fn vlan_range(list: &mut Message, range: VlanRange, flags: u16) {
    let mut entry = |flags: u16, id: u16| {
        let [a, b] = flags.to_ne_bytes();
        let [c, d] = id.to_ne_bytes();
        list.attr(VLAN_INFO, &[a, b, c, d]);
    };
    if range.min == range.max {
        entry(flags, range.min);
    } else {
        entry(flags | RANGE_BEGIN, range.min);
        entry(flags | RANGE_END, range.max);
    }
}

fn link_header(family: u8, index: u32, flags: u32, change: u32) -> [u8; HEADER] {
    let mut header = [0; HEADER];
    header[0] = family;
    header[4..8].copy_from_slice(&index.to_ne_bytes());
    header[8..12].copy_from_slice(&flags.to_ne_bytes());
    header[12..].copy_from_slice(&change.to_ne_bytes());
    header
}
