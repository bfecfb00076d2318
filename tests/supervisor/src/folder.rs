//! The folder of a test's programs, and the promise that its logs outlive a test that failed.

use std::fs;
use std::io;
use std::os::unix::fs::DirBuilderExt;
use std::panic;
use std::path::{Path, PathBuf};
use std::process;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Mutex, Once, PoisonError};

/// A folder of its own, for this user alone: there is a token in it.
pub fn new(what: &str) -> io::Result<PathBuf> {
    static COUNT: AtomicU32 = AtomicU32::new(0);
    let count = COUNT.fetch_add(1, Ordering::Relaxed);
    let folder = std::env::temp_dir().join(format!("berth-{what}-{}-{count}", process::id()));
    // What an earlier process of this number kept.
    match fs::remove_dir_all(&folder) {
        Err(wrong) if wrong.kind() != io::ErrorKind::NotFound => return Err(wrong),
        _ => fs::DirBuilder::new().mode(0o700).create(&folder)?,
    }
    Ok(folder)
}

/// From now on a panic anywhere in this process marks the folder as one to keep, and says where the logs are.
pub fn keep_on_panic(folder: &Path) {
    static FOLDERS: Mutex<Vec<PathBuf>> = Mutex::new(Vec::new());
    static HOOK: Once = Once::new();
    FOLDERS.lock().unwrap_or_else(PoisonError::into_inner).push(folder.to_owned());
    HOOK.call_once(|| {
        let before = panic::take_hook();
        panic::set_hook(Box::new(move |info| {
            before(info);
            for folder in FOLDERS.lock().unwrap_or_else(PoisonError::into_inner).iter() {
                // A folder that is gone belonged to programs that were stopped before: nothing to keep.
                if fs::write(folder.join("keep"), "").is_ok() {
                    eprintln!("logs of the test's programs are kept in {}", folder.display());
                }
            }
        }));
    });
}
