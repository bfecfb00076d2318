//! Files that change whole or not at all.

use std::fs::{self, File, OpenOptions, Permissions};
use std::io::{self, Read, Write};
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
use std::path::{Component, Path, PathBuf};

use nix::errno::Errno;

/// Puts `text` in place of what is there; a reader sees the old or the new, never half of it, also after a crash.
/// A link is followed: what it leads to is replaced. The mode stays; a new file is for all to read.
pub(crate) fn replace(path: &Path, text: impl AsRef<[u8]>) -> io::Result<()> {
    replace_with_mode(path, text, 0o644)
}

pub(crate) fn replace_with_mode(path: &Path, text: impl AsRef<[u8]>, mode: u32) -> io::Result<()> {
    let text = text.as_ref();
    let path = followed(path);
    let mode = fs::metadata(&path).map_or(mode, |known| known.permissions().mode());
    match put(&path, text, mode) {
        // A single file mounted into a container can't be replaced, only written.
        Err(error) if error.raw_os_error() == Some(Errno::EBUSY as i32) => {
            let mut file = OpenOptions::new().write(true).truncate(true).open(&path)?;
            file.write_all(text)?;
            file.sync_all()
        }
        done => done,
    }
}

/// The same of what is read, however long it is, and with this mode in any case. A link is replaced itself.
pub(crate) fn put(path: &Path, from: impl Read, mode: u32) -> io::Result<()> {
    let folder = path.parent().unwrap_or(Path::new("/"));
    make_folders(folder)?;
    let fresh = beside(path);
    match write(&fresh, from, mode).and_then(|()| fs::rename(&fresh, path)) {
        Ok(()) => File::open(folder)?.sync_all(),
        Err(error) => {
            fs::remove_file(&fresh).ok();
            Err(error)
        }
    }
}

/// Folders for all to read, whatever this process's umask is: what is in them is for other users' programs too.
pub(crate) fn make_folders(folder: &Path) -> io::Result<()> {
    if folder.is_dir() {
        return Ok(());
    }
    if let Some(above) = folder.parent() {
        make_folders(above)?;
    }
    match fs::create_dir(folder) {
        Ok(()) => fs::set_permissions(folder, Permissions::from_mode(0o755)),
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(()),
        Err(error) => Err(error),
    }
}

/// Nothing in it is no reason to have it: where there was none, there is none again.
pub(crate) fn replace_or_remove(path: &Path, text: &[u8]) -> io::Result<()> {
    if text.is_empty() { remove(path) } else { replace(path, text) }
}

/// Gone, or never there.
pub(crate) fn remove(path: &Path) -> io::Result<()> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}

/// Nothing, where there is no such file.
pub(crate) fn read(path: &Path) -> io::Result<Vec<u8>> {
    read_if_there(path).map(Option::unwrap_or_default)
}

/// The same, told from a file in which there is nothing. Whatever bytes are in it: what people write by hand need not be
/// text.
pub(crate) fn read_if_there(path: &Path) -> io::Result<Option<Vec<u8>>> {
    match fs::read(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        other => other.map(Some),
    }
}

/// Where a link leads, also where there is nothing yet.
pub(crate) fn followed(path: &Path) -> PathBuf {
    /// As many as the kernel follows, and then it is a ring.
    const MOST: usize = 40;
    let mut path = path.to_owned();
    for _ in 0..MOST {
        let Ok(next) = fs::read_link(&path) else { break };
        path = path.parent().map_or(next.clone(), |folder| folder.join(next));
    }
    // Without the `..` of relative links.
    let folder = path.parent().and_then(|folder| fs::canonicalize(folder).ok());
    match (folder, path.file_name()) {
        (Some(folder), Some(name)) => folder.join(name),
        _ => path,
    }
}

/// The same where `/` is `root`, as for whoever lives below it: absolute links lead below it, and nothing leads out. Only words
/// are looked at, since what a link leads to need not be mounted.
pub(crate) fn followed_below(root: &Path, path: &Path) -> PathBuf {
    if root == Path::new("/") {
        return followed(path);
    }
    const MOST: usize = 40;
    let mut path = path.to_owned();
    for _ in 0..MOST {
        let Ok(next) = fs::read_link(&path) else { break };
        let folder = path.strip_prefix(root).ok().and_then(Path::parent).unwrap_or(Path::new(""));
        let mut leads = root.to_owned();
        for part in Path::new("/").join(folder).join(next).components() {
            match part {
                Component::Normal(name) => leads.push(name),
                Component::ParentDir if leads != root => drop(leads.pop()),
                _ => {}
            }
        }
        path = leads;
    }
    path
}

fn beside(path: &Path) -> PathBuf {
    let mut name = path.file_name().unwrap_or_default().to_owned();
    name.push(format!(".berth-{}", std::process::id()));
    path.with_file_name(name)
}

fn write(path: &Path, mut from: impl Read, mode: u32) -> io::Result<()> {
    let mut file = OpenOptions::new().write(true).create(true).truncate(true).mode(mode).open(path)?;
    file.set_permissions(Permissions::from_mode(mode))?;
    io::copy(&mut from, &mut file)?;
    file.sync_all()
}
