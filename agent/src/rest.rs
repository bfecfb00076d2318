//! At rest an agent gives back what of its own program it has mapped and doesn't need: nearly all of it, for what starts,
//! claims and applies is not what waits.
//!
//! Pages of a program stay mapped until memory is short, though nobody reads them again, and count as this process's on
//! every host for as long. Unmapped, they stay in the page cache, where the kernel finds them at once if they are wanted and
//! lets go of them first if memory is.
//!
//! Cost: one system call per rest; the next work finds its pages in the cache, sixteen at a time: a fraction of a
//! millisecond. With `unsafe`, since no safe wrapper can know what is mapped where.

#![allow(unsafe_code)]

#[cfg(test)]
mod tests;

use std::ffi::c_void;
use std::future::Future;
use std::ops::Range;
use std::ptr::NonNull;
use std::time::Duration;

use nix::sys::mman::{MmapAdvise, madvise};

/// Whoever has had nothing to do for this long will have nothing to do for a while: far longer than the pauses of a
/// rollout, or between two tries.
const AFTER: Duration = Duration::from_secs(10);

/// Waits for something to happen, at most so long; and rests meanwhile.
pub(crate) async fn until(wait: Duration, happens: impl Future<Output = ()>) {
    rest_after(AFTER, wait, happens).await;
}

async fn rest_after(after: Duration, wait: Duration, happens: impl Future<Output = ()>) {
    let waited = async {
        let awake = after.min(wait);
        tokio::time::sleep(awake).await;
        if awake < wait {
            give_back();
            tokio::time::sleep(wait - awake).await;
        }
    };
    tokio::select! {
        () = waited => {}
        () = happens => {}
    }
}

/// Unmaps the program's text. Where that can't be, it stays: nothing depends on it.
fn give_back() {
    let Ok(program) = std::fs::read_link("/proc/self/exe") else { return };
    let Ok(maps) = std::fs::read_to_string("/proc/self/maps") else { return };
    for range in maps.lines().filter_map(|line| text_of(line, &program.to_string_lossy())) {
        let Some(first) = NonNull::new(range.start as *mut c_void) else { continue };
        // SAFETY: the range is a private mapping of this program's own file, without the right to write, so that no page of
        // it can be other than the file's; what is touched next is read from there again. No pointer becomes invalid.
        let _ = unsafe { madvise(first, range.end - range.start, MmapAdvise::MADV_DONTNEED) };
    }
}

/// Where a line of `/proc/self/maps` says that code of this file is: readable, executable, never writable, private. Not what
/// is only readable: that may be data that the loader filled in before it took the right away.
fn text_of(line: &str, program: &str) -> Option<Range<usize>> {
    let (place, rest) = line.split_once(' ')?;
    let rights = rest.get(..4)?;
    let path = rest.splitn(5, ' ').nth(4)?.trim_start();
    if rights != "r-xp" || path != program {
        return None;
    }
    let (first, last) = place.split_once('-')?;
    Some(usize::from_str_radix(first, 16).ok()?..usize::from_str_radix(last, 16).ok()?)
}
