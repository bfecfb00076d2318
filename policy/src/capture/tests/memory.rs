//! Captured states of an earlier evaluation, per capture.

use serde_json::json;

use super::*;
use crate::capture::{Granted, read_cached};

#[test]
fn a_cached_capture_is_not_evaluated_again() {
    let captures = Captures::parse(&lines(&[
        ("a", "interfaces.name==gone"),
        ("b", "interfaces.name==capture.a.interfaces.0.controller"),
    ]))
    .unwrap();
    let stored = json!({
        "a": {"state": {"interfaces": [{"name": "gone", "controller": "eth2"}]}, "metaInfo": {"version": "0", "time": "then"}},
        "unrelated": {"state": {}, "metaInfo": {"version": "0", "time": "then"}},
    });
    let cached = read_cached(&stored).unwrap();
    let bindings = captures.eval(&state(), &cached, &Grants::new()).unwrap();
    assert_eq!(names(bindings.get("b").unwrap()), ["eth2"], "a fresh one uses a cached one");
    assert_eq!(bindings.names().collect::<Vec<_>>(), ["a", "b"]);
    let states = bindings.captured_states("now");
    assert_eq!(states["a"], stored["a"], "kept as it was, time and all");
    assert_eq!(states["b"]["metaInfo"], json!({"version": "0", "time": "now"}));
}

#[test]
fn what_is_stored_can_be_read_again() {
    let captures =
        Captures::parse(&lines(&[("a", "interfaces.name==eth1"), ("p", "ippool.p.allocate")])).unwrap();
    let grants = Grants::from([("p".to_owned(), Granted::single("10.0.0.2/24".parse().unwrap()))]);
    let first = captures.eval(&state(), &Cached::new(), &grants).unwrap().captured_states("first");
    assert_eq!(first["p"]["ip"], "10.0.0.2", "a pool capture is stored as the seed has it");
    let cached = read_cached(&Value::Object(first.clone())).unwrap();
    let second = captures.eval(&json!({}), &cached, &grants).unwrap().captured_states("second");
    assert_eq!(first, second);
}

#[test]
fn shapes_that_are_refused() {
    assert_eq!(read_cached(&json!(null)).unwrap(), Cached::new());
    assert_eq!(
        read_cached(&json!([])).unwrap_err().to_string(),
        "capturedStates: expected a map of captured states, found a list"
    );
    assert_eq!(
        read_cached(&json!({"a": 1})).unwrap_err().to_string(),
        "capturedStates.a: expected a captured state, found '1'"
    );
    let misspelt = json!({"a": {"stat": {}}, "b": {"state": {}, "bogus": 1, "metaInfo": {"tiem": "x"}}});
    assert_eq!(
        read_cached(&misspelt).unwrap_err().to_string(),
        "capturedStates.a.state: expected the captured state, found null
capturedStates.b.bogus: expected nothing but state and metaInfo, found '1'
capturedStates.b.metaInfo.tiem: expected nothing but version and time, found 'x'"
    );
}
