//! One connection: handshake, HTTP/1.1 or HTTP/2, and its end.
//!
//! Bounds: what a client can make us keep or wait for before it has proven to be somebody.

use std::convert::Infallible;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use bytes::Bytes;
use http_body_util::{BodyExt, Full};
use hyper::body::{Body, Incoming};
use hyper::header::{CONTENT_TYPE, HOST, HeaderValue, ORIGIN};
use hyper::rt::Executor;
use hyper::{Request, Response, StatusCode};
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::server::conn::auto;
use hyper_util::service::TowerToHyperService;
use serde_json::json;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpStream, UnixStream};
use tokio::sync::{Notify, watch};
use tokio_rustls::rustls::pki_types::CertificateDer;
use tower::{Service, ServiceExt as _};

use super::pace::{Paced, Waiting};
use super::{Answer, Limits};
use crate::embedded::body;
use crate::embedded::caller::{Caller, CallerError};
use crate::embedded::guard;
use crate::embedded::tls::{Loaded, Tls};

/// A handshake takes two round trips: seconds on the worst link, and whoever needs longer holds a connection for nothing.
pub(super) const HANDSHAKE: Duration = Duration::from_secs(10);
/// From the connection to the first whole request head. Clients send it at once.
pub(super) const FIRST_REQUEST: Duration = Duration::from_secs(10);
/// HTTP/1.1: from one answer to the next whole request head. Idle ones beyond are closed; clients reconnect.
pub(super) const NEXT_REQUEST: Duration = Duration::from_secs(90);
/// From a piece of an answer to the next, of a client that doesn't take it: as long as it may take to send a body. A watcher that
/// doesn't read would else have its connection for as long as its watch lasts, and that doesn't end while it can't be told.
pub(super) const UNTAKEN: Duration = Duration::from_secs(60);
/// Request head: kube-apiserver takes up to 1 MiB; the longest of ours is a list with selectors, under 8 KiB.
const HEAD: usize = 64 * 1024;
const HEADERS: usize = 128;
/// HTTP/2 requests at once on a connection, watches among them; as kube-apiserver.
const STREAMS: u32 = 250;
/// HTTP/2: a peer that is gone without a word is noticed within a minute, and its watches end.
const PING: Duration = Duration::from_secs(30);
const PONG: Duration = Duration::from_secs(30);

pub(super) enum Stream {
    Tcp(TcpStream),
    Unix(UnixStream),
}

/// How a connection is spoken to, and who is at its other end.
pub(super) enum Kind {
    Plain(Caller),
    Tls { tls: Tls, elects: bool },
}

/// Serves a connection to its end. What goes wrong on one is its client's to see: there is nobody else to tell.
pub(super) async fn serve<S, B>(
    stream: Stream,
    kind: Kind,
    service: S,
    stop: watch::Receiver<bool>,
    patience: Duration,
    limits: Limits,
) where
    S: Service<Request<Incoming>, Response = Response<B>, Error = Infallible> + Clone + Send + 'static,
    S::Future: Send,
    B: Body<Data = Bytes> + Send + 'static,
    B::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
{
    match (stream, kind) {
        (Stream::Unix(stream), Kind::Plain(caller)) => {
            let door = Door { caller: Ok(caller), local_names: false };
            talk(stream, door, service, stop, patience, limits).await;
        }
        (Stream::Tcp(stream), Kind::Plain(caller)) => {
            let door = Door { caller: Ok(caller), local_names: true };
            talk(stream, door, service, stop, patience, limits).await;
        }
        (Stream::Tcp(stream), Kind::Tls { tls, elects }) => {
            // What is wrong with new files is said by whoever looks after them; the old ones are still good.
            let _ = tls.refresh();
            let loaded = tls.loaded();
            let handshake = loaded.acceptor.accept(stream);
            let Ok(Ok(stream)) = tokio::time::timeout(limits.handshake, handshake).await else {
                return;
            };
            let (_, session) = stream.get_ref();
            let chain: Vec<_> = session
                .peer_certificates()
                .unwrap_or_default()
                .iter()
                .map(|der| der.clone().into_owned())
                .collect();
            let caller = who(&chain, &loaded, elects);
            let revoked = matches!(caller, Err(CallerError::Revoked { .. }));
            let door = Door { caller, local_names: false };
            let talk = talk(stream, door, service, stop, patience, limits);
            if revoked {
                // It hears why, and nothing else.
                return talk.await;
            }
            // One that may not come in any more is cut off, watches and all.
            tokio::select! {
                () = talk => {}
                () = tls.outlived(&chain) => {}
            }
        }
        // A unix socket has no TLS: `Listener::bind` gives it none.
        (Stream::Unix(_), Kind::Tls { .. }) => {}
    }
}

