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
    let search = |(config, bounds): &(Config, Bounds)| check(config, bounds);
    side_by_side(worlds, threads, search, |(config, _), report, took| seen(config, report, took));
}

/// The same of worlds of any kind.
pub fn side_by_side<W: Sync, R>(
    worlds: &[W],
    threads: usize,
    search: impl Fn(&W) -> R + Sync,
    seen: impl Fn(&W, &R, Duration) -> bool + Sync,
) {
    let next = AtomicUsize::new(0);
    let work = || {
        while let Some(world) = worlds.get(next.fetch_add(1, Ordering::Relaxed)) {
            let started = Instant::now();
            let report = search(world);
            if !seen(world, &report, started.elapsed()) {
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
