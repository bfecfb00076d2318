//! An API as one agent has it, with something amiss.

use std::collections::BTreeSet;
use std::net::SocketAddr;
use std::process::Command;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use crds::NodeIPSlice;
use hyper::http::{Method, Request, Response};
use kube::api::{Api, DeleteParams, ListParams};
use kube::client::Body;
use kube::{Client, ResourceExt};
use serde_json::json;
use tokio::net::TcpStream;

use super::host::{Host, run};

/// Where our kinds are.
const OURS: &str = "/apis/nmstate.io/";
const MERGE: &str = "application/merge-patch+json";

/// The API, but for whatever has this word in its path: that is not to be had.
pub(crate) fn without(client: Client, word: &'static str) -> Client {
    asked(client, move |request| {
        if request.uri().path().contains(word) {
            nowhere(request);
        }
    })
}

/// The API, but for this host's Node, which is not to be had while this card has this address.
pub(crate) fn lost_with(client: Client, host: &Host, card: &str, ip: &str) -> Client {
    let (netns, node) = (host.netns.clone(), format!("/nodes/{}", host.name));
    let (card, ip) = (card.to_owned(), ip.to_owned());
    asked(client, move |request| {
        if request.uri().path().ends_with(&node) && has(&netns, &card, &ip) {
            nowhere(request);
        }
    })
}

/// The API, whose Node of this host is not Ready from the first question for it on while this card has this address: as a kubelet
/// says that has lost its way.
pub(crate) fn unready_with(client: Client, admin: Client, host: &Host, card: &str, ip: &str) -> Client {
    let (netns, node) = (host.netns.clone(), format!("/api/v1/nodes/{}", host.name));
    let (card, ip) = (card.to_owned(), ip.to_owned());
    let service = tower::service_fn(move |request: Request<Body>| {
        let (client, admin, node) = (client.clone(), admin.clone(), node.clone());
        let is_lost = request.uri().path() == node && has(&netns, &card, &ip);
        async move {
            if is_lost {
                let ready = json!({"status": {"conditions": [{"type": "Ready", "status": "False"}]}});
                let said = Request::patch(format!("{node}/status")).header("Content-Type", MERGE);
                let said = said.body(ready.to_string().into_bytes()).expect("a request");
                admin.request_text(said).await?;
            }
            client.send(request).await
        }
    });
    Client::new(service, "default")
}

/// The API; once this card has this address, every question opens a connection of its own to this place first.
pub(crate) fn connects_with(client: Client, host: &Host, card: &str, ip: &str, place: SocketAddr) -> Client {
    let (netns, card, ip) = (host.netns.clone(), card.to_owned(), ip.to_owned());
    let service = tower::service_fn(move |request: Request<Body>| {
        let client = client.clone();
        let connects = has(&netns, &card, &ip);
        async move {
            if connects {
                TcpStream::connect(place).await?;
            }
            Ok::<_, tower::BoxError>(client.send(request).await?)
        }
    });
    Client::new(service, "default")
}

/// The API, and every write that is asked of it through this client: method and path.
pub(crate) fn recorded(client: Client) -> (Client, Arc<Mutex<Vec<String>>>) {
    let writes = Arc::new(Mutex::new(Vec::new()));
    let told = writes.clone();
    let client = asked(client, move |request| {
        if request.method() != "GET" {
            let line = format!("{} {}", request.method(), request.uri().path());
            told.lock().expect("whole").push(line);
        }
    });
    (client, writes)
}

/// The API, and every list of all pools that is asked of it through this client: of their metadata, or whole.
pub(crate) fn pools_read(client: Client) -> (Client, Arc<Mutex<Vec<&'static str>>>) {
    let lists = Arc::new(Mutex::new(Vec::new()));
    let told = lists.clone();
    let client = asked(client, move |request| {
        if lists_pools(request) {
            let accept = request.headers().get("accept").and_then(|accept| accept.to_str().ok());
            let metadata = accept.is_some_and(|accept| accept.contains("PartialObjectMetadata"));
            told.lock().expect("whole").push(if metadata { "metadata" } else { "pools" });
        }
    });
    (client, lists)
}

/// The API, which for as long as this says so takes every question and answers none; who asks gives up after two seconds,
/// as `berth agent`'s client does after some more.
pub(crate) fn silent(client: Client, hangs: Arc<AtomicBool>) -> Client {
    let service = tower::service_fn(move |request: Request<Body>| {
        let (client, hangs) = (client.clone(), hangs.clone());
        async move {
            if hangs.load(Ordering::SeqCst) {
                tokio::time::sleep(Duration::from_secs(2)).await;
                return Err(tower::BoxError::from("no answer"));
            }
            Ok(client.send(request).await?)
        }
    });
    Client::new(service, "default")
}

/// The API, which takes no writes for as long as this says so: as one whose store is full.
pub(crate) fn unwritable(client: Client, full: Arc<AtomicBool>) -> Client {
    failing(client, move |request| full.load(Ordering::SeqCst) && request.method() != "GET")
}

