//! One agent per host: locks that are held for as long as the agent runs, and who has them otherwise.
//!
//! Three, since two agents can meet in three ways: with one state directory (a file in it), on one network namespace with two
//! state directories (an abstract socket, which the kernel keeps per network namespace: it needs no file, is seen from
//! every container on the host's network, and goes with its process), and beside kubernetes-nmstate, whose lock is taken
//! too. Called at the agent's start. Cost: nothing while nobody asks.

use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;
use std::os::linux::net::SocketAddrExt;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::os::unix::net::{SocketAddr, UnixListener};
use std::path::{Path, PathBuf};

use nix::errno::Errno;
use nix::fcntl::{Flock, FlockArg};
use nix::sys::socket::sockopt::PeerCredentials;
use nix::sys::socket::{AddressFamily, SockFlag, SockType, UnixAddr, connect, getsockopt, socket};
use nix::sys::stat::{major, minor};
use nix::unistd::geteuid;

use super::Settings;
use crate::netns::{Namespace, NetnsError};
use crate::telemetry::warn;

/// What the agent of a network namespace is called in it.
const NAME: &str = "nmstate.io/berth-agent";
/// A process of another container, say.
const UNSEEN: &str = "a process that can't be seen from here";
/// So much of a command line is shown.
const SHOWN: usize = 200;
/// A holder may go between two looks.
const TRIES: usize = 3;

/// Why this agent can't be the one.
#[derive(Debug, thiserror::Error)]
pub enum LockError {
    #[error("another agent ({holder}) works with {}: one host has one", .path.display())]
    Folder { path: PathBuf, holder: String },
    #[error("another agent ({holder}) works on this network: one host has one")]
    Network { holder: String },
    #[error(
        "{holder} holds {}, kubernetes-nmstate's lock: its handler and this agent would fight over the network; stop one of them",
        .path.display()
    )]
    Nmstate { path: PathBuf, holder: String },
    #[error("can't lock {}", .path.display())]
    File { path: PathBuf, source: io::Error },
    #[error("can't tell whether another agent works on this network")]
    Socket { source: io::Error },
    #[error(transparent)]
    Namespace(#[from] NetnsError),
}

/// Held until dropped.
pub(super) struct Lock {
    _folder: Flock<File>,
    /// Nobody is ever answered on it: that it listens is all.
    _network: Option<UnixListener>,
}

impl Lock {
    pub(super) fn take(settings: &Settings) -> Result<Self, LockError> {
        let folder = &settings.state_dir;
        std::fs::create_dir_all(folder).map_err(|source| LockError::File { path: folder.clone(), source })?;
        let path = folder.join("agent.lock");
        let held = match flock(&path)? {
            Some(held) => held,
            None => return Err(LockError::Folder { holder: holder_of_file(&path), path }),
        };
        Ok(Self { _folder: held, _network: network(settings)? })
    }
}

/// kubernetes-nmstate's lock, held until dropped.
pub struct NmstateLock {
    _file: Flock<File>,
}

impl NmstateLock {
    /// Takes the lock that kubernetes-nmstate's handler takes. Nothing, with a word, where there can be no such file.
    pub fn take(path: &Path) -> Result<Option<Self>, LockError> {
        if let Some(folder) = path.parent()
            && let Err(error) = std::fs::create_dir_all(folder)
        {
            let place = path.display();
            warn(&format!(
                "{place}: can't be made ({error}), so kubernetes-nmstate would not see this agent"
            ));
            return Ok(None);
        }
        match flock(path)? {
            Some(file) => Ok(Some(Self { _file: file })),
            None => Err(LockError::Nmstate { holder: holder_of_file(path), path: path.to_owned() }),
        }
    }
}

/// Is this process on the host's network, as far as can be told? kubernetes-nmstate works on no other.
pub fn is_hosts_network(namespace: &Namespace) -> bool {
    let of = |process: &str| std::fs::read_link(format!("/proc/{process}/ns/net"));
    match (namespace, of("self"), of("1")) {
        (Namespace::Own, Ok(own), Ok(first)) => own == first,
        // Who may not look at the first process is in a container or a hardened unit: it was given this network.
        (Namespace::Own, ..) => true,
        _ => false,
    }
}

