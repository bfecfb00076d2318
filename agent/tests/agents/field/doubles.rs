//! An API as one agent has it, with something amiss.

use std::net::SocketAddr;
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use hyper::http::{Request, Response};
use kube::Client;
use kube::client::Body;
use serde_json::json;
use tokio::net::TcpStream;

use super::host::{Host, run};

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
        let shows = || run(Command::new("ip").args(["-n", &netns, "-4", "addr", "show", "dev", &card]));
        if request.uri().path().ends_with(&node) && shows().contains(&ip) {
            nowhere(request);
        }
    })
}

/// The API; once this card has this address, every question opens a connection of its own to this place first.
pub(crate) fn connects_with(client: Client, host: &Host, card: &str, ip: &str, place: SocketAddr) -> Client {
    let (netns, card, ip) = (host.netns.clone(), card.to_owned(), ip.to_owned());
    let service = tower::service_fn(move |request: Request<Body>| {
        let client = client.clone();
        let shows = run(Command::new("ip").args(["-n", &netns, "-4", "addr", "show", "dev", &card]));
        let connects = shows.contains(&ip);
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
    let service = tower::service_fn(move |request: Request<Body>| {
        let client = client.clone();
        let refused = full.load(Ordering::SeqCst) && request.method() != "GET";
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
