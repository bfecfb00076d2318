//! A name that one process at a time has in a network namespace: an abstract socket, which the kernel keeps per network
//! namespace. It needs no file, is seen from every container on that network, and goes with its process.
//!
//! For locks: of the agent of a network, and of whoever changes it just now. Anybody may take a name; one who has no rights
//! over the network must not keep those out who have. Cost: one call to take it, nothing while nobody asks.

use std::io;
use std::os::fd::AsRawFd;
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixListener};

use nix::errno::Errno;
use nix::sys::socket::sockopt::PeerCredentials;
use nix::sys::socket::{AddressFamily, SockFlag, SockType, UnixAddr, connect, getsockopt, socket};
use nix::unistd::geteuid;

/// A process of another container, say.
pub(crate) const UNSEEN: &str = "a process that can't be seen from here";
/// So much of a command line is shown.
const SHOWN: usize = 200;
/// A holder may go between two looks.
const TRIES: usize = 3;

/// Held until dropped.
#[derive(Debug)]
pub(crate) struct Name {
    /// Nobody is ever answered on it: that it listens is all.
    _listener: UnixListener,
}

/// Who has it instead.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Holder {
    /// One of ours, in words.
    Process(String),
    /// A user without rights over the network.
    Stranger { uid: u32 },
}

/// Takes a name in the namespace of the calling thread, unless somebody has it.
pub(crate) fn take(name: &str) -> io::Result<Result<Name, Holder>> {
    let address = SocketAddr::from_abstract_name(name)?;
    for _ in 0..TRIES {
        match UnixListener::bind_addr(&address) {
            Ok(listener) => return Ok(Ok(Name { _listener: listener })),
            Err(error) if error.kind() != io::ErrorKind::AddrInUse => return Err(error),
            Err(_) => {
                if let Some(holder) = holder(name) {
                    return Ok(Err(holder));
                }
            }
        }
    }
    Ok(Err(Holder::Process("one that comes and goes".to_owned())))
}

/// Asks the kernel: it knows who listens. Nobody answers, so a queue that is full is no reason to wait. Nothing, where
/// nobody is there any more.
fn holder(name: &str) -> Option<Holder> {
    let flags = SockFlag::SOCK_CLOEXEC | SockFlag::SOCK_NONBLOCK;
    let asked = UnixAddr::new_abstract(name.as_bytes()).and_then(|name| {
        let stream = socket(AddressFamily::Unix, SockType::Stream, flags, None)?;
        connect(stream.as_raw_fd(), &name)?;
        getsockopt(&stream, PeerCredentials)
    });
    match asked {
        Err(Errno::ECONNREFUSED) => None,
        Err(_) => Some(Holder::Process(UNSEEN.to_owned())),
        Ok(peer) if peer.uid() != 0 && peer.uid() != geteuid().as_raw() => {
            Some(Holder::Stranger { uid: peer.uid() })
        }
        Ok(peer) => {
            let pid = u32::try_from(peer.pid()).ok().filter(|pid| *pid > 0);
            Some(Holder::Process(pid.map_or(UNSEEN.to_owned(), process)))
        }
    }
}

/// A process, by its number and how it was started, as far as that can be seen from here.
pub(crate) fn process(pid: u32) -> String {
    let line = std::fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
    let line = String::from_utf8_lossy(&line).replace('\0', " ");
    match line.trim() {
        "" => format!("process {pid}"),
        line => format!("process {pid}: {}", line.chars().take(SHOWN).collect::<String>()),
    }
}
