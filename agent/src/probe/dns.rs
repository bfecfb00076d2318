//! One question to a name server: whatever it answers, it is there.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, UdpSocket};
use std::time::{Duration, Instant};

use crate::api::random;

/// `root-servers.net`, type NS, class IN: every resolver knows it.
const QUESTION: &[u8] = b"\x0croot-servers\x03net\x00\x00\x02\x00\x01";
/// An answer, in the first byte of the flags.
const RESPONSE: u8 = 0x80;

pub(super) fn answers(server: SocketAddr, patience: Duration) -> Result<(), String> {
    let until = Instant::now() + patience;
    let here: IpAddr = match server {
        SocketAddr::V4(_) => Ipv4Addr::UNSPECIFIED.into(),
        SocketAddr::V6(_) => Ipv6Addr::UNSPECIFIED.into(),
    };
    let words = |error: std::io::Error| error.to_string();
    let socket = UdpSocket::bind((here, 0)).map_err(words)?;
    socket.connect(server).map_err(words)?;
    let id: [u8; 2] = random::bytes();
    // One question, recursion desired.
    let mut message = vec![id[0], id[1], 0x01, 0x00, 0, 1, 0, 0, 0, 0, 0, 0];
    message.extend_from_slice(QUESTION);
    socket.send(&message).map_err(words)?;
    let mut answer = [0; 512];
    loop {
        let left = until.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Err("no answer".to_owned());
        }
        socket.set_read_timeout(Some(left)).map_err(words)?;
        match socket.recv(&mut answer) {
            Ok(length) if length >= 3 && answer[..2] == id && answer[2] & RESPONSE != 0 => return Ok(()),
            Ok(_) => {}
            Err(error) if error.kind() == std::io::ErrorKind::WouldBlock => {
                return Err("no answer".to_owned());
            }
            Err(error) => return Err(words(error)),
        }
    }
}
