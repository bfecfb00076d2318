//! Copies of a store, and the way back.
//!
//! A backup is a store's file with every object and no log. It is made under another name and renamed when it is whole,
//! so a file of the name given is a whole one. Restoring is for a store that nobody has open.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crds::names::GROUP;
use crds::names::annotation::HOLD;
use serde_json::json;

use super::disk::{Disk, DiskError, FILE};
use super::lock::{Lock, LockError};
use super::object::{Object, What};
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
    #[error("put {} in its place", .path.display())]
    Place { path: PathBuf, source: std::io::Error },
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
    make(objects, revision, to)?;
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

/// Replaces the store in a directory with a backup. Its revisions go on above those of both.
///
/// The store goes back in time, and hosts don't: they may hold addresses that the backup knows nothing of. So every pool is
/// on hold from its first moment, in the same write: rule 6 of the claim protocol must not hang on somebody's memory.
/// So is every slice: it is a ledger of its own, which the pool's hold says nothing of. A slice that was made since is
/// covered by its pool's hold: while that lasts nobody may make one.
pub fn restore(from: &Path, dir: &Path) -> Result<Copied, BackupError> {
    if !from.exists() {
        return Err(BackupError::Missing { path: from.to_owned() });
    }
    let _lock = Lock::take(dir)?;
    // Opening may repair, which writes: the backup itself stays as it is.
    let path = dir.join(FILE);
    let copy = path.with_extension("restoring");
    let failed = |source| BackupError::Place { path: copy.clone(), source };
    std::fs::copy(from, &copy).map_err(failed)?;
    let read = Disk::open_file(&copy).and_then(|mut disk| disk.load());
    let state = read.map_err(|error| {
        let _ = std::fs::remove_file(&copy);
        named(error, from)
    })?;
    let before = if path.exists() {
        Disk::open(dir).and_then(|mut disk| disk.revision()).unwrap_or_default()
    } else {
        0
    };
    let mut revision = state.revision.max(before) + LEAP;
    let mut held = Held::default();
    let (pools, slices) = (Table::of(GROUP, "nodeippools"), Table::of(GROUP, "nodeipslices"));
    let keep = |object: &Arc<Object>| {
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
    let objects: Vec<Arc<Object>> = state.objects().map(keep).collect();
    std::fs::remove_file(&copy).map_err(failed)?;
    make(&objects, revision, &path)?;
    Ok(Copied { objects: objects.len() as u64, revision, held })
}

/// A ledger that gives nothing until hosts have said what they hold.
fn on_hold(ledger: &Object, revision: u64) -> Object {
    let mut value = ledger.value();
    let metadata = &mut value["metadata"];
    if !metadata["annotations"].is_object() {
        metadata["annotations"] = json!({});
    }
    if metadata["annotations"].get(HOLD).is_none() {
        metadata["annotations"][HOLD] = "restored from a backup".into();
    }
    metadata["resourceVersion"] = revision.to_string().into();
    Object::new(ledger.key.clone(), revision, What::Modified, &value)
}

/// The error of a copy, told about the file that was copied.
fn named(error: DiskError, from: &Path) -> DiskError {
    let path = from.to_owned();
    match error {
        DiskError::Open { source, .. } => DiskError::Open { path, source },
        DiskError::Foreign { why, .. } => DiskError::Foreign { path, why },
        DiskError::Newer { found, .. } => DiskError::Newer { path, found },
        DiskError::Read { source, .. } => DiskError::Read { path, source },
        DiskError::Write { source, .. } => DiskError::Write { path, source },
    }
}

/// Makes a whole store's file, beside its place and then in it.
fn make(objects: &[Arc<Object>], revision: u64, to: &Path) -> Result<(), BackupError> {
    let mut partial = to.as_os_str().to_owned();
    partial.push(".partial");
    let partial = PathBuf::from(partial);
    let failed = |source| BackupError::Place { path: to.to_owned(), source };
    match std::fs::remove_file(&partial) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => return Err(failed(error)),
        _ => {}
    }
    let made = Disk::open_file(&partial).and_then(|mut disk| {
        disk.fill(objects, revision)?;
        disk.count()
    });
    if let Err(error) = made {
        let _ = std::fs::remove_file(&partial);
        return Err(error.into());
    }
    File::open(&partial).and_then(|file| file.sync_all()).map_err(failed)?;
    std::fs::rename(&partial, to).map_err(failed)?;
    let folder = to.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    File::open(folder).and_then(|folder| folder.sync_all()).map_err(failed)
}