/// Who is at the other end, by the first of its certificates.
fn who(chain: &[CertificateDer<'static>], loaded: &Loaded, elects: bool) -> Result<Caller, CallerError> {
    let der = chain.first().ok_or(CallerError::Unreadable)?;
    match loaded.revoked.denies(der) {
        Some(name) => Err(CallerError::Revoked { name }),
        None => Caller::from_certificate(der, elects),
    }
}

async fn talk<I, S, B>(
    io: I,
    door: Door,
    service: S,
    mut stop: watch::Receiver<bool>,
    patience: Duration,
    limits: Limits,
) where
    I: AsyncRead + AsyncWrite + Send + Unpin + 'static,
    S: Service<Request<Incoming>, Response = Response<B>, Error = Infallible> + Clone + Send + 'static,
    S::Future: Send,
    B: Body<Data = Bytes> + Send + 'static,
    B::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
{
    let asked = Arc::new(Asked::default());
    let waiting = Arc::new(Waiting::default());
    let (heard, untaken) = (asked.clone(), waiting.clone());
    let answer = tower::service_fn(move |mut request: Request<Incoming>| {
        heard.mark();
        let (caller, service, untaken) = (door.who(&request), service.clone(), untaken.clone());
        async move {
            Ok::<_, Infallible>(match caller {
                Err(why) => {
                    body::forget(request.into_body()).await;
                    forbidden(&why)
                }
                Ok(caller) => {
                    request.extensions_mut().insert(caller);
                    let Ok(response) = service.oneshot(request).await;
                    response.map(|body| {
                        Paced::new(body.map_err(Into::into).boxed_unsync(), untaken).boxed_unsync()
                    })
                }
            })
        }
    });
    let builder = builder(limits);
    let mut conn = pin!(builder.serve_connection(TokioIo::new(io), TowerToHyperService::new(answer)));
    // hyper has no time limit while it tells HTTP/1.1 from HTTP/2.
    tokio::select! {
        _ = conn.as_mut() => return,
        () = asked.wait() => {}
        () = tokio::time::sleep(limits.first_request) => return,
        _ = stop.wait_for(|stop| *stop) => {}
    }
    tokio::select! {
        _ = conn.as_mut() => return,
        () = waiting.too_long(limits.untaken) => return,
        _ = stop.wait_for(|stop| *stop) => {}
    }
    conn.as_mut().graceful_shutdown();
    let _ = tokio::time::timeout(patience, conn).await;
}

fn builder(limits: Limits) -> auto::Builder<Guarded> {
    let mut builder = auto::Builder::new(Guarded);
    builder
        .http1()
        .timer(TokioTimer::new())
        .header_read_timeout(limits.next_request)
        .max_buf_size(HEAD)
        .max_headers(HEADERS);
    builder
        .http2()
        .timer(TokioTimer::new())
        .max_header_list_size(u32::try_from(HEAD).unwrap_or(u32::MAX))
        .max_concurrent_streams(STREAMS)
        .keep_alive_interval(PING)
        .keep_alive_timeout(PONG);
    builder
}

/// Where HTTP/2 does each request: a bug that one meets is its own.
#[derive(Clone)]
struct Guarded;

impl<F> Executor<F> for Guarded
where
    F: Future + Send + 'static,
    F::Output: Send,
{
    fn execute(&self, request: F) {
        tokio::spawn(async move { drop(guard::bit_by_bit(request).await) });
    }
}

/// Who comes in here.
#[derive(Clone)]
struct Door {
    caller: Result<Caller, CallerError>,
    /// Plain TCP: only requests to a name of this very host, and none of a web page's. A page that a user of this host looks at
    /// can have its own name resolved to loopback, or send to loopback what it likes without reading the answer; it would
    /// be as good as that user. Browsers say so in `Origin` with whatever can change something; nobody else does.
    local_names: bool,
}

impl Door {
    fn who(&self, request: &Request<Incoming>) -> Result<Caller, String> {
        if self.local_names && request.headers().contains_key(ORIGIN) {
            return Err("a web page may ask nothing here: the request has an Origin".to_owned());
        }
        let named = request.uri().authority().map(|authority| authority.as_str());
        let named = named.or_else(|| request.headers().get(HOST)?.to_str().ok());
        match named {
            Some(name) if self.local_names && !crate::http::is_local(name) => Err(format!(
                "{name:?} is not a name of this host: use localhost, or the address it listens on"
            )),
            _ => self.caller.clone().map_err(|error| error.to_string()),
        }
    }
}

/// Whether a request has come in.
#[derive(Default)]
struct Asked {
    yes: AtomicBool,
    notify: Notify,
}

impl Asked {
    fn mark(&self) {
        if !self.yes.swap(true, Ordering::AcqRel) {
            self.notify.notify_one();
        }
    }

    async fn wait(&self) {
        if !self.yes.load(Ordering::Acquire) {
            self.notify.notified().await;
        }
    }
}

/// What who may not come in hears, whatever it asks.
fn forbidden(why: &str) -> Response<Answer> {
    let status = json!({
        "kind": "Status",
        "apiVersion": "v1",
        "metadata": {},
        "status": "Failure",
        "message": why,
        "reason": "Forbidden",
        "details": {},
        "code": 403,
    });
    let body = Full::new(Bytes::from(status.to_string())).map_err(|never: Infallible| match never {});
    let mut response = Response::new(body.boxed_unsync());
    *response.status_mut() = StatusCode::FORBIDDEN;
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    response
}
