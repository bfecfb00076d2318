//! Whether this process is well: is its loop alive, has it begun its work.
//!
//! The loop says when it works and when it waits; whoever asks ([`serve`], systemd's watchdog) is told by that. Must never
//! depend on the API: an agent whose API server is away does its work, and restarting it helps nobody.
//!
//! Cost: a lock per sign of life, nothing while the loop waits.

pub(crate) mod serve;
#[cfg(test)]
mod tests;

use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::{Duration, Instant};

use tokio::sync::watch;

use crate::api::rights::Rights;

/// A loop that works without a sign of life for this long hangs. Between two signs there are a few requests to the API,
/// each with a time-out (`cli::client`), or one change of the host, whose longest wait is ten seconds; and what it waits
/// for probes comes on top ([`Health::with_patience`]).
pub(crate) const HUNG: Duration = Duration::from_secs(120);

/// How far the work has come.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Stage {
    /// The first pass is over, whatever came of it.
    passed: bool,
    /// Everything was read from the API, and a pass over it has ended.
    ready: bool,
}

/// Of one loop.
#[derive(Debug)]
pub(crate) struct Health {
    /// The last sign of life of a loop that works; nothing while it waits.
    working: Mutex<Option<Instant>>,
    /// How long without a sign of life is too long.
    limit: Duration,
    stage: watch::Sender<Stage>,
    /// What it lacks, if it asks an API that may refuse it something.
    rights: OnceLock<Arc<Rights>>,
    /// What the API leaves out of what is written, in words.
    left_out: Mutex<Option<String>>,
}

impl Default for Health {
    fn default() -> Self {
        Self::with_patience(Duration::ZERO)
    }
}

impl Health {
    /// Of a loop that may wait so long for something, on top of all else.
    pub(crate) fn with_patience(patience: Duration) -> Self {
        Self {
            working: Mutex::new(None),
            limit: HUNG + patience,
            stage: watch::Sender::new(Stage::default()),
            rights: OnceLock::new(),
            left_out: Mutex::default(),
        }
    }

    /// Whoever asks is told what of this is lacking.
    pub(crate) fn shows(&self, rights: Arc<Rights>) {
        // Once, at the start.
        let _ = self.rights.set(rights);
    }

    /// The API keeps what is written, or leaves this out.
    pub(crate) fn left_out(&self, words: Option<String>) {
        *self.left_out.lock().unwrap_or_else(PoisonError::into_inner) = words;
    }

    /// Rights that are lacking and what the API leaves out, in words: no reason to start anything again, and one to do something.
    pub(crate) fn lacking(&self) -> Vec<String> {
        let rights = self.rights.get().map(|rights| rights.lacking()).unwrap_or_default();
        let left_out = self.left_out.lock().unwrap_or_else(PoisonError::into_inner).clone();
        rights.into_iter().chain(left_out).collect()
    }

    /// The loop works, and got this far.
    pub(crate) fn works(&self) {
        *self.working() = Some(Instant::now());
    }

    /// The loop waits for something to do.
    pub(crate) fn waits(&self) {
        *self.working() = None;
    }

    /// The loop waits again when this is dropped, however it ended.
    pub(crate) fn over(&self) -> impl Drop + '_ {
        struct Over<'a>(&'a Health);
        impl Drop for Over<'_> {
            fn drop(&mut self) {
                self.0.waits();
            }
        }
        Over(self)
    }

    /// A pass is over; `ready`, if it saw all there is.
    pub(crate) fn passed(&self, ready: bool) {
        self.stage.send_if_modified(|stage| {
            let next = Stage { passed: true, ready: stage.ready || ready };
            std::mem::replace(stage, next) != next
        });
    }

    /// Is the loop alive?
    pub(crate) fn is_alive(&self) -> bool {
        self.working().is_none_or(|sign| sign.elapsed() < self.limit)
    }

    /// How long a loop that works may be silent.
    pub(crate) fn limit(&self) -> Duration {
        self.limit
    }

    /// Has all been read, and a pass over it ended?
    pub(crate) fn is_ready(&self) -> bool {
        self.stage.borrow().ready
    }

    /// Waits for the end of the first pass.
    pub(crate) async fn first_pass(&self) {
        // The sender is ours.
        let _ = self.stage.subscribe().wait_for(|stage| stage.passed).await;
    }

    fn working(&self) -> std::sync::MutexGuard<'_, Option<Instant>> {
        self.working.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// As if it had last been heard of so long ago.
    #[cfg(test)]
    fn silent_for(&self, time: Duration) {
        *self.working() = Instant::now().checked_sub(time);
    }
}
