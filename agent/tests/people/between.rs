//! Something between `berth` and the API: at a request it does what somebody else does at that very moment, or answers itself.

use std::path::PathBuf;
use std::sync::Arc;

use api_tests::RUNTIME;
use bytes::Bytes;
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use hyper::header::{CONTENT_TYPE, HOST};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Method, Request, Response};
use hyper_util::rt::TokioIo;
use kube::Client;
use kube::client::Body;
use serde_json::{Value, json};
use tokio::net::TcpListener;
use tokio::task::JoinHandle;
use tower::BoxError;

use crate::field::Field;

/// What happens at a request.
pub(crate) enum Does {
    Nothing,
    /// Another's requests come first.
    Asks(Vec<(Method, String, Value)>),
    /// The API is not asked.
    Answers(u16, Value),
}

type Answer = Response<UnsyncBoxBody<Bytes, BoxError>>;

pub(crate) struct Between {
    /// By which `berth` comes here.
    pub(crate) kubeconfig: PathBuf,
    task: JoinHandle<()>,
}

impl Drop for Between {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl Between {
    /// `does` is given method and path.
    pub(crate) fn new(field: &Field, does: impl Fn(&Method, &str) -> Does + Send + Sync + 'static) -> Self {
        let listener = RUNTIME.block_on(TcpListener::bind("127.0.0.1:0")).expect("a port");
        let server = format!("http://{}", listener.local_addr().expect("a port"));
        let config = json!({
            "clusters": [{"name": "it", "cluster": {"server": server}}],
            "contexts": [{"name": "it", "context": {"cluster": "it", "user": "it"}}],
            "users": [{"name": "it", "user": {}}], "current-context": "it",
        });
        let kubeconfig = field.folder.path().join("between");
        std::fs::write(&kubeconfig, config.to_string()).expect("written");
        let (client, does) = (field.client(), Arc::new(does));
        let task = RUNTIME.spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let (client, does) = (client.clone(), does.clone());
                let answer = service_fn(move |request: Request<Incoming>| {
                    let what = does(request.method(), request.uri().path());
                    answer(client.clone(), what, request)
                });
                tokio::spawn(http1::Builder::new().serve_connection(TokioIo::new(stream), answer));
            }
        });
        Self { kubeconfig, task }
    }
}

async fn answer(client: Client, does: Does, request: Request<Incoming>) -> Result<Answer, BoxError> {
    match does {
        Does::Nothing => {}
        Does::Asks(all) => {
            for (method, path, body) in all {
                let asked = Request::builder().method(method).uri(path);
                let asked = asked.header(CONTENT_TYPE, "application/merge-patch+json");
                let body = if body.is_null() { Vec::new() } else { body.to_string().into_bytes() };
                client.request::<Value>(asked.body(body)?).await?;
            }
        }
        Does::Answers(code, value) => {
            let body = Full::new(Bytes::from(value.to_string())).map_err(|never| match never {});
            let answer = Response::builder().status(code).header(CONTENT_TYPE, "application/json");
            return Ok(answer.body(body.boxed_unsync())?);
        }
    }
    let (mut head, body) = request.into_parts();
    head.headers.remove(HOST);
    let body = body.collect().await?.to_bytes();
    let answer = client.send(Request::from_parts(head, Body::from(body))).await?;
    Ok(answer.map(|body| body.map_err(BoxError::from).boxed_unsync()))
}
