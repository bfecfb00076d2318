//! The one thread that writes. It takes every write that waits, evaluates one after the other on top of each other,
//! commits them together, shows the result to readers, and only then answers.
//!
//! So a crash loses nothing that was acknowledged, readers see only what is on disk, and the more writes come at once
//! the fewer syncs each costs. Must never answer a write before its commit, nor stop because a commit failed.

use std::sync::Arc;

use tokio::sync::mpsc::Receiver;

use super::Shared;
use super::disk::{Disk, DiskError};
use super::lock::Lock;
use super::object::What;
use super::reserve::Reserve;
use super::state::Limits;
use super::transaction::{Batch, Transaction};
use crate::embedded::status::Status;

/// Writes per commit: enough that a sync's milliseconds are shared by all that came meanwhile, few enough that the
/// first of them doesn't wait for seconds.
const WRITES: usize = 512;
/// Text per commit. The largest object twice over is still far below it.
const BYTES: usize = 16 << 20;
/// While the disk is full: so much text has to be deleted before the file is made smaller, which takes a while. A
/// quarter of the reserve: what a person deletes in order to make room is soon that much.
const FREED: usize = 1 << 20;

/// What is told while the reserve is given up.
const TIGHT: &str = "No space is left for anything but deleting";

/// A write: it changes the transaction, and gives back who is to be told what became of it.
pub(super) type Job = Box<dyn FnOnce(&mut Transaction<'_>) -> Finish + Send>;
/// Tells whoever waits. The argument is why nothing was committed, if so.
pub(super) type Finish = Box<dyn FnOnce(Option<&Status>) + Send>;

/// Where batches go.
pub(super) struct Durable {
    pub(super) disk: Disk,
    pub(super) reserve: Reserve,
    pub(super) _lock: Lock,
}

/// The writer. `durable` is absent for a store in memory.
pub(super) struct Writer {
    pub(super) shared: Arc<Shared>,
    pub(super) durable: Option<Durable>,
    pub(super) limits: Limits,
    /// No revision up to here is given again, even if its commit failed.
    pub(super) floor: u64,
    /// The batch whose commit failed: to be taken back on disk, should it have got there, before the next is written.
    pub(super) failed: Option<Batch>,
    /// Text that was deleted since the disk was full.
    pub(super) freed: usize,
}

impl Writer {
    /// Works until nobody can ask any more.
    pub(super) fn run(mut self, mut jobs: Receiver<Job>) {
        while let Some(first) = jobs.blocking_recv() {
            self.batch(first, &mut jobs);
        }
    }

    fn batch(&mut self, first: Job, jobs: &mut Receiver<Job>) {
        let tight = self.durable.as_mut().is_some_and(|durable| !durable.reserve.fill());
        let mut finishes = Vec::new();
        let (batch, forgotten) = {
            let state = self.shared.read();
            let mut batch = Batch::after(state.revision.max(self.floor));
            let mut next = Some(first);
            while let Some(job) = next {
                let mut transaction = Transaction::new(&state, &mut batch);
                let finish = job(&mut transaction);
                if tight && transaction.takes_room() {
                    transaction.undo();
                    finish(Some(&full(TIGHT)));
                } else {
                    finishes.push(finish);
                }
                let room = finishes.len() < WRITES && batch.bytes() < BYTES;
                next = if room { jobs.try_recv().ok() } else { None };
            }
            // The past has to make room too.
            let part = if tight { 4 } else { 1 };
            let limits =
                Limits { log_events: self.limits.log_events / part, log_bytes: self.limits.log_bytes / part };
            let forgotten = state.trim_point(&batch.events, limits);
            (batch, forgotten)
        };
        // Also where nothing is written: whoever asks how the store is hears whether the file can be used again.
        let whole = self.take_back();
        let trouble = whole.as_ref().err().map(DiskError::said);
        let outcome =
            if batch.events.is_empty() { Ok(()) } else { whole.and_then(|()| self.commit(batch, forgotten)) };
        let trouble = outcome.as_ref().err().map(DiskError::said).or(trouble);
        self.shared.set_trouble(trouble.or_else(|| tight.then(|| TIGHT.to_owned())));
        let outcome = outcome.map_err(|error| full(&error.said()));
        for finish in finishes {
            finish(outcome.as_ref().err());
        }
        if tight {
            self.make_room();
        }
    }

    /// After a commit that failed: makes the file say what memory says, before anything else is written.
    fn take_back(&mut self) -> Result<(), DiskError> {
        let (Some(durable), Some(failed)) = (&mut self.durable, &self.failed) else { return Ok(()) };
        let undone = durable.disk.undo(failed, &self.shared.read());
        match undone {
            Ok(()) => self.failed = None,
            Err(_) => durable.reserve.give(),
        }
        undone
    }

    /// On a full disk: gives back what deleting has freed inside the file, once that is worth it.
    fn make_room(&mut self) {
        let Some(durable) = &mut self.durable else { return };
        if self.freed >= FREED && durable.disk.compact().is_ok() {
            self.freed = 0;
        }
    }

    /// Commits and publishes a batch.
    fn commit(&mut self, batch: Batch, forgotten: u64) -> Result<(), DiskError> {
        if let Some(durable) = &mut self.durable
            && let Err(error) = durable.disk.commit(&batch, forgotten)
        {
            durable.reserve.give();
            self.freed = 0;
            self.floor = self.floor.max(batch.revision);
            self.failed = Some(batch);
            return Err(error);
        }
        let gone = batch.events.iter().filter(|event| event.what == What::Deleted);
        self.freed += gone.map(|event| event.object.size()).sum::<usize>();
        let revision = batch.revision;
        self.shared.write().publish(batch.events, revision, forgotten);
        self.shared.tell(revision);
        Ok(())
    }
}

fn full(said: &str) -> Status {
    Status::internal(format!("the store could not be written, nothing was changed: {said}"))
}
