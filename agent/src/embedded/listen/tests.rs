//! Ways in, with real sockets and real certificates; what is served is a service that says who asked.

mod renewed;
mod secure;
mod untaken;

use std::convert::Infallible;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::UnixListener as Socket;
use std::sync::Arc;
use std::time::Duration;

use http_body_util::Full;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::{TcpStream, UnixStream};
use tokio::sync::{Notify, watch};
use tokio::task::JoinHandle;

use super::*;
use crate::embedded::testing::Folder;

/// Longer than anything takes here: a test that waits for it has failed.
const DEADLINE: Duration = Duration::from_secs(60);

/// A server on one listener.
struct Server {
    place: Place,
    stop: watch::Sender<bool>,
    /// Requests to `/slow` wait for it.
    go: Arc<Notify>,
    /// Told when a request to `/slow` has come in.
    slow: Arc<Notify>,
    ended: JoinHandle<()>,
}

impl Server {
    fn start(listener: Listener) -> Self {
        let (stop, stopping) = watch::channel(false);
        let (go, slow) = (Arc::new(Notify::new()), Arc::new(Notify::new()));
        let (wait, came) = (go.clone(), slow.clone());
        let service = tower::service_fn(move |request: Request<Incoming>| {
            let (wait, came) = (wait.clone(), came.clone());
            async move {
                assert_ne!(request.uri().path(), "/bug");
                if request.uri().path() == "/slow" {
                    came.notify_one();
                    wait.notified().await;
                }
                let who = format!("{:?}", Caller::of(request.extensions()));
                Ok::<_, Infallible>(Response::new(Full::new(Bytes::from(who))))
            }
        });
        let place = listener.place();
        let ended = tokio::spawn(listener.serve(service, stopping, Duration::from_secs(30)));
        Self { place, stop, go, slow, ended }
    }

    async fn bind(address: &str) -> Result<Listener, String> {
        let address: Address = address.parse().expect("an address");
        Listener::bind(&address, None, false).await.map_err(|error| error.to_string())
    }

    fn at(&self) -> SocketAddr {
        match self.place {
            Place::Plain(at) | Place::Tls(at) => at,
            Place::Unix(_) => panic!("a unix socket has no address"),
        }
    }

    async fn end(self) {
        self.stop.send_replace(true);
        within(self.ended).await.expect("it ends");
    }
}

async fn within<F: Future>(future: F) -> F::Output {
    tokio::time::timeout(DEADLINE, future).await.expect("in time")
}

/// Sends a request and reads until the server closes.
async fn ask(mut stream: impl AsyncRead + AsyncWrite + Unpin, path: &str) -> String {
    ask_by("localhost", &mut stream, path).await
}

async fn ask_by(name: &str, mut stream: impl AsyncRead + AsyncWrite + Unpin, path: &str) -> String {
    let request = format!("GET {path} HTTP/1.1\r\nHost: {name}\r\nConnection: close\r\n\r\n");
    let mut answer = Vec::new();
    // A server that refuses may close before it has read everything.
    let _ = within(stream.write_all(request.as_bytes())).await;
    let _ = within(stream.read_to_end(&mut answer)).await;
    String::from_utf8_lossy(&answer).into_owned()
}

#[tokio::test]
async fn the_unix_socket_is_its_owners_and_goes_with_the_server() {
    let folder = Folder::new();
    let path = folder.path().join("run/api.sock");
    let server = Server::start(Server::bind(&format!("unix:{}", path.display())).await.expect("bound"));
    assert_eq!(server.place, Place::Unix(path.clone()));
    let mode = fs::metadata(&path).expect("a socket").permissions().mode() & 0o777;
    assert_eq!(mode, 0o600);
    let answer = ask(UnixStream::connect(&path).await.expect("connected"), "/").await;
    assert!(answer.starts_with("HTTP/1.1 200 OK\r\n") && answer.ends_with("Everything"), "{answer}");
    server.end().await;
    assert!(!path.exists());
}

#[tokio::test]
async fn a_dead_servers_socket_is_replaced_and_nothing_else() {
    let folder = Folder::new();
    let path = folder.path().join("api.sock");
    let address = format!("unix:{}", path.display());
    drop(Socket::bind(&path).expect("bound"));
    assert!(path.exists(), "what a killed server leaves");
    let server = Server::start(Server::bind(&address).await.expect("bound"));
    let refused = Server::bind(&address).await.map(|_| ()).expect_err("refused");
    assert!(refused.ends_with("another server listens there; stop it, or give another path"), "{refused}");
    // The one that was refused took nothing with it.
    assert!(ask(UnixStream::connect(&path).await.expect("connected"), "/").await.ends_with("Everything"));
    server.end().await;
    fs::write(&path, "precious").expect("written");
    let refused = Server::bind(&address).await.map(|_| ()).expect_err("refused");
    assert!(refused.contains("there is something that is no socket"), "{refused}");
    assert_eq!(fs::read_to_string(&path).expect("there"), "precious");
}

