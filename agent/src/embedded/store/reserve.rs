//! Room for deleting on a full disk: a file of zeros that is given up when the disk is full, and made again when there
//! is room.
//!
//! The writer calls it. While it is given up, only writes that delete are let through: so the last room goes to
//! what makes room. Must never be the reason that a server doesn't start.

use std::fs::File;
use std::io::Write;
use std::path::{Path, PathBuf};

/// A delete copies the pages on its way to the root, of three tables, and logs the object: 1.5 MiB for the largest, some
/// tens of KiB for any other. Opening the store anew needs the like once more.
const SIZE: usize = 4 << 20;

/// The reserve of a directory.
#[derive(Debug)]
pub(super) struct Reserve {
    path: PathBuf,
    held: bool,
}

impl Reserve {
    /// Makes the reserve, if there is room for it.
    pub(super) fn of(dir: &Path) -> Self {
        let mut reserve = Self { path: dir.join("reserve"), held: false };
        reserve.fill();
        reserve
    }

    /// Whether there is room; tries to make the reserve again where it was given up.
    pub(super) fn fill(&mut self) -> bool {
        if !self.held {
            self.held = self.make().is_ok();
            if !self.held {
                let _ = std::fs::remove_file(&self.path);
            }
        }
        self.held
    }

    fn make(&self) -> std::io::Result<()> {
        let right = |meta: std::fs::Metadata| meta.len() == SIZE as u64;
        if std::fs::metadata(&self.path).is_ok_and(right) {
            return Ok(());
        }
        // Asked first: filling the disk to the brim in order to see that it is full would take others' last room.
        let free = nix::sys::statvfs::statvfs(self.path.parent().unwrap_or(&self.path))?;
        if free.blocks_available().saturating_mul(free.fragment_size()) < 2 * SIZE as u64 {
            return Err(std::io::ErrorKind::StorageFull.into());
        }
        let mut file = File::create(&self.path)?;
        let zeros = vec![0_u8; 64 << 10];
        for _ in 0..SIZE / zeros.len() {
            file.write_all(&zeros)?;
        }
        file.sync_all()
    }

    /// Gives the room up.
    pub(super) fn give(&mut self) {
        let _ = std::fs::remove_file(&self.path);
        self.held = false;
    }
}
