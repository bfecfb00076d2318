use std::pin::Pin;
use std::sync::Mutex;
use std::task::Poll;

use hyper::http::HeaderMap;
use serde_json::json;

use super::*;
use crate::embedded::query::Query;
use crate::embedded::store::Key;
use crate::embedded::{Api, Caller, resource, route};

const PATH: &str = "/api/v1/nodes/n";

fn call(api: &Api) -> Call {
    Call {
        inner: api.inner.clone(),
        target: route::target(PATH).unwrap(),
        query: Query::parse("").unwrap(),
        shape: shape::Shape::Json,
        caller: Caller::Everything,
        headers: HeaderMap::new(),
    }
}

fn node() -> (Key, Value) {
    let key = Key::new(resource::Table::of("", "nodes").unwrap(), "", "n");
    (key, json!({"metadata": {"name": "n", "uid": "u", "labels": {"count": "0"}}}))
}

/// Everybody waits for the writer: what a host sends must not be worked on there, however many send at once.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_an_object_becomes_is_never_found_by_the_writer() {
    let api = Api::in_memory();
    let (key, value) = node();
    api.inner.store.write(move |tx| Ok(tx.put(key, &value))).await.unwrap();
    let threads: Arc<Mutex<Vec<String>>> = Arc::default();
    let mut tasks = tokio::task::JoinSet::new();
    for _ in 0..50 {
        let (call, threads) = (call(&api), threads.clone());
        let make = move |_: &Call, _: &Object, before: &Value| {
            let thread = std::thread::current().name().unwrap_or_default().to_owned();
            threads.lock().unwrap().push(thread);
            let mut value = before.clone();
            let count: usize = value["metadata"]["labels"]["count"].as_str().unwrap().parse().unwrap();
            value["metadata"]["labels"]["count"] = (count + 1).to_string().into();
            Ok((value, Vec::new()))
        };
        tasks.spawn(call.change(Verb::Patch, false, Box::new(make), None));
    }
    for changed in tasks.join_all().await {
        assert_eq!(changed.unwrap().status(), 200);
    }
    // Each once, in turn, and none in vain.
    let node = api.inner.store.read().get(&node().0).unwrap().value();
    assert_eq!(node["metadata"]["labels"]["count"], "50");
    let threads = threads.lock().unwrap();
    assert!(!threads.iter().any(|thread| thread == "berth-store"), "{threads:?}");
    assert_eq!(threads.len(), 50);
}

/// Who doesn't wait for its turn, as a deletion, is seen: what was found before is found again.
#[tokio::test]
async fn what_was_found_before_another_change_is_found_again() {
    let api = Api::in_memory();
    let (key, value) = node();
    api.inner.store.write(move |tx| Ok(tx.put(key, &value))).await.unwrap();
    let runs = Arc::new(Mutex::new(0));
    let (counted, inner) = (runs.clone(), api.inner.clone());
    let make = move |_: &Call, _: &Object, before: &Value| {
        let mut runs = counted.lock().unwrap();
        *runs += 1;
        if *runs < 3 {
            let (key, value) = node();
            inner.store.write_blocking(move |tx| Ok(tx.put(key, &value))).unwrap();
        }
        Ok((before.clone(), Vec::new()))
    };
    let changed = call(&api).change(Verb::Patch, false, Box::new(make), None).await.unwrap();
    assert_eq!((changed.status().as_u16(), *runs.lock().unwrap()), (200, 3));
    // For ever, it is a conflict.
    let inner = api.inner.clone();
    let make = move |_: &Call, _: &Object, before: &Value| {
        let (key, value) = node();
        inner.store.write_blocking(move |tx| Ok(tx.put(key, &value))).unwrap();
        Ok((before.clone(), Vec::new()))
    };
    let refused = call(&api).change(Verb::Patch, false, Box::new(make), None).await.unwrap_err();
    assert_eq!((refused.code.as_u16(), refused.reason), (409, "Conflict"));
}

async fn has_to_wait<F: Future>(mut future: Pin<&mut F>) -> bool {
    std::future::poll_fn(|cx| Poll::Ready(future.as_mut().poll(cx).is_pending())).await
}

/// A client that goes away gives its turn to the next.
#[tokio::test]
async fn a_turn_that_nobody_waits_for_any_more_is_passed_on() {
    let api = Api::in_memory();
    let (store, key) = (&api.inner.store, node().0);
    let first = store.turn(&key).await;
    {
        let mut gone = std::pin::pin!(store.turn(&key));
        assert!(has_to_wait(gone.as_mut()).await);
    }
    let mut next = std::pin::pin!(store.turn(&key));
    assert!(has_to_wait(next.as_mut()).await);
    drop(first);
    drop(next.await);
    drop(store.turn(&key).await);
}
