//! Whether a change was cut off, for those who only look: `berth show` and `berth plan` say so.
//!
//! Must never keep anybody from working: the lock is held for an instant, and only where there is a checkpoint.
//!
//! Cost: two files opened, and none where there is no checkpoint.

use std::fs::{self, File};
use std::path::{Path, PathBuf};

use nix::errno::Errno;
use nix::fcntl::{Flock, FlockArg};
use serde::Deserialize;

use super::{LOCK, NAME, folder};
use crate::netns::Identity;

/// What a look at a namespace's checkpoint shows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Peek {
    /// Nothing of this boot and namespace.
    Nothing,
    /// A change that never ended.
    CutOff,
    /// Somebody is changing the namespace right now.
    UnderWay,
    /// There is one, and this process may not read it.
    Closed { path: PathBuf },
    /// There is one that says nothing.
    Damaged { path: PathBuf },
}

/// As much of it as says whose it is.
#[derive(Deserialize)]
struct Whose {
    identity: Identity,
}

/// Looks at the checkpoint of a namespace, if there is one.
pub fn peek(state_dir: &Path, identity: &Identity) -> Peek {
    let folder = folder(state_dir, identity);
    let path = folder.join(NAME);
    let text = match fs::read(&path) {
        Ok(text) => text,
        Err(error) if error.kind() == std::io::ErrorKind::PermissionDenied => return Peek::Closed { path },
        Err(_) => return Peek::Nothing,
    };
    match serde_json::from_slice::<Whose>(&text) {
        Ok(whose) if whose.identity == *identity => {}
        Ok(_) => return Peek::Nothing,
        Err(_) => return Peek::Damaged { path },
    }
    let Ok(lock) = File::open(folder.join(LOCK)) else { return Peek::CutOff };
    match Flock::lock(lock, FlockArg::LockSharedNonblock) {
        Err((_, Errno::EWOULDBLOCK)) => Peek::UnderWay,
        // It may have ended since the file was read.
        _ if path.exists() => Peek::CutOff,
        _ => Peek::Nothing,
    }
}
