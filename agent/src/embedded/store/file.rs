//! The store's file, as a file: made whole or not at all, known for cut off, and what whoever was killed left beside it.
//!
//! A new file is made under another name, synced, and renamed: so one of the right name is whole, also after a disk that
//! filled up or a kill in the middle. Called by `disk` and `backup`, with the directory's lock held or on a file of their own.

use std::fs::{self, File, OpenOptions};
use std::io::{self, ErrorKind, Read};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::disk::{Disk, DiskError, FILE};
use super::object::Object;

/// The end of a name under which a file is being made.
const PARTIAL: &str = ".partial";
/// A backup that is being read, in the directory that it is restored to.
const RESTORING: &str = "store.restoring";
/// How the name of a copy begins that a server makes for somebody who asked for one.
const COPY: &str = "backup.";

/// redb's file begins with this, and a header of so many bytes in all.
const MAGIC: &[u8] = b"redb\x1a\x0a\xa9\x0d\x0a";
const HEADER: usize = 320;

/// Makes a file of these objects, readable by its owner only.
pub(super) fn make(to: &Path, objects: &[Arc<Object>], revision: u64) -> Result<(), DiskError> {
    let partial = named(to, PARTIAL);
    let failed = |error: io::Error| DiskError::Make { path: to.to_owned(), source: Box::new(error.into()) };
    let made = fill(&partial, objects, revision).map_err(|error| match error {
        DiskError::Write { source, .. } | DiskError::Open { source, .. } => {
            DiskError::Make { path: to.to_owned(), source }
        }
        other => other,
    });
    let placed = made.and_then(|()| {
        fs::rename(&partial, to).map_err(failed)?;
        sync_folder(to).map_err(failed)
    });
    if placed.is_err() {
        let _ = fs::remove_file(&partial);
    }
    placed
}

fn fill(partial: &Path, objects: &[Arc<Object>], revision: u64) -> Result<(), DiskError> {
    let failed =
        |error: io::Error| DiskError::Open { path: partial.to_owned(), source: Box::new(error.into()) };
    gone(partial).map_err(failed)?;
    let mut new = OpenOptions::new();
    let file = new.read(true).write(true).create_new(true).mode(0o600).open(partial).map_err(failed)?;
    Disk::create(partial, file)?.fill(objects, revision)?;
    File::open(partial).and_then(|file| file.sync_all()).map_err(failed)
}

/// Whether a file is as long as its own beginning says. redb takes that for granted and panics where it isn't so.
pub(super) fn check_length(path: &Path) -> Result<(), DiskError> {
    let failed = |error: io::Error| DiskError::Open { path: path.to_owned(), source: Box::new(error.into()) };
    let mut head = Vec::new();
    let file = File::open(path).map_err(failed)?;
    let length = file.metadata().map_err(failed)?.len();
    file.take(HEADER as u64).read_to_end(&mut head).map_err(failed)?;
    let foreign = |why: String| Err(DiskError::Foreign { path: path.to_owned(), why });
    if head.is_empty() {
        return foreign("it is empty".to_owned());
    }
    if !head.starts_with(MAGIC) {
        return foreign("it begins as something else".to_owned());
    }
    match whole_length(&head) {
        Some(whole) if length >= whole => Ok(()),
        Some(whole) => foreign(format!("it is cut off: {length} bytes are left of {whole}")),
        None => foreign(format!("it is cut off: {length} bytes are left")),
    }
}

/// What the header of redb's format 3 says of the file's length: a page of its own, then regions of pages, the last of
/// them shorter.
fn whole_length(head: &[u8]) -> Option<u64> {
    let number = |at: usize| -> Option<u64> {
        let bytes = head.get(at..at + 4)?.try_into().ok()?;
        Some(u64::from(u32::from_le_bytes(bytes)))
    };
    head.get(..HEADER)?;
    let [page, head_pages, full_pages, full, last_pages] =
        [number(12)?, number(16)?, number(20)?, number(24)?, number(28)?];
    let region = |pages: u64| (head_pages + pages).checked_mul(page);
    let last = if last_pages > 0 { region(last_pages)? } else { 0 };
    region(full_pages)?.checked_mul(full)?.checked_add(last)?.checked_add(page)
}

/// Takes away what processes that were killed left in a store's directory: files that nobody will ever finish.
pub(super) fn tidy(dir: &Path) {
    let number = |part: &str| !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit());
    for entry in fs::read_dir(dir).into_iter().flatten().flatten() {
        let name = entry.file_name();
        let name = name.to_string_lossy();
        let whole = name.strip_suffix(PARTIAL).unwrap_or(&name);
        let copy = whole.strip_prefix(COPY).and_then(|rest| rest.split_once('.'));
        let left = name == RESTORING
            || (whole == FILE && whole != name)
            || copy.is_some_and(|(process, count)| number(process) && number(count));
        if left {
            let _ = fs::remove_file(entry.path());
        }
    }
}

/// The name of a copy that a server makes for somebody who asked for one.
pub fn copy_name(count: usize) -> String {
    format!("{COPY}{}.{count}", std::process::id())
}

/// A copy of a backup in a store's directory, gone with this.
pub(super) struct Restoring(PathBuf);

impl Restoring {
    pub(super) fn of(backup: &Path, dir: &Path) -> io::Result<Self> {
        let copy = Self(dir.join(RESTORING));
        gone(&copy.0)?;
        fs::copy(backup, &copy.0)?;
        Ok(copy)
    }

    pub(super) fn path(&self) -> &Path {
        &self.0
    }
}

impl Drop for Restoring {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.0);
    }
}

/// Keeps a file under another name too, one that nothing has: what is put in its place doesn't take it away.
pub(super) fn keep(path: &Path) -> io::Result<PathBuf> {
    let mut number = 1;
    loop {
        let end =
            if number == 1 { ".before-restore".to_owned() } else { format!(".before-restore-{number}") };
        let kept = named(path, &end);
        if !kept.try_exists()? {
            // Not every file system has a second name for a file.
            fs::hard_link(path, &kept).or_else(|_| fs::copy(path, &kept).map(|_| ()))?;
            return Ok(kept);
        }
        number += 1;
    }
}

/// Puts the names in a file's folder on disk: what is acknowledged must be found again.
pub(super) fn sync_folder(file: &Path) -> io::Result<()> {
    let folder = file.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    File::open(folder)?.sync_all()
}

/// Removes a file, if it is there.
fn gone(path: &Path) -> io::Result<()> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}

fn named(path: &Path, end: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(end);
    name.into()
}
