//! `/healthz`, `/readyz` and `/metrics` over plain HTTP, for kubelets, systemd users and Prometheus.
//!
//! Only reading, nothing secret: names of pools and nodes, counts. Loopback unless somebody asks for more. Bounded:
//! [`AT_ONCE`] connections of [`MOST`] each, and a kubelet is answered however many there are.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http_body_util::Full;
use hyper::header::{ALLOW, CONTENT_TYPE, HeaderValue};
use hyper::{Method, Response, StatusCode};
use thiserror::Error;

use super::Health;
use crate::http::{Server, Stay};
use crate::metrics;

/// A Prometheus or two, a kubelet, and a person: with more the oldest goes.
pub(super) const AT_ONCE: usize = 16;
/// From a connection to the end of its answer: as long as Prometheus waits unless told otherwise, and twice as long as a kubelet does.
const MOST: Duration = Duration::from_secs(10);

/// Why nobody can be answered.
#[derive(Debug, Error)]
#[error(
    "can't listen on {address} for /healthz, /readyz and /metrics; give another --health-address, or 'none'"
)]
pub(crate) struct ServeError {
    address: SocketAddr,
    source: io::Error,
}

/// Answers until the server is dropped.
pub(crate) async fn start(address: SocketAddr, health: Arc<Health>) -> Result<Server, ServeError> {
    let answer = move |request: hyper::Request<hyper::body::Incoming>| {
        let answer = answer(request.method(), request.uri().path(), &health);
        async move { answer }
    };
    let stay = Stay::Brief(MOST);
    Server::start(address, AT_ONCE, stay, answer).await.map_err(|source| ServeError { address, source })
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

/// A line, and one for each right that is lacking and for what the API leaves out.
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
