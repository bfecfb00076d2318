//! How a client wants its answer: JSON, YAML, metadata only, or a table; and objects and lists in that shape.
//!
//! Called by the verbs with what they found. JSON, which is what nearly everybody asks for, is put together from the
//! texts that the store has; the other shapes read them first.
//!
//! Cost: a list goes out in pieces, each made when the one before it was taken, from one object after the other: in no shape
//! is a long list in memory as a whole, or a thread kept from others for longer than a piece takes.

use bytes::Bytes;
use futures_util::stream;
use http_body_util::{BodyExt, StreamBody};
use hyper::body::Frame;
use hyper::http::{HeaderMap, HeaderValue, Response, StatusCode, header};
use serde_json::{Value, json};

use super::admit::event;
use super::answer::{self, Answer};
use super::query::Query;
use super::resource::{Form, Resource};
use super::status::Status;
use super::store::{Object, What};
use super::table;

use std::convert::Infallible;
use std::sync::Arc;

/// A list of more text than this goes out in pieces made of about so much: what a slow reader hasn't taken yet isn't put
/// together.
const PIECE: usize = 256 << 10;

/// The shape of an answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Shape {
    Json,
    Yaml,
    /// `PartialObjectMetadata`.
    Metadata,
    Table(table::Table),
}

/// What is said of a list as a whole.
#[derive(Clone, Debug, Default)]
pub(super) struct ListMeta {
    pub(super) revision: u64,
    pub(super) next: Option<String>,
    pub(super) remaining: Option<usize>,
}

impl Shape {
    /// What the `Accept` header asks for: of what it lists, the first that can be given.
    pub(super) fn wanted(headers: &HeaderMap, query: &Query) -> Result<Self, Status> {
        let accept = headers.get(header::ACCEPT).and_then(|value| value.to_str().ok()).unwrap_or_default();
        if accept.trim().is_empty() {
            return Ok(Self::Json);
        }
        if let Some(table) = table::wanted(accept, query.get("includeObject")) {
            return Ok(Self::Table(table));
        }
        accept.split(',').find_map(Self::of_clause).ok_or_else(Status::not_acceptable)
    }

    fn of_clause(clause: &str) -> Option<Self> {
        let mut parts = clause.split(';').map(str::trim);
        let media_type = parts.next()?;
        let form = parts.find_map(|part| part.strip_prefix("as="));
        match (media_type, form) {
            ("application/json", Some("PartialObjectMetadata" | "PartialObjectMetadataList")) => {
                Some(Self::Metadata)
            }
            ("application/json" | "application/*" | "*/*", None) => Some(Self::Json),
            ("application/yaml", None) => Some(Self::Yaml),
            _ => None,
        }
    }

    /// An object's text in this shape and version.
    fn text(&self, resource: &Resource, version: usize, object: &Object, columns: bool) -> Bytes {
        match self {
            Self::Json | Self::Yaml if resource.form != Form::NewEvent => object.text_as(version),
            Self::Json | Self::Yaml => value(resource, version, object).to_string().into(),
            Self::Metadata => partial(&value(resource, version, object)).to_string().into(),
            Self::Table(table) => {
                let meta = json!({"resourceVersion": object.revision.to_string()});
                let objects = [value(resource, version, object)];
                table::Rows::new(table, resource, version).table(&objects, &meta, columns).to_string().into()
            }
        }
    }

    /// The answer that is one object.
    pub(super) fn object(
        &self,
        code: StatusCode,
        resource: &Resource,
        version: usize,
        object: &Object,
    ) -> Response<Answer> {
        let text = self.text(resource, version, object, true);
        match self {
            Self::Yaml => yaml(code, &serde_json::from_slice(&text).unwrap_or_default()),
            _ => answer::json_bytes(code, text),
        }
    }

    /// The line of a watch that tells what happened to an object.
    pub(super) fn line(
        &self,
        what: What,
        resource: &Resource,
        version: usize,
        object: &Object,
        columns: bool,
    ) -> Bytes {
        if *self == Self::Json && resource.form != Form::NewEvent {
            return object.line(what, version);
        }
        let text = self.text(resource, version, object, columns);
        [what.head(), &text, super::store::object::TAIL].concat().into()
    }

