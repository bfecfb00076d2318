//! A netlink socket: dumps that are whole or an error, requests that are acknowledged or an error.
//!
//! Blocking and in order: the kernel answers a request while it is being sent, so a thread that waits is all there
//! is to schedule. Never shared between requests and notifications: an answer lost to a full buffer would be waited
//! for in vain.
//!
//! Cost: a dump is one request; requests are sent [`WINDOW`] at a time in one datagram, fewer where they are long, each
//! answered by one acknowledgement.

use std::io;
use std::iter::Peekable;
use std::os::fd::AsRawFd;
use std::time::Duration;

use netlink_sys::protocols::NETLINK_ROUTE;
use nix::errno::Errno;
use nix::sys::socket::{setsockopt, sockopt};
use nix::sys::time::{TimeVal, TimeValLike};

use super::wire::{Attrs, Frame, Malformed, Message, frames, read_u32};

pub(crate) const REQUEST: u16 = 0x1;
pub(crate) const ACK: u16 = 0x4;
pub(crate) const DUMP: u16 = 0x300;
pub(crate) const REPLACE: u16 = 0x100;
pub(crate) const EXCLUSIVE: u16 = 0x200;
pub(crate) const CREATE: u16 = 0x400;
pub(crate) const APPEND: u16 = 0x800;

const DUMP_INTERRUPTED: u16 = 0x10;
const CAPPED: u16 = 0x100;
const HAS_TEXT: u16 = 0x200;

const KIND_NOOP: u16 = 1;
const KIND_ERROR: u16 = 2;
const KIND_DONE: u16 = 3;
const KIND_OVERRUN: u16 = 4;

/// The kernel fills at most 32 KiB of a dump at once; more than this in one datagram is not an answer of rtnetlink.
const BUFFER: usize = 128 * 1024;
/// Requests in flight: their acknowledgements (under 1 KiB each) must fit a receive buffer of the default size.
pub(crate) const WINDOW: usize = 64;
/// Bytes in flight: a datagram must fit a send buffer, which is 208 KiB unless somebody made it smaller, and a route may be
/// 7 KiB long (256 ways). A single message is sent whatever its length.
const WINDOW_BYTES: usize = 64 * 1024;
/// rtnetlink answers while the request is sent, and waits for nothing but its own lock: ten seconds are a hang.
const PATIENCE: i64 = 10;
/// Dumps of a table that somebody keeps changing: this many times, then it is said.
const DUMP_TRIES: usize = 20;
/// How much longer is waited before each further try.
const DUMP_PAUSE: Duration = Duration::from_millis(10);

/// The kernel said no.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refused {
    pub errno: Errno,
    /// What the kernel said about it.
    pub text: Option<String>,
}

impl std::fmt::Display for Refused {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} ({:?})", self.errno.desc(), self.errno)?;
        match &self.text {
            Some(text) => write!(f, ": {text}"),
            None => Ok(()),
        }
    }
}

impl std::error::Error for Refused {}

/// What can go wrong between here and the kernel.
#[derive(Debug, thiserror::Error)]
pub enum NetlinkError {
    #[error("can't open a netlink socket")]
    Open { source: io::Error },
    #[error("can't talk to the kernel over netlink")]
    Talk { source: io::Error },
    #[error("the kernel did not answer within {seconds} s")]
    Silent { seconds: i64 },
    #[error("the kernel refused: {refused}")]
    Refused { refused: Refused },
    #[error("the kernel's answer ended before it was complete")]
    Incomplete,
    #[error(
        "what was asked for changed under each of {tries} readings; something on this host changes it all the time"
    )]
    Unsteady { tries: usize },
    #[error("the kernel's answer can't be read")]
    Unreadable { source: Malformed },
}

impl NetlinkError {
    /// What the kernel said, where it said something.
    pub fn refused(&self) -> Option<&Refused> {
        match self {
            NetlinkError::Refused { refused } => Some(refused),
            _ => None,
        }
    }
}

/// What a dump brought.
#[derive(Debug)]
pub(crate) struct Dumped<T> {
    pub(crate) items: Vec<T>,
    /// Messages that couldn't be read; the rest is there.
    pub(crate) unreadable: usize,
}

