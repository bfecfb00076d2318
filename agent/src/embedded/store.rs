//! The store: every object in memory, every change on disk first.
//!
//! The verbs read [`Store::read`] and write through [`Store::write`]. One thread makes all changes (`writer`); one
//! counter numbers them, and never goes back. Must never show or acknowledge what a crash could take away again.
//!
//! Costs: see `writer` for writes, [`state`] for memory and the bounds of the log, `disk` for the file. A store in
//! memory is the same without the file.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};
use std::thread::JoinHandle;
use std::time::Duration;

use tokio::sync::{OwnedMutexGuard, mpsc, oneshot, watch};

use super::guard;
use super::status::Status;

mod backup;
mod disk;
mod file;
mod lock;
pub mod object;
mod reserve;
pub mod state;
pub mod transaction;
mod writer;

#[cfg(test)]
mod tests;

pub use backup::{BackupError, Copied, Held, Restored, backup, restore};
pub use disk::DiskError;
pub use file::copy_name;
pub use lock::LockError;
pub use object::{Draft, Facts, Key, Object, Owner, What};
pub use state::{Before, Event, Forgotten, Limits, State};
pub use transaction::Transaction;

use disk::Disk;
use lock::Lock;
use reserve::Reserve;
use writer::{Durable, Finish, Job, Writer};

/// Writes that may wait: as many as two commits take. Beyond, whoever asks waits before it is in the queue.
const WAITING: usize = 1024;

/// How long the writer may take to answer somebody who asks how it is: a commit takes milliseconds, on the slowest disks
/// a second.
const PATIENCE: Duration = Duration::from_secs(5);

/// First come, first served.
type Gate = tokio::sync::Mutex<()>;

/// A store that can't be opened.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    #[error(transparent)]
    Lock(#[from] LockError),
    #[error(transparent)]
    Disk(#[from] DiskError),
    #[error("start the store's thread")]
    Thread(#[source] std::io::Error),
}

/// What the writer and readers share.
#[derive(Debug)]
pub(super) struct Shared {
    state: RwLock<State>,
    /// The revision that is committed: whoever watches is woken by it.
    revision: watch::Sender<u64>,
    /// Why writes are refused, if they are: as the writer last found.
    trouble: Mutex<Option<String>>,
}

impl Shared {
    pub(super) fn read(&self) -> RwLockReadGuard<'_, State> {
        self.state.read().unwrap_or_else(PoisonError::into_inner)
    }

    fn write(&self) -> RwLockWriteGuard<'_, State> {
        self.state.write().unwrap_or_else(PoisonError::into_inner)
    }

    fn tell(&self, revision: u64) {
        self.revision.send_replace(revision);
    }

    fn set_trouble(&self, trouble: Option<String>) {
        *self.trouble.lock().unwrap_or_else(PoisonError::into_inner) = trouble;
    }

    /// Wakes at every commit.
    pub(super) fn subscribe(&self) -> watch::Receiver<u64> {
        self.revision.subscribe()
    }
}

/// The store. The last to drop it waits for its writer, and then it is closed.
pub struct Store {
    shared: Arc<Shared>,
    jobs: Option<mpsc::Sender<Job>>,
    /// Whose turn it is to change an object, where somebody is about to.
    turns: Mutex<HashMap<Key, Arc<Gate>>>,
    thread: Option<JoinHandle<()>>,
    /// Where it is, if it is on disk.
    dir: Option<PathBuf>,
}

impl Store {
    /// Opens the store in a directory, or makes one there.
    pub fn open(dir: &Path, limits: Limits) -> Result<Self, OpenError> {
        let lock = Lock::take(dir)?;
        file::tidy(dir);
        let mut disk = Disk::open(dir)?;
        let state = disk.load()?;
        let durable = Durable { disk, reserve: Reserve::of(dir), _lock: lock };
        Self::start(state, Some(durable), limits, Some(dir.to_owned()))
    }

    /// A store of this process' memory alone.
    pub fn in_memory(limits: Limits) -> Result<Self, OpenError> {
        Self::start(State::default(), None, limits, None)
    }

    fn start(
        state: State,
        durable: Option<Durable>,
        limits: Limits,
        dir: Option<PathBuf>,
    ) -> Result<Self, OpenError> {
        let revision = state.revision;
        let (sender, _) = watch::channel(revision);
        let shared =
            Arc::new(Shared { state: RwLock::new(state), revision: sender, trouble: Mutex::default() });
        let writer =
            Writer { shared: shared.clone(), durable, limits, floor: revision, failed: None, freed: 0 };
        let (jobs, waiting) = mpsc::channel(WAITING);
        let thread = std::thread::Builder::new().name("berth-store".to_owned());
        let thread = thread.spawn(move || writer.run(waiting)).map_err(OpenError::Thread)?;
        Ok(Self { shared, jobs: Some(jobs), turns: Mutex::default(), thread: Some(thread), dir })
    }

