use http_body_util::Full;
use serde_json::json;

use super::*;

#[test]
fn keys_given_twice_are_told_and_the_last_one_counts() {
    let (value, twice) = json(br#"{"a": 1, "b": [{"c": 1, "c": 2}], "a": 3}"#).unwrap();
    assert_eq!(value, json!({"a": 3, "b": [{"c": 2}]}));
    assert_eq!(twice, ["b[0].c", "a"]);
}

/// A long key with many below it: a path for each of those would be gigabytes.
#[test]
fn paths_are_made_only_of_what_is_told_of() {
    let (key, deep) = ("k".repeat(1 << 20), 60);
    let items = "1,".repeat(50_000);
    let text = format!("{{\"{key}\":[{items}1]}}");
    let (value, twice) = json(text.as_bytes()).unwrap();
    assert_eq!((value[&key].as_array().unwrap().len(), twice.len()), (50_001, 0));
    let many = "\"a\":1,".repeat(20_000);
    let text = format!("{}{{\"{key}\":{{{many}\"a\":2}}}}{}", "{\"x\":[".repeat(deep), "]}".repeat(deep));
    let (_, twice) = json(text.as_bytes()).unwrap();
    assert_eq!(twice.len(), TOLD);
    assert!(twice.iter().all(|path| path.starts_with("x[0].x[0].") && path.ends_with("kk…")), "{}", twice[0]);
    assert!(twice[0].len() <= TOLD_PATH + 3);
}

#[test]
fn what_is_no_json_is_a_bad_request() {
    let deep = "[".repeat(1000);
    for text in ["", "{", "{}{}", "{\"a\": }", "\u{0}", &deep] {
        assert_eq!(json(text.as_bytes()).unwrap_err().code, 400, "{text:?}");
    }
}

#[test]
fn yaml_is_one_document() {
    assert_eq!(decode("application/yaml", b"a: 1").unwrap().0, json!({"a": 1}));
    for text in ["", "a: 1\n---\nb: 2", "a: [", "a: &a [*a]"] {
        assert_eq!(decode("application/yaml", text.as_bytes()).unwrap_err().code, 400, "{text:?}");
    }
    assert_eq!(decode("application/vnd.kubernetes.protobuf", b"").unwrap_err().code, 415);
}

#[tokio::test]
async fn a_body_beyond_the_bound_is_refused() {
    let room = Arc::new(Semaphore::new(ROOM));
    assert_eq!(read(&room, blank(LARGEST)).await.unwrap().len(), LARGEST);
    assert_eq!(refused(&room, blank(LARGEST + 1)).await.code, 413);
    assert_eq!(room.available_permits(), ROOM);
}

fn blank(size: usize) -> Full<Bytes> {
    Full::new(Bytes::from(vec![b' '; size]))
}

async fn refused(room: &Arc<Semaphore>, body: Full<Bytes>) -> Status {
    read(room, body).await.map(|_| ()).unwrap_err()
}

#[tokio::test]
async fn bodies_share_room_until_their_requests_are_answered() {
    let room = Arc::new(Semaphore::new(1000));
    let first = read(&room, blank(600)).await.unwrap();
    let second = read(&room, blank(300)).await.unwrap();
    let status = refused(&room, blank(101)).await;
    assert_eq!((status.code.as_u16(), status.details.retry_after_seconds), (429, 1));
    // Who was refused holds nothing.
    assert_eq!(room.available_permits(), 100);
    assert_eq!((first.len(), second.len()), (600, 300));
    drop(first);
    assert_eq!(read(&room, blank(700)).await.unwrap().len(), 700);
    drop(second);
    assert_eq!(room.available_permits(), 1000);
}