/// The API, which doesn't say which pools there are for as long as this says so; each by its name it does.
pub(crate) fn unlisted(client: Client, lost: Arc<AtomicBool>) -> Client {
    failing(client, move |request| lost.load(Ordering::SeqCst) && lists_pools(request))
}

/// Is this a list of all pools?
fn lists_pools(request: &Request<Body>) -> bool {
    let of_one = request.uri().query().is_some_and(|query| query.contains("fieldSelector"));
    request.method() == Method::GET && request.uri().path().ends_with("/nodeippools") && !of_one
}

/// The API, which fails at some of what it is asked.
fn failing(client: Client, fails: impl Fn(&Request<Body>) -> bool + Send + Sync + 'static) -> Client {
    let service = tower::service_fn(move |request: Request<Body>| {
        let client = client.clone();
        let refused = fails(&request);
        async move {
            if !refused {
                return client.send(request).await;
            }
            let status = json!({"kind": "Status", "apiVersion": "v1", "status": "Failure", "code": 500,
                "reason": "InternalError", "message": "etcdserver: mvcc: database space exceeded"});
            let answer = Response::builder().status(500).body(Body::from(status.to_string().into_bytes()));
            Ok(answer.expect("an answer"))
        }
    });
    Client::new(service, "default")
}

/// The API, where somebody else is quicker once: before the first write to each of our kinds, and to its status, what it is
/// about is written by this other.
pub(crate) fn overtaken(client: Client, other: Client) -> Client {
    let met: Arc<Mutex<BTreeSet<String>>> = Arc::default();
    let service = tower::service_fn(move |request: Request<Body>| {
        let (client, other) = (client.clone(), other.clone());
        let written = written(&request).filter(|(kind, _)| met.lock().expect("whole").insert(kind.clone()));
        async move {
            if let Some((_, object)) = written {
                write_news(&other, &object).await;
            }
            client.send(request).await
        }
    });
    Client::new(service, "default")
}

/// The API, where somebody else deletes all slices right before the first time that one is asked for by its name.
pub(crate) fn unsliced_once(client: Client, other: Client) -> Client {
    let is_over = Arc::new(AtomicBool::new(false));
    let service = tower::service_fn(move |request: Request<Body>| {
        let (client, other) = (client.clone(), other.clone());
        let of_one = request.uri().query().is_some_and(|query| query.contains("fieldSelector"));
        let asks = of_one && request.uri().path().ends_with("/nodeipslices");
        let now = asks && !is_over.swap(true, Ordering::SeqCst);
        async move {
            if now {
                let slices: Api<NodeIPSlice> = Api::all(other);
                for slice in slices.list(&ListParams::default()).await.expect("slices") {
                    slices.delete(&slice.name_any(), &DeleteParams::default()).await.expect("it goes");
                }
            }
            client.send(request).await
        }
    });
    Client::new(service, "default")
}

/// Which of our kinds a request writes, with its subresource, and the path of the object; a creation has none yet.
fn written(request: &Request<Body>) -> Option<(String, String)> {
    if request.method() != Method::PATCH && request.method() != Method::PUT {
        return None;
    }
    let parts: Vec<&str> = request.uri().path().strip_prefix(OURS)?.split('/').collect();
    let [version, kind, name, subresource @ ..] = parts.as_slice() else { return None };
    Some((format!("{kind}/{}", subresource.join("/")), format!("{OURS}{version}/{kind}/{name}")))
}

/// Something that is nobody's business, and new each time.
async fn write_news(client: &Client, object: &str) {
    static NEXT: AtomicUsize = AtomicUsize::new(0);
    let news = NEXT.fetch_add(1, Ordering::Relaxed).to_string();
    let patch = json!({"metadata": {"annotations": {"example.org/news": news}}});
    let request = Request::patch(object).header("Content-Type", MERGE);
    let request = request.body(patch.to_string().into_bytes()).expect("a request");
    // It may be gone by now.
    let _ = client.request_text(request).await;
}

/// Whether a card of a namespace has this IPv4 address.
fn has(netns: &str, card: &str, ip: &str) -> bool {
    run(Command::new("ip").args(["-n", netns, "-4", "addr", "show", "dev", card])).contains(ip)
}

/// What is asked is seen first, and may be changed.
fn asked(client: Client, see: impl Fn(&mut Request<Body>) + Send + Sync + 'static) -> Client {
    let see = Arc::new(see);
    let service = tower::service_fn(move |mut request: Request<Body>| {
        see(&mut request);
        let client = client.clone();
        async move { client.send(request).await }
    });
    Client::new(service, "default")
}

/// No such place: as an API server without that kind, or without the right to it, would say.
fn nowhere(request: &mut Request<Body>) {
    *request.uri_mut() = "/nowhere".parse().expect("a path");
}