#[tokio::test]
async fn plain_tcp_is_for_loopback_only() {
    for beyond in ["0.0.0.0:0", "[::]:0", "192.0.2.1:0"] {
        let refused = Server::bind(beyond).await.map(|_| ()).expect_err("refused");
        assert!(refused.contains("plain TCP is for loopback only"), "{beyond}: {refused}");
        assert!(refused.contains("--tls-cert, --tls-key and --client-ca"), "{beyond}: {refused}");
    }
    let server = Server::start(Server::bind("127.0.0.1:0").await.expect("bound"));
    let at = server.at();
    assert_eq!(server.place.to_string(), format!("http://{at}"));
    assert!(at.ip().is_loopback() && at.port() != 0, "{at}");
    let answer = ask(TcpStream::connect(at).await.expect("connected"), "/").await;
    assert!(answer.ends_with("Everything"), "{answer}");
    let taken = Server::bind(&at.to_string()).await.map(|_| ()).expect_err("refused");
    assert_eq!(taken, format!("--listen {at}: can't listen there"));
    server.end().await;
}

#[tokio::test]
async fn a_request_under_way_is_finished_and_no_other_is_begun() {
    let server = Server::start(Server::bind("127.0.0.1:0").await.expect("bound"));
    let at = server.at();
    let under_way = tokio::spawn(ask(TcpStream::connect(at).await.expect("connected"), "/slow"));
    within(server.slow.notified()).await;
    server.stop.send_replace(true);
    // The socket is closed before requests under way are waited for.
    within(async {
        while TcpStream::connect(at).await.is_ok() {
            tokio::task::yield_now().await;
        }
    })
    .await;
    assert!(!under_way.is_finished());
    server.go.notify_one();
    assert!(within(under_way).await.expect("answered").ends_with("Everything"));
    server.end().await;
}

#[tokio::test]
async fn who_says_nothing_is_sent_away() {
    let mut listener = Server::bind("127.0.0.1:0").await.expect("bound");
    listener.limits.first_request = Duration::from_millis(20);
    let server = Server::start(listener);
    for said in ["", "G", "GET / HTTP/1.1\r\nHost:", "PRI * HTTP/2.0\r\n"] {
        let mut stream = TcpStream::connect(server.at()).await.expect("connected");
        stream.write_all(said.as_bytes()).await.expect("sent");
        let mut rest = Vec::new();
        let _ = within(stream.read_to_end(&mut rest)).await;
        assert!(!rest.starts_with(b"HTTP/1.1 200"), "{said:?}");
    }
    server.end().await;
}

/// Also one outside of the API, which answers 500 for its own.
#[tokio::test]
async fn a_bug_costs_its_connection_and_no_other() {
    let mut listener = Server::bind("127.0.0.1:0").await.expect("bound");
    listener.limits.connections = 1;
    let server = Server::start(listener);
    for _ in 0..3 {
        let answer = ask(TcpStream::connect(server.at()).await.expect("connected"), "/bug").await;
        assert_eq!(answer, "");
    }
    // Its place is free.
    assert!(
        ask(TcpStream::connect(server.at()).await.expect("connected"), "/").await.ends_with("Everything")
    );
    server.end().await;
}

