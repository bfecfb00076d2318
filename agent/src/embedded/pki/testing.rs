//! What tests of sockets and certificates share.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};

/// A folder of its own per test, gone with it.
pub(crate) struct Folder(PathBuf);

impl Folder {
    pub(crate) fn new() -> Self {
        static COUNT: AtomicUsize = AtomicUsize::new(0);
        let count = COUNT.fetch_add(1, Ordering::Relaxed);
        let path = std::env::temp_dir().join(format!("berth-serve-{}-{count}", std::process::id()));
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

impl super::Authority {
    /// A certificate that is signed, and nobody's.
    pub(crate) fn nobody(&self, stem: &Path, term: super::Term) -> Result<(), super::PkiError> {
        let mut params = super::params("somebody", Some("else"), term.begins(), term.ends());
        params.extended_key_usages = vec![rcgen::ExtendedKeyUsagePurpose::ClientAuth];
        let super::Issued { certificate, key } = self.sign(params)?;
        let wanted = [
            (stem.with_extension("key"), key, super::PRIVATE),
            (stem.with_extension("crt"), certificate, super::PUBLIC),
        ];
        super::files::write(&wanted, super::Keep::What).map(|_| ())
    }
}
