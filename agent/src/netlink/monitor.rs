//! Hearing that something changed: links, addresses, routes, rules.
//!
//! On a socket of its own, so that what is not listened to can't push out an answer. What exactly changed is not
//! told: whoever listens looks again. Lost notifications (a full buffer) are a change like any other.

use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::time::{Duration, Instant};

use netlink_sys::protocols::NETLINK_ROUTE;
use nix::errno::Errno;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};

use super::socket::NetlinkError;

/// `RTNLGRP_LINK`, the addresses and routes of both families, their rules.
const GROUPS: [u32; 7] = [1, 5, 9, 7, 11, 8, 19];
/// Enough for thousands of changes between two looks.
const BUFFER: i32 = 1 << 20;

/// What was heard.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Heard {
    /// Something changed; this many notifications.
    Changes(usize),
    /// Notifications were lost: anything may have changed.
    Overrun,
    /// Nothing, for as long as was waited.
    Silence,
}

/// Listens in the namespace it was opened in.
pub struct Monitor {
    socket: netlink_sys::Socket,
    buffer: Vec<u8>,
}

impl std::fmt::Debug for Monitor {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Monitor").finish_non_exhaustive()
    }
}

impl AsFd for Monitor {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

impl Monitor {
    /// In the network namespace of the calling thread, from now on.
    pub fn open() -> Result<Self, NetlinkError> {
        Self::with_buffer(BUFFER)
    }

    /// With a receive buffer of about so many bytes: what doesn't fit is lost, and heard as an overrun.
    pub fn with_buffer(bytes: i32) -> Result<Self, NetlinkError> {
        let open = || -> io::Result<netlink_sys::Socket> {
            let mut socket = netlink_sys::Socket::new(NETLINK_ROUTE)?;
            socket.bind_auto()?;
            socket.set_rx_buf_sz(bytes)?;
            for group in GROUPS {
                socket.add_membership(group)?;
            }
            socket.set_non_blocking(true)?;
            Ok(socket)
        };
        let socket = open().map_err(|source| NetlinkError::Open { source })?;
        Ok(Self { socket, buffer: vec![0; 64 * 1024] })
    }

    /// Waits for a change, and takes all that are there.
    pub fn wait(&mut self, at_most: Duration) -> Result<Heard, NetlinkError> {
        let until = Instant::now() + at_most;
        loop {
            match self.take()? {
                Heard::Silence => {}
                heard => return Ok(heard),
            }
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Ok(Heard::Silence);
            }
            // Rounded up: a wait of 0 ms would spin.
            let left = PollTimeout::try_from(left + Duration::from_millis(1)).unwrap_or(PollTimeout::MAX);
            match poll(&mut [PollFd::new(self.socket.as_fd(), PollFlags::POLLIN)], left) {
                Ok(_) | Err(Errno::EINTR) => {}
                Err(errno) => return Err(NetlinkError::Talk { source: errno.into() }),
            }
        }
    }

    fn take(&mut self) -> Result<Heard, NetlinkError> {
        let (mut count, mut lost) = (0, false);
        loop {
            let mut into = &mut self.buffer[..];
            match self.socket.recv(&mut into, 0) {
                Ok(_) => count += 1,
                Err(source) => match source.raw_os_error().map(Errno::from_raw) {
                    Some(Errno::EAGAIN) => break,
                    Some(Errno::ENOBUFS) => lost = true,
                    Some(Errno::EINTR) => {}
                    _ => return Err(NetlinkError::Talk { source }),
                },
            }
        }
        Ok(match (lost, count) {
            (true, _) => Heard::Overrun,
            (false, 0) => Heard::Silence,
            (false, count) => Heard::Changes(count),
        })
    }
}
