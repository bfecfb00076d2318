//! `RTM_NEWLINK`.

use policy::state::{AcceptRa, Attributes, IfName, Link, LinkKind, LinkLocal, Mac};

use super::kept::{NUMBER, pieces};
use super::{AF_INET, AF_INET6};
use crate::netlink::kind;
use crate::netlink::wire::{Attr, Attrs, Malformed, read_u16, read_u32};

pub(in crate::netlink) const HEADER: usize = 16;

pub(in crate::netlink) const IFLA_ADDRESS: u16 = 1;
pub(in crate::netlink) const IFLA_IFNAME: u16 = 3;
pub(in crate::netlink) const IFLA_MTU: u16 = 4;
pub(in crate::netlink) const IFLA_LINK: u16 = 5;
pub(in crate::netlink) const IFLA_MASTER: u16 = 10;
pub(in crate::netlink) const IFLA_LINKINFO: u16 = 18;
const IFLA_QDISC: u16 = 6;
const IFLA_TXQLEN: u16 = 13;
const IFLA_XDP: u16 = 43;
const XDP_ATTACHED: u16 = 2;
pub(in crate::netlink) const IFLA_IFALIAS: u16 = 20;
pub(in crate::netlink) const IFLA_AF_SPEC: u16 = 26;
const IFLA_GROUP: u16 = 27;
pub(in crate::netlink) const IFLA_NUM_TX_QUEUES: u16 = 31;
pub(in crate::netlink) const IFLA_NUM_RX_QUEUES: u16 = 32;
pub(in crate::netlink) const IFLA_EXT_MASK: u16 = 29;
const IFLA_LINK_NETNSID: u16 = 37;
const IFLA_MIN_MTU: u16 = 50;
const IFLA_MAX_MTU: u16 = 51;
pub(in crate::netlink) const IFLA_PROP_LIST: u16 = 52;
pub(in crate::netlink) const IFLA_ALT_IFNAME: u16 = 53;
const IFLA_PERM_ADDRESS: u16 = 54;

pub(in crate::netlink) const INFO_KIND: u16 = 1;
pub(in crate::netlink) const INFO_DATA: u16 = 2;
pub(in crate::netlink) const INFO_PORT_KIND: u16 = 4;
pub(in crate::netlink) const INFO_PORT_DATA: u16 = 5;

pub(in crate::netlink) const IFF_UP: u32 = 0x1;
/// The wire is there. `IFF_RUNNING` says so later, when whoever looks after operational states has had its turn; probes
/// begin with this.
const IFF_LOWER_UP: u32 = 0x1_0000;
pub(in crate::netlink) const IFF_PROMISC: u32 = 0x100;
/// What else of a link's flags people set: no ARP, all of multicast, multicast at all.
pub(in crate::netlink) const FLAGS: u32 = 0x80 | 0x200 | 0x1000;
/// Not an attribute: those flags, a word of the header.
pub(in crate::netlink) const FLAGS_NUMBER: u16 = 0;
/// Queue length, group, numbers of queues, and the largest segments and packets that are made of several: sizes and
/// number of segments going out, size coming in, and both of IPv4.
const KEPT: [u16; 9] = [IFLA_TXQLEN, IFLA_GROUP, IFLA_NUM_TX_QUEUES, IFLA_NUM_RX_QUEUES, 40, 41, 58, 63, 64];

const ARPHRD_ETHER: u16 = 1;
const ARPHRD_LOOPBACK: u16 = 772;

/// The switches of a family (`IFLA_INET_CONF`, `IFLA_INET6_CONF`): where they are, and places in them.
const INET_CONF: u16 = 1;
const INET_FORWARDING: usize = 0;
const INET6_CONF: u16 = 2;
const INET6_FORWARDING: usize = 0;
const INET6_ACCEPT_RA: usize = 3;
const INET6_DISABLED: usize = 26;
/// `IFLA_INET6_ADDR_GEN_MODE`: how the link makes its own link-local address.
const INET6_ADDR_GEN_MODE: u16 = 8;

