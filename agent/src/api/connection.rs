//! Connections to the API server, and how long they may be silent before they count as dead.
//!
//! Whoever waits for an answer that never comes must notice by itself: where packets are lost no word comes that they are.
//! A watch is the worst case, since it never says anything: a server that was replaced, or something on the way that has
//! forgotten the connection, leaves it deaf. So the kernel asks on every connection that is silent whether the other end is
//! still there (`IDLE`, `BETWEEN`), and ends it when nothing was acknowledged for `DEAD`. That is seen within half a
//! minute, by the watch as an error, after which it is taken up on another connection. Used by agent and controller, through
//! `cli::client`; everything above it sees errors of `kube` and nothing else.
//!
//! A proxy on the way acknowledges in place of the server behind it: there [`watched`](super::watched) has its own patience.
//! And a server that is stopped acknowledges too, by its kernel: an answer that doesn't begin, or stops in the middle, is given
//! up after `ANSWER`.
//!
//! And what is nested too deeply to be read is left out of answers on the way (`shallow`).
//!
//! Cost: two packets of some fifty bytes in `IDLE` for each silent connection, sent and answered by the kernels alone: a
//! thousand agents with five watches each are 330 of these a second at the API server, and no request. Nobody is woken.

mod shallow;
#[cfg(test)]
mod tests;
mod token;

use std::future::Future;
use std::path::PathBuf;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use hyper::body::{Body as HttpBody, Frame, SizeHint};
use hyper::http::header::{HOST, HeaderValue};
use hyper::http::{Request, Response};
use hyper_util::client::legacy;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::{TokioExecutor, TokioIo};
use kube::client::retry::RetryPolicy;
use kube::client::{Body, ClientBuilder, ConfigExt};
use kube::{Client, Config};
use tokio::net::UnixStream;
use tokio::time::{Instant, Sleep};
use tower::retry::RetryLayer;
use tower::util::{Either, option_layer};
use tower::{BoxError, Layer, Service, ServiceExt};

use super::rights::{Noting, Rights};
use shallow::Shallow;
use token::Bearer;

/// How long an answer may take to begin, and its parts to follow: what takes longer is as good as away, and every write is
/// guarded, so asking again does no harm. Watches begin as fast as everything else, and then last.
const ANSWER: Duration = Duration::from_secs(15);
/// After so long without a word the kernel asks whether the other end is there. As long as Go's programs wait, `kubelet` and
/// `kubectl` among them: whatever is on the way is used to it.
const IDLE: Duration = Duration::from_secs(15);
/// … and then so often.
const BETWEEN: Duration = Duration::from_secs(5);
/// After so long without an acknowledgement, of these questions or of anything that was sent, the connection is dead. Three
/// questions, so that a lost packet or two end nothing; and little of the minute in which a host that was cut off has to be
/// back at work.
const DEAD: Duration = Duration::from_secs(30);
const QUESTIONS: u32 = 3;

/// A client for this API. What it lacks is noted in `rights`.
pub fn client(mut config: Config, rights: Arc<Rights>) -> Result<Client, kube::Error> {
    // Refused there, in words: no proxy is built in.
    if config.proxy_url.is_some() {
        return ClientBuilder::try_from(config).map(ClientBuilder::build);
    }
    // Nobody is to be known by a certificate: else all that this host trusts, a hundred and more, would be read and kept.
    if config.cluster_url.scheme_str() == Some("http") {
        config.root_cert.get_or_insert_default();
    }
    let tls = config.rustls_https_connector_with_connector(connector(&config))?;
    let http: legacy::Client<_, Body> = legacy::Builder::new(TokioExecutor::new()).build(tls);
    let http = config.extra_headers_layer()?.layer(http.map_err(BoxError::from));
    let authorized = match token::file_of(&config.auth_info) {
        Some(file) => Either::Left(Bearer::new(http, &file)),
        None => Either::Right(option_layer(config.auth_layer()?).layer(http)),
    };
    let retries = config.default_retry.then(|| RetryLayer::new(RetryPolicy::server_retry()));
    let service = config.base_uri_layer().layer(option_layer(retries).layer(authorized));
    let noting = Noting::new(Patient(service.map_err(BoxError::from)), rights);
    Ok(ClientBuilder::new(noting, config.default_namespace).build())
}

