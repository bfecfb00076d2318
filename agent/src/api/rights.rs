//! Rights that are lacking: what the API server refused for want of one, and has not allowed since.
//!
//! Noted where all requests of a program pass, so that nothing lacks without a word: said once, in the words of a role (verb,
//! resource, API group), and shown by `health` for as long as it lasts. What is refused for another reason, such as an
//! admission policy, is not noted: no role would help. Must never change what is asked or answered.
//!
//! Cost: one look at the status of each answer; a refusal is read whole.

#[cfg(test)]
mod tests;

use std::collections::BTreeSet;
use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll};

use bytes::Bytes;
use http_body_util::{BodyExt, Either, Full};
use hyper::body::Body as HttpBody;
use hyper::http::{Method, Request, Response, StatusCode, Uri};
use kube::client::Body;
use tower::{BoxError, Service};

use crate::telemetry::{say, warn};

/// What a role allows.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Right {
    verb: &'static str,
    /// With the subresource: `nodeippools/status`.
    resource: String,
    group: String,
    namespace: Option<String>,
}

impl Right {
    /// The one that this request takes; none for what is no resource.
    fn of(method: &Method, uri: &Uri) -> Option<Self> {
        let parts: Vec<&str> = uri.path().split('/').filter(|part| !part.is_empty()).collect();
        let (group, rest) = match parts.as_slice() {
            ["api", _, rest @ ..] => ("", rest),
            ["apis", group, _, rest @ ..] => (*group, rest),
            _ => return None,
        };
        let (namespace, rest) = match rest {
            ["namespaces", namespace, rest @ ..] if !rest.is_empty() => (Some((*namespace).to_owned()), rest),
            _ => (None, rest),
        };
        let (resource, name, subresource) = match rest {
            [resource] => (resource, None, None),
            [resource, name] => (resource, Some(name), None),
            [resource, name, subresource, ..] => (resource, Some(name), Some(subresource)),
            [] => return None,
        };
        let asks = |flag: &str| uri.query().is_some_and(|query| query.split('&').any(|one| one == flag));
        let verb = match *method {
            Method::GET if asks("watch=true") || asks("watch=1") => "watch",
            Method::GET if name.is_some() => "get",
            Method::GET => "list",
            Method::POST => "create",
            Method::PUT => "update",
            Method::PATCH => "patch",
            Method::DELETE if name.is_some() => "delete",
            Method::DELETE => "deletecollection",
            _ => return None,
        };
        let resource = match subresource {
            Some(subresource) => format!("{resource}/{subresource}"),
            None => (*resource).to_owned(),
        };
        Some(Self { verb, resource, group: group.to_owned(), namespace })
    }
}

impl fmt::Display for Right {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { verb, resource, group, namespace } = self;
        write!(f, "{verb} {resource} (apiGroup {group:?}")?;
        match namespace {
            Some(namespace) => write!(f, ", namespace {namespace})"),
            None => write!(f, ")"),
        }
    }
}

/// Those that are lacking. Shared by who asks and who tells.
#[derive(Debug, Default)]
pub struct Rights(Mutex<BTreeSet<Right>>);

impl Rights {
    /// In words, one each.
    pub fn lacking(&self) -> Vec<String> {
        self.all().iter().map(|right| format!("lacks the right to {right}")).collect()
    }

    fn refused(&self, right: Right) {
        let text = format!("lacks the right to {right}: a role must allow it; trying again");
        if self.all().insert(right) {
            warn(&text);
        }
    }

    fn allowed(&self, right: &Right) {
        if self.all().remove(right) {
            say(&format!("has the right to {right} now"));
        }
    }

    fn all(&self) -> std::sync::MutexGuard<'_, BTreeSet<Right>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A service whose refusals are noted.
#[derive(Clone)]
pub struct Noting<S> {
    inner: S,
    rights: Arc<Rights>,
}

impl<S> Noting<S> {
    pub fn new(inner: S, rights: Arc<Rights>) -> Self {
        Self { inner, rights }
    }
}

/// An answer that was read, or one that was not.
type Answer<B> = Response<Either<B, Full<Bytes>>>;

impl<S, B> Service<Request<Body>> for Noting<S>
where
    S: Service<Request<Body>, Response = Response<B>, Error = BoxError>,
    S::Future: Send + 'static,
    B: HttpBody<Data = Bytes> + Send + 'static,
    B::Error: Into<BoxError>,
{
    type Response = Answer<B>;
    type Error = BoxError;
    type Future = Pin<Box<dyn Future<Output = Result<Answer<B>, BoxError>> + Send>>;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        self.inner.poll_ready(context)
    }

    fn call(&mut self, request: Request<Body>) -> Self::Future {
        let right = Right::of(request.method(), request.uri());
        let rights = self.rights.clone();
        let answer = self.inner.call(request);
        Box::pin(async move {
            let (head, body) = answer.await?.into_parts();
            let Some(right) = right else { return Ok(Response::from_parts(head, Either::Left(body))) };
            if head.status != StatusCode::FORBIDDEN {
                if head.status.is_success() {
                    rights.allowed(&right);
                }
                return Ok(Response::from_parts(head, Either::Left(body)));
            }
            let said = body.collect().await.map_err(Into::into)?.to_bytes();
            if is_for_want_of(&right, &said) {
                rights.refused(right);
            }
            Ok(Response::from_parts(head, Either::Right(Full::new(said))))
        })
    }
}

/// An API server says which right it asked its authorizer for; an admission policy says something else.
fn is_for_want_of(right: &Right, said: &[u8]) -> bool {
    String::from_utf8_lossy(said).contains(&format!("cannot {} resource", right.verb))
}