/// A link, with what names can't be put to yet.
#[derive(Clone, Debug)]
pub(in crate::netlink) struct SeenLink {
    pub(in crate::netlink) index: u32,
    pub(in crate::netlink) link: Link,
    /// Up and with a carrier: addresses can be probed here.
    pub(in crate::netlink) running: bool,
    pub(in crate::netlink) controller: Option<u32>,
    /// How it makes its link-local address.
    pub(in crate::netlink) link_local: Option<LinkLocal>,
    /// What it sits on, or its other end.
    pub(in crate::netlink) lower: Option<u32>,
    /// `IFLA_INFO_DATA` and the kind of its controller with `IFLA_INFO_SLAVE_DATA`, unread.
    pub(in crate::netlink) data: Vec<u8>,
    pub(in crate::netlink) port: Option<(LinkKind, Vec<u8>)>,
}

pub(in crate::netlink) fn read(payload: &[u8]) -> Result<Option<SeenLink>, Malformed> {
    let attrs = Attrs::after(payload, HEADER)?;
    let hardware = read_u16(payload, 2).ok_or(Malformed)?;
    let index = read_u32(payload, 4).ok_or(Malformed)?;
    let flags = read_u32(payload, 8).ok_or(Malformed)?;
    let (name, is_odd) = name(attrs.get(IFLA_IFNAME).ok_or(Malformed)?)?;

    let info = attrs.nested(IFLA_LINKINFO)?;
    let said = info.and_then(|info| info.text(INFO_KIND));
    let kind = match (said, hardware) {
        (Some(said), _) => kind::of_kernel_name(&said),
        (None, ARPHRD_LOOPBACK) => LinkKind::Loopback,
        (None, ARPHRD_ETHER) => LinkKind::Ethernet,
        (None, other) => LinkKind::Other(format!("hardware-{other}")),
    };
    let inside = |number: u16| info.and_then(|info| info.get(number)).map(|attr| attr.payload.to_vec());
    let data = inside(INFO_DATA).unwrap_or_default();
    let port = info
        .and_then(|info| info.text(INFO_PORT_KIND))
        .map(|controller| (kind::of_kernel_name(&controller), inside(INFO_PORT_DATA).unwrap_or_default()));

    // An index of another namespace means nothing here.
    let near = attrs.get(IFLA_LINK_NETNSID).is_none();
    let lower = match kind {
        LinkKind::Vxlan => Attrs::of(&data)?.u32(kind::VXLAN_BASE),
        _ => attrs.u32(IFLA_LINK).filter(|_| near),
    };
    let mut link = Link::new(name, kind);
    link.ignored = is_odd || matches!(link.kind, LinkKind::Other(_));
    link.up = flags & IFF_UP != 0;
    link.promiscuous = flags & IFF_PROMISC != 0;
    link.alias = attrs.text(IFLA_IFALIAS).filter(|alias| !alias.is_empty());
    link.mac = mac(attrs, IFLA_ADDRESS);
    link.permanent_mac = mac(attrs, IFLA_PERM_ADDRESS);
    link.mtu = attrs.u32(IFLA_MTU);
    link.min_mtu = attrs.u32(IFLA_MIN_MTU);
    // 0: no limit.
    link.max_mtu = attrs.u32(IFLA_MAX_MTU).filter(|max| *max != 0);
    if let Some(names) = attrs.nested(IFLA_PROP_LIST)? {
        let names = names.iter().filter(|attr| attr.number == IFLA_ALT_IFNAME);
        link.alt_names = names.map(|attr| attr.text()).collect();
    }
    link.attributes = some(payload, HEADER, &KEPT);
    link.attributes.push((FLAGS_NUMBER, (flags & FLAGS).to_ne_bytes().to_vec()));
    link.kind_attributes = kind::kept(&link.kind, &data);
    link.unkept = unkept(attrs)?;
    if let Some((controller, data)) = &port {
        link.port.attributes = some(data, 0, kind::kept_of_ports(controller));
    }
    read_switches(attrs, &mut link)?;
    let controller = attrs.u32(IFLA_MASTER);
    let running = flags & IFF_UP != 0 && flags & IFF_LOWER_UP != 0;
    let lower = lower.filter(|i| *i != 0);
    let link_local = link_local(attrs)?;
    Ok(Some(SeenLink { index, link, running, controller, link_local, lower, data, port }))
}

