//! A page to look at: every pool as a grid of its addresses, who holds which, and how policies get on.
//!
//! `berth controller` and `berth serve` offer it, on loopback unless told otherwise. One document without anything from
//! elsewhere, that asks for JSON: the list of pools, a map of at most [`view::CELLS`] cells, what an address has been
//! through, policies, a search; and listens for the word that something changed (`/stream`), upon which it asks again for
//! what it shows. Must never write anything to the API but questions about who is looking ([`gate`]).
//!
//! Costs: nothing while nobody looks. The first look begins five watches (pools, slices, policies, enactments, and ServiceCIDRs
//! where the API has them), which end a minute after the last. A change of a pool that is looked at is read once, whoever
//! looks: O(ledger). A map is O(cells + held addresses in it), whatever the size of the range.

mod gate;
mod history;
mod seen;
#[cfg(test)]
mod tests;
mod told;
mod view;

use std::convert::Infallible;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt, Full, StreamBody};
use hyper::body::{Frame, Incoming};
use hyper::header::{self, HeaderName, HeaderValue};
use hyper::{Method, Request, Response, StatusCode};
use ipnet::IpNet;
use kube::Client;
use serde_json::{Value, json};
use thiserror::Error;

use crate::api::random;
use crate::http::{Server, Stay};
use gate::{Gate, Refused};
use seen::{Seen, Sight};

/// The whole page. `NONCE` stands where this answer's own is put: nothing else in it may run.
const PAGE: &str = include_str!("page/page.html");
const NONCE: &str = "@NONCE@";

/// A few people, each with a stream and a request or two: others wait.
const AT_ONCE: usize = 64;
/// Changes are told this often at the most.
const PACE: Duration = Duration::from_millis(250);
/// A stream that is silent for this long says that it is there: whoever is between must not close it.
const ALIVE: Duration = Duration::from_secs(15);

/// Why nobody can look.
#[derive(Debug, Error)]
#[error("can't listen on {address} for the page; give another --page-address, or 'none'")]
pub(crate) struct PageError {
    address: SocketAddr,
    source: io::Error,
}

type Answer = Response<UnsyncBoxBody<Bytes, Infallible>>;

/// Offers the page until the server is dropped. `exclude`: what this process's settings say that no pool gives of.
pub(crate) async fn start(
    address: SocketAddr,
    client: Client,
    exclude: Vec<IpNet>,
) -> Result<Server, PageError> {
    let page =
        Arc::new(Page { gate: Gate::new(address, client.clone()), sight: Sight::new(client, exclude) });
    let answer = move |request: Request<Incoming>| {
        let page = page.clone();
        async move { page.answer(&request).await }
    };
    Server::start(address, AT_ONCE, Stay::Long, answer).await.map_err(|source| PageError { address, source })
}

struct Page {
    gate: Gate,
    sight: Sight,
}

impl Page {
    async fn answer<B>(&self, request: &Request<B>) -> Answer {
        if let Err(refused) = self.gate.knock(request) {
            return refuse(&refused);
        }
        if !matches!(*request.method(), Method::GET | Method::HEAD) {
            let mut answer = text(StatusCode::METHOD_NOT_ALLOWED, "only GET\n");
            answer.headers_mut().insert(header::ALLOW, HeaderValue::from_static("GET, HEAD"));
            return answer;
        }
        if request.uri().path() == "/" {
            return document();
        }
        // What is in the document is no secret; what it asks for may be.
        if let Err(refused) = self.gate.admit(request).await {
            return refuse(&refused);
        }
        let seen = match self.sight.look().await {
            Ok(seen) => seen,
            Err(why) => return text(StatusCode::SERVICE_UNAVAILABLE, why + "\n"),
        };
        let asked = Asked::of(request.uri().query().unwrap_or_default());
        match request.uri().path() {
            "/pools" => found(Some(view::pools(&seen))),
            "/map" => found(view::map(&seen, &asked)),
            "/address" => {
                let told = seen.told(asked.get("pool")).await;
                found(view::address(&seen, &asked, &told))
            }
            "/policies" => found(Some(view::policies(&seen))),
            "/search" => found(Some(view::search(&seen, asked.get("q")))),
            "/stream" => stream(seen),
            _ => text(StatusCode::NOT_FOUND, "there is no such page; there is /\n"),
        }
    }
}

