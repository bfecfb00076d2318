//! Waiting on conditions, never on time alone: asked again and again until it holds, or the deadline is over.

use std::time::{Duration, Instant};

/// Longer than anything takes here, even on two busy cores; only a test that fails waits that long.
pub const LIMIT: Duration = Duration::from_secs(90);

/// Between two looks: short beside what is waited for, long enough to leave the processor to it.
pub const PAUSE: Duration = Duration::from_millis(30);

/// What `look` finds, as soon as it finds something. Panics, saying what was waited for and what `look` saw last.
pub async fn until<T, Fut>(what: &str, mut look: impl FnMut() -> Fut) -> T
where
    Fut: Future<Output = Result<T, String>>,
{
    let began = Instant::now();
    loop {
        match look().await {
            Ok(found) => return found,
            Err(seen) if began.elapsed() > LIMIT => panic!("{what}: not within {LIMIT:?}; last: {seen}"),
            Err(_) => tokio::time::sleep(PAUSE).await,
        }
    }
}
