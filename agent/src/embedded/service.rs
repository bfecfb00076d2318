//! From a request to an answer: which verb is meant, and what is answered outside of objects.

use std::sync::Arc;

use bytes::Bytes;
use hyper::body::Body;
use hyper::http::request::Parts;
use hyper::http::{Method, Request, Response, StatusCode, header};
use serde_json::json;

use super::answer::{self, Answer};
use super::bounds::{self, Verb};
use super::caller::Caller;
use super::query::Query;
use super::route::{self, Target};
use super::shape::Shape;
use super::status::Status;
use super::verbs::Call;
use super::{Inner, body, discovery, openapi};

/// Answers a request. Never fails: a refusal is an answer.
pub(super) async fn handle<B>(inner: Arc<Inner>, request: Request<B>) -> Response<Answer>
where
    B: Body<Data = Bytes> + Send + 'static,
    B::Error: std::fmt::Display,
{
    let (parts, body) = request.into_parts();
    if let Some(response) = outside(&parts) {
        return response;
    }
    let answered = objects(inner, parts, body).await;
    answered.unwrap_or_else(|status| answer::refusal(&status))
}

/// What is served besides objects.
fn outside(parts: &Parts) -> Option<Response<Answer>> {
    let path = parts.uri.path();
    let accept = parts.headers.get(header::ACCEPT).and_then(|value| value.to_str().ok()).unwrap_or_default();
    let first = path.split('/').nth(1).unwrap_or_default();
    let found = match first {
        "healthz" | "livez" | "readyz" => Some(answer::text(StatusCode::OK, "ok")),
        "version" if path == "/version" => Some(answer::json(StatusCode::OK, &version())),
        _ => discovery::answer(path, accept).or_else(|| openapi::answer(path, accept)),
    };
    let reads = matches!(parts.method, Method::GET | Method::HEAD);
    found.map(|response| if reads { response } else { answer::refusal(&Status::method_not_allowed()) })
}

/// What this speaks: clients compare it with their own version.
fn version() -> serde_json::Value {
    let (major, minor) = ("1", "36");
    json!({
        "major": major, "minor": minor,
        "gitVersion": format!("v{major}.{minor}.0+berth.{}", env!("CARGO_PKG_VERSION")),
        "gitCommit": "", "gitTreeState": "clean", "buildDate": "1970-01-01T00:00:00Z", "goVersion": "",
        "compiler": "rustc", "platform": format!("{}/{}", std::env::consts::OS, std::env::consts::ARCH),
    })
}

async fn objects<B>(inner: Arc<Inner>, parts: Parts, body: B) -> Result<Response<Answer>, Status>
where
    B: Body<Data = Bytes> + Send + 'static,
    B::Error: std::fmt::Display,
{
    let target = route::target(parts.uri.path())?;
    let query = Query::parse(parts.uri.query().unwrap_or_default())?;
    let watches = target.watch || query.flag("watch")?;
    let verb = verb(&parts.method, &target, watches)?;
    let call = Call {
        inner,
        shape: Shape::wanted(&parts.headers, &query)?,
        target,
        query,
        caller: Caller::of(&parts.extensions),
        headers: parts.headers,
    };
    bounds::may_ask(&call.asked(verb))?;
    match verb {
        Verb::Get => call.get(),
        Verb::List => call.list(),
        Verb::Watch => call.watch(),
        Verb::Create => call.create(&body::read(body).await?).await,
        Verb::Update => call.update(&body::read(body).await?).await,
        Verb::Patch => call.patch(&body::read(body).await?).await,
        Verb::Delete => call.delete(&body::read(body).await?).await,
        Verb::DeleteCollection => call.delete_collection(&body::read(body).await?).await,
    }
}

fn verb(method: &Method, target: &Target, watches: bool) -> Result<Verb, Status> {
    let one = target.name.is_some();
    let ours = target.resource.ours.is_some();
    // Something new, and a collection's end, are asked of one namespace.
    let whole = !target.resource.namespaced || target.namespace.is_some();
    match *method {
        Method::GET if watches && !target.status => Ok(Verb::Watch),
        _ if target.watch => Err(Status::method_not_allowed()),
        Method::GET if one => Ok(Verb::Get),
        Method::GET => Ok(Verb::List),
        Method::POST if whole && !target.status && (ours || !one) => Ok(Verb::Create),
        Method::PUT if one => Ok(Verb::Update),
        Method::PATCH if one => Ok(Verb::Patch),
        // kube-apiserver looks for the name first where a kind comes of a CRD, and for the method elsewhere.
        Method::PUT | Method::PATCH if ours => Err(Status::bad_request("name must be provided")),
        Method::DELETE if one && !target.status => Ok(Verb::Delete),
        Method::DELETE if !one && whole => Ok(Verb::DeleteCollection),
        _ => Err(Status::method_not_allowed()),
    }
}
