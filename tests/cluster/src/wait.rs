//! Waiting on conditions, never on time alone.

use std::thread;
use std::time::{Duration, Instant};

/// Longer than anything takes here, even on two busy cores; only a test that fails waits that long.
pub const LIMIT: Duration = Duration::from_secs(120);

/// Between two looks, most of which start a program: often enough for a test, seldom enough to leave the processor to the cluster.
const PAUSE: Duration = Duration::from_millis(200);

/// What `look` finds, as soon as it finds something. Panics, saying what was waited for and what `look` saw last.
pub fn until<T>(what: &str, mut look: impl FnMut() -> Result<T, String>) -> T {
    let began = Instant::now();
    loop {
        match look() {
            Ok(found) => return found,
            Err(seen) if began.elapsed() > LIMIT => panic!("{what}: not within {LIMIT:?}; last: {seen}"),
            Err(_) => thread::sleep(PAUSE),
        }
    }
}
