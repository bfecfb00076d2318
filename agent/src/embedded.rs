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
use std::task::{Context, Poll};

use bytes::Bytes;
use hyper::body::Body;
use hyper::http::{Request, Response};

pub mod answer;
pub mod bounds;
mod caller;
pub mod discovery;
pub mod openapi;
pub mod resource;
pub mod status;
pub mod table;

pub use answer::Answer;
pub use caller::Caller;
pub use resource::Resource;
pub use status::Status;

/// A store that can't be opened.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {}

/// The API. Clones share one store; the last to go closes it.
#[derive(Clone)]
pub struct Api {}

impl Api {
    /// The API on the store in a directory, which is made where there is none.
    pub fn open(_dir: &Path) -> Result<Self, OpenError> {
        Ok(Self {})
    }

    /// The API on nothing but memory (R43).
    pub fn in_memory() -> Self {
        Self {}
    }

    /// A client that calls this API inside the process. Must be called where a tokio runtime runs.
    pub fn client(&self) -> kube::Client {
        kube::Client::new(self.clone(), "default")
    }

    /// Ends every watch, so that connections can be closed.
    pub fn stop(&self) {}
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

    fn call(&mut self, _request: Request<B>) -> Self::Future {
        Box::pin(async move { Ok(answer::refusal(&Status::no_such_path())) })
    }
}
