//! Signals that ask `berth apply` to stop: before the first change it ends at once, afterwards they wait to be asked for.
//!
//! A thread waits for them, so that one is heard whatever the others are doing. It must never end the process once a
//! change has begun: [`Stop::hold`] and the end of the process exclude each other.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use anyhow::Context;
use nix::sys::signal::{SigSet, Signal};

use crate::cli::output;

/// As shells have it: 128 and the number of the signal.
const BY_SIGNAL: i32 = 128;

#[derive(Debug, Default)]
struct State {
    /// Something may have been changed: whoever wants to stop has to wait.
    held: bool,
    asked: bool,
}

#[derive(Debug)]
pub(super) struct Stop {
    state: Arc<Mutex<State>>,
}

impl Stop {
    /// To be called before there are other threads: they get their signals held back with this one's. `ignored` has a
    /// bit for each signal that the process ignores: a blocked one would come although it is.
    pub(super) fn listen(ignored: u64) -> anyhow::Result<Self> {
        // Who ignores one (`nohup`) wants it to go on.
        let wanted = [Signal::SIGINT, Signal::SIGTERM, Signal::SIGHUP];
        let set: SigSet =
            wanted.into_iter().filter(|signal| ignored & (1 << (*signal as u32 - 1)) == 0).collect();
        set.thread_block().context("can't hold signals back")?;
        let state = Arc::new(Mutex::new(State::default()));
        let heard = Arc::clone(&state);
        let wait = move || {
            while let Ok(signal) = set.wait() {
                let mut state = lock(&heard);
                if !state.held {
                    output::note(&format!("interrupted ({signal}); nothing was changed"));
                    std::process::exit(BY_SIGNAL + signal as i32);
                }
                state.asked = true;
            }
        };
        std::thread::Builder::new()
            .name("signals".to_owned())
            .spawn(wait)
            .context("can't listen for signals")?;
        Ok(Self { state })
    }

    /// From here on a signal is an answer to wait for, not an end.
    pub(super) fn hold(&self) {
        lock(&self.state).held = true;
    }

    pub(super) fn is_asked(&self) -> bool {
        lock(&self.state).asked
    }
}

fn lock(state: &Mutex<State>) -> MutexGuard<'_, State> {
    state.lock().unwrap_or_else(PoisonError::into_inner)
}
