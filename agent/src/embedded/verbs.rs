//! The verbs of the API, a file each. [`super::service`] calls them with what the request says; they read or change the
//! store and answer.

use std::collections::HashSet;
use std::sync::Arc;

use hyper::http::{HeaderMap, HeaderValue, Response, StatusCode};

use super::admit::Decoded;
use super::answer::Answer;
use super::bounds::{Asked, Verb};
use super::caller::Caller;
use super::query::Query;
use super::resource::Table;
use super::route::Target;
use super::shape::Shape;
use super::status::Status;
use super::store::{Key, Object, Transaction};
use super::{Inner, admit, body, gc};

pub(super) mod create;
pub(super) mod delete;
mod expire;
pub(super) mod list;
pub(super) mod update;
pub(super) mod watch;

/// A request about objects, read.
pub(super) struct Call {
    pub(super) inner: Arc<Inner>,
    pub(super) target: Target,
    pub(super) query: Query,
    pub(super) shape: Shape,
    pub(super) caller: Caller,
    pub(super) headers: HeaderMap,
}

impl Call {
    /// The object that the path names.
    fn key(&self) -> Key {
        let name = self.target.name.as_deref().unwrap_or_default();
        Key::new(self.target.resource.table, self.namespace(), name)
    }

    fn namespace(&self) -> &str {
        self.target.namespace.as_deref().unwrap_or_default()
    }

    /// What [`super::bounds`] is asked about.
    pub(super) fn asked(&self, verb: Verb) -> Asked<'_> {
        Asked {
            caller: &self.caller,
            verb,
            resource: self.target.resource,
            namespace: self.namespace(),
            name: self.target.name.as_deref().unwrap_or_default(),
            subresource: if self.target.status { "status" } else { "" },
        }
    }

    /// The object in a body, decoded, with what is worth a word about it.
    fn decoded(&self, text: &[u8]) -> Result<Decoded, Status> {
        let (resource, version) = (self.target.resource, self.target.version);
        let validation = self.query.field_validation()?;
        let (value, twice) = body::object(resource, &self.headers, text)?;
        admit::decode(resource, version, value, &twice, validation, None)
    }

    /// What is told to whoever uses an old version.
    fn deprecated(&self) -> Option<String> {
        self.target.resource.versions[self.target.version].deprecated.clone()
    }

    /// `get`.
    pub(super) fn get(&self) -> Result<Response<Answer>, Status> {
        let key = self.key();
        // Everything that is committed is here: whatever revision is asked for, this is not older.
        let revision = self.query.revision()?;
        let (object, current) = {
            let state = self.inner.store.read();
            (state.get(&key).cloned(), state.revision)
        };
        if let Some(asked) = revision.filter(|asked| *asked > current) {
            return Err(Status::too_new(asked, current));
        }
        let object = object.ok_or_else(|| Status::not_found(self.target.resource, &key.name))?;
        Ok(self.object(StatusCode::OK, &object, &[]))
    }

    /// The answer that is one object, with what is worth a word.
    fn object(&self, code: StatusCode, object: &Object, warnings: &[String]) -> Response<Answer> {
        let mut response = self.shape.object(code, self.target.resource, self.target.version, object);
        warn(&mut response, warnings);
        response
    }
}

/// What all warnings of an answer may come to, and what each is cut to where they are more, in characters: as kube-apiserver.
const WARNED: usize = 4 << 10;
const WARNING: usize = 256;

/// Adds `Warning` headers: each warning once, and no more than clients and proxies take.
pub(super) fn warn(response: &mut Response<Answer>, warnings: &[String]) {
    let length = |text: &String| text.chars().count();
    let longest = if warnings.iter().map(length).sum::<usize>() > WARNED { WARNING } else { WARNED };
    let (mut said, mut told) = (HashSet::new(), 0);
    for text in warnings.iter().filter(|text| said.insert(text.as_str())) {
        if told > WARNED {
            return;
        }
        let text: String = text.chars().take(longest).map(|c| if c.is_control() { ' ' } else { c }).collect();
        told += length(&text);
        let text = text.replace('\\', "\\\\").replace('"', "\\\"");
        if let Ok(value) = HeaderValue::from_bytes(format!("299 - \"{text}\"").as_bytes()) {
            response.headers_mut().append("warning", value);
        }
    }
}

/// Whether something new may come into a namespace.
fn check_namespace(tx: &Transaction<'_>, target: &Target) -> Result<(), Status> {
    let Some(name) = &target.namespace else { return Ok(()) };
    let Some(table) = Table::of("", "namespaces") else { return Ok(()) };
    let Some(namespace) = tx.get(&Key::new(table, "", name)) else {
        return Err(Status::not_found(table.resource(), name));
    };
    if gc::is_deleting(&namespace.value()) {
        let why = format!("unable to create new content in namespace {name} because it is being terminated");
        return Err(Status::forbidden(target.resource, target.name.as_deref().unwrap_or_default(), &why));
    }
    Ok(())
}

/// As etcd refuses an object, wherever it comes from.
fn check_size(object: &Object) -> Result<(), Status> {
    if object.size() > admit::LARGEST {
        let message = "etcdserver: request is too large";
        return Err(Status::new(StatusCode::INTERNAL_SERVER_ERROR, "", message));
    }
    Ok(())
}
