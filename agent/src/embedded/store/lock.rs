//! One server per directory: a lock file that says who has it.
//!
//! The lock is the kernel's and goes with the process, however that ends; the number in the file is only for people.

use std::fs::{File, OpenOptions};
use std::io::{Read, Seek, Write};
use std::path::{Path, PathBuf};

use nix::errno::Errno;
use nix::fcntl::{Flock, FlockArg};

/// The directory can't be had.
#[derive(Debug, thiserror::Error)]
pub enum LockError {
    #[error("make the directory {}", .path.display())]
    Directory { path: PathBuf, source: std::io::Error },
    #[error("{} is in use by another server{}; stop it, or use another directory", .path.display(), By(.pid))]
    Busy { path: PathBuf, pid: Option<u32> },
    #[error("lock {}", .path.display())]
    Lock { path: PathBuf, source: std::io::Error },
}

struct By<'a>(&'a Option<u32>);

impl std::fmt::Display for By<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.0.map_or(Ok(()), |pid| write!(f, " (pid {pid})"))
    }
}

/// The lock of a directory, as long as this lives.
#[derive(Debug)]
pub(super) struct Lock {
    _file: Flock<File>,
}

impl Lock {
    /// Makes the directory where it is missing, for its owner alone, and takes its lock.
    pub(super) fn take(dir: &Path) -> Result<Self, LockError> {
        make(dir).map_err(|source| LockError::Directory { path: dir.to_owned(), source })?;
        let path = dir.join("lock");
        let failed = |source| LockError::Lock { path: path.clone(), source };
        let file = OpenOptions::new().read(true).write(true).create(true).truncate(false).open(&path);
        let file = file.map_err(failed)?;
        let mut file =
            Flock::lock(file, FlockArg::LockExclusiveNonblock).map_err(|(mut file, errno)| match errno {
                Errno::EWOULDBLOCK => {
                    let mut text = String::new();
                    let read = file.read_to_string(&mut text);
                    LockError::Busy {
                        path: dir.to_owned(),
                        pid: read.ok().and_then(|_| text.trim().parse().ok()),
                    }
                }
                errno => failed(errno.into()),
            })?;
        // A full disk must not keep a server from starting: the number is a courtesy.
        let _ = write(&mut file);
        Ok(Self { _file: file })
    }
}

fn make(dir: &Path) -> std::io::Result<()> {
    use std::os::unix::fs::DirBuilderExt;
    std::fs::DirBuilder::new().recursive(true).mode(0o700).create(dir)
}

fn write(file: &mut Flock<File>) -> std::io::Result<()> {
    file.set_len(0)?;
    file.rewind()?;
    writeln!(file, "{}", std::process::id())
}