/// Where datagrams go and come from: the kernel, or a test's script of what a kernel may answer.
pub(crate) trait Wire {
    fn send(&self, datagram: &[u8]) -> io::Result<usize>;
    fn receive(&self, into: &mut [u8]) -> io::Result<usize>;
}

impl Wire for netlink_sys::Socket {
    fn send(&self, datagram: &[u8]) -> io::Result<usize> {
        self.send_to(datagram, &netlink_sys::SocketAddr::new(0, 0), 0)
    }

    fn receive(&self, mut into: &mut [u8]) -> io::Result<usize> {
        self.recv(&mut into, 0)
    }
}

/// A socket for requests.
pub(crate) struct Socket<W = netlink_sys::Socket> {
    inner: W,
    buffer: Vec<u8>,
    sequence: u32,
    /// Requests sent so far.
    sent: u64,
}

impl std::fmt::Debug for Socket {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Socket").field("fd", &self.inner.as_raw_fd()).field("sent", &self.sent).finish()
    }
}

impl Socket {
    /// In the network namespace of the calling thread.
    pub(crate) fn open() -> Result<Self, NetlinkError> {
        let open = || -> io::Result<netlink_sys::Socket> {
            let mut socket = netlink_sys::Socket::new(NETLINK_ROUTE)?;
            socket.bind_auto()?;
            socket.set_ext_ack(true)?;
            socket.set_cap_ack(true)?;
            // Old kernels don't know it, and filter less.
            let _ = socket.set_netlink_get_strict_chk(true);
            patient(&socket, PATIENCE)?;
            Ok(socket)
        };
        Ok(Self::over(open().map_err(|source| NetlinkError::Open { source })?))
    }
}

impl<W: Wire> Socket<W> {
    fn over(inner: W) -> Self {
        Self { inner, buffer: vec![0; BUFFER], sequence: 0, sent: 0 }
    }

    pub(crate) fn sent(&self) -> u64 {
        self.sent
    }

