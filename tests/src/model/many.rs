//! Many worlds side by side: each search has one thread, so that a second core takes the next world.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use super::check::{Bounds, Report, check};
use super::config::Config;

/// Checks every world, as many at a time as told, and tells what came of each. `seen` says whether to go on.
pub fn check_all(
    worlds: &[(Config, Bounds)],
    threads: usize,
    seen: impl Fn(&Config, &Report, Duration) -> bool + Sync,
) {
    let next = AtomicUsize::new(0);
    let work = || {
        while let Some((config, bounds)) = worlds.get(next.fetch_add(1, Ordering::Relaxed)) {
            let started = Instant::now();
            let report = check(config, bounds);
            if !seen(config, &report, started.elapsed()) {
                next.store(worlds.len(), Ordering::Relaxed);
            }
        }
    };
    std::thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(work);
        }
    });
}
