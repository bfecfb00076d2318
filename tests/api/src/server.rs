//! A server to ask, real or embedded, and what it answers.
//!
//! Everything goes through `kube::Client`, so that the suite sees what Berth's own code sees; most requests are written
//! out, so that it also sees what a client library would hide. Names are made unique per call: tests share a server and
//! run side by side on it.

mod answer;
pub mod paths;
mod watch;

use std::sync::atomic::{AtomicU32, Ordering};

use hyper::{Method, Request};
use kube::Client;
use kube::client::Body;
use serde_json::Value;

use crate::RUNTIME;
use crate::control_plane::ControlPlane;
pub use answer::Answer;
pub use watch::{Event, Watch};

/// Which one is asked. Where the two may differ is listed in the suite, each with its reason.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Which {
    Real,
    Embedded,
}

/// A way to one of the servers.
#[derive(Clone)]
pub struct Server {
    pub which: Which,
    client: Client,
}

pub const JSON_PATCH: &str = "application/json-patch+json";
pub const MERGE_PATCH: &str = "application/merge-patch+json";
pub const STRATEGIC_PATCH: &str = "application/strategic-merge-patch+json";
pub const APPLY_PATCH: &str = "application/apply-patch+yaml";

impl Server {
    /// The real one that all tests of this process share.
    pub fn real() -> Server {
        Server { which: Which::Real, client: ControlPlane::shared().client() }
    }

    pub fn new(which: Which, client: Client) -> Server {
        Server { which, client }
    }

    pub fn client(&self) -> Client {
        self.client.clone()
    }

    /// Another client, with connections of its own where there are any.
    pub fn second(&self) -> Server {
        match self.which {
            Which::Real => Server::real(),
            Which::Embedded => self.clone(),
        }
    }

    /// A name that no other test has: `what`, and a number. Those made later come later in a list, too.
    pub fn name(&self, what: &str) -> String {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        format!("{what}-{:06}", COUNT.fetch_add(1, Ordering::Relaxed))
    }

    /// One request, as it is, with the headers of a client that speaks JSON.
    pub async fn ask(&self, method: Method, path: &str, content_type: Option<&str>, body: Vec<u8>) -> Answer {
        let mut request = Request::builder().method(method).uri(path).header("accept", "application/json");
        if let Some(content_type) = content_type {
            request = request.header("content-type", content_type);
        }
        self.send(request.body(Body::from(body)).expect("a request")).await
    }

    pub async fn send(&self, request: Request<Body>) -> Answer {
        let asked = format!("{} {}", request.method(), request.uri());
        let response = self.client.send(request).await.unwrap_or_else(|wrong| panic!("{asked}: {wrong}"));
        Answer::read(asked, response).await
    }

    pub async fn get(&self, path: &str) -> Answer {
        self.ask(Method::GET, path, None, Vec::new()).await
    }

    pub async fn post(&self, path: &str, body: &Value) -> Answer {
        self.ask(Method::POST, path, Some("application/json"), body.to_string().into_bytes()).await
    }

    pub async fn put(&self, path: &str, body: &Value) -> Answer {
        self.ask(Method::PUT, path, Some("application/json"), body.to_string().into_bytes()).await
    }

    pub async fn patch(&self, path: &str, content_type: &str, body: &Value) -> Answer {
        self.ask(Method::PATCH, path, Some(content_type), body.to_string().into_bytes()).await
    }

    pub async fn merge(&self, path: &str, body: &Value) -> Answer {
        self.patch(path, MERGE_PATCH, body).await
    }

    pub async fn json_patch(&self, path: &str, body: &Value) -> Answer {
        self.patch(path, JSON_PATCH, body).await
    }

    pub async fn delete(&self, path: &str) -> Answer {
        self.ask(Method::DELETE, path, None, Vec::new()).await
    }

    /// With `DeleteOptions`, of which only the fields that matter are given.
    pub async fn delete_with(&self, path: &str, options: &Value) -> Answer {
        let mut body = serde_json::json!({"apiVersion": "v1", "kind": "DeleteOptions"});
        for (key, value) in options.as_object().into_iter().flatten() {
            body[key] = value.clone();
        }
        self.ask(Method::DELETE, path, Some("application/json"), body.to_string().into_bytes()).await
    }

    /// Events from now on, or from where the query says; the answer's head has come when this returns.
    pub async fn watch(&self, path: &str) -> Watch {
        let separator = if path.contains('?') { '&' } else { '?' };
        let path = format!("{path}{separator}watch=true");
        let request = Request::get(&path).header("accept", "application/json");
        let request = request.body(Body::empty()).expect("a request");
        let response = self.client.send(request).await.unwrap_or_else(|wrong| panic!("{path}: {wrong}"));
        Watch::open(path, response).await
    }
}

/// Runs one test of the suite on one server.
pub fn run<Fut: Future<Output = ()>>(server: Server, test: impl FnOnce(Server) -> Fut) {
    RUNTIME.block_on(test(server));
}
