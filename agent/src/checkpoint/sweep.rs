//! Folders of other namespaces in which nothing is under way: namespaces come and go, and whether one is gone can't be told
//! from its number.
//!
//! Called by whoever has locked its own. Must never take away a folder that is locked or has anything in it but the lock: a
//! checkpoint is all there is to undo a change with. Whoever has opened a lock before it went finds that out ([`is_at`]) and
//! opens the one in its place. What can't be removed stays: it is in nobody's way.
//!
//! Cost: one look at the state directory, five calls for each folder that goes.

use std::fs::{self, File};
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use nix::fcntl::{Flock, FlockArg};

use super::LOCK;

/// Removes every folder beside `own` that holds a lock which nobody has, and nothing else.
pub(super) fn sweep(state_dir: &Path, own: &Path) {
    for entry in fs::read_dir(state_dir).into_iter().flatten().flatten() {
        let path = entry.path();
        if path != own && entry.file_name().to_string_lossy().starts_with("netns-") {
            remove(&path);
        }
    }
}

fn remove(folder: &Path) -> Option<()> {
    let path = folder.join(LOCK);
    let lock = Flock::lock(File::open(&path).ok()?, FlockArg::LockExclusiveNonblock).ok()?;
    let only_lock = || {
        fs::read_dir(folder).ok()?.try_fold(true, |all, entry| Some(all && entry.ok()?.file_name() == LOCK))
    };
    if is_at(&lock, &path) && only_lock()? {
        fs::remove_file(&path).ok()?;
        fs::remove_dir(folder).ok()?;
    }
    Some(())
}

/// Whether this file is the one that is found there.
pub(super) fn is_at(file: &File, path: &Path) -> bool {
    let id = |data: fs::Metadata| (data.dev(), data.ino());
    file.metadata().ok().map(id).is_some_and(|own| fs::metadata(path).ok().map(id) == Some(own))
}