    /// Every object that `message` asks for. `read` says what a message is, `None` for one that is of no interest.
    /// Whole, or an error: an interrupted dump is taken again, one that ends early is not an answer.
    pub(crate) fn dump<T>(
        &mut self,
        message: &Message,
        mut read: impl FnMut(&Frame<'_>) -> Result<Option<T>, Malformed>,
    ) -> Result<Dumped<T>, NetlinkError> {
        for tried in 0..DUMP_TRIES {
            // A storm passes; asking faster than it blows doesn't help. Two seconds in all.
            std::thread::sleep(DUMP_PAUSE * u32::try_from(tried).unwrap_or(u32::MAX));
            let mut dumped = Dumped { items: Vec::new(), unreadable: 0 };
            let steady = self.dump_once(message.clone(), |frame| match read(frame) {
                Ok(item) => dumped.items.extend(item),
                Err(Malformed) => dumped.unreadable += 1,
            })?;
            if steady {
                return Ok(dumped);
            }
        }
        Err(NetlinkError::Unsteady { tries: DUMP_TRIES })
    }

    /// Whether nothing changed meanwhile.
    fn dump_once(
        &mut self,
        message: Message,
        mut each: impl FnMut(&Frame<'_>),
    ) -> Result<bool, NetlinkError> {
        let sequence = self.send(vec![message])?;
        let mut steady = true;
        loop {
            let length = receive(&self.inner, &mut self.buffer)?;
            for frame in frames(&self.buffer[..length]) {
                let frame = frame.map_err(|source| NetlinkError::Unreadable { source })?;
                if frame.sequence != sequence {
                    continue;
                }
                steady &= frame.flags & DUMP_INTERRUPTED == 0;
                match frame.kind {
                    KIND_NOOP => {}
                    KIND_ERROR | KIND_DONE => return answer(&frame).map(|()| steady),
                    KIND_OVERRUN => return Err(NetlinkError::Incomplete),
                    _ => each(&frame),
                }
            }
        }
    }

    /// All of them, in order, whatever becomes of those before; what was refused, by its place.
    pub(crate) fn requests(&mut self, messages: Vec<Message>) -> Result<Vec<(usize, Refused)>, NetlinkError> {
        let mut refused = Vec::new();
        let mut messages = messages.into_iter().peekable();
        let mut begin = 0;
        while messages.peek().is_some() {
            let window = window(&mut messages);
            let count = window.len();
            let first = self.send(window)?;
            let mut answered = 0;
            while answered < count {
                let length = receive(&self.inner, &mut self.buffer)?;
                for frame in frames(&self.buffer[..length]) {
                    let frame = frame.map_err(|source| NetlinkError::Unreadable { source })?;
                    let place = frame.sequence.wrapping_sub(first) as usize;
                    if frame.kind != KIND_ERROR || place >= count {
                        continue;
                    }
                    answered += 1;
                    match answer(&frame) {
                        Ok(()) => {}
                        Err(NetlinkError::Refused { refused: why }) => refused.push((begin + place, why)),
                        Err(other) => return Err(other),
                    }
                }
            }
            begin += count;
        }
        Ok(refused)
    }

    /// In one datagram; returns the first one's sequence number.
    fn send(&mut self, messages: Vec<Message>) -> Result<u32, NetlinkError> {
        let first = self.sequence.wrapping_add(1);
        let mut datagram = Vec::new();
        for message in messages {
            self.sequence = self.sequence.wrapping_add(1);
            self.sent += 1;
            datagram.extend(message.finish(self.sequence));
        }
        let sent = self.inner.send(&datagram).map_err(|source| NetlinkError::Talk { source })?;
        if sent == datagram.len() { Ok(first) } else { Err(NetlinkError::Incomplete) }
    }
}

/// The messages of the next datagram: one at least, and no more than fit.
fn window(messages: &mut Peekable<impl Iterator<Item = Message>>) -> Vec<Message> {
    let mut window: Vec<Message> = messages.next().into_iter().collect();
    let mut bytes: usize = window.iter().map(Message::len).sum();
    while window.len() < WINDOW
        && let Some(message) = messages.next_if(|next| bytes + next.len() <= WINDOW_BYTES)
    {
        bytes += message.len();
        window.push(message);
    }
    window
}

/// Waits no longer than this for an answer.
pub(super) fn patient(socket: &netlink_sys::Socket, seconds: i64) -> io::Result<()> {
    setsockopt(socket, sockopt::ReceiveTimeout, &TimeVal::seconds(seconds))?;
    Ok(())
}

fn receive(wire: &impl Wire, buffer: &mut [u8]) -> Result<usize, NetlinkError> {
    loop {
        match wire.receive(buffer) {
            // A datagram as long as the buffer may have been cut.
            Ok(length) if length == 0 || length >= buffer.len() => return Err(NetlinkError::Incomplete),
            Ok(length) => return Ok(length),
            Err(source) => match source.raw_os_error().map(Errno::from_raw) {
                Some(Errno::EINTR) => {}
                Some(Errno::EAGAIN) => return Err(NetlinkError::Silent { seconds: PATIENCE }),
                Some(Errno::ENOBUFS) => return Err(NetlinkError::Incomplete),
                _ => return Err(NetlinkError::Talk { source }),
            },
        }
    }
}

/// What an acknowledgement, or the end of a dump, says.
fn answer(frame: &Frame<'_>) -> Result<(), NetlinkError> {
    let code = match read_u32(frame.payload, 0) {
        Some(code) => code.cast_signed(),
        None if frame.kind == KIND_DONE => 0,
        None => return Err(NetlinkError::Unreadable { source: Malformed }),
    };
    match code {
        0 => Ok(()),
        code => Err(NetlinkError::Refused {
            refused: Refused { errno: Errno::from_raw(code.saturating_neg()), text: said(frame) },
        }),
    }
}

/// The kernel's own words, behind the code and (in an acknowledgement) the head of the request.
fn said(frame: &Frame<'_>) -> Option<String> {
    const TEXT: u16 = 1;
    if frame.flags & HAS_TEXT == 0 {
        return None;
    }
    let skip = match frame.kind {
        KIND_DONE => 4,
        _ if frame.flags & CAPPED != 0 => 4 + 16,
        _ => 4 + read_u32(frame.payload, 4)? as usize,
    };
    Attrs::after(frame.payload, skip).ok()?.text(TEXT).filter(|text| !text.is_empty())
}

#[cfg(test)]
mod tests;
