//! ARP over Ethernet: a packet to and from bytes, and what it says about an address (RFC 826, RFC 5227). Pure.

use std::net::Ipv4Addr;

use policy::state::Mac;

const BROADCAST: [u8; 6] = [0xff; 6];
const ETHERTYPE: [u8; 2] = [0x08, 0x06];
/// Ethernet and IPv4, with the lengths of their addresses.
const KIND: [u8; 6] = [0, 1, 0x08, 0, 6, 4];
const REQUEST: u16 = 1;
const REPLY: u16 = 2;
/// Ethernet's header, then the packet: what comes after is padding.
const HEADER: usize = 14;
const LENGTH: usize = HEADER + 28;

/// A request or a reply.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Arp {
    pub(super) is_reply: bool,
    pub(super) sender_mac: Mac,
    pub(super) sender_ip: Ipv4Addr,
    pub(super) target_ip: Ipv4Addr,
}

impl Arp {
    /// "Does anybody have this?", from somebody without an address: nobody's memory is changed by it.
    pub(super) fn probe(mac: Mac, ip: Ipv4Addr) -> Self {
        Self { is_reply: false, sender_mac: mac, sender_ip: Ipv4Addr::UNSPECIFIED, target_ip: ip }
    }

    /// "I have this": whoever remembers somebody else for it learns better.
    pub(super) fn announcement(mac: Mac, ip: Ipv4Addr) -> Self {
        Self { is_reply: false, sender_mac: mac, sender_ip: ip, target_ip: ip }
    }

    /// As it goes on the wire, to everybody.
    pub(super) fn frame(self) -> Vec<u8> {
        let mut frame = Vec::with_capacity(LENGTH);
        frame.extend(BROADCAST);
        frame.extend(self.sender_mac.0);
        frame.extend(ETHERTYPE);
        frame.extend(KIND);
        frame.extend(if self.is_reply { REPLY } else { REQUEST }.to_be_bytes());
        frame.extend(self.sender_mac.0);
        frame.extend(self.sender_ip.octets());
        // Whom it is about is what is asked.
        frame.extend([0; 6]);
        frame.extend(self.target_ip.octets());
        frame
    }

    /// Nothing, if it is no whole packet of this kind.
    pub(super) fn read(frame: &[u8]) -> Option<Self> {
        let packet = frame.get(HEADER..LENGTH)?;
        if frame.get(12..14)? != ETHERTYPE || packet.get(..6)? != KIND {
            return None;
        }
        let is_reply = match u16::from_be_bytes(packet.get(6..8)?.try_into().ok()?) {
            REQUEST => false,
            REPLY => true,
            _ => return None,
        };
        let ip = |at: usize| -> Option<Ipv4Addr> {
            Some(<[u8; 4]>::try_from(packet.get(at..at + 4)?).ok()?.into())
        };
        let sender_mac = Mac(packet.get(8..14)?.try_into().ok()?);
        Some(Self { is_reply, sender_mac, sender_ip: ip(14)?, target_ip: ip(24)? })
    }

    /// Says this that its sender has the address, or is about to (RFC 5227, 2.1.1)? Who only looks for its owner says
    /// neither.
    pub(super) fn conflicts_with(&self, ip: Ipv4Addr) -> bool {
        let probes = !self.is_reply && self.sender_ip.is_unspecified() && self.target_ip == ip;
        self.sender_ip == ip || probes
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MAC: Mac = Mac([2, 0, 0, 0, 0, 9]);

    fn ip(last: u8) -> Ipv4Addr {
        Ipv4Addr::new(10, 10, 10, last)
    }

    #[test]
    fn a_probe_is_as_the_rfc_draws_it() {
        let frame = Arp::probe(MAC, ip(5)).frame();
        let expected: &[&[u8]] = &[
            &[0xff; 6],
            &[2, 0, 0, 0, 0, 9],
            &[0x08, 0x06],
            &[0, 1, 8, 0, 6, 4, 0, 1],
            &[2, 0, 0, 0, 0, 9],
            &[0, 0, 0, 0],
            &[0; 6],
            &[10, 10, 10, 5],
        ];
        assert_eq!(frame, expected.concat());
    }

    #[test]
    fn what_is_written_is_read_and_padding_is_nothing() {
        for packet in [
            Arp::probe(MAC, ip(5)),
            Arp::announcement(MAC, ip(5)),
            Arp { is_reply: true, sender_mac: MAC, sender_ip: ip(5), target_ip: ip(1) },
        ] {
            let mut frame = packet.frame();
            assert_eq!(Arp::read(&frame), Some(packet));
            frame.extend([0xaa; 18]);
            assert_eq!(Arp::read(&frame), Some(packet));
        }
    }

    #[test]
    fn what_is_cut_off_or_of_another_kind_is_nothing() {
        let frame = Arp::probe(MAC, ip(5)).frame();
        for length in 0..frame.len() {
            assert_eq!(Arp::read(&frame[..length]), None, "{length}");
        }
        // Ethertype, hardware, protocol, both lengths, operation.
        for place in [12, 13, 14, 15, 16, 17, 18, 19, 20, 21] {
            let mut other = frame.clone();
            other[place] ^= 0x40;
            assert_eq!(Arp::read(&other), None, "{place}");
        }
    }

    #[test]
    fn who_has_it_says_so_and_who_asks_for_it_may_be_about_to() {
        let reply =
            Arp { is_reply: true, sender_mac: MAC, sender_ip: ip(5), target_ip: Ipv4Addr::UNSPECIFIED };
        assert!(reply.conflicts_with(ip(5)));
        assert!(Arp::announcement(MAC, ip(5)).conflicts_with(ip(5)));
        // RFC 5227, 2.1.1: two that probe at the same time.
        assert!(Arp::probe(MAC, ip(5)).conflicts_with(ip(5)));
        // The owner's own traffic: it looks for somebody else.
        let looks = Arp { is_reply: false, sender_mac: MAC, sender_ip: ip(5), target_ip: ip(1) };
        assert!(looks.conflicts_with(ip(5)));
        // Somebody looks for it, and has another.
        let looks = Arp { is_reply: false, sender_mac: MAC, sender_ip: ip(1), target_ip: ip(5) };
        assert!(!looks.conflicts_with(ip(5)));
        assert!(!reply.conflicts_with(ip(6)));
        assert!(!Arp::probe(MAC, ip(5)).conflicts_with(ip(6)));
    }
}
