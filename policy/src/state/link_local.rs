//! Which link-local addresses are the kernel's own, and which are somebody's.
//!
//! Kernels since 5.18 mark the addresses that they make (`IFA_PROTO`), loopback ones too: where any address bears such a
//! mark, one of fe80::/10 without is somebody's. Older kernels mark none. There the kernel's own is the one that is made
//! of the link's MAC address, where the link makes it like that; where it makes it otherwise (stable privacy, at random)
//! nothing tells one from the other, and all of them count as the kernel's: taking that one away breaks neighbour
//! discovery, leaving one too many does no harm.
//!
//! Somebody's is marked with [`AddressProtocol::UNSPEC`], which is what the kernel says by saying nothing.

use super::{Address, AddressProtocol, IfName, Link, Mac, Observed};
use std::net::{IpAddr, Ipv6Addr};

/// How a link makes its own link-local address (`addr_gen_mode`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LinkLocal {
    FromMac,
    /// Not at all: whoever manages the link does.
    Never,
    /// In a way that can't be worked out from outside.
    Hidden,
}

impl Observed {
    /// Tells the kernel's own from all others, given how each link makes its own; `None` where nobody looked.
    pub fn tell_link_locals(&mut self, way: impl Fn(&IfName) -> Option<LinkLocal>) {
        let marks = self.links.values().flat_map(|l| l.ipv4.addresses.iter().chain(&l.ipv6.addresses));
        let says = marks.filter_map(|a| a.protocol).any(AddressProtocol::is_kernels);
        for link in self.links.values_mut() {
            let way = if says { Some(LinkLocal::Never) } else { way(&link.name) };
            let Some(own) = own(link, way) else { continue };
            let unmarked = |a: &&mut Address| a.is_link_local() && a.protocol.is_none();
            for address in link.ipv6.addresses.iter_mut().filter(unmarked) {
                if Some(address.ip) != own {
                    address.protocol = Some(AddressProtocol::UNSPEC);
                }
            }
        }
    }
}

/// Which of the unmarked ones is the kernel's, if there is one; nothing if it can't be told.
fn own(link: &Link, way: Option<LinkLocal>) -> Option<Option<IpAddr>> {
    match way? {
        LinkLocal::Never => Some(None),
        LinkLocal::FromMac => link.mac.map(|mac| Some(IpAddr::V6(of_mac(mac)))),
        LinkLocal::Hidden => None,
    }
}

/// With a modified EUI-64.
fn of_mac(Mac([a, b, c, d, e, f]): Mac) -> Ipv6Addr {
    let pair = |high: u8, low: u8| u16::from_be_bytes([high, low]);
    Ipv6Addr::new(0xfe80, 0, 0, 0, pair(a ^ 2, b), pair(c, 0xff), pair(0xfe, d), pair(e, f))
}
