//! The embedded API: the Kubernetes REST API where there is no cluster, as a `tower::Service` on a durable store.
//!
//! `berth serve` puts it behind a socket; an agent on its own runs it in its process ([`Api::client`]); tests do both.
//! It serves what [`resource`] lists, and answers as kube-apiserver does: one suite is run against both. Must never
//! acknowledge what is not on disk, nor know anything about pools, policies or hosts beyond `crds`' rules.
//!
//! Costs: a write is one change on disk, synced once per batch of writes that came together; reads and watches never
//! touch the disk. Memory holds every object once as JSON text, and the log of changes, which is bounded ([`store`]).

use std::convert::Infallible;
use std::future::Future;
use std::path::Path;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use hyper::body::Body;
use hyper::http::{Request, Response};
use serde_json::json;
use tokio::sync::{Semaphore, watch};

pub mod admit;
pub mod answer;
mod body;
pub mod bounds;
mod caller;
pub mod discovery;
mod gc;
pub mod guard;
pub mod listen;
pub mod openapi;
mod patch;
pub(crate) mod pki;
pub mod query;
pub mod resource;
pub mod revoked;
pub mod route;
pub mod selector;
mod service;
mod shape;
pub mod status;
pub mod store;
pub mod table;
#[cfg(test)]
mod testing;
pub mod tls;
mod verbs;

#[cfg(test)]
mod tests;

pub use answer::Answer;
pub use caller::{Caller, CallerError};
pub use resource::Resource;
pub use status::Status;
pub use store::{Limits, OpenError};

use store::{BackupError, Copied, Key, Store};

/// Namespaces that are there from the start: where Events of what has no namespace go, and Leases of Nodes.
const NAMESPACES: [&str; 2] = ["default", "kube-node-lease"];

/// The API. Clones share one store; the last to go closes it.
#[derive(Clone)]
pub struct Api {
    inner: Arc<Inner>,
}

struct Inner {
    store: Store,
    /// Whether watches are to end.
    stopped: watch::Sender<bool>,
    /// How often a watch that wants bookmarks gets one.
    bookmarks: Duration,
    /// What the bodies of requests that are under way may take, a permit per byte.
    room: Arc<Semaphore>,
}

/// As kube-apiserver: a bookmark a minute.
const BOOKMARKS: Duration = Duration::from_secs(60);

impl Api {
    /// The API on the store in a directory, which is made where there is none.
    pub fn open(dir: &Path) -> Result<Self, OpenError> {
        Self::open_with(dir, Limits::default())
    }

    /// The same, with other bounds of the log.
    pub fn open_with(dir: &Path, limits: Limits) -> Result<Self, OpenError> {
        Self::on(Store::open(dir, limits)?)
    }

    /// The API on nothing but memory (R43).
    ///
    /// # Panics
    /// If the system gives no thread.
    pub fn in_memory() -> Self {
        Self::in_memory_with(Limits::default())
    }

    /// The same, with other bounds of the log.
    ///
    /// # Panics
    /// If the system gives no thread.
    pub fn in_memory_with(limits: Limits) -> Self {
        Store::in_memory(limits).and_then(Self::on).expect("a thread for the store")
    }

    fn on(store: Store) -> Result<Self, OpenError> {
        let (stopped, _) = watch::channel(false);
        let room = Arc::new(Semaphore::new(body::ROOM));
        let api = Self { inner: Arc::new(Inner { store, stopped, bookmarks: BOOKMARKS, room }) };
        api.begin();
        Ok(api)
    }

    /// Makes the namespaces that are always there. A disk that is full must not keep the API from starting: then they
    /// come with the first write that succeeds, at the next start.
    fn begin(&self) {
        let Some(table) = resource::Table::of("", "namespaces") else { return };
        let missing = NAMESPACES.map(|name| Key::new(table, "", name));
        let missing: Vec<Key> = {
            let state = self.inner.store.read();
            missing.into_iter().filter(|key| state.get(key).is_none()).collect()
        };
        if !missing.is_empty() {
            let _ = self.inner.store.write_blocking(move |tx| {
                for key in missing {
                    let new = json!({"metadata": {"name": key.name}});
                    let new = admit::create(table.resource(), new, tx.now())?;
                    tx.put(key, &new);
                }
                Ok(())
            });
        }
    }

    /// A client that calls this API inside the process. Must be called where a tokio runtime runs.
    pub fn client(&self) -> kube::Client {
        kube::Client::new(self.clone(), "default")
    }

    /// Ends every watch, so that connections can be closed.
    pub fn stop(&self) {
        self.inner.stopped.send_replace(true);
    }

    /// Copies everything, as it is at one moment, to a new file. Others go on meanwhile. Blocks on the disk.
    pub fn backup(&self, to: &Path) -> Result<Copied, BackupError> {
        self.inner.store.backup(to)
    }

    /// What is behind it.
    pub fn store(&self) -> &Store {
        &self.inner.store
    }
}

impl<B> tower::Service<Request<B>> for Api
where
    B: Body<Data = Bytes> + Send + 'static,
    B::Error: std::fmt::Display,
{
    type Response = Response<Answer>;
    type Error = Infallible;
    type Future = Pin<Box<dyn Future<Output = Result<Self::Response, Infallible>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<B>) -> Self::Future {
        let inner = self.inner.clone();
        Box::pin(async move {
            let answered = guard::bit_by_bit(service::handle(inner, request)).await;
            Ok(answered.unwrap_or_else(|bug| answer::refusal(&bug)))
        })
    }
}
