//! A folder of its own per test, gone with it. Shared by the test programs that need one.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};

pub(crate) struct Folder(PathBuf);

impl Folder {
    pub(crate) fn new() -> Self {
        Self::under(&std::env::temp_dir())
    }

    /// In another place than where the system has what is temporary.
    pub(crate) fn under(place: &Path) -> Self {
        static COUNT: AtomicUsize = AtomicUsize::new(0);
        let count = COUNT.fetch_add(1, Ordering::Relaxed);
        let path = place.join(format!("berth-test-{}-{count}", std::process::id()));
        // A process of this number may have been killed before it could clean up.
        fs::remove_dir_all(&path).ok();
        fs::create_dir_all(&path).expect("a folder");
        Self(path)
    }

    pub(crate) fn path(&self) -> &Path {
        &self.0
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        fs::remove_dir_all(&self.0).ok();
    }
}
