use http_body_util::Full;
use serde_json::json;

use super::*;

#[test]
fn keys_given_twice_are_told_and_the_last_one_counts() {
    let (value, twice) = json(br#"{"a": 1, "b": [{"c": 1, "c": 2}], "a": 3}"#).unwrap();
    assert_eq!(value, json!({"a": 3, "b": [{"c": 2}]}));
    assert_eq!(twice, ["b[0].c", "a"]);
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
    let fits = Full::new(Bytes::from(vec![b' '; LARGEST]));
    assert_eq!(read(fits).await.unwrap().len(), LARGEST);
    let larger = Full::new(Bytes::from(vec![b' '; LARGEST + 1]));
    assert_eq!(read(larger).await.unwrap_err().code, 413);
}