/// The name, and whether the kernel takes more for a name than documents can say: bytes that are no text, control
/// characters. Those are shown escaped, and such a link is left alone.
fn name(attr: Attr<'_>) -> Result<(IfName, bool), Malformed> {
    let bytes = attr.payload.split(|byte| *byte == 0).next().unwrap_or_default();
    if let Some(name) = std::str::from_utf8(bytes).ok().and_then(|text| IfName::new(text).ok()) {
        return Ok((name, false));
    }
    let escaped: String = bytes.iter().map(|byte| byte.escape_ascii().to_string()).collect();
    IfName::reference(&escaped).map(|name| (name, true)).map_err(|_| Malformed)
}

/// These attributes, as they came.
pub(in crate::netlink) fn some(payload: &[u8], header: usize, numbers: &[u16]) -> Attributes {
    let all = pieces(payload, header).into_iter();
    all.filter(|(kind, _)| numbers.contains(&(kind & NUMBER)))
        .map(|(kind, bytes)| (kind, bytes.to_vec()))
        .collect()
}

/// What a link that the kernel makes doesn't start with, and that isn't told it as it is made.
fn unkept(attrs: Attrs<'_>) -> Result<Vec<String>, Malformed> {
    let given = |name: &String| !["noqueue", "noop", ""].contains(&name.as_str());
    let discipline = attrs.text(IFLA_QDISC).filter(given).map(|name| format!("queueing discipline {name}"));
    let attached = attrs.nested(IFLA_XDP)?.and_then(|xdp| xdp.get(XDP_ATTACHED)).and_then(Attr::u8);
    let program = attached.filter(|how| *how != 0).map(|_| "XDP program".to_owned());
    Ok(discipline.into_iter().chain(program).collect())
}

fn mac(attrs: Attrs<'_>, number: u16) -> Option<Mac> {
    attrs.get(number).and_then(kind::read_mac)
}

fn link_local(attrs: Attrs<'_>) -> Result<Option<LinkLocal>, Malformed> {
    let Some(families) = attrs.nested(IFLA_AF_SPEC)? else { return Ok(None) };
    let inside = families.nested(u16::from(AF_INET6))?;
    let mode = inside.and_then(|inside| inside.get(INET6_ADDR_GEN_MODE)).and_then(Attr::u8);
    Ok(mode.map(|mode| match mode {
        0 => LinkLocal::FromMac,
        1 => LinkLocal::Never,
        _ => LinkLocal::Hidden,
    }))
}

/// What `/proc/sys/net/ipv{4,6}/conf/<link>` says, without opening a file per link.
fn read_switches(attrs: Attrs<'_>, link: &mut Link) -> Result<(), Malformed> {
    let families = attrs.nested(IFLA_AF_SPEC)?;
    let switches = |family: u8, number: u16| -> Result<Option<&[u8]>, Malformed> {
        let Some(families) = families else { return Ok(None) };
        let inside = families.nested(u16::from(family))?;
        Ok(inside.and_then(|inside| inside.get(number)).map(|attr| attr.payload))
    };
    let on = |table: &[u8], place: usize| read_u32(table, place * 4).map(|value| value != 0);
    link.ipv4.forwarding = switches(AF_INET, INET_CONF)?.and_then(|table| on(table, INET_FORWARDING));
    match switches(AF_INET6, INET6_CONF)? {
        Some(table) => {
            link.ipv6.enabled = on(table, INET6_DISABLED) == Some(false);
            let accepts = read_u32(table, INET6_ACCEPT_RA * 4).map(|value| value as usize);
            // Whatever else it may be is more than 1.
            link.ipv6.accept_ra = accepts.map(|n| AcceptRa::ALL[n.min(2)]);
            link.ipv6.forwarding = on(table, INET6_FORWARDING);
        }
        // The kernel has no IPv6, or this link can't do it.
        None => link.ipv6.enabled = false,
    }
    Ok(())
}
