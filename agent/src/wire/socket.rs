//! A packet socket on one link: whole frames, of one protocol. With [`crate::netns`]'s number of a namespace the only
//! place with `unsafe`: no safe wrapper has this protocol, nor this kind of address. Needs CAP_NET_RAW.

#![allow(unsafe_code)]

use std::io;
use std::mem::{size_of, zeroed};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd};

use nix::errno::Errno;
use nix::libc;
use nix::sys::socket::{MsgFlags, recv, send};

/// What is listened to.
#[derive(Clone, Copy)]
pub(super) enum Protocol {
    Arp,
    Ipv6,
}

impl Protocol {
    /// In the network's order, as the kernel wants it.
    fn number(self) -> u16 {
        let number = match self {
            Self::Arp => libc::ETH_P_ARP,
            Self::Ipv6 => libc::ETH_P_IPV6,
        };
        u16::try_from(number).unwrap_or_default().to_be()
    }
}

/// More than any answer; what is longer is of no interest.
const LONGEST: usize = 512;

pub(super) struct PacketSocket(OwnedFd);

impl PacketSocket {
    /// In the network namespace of the calling thread, on the link with this number.
    pub(super) fn open(index: i32, protocol: Protocol) -> io::Result<Self> {
        let kind = libc::SOCK_RAW | libc::SOCK_CLOEXEC | libc::SOCK_NONBLOCK;
        // Of no protocol until it is bound: what other links hear meanwhile is not its business.
        // SAFETY: no memory is passed.
        let fd = unsafe { libc::socket(libc::AF_PACKET, kind, 0) };
        if fd < 0 {
            return Err(io::Error::last_os_error());
        }
        // SAFETY: the kernel has just given it, and nobody else has it.
        let fd = unsafe { OwnedFd::from_raw_fd(fd) };
        // SAFETY: all of it are numbers, and zero is one.
        let mut address: libc::sockaddr_ll = unsafe { zeroed() };
        address.sll_family = u16::try_from(libc::AF_PACKET).map_err(io::Error::other)?;
        address.sll_protocol = protocol.number();
        address.sll_ifindex = index;
        let length = libc::socklen_t::try_from(size_of::<libc::sockaddr_ll>()).map_err(io::Error::other)?;
        // SAFETY: the descriptor is open, and the kernel reads `length` bytes of `address`, which has as many.
        let bound = unsafe { libc::bind(fd.as_raw_fd(), (&raw const address).cast(), length) };
        if bound == 0 { Ok(Self(fd)) } else { Err(io::Error::last_os_error()) }
    }

    pub(super) fn send(&self, frame: &[u8]) -> io::Result<()> {
        send(self.0.as_raw_fd(), frame, MsgFlags::empty())?;
        Ok(())
    }

    /// The next frame, if there is one now.
    pub(super) fn receive(&self) -> io::Result<Option<Vec<u8>>> {
        let mut frame = vec![0; LONGEST];
        match recv(self.0.as_raw_fd(), &mut frame, MsgFlags::empty()) {
            Ok(length) => {
                frame.truncate(length);
                Ok(Some(frame))
            }
            Err(Errno::EAGAIN | Errno::EINTR) => Ok(None),
            // The link went down meanwhile, and there is nobody to hear.
            Err(error) => Err(error.into()),
        }
    }
}

impl AsFd for PacketSocket {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}
