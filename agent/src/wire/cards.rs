//! The links of this namespace as the wire sees them: which number, which hardware address, whether anybody can be asked.

use std::collections::{BTreeMap, BTreeSet};
use std::io;

use nix::ifaddrs::getifaddrs;
use nix::libc;
use nix::net::if_::InterfaceFlags;
use policy::state::{IfName, Mac};

pub(super) struct Card {
    pub(super) index: i32,
    pub(super) mac: Mac,
    /// Not a dummy, a tunnel, or whatever somebody set so.
    pub(super) speaks_arp: bool,
    /// It is up, and there is somebody to hear it.
    pub(super) has_carrier: bool,
}

pub(super) struct Cards(BTreeMap<String, Card>);

impl Cards {
    /// Those of Ethernet's kind; one dump of links and one of addresses, whatever is asked.
    pub(super) fn look() -> io::Result<Self> {
        let mut cards = BTreeMap::new();
        for found in getifaddrs()? {
            let Some(link) = found.address.as_ref().and_then(|address| address.as_link_addr()) else {
                continue;
            };
            let (Some(mac), Ok(index)) = (link.addr(), i32::try_from(link.ifindex())) else { continue };
            let ethernet = link.hatype() == libc::ARPHRD_ETHER && link.halen() == 6;
            let without =
                InterfaceFlags::IFF_NOARP | InterfaceFlags::IFF_LOOPBACK | InterfaceFlags::IFF_POINTOPOINT;
            let card = Card {
                index,
                mac: Mac(mac),
                speaks_arp: ethernet && !found.flags.intersects(without),
                has_carrier: found.flags.contains(InterfaceFlags::IFF_UP | InterfaceFlags::IFF_RUNNING),
            };
            cards.insert(found.interface_name, card);
        }
        Ok(Self(cards))
    }

    pub(super) fn get(&self, link: &IfName) -> Option<&Card> {
        self.0.get(link.as_str())
    }

    /// All hardware addresses that are this host's own: whatever comes from them is our own echo, by another port of a
    /// bond, through a bridge, or from another card on the same wire.
    pub(super) fn macs(&self) -> BTreeSet<Mac> {
        self.0.values().map(|card| card.mac).collect()
    }
}
