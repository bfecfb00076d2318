//! Answers, at the pace of who takes them, and how long somebody hasn't.
//!
//! An answer goes out in small pieces, each asked for when there is room for it: by a socket over HTTP/1.1, by a stream's own
//! window over HTTP/2. Between a piece and the next the client is waited for, and [`Waiting`] knows since when. A watch that
//! has nothing to tell waits for us, and may do so for ever. Used by `conn` alone; must never wait for a client itself.
//!
//! Cost: a lock of the connection's own and an entry of a map per piece.

use std::collections::BTreeMap;
use std::pin::Pin;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use hyper::body::{Body, Frame, SizeHint};
use tokio::time::Instant;

use super::Answer;

/// As much as is given out at once: what is given and not taken is kept, so it must be little beside an object of 1.5 MiB.
const PIECE: usize = 64 << 10;

/// Since when each answer of a connection waits for the client to take more of it, of those that do.
#[derive(Default)]
pub(super) struct Waiting {
    since: Mutex<BTreeMap<u64, Instant>>,
    next: AtomicU64,
}

impl Waiting {
    fn set(&self, answer: u64, waits: bool) {
        let mut since = self.since.lock().unwrap_or_else(PoisonError::into_inner);
        match waits {
            true => since.insert(answer, Instant::now()),
            false => since.remove(&answer),
        };
    }

    /// Returns when an answer has waited for this long.
    pub(super) async fn too_long(&self, patience: Duration) {
        loop {
            let first = self.since.lock().unwrap_or_else(PoisonError::into_inner).values().min().copied();
            let now = Instant::now();
            match first {
                Some(first) if now.duration_since(first) >= patience => return,
                _ => tokio::time::sleep_until(first.unwrap_or(now) + patience).await,
            }
        }
    }
}

/// The body of an answer, piece by piece.
pub(super) struct Paced {
    body: Answer,
    /// What is left of the last frame.
    rest: Bytes,
    waiting: Arc<Waiting>,
    number: u64,
}

impl Paced {
    pub(super) fn new(body: Answer, waiting: Arc<Waiting>) -> Self {
        let number = waiting.next.fetch_add(1, Ordering::Relaxed);
        Self { body, rest: Bytes::new(), waiting, number }
    }
}

impl Body for Paced {
    type Data = Bytes;
    type Error = <Answer as Body>::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Self::Error>>> {
        self.waiting.set(self.number, false);
        if self.rest.is_empty() {
            match Pin::new(&mut self.body).poll_frame(cx) {
                Poll::Ready(Some(Ok(frame))) => match frame.into_data() {
                    Ok(data) => self.rest = data,
                    Err(trailers) => return Poll::Ready(Some(Ok(trailers))),
                },
                other => return other,
            }
        }
        let length = self.rest.len().min(PIECE);
        let piece = self.rest.split_to(length);
        self.waiting.set(self.number, true);
        Poll::Ready(Some(Ok(Frame::data(piece))))
    }

    fn is_end_stream(&self) -> bool {
        self.rest.is_empty() && self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        let (rest, of) = (self.rest.len() as u64, self.body.size_hint());
        let mut hint = SizeHint::new();
        hint.set_lower(of.lower().saturating_add(rest));
        if let Some(upper) = of.upper() {
            hint.set_upper(upper.saturating_add(rest));
        }
        hint
    }
}

impl Drop for Paced {
    fn drop(&mut self) {
        self.waiting.set(self.number, false);
    }
}
