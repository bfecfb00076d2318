//! Ways into the API from outside the process: a unix socket, plain TCP on loopback, TCP with TLS.
//!
//! Owns sockets, connections and their bounds; serves any tower service, puts the [`Caller`] into each request and knows
//! nothing of what is asked. Called by `berth serve`. Must never serve plain TCP beyond loopback, nor answer over
//! TLS to a certificate that is nobody's.
//!
//! Cost: per connection a task and two buffers, bounded as `conn` argues; nothing is written to disk.

mod address;
mod conn;
mod pace;
#[cfg(test)]
mod tests;
mod unix;

use std::convert::Infallible;
use std::fmt;
use std::io;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http_body_util::combinators::UnsyncBoxBody;
use hyper::body::{Body, Incoming};
use hyper::{Request, Response};
use nix::sys::socket::{setsockopt, sockopt};
use thiserror::Error;
use tokio::net::{TcpListener, UnixListener};
use tokio::sync::{Semaphore, watch};
use tower::Service;

use super::caller::Caller;
use super::guard;
use super::tls::Tls;
pub use address::{Address, AddressError};
use conn::{Kind, Stream};
use unix::Socket;

/// What a listener bears, and how long it waits for clients that say nothing.
#[derive(Debug, Clone, Copy)]
struct Limits {
    connections: usize,
    handshake: Duration,
    first_request: Duration,
    next_request: Duration,
    untaken: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            connections: CONNECTIONS,
            handshake: conn::HANDSHAKE,
            first_request: conn::FIRST_REQUEST,
            next_request: conn::NEXT_REQUEST,
            untaken: conn::UNTAKEN,
        }
    }
}

/// How many connections a listener has at once; more wait in the kernel's queue. An agent has one over HTTP/2, about
/// four over HTTP/1.1: enough for the thousand hosts that one server is meant for. An idle one costs some 30 KiB, so all
/// of them 120 MiB. Each listener has its own count: the unix socket answers also when TCP is full.
const CONNECTIONS: usize = 4096;

/// After an accept that failed (no file descriptor left, most likely): time for one to come free.
const BREATH: Duration = Duration::from_millis(100);

/// Why nobody can come in.
#[derive(Debug, Error)]
pub enum ListenError {
    #[error(
        "--listen {address}: plain TCP is for loopback only, for whoever reaches it may do everything; give --tls-cert, --tls-key and --client-ca ('berth serve pki init' makes them), or listen on 127.0.0.1 or unix:PATH"
    )]
    PlainBeyondLoopback { address: String },
    #[error("--listen {address}: the name can't be resolved")]
    Resolve { address: String, source: io::Error },
    #[error("--listen {address}: can't listen there")]
    Bind { address: String, source: io::Error },
    #[error("--listen unix:{path}: another server listens there; stop it, or give another path")]
    Live { path: PathBuf },
    #[error("--listen unix:{path}: there is something that is no socket; move it away, or give another path")]
    NotASocket { path: PathBuf },
}

/// A socket that listens, and how it is spoken to.
pub struct Listener {
    socket: Bound,
    tls: Option<Tls>,
    elects: bool,
    limits: Limits,
}

enum Bound {
    Tcp(TcpListener, SocketAddr),
    Unix(UnixListener, Socket),
}

/// Where a listener ended up.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Place {
    Unix(PathBuf),
    /// Plain HTTP.
    Plain(SocketAddr),
    Tls(SocketAddr),
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unix(path) => write!(f, "unix:{}", path.display()),
            Self::Plain(at) => write!(f, "http://{at}"),
            Self::Tls(at) => write!(f, "https://{at}"),
        }
    }
}

impl Listener {
    /// Binds. With `tls` every TCP address speaks it, loopback too; without it only loopback is served. With `elects`
    /// hosts have a controller's rights.
    pub async fn bind(address: &Address, tls: Option<&Tls>, elects: bool) -> Result<Self, ListenError> {
        let limits = Limits::default();
        let (socket, tls) = match address {
            Address::Unix(path) => {
                let (listener, socket) = unix::bind(path)?;
                (Bound::Unix(listener, socket), None)
            }
            Address::Tcp { host, port } => (tcp(address, host, *port, tls.is_some()).await?, tls.cloned()),
        };
        Ok(Self { socket, tls, elects, limits })
    }