    /// What is committed. To be held for a moment only: a commit waits for it.
    pub fn read(&self) -> RwLockReadGuard<'_, State> {
        self.shared.read()
    }

    pub(super) fn shared(&self) -> &Arc<Shared> {
        &self.shared
    }

    /// Waits for this object's turn, and has it as long as the answer lives: whoever finds out what an object is to become, and
    /// then asks the writer, does so one after the other, in the order in which they came. Else many who write one object
    /// would find it changed again and again. Others may still change it meanwhile: the writer has the last word.
    pub(super) async fn turn(&self, key: &Key) -> Turn<'_> {
        let place = {
            let mut turns = self.turns.lock().unwrap_or_else(PoisonError::into_inner);
            let gate = turns.entry(key.clone()).or_default().clone();
            Place { store: self, key: key.clone(), gate }
        };
        let held = place.gate.clone().lock_owned().await;
        Turn { _held: held, _place: place }
    }

    /// Makes a change: `change` is called with what is there, on the writer's thread, and what it wrote is committed if
    /// it is content. The answer comes when it is on disk.
    pub async fn write<T: Send + 'static>(
        &self,
        change: impl FnOnce(&mut Transaction<'_>) -> Result<T, Status> + Send + 'static,
    ) -> Result<T, Status> {
        let (job, told) = job(change);
        let closed = || Status::unavailable("the store is closed");
        self.jobs.as_ref().ok_or_else(closed)?.send(job).await.map_err(|_| closed())?;
        told.await.map_err(|_| closed())?
    }

    /// Why writes would be refused now, if they would. Asks the writer, which looks again: a disk that has room again is
    /// noticed here, without a write.
    pub async fn trouble(&self) -> Option<String> {
        let asked = tokio::time::timeout(PATIENCE, self.write(|_| Ok(()))).await;
        let known = self.shared.trouble.lock().unwrap_or_else(PoisonError::into_inner).clone();
        match asked {
            // After a commit that failed the file is opened anew, which may take a while.
            Err(_) => known.or_else(|| Some("the disk does not answer".to_owned())),
            Ok(Err(status)) => Some(status.message),
            Ok(Ok(())) => known,
        }
    }

    /// The same, from outside of a runtime, before anybody else can ask.
    pub(super) fn write_blocking<T: Send + 'static>(
        &self,
        change: impl FnOnce(&mut Transaction<'_>) -> Result<T, Status> + Send + 'static,
    ) -> Result<T, Status> {
        let (tell, told) = std::sync::mpsc::channel();
        let closed = || Status::unavailable("the store is closed");
        let job = job_with(change, move |result| {
            let _ = tell.send(result);
        });
        self.jobs.as_ref().ok_or_else(closed)?.try_send(job).map_err(|_| closed())?;
        told.recv().map_err(|_| closed())?
    }

    /// Copies everything, as it is at one moment, to a new file. Others go on meanwhile. Blocks on the disk.
    pub fn backup(&self, to: &Path) -> Result<Copied, BackupError> {
        let (objects, revision) = {
            let state = self.read();
            (state.objects().cloned().collect::<Vec<_>>(), state.revision)
        };
        backup::write(&objects, revision, to)
    }

    /// The store's directory, if it is on disk.
    pub fn dir(&self) -> Option<&Path> {
        self.dir.as_deref()
    }
}

/// An object's turn.
pub(super) struct Turn<'a> {
    _held: OwnedMutexGuard<()>,
    _place: Place<'a>,
}

/// A place in the queue for an object's turn; the last to leave takes the queue away.
struct Place<'a> {
    store: &'a Store,
    key: Key,
    gate: Arc<Gate>,
}

impl Drop for Place<'_> {
    fn drop(&mut self) {
        let mut turns = self.store.turns.lock().unwrap_or_else(PoisonError::into_inner);
        self.gate = Arc::default();
        if turns.get(&self.key).is_some_and(|gate| Arc::strong_count(gate) == 1) {
            turns.remove(&self.key);
        }
    }
}

impl Drop for Store {
    fn drop(&mut self) {
        self.jobs = None;
        // A write whose client went away may be the last to hold the store: then this is the writer's own thread.
        let own = std::thread::current().id();
        if let Some(thread) = self.thread.take().filter(|thread| thread.thread().id() != own) {
            let _ = thread.join();
        }
    }
}

/// A change, and where its answer comes.
fn job<T: Send + 'static>(
    change: impl FnOnce(&mut Transaction<'_>) -> Result<T, Status> + Send + 'static,
) -> (Job, oneshot::Receiver<Result<T, Status>>) {
    let (tell, told) = oneshot::channel();
    let job = job_with(change, move |result| {
        // Nobody waits any more if the client went away: the change stands all the same.
        let _ = tell.send(result);
    });
    (job, told)
}

fn job_with<T: Send + 'static>(
    change: impl FnOnce(&mut Transaction<'_>) -> Result<T, Status> + Send + 'static,
    tell: impl FnOnce(Result<T, Status>) + Send + 'static,
) -> Job {
    Box::new(move |transaction| {
        let result = guard::work(|| change(transaction));
        if result.is_err() {
            transaction.undo();
        }
        let finish: Finish = Box::new(move |failure| {
            // A refusal is no truth either then: it may be about an object that another write of the batch made.
            tell(failure.map_or(result, |status| Err(status.clone())));
        });
        finish
    })
}
