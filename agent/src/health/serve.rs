//! `/healthz`, `/readyz` and `/metrics` over plain HTTP, for kubelets, systemd users and Prometheus.
//!
//! Only reading, nothing secret: names of pools and nodes, counts. Loopback unless somebody asks for more. Bounded:
//! [`AT_ONCE`] connections, each with time-outs. Cost: nothing while nobody asks.

use std::convert::Infallible;
use std::fmt;
use std::io;
use std::net::SocketAddr;
use std::str::FromStr;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http_body_util::Full;
use hyper::body::Incoming;
use hyper::header::{ALLOW, CONTENT_TYPE, HeaderValue};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Method, Request, Response, StatusCode};
use hyper_util::rt::{TokioIo, TokioTimer};
use nix::sys::socket::setsockopt;
use nix::sys::socket::sockopt::IpFreebind;
use thiserror::Error;
use tokio::net::{TcpListener, TcpSocket};
use tokio::sync::Semaphore;

use super::Health;
use crate::api::task::Task;
use crate::metrics;
use crate::telemetry::warn;

/// A Prometheus or two, a kubelet, and a person: others wait.
const AT_ONCE: usize = 16;
/// From the connection, or the last answer, to a whole request.
const REQUEST: Duration = Duration::from_secs(30);
/// Connections that wait to be taken, as many as tokio's own listeners have.
const BACKLOG: u32 = 1024;
/// From one connection that can't be taken (no more files, say) to the next attempt.
const REST: Duration = Duration::from_secs(1);

/// Where to answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Address {
    Nowhere,
    At(SocketAddr),
}

/// Why nobody can be answered.
#[derive(Debug, Error)]
pub(crate) enum ServeError {
    #[error("{text:?} is neither 'none' nor an address with a port, such as 127.0.0.1:9465 or [::1]:9465")]
    Address { text: String },
    #[error(
        "can't listen on {address} for /healthz, /readyz and /metrics; give another --health-address, or 'none'"
    )]
    Listen { address: SocketAddr, source: io::Error },
}

impl FromStr for Address {
    type Err = ServeError;

    fn from_str(text: &str) -> Result<Self, ServeError> {
        match text {
            "none" => Ok(Self::Nowhere),
            _ => {
                let address = text.parse().ok().or_else(|| bracketed(text));
                address.map(Self::At).ok_or_else(|| ServeError::Address { text: text.to_owned() })
            }
        }
    }
}

/// An IPv4 address in brackets: a manifest (`[$(POD_IP)]:9466`) can't know of which family its pod's address will be.
fn bracketed(text: &str) -> Option<SocketAddr> {
    let (address, port) = text.strip_prefix('[')?.split_once("]:")?;
    Some(SocketAddr::new(address.parse().ok()?, port.parse().ok()?))
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Nowhere => f.write_str("none"),
            Self::At(address) => address.fmt(f),
        }
    }
}

/// Answers until dropped.
pub(crate) struct Server {
    /// With the port that was taken.
    pub(crate) address: SocketAddr,
    _task: Task,
}

impl Server {
    pub(crate) async fn start(address: SocketAddr, health: Arc<Health>) -> Result<Self, ServeError> {
        let wrong = |source| ServeError::Listen { address, source };
        let listener = match TcpListener::bind(address).await {
            Err(error) if error.kind() == io::ErrorKind::AddrNotAvailable => {
                warn(&format!("warning: {address} is no address of this host, or not yet; listening for it"));
                early(address).map_err(wrong)?
            }
            bound => bound.map_err(wrong)?,
        };
        let address = listener.local_addr().map_err(wrong)?;
        Ok(Self { address, _task: Task::spawn(accept(listener, health)) })
    }
}

/// Listens on an address that isn't there: after a boot, or while a bridge takes over its card's address, it may be this very
/// process that is to put it there.
fn early(address: SocketAddr) -> io::Result<TcpListener> {
    let socket = if address.is_ipv4() { TcpSocket::new_v4()? } else { TcpSocket::new_v6()? };
    socket.set_reuseaddr(true)?;
    setsockopt(&socket, IpFreebind, &true)?;
    socket.bind(address)?;
    socket.listen(BACKLOG)
}

async fn accept(listener: TcpListener, health: Arc<Health>) {
    let room = Arc::new(Semaphore::new(AT_ONCE));
    // Connections end with the server.
    let mut talks = tokio::task::JoinSet::new();
    loop {
        while talks.try_join_next().is_some() {}
        let Ok(place) = room.clone().acquire_owned().await else { return };
        let stream = match listener.accept().await {
            Ok((stream, _)) => stream,
            Err(_) => {
                tokio::time::sleep(REST).await;
                continue;
            }
        };
        let health = health.clone();
        talks.spawn(async move {
            let answer = service_fn(|request: Request<Incoming>| {
                let answer = answer(request.method(), request.uri().path(), &health);
                async move { Ok::<_, Infallible>(answer) }
            });
            let mut http = http1::Builder::new();
            http.timer(TokioTimer::new()).header_read_timeout(REQUEST).max_buf_size(16 << 10);
            // What goes wrong on a connection is its client's to see.
            let _ = http.serve_connection(TokioIo::new(stream), answer).await;
            drop(place);
        });
    }
}

fn answer(method: &Method, path: &str, health: &Health) -> Response<Full<Bytes>> {
    let judged = |is: bool, otherwise: &str| match is {
        true => text(StatusCode::OK, told("ok", health)),
        false => text(StatusCode::SERVICE_UNAVAILABLE, told(otherwise, health)),
    };
    if !matches!(*method, Method::GET | Method::HEAD) {
        let mut answer = text(StatusCode::METHOD_NOT_ALLOWED, "only GET\n".to_owned());
        answer.headers_mut().insert(ALLOW, HeaderValue::from_static("GET, HEAD"));
        return answer;
    }
    match path {
        "/healthz" | "/livez" => judged(
            health.is_alive(),
            &format!("the loop has shown no sign of life for {} s", health.limit().as_secs()),
        ),
        "/readyz" => judged(
            health.is_ready(),
            "not everything has been read from the API, or the first pass is not over",
        ),
        "/metrics" => {
            let mut page = text(StatusCode::OK, metrics::page());
            let kind = HeaderValue::from_static("text/plain; version=0.0.4; charset=utf-8");
            page.headers_mut().insert(CONTENT_TYPE, kind);
            page
        }
        _ => text(StatusCode::NOT_FOUND, "there is /healthz, /readyz and /metrics\n".to_owned()),
    }
}

/// A line, and one for each right that is lacking.
fn told(first: &str, health: &Health) -> String {
    let lines = std::iter::once(first.to_owned()).chain(health.lacking());
    lines.map(|line| line + "\n").collect()
}

fn text(code: StatusCode, text: String) -> Response<Full<Bytes>> {
    let mut answer = Response::new(Full::new(Bytes::from(text)));
    *answer.status_mut() = code;
    answer.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("text/plain; charset=utf-8"));
    answer
}
