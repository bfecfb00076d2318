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
    let answered = match outside(&inner, &parts).await {
        Some(response) if reads(&parts) => return response,
        Some(_) => Err(Status::method_not_allowed()),
        None => asked(inner, parts),
    };
    let (call, verb) = match answered {
        Ok(asked) => asked,
        Err(status) => {
            body::forget(body).await;
            return answer::refusal(&status);
        }
    };
    objects(call, verb, body).await.unwrap_or_else(|status| answer::refusal(&status))
}

fn reads(parts: &Parts) -> bool {
    matches!(parts.method, Method::GET | Method::HEAD)
}

/// What is served besides objects.
async fn outside(inner: &Inner, parts: &Parts) -> Option<Response<Answer>> {
    let path = parts.uri.path();
    let accept = parts.headers.get(header::ACCEPT).and_then(|value| value.to_str().ok()).unwrap_or_default();
    let first = path.split('/').nth(1).unwrap_or_default();
    match first {
        // Alive is whoever answers: a server on a full disk is of use to whoever reads or deletes.
        "healthz" | "livez" => Some(answer::text(StatusCode::OK, "ok")),
        "readyz" => Some(ready(inner).await),
        "version" if matches!(path, "/version" | "/version/") => {
            Some(answer::json(StatusCode::OK, &version()))
        }
        _ => discovery::answer(path, accept).or_else(|| openapi::answer(path, accept)),
    }
}

/// Whether writes are taken, in kube-apiserver's form: a line of what is wrong, if anything is.
async fn ready(inner: &Inner) -> Response<Answer> {
    match inner.store.trouble().await {
        None => answer::text(StatusCode::OK, "ok"),
        Some(why) => {
            let text = format!("[-]store failed: {why}\nreadyz check failed\n");
            answer::text(StatusCode::INTERNAL_SERVER_ERROR, text)
        }
    }
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

/// What a request asks of objects, and whether its caller may ask it: all that is known before its body.
fn asked(inner: Arc<Inner>, parts: Parts) -> Result<(Call, Verb), Status> {
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
    Ok((call, verb))
}

async fn objects<B>(call: Call, verb: Verb, body: B) -> Result<Response<Answer>, Status>
where
    B: Body<Data = Bytes> + Send + 'static,
    B::Error: std::fmt::Display,
{
    let room = call.inner.room.clone();
    match verb {
        Verb::Get => call.get(),
        Verb::List => call.list(),
        Verb::Watch => call.watch(),
        Verb::Create => call.create(&body::read(&room, body).await?).await,
        Verb::Update => call.update(&body::read(&room, body).await?).await,
        Verb::Patch => call.patch(&body::read(&room, body).await?).await,
        Verb::Delete => call.delete(&body::read(&room, body).await?).await,
        Verb::DeleteCollection => call.delete_collection(&body::read(&room, body).await?).await,
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
        Method::DELETE if !one && whole && target.resource.deletes_collections() => {
            Ok(Verb::DeleteCollection)
        }
        _ => Err(Status::method_not_allowed()),
    }
}
