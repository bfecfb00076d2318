//! The API as a client sees it, in memory and on disk. What is the same on a real kube-apiserver is in the conformance
//! suite; here is what only this one has.

use std::collections::BTreeMap;

use bytes::Bytes;
use http_body_util::{BodyExt, Full};
use hyper::http::Request;
use serde_json::{Value, json};
use tower::ServiceExt;

use super::testing::Folder;
use super::*;

mod damaged;
mod events;
mod gc;
mod requests;
mod restart;
mod shapes;
mod watching;

/// One request; the answer's code and its document.
async fn ask(api: &Api, method: &str, path: &str, body: Option<Value>) -> (u16, Value) {
    ask_as(api, method, path, "application/json", body.map(|body| body.to_string()).unwrap_or_default()).await
}

async fn patch(api: &Api, path: &str, media_type: &str, body: Value) -> (u16, Value) {
    ask_as(api, "PATCH", path, &format!("application/{media_type}"), body.to_string()).await
}

async fn ask_as(
    api: &Api,
    method: &str,
    path: &str,
    media_type: &str,
    body: impl Into<Bytes>,
) -> (u16, Value) {
    let request = Request::builder().method(method).uri(path).header("content-type", media_type);
    let request = request.body(Full::new(body.into())).unwrap();
    let response = api.clone().oneshot(request).await.unwrap();
    let code = response.status().as_u16();
    let body = response.into_body().collect().await.unwrap().to_bytes();
    (
        code,
        serde_json::from_slice(&body)
            .unwrap_or_else(|_| Value::String(String::from_utf8_lossy(&body).into())),
    )
}

const NODES: &str = "/api/v1/nodes";
const POOLS: &str = "/apis/nmstate.io/v1/nodeippools";

fn node(name: &str) -> Value {
    json!({"apiVersion": "v1", "kind": "Node", "metadata": {"name": name}})
}

fn pool(name: &str) -> Value {
    json!({"apiVersion": "nmstate.io/v1", "kind": "NodeIPPool", "metadata": {"name": name},
           "spec": {"range": {"cidr": "10.0.0.0/24"}}})
}

/// Everything in a collection, by name.
async fn listed(api: &Api, path: &str) -> BTreeMap<String, Value> {
    let (code, list) = ask(api, "GET", path, None).await;
    assert_eq!(code, 200, "{list}");
    let items = list["items"].as_array().unwrap();
    items.iter().map(|item| (item["metadata"]["name"].as_str().unwrap().to_owned(), item.clone())).collect()
}
