//! Clients that don't take what they asked for.

use futures_util::stream;
use http_body_util::StreamBody;
use hyper::body::Frame;

use super::*;

/// More than the kernel keeps for both ends together.
const LARGE: usize = 32 << 20;

/// Told when an answer is dropped.
struct Dropped(Arc<Notify>);

impl Drop for Dropped {
    fn drop(&mut self) {
        self.0.notify_one();
    }
}

/// A server whose answers never end, or are one large piece.
fn server(listener: Listener, ended: Arc<Notify>) -> (SocketAddr, watch::Sender<bool>) {
    let (stop, stopping) = watch::channel(false);
    let Place::Plain(at) = listener.place() else { panic!("plain TCP") };
    let service = tower::service_fn(move |request: Request<Incoming>| {
        let held = Dropped(ended.clone());
        let endless = request.uri().path() == "/endless";
        async move {
            let large = Bytes::from(vec![b'x'; LARGE]);
            let pieces = stream::unfold((0, held), move |(count, held)| {
                let more = (endless || count == 0)
                    .then(|| (Ok::<_, Infallible>(Frame::data(large.clone())), (1, held)));
                std::future::ready(more)
            });
            Ok::<_, Infallible>(Response::new(StreamBody::new(pieces)))
        }
    });
    tokio::spawn(listener.serve(service, stopping, Duration::ZERO));
    (at, stop)
}

#[tokio::test]
async fn who_does_not_read_is_cut_off() {
    for path in ["/endless", "/large"] {
        let mut listener = Server::bind("127.0.0.1:0").await.expect("bound");
        listener.limits.untaken = Duration::from_millis(50);
        let ended = Arc::new(Notify::new());
        let (at, _stop) = server(listener, ended.clone());
        let mut stream = TcpStream::connect(at).await.expect("connected");
        stream
            .write_all(format!("GET {path} HTTP/1.1\r\nHost: localhost\r\n\r\n").as_bytes())
            .await
            .expect("sent");
        within(ended.notified()).await;
        // What was on its way is not all of it.
        let mut rest = Vec::new();
        let _ = within(stream.read_to_end(&mut rest)).await;
        assert!(rest.len() < LARGE, "{} bytes", rest.len());
    }
}

#[tokio::test]
async fn who_reads_gets_all_of_it_whole() {
    let listener = Server::bind("127.0.0.1:0").await.expect("bound");
    let (at, _stop) = server(listener, Arc::new(Notify::new()));
    let answer = ask(TcpStream::connect(at).await.expect("connected"), "/large").await;
    let (_, body) = answer.split_once("\r\n\r\n").expect("a head");
    assert!(body.len() >= LARGE, "{} bytes", body.len());
}