/// What stands after the `?`.
struct Asked(Vec<(String, String)>);

impl Asked {
    fn of(query: &str) -> Self {
        let pairs = query.split('&').filter_map(|pair| pair.split_once('='));
        Self(pairs.map(|(key, value)| (key.to_owned(), unescaped(value))).collect())
    }

    /// Nothing is as good as an empty word.
    fn get(&self, key: &str) -> &str {
        self.0.iter().find(|(name, _)| name == key).map_or("", |(_, value)| value)
    }
}

/// `%20` and `+` as they are meant; what is no escape stays as it is.
fn unescaped(text: &str) -> String {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((first, after)) = rest.split_first() {
        let escaped = after.get(..2).filter(|_| *first == b'%');
        let escaped = escaped.and_then(|two| u8::from_str_radix(std::str::from_utf8(two).ok()?, 16).ok());
        rest = if escaped.is_some() { &after[2..] } else { after };
        bytes.push(escaped.unwrap_or(if *first == b'+' { b' ' } else { *first }));
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

/// That something changed, again and again; never what, since whoever hears it looks anyway.
fn stream(seen: Arc<Seen>) -> Answer {
    let first = futures_util::stream::iter([told("retry: 2000\n")]);
    let changes = futures_util::stream::unfold((seen.changes(), seen), |(mut changes, seen)| async move {
        let word = match tokio::time::timeout(ALIVE, changes.changed()).await {
            Ok(Ok(())) => {
                tokio::time::sleep(PACE).await;
                format!("data: {}\n\n", *changes.borrow_and_update())
            }
            Ok(Err(_)) => return None,
            Err(_) => ": still here\n\n".to_owned(),
        };
        Some((told(&word), (changes, seen)))
    });
    let body = StreamBody::new(futures_util::StreamExt::chain(first, changes)).boxed_unsync();
    with(Response::new(body), "text/event-stream")
}

fn told(words: &str) -> Result<Frame<Bytes>, Infallible> {
    Ok(Frame::data(Bytes::from(words.to_owned())))
}

fn document() -> Answer {
    let nonce = random::id();
    let mut answer = whole(StatusCode::OK, "text/html; charset=utf-8", PAGE.replace(NONCE, &nonce));
    let policy = format!(
        "default-src 'none'; script-src 'nonce-{nonce}'; style-src 'nonce-{nonce}'; connect-src 'self'; img-src data:; \
         base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
    );
    if let Ok(policy) = HeaderValue::from_str(&policy) {
        answer.headers_mut().insert(header::CONTENT_SECURITY_POLICY, policy);
    }
    answer
}

fn found(value: Option<Value>) -> Answer {
    match value {
        Some(value) => whole(StatusCode::OK, "application/json", value.to_string()),
        None => {
            let none = json!({"message": "there is no such thing, or no longer"});
            whole(StatusCode::NOT_FOUND, "application/json", none.to_string())
        }
    }
}

fn refuse(refused: &Refused) -> Answer {
    let code = match refused {
        Refused::Host { .. } | Refused::Forbidden { .. } => StatusCode::FORBIDDEN,
        Refused::Token => StatusCode::UNAUTHORIZED,
        Refused::Away { .. } => StatusCode::SERVICE_UNAVAILABLE,
    };
    let mut answer = text(code, format!("{refused}\n"));
    if code == StatusCode::UNAUTHORIZED {
        answer.headers_mut().insert(header::WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
    }
    answer
}

fn text(code: StatusCode, words: impl Into<String>) -> Answer {
    whole(code, "text/plain; charset=utf-8", words.into())
}

fn whole(code: StatusCode, kind: &'static str, words: String) -> Answer {
    let mut answer = Response::new(Full::new(Bytes::from(words)).boxed_unsync());
    *answer.status_mut() = code;
    with(answer, kind)
}

/// Nothing is kept by anybody, and nothing is what it doesn't say it is.
fn with(mut answer: Answer, kind: &'static str) -> Answer {
    let headers = [
        (header::CONTENT_TYPE, kind),
        (header::CACHE_CONTROL, "no-store"),
        (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
        (header::REFERRER_POLICY, "no-referrer"),
        (HeaderName::from_static("cross-origin-resource-policy"), "same-origin"),
    ];
    for (name, value) in headers {
        answer.headers_mut().insert(name, HeaderValue::from_static(value));
    }
    answer
}
