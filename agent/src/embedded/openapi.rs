//! OpenAPI documents: `/openapi/v2` and `/openapi/v3` and what is below.
//!
//! What `kubectl explain` shows, and where kubectl learns that the server checks fields itself. Schemas of our kinds are
//! their CRDs', those of the built-in kinds are k8s-openapi's. The router asks it first. Must never list a path that isn't
//! served, nor strategic merge patches: kubectl then works them out by what it knows of the built-in kinds.
//!
//! kubectl (1.27 and later) reads version 3, always as JSON. Version 2 it asks for in protobuf, where version 3 can't be had
//! and for `explain --output=plaintext-openapiv2`; older ones check fields by it.
//!
//! Cost: each document is made once per process and then shared, together about 900 KiB.

mod paths;
mod protobuf;
mod schemas;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::sync::LazyLock;

use bytes::Bytes;
use hyper::http::{Response, StatusCode};
use serde_json::{Map, Value, json};

use super::{Answer, Status, answer, resource};

/// `api/v1`, `apis/nmstate.io/v1`: as the index of version 3 names a group and version.
type Key = String;

/// Version 2 in protobuf, as clients ask for it, and as it is answered: no media type can have an `@` in its name.
const PROTOBUF: &str = "application/com.github.proto-openapi.spec.v2@v1.0+protobuf";
const PROTOBUF_DOT: &str = "application/com.github.proto-openapi.spec.v2.v1.0+protobuf";

/// The document at a path, if it is one of these. `accept` is the request's header, or empty.
pub fn answer(path: &str, accept: &str) -> Option<Response<Answer>> {
    let text = match path.trim_end_matches('/') {
        "/openapi/v2" => {
            return Some(match wanted(accept) {
                Some(Form::Json) => answer::json_bytes(StatusCode::OK, V2.clone()),
                Some(Form::Protobuf) => answer::typed(StatusCode::OK, PROTOBUF_DOT, V2_PROTOBUF.clone()),
                None => answer::refusal(&Status::not_acceptable()),
            });
        }
        "/openapi/v3" => INDEX.clone(),
        path => V3.get(path.strip_prefix("/openapi/v3/")?)?.clone(),
    };
    Some(answer::json_bytes(StatusCode::OK, text))
}

/// How version 2 is wanted.
#[derive(Clone, Copy)]
enum Form {
    Json,
    Protobuf,
}

/// The first that a client lists and that there is.
fn wanted(accept: &str) -> Option<Form> {
    accept.split(',').find_map(|clause| match clause.split(';').next().unwrap_or_default().trim() {
        "application/json" | "application/*" | "*/*" | "" => Some(Form::Json),
        PROTOBUF | PROTOBUF_DOT => Some(Form::Protobuf),
        _ => None,
    })
}

static V2: LazyLock<Bytes> = LazyLock::new(|| version_2().to_string().into());

static V2_PROTOBUF: LazyLock<Bytes> = LazyLock::new(|| protobuf::document(&version_2()).into());

static V3: LazyLock<BTreeMap<Key, Bytes>> = LazyLock::new(|| {
    let documents = keys().into_iter().map(|(key, (group, version))| {
        let text = version_3(&group, &version).to_string();
        (key, text.into())
    });
    documents.collect()
});

/// With a hash in each address: a client that has the document of that hash needs no other.
static INDEX: LazyLock<Bytes> = LazyLock::new(|| {
    let entry = |(key, text): (&Key, &Bytes)| {
        let url = format!("/openapi/v3/{key}?hash={:016X}", hash(text));
        (key.clone(), json!({"serverRelativeURL": url}))
    };
    let paths: Map<String, Value> = V3.iter().map(entry).collect();
    json!({"paths": paths}).to_string().into()
});

/// FNV-1a: the same in every process, so that what kubectl has kept stays good over a restart.
fn hash(text: &[u8]) -> u64 {
    text.iter()
        .fold(0xcbf2_9ce4_8422_2325, |hash, byte| (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3))
}

/// Every group and version that is served.
fn keys() -> BTreeMap<Key, (String, String)> {
    let mut keys = BTreeMap::new();
    for resource in resource::all() {
        for version in &resource.versions {
            let key = match resource.group {
                "" => format!("api/{}", version.name),
                group => format!("apis/{group}/{}", version.name),
            };
            keys.insert(key, (resource.group.to_owned(), version.name.clone()));
        }
    }
    keys
}

fn info() -> Value {
    json!({"title": "berth", "version": concat!("v", env!("CARGO_PKG_VERSION"))})
}

fn version_3(group: &str, version: &str) -> Value {
    let mut definitions = Map::new();
    let mut all = Map::new();
    for resource in resource::all().iter().filter(|r| r.group == group && r.version(version).is_some()) {
        definitions.extend(schemas::of(resource, version));
        all.extend(paths::of(resource, version));
    }
    schemas::complete(&mut definitions);
    json!({
        "openapi": "3.0.0",
        "info": info(),
        "paths": all,
        "components": {"schemas": definitions},
    })
}

/// All groups in one, in version 2's words. Paths are left out: what reads this looks at schemas only.
fn version_2() -> Value {
    let mut definitions = Map::new();
    for resource in resource::all() {
        for version in &resource.versions {
            definitions.extend(schemas::of(resource, &version.name));
        }
    }
    schemas::complete(&mut definitions);
    definitions.values_mut().for_each(schemas::as_version_2);
    json!({"swagger": "2.0", "info": info(), "paths": {}, "definitions": definitions})
}