    /// Where it listens, with the port that was found.
    pub fn place(&self) -> Place {
        match (&self.socket, &self.tls) {
            (Bound::Unix(_, socket), _) => Place::Unix(socket.path().to_owned()),
            (Bound::Tcp(_, at), Some(_)) => Place::Tls(*at),
            (Bound::Tcp(_, at), None) => Place::Plain(*at),
        }
    }

    /// Serves until `stop` says so, then lets requests under way finish, for `patience` at most.
    pub async fn serve<S, B>(self, service: S, mut stop: watch::Receiver<bool>, patience: Duration)
    where
        S: Service<Request<Incoming>, Response = Response<B>, Error = Infallible> + Clone + Send + 'static,
        S::Future: Send,
        B: Body<Data = Bytes> + Send + 'static,
        B::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
    {
        let slots = Arc::new(Semaphore::new(self.limits.connections));
        loop {
            let slot = tokio::select! {
                _ = stop.wait_for(|stop| *stop) => break,
                slot = slots.clone().acquire_owned() => slot,
            };
            // Nobody closes the semaphore.
            let Ok(slot) = slot else { break };
            let stream = tokio::select! {
                _ = stop.wait_for(|stop| *stop) => break,
                stream = self.accept() => stream,
            };
            let Ok(stream) = stream else {
                tokio::time::sleep(BREATH).await;
                continue;
            };
            let kind = match &self.tls {
                Some(tls) => Kind::Tls { tls: tls.clone(), elects: self.elects },
                None => Kind::Plain(Caller::Everything),
            };
            let (service, stop, limits) = (service.clone(), stop.clone(), self.limits);
            tokio::spawn(async move {
                // A bug that one connection meets is its own.
                let _ = guard::bit_by_bit(conn::serve(stream, kind, service, stop, patience, limits)).await;
                drop(slot);
            });
        }
        // From here on a client is refused, not left waiting.
        drop(self.socket);
        // All slots free: every connection has ended, each within its patience.
        let all = u32::try_from(self.limits.connections).unwrap_or(u32::MAX);
        let _ = tokio::time::timeout(patience + BREATH, slots.acquire_many(all)).await;
    }

    async fn accept(&self) -> io::Result<Stream> {
        match &self.socket {
            Bound::Unix(listener, _) => Ok(Stream::Unix(listener.accept().await?.0)),
            Bound::Tcp(listener, _) => {
                let (stream, _) = listener.accept().await?;
                // An answer is written at once and whole: nothing to wait for. Peers that vanished are noticed.
                stream.set_nodelay(true)?;
                setsockopt(&stream, sockopt::KeepAlive, &true)?;
                Ok(Stream::Tcp(stream))
            }
        }
    }
}

async fn tcp(address: &Address, host: &str, port: u16, tls: bool) -> Result<Bound, ListenError> {
    let address = address.to_string();
    let found = tokio::net::lookup_host((host, port)).await;
    let found: Vec<SocketAddr> = match found {
        Ok(found) => found.collect(),
        Err(source) => return Err(ListenError::Resolve { address, source }),
    };
    if !tls && !found.iter().all(|at| at.ip().is_loopback()) {
        return Err(ListenError::PlainBeyondLoopback { address });
    }
    let bound = TcpListener::bind(found.as_slice()).await;
    match bound.and_then(|listener| listener.local_addr().map(|at| (listener, at))) {
        Ok((listener, at)) => Ok(Bound::Tcp(listener, at)),
        Err(source) => Err(ListenError::Bind { address, source }),
    }
}

/// Any body as one type, so that refusals and answers are the same to hyper.
type Answer = UnsyncBoxBody<Bytes, Box<dyn std::error::Error + Send + Sync>>;
