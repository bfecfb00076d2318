//! The unix socket: for its owner only, and a dead server's is replaced.

use std::fs;
use std::io::{self, ErrorKind};
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};

use nix::sys::stat::{Mode, umask};
use tokio::net::UnixListener;

use super::ListenError;

/// A socket's file; gone when this is dropped, unless somebody has put another there.
pub(super) struct Socket {
    path: PathBuf,
    inode: u64,
}

impl Socket {
    pub(super) fn path(&self) -> &Path {
        &self.path
    }
}

impl Drop for Socket {
    fn drop(&mut self) {
        if fs::symlink_metadata(&self.path).is_ok_and(|meta| meta.ino() == self.inode) {
            let _ = fs::remove_file(&self.path);
        }
    }
}

pub(super) fn bind(path: &Path) -> Result<(UnixListener, Socket), ListenError> {
    let failed = |source| ListenError::Bind { address: format!("unix:{}", path.display()), source };
    clear(path)?;
    if let Some(folder) = path.parent() {
        fs::create_dir_all(folder).map_err(failed)?;
    }
    // The mode must hold from the first moment. The mask is the whole process's: for that moment other threads make
    // files that are stricter than meant, never laxer.
    let before = umask(Mode::from_bits_truncate(0o177));
    let bound = UnixListener::bind(path);
    umask(before);
    let listener = bound.map_err(failed)?;
    let inode = fs::symlink_metadata(path).map_err(failed)?.ino();
    Ok((listener, Socket { path: path.to_owned(), inode }))
}

/// Makes room: what a dead server left goes, a live one's stays.
fn clear(path: &Path) -> Result<(), ListenError> {
    let failed = |source| ListenError::Bind { address: format!("unix:{}", path.display()), source };
    match fs::symlink_metadata(path) {
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(()),
        Err(error) => return Err(failed(error)),
        Ok(meta) if !meta.file_type().is_socket() => {
            return Err(ListenError::NotASocket { path: path.to_owned() });
        }
        Ok(_) => {}
    }
    match UnixStream::connect(path) {
        Ok(_) => Err(ListenError::Live { path: path.to_owned() }),
        Err(error) if error.kind() == ErrorKind::ConnectionRefused => remove(path).map_err(failed),
        Err(error) => Err(failed(error)),
    }
}

fn remove(path: &Path) -> io::Result<()> {
    match fs::remove_file(path) {
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(()),
        other => other,
    }
}
