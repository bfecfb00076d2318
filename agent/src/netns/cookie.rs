//! The number of a network namespace. With `unsafe`: no safe wrapper has this socket option.

#![allow(unsafe_code)]

use std::io;
use std::mem::size_of_val;
use std::net::UdpSocket;
use std::os::fd::AsRawFd;

use nix::libc;

/// Linux 5.14 and later; the libc crate doesn't have it on every target.
const SO_NETNS_COOKIE: libc::c_int = 71;

/// The inode of a namespace is given again once it is gone; this number is not.
pub(super) fn of_this_thread() -> io::Result<u64> {
    let socket = UdpSocket::bind(("0.0.0.0", 0))?;
    let mut cookie = 0u64;
    let mut length = libc::socklen_t::try_from(size_of_val(&cookie)).map_err(io::Error::other)?;
    // SAFETY: the descriptor is open, and the kernel writes at most `length` bytes to `cookie`, which has as many.
    let result = unsafe {
        libc::getsockopt(
            socket.as_raw_fd(),
            libc::SOL_SOCKET,
            SO_NETNS_COOKIE,
            (&raw mut cookie).cast(),
            &raw mut length,
        )
    };
    match result {
        0 => Ok(cookie),
        _ => match io::Error::last_os_error() {
            // An older kernel: the inode has to do.
            error if error.raw_os_error() == Some(libc::ENOPROTOOPT) => inode(),
            error => Err(error),
        },
    }
}

fn inode() -> io::Result<u64> {
    use std::os::unix::fs::MetadataExt;
    Ok(std::fs::metadata("/proc/thread-self/ns/net")?.ino())
}
