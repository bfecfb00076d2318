//! Files of a PKI: written whole or not at all, keys for their owner only.

use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{self, ErrorKind, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};

use super::PkiError;

/// Keys, and what has a key in it.
pub(super) const PRIVATE: u32 = 0o600;
pub(super) const PUBLIC: u32 = 0o644;

/// What becomes of files that are there already.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Keep {
    /// They stay, and nothing is written.
    What,
    /// They are replaced.
    Nothing,
}

/// The text of a file.
pub(crate) fn read(path: &Path) -> Result<String, PkiError> {
    fs::read_to_string(path).map_err(|source| PkiError::File { path: path.to_owned(), done: "read", source })
}

/// Writes each file; where one must stay, none.
pub(super) fn write(files: &[(PathBuf, String, u32)], keep: Keep) -> Result<Vec<PathBuf>, PkiError> {
    if keep == Keep::What
        && let Some((path, ..)) = files.iter().find(|(path, ..)| path.symlink_metadata().is_ok())
    {
        return Err(PkiError::Exists { path: path.clone() });
    }
    for (path, text, mode) in files {
        let failed = |source| PkiError::File { path: path.clone(), done: "written", source };
        replace(path, text.as_bytes(), *mode).map_err(failed)?;
    }
    Ok(files.iter().map(|(path, ..)| path.clone()).collect())
}

/// Puts a file in place in one step: a reader sees the old one or the new one, and a crash leaves one of them. Folders
/// on the way are made for their owner only.
pub(crate) fn replace(path: &Path, text: &[u8], mode: u32) -> io::Result<()> {
    let folder = match path.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => folder,
        _ => Path::new("."),
    };
    DirBuilder::new().recursive(true).mode(0o700).create(folder)?;
    let name = path.file_name().ok_or(ErrorKind::InvalidFilename)?.to_string_lossy();
    let beside = folder.join(format!(".{name}.{}", std::process::id()));
    let _ = fs::remove_file(&beside);
    let written = fill(&beside, text, mode).and_then(|()| fs::rename(&beside, path));
    if written.is_err() {
        let _ = fs::remove_file(&beside);
    }
    written?;
    File::open(folder)?.sync_all()
}

fn fill(path: &Path, text: &[u8], mode: u32) -> io::Result<()> {
    let mut file = OpenOptions::new().write(true).create_new(true).mode(mode).open(path)?;
    // Whatever the umask says: a certificate is for everybody.
    file.set_permissions(fs::Permissions::from_mode(mode))?;
    file.write_all(text)?;
    file.sync_all()
}