/// A client of a 'berth serve' on this host, for people: a connection for each request, since a person asks for few.
pub fn over_socket(socket: PathBuf) -> Client {
    let service = tower::service_fn(move |mut request: Request<Body>| {
        let socket = socket.clone();
        async move {
            let at = || format!("unix:{}", socket.display());
            let stream = UnixStream::connect(&socket).await.map_err(|error| format!("{}: {error}", at()))?;
            let (mut sender, connection) =
                hyper::client::conn::http1::handshake(TokioIo::new(stream)).await?;
            tokio::spawn(connection);
            request.headers_mut().insert(HOST, HeaderValue::from_static("localhost"));
            Ok::<_, BoxError>(sender.send_request(request).await?)
        }
    });
    Client::new(Patient(service), "default")
}

/// Where connections come from.
fn connector(config: &Config) -> HttpConnector {
    let mut connector = HttpConnector::new();
    connector.enforce_http(false);
    connector.set_connect_timeout(config.connect_timeout);
    connector.set_keepalive(Some(IDLE));
    connector.set_keepalive_interval(Some(BETWEEN));
    connector.set_keepalive_retries(Some(QUESTIONS));
    connector.set_tcp_user_timeout(Some(DEAD));
    connector
}

/// A service whose answers must begin in time, and go on: one that takes a request and never answers is as good as away.
#[derive(Clone)]
struct Patient<S>(S);

impl<S, B> Service<Request<Body>> for Patient<S>
where
    S: Service<Request<Body>, Response = Response<B>, Error = BoxError>,
    S::Future: Send + 'static,
    B: 'static,
{
    type Response = Response<Timely<B>>;
    type Error = BoxError;
    type Future = Pin<Box<dyn Future<Output = Result<Response<Timely<B>>, BoxError>> + Send>>;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        self.0.poll_ready(context)
    }

    fn call(&mut self, request: Request<Body>) -> Self::Future {
        // A watch is silent for as long as nothing happens.
        let query = request.uri().query().unwrap_or_default();
        let limit = (!query.split('&').any(|part| part.starts_with("watch="))).then_some(ANSWER);
        let answer = self.0.call(request);
        Box::pin(async move {
            match tokio::time::timeout(ANSWER, answer).await {
                Ok(answer) => Ok(answer?.map(|body| Timely::new(body, limit))),
                Err(_) => Err(late("no answer")),
            }
        })
    }
}

fn late(what: &str) -> BoxError {
    format!("{what} within {} s", ANSWER.as_secs()).into()
}

/// An answer whose parts must follow each other in time, if there is a limit, no deeper than it can be read.
struct Timely<B> {
    body: Pin<Box<B>>,
    shallow: Shallow,
    wait: Option<(Duration, Pin<Box<Sleep>>)>,
}

impl<B> Timely<B> {
    fn new(body: B, limit: Option<Duration>) -> Self {
        let wait = limit.map(|limit| (limit, Box::pin(tokio::time::sleep(limit))));
        Self { body: Box::pin(body), shallow: Shallow::default(), wait }
    }
}

impl<B> HttpBody for Timely<B>
where
    B: HttpBody<Data = Bytes>,
    B::Error: Into<BoxError>,
{
    type Data = Bytes;
    type Error = BoxError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BoxError>>> {
        let part = self.body.as_mut().poll_frame(context);
        let shallow = &mut self.shallow;
        let part = part.map_ok(|frame| frame.map_data(|data| shallow.part(data)));
        let Some((limit, wait)) = &mut self.wait else { return part.map_err(Into::into) };
        match part {
            Poll::Ready(part) => {
                wait.as_mut().reset(Instant::now() + *limit);
                Poll::Ready(part.map(|part| part.map_err(Into::into)))
            }
            Poll::Pending => wait.as_mut().poll(context).map(|()| Some(Err(late("no more of the answer")))),
        }
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    /// At most as long as it comes.
    fn size_hint(&self) -> SizeHint {
        let mut hint = SizeHint::new();
        if let Some(upper) = self.body.size_hint().upper() {
            hint.set_upper(upper);
        }
        hint
    }
}
