//! Bodies of requests: read within a bound, and made a value, from JSON, YAML or (built-in kinds) protobuf. Keys that are given
//! twice are told.
//!
//! Cost: all bodies that are under way share [`ROOM`]; who finds no room is told to come again.

use std::fmt;
use std::ops::Deref;
use std::sync::Arc;
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use http_body_util::BodyExt;
use hyper::body::Body;
use hyper::http::{HeaderMap, StatusCode, header};
use serde::de::{DeserializeSeed, Deserializer, Error, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Value};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use super::admit;
use super::resource::Resource;
use super::status::Status;

mod protobuf;
#[cfg(test)]
mod tests;

/// As kube-apiserver: what etcd takes, twice.
pub(super) const LARGEST: usize = 3 << 20;

/// What all bodies may take at once, from their first byte until their request is answered: twenty of the largest, or those
/// of a thousand hosts that all report at the same time. Without it 250 streams of one connection were 750 MiB.
pub(super) const ROOM: usize = 64 << 20;

/// Of a body that is too large so much more is taken and forgotten: a client hears no answer while it still sends into a
/// connection that is closed on it.
const FORGOTTEN: usize = 16 << 20;

/// How long a client may take to send a body: as kube-apiserver, which gives a request a minute.
const PATIENCE: Duration = Duration::from_secs(60);

/// A body, and the room that it takes until it is dropped.
pub(super) struct Held {
    text: Bytes,
    _room: Option<OwnedSemaphorePermit>,
}

impl Deref for Held {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        &self.text
    }
}

/// Reads a body to its end, within `room`, which has a permit per byte.
pub(super) async fn read<B>(room: &Arc<Semaphore>, body: B) -> Result<Held, Status>
where
    B: Body<Data = Bytes>,
    B::Error: fmt::Display,
{
    let late = |_| Status::timeout("the body of the request did not come to its end in time");
    tokio::time::timeout(PATIENCE, read_all(room, body)).await.map_err(late)?
}

/// Takes a body that nobody wants, so that its client hears why: one that still sends into a connection that is closed on it
/// hears nothing.
pub(super) async fn forget<B>(body: B)
where
    B: Body<Data = Bytes>,
{
    let take = async {
        let mut body = std::pin::pin!(body);
        let mut taken = 0;
        while let Some(Ok(frame)) = body.frame().await
            && taken <= FORGOTTEN
        {
            taken += frame.data_ref().map_or(0, Bytes::len);
        }
    };
    let _ = tokio::time::timeout(PATIENCE, take).await;
}

async fn read_all<B>(room: &Arc<Semaphore>, body: B) -> Result<Held, Status>
where
    B: Body<Data = Bytes>,
    B::Error: fmt::Display,
{
    let mut body = std::pin::pin!(body);
    let mut held = Ok(Taking::default());
    let mut taken = 0;
    while let Some(frame) = body.frame().await {
        let frame =
            frame.map_err(|error| Status::bad_request(format!("the body could not be read: {error}")))?;
        let Ok(data) = frame.into_data() else { continue };
        taken += data.len();
        if taken > FORGOTTEN {
            break;
        }
        // What was taken until then is forgotten at once, and so is what still comes: its client hears why at the end.
        held = held.and_then(|held| held.with(room, &data));
    }
    let Taking { text, room } = held?;
    Ok(Held { text: text.freeze(), _room: room })
}

/// A body that is being read.
#[derive(Default)]
struct Taking {
    text: BytesMut,
    room: Option<OwnedSemaphorePermit>,
}

impl Taking {
    /// With more of it, if that may be.
    fn with(mut self, room: &Arc<Semaphore>, data: &[u8]) -> Result<Self, Status> {
        if self.text.len() + data.len() > LARGEST {
            return Err(Status::too_large(LARGEST));
        }
        let bytes = u32::try_from(data.len()).unwrap_or(u32::MAX);
        let more = room.clone().try_acquire_many_owned(bytes).map_err(|_| {
            Status::too_many_requests(
                "too many requests are under way, by the size of their bodies; try again",
            )
        })?;
        match &mut self.room {
            Some(room) => room.merge(more),
            None => self.room = Some(more),
        }
        self.text.extend_from_slice(data);
        Ok(self)
    }
}

/// The media type of a body, without parameters.
pub(super) fn media_type(headers: &HeaderMap) -> String {
    let text = headers.get(header::CONTENT_TYPE).and_then(|value| value.to_str().ok()).unwrap_or_default();
    text.split(';').next().unwrap_or_default().trim().to_lowercase()
}

/// The object in a body, and the paths of the keys that it has twice.
pub(super) fn object(
    resource: &Resource,
    headers: &HeaderMap,
    body: &[u8],
) -> Result<(Value, Vec<String>), Status> {
    let media_type = media_type(headers);
    if media_type == protobuf::MEDIA_TYPE
        && let Some(read) = protobuf::object(resource.form, body)
    {
        let value = read.map_err(|why| admit::unrecognized(resource, &why))?;
        return Ok((value, Vec::new()));
    }
    decode(&media_type, body).map_err(|status| match status.code {
        StatusCode::BAD_REQUEST => admit::unrecognized(resource, &status.message),
        _ => status,
    })
}

/// The options in the body of a delete.
pub(super) fn delete_options(headers: &HeaderMap, body: &[u8]) -> Result<Value, Status> {
    match media_type(headers).as_str() {
        protobuf::MEDIA_TYPE => protobuf::delete_options(body)
            .map_err(|why| Status::bad_request(format!("the body is not a DeleteOptions object: {why}"))),
        other => Ok(decode(other, body)?.0),
    }
}

