//! Network namespaces: which one is meant, how to work inside it, and how to tell it from every other.

mod cookie;
pub(crate) mod name;

use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};
use std::str::FromStr;

use nix::errno::Errno;
use nix::sched::{CloneFlags, setns};

/// Where `ip netns` keeps the ones with names.
const NAMED: &str = "/run/netns";

/// A network namespace.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Namespace {
    /// The one the process is in.
    #[default]
    Own,
    /// One of `ip netns`.
    Named(String),
    /// A file that is one, such as `/proc/123/ns/net`.
    At(PathBuf),
}

/// Why there is no working inside it.
#[derive(Debug, thiserror::Error)]
pub enum NetnsError {
    #[error("there is no network namespace {name}; see 'ip netns list'")]
    NoSuchName { name: String },
    #[error("can't open the network namespace {}", .path.display())]
    Open { path: PathBuf, source: io::Error },
    #[error("{} is not a network namespace; see 'ip netns list', or use /proc/PID/ns/net", .path.display())]
    NotOne { path: PathBuf },
    #[error("can't enter the network namespace {}; that needs CAP_SYS_ADMIN", .path.display())]
    Enter { path: PathBuf, source: io::Error },
    #[error("can't tell which network namespace this is")]
    Identity { source: io::Error },
    #[error("the thread inside the network namespace died")]
    Died,
}

impl FromStr for Namespace {
    type Err = std::convert::Infallible;

    /// A path has a slash, a name has none.
    fn from_str(text: &str) -> Result<Self, Self::Err> {
        if !text.contains('/') {
            return Ok(Self::Named(text.to_owned()));
        }
        let path = PathBuf::from(text);
        let named = [NAMED, "/var/run/netns"].iter().any(|folder| path.parent() == Some(Path::new(folder)));
        let name = path.file_name().and_then(|name| name.to_str()).filter(|_| named).map(str::to_owned);
        Ok(name.map_or(Self::At(path), Self::Named))
    }
}

impl Namespace {
    fn path(&self) -> Option<PathBuf> {
        match self {
            Namespace::Own => None,
            Namespace::Named(name) => Some(Path::new(NAMED).join(name)),
            Namespace::At(path) => Some(path.clone()),
        }
    }

    /// Does `work` inside, on a thread of its own: entering a namespace is for the life of a thread, and sockets and
    /// `/proc/sys/net` are those of the thread that opens them.
    pub fn inside<T: Send>(&self, work: impl FnOnce() -> T + Send) -> Result<T, NetnsError> {
        let Some(path) = self.path() else { return Ok(work()) };
        let file = File::open(&path).map_err(|source| match (self, source.kind()) {
            (Namespace::Named(name), io::ErrorKind::NotFound) => {
                NetnsError::NoSuchName { name: name.clone() }
            }
            _ => NetnsError::Open { path: path.clone(), source },
        })?;
        let enter = || {
            setns(&file, CloneFlags::CLONE_NEWNET).map_err(|errno| match errno {
                // Some other file, or a namespace of another kind.
                Errno::EINVAL => NetnsError::NotOne { path: path.clone() },
                errno => NetnsError::Enter { path: path.clone(), source: errno.into() },
            })?;
            Ok(work())
        };
        std::thread::scope(|scope| scope.spawn(enter).join()).unwrap_or(Err(NetnsError::Died))
    }
}

/// What tells a namespace of this boot from every other, also from one that came later and got its inode.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct Identity {
    /// The kernel's id of this boot.
    pub boot: String,
    /// The kernel's number of the namespace, never given twice in a boot.
    pub namespace: u64,
}

impl Identity {
    /// Of the namespace that the calling thread is in.
    pub fn here() -> Result<Self, NetnsError> {
        let identity = || -> io::Result<Self> {
            let boot = std::fs::read_to_string("/proc/sys/kernel/random/boot_id")?;
            Ok(Self { boot: boot.trim().to_owned(), namespace: cookie::of_this_thread()? })
        };
        identity().map_err(|source| NetnsError::Identity { source })
    }
}

#[cfg(test)]
mod tests {
    use super::{Identity, Namespace};

    #[test]
    fn names_and_paths() {
        let parse = |text: &str| text.parse::<Namespace>().unwrap();
        assert_eq!(parse("blue"), Namespace::Named("blue".into()));
        assert_eq!(parse("/run/netns/blue"), Namespace::Named("blue".into()));
        assert_eq!(parse("/var/run/netns/blue"), Namespace::Named("blue".into()));
        assert_eq!(parse("/proc/1/ns/net"), Namespace::At("/proc/1/ns/net".into()));
    }

    #[test]
    fn a_namespace_is_itself() {
        let here = Identity::here().unwrap();
        assert_eq!(here, Identity::here().unwrap());
        assert!(!here.boot.is_empty() && here.namespace != 0, "{here:?}");
    }
}
