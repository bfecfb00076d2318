//! Something in front of the API server that is forgetful: watches end after a few events, and what was before is forgotten when
//! they are taken up again.

use std::collections::BTreeSet;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};

use bytes::Bytes;
use futures_util::{StreamExt, TryStreamExt, future};
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt, BodyStream, Full, StreamBody};
use hyper::body::Incoming;
use hyper::header::{AUTHORIZATION, CONTENT_TYPE, HOST};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Request, Response};
use hyper_util::rt::TokioIo;
use kube::Client;
use kube::client::Body;
use serde_json::json;
use tokio::net::TcpListener;
use tokio::task::JoinHandle;
use tower::BoxError;

use crate::cluster::{Cluster, Way};

/// How much of a watch is told: so many frames, of an event or more each.
const TOLD: usize = 2;

pub(crate) struct Front {
    address: SocketAddr,
    state: Arc<State>,
    task: JoinHandle<()>,
}

struct State {
    client: Client,
    /// Whose watches ended: tokens.
    spoilt: Mutex<BTreeSet<String>>,
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
            spoilt: Mutex::default(),
            forgotten: Mutex::default(),
        });
        let task = tokio::spawn(accept(listener, state.clone()));
        Self { address, state, task }
    }

    pub(crate) fn way(&self) -> Way {
        Way { server: format!("http://{}", self.address), ..Way::default() }
    }

    /// As if nobody had missed anything yet.
    pub(crate) fn forgive(&self) {
        self.state.spoilt.lock().expect("whole").clear();
    }

    /// How many have missed something since.
    pub(crate) fn spoilt_for(&self) -> usize {
        self.state.spoilt.lock().expect("whole").len()
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
    let is_watch = head.uri.query().is_some_and(|query| query.contains("watch=true"));
    let token = head.headers.get(AUTHORIZATION).map(|value| value.as_bytes().to_vec()).unwrap_or_default();
    let who = (String::from_utf8_lossy(&token).into_owned(), head.uri.path().to_owned());
    if is_watch && state.forgotten.lock().expect("whole").remove(&who) {
        // Not an answer of its own: the watch begins, and this is its first event.
        return Ok(expired()?);
    }
    head.headers.remove(HOST);
    let body = body.collect().await?.to_bytes();
    let answer = state.client.send(Request::from_parts(head, Body::from(body))).await?;
    if !is_watch {
        return Ok(answer.map(|body| body.map_err(BoxError::from).boxed_unsync()));
    }
    let mut events = 0;
    Ok(answer.map(|body| {
        let frames = TryStreamExt::map_err(BodyStream::new(body), BoxError::from).take_while(move |_| {
            events += 1;
            let goes_on = events <= TOLD;
            if !goes_on {
                state.spoilt.lock().expect("whole").insert(who.0.clone());
                state.forgotten.lock().expect("whole").insert(who.clone());
            }
            future::ready(goes_on)
        });
        BodyExt::boxed_unsync(StreamBody::new(frames.boxed()))
    }))
}

/// As an API server says it.
fn expired() -> Result<Answer, hyper::http::Error> {
    let status = json!({"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure",
        "code": 410, "reason": "Expired", "message": "too old resource version: 1 (2)"});
    let event = json!({"type": "ERROR", "object": status});
    let body = Full::new(Bytes::from(format!("{event}\n"))).map_err(|never| match never {});
    Response::builder().header(CONTENT_TYPE, "application/json").body(body.boxed_unsync())
}
