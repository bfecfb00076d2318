//! IPv6 neighbour discovery, as far as it tells who has an address (RFC 4861, RFC 4862): the question to bytes, the answer
//! from them. Pure.

use std::net::Ipv6Addr;

use policy::state::Mac;

const ETHERTYPE: [u8; 2] = [0x86, 0xdd];
const ICMP: u8 = 58;
const SOLICITATION: u8 = 135;
const ADVERTISEMENT: u8 = 136;
/// Both say so: no router lets such a packet through.
const HOPS: u8 = 255;
const OPTION_TARGET: u8 = 2;

/// Ethernet's header, then IPv6's, then the message.
const ETHERNET: usize = 14;
const MESSAGE: usize = ETHERNET + 40;
const OPTIONS: usize = MESSAGE + 24;

/// "Does anybody have this?", from somebody without an address, as duplicate address detection asks it.
pub(super) fn solicitation(mac: Mac, ip: Ipv6Addr) -> Vec<u8> {
    let [.., a, b, c] = ip.octets();
    let group = Ipv6Addr::new(0xff02, 0, 0, 0, 0, 1, 0xff00 | u16::from(a), u16::from(b) << 8 | u16::from(c));
    let mut message = vec![SOLICITATION, 0, 0, 0, 0, 0, 0, 0];
    message.extend(ip.octets());
    let sum = checksum(Ipv6Addr::UNSPECIFIED, group, &message);
    message[2..4].copy_from_slice(&sum.to_be_bytes());

    let mut frame = vec![0x33, 0x33, 0xff, a, b, c];
    frame.extend(mac.0);
    frame.extend(ETHERTYPE);
    frame.extend([0x60, 0, 0, 0, 0, 24, ICMP, HOPS]);
    frame.extend(Ipv6Addr::UNSPECIFIED.octets());
    frame.extend(group.octets());
    frame.extend(message);
    frame
}

/// Who has the address, if this is somebody who says so.
pub(super) fn owner(frame: &[u8], ip: Ipv6Addr) -> Option<Mac> {
    let header = frame.get(ETHERNET..MESSAGE)?;
    let is_one = frame.get(12..14)? == ETHERTYPE
        && header.first()? >> 4 == 6
        && *header.get(6)? == ICMP
        && *header.get(7)? == HOPS
        && *frame.get(MESSAGE)? == ADVERTISEMENT;
    if !is_one || frame.get(MESSAGE + 8..OPTIONS)? != ip.octets() {
        return None;
    }
    let mut options = frame.get(OPTIONS..)?;
    // Each has its kind, its length in eights of bytes, and what it says.
    while let [kind, length, said @ ..] = options {
        if *kind == OPTION_TARGET && *length == 1 {
            return Some(Mac(said.get(..6)?.try_into().ok()?));
        }
        options = options.get(usize::from(*length).checked_mul(8).filter(|skip| *skip > 0)?..)?;
    }
    // Without it, whoever sent the frame.
    Some(Mac(frame.get(6..12)?.try_into().ok()?))
}

/// Over the addresses, the length, the protocol and the message, whose own field is zero.
fn checksum(from: Ipv6Addr, to: Ipv6Addr, message: &[u8]) -> u16 {
    let length = u32::try_from(message.len()).unwrap_or_default();
    let mut all = Vec::new();
    all.extend(from.octets());
    all.extend(to.octets());
    all.extend(length.to_be_bytes());
    all.extend([0, 0, 0, ICMP]);
    all.extend(message);
    let words = all.chunks(2).map(|two| u32::from(two[0]) << 8 | u32::from(*two.get(1).unwrap_or(&0)));
    let mut sum: u32 = words.sum();
    while sum > 0xffff {
        sum = (sum & 0xffff) + (sum >> 16);
    }
    !u16::try_from(sum).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    const MAC: Mac = Mac([2, 0, 0, 0, 0, 9]);
    const OTHER: [u8; 6] = [2, 0, 0, 0, 0, 7];

    fn ip() -> Ipv6Addr {
        "fd00::12:3456".parse().unwrap()
    }

    fn advertisement(options: &[u8]) -> Vec<u8> {
        let mut frame = solicitation(Mac(OTHER), ip());
        frame[MESSAGE] = ADVERTISEMENT;
        frame.extend(options);
        frame
    }

    #[test]
    fn a_question_goes_to_those_who_may_have_it() {
        let frame = solicitation(MAC, ip());
        assert_eq!(frame[..6], [0x33, 0x33, 0xff, 0x12, 0x34, 0x56]);
        assert_eq!(frame.len(), OPTIONS);
        let to: [u8; 16] = frame[ETHERNET + 24..MESSAGE].try_into().unwrap();
        assert_eq!(Ipv6Addr::from(to), "ff02::1:ff12:3456".parse::<Ipv6Addr>().unwrap());
        // Whoever sums up a message with its checksum gets nothing.
        assert_eq!(checksum(Ipv6Addr::UNSPECIFIED, to.into(), &frame[MESSAGE..]), 0);
    }

    #[test]
    fn who_has_it_is_in_the_option_or_else_the_sender() {
        let target = [OPTION_TARGET, 1, 2, 0, 0, 0, 0, 5];
        assert_eq!(owner(&advertisement(&target), ip()), Some(Mac([2, 0, 0, 0, 0, 5])));
        assert_eq!(owner(&advertisement(&[]), ip()), Some(Mac(OTHER)));
        let behind = [&[14, 1, 0, 0, 0, 0, 0, 0], target.as_slice()].concat();
        assert_eq!(owner(&advertisement(&behind), ip()), Some(Mac([2, 0, 0, 0, 0, 5])));
        // One that never ends, and one that is cut off.
        assert_eq!(owner(&advertisement(&[14, 0]), ip()), None);
        assert_eq!(owner(&advertisement(&[OPTION_TARGET, 1, 2]), ip()), None);
    }

    #[test]
    fn another_address_another_message_or_half_of_one_is_nothing() {
        let frame = advertisement(&[]);
        assert_eq!(owner(&frame, "fd00::1".parse().unwrap()), None);
        assert_eq!(owner(&solicitation(MAC, ip()), ip()), None);
        for length in 0..frame.len() {
            assert_eq!(owner(&frame[..length], ip()), None, "{length}");
        }
        for place in [12, ETHERNET, ETHERNET + 6, ETHERNET + 7] {
            let mut other = frame.clone();
            other[place] ^= 0x40;
            assert_eq!(owner(&other, ip()), None, "{place}");
        }
    }
}
