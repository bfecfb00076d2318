//! Something in front of the API server that sees each request, and may answer in its place or spoil the answer.

use std::collections::BTreeSet;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use bytes::Bytes;
use futures_util::{StreamExt, TryStreamExt, future};
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt, BodyStream, Full, StreamBody};
use hyper::body::Incoming;
use hyper::header::{AUTHORIZATION, CONTENT_TYPE, HOST, RETRY_AFTER};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Request, Response};
use hyper_util::rt::TokioIo;
use kube::Client;
use kube::client::Body;
use serde_json::{Value, json};
use tokio::net::TcpListener;
use tokio::task::JoinHandle;
use tower::BoxError;

use crate::cluster::{Cluster, Way};

/// What is amiss.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Amiss {
    Nothing,
    /// It has too much to do: of three requests one is taken, the others are told to come back in a second.
    Busy,
    /// Watches end after a few events, and what was before is forgotten when they are taken up again.
    Forgetful,
}

/// How many events a forgetful server tells of.
const TOLD: usize = 2;

pub(crate) struct Front {
    address: SocketAddr,
    state: Arc<State>,
    task: JoinHandle<()>,
}

struct State {
    client: Client,
    amiss: Mutex<Amiss>,
    asked: AtomicUsize,
    /// Answers that were spoilt.
    spoilt: AtomicUsize,
    /// Who is told next time that what was before is forgotten: token and path.
    forgotten: Mutex<BTreeSet<(String, String)>>,
}

type Answer = Response<UnsyncBoxBody<Bytes, BoxError>>;

impl Drop for Front {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl Front {
    pub(crate) async fn new(cluster: &Cluster) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let address = listener.local_addr().expect("a port");
        // Each request has the token of who asks.
        let mut config = cluster.plane.config();
        config.auth_info = kube::config::AuthInfo::default();
        let state = Arc::new(State {
            client: Client::try_from(config).expect("a client"),
            amiss: Mutex::new(Amiss::Nothing),
            asked: AtomicUsize::new(0),
            spoilt: AtomicUsize::new(0),
            forgotten: Mutex::default(),
        });
        let task = tokio::spawn(accept(listener, state.clone()));
        Self { address, state, task }
    }

    pub(crate) fn way(&self) -> Way {
        Way { server: format!("http://{}", self.address), ..Way::default() }
    }

    pub(crate) fn is(&self, amiss: Amiss) {
        *self.state.amiss.lock().expect("whole") = amiss;
    }

    /// How many answers were spoilt so far.
    pub(crate) fn spoilt(&self) -> usize {
        self.state.spoilt.load(Ordering::SeqCst)
    }
}

async fn accept(listener: TcpListener, state: Arc<State>) {
    let mut talks = tokio::task::JoinSet::new();
    while let Ok((stream, _)) = listener.accept().await {
        let state = state.clone();
        talks.spawn(async move {
            let answer = service_fn(move |request| answer(state.clone(), request));
            // What goes wrong on a connection is its client's to see.
            let _ = http1::Builder::new().serve_connection(TokioIo::new(stream), answer).await;
        });
    }
}

async fn answer(state: Arc<State>, request: Request<Incoming>) -> Result<Answer, BoxError> {
    let (mut head, body) = request.into_parts();
    let amiss = *state.amiss.lock().expect("whole");
    let is_watch = head.uri.query().is_some_and(|query| query.contains("watch=true"));
    let token = head.headers.get(AUTHORIZATION).map(|value| value.as_bytes().to_vec()).unwrap_or_default();
    let who = (String::from_utf8_lossy(&token).into_owned(), head.uri.path().to_owned());
    if amiss == Amiss::Busy && !state.asked.fetch_add(1, Ordering::SeqCst).is_multiple_of(3) {
        state.spoilt.fetch_add(1, Ordering::SeqCst);
        return Ok(answered(429, &status(429, "TooManyRequests", "please try again later"))?);
    }
    if is_watch && state.forgotten.lock().expect("whole").remove(&who) {
        // Not an answer of its own: the watch begins, and this is its first event.
        let event =
            json!({"type": "ERROR", "object": status(410, "Expired", "too old resource version: 1 (2)")});
        return Ok(answered(200, &event)?);
    }
    head.headers.remove(HOST);
    let body = body.collect().await?.to_bytes();
    let answer = state.client.send(Request::from_parts(head, Body::from(body))).await?;
    if !(is_watch && amiss == Amiss::Forgetful) {
        return Ok(answer.map(|body| body.map_err(BoxError::from).boxed_unsync()));
    }
    let mut events = 0;
    Ok(answer.map(|body| {
        let frames = TryStreamExt::map_err(BodyStream::new(body), BoxError::from).take_while(move |_| {
            events += 1;
            let goes_on = events <= TOLD;
            if !goes_on {
                state.spoilt.fetch_add(1, Ordering::SeqCst);
                state.forgotten.lock().expect("whole").insert(who.clone());
            }
            future::ready(goes_on)
        });
        BodyExt::boxed_unsync(StreamBody::new(frames.boxed()))
    }))
}

/// As an API server says it.
fn status(code: u16, reason: &str, message: &str) -> Value {
    json!({"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure",
        "code": code, "reason": reason, "message": message})
}

fn answered(code: u16, body: &Value) -> Result<Answer, hyper::http::Error> {
    let body = Full::new(Bytes::from(format!("{body}\n"))).map_err(|never| match never {});
    let answer = Response::builder().status(code).header(CONTENT_TYPE, "application/json");
    answer.header(RETRY_AFTER, "1").body(body.boxed_unsync())
}
