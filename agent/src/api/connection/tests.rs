use futures_util::{StreamExt, stream};
use http_body_util::{BodyExt, StreamBody};
use hyper::http::Uri;
use hyper::http::header::AUTHORIZATION;
use nix::sys::socket::{getsockopt, sockopt};

use super::*;

/// The kernel is told, on the very socket.
#[tokio::test]
async fn a_silent_connection_is_asked_whether_the_other_end_is_there() {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let place = format!("http://{}", listener.local_addr().unwrap());
    let config = Config::new(place.parse().unwrap());
    let place: Uri = place.parse().unwrap();
    let stream = connector(&config).oneshot(place).await.unwrap().into_inner();
    assert!(getsockopt(&stream, sockopt::KeepAlive).unwrap());
    assert_eq!(getsockopt(&stream, sockopt::TcpKeepIdle).unwrap(), 15);
    assert_eq!(getsockopt(&stream, sockopt::TcpKeepInterval).unwrap(), 5);
    assert_eq!(getsockopt(&stream, sockopt::TcpKeepCount).unwrap(), 3);
    assert_eq!(getsockopt(&stream, sockopt::TcpUserTimeout).unwrap(), 30_000);
}

type Part = Result<Frame<Bytes>, BoxError>;

/// One part of an answer, and then nothing, for ever.
fn stopped() -> impl HttpBody<Data = Bytes, Error = BoxError> {
    let first: Part = Ok(Frame::data(Bytes::from_static(b"{\"items\":[")));
    StreamBody::new(stream::iter([first]).chain(stream::pending()))
}

/// A server that is stopped in the middle of an answer: its kernel goes on acknowledging.
#[tokio::test]
async fn an_answer_that_stops_in_the_middle_is_given_up() {
    let mut body = Timely::new(stopped(), Some(Duration::from_millis(20)));
    let first = body.frame().await.unwrap().unwrap();
    assert_eq!(first.into_data().unwrap(), "{\"items\":[");
    let wrong = body.frame().await.unwrap().unwrap_err();
    assert_eq!(wrong.to_string(), "no more of the answer within 15 s");
}

/// Parts that come one by one, together later than any of them may be: what counts is the time between two.
#[tokio::test]
async fn an_answer_that_goes_on_may_take_its_time() {
    let parts = stream::iter(0..8).then(|_| async {
        tokio::time::sleep(Duration::from_millis(50)).await;
        let part: Part = Ok(Frame::data(Bytes::from_static(b"x")));
        part
    });
    let body = Timely::new(StreamBody::new(parts), Some(Duration::from_millis(300)));
    assert_eq!(body.collect().await.unwrap().to_bytes(), "xxxxxxxx");
}

/// Which requests have a limit: all but watches, which are silent while nothing happens.
#[tokio::test]
async fn a_watch_may_be_silent() {
    for (path, limited) in [
        ("/api/v1/nodes?&watch=true&timeoutSeconds=290", false),
        ("/api/v1/nodes?limit=500", true),
        ("/api/v1/nodes/a", true),
    ] {
        let answers =
            tower::service_fn(|_: Request<Body>| async { Ok::<_, BoxError>(Response::new(stopped())) });
        let request = Request::get(path).body(Body::empty()).unwrap();
        let answer = Patient(answers).oneshot(request).await.unwrap();
        assert_eq!(answer.into_body().wait.is_some(), limited, "{path}");
    }
}

/// A token that is written anew is the next request's; where there is none, the file is named and nothing is sent.
#[tokio::test]
async fn the_token_is_what_its_file_says_now() {
    let file = std::env::temp_dir().join(format!("berth-token-{}", std::process::id()));
    let auth: kube::config::AuthInfo =
        serde_json::from_value(serde_json::json!({"tokenFile": file})).unwrap();
    assert_eq!(token::file_of(&auth).as_deref(), Some(file.as_path()));
    let says = tower::service_fn(|request: Request<Body>| async move {
        let header = request.headers().get(AUTHORIZATION).cloned();
        Ok::<_, BoxError>(header.map(|header| header.to_str().unwrap().to_owned()))
    });
    let ask = || Bearer::new(says, &file).oneshot(Request::new(Body::empty()));
    for token in ["one", "two\n"] {
        std::fs::write(&file, token).unwrap();
        assert_eq!(ask().await.unwrap(), Some(format!("Bearer {}", token.trim_end())));
    }
    std::fs::remove_file(&file).unwrap();
    let wrong = ask().await.unwrap_err().to_string();
    assert_eq!(wrong, format!("token {}: No such file or directory (os error 2)", file.display()));
}
