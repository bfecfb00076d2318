//! One echo request to a neighbour.

use std::ffi::OsString;
use std::io;
use std::net::{IpAddr, SocketAddrV4, SocketAddrV6};
use std::os::fd::AsRawFd;
use std::time::{Duration, Instant};

use nix::sys::socket::{
    AddressFamily, MsgFlags, SockFlag, SockProtocol, SockType, SockaddrIn, SockaddrIn6, recv, sendto,
    setsockopt, socket, sockopt,
};
use nix::sys::time::TimeVal;

use crate::api::random;

const ECHO: (u8, u8) = (8, 0);
const ECHO_V6: (u8, u8) = (128, 129);

/// Does it answer an echo request that leaves by this link? Needs CAP_NET_RAW.
pub(super) fn answers(gateway: IpAddr, link: &str, patience: Duration) -> Result<(), String> {
    ping(gateway, link, patience).map_err(|error| match error.kind() {
        io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut => "no answer".to_owned(),
        _ => error.to_string(),
    })
}

fn ping(gateway: IpAddr, link: &str, patience: Duration) -> io::Result<()> {
    let until = Instant::now() + patience;
    let (family, protocol, (request, reply)) = match gateway {
        IpAddr::V4(_) => (AddressFamily::Inet, SockProtocol::Icmp, ECHO),
        IpAddr::V6(_) => (AddressFamily::Inet6, SockProtocol::IcmpV6, ECHO_V6),
    };
    let socket = socket(family, SockType::Raw, SockFlag::SOCK_CLOEXEC, protocol)?;
    setsockopt(&socket, sockopt::BindToDevice, &OsString::from(link))?;
    let mark: [u8; 4] = random::bytes();
    let mut message = vec![request, 0, 0, 0];
    message.extend(mark);
    // Of the other family the kernel does it.
    if gateway.is_ipv4() {
        let sum = checksum(&message).to_be_bytes();
        message[2..4].copy_from_slice(&sum);
    }
    match gateway {
        IpAddr::V4(ip) => {
            let to = SockaddrIn::from(SocketAddrV4::new(ip, 0));
            sendto(socket.as_raw_fd(), &message, &to, MsgFlags::empty())?;
        }
        IpAddr::V6(ip) => {
            let to = SockaddrIn6::from(SocketAddrV6::new(ip, 0, 0, 0));
            sendto(socket.as_raw_fd(), &message, &to, MsgFlags::empty())?;
        }
    }
    let mut heard = [0; 256];
    loop {
        let left = until.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Err(io::ErrorKind::TimedOut.into());
        }
        let left =
            TimeVal::new(i64::try_from(left.as_secs()).unwrap_or(1), i64::from(left.subsec_micros().max(1)));
        setsockopt(&socket, sockopt::ReceiveTimeout, &left)?;
        let length = recv(socket.as_raw_fd(), &mut heard, MsgFlags::empty())?;
        if is_reply(&heard[..length], gateway, reply, mark) {
            return Ok(());
        }
    }
}

/// Is this the answer to our request? With IPv4 the packet's header comes first.
fn is_reply(packet: &[u8], gateway: IpAddr, reply: u8, mark: [u8; 4]) -> bool {
    let message = match gateway {
        IpAddr::V6(_) => packet,
        IpAddr::V4(_) => {
            let header = packet.first().map_or(0, |first| usize::from(first & 0x0f) * 4);
            packet.get(header..).unwrap_or_default()
        }
    };
    message.first() == Some(&reply) && message.get(4..8) == Some(&mark)
}

fn checksum(message: &[u8]) -> u16 {
    let words = message.chunks(2).map(|two| u32::from(two[0]) << 8 | u32::from(*two.get(1).unwrap_or(&0)));
    let mut sum: u32 = words.sum();
    while sum > 0xffff {
        sum = (sum & 0xffff) + (sum >> 16);
    }
    !(sum as u16)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_loopback_answers_and_a_reply_to_another_does_not_count() {
        for ip in ["127.0.0.1", "::1"] {
            answers(ip.parse().unwrap(), "lo", Duration::from_secs(5)).unwrap();
        }
        let ip = "10.0.0.1".parse().unwrap();
        let mut packet = [0_u8; 28];
        packet[0] = 0x45;
        packet[24..].copy_from_slice(&[1, 2, 3, 4]);
        assert!(is_reply(&packet, ip, 0, [1, 2, 3, 4]));
        assert!(!is_reply(&packet, ip, 0, [1, 2, 3, 5]));
        assert!(!is_reply(&packet[..20], ip, 0, [1, 2, 3, 4]));
        assert!(!is_reply(&[], ip, 0, [1, 2, 3, 4]));
    }

    #[test]
    fn a_link_that_is_not_there_is_named_by_the_kernel() {
        let why = answers("127.0.0.1".parse().unwrap(), "no-such-link", Duration::from_secs(1)).unwrap_err();
        assert!(why.contains("No such device"), "{why}");
    }
}