/// A watch over HTTP/1.1 is one long answer: only who is idle between two requests is sent away.
#[tokio::test]
async fn an_idle_connection_is_closed_and_a_long_answer_is_not() {
    let mut listener = Server::bind("127.0.0.1:0").await.expect("bound");
    listener.limits.next_request = Duration::from_millis(50);
    let server = Server::start(listener);
    let long = tokio::spawn(ask(TcpStream::connect(server.at()).await.expect("connected"), "/slow"));
    within(server.slow.notified()).await;
    // Twice, one after the other: by then the long one has waited longer than either.
    for _ in 0..2 {
        let mut idle = TcpStream::connect(server.at()).await.expect("connected");
        idle.write_all(b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n").await.expect("sent");
        let mut answer = Vec::new();
        let _ = within(idle.read_to_end(&mut answer)).await;
        assert!(answer.starts_with(b"HTTP/1.1 200 OK"), "{}", String::from_utf8_lossy(&answer));
    }
    server.go.notify_one();
    assert!(within(long).await.expect("answered").ends_with("Everything"));
    server.end().await;
}

#[tokio::test]
async fn connections_beyond_the_limit_wait_for_their_turn() {
    let mut listener = Server::bind("127.0.0.1:0").await.expect("bound");
    listener.limits.connections = 1;
    let server = Server::start(listener);
    let first = tokio::spawn(ask(TcpStream::connect(server.at()).await.expect("connected"), "/slow"));
    within(server.slow.notified()).await;
    let second = tokio::spawn(ask(TcpStream::connect(server.at()).await.expect("connected"), "/slow"));
    server.go.notify_one();
    assert!(within(first).await.expect("answered").ends_with("Everything"));
    within(server.slow.notified()).await;
    server.go.notify_one();
    assert!(within(second).await.expect("answered").ends_with("Everything"));
    server.end().await;
}

#[tokio::test]
async fn a_head_that_never_ends_is_refused() {
    let server = Server::start(Server::bind("127.0.0.1:0").await.expect("bound"));
    let answer = ask(TcpStream::connect(server.at()).await.expect("connected"), &"/".repeat(100_000)).await;
    assert!(!answer.contains("200 OK"), "{answer}");
    let many: String = (0..1000).map(|n| format!("/ HTTP/1.1\r\nx-{n}: y\r\n")).collect();
    let answer = ask(TcpStream::connect(server.at()).await.expect("connected"), &many).await;
    assert!(!answer.contains("200 OK"), "{answer}");
    server.end().await;
}

/// A web page's own name, resolved to loopback, is as good as the user who looks at it: it must not get in.
#[tokio::test]
async fn plain_tcp_answers_to_names_of_this_host_only() {
    let server = Server::start(Server::bind("127.0.0.1:0").await.expect("bound"));
    for (name, in_) in [
        ("localhost", true),
        ("LOCALHOST:80", true),
        ("127.0.0.1:1234", true),
        ("[::1]:1", true),
        ("evil.example.org", false),
        ("localhost.example.org", false),
        ("127.0.0.1.example.org:80", false),
        ("10.0.0.1", false),
        ("", false),
    ] {
        let stream = TcpStream::connect(server.at()).await.expect("connected");
        let answer = ask_by(name, stream, "/").await;
        let expected = if in_ { "HTTP/1.1 200 OK" } else { "HTTP/1.1 403 Forbidden" };
        assert!(answer.starts_with(expected), "{name:?}: {answer}");
    }
    server.end().await;
}

/// Without any name of its own: a page of whatever site may send to loopback, and can't read the answer. It need not.
#[tokio::test]
async fn a_web_page_gets_nowhere_over_plain_tcp() {
    let server = Server::start(Server::bind("127.0.0.1:0").await.expect("bound"));
    for origin in ["https://evil.example.org", "null", "http://localhost:8080"] {
        let path = format!("/ HTTP/1.1\r\nOrigin: {origin}\r\nX-Rest:");
        let answer = ask(TcpStream::connect(server.at()).await.expect("connected"), &path).await;
        assert!(answer.starts_with("HTTP/1.1 403 Forbidden"), "{origin}: {answer}");
        assert!(answer.contains("a web page may ask nothing here"), "{answer}");
    }
    server.end().await;
}

#[test]
fn addresses_are_read_as_people_write_them() {
    let tcp = |host: &str, port| Ok(Address::Tcp { host: host.to_owned(), port });
    let cases: [(&str, Result<Address, AddressError>); 12] = [
        ("unix:/run/berth/api.sock", Ok(Address::Unix("/run/berth/api.sock".into()))),
        ("127.0.0.1:0", tcp("127.0.0.1", 0)),
        ("[::1]:6443", tcp("::1", 6443)),
        ("api.example.org:6443", tcp("api.example.org", 6443)),
        ("unix:api.sock", Err(AddressError::Relative)),
        ("unix:", Err(AddressError::Relative)),
        ("127.0.0.1", Err(AddressError::Shape)),
        (":6443", Err(AddressError::Shape)),
        ("https://10.0.0.1:6443", Err(AddressError::Shape)),
        ("127.0.0.1:65536", Err(AddressError::Port("65536".to_owned()))),
        ("127.0.0.1:", Err(AddressError::Port(String::new()))),
        ("::1:6443", Err(AddressError::Brackets("::1".to_owned()))),
    ];
    for (text, expected) in cases {
        let read = text.parse::<Address>();
        assert_eq!(read, expected, "{text}");
        if let Ok(address) = read {
            assert_eq!(address.to_string(), text);
        }
    }
    let long = format!("unix:/{}", "a".repeat(107));
    assert_eq!(long.parse::<Address>(), Err(AddressError::Long));
}
