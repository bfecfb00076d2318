//! Answering over plain HTTP, for what a process tells of itself: health and metrics ([`crate::health`]), the page
//! ([`crate::page`]). The API has a server of its own ([`crate::embedded::listen`]).
//!
//! Bounded: so many connections, each with time-outs; who may stay for how long, [`Stay`] says. Cost: nothing while nobody asks.

use std::collections::VecDeque;
use std::convert::Infallible;
use std::fmt;
use std::future::Future;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::str::FromStr;
use std::time::Duration;

use bytes::Bytes;
use hyper::body::{Body, Incoming};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Request, Response};
use hyper_util::rt::{TokioIo, TokioTimer};
use nix::sys::socket::setsockopt;
use nix::sys::socket::sockopt::IpFreebind;
use thiserror::Error;
use tokio::net::{TcpListener, TcpSocket, TcpStream};
use tokio::task::{AbortHandle, JoinSet};
use tokio::time::Instant;

use crate::api::task::Task;
use crate::telemetry::warn;

/// From the connection, or the last answer, to a whole request.
const REQUEST: Duration = Duration::from_secs(30);
/// Connections that wait to be taken, as many as tokio's own listeners have.
const BACKLOG: u32 = 1024;
/// Long enough to be answered, for who asks as soon as it is connected: so long nobody has to go. And short enough that with sixteen
/// places all who wait in the backlog come by before a kubelet gives up.
const TURN: Duration = Duration::from_millis(50);
/// From one connection that can't be taken (no more files, say) to the next attempt.
const REST: Duration = Duration::from_secs(1);

/// Where to answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Address {
    Nowhere,
    At(SocketAddr),
}

/// Neither an address nor 'none'.
#[derive(Debug, Error)]
#[error("{0:?} is neither 'none' nor an address with a port, such as 127.0.0.1:9465 or [::1]:9465")]
pub(crate) struct NoAddress(String);

impl FromStr for Address {
    type Err = NoAddress;

    fn from_str(text: &str) -> Result<Self, NoAddress> {
        match text {
            "none" => Ok(Self::Nowhere),
            _ => {
                let address = text.parse().ok().or_else(|| bracketed(text));
                address.map(Self::At).ok_or_else(|| NoAddress(text.to_owned()))
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

/// `localhost`, `127.0.0.1`, `[::1]`, each with or without a port.
pub(crate) fn is_local(authority: &str) -> bool {
    let host = match authority.strip_prefix('[') {
        Some(rest) => rest.split(']').next().unwrap_or_default(),
        None => authority.split(':').next().unwrap_or_default(),
    };
    host.eq_ignore_ascii_case("localhost") || host.parse::<IpAddr>().is_ok_and(|ip| ip.is_loopback())
}

/// How long a connection may stay, and what becomes of one for which there is no place.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Stay {
    /// For one question, and no longer than this, whatever its client reads or sends. Where all places are taken the oldest goes: who
    /// comes is answered, however many say nothing.
    Brief(Duration),
    /// As long as its client likes: a stream goes on for days. Where all places are taken others wait.
    Long,
}

/// Answers until dropped.
pub(crate) struct Server {
    /// With the port that was taken.
    pub(crate) address: SocketAddr,
    _task: Task,
}

impl Server {
    /// So many connections at once.
    pub(crate) async fn start<A, F, B>(
        address: SocketAddr,
        at_once: usize,
        stay: Stay,
        answer: A,
    ) -> io::Result<Self>
    where
        A: Fn(Request<Incoming>) -> F + Clone + Send + Sync + 'static,
        F: Future<Output = Response<B>> + Send + 'static,
        B: Body<Data = Bytes, Error = Infallible> + Send + 'static,
    {
        let listener = match TcpListener::bind(address).await {
            Err(error) if error.kind() == io::ErrorKind::AddrNotAvailable => {
                warn(&format!("warning: {address} is no address of this host, or not yet; listening for it"));
                early(address)?
            }
            bound => bound?,
        };
        let address = listener.local_addr()?;
        Ok(Self { address, _task: Task::spawn(accept(listener, at_once, stay, answer)) })
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

async fn accept<A, F, B>(listener: TcpListener, at_once: usize, stay: Stay, answer: A)
where
    A: Fn(Request<Incoming>) -> F + Clone + Send + Sync + 'static,
    F: Future<Output = Response<B>> + Send + 'static,
    B: Body<Data = Bytes, Error = Infallible> + Send + 'static,
{
    // Connections end with the server.
    let mut talks = JoinSet::new();
    let mut brief = VecDeque::new();
    loop {
        while talks.try_join_next().is_some() {}
        while matches!(stay, Stay::Long) && talks.len() >= at_once {
            talks.join_next().await;
        }
        let stream = match listener.accept().await {
            Ok((stream, _)) => stream,
            Err(_) => {
                tokio::time::sleep(REST).await;
                continue;
            }
        };
        let talk = talk(stream, stay, answer.clone());
        match stay {
            Stay::Brief(most) => {
                make_room(&mut brief, at_once).await;
                let talk = talks.spawn(async move {
                    let _ = tokio::time::timeout(most, talk).await;
                });
                brief.push_back((Instant::now(), talk));
            }
            Stay::Long => {
                talks.spawn(talk);
            }
        }
    }
}

/// For one more: those that are over leave theirs, then the oldest, when it has had its turn.
async fn make_room(brief: &mut VecDeque<(Instant, AbortHandle)>, at_once: usize) {
    brief.retain(|(_, talk)| !talk.is_finished());
    while brief.len() >= at_once
        && let Some((since, oldest)) = brief.pop_front()
    {
        tokio::time::sleep_until(since + TURN).await;
        oldest.abort();
    }
}

async fn talk<A, F, B>(stream: TcpStream, stay: Stay, answer: A)
where
    A: Fn(Request<Incoming>) -> F,
    F: Future<Output = Response<B>>,
    B: Body<Data = Bytes, Error = Infallible> + 'static,
{
    let answer = service_fn(|request| {
        let answer = answer(request);
        async move { Ok::<_, Infallible>(answer.await) }
    });
    let mut http = http1::Builder::new();
    http.timer(TokioTimer::new()).header_read_timeout(REQUEST).max_buf_size(16 << 10);
    http.keep_alive(matches!(stay, Stay::Long));
    // What goes wrong on a connection is its client's to see.
    let _ = Box::pin(http.serve_connection(TokioIo::new(stream), answer)).await;
}
