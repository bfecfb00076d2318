//! Copies of a store, and the way back.
//!
//! A backup is a store's file with every object and no log, made whole or not at all (`file`). Restoring is for a store that
//! nobody has open. Must never put in its place what is not a backup, nor take away what it replaces.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use crds::names::GROUP;
use crds::names::annotation::{HOLD, RESTORED};
use serde_json::{Value, json};

use super::disk::{Disk, DiskError, FILE};
use super::file::{self, Restoring};
use super::lock::{Lock, LockError};
use super::object::{Object, What};
use super::state::State;
use crate::embedded::resource::Table;

/// A restored store counts from here on above whatever it can have counted to since the backup, where the store that it
/// replaces can't be asked: so a watcher of before is told to start again, and never misses what it hasn't seen.
const LEAP: u64 = 1_000_000;

/// What can go wrong with copies.
#[derive(Debug, thiserror::Error)]
pub enum BackupError {
    #[error(transparent)]
    Lock(#[from] LockError),
    #[error(transparent)]
    Disk(#[from] DiskError),
    #[error("{} is there already; name another file", .path.display())]
    Exists { path: PathBuf },
    #[error("there is no backup {}", .path.display())]
    Missing { path: PathBuf },
    #[error("{} has nothing in it: no server that ever ran has such a backup", .path.display())]
    Empty { path: PathBuf },
    #[error(
        "the store {} is there and can't be read, so it can't be told how far its revisions went; --force replaces it all the same, and keeps it aside",
        .path.display()
    )]
    Unreadable { path: PathBuf, source: DiskError },
    #[error("put {} in its place", .path.display())]
    Place { path: PathBuf, source: std::io::Error },
}

/// What became of a restore.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Restored {
    pub copied: Copied,
    /// Where the store is that was replaced, if there was one.
    pub kept: Option<PathBuf>,
}

/// What a backup or a restored store holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Copied {
    pub objects: u64,
    pub revision: u64,
    /// Ledgers that were put on hold, pools and slices; none by a backup.
    pub held: Held,
}

/// How many ledgers are on hold.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Held {
    pub pools: u64,
    pub slices: u64,
}

/// Copies these objects to a new file.
pub(super) fn write(objects: &[Arc<Object>], revision: u64, to: &Path) -> Result<Copied, BackupError> {
    if to.exists() {
        return Err(BackupError::Exists { path: to.to_owned() });
    }
    file::make(to, objects, revision)?;
    Ok(Copied { objects: objects.len() as u64, revision, held: Held::default() })
}

/// Copies the store in a directory that no server has open.
pub fn backup(dir: &Path, to: &Path) -> Result<Copied, BackupError> {
    let from = dir.join(FILE);
    if !from.exists() {
        return Err(BackupError::Missing { path: from });
    }
    let _lock = Lock::take(dir)?;
    let state = Disk::open(dir)?.load()?;
    let objects: Vec<Arc<Object>> = state.objects().cloned().collect();
    write(&objects, state.revision, to)
}

/// Replaces the store in a directory with a backup. Its revisions go on above those of both. What was there before stays
/// beside it; where that can't be read, only with `force`.
///
/// The store goes back in time, and hosts don't: they may hold addresses that the backup knows nothing of. So every pool is
/// on hold from its first moment, in the same write: rule 6 of the claim protocol must not hang on somebody's memory.
/// So is every slice: it is a ledger of its own, which the pool's hold says nothing of. A slice that was made since is
/// covered by its pool's hold: while that lasts nobody may make one.
pub fn restore(from: &Path, dir: &Path, force: bool) -> Result<Restored, BackupError> {
    if !from.exists() {
        return Err(BackupError::Missing { path: from.to_owned() });
    }
    let _lock = Lock::take(dir)?;
    let path = dir.join(FILE);
    let failed = |source| BackupError::Place { path: path.clone(), source };
    let state = read(from, dir)?;
    let there = path.try_exists().map_err(failed)?;
    let before = match Disk::open_file(&path).and_then(|mut disk| disk.revision()) {
        _ if !there => 0,
        Ok(revision) => revision,
        Err(_) if force => 0,
        Err(source) => return Err(BackupError::Unreadable { path, source }),
    };
    let counted = state.objects().count() as u64;
    let revision = state.revision.max(before).checked_add(LEAP).filter(|from| *from < u64::MAX - counted);
    let mut revision = revision.ok_or_else(|| DiskError::Foreign {
        path: from.to_owned(),
        why: "its revision leaves none to come".to_owned(),
    })?;
    let mut held = Held::default();
    let (pools, slices) = (Table::of(GROUP, "nodeippools"), Table::of(GROUP, "nodeipslices"));
    let hold = |object: &Arc<Object>| {
        let table = Some(object.key.table);
        if table == pools {
            held.pools += 1;
        } else if table == slices {
            held.slices += 1;
        } else {
            return object.clone();
        }
        revision += 1;
        Arc::new(on_hold(object, revision))
    };
    let objects: Vec<Arc<Object>> = state.objects().map(hold).collect();
    let kept = if there { Some(file::keep(&path).map_err(failed)?) } else { None };
    if let Err(error) = file::make(&path, &objects, revision) {
        // The store is where it was: its second name is of no use.
        kept.map(std::fs::remove_file);
        return Err(error.into());
    }
    Ok(Restored { copied: Copied { objects: counted, revision, held }, kept })
}

/// What a backup holds: of a copy, since opening may repair, which writes, and the backup itself stays as it is.
fn read(from: &Path, dir: &Path) -> Result<State, BackupError> {
    let told = |error| named(error, from);
    file::check_length(from)?;
    let copy =
        Restoring::of(from, dir).map_err(|source| BackupError::Place { path: dir.join(FILE), source })?;
    let mut disk = Disk::open_file(copy.path()).map_err(told)?;
    disk.check().map_err(told)?;
    let state = disk.load().map_err(told)?;
    if state.objects().next().is_none() {
        return Err(BackupError::Empty { path: from.to_owned() });
    }
    Ok(state)
}

/// A ledger that gives nothing until hosts have said what they hold.
fn on_hold(ledger: &Object, revision: u64) -> Object {
    let mut value = ledger.value();
    let metadata = &mut value["metadata"];
    if !metadata["annotations"].is_object() {
        metadata["annotations"] = json!({});
    }
    if metadata["annotations"].get(HOLD).is_none() {
        metadata["annotations"][HOLD] = RESTORED.into();
    }
    metadata["resourceVersion"] = revision.to_string().into();
    // A hold that was under way when the backup was made says nothing of who has spoken since: it is counted anew.
    if let Some(status) = value.get_mut("status").and_then(Value::as_object_mut) {
        status.remove("hold");
    }
    Object::new(ledger.key.clone(), revision, What::Modified, &value)
}

/// The error of a copy, told about the file that was copied.
fn named(error: DiskError, from: &Path) -> DiskError {
    let path = from.to_owned();
    match error {
        DiskError::Open { source, .. } => DiskError::Open { path, source },
        DiskError::Make { source, .. } => DiskError::Make { path, source },
        DiskError::Foreign { why, .. } => DiskError::Foreign { path, why },
        DiskError::Newer { found, .. } => DiskError::Newer { path, found },
        DiskError::Read { source, .. } => DiskError::Read { path, source },
        DiskError::Write { source, .. } => DiskError::Write { path, source },
    }
}
