use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::sync::Arc;
use std::time::Duration;

use http_body_util::Full;
use hyper::Response;
use hyper::body::Bytes;

use super::{HUNG, Health, serve};
use crate::http::{Address, Server, Stay};

fn ask(address: SocketAddr, request: &str) -> String {
    let mut stream = TcpStream::connect(address).unwrap();
    // As long as a kubelet waits.
    stream.set_read_timeout(Some(Duration::from_secs(5))).unwrap();
    write!(stream, "{request} HTTP/1.1\r\nHost: berth\r\nConnection: close\r\n\r\n").unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    answer
}

async fn get(server: &Server, request: &'static str) -> String {
    let address = server.address;
    tokio::task::spawn_blocking(move || ask(address, request)).await.unwrap()
}

fn loopback() -> SocketAddr {
    "127.0.0.1:0".parse().unwrap()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_loop_that_hangs_is_not_alive_and_one_that_waits_is() {
    let health = Arc::new(Health::default());
    let server = serve::start(loopback(), health.clone()).await.unwrap();
    assert!(get(&server, "GET /healthz").await.ends_with("\r\n\r\nok\n"));
    health.works();
    assert!(get(&server, "GET /healthz").await.starts_with("HTTP/1.1 200 "));
    health.silent_for(HUNG);
    let sick = get(&server, "GET /healthz").await;
    assert!(sick.starts_with("HTTP/1.1 503 ") && sick.contains("no sign of life for 120 s"), "{sick}");
    health.waits();
    assert!(get(&server, "GET /healthz").await.starts_with("HTTP/1.1 200 "));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn ready_is_who_has_read_all_and_done_a_pass() {
    let health = Arc::new(Health::default());
    let server = serve::start(loopback(), health.clone()).await.unwrap();
    assert!(get(&server, "GET /readyz").await.starts_with("HTTP/1.1 503 "));
    // Without the API: a pass from the journal.
    health.passed(false);
    health.first_pass().await;
    assert!(get(&server, "GET /readyz").await.starts_with("HTTP/1.1 503 "));
    health.passed(true);
    assert!(get(&server, "GET /readyz").await.starts_with("HTTP/1.1 200 "));
    // Once ready it stays so: without the API there is nothing that another agent would do better.
    health.passed(false);
    assert!(health.is_ready());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_the_api_leaves_out_is_said_until_it_keeps_it() {
    let health = Arc::new(Health::default());
    let server = serve::start(loopback(), health.clone()).await.unwrap();
    health.passed(true);
    health.left_out(Some("the API leaves out status.stamp".to_owned()));
    assert!(get(&server, "GET /readyz").await.ends_with("\r\n\r\nok\nthe API leaves out status.stamp\n"));
    health.left_out(None);
    assert!(get(&server, "GET /readyz").await.ends_with("\r\n\r\nok\n"));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn metrics_are_served_and_nothing_else_is() {
    let server = serve::start(loopback(), Arc::default()).await.unwrap();
    let page = get(&server, "GET /metrics").await;
    assert!(page.contains("content-type: text/plain; version=0.0.4; charset=utf-8\r\n"), "{page}");
    assert!(page.contains("\n# TYPE berth_claim_seconds histogram\n"), "{page}");
    assert!(get(&server, "GET /").await.starts_with("HTTP/1.1 404 "));
    let refused = get(&server, "POST /metrics").await;
    assert!(refused.starts_with("HTTP/1.1 405 ") && refused.contains("allow: GET, HEAD"), "{refused}");
}

/// Or whoever reaches the port could have the agent killed, by saying nothing.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_kubelet_is_answered_however_many_say_nothing() {
    let server = serve::start(loopback(), Arc::default()).await.unwrap();
    let silent: Vec<_> =
        (0..4 * serve::AT_ONCE).map(|_| TcpStream::connect(server.address).unwrap()).collect();
    assert!(get(&server, "GET /healthz").await.starts_with("HTTP/1.1 200 "));
    // And one that was there first has gone for it.
    let first = silent.into_iter().next().unwrap();
    let ends = tokio::task::spawn_blocking(move || {
        first.set_read_timeout(Some(Duration::from_secs(5))).unwrap();
        (&first).read(&mut [0])
    });
    assert!(matches!(ends.await.unwrap(), Ok(0)), "it has a place still");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_connection_is_for_one_question_and_ends_in_time() {
    let long = Duration::from_millis(100);
    // More than the kernel keeps for who doesn't read.
    let answer = |_| async { Response::new(Full::new(Bytes::from(vec![b'x'; 64 << 20]))) };
    let server = Server::start(loopback(), 1, Stay::Brief(long), answer).await.unwrap();
    let address = server.address;
    let read = tokio::task::spawn_blocking(move || {
        let mut stream = TcpStream::connect(address).unwrap();
        write!(stream, "GET / HTTP/1.1\r\nHost: berth\r\n\r\n").unwrap();
        std::thread::sleep(10 * long);
        let mut answer = Vec::new();
        // Cut short: by the end, or by a reset.
        let _ = stream.read_to_end(&mut answer);
        answer
    });
    let read = read.await.unwrap();
    assert!(read.len() < 64 << 20, "{}", read.len());
    assert!(String::from_utf8_lossy(&read[..200]).contains("connection: close\r\n"));
}

#[tokio::test]
async fn a_port_that_is_taken_is_said() {
    let first = serve::start(loopback(), Arc::default()).await.unwrap();
    let Err(taken) = serve::start(first.address, Arc::default()).await else { panic!("both have it") };
    assert!(taken.to_string().starts_with(&format!("can't listen on {} ", first.address)), "{taken}");
}

/// It may be this very process that is to put it there.
#[tokio::test]
async fn an_address_that_is_not_there_yet_is_listened_for() {
    for address in ["192.0.2.1:0", "[2001:db8::1]:0"] {
        let server = serve::start(address.parse().unwrap(), Arc::default()).await.unwrap();
        assert_ne!(server.address.port(), 0);
        let taken = serve::start(server.address, Arc::default()).await;
        assert!(taken.is_err(), "{address}: both have it");
    }
}

#[test]
fn addresses_are_read() {
    assert_eq!("none".parse::<Address>().unwrap(), Address::Nowhere);
    assert_eq!("[::1]:9465".parse::<Address>().unwrap().to_string(), "[::1]:9465");
    // Of whichever family: a manifest can't know.
    assert_eq!("[10.0.0.1]:9466".parse::<Address>().unwrap().to_string(), "10.0.0.1:9466");
    assert!("[10.0.0.1]9466".parse::<Address>().is_err() && "[node01]:9466".parse::<Address>().is_err());
    let wrong = "9465".parse::<Address>().unwrap_err().to_string();
    assert_eq!(
        wrong,
        "\"9465\" is neither 'none' nor an address with a port, such as 127.0.0.1:9465 or [::1]:9465"
    );
}