/// Nothing, if somebody else has it.
fn flock(path: &Path) -> Result<Option<Flock<File>>, LockError> {
    let wrong = |source| LockError::File { path: path.to_owned(), source };
    let file = File::options().write(true).create(true).truncate(false).mode(0o600).open(path);
    match Flock::lock(file.map_err(wrong)?, FlockArg::LockExclusiveNonblock) {
        Ok(held) => Ok(Some(held)),
        Err((_, Errno::EWOULDBLOCK)) => Ok(None),
        Err((_, errno)) => Err(wrong(errno.into())),
    }
}

/// Who has locked a file, by the kernel's list.
fn holder_of_file(path: &Path) -> String {
    let pid = std::fs::metadata(path).ok().and_then(|about| {
        let (dev, inode) = (about.dev(), about.ino());
        let place = format!("{:02x}:{:02x}:{inode}", major(dev), minor(dev));
        let locks = std::fs::read_to_string("/proc/locks").ok()?;
        let line = locks.lines().find(|line| {
            let words: Vec<&str> = line.split_whitespace().collect();
            words.get(1) == Some(&"FLOCK") && words.get(5) == Some(&place.as_str())
        })?;
        line.split_whitespace().nth(4)?.parse::<u32>().ok().filter(|pid| *pid > 0)
    });
    pid.map_or(UNSEEN.to_owned(), process)
}

/// A process, by its number and how it was started, as far as that can be seen from here.
fn process(pid: u32) -> String {
    let line = std::fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
    let line = String::from_utf8_lossy(&line).replace('\0', " ");
    match line.trim() {
        "" => format!("process {pid}"),
        line => format!("process {pid}: {}", line.chars().take(SHOWN).collect::<String>()),
    }
}

/// The network namespace is ours, unless somebody has it.
fn network(settings: &Settings) -> Result<Option<UnixListener>, LockError> {
    let socket = |source| LockError::Socket { source };
    let name = SocketAddr::from_abstract_name(NAME).map_err(socket)?;
    for _ in 0..TRIES {
        let bound = settings.namespace.inside(|| match UnixListener::bind_addr(&name) {
            Err(error) if error.kind() == io::ErrorKind::AddrInUse => Ok(Err(who())),
            other => other.map(Ok),
        })?;
        match bound.map_err(socket)? {
            Ok(listener) => return Ok(Some(listener)),
            Err(Who::Gone) => {}
            Err(Who::Agent(holder)) => return Err(LockError::Network { holder }),
            Err(Who::Stranger { uid }) => {
                // Anybody may take a name. Who has no rights over the network is no agent, and must not keep one out.
                warn(&format!(
                    "user {uid} has taken the agent's name on this network; going on without that lock"
                ));
                return Ok(None);
            }
        }
    }
    Err(LockError::Network { holder: "one that comes and goes".to_owned() })
}

/// Who has the name.
enum Who {
    Agent(String),
    Stranger { uid: u32 },
    Gone,
}

/// Asks the kernel: it knows who listens. Nobody answers, so a queue that is full is no reason to wait.
fn who() -> Who {
    let flags = SockFlag::SOCK_CLOEXEC | SockFlag::SOCK_NONBLOCK;
    let asked = UnixAddr::new_abstract(NAME.as_bytes()).and_then(|name| {
        let stream = socket(AddressFamily::Unix, SockType::Stream, flags, None)?;
        connect(stream.as_raw_fd(), &name)?;
        getsockopt(&stream, PeerCredentials)
    });
    match asked {
        Err(Errno::ECONNREFUSED) => Who::Gone,
        Err(_) => Who::Agent(UNSEEN.to_owned()),
        Ok(peer) if peer.uid() != 0 && peer.uid() != geteuid().as_raw() => Who::Stranger { uid: peer.uid() },
        Ok(peer) => Who::Agent(
            u32::try_from(peer.pid()).ok().filter(|pid| *pid > 0).map_or(UNSEEN.to_owned(), process),
        ),
    }
}

#[cfg(test)]
mod tests;