    /// The answer that is a list.
    pub(super) fn list(
        &self,
        resource: &'static Resource,
        version: usize,
        objects: Vec<Arc<Object>>,
        meta: &ListMeta,
    ) -> Response<Answer> {
        let meta = meta.to_value();
        let (api_version, kind) = match self {
            Self::Metadata => ("meta.k8s.io/v1".to_owned(), "PartialObjectMetadataList".to_owned()),
            _ => (resource.api_version(version), format!("{}List", resource.kind)),
        };
        let head = json!({"kind": kind, "apiVersion": api_version, "metadata": meta});
        let items = || Around::json(&head, "items");
        match self {
            Self::Table(table) => {
                let rows = table::Rows::new(table, resource, version);
                pieces(Around::json(&rows.head(&meta, true), "rows"), objects, move |object, piece| {
                    write(piece, &rows.row(&value(resource, version, object)));
                })
            }
            Self::Yaml => match Around::yaml(&head, objects.is_empty()) {
                Ok(around) => pieces(around, objects, move |object, piece| {
                    piece.extend_from_slice(yaml_item(&value(resource, version, object)).as_bytes());
                }),
                Err(error) => answer::refusal(&Status::internal(error)),
            },
            Self::Metadata => pieces(items(), objects, move |object, piece| {
                write(piece, &partial(&value(resource, version, object)));
            }),
            Self::Json if resource.form == Form::NewEvent => {
                pieces(items(), objects, move |object, piece| write(piece, &value(resource, version, object)))
            }
            // Items of built-in kinds say nothing of their type in a list, as kube-apiserver has it.
            Self::Json if resource.ours.is_none() => pieces(items(), objects, |object, piece| {
                piece.push(b'{');
                piece.extend_from_slice(&object.bare());
            }),
            Self::Json => pieces(items(), objects, move |object, piece| {
                piece.extend_from_slice(&object.text_as(version));
            }),
        }
    }
}

impl ListMeta {
    fn to_value(&self) -> Value {
        let mut meta = json!({"resourceVersion": self.revision.to_string()});
        if let Some(next) = &self.next {
            meta["continue"] = next.as_str().into();
        }
        if let Some(remaining) = self.remaining {
            meta["remainingItemCount"] = remaining.into();
        }
        meta
    }
}

/// An object's content in a version.
pub(super) fn value(resource: &Resource, version: usize, object: &Object) -> Value {
    let mut value = object.value();
    if resource.form == Form::NewEvent {
        return event::from_core(&value);
    }
    value["apiVersion"] = resource.api_version(version).into();
    value
}

fn partial(object: &Value) -> Value {
    json!({"kind": "PartialObjectMetadata", "apiVersion": "meta.k8s.io/v1", "metadata": object["metadata"]})
}

fn yaml(code: StatusCode, value: &Value) -> Response<Answer> {
    match crate::yaml::print(value) {
        Ok(text) => answer::typed(code, "application/yaml", text),
        Err(error) => answer::refusal(&Status::internal(error)),
    }
}

/// What stands around the items of a list.
struct Around {
    content_type: &'static str,
    head: Vec<u8>,
    between: &'static [u8],
    tail: &'static [u8],
}

impl Around {
    /// Of a JSON object that gets one more field, the list.
    fn json(head: &Value, field: &str) -> Self {
        let mut head = head.to_string().into_bytes();
        head.pop();
        head.extend_from_slice(format!(",\"{field}\":[").as_bytes());
        Self { content_type: "application/json", head, between: b",", tail: b"]}" }
    }

    fn yaml(head: &Value, empty: bool) -> Result<Self, crate::yaml::PrintError> {
        let mut head = crate::yaml::print(head)?;
        head.push_str(if empty { "items: []\n" } else { ITEMS });
        Ok(Self { content_type: "application/yaml", head: head.into_bytes(), between: b"", tail: b"" })
    }
}

/// The line before a list in YAML.
const ITEMS: &str = "items:\n";

/// An item of a list in YAML: as it stands in a list of one, which has the same indentation.
fn yaml_item(item: &Value) -> String {
    let list = crate::yaml::print(&json!({"items": [item]})).unwrap_or_default();
    match list.strip_prefix(ITEMS) {
        Some(item) => item.to_owned(),
        // JSON is YAML.
        None => format!("- {item}\n"),
    }
}

fn write(piece: &mut Vec<u8>, value: &Value) {
    // Into memory, and of keys that are texts: it can't fail.
    let _ = serde_json::to_writer(piece, value);
}

/// A list put together as it is read, item by item.
fn pieces(
    around: Around,
    objects: Vec<Arc<Object>>,
    mut item: impl FnMut(&Object, &mut Vec<u8>) + Send + 'static,
) -> Response<Answer> {
    let Around { content_type, head, between, tail } = around;
    let total: usize = objects.iter().map(|object| object.size()).sum();
    let mut rest = objects.into_iter();
    let (mut first, mut done) = (true, false);
    let mut piece = head;
    let pieces = std::iter::from_fn(move || {
        if done {
            return None;
        }
        // By what is read too: little may be shown of much.
        let mut read = 0;
        while read.max(piece.len()) < PIECE {
            let Some(object) = rest.next() else {
                piece.extend_from_slice(tail);
                done = true;
                break;
            };
            if !std::mem::replace(&mut first, false) {
                piece.extend_from_slice(between);
            }
            item(&object, &mut piece);
            read += object.size();
        }
        Some(Bytes::from(std::mem::take(&mut piece)))
    });
    if total < PIECE {
        return answer::typed(StatusCode::OK, content_type, pieces.collect::<Vec<_>>().concat());
    }
    let frames = stream::unfold(pieces, |mut pieces| async move {
        // Others get their turn: a client may take pieces as fast as they are made.
        tokio::task::yield_now().await;
        pieces.next().map(|piece| (Ok::<_, Infallible>(Frame::data(piece)), pieces))
    });
    let mut response = Response::new(StreamBody::new(frames).boxed_unsync());
    response.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static(content_type));
    response
}
