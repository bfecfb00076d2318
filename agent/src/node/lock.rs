//! One agent per host: locks that are held for as long as the agent runs, and who has them otherwise.
//!
//! Three, since two agents can meet in three ways: with one state directory (a file in it), on one network namespace with two
//! state directories (an abstract socket, which the kernel keeps per network namespace: it needs no file, is seen from
//! every container on the host's network, and goes with its process), and beside kubernetes-nmstate, whose lock is taken
//! too. Called at the start of an agent, and of `berth boot`. Cost: nothing while nobody asks.

use std::fs::File;
use std::io;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use nix::errno::Errno;
use nix::fcntl::{Flock, FlockArg};
use nix::sys::stat::{major, minor};

use crate::netns::name::{self, Holder, Name, UNSEEN, process};
use crate::netns::{Namespace, NetnsError};
use crate::telemetry::warn;

/// What the agent of a network namespace is called in it.
const NAME: &str = "nmstate.io/berth-agent";

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
    _network: Option<Name>,
}

impl Lock {
    pub(super) fn take(folder: &Path, namespace: &Namespace) -> Result<Self, LockError> {
        std::fs::create_dir_all(folder)
            .map_err(|source| LockError::File { path: folder.to_owned(), source })?;
        let path = folder.join("agent.lock");
        let held = match flock(&path)? {
            Some(held) => held,
            None => return Err(LockError::Folder { holder: holder_of_file(&path), path }),
        };
        Ok(Self { _folder: held, _network: network(namespace)? })
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

/// The network namespace is ours, unless somebody has it.
fn network(namespace: &Namespace) -> Result<Option<Name>, LockError> {
    let taken = namespace.inside(|| name::take(NAME))?;
    match taken.map_err(|source| LockError::Socket { source })? {
        Ok(name) => Ok(Some(name)),
        Err(Holder::Process(holder)) => Err(LockError::Network { holder }),
        Err(Holder::Stranger { uid }) => {
            // Who has no rights over the network is no agent, and must not keep one out.
            warn(&format!(
                "user {uid} has taken the agent's name on this network; going on without that lock"
            ));
            Ok(None)
        }
    }
}

#[cfg(test)]
mod tests;