/// A body's value, and the paths of the keys that it has twice.
fn decode(media_type: &str, body: &[u8]) -> Result<(Value, Vec<String>), Status> {
    match media_type {
        "" | "application/json" | "*/*" => json(body),
        "application/yaml" => {
            let text =
                std::str::from_utf8(body).map_err(|_| Status::bad_request("the body is not valid UTF-8"))?;
            let wrong = |why: String| Status::bad_request(format!("error parsing the body as YAML: {why}"));
            let documents = crate::yaml::parse(text).map_err(|error| wrong(error.to_string()))?;
            match <[Value; 1]>::try_from(documents) {
                Ok([value]) => Ok((value, Vec::new())),
                Err(others) => Err(wrong(format!("it has {} documents, one is expected", others.len()))),
            }
        }
        _ => Err(Status::unsupported_media_type("application/json, application/yaml")),
    }
}

/// JSON text. serde_json itself bounds how deep it may be nested.
pub(super) fn json(body: &[u8]) -> Result<(Value, Vec<String>), Status> {
    let mut twice = Vec::new();
    let mut reader = serde_json::Deserializer::from_slice(body);
    let value = Node { place: &Place::Top, twice: &mut twice }.deserialize(&mut reader);
    let value = value.and_then(|value| reader.end().map(|()| value));
    let value =
        value.map_err(|error| Status::bad_request(format!("error parsing the body as JSON: {error}")))?;
    Ok((value, twice))
}

/// How deep a value is nested: 0 for what has nothing in it. Only for values that came through a bounded reader, or whose
/// parts did: it goes as deep as they do.
pub(super) fn depth(value: &Value) -> usize {
    match value {
        Value::Array(list) => 1 + list.iter().map(depth).max().unwrap_or_default(),
        Value::Object(map) => 1 + map.values().map(depth).max().unwrap_or_default(),
        _ => 0,
    }
}

/// About how long a value is as text.
pub(super) fn size(value: &Value) -> usize {
    match value {
        Value::Array(list) => list.iter().map(|item| size(item) + 1).sum::<usize>() + 2,
        Value::Object(map) => map.iter().map(|(key, value)| key.len() + size(value) + 4).sum::<usize>() + 2,
        Value::String(text) => text.len() + 2,
        _ => 4,
    }
}

/// How many values there are in a value, itself among them.
pub(super) fn count(value: &Value) -> usize {
    match value {
        Value::Array(list) => 1 + list.iter().map(count).sum::<usize>(),
        Value::Object(map) => 1 + map.values().map(count).sum::<usize>(),
        _ => 1,
    }
}

/// Keys given twice that are told of, as kube-apiserver has it, and how much of a path is: more is no help to anybody.
const TOLD: usize = 100;
const TOLD_PATH: usize = 1024;

/// Where a value stands. A path in words is made only of what is told of: nearly nothing is, and made of every value it would
/// be as long as the body for each of them.
enum Place<'a> {
    Top,
    Field(&'a Place<'a>, &'a str),
    Item(&'a Place<'a>, usize),
}

impl Place<'_> {
    /// `spec.ranges[2].name`, cut off where it is too long.
    fn path(&self) -> String {
        let (mut way, mut place) = (Vec::new(), self);
        while let Place::Field(above, _) | Place::Item(above, _) = place {
            way.push(place);
            place = above;
        }
        let mut path = String::new();
        for place in way.into_iter().rev() {
            match place {
                Place::Top => {}
                Place::Field(_, key) => {
                    if !path.is_empty() {
                        path.push('.');
                    }
                    path.extend(key.chars().take(TOLD_PATH));
                }
                Place::Item(_, index) => path.push_str(&format!("[{index}]")),
            }
            if path.len() > TOLD_PATH {
                let cut = (0..=TOLD_PATH).rfind(|at| path.is_char_boundary(*at)).unwrap_or_default();
                path.truncate(cut);
                path.push('…');
                break;
            }
        }
        path
    }
}

/// A value on its way, and where it stands.
struct Node<'a> {
    place: &'a Place<'a>,
    twice: &'a mut Vec<String>,
}

impl<'de> DeserializeSeed<'de> for Node<'_> {
    type Value = Value;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Value, D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Node<'_> {
    type Value = Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a JSON value")
    }

    fn visit_bool<E>(self, value: bool) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_i64<E>(self, value: i64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_u64<E>(self, value: u64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_f64<E: Error>(self, value: f64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_str<E>(self, value: &str) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_string<E>(self, value: String) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_unit<E>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Value, A::Error> {
        let mut list = Vec::new();
        loop {
            let place = Place::Item(self.place, list.len());
            let node = Node { place: &place, twice: &mut *self.twice };
            match items.next_element_seed(node)? {
                Some(item) => list.push(item),
                None => return Ok(Value::Array(list)),
            }
        }
    }

    fn visit_map<A: MapAccess<'de>>(self, mut entries: A) -> Result<Value, A::Error> {
        let mut map = Map::new();
        while let Some(key) = entries.next_key::<String>()? {
            let place = Place::Field(self.place, &key);
            let value = entries.next_value_seed(Node { place: &place, twice: &mut *self.twice })?;
            if self.twice.len() < TOLD && map.contains_key(&key) {
                self.twice.push(place.path());
            }
            map.insert(key, value);
        }
        Ok(Value::Object(map))
    }
}
