//! A panic is a bug, and one bug must not end a server that many hosts hang on: it costs the request that met it, or the
//! write, which answers 500, and the next one is served.
//!
//! Requests, watches, connections and the writer's jobs run inside of a guard; so does reading a file that may be anything.
//! Everything else ends the process when it panics, as if it were built to abort: [`abort_outside`] sees to that, and whoever
//! started the process starts it anew from what is on disk. An agent that went on with a task less would be worse than none;
//! so would a writer that doesn't know how far a commit got. Must never hold what a panic could leave half done: a job's
//! changes are undone as those of one that was refused.

use std::any::Any;
use std::cell::Cell;
use std::future::Future;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::pin;
use std::task::Poll;

use super::status::Status;

#[cfg(test)]
mod tests;

/// Whether a panic on this thread would be caught, and whether anybody should read about it.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Inside {
    Nothing,
    /// It is somebody's bug: said in the log.
    Work,
    /// It is how a library says that a file is damaged: the caller says so in better words.
    Reading,
}

thread_local! {
    static INSIDE: Cell<Inside> = const { Cell::new(Inside::Nothing) };
}

/// From now on a panic outside of every guard ends the process. Called once, by the program.
pub fn abort_outside() {
    let told = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |about| match INSIDE.get() {
        Inside::Reading => {}
        Inside::Work => told(about),
        Inside::Nothing => {
            told(about);
            std::process::abort();
        }
    }));
}

/// Does some work; a panic in it is a refusal.
pub(super) fn work<T>(work: impl FnOnce() -> Result<T, Status>) -> Result<T, Status> {
    caught(Inside::Work, work).unwrap_or_else(|_| Err(bug()))
}

/// Does some work bit by bit; a panic in it is an error.
pub(super) async fn bit_by_bit<F: Future>(work: F) -> Result<F::Output, Status> {
    let mut work = pin!(work);
    std::future::poll_fn(|cx| match caught(Inside::Work, || work.as_mut().poll(cx)) {
        Ok(Poll::Pending) => Poll::Pending,
        Ok(Poll::Ready(done)) => Poll::Ready(Ok(done)),
        Err(_) => Poll::Ready(Err(bug())),
    })
    .await
}

/// Reads what may be damaged; what a library panics with is the error.
pub(super) fn reading<T>(read: impl FnOnce() -> T) -> Result<T, String> {
    caught(Inside::Reading, read).map_err(|panic| {
        let said = panic.downcast_ref::<String>().map(String::as_str);
        said.or_else(|| panic.downcast_ref::<&str>().copied()).unwrap_or("it can't be read").to_owned()
    })
}

fn caught<T>(inside: Inside, work: impl FnOnce() -> T) -> Result<T, Box<dyn Any + Send>> {
    let outside = INSIDE.replace(inside);
    let done = catch_unwind(AssertUnwindSafe(work));
    INSIDE.set(outside);
    done
}

/// What is answered for a bug: what it is about stands in the server's log.
fn bug() -> Status {
    Status::internal("this server has a bug: what it was about to do is in its log, and nothing was changed")
}
