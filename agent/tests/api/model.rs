//! Random writes, against a model that is a plain map: answers, content and the watched log agree, also across restarts.

use std::collections::BTreeMap;

use agent::embedded::Api;
use bytes::Bytes;
use http_body_util::{BodyExt, Full};
use hyper::http::Request;
use proptest::prelude::*;
use serde_json::{Value, json};
use tower::ServiceExt;

use crate::folder::Folder;

const NODES: &str = "/api/v1/nodes";

/// A write, on one of a few objects.
#[derive(Clone, Debug)]
enum Write {
    Create {
        object: u8,
        label: u8,
        finalizer: bool,
    },
    /// With the resourceVersion that is right, or with one that is not.
    Update {
        object: u8,
        label: u8,
        stale: bool,
    },
    /// With a `test` of the label.
    Patch {
        object: u8,
        from: u8,
        to: u8,
    },
    Release {
        object: u8,
    },
    Delete {
        object: u8,
    },
    DeleteAll {
        label: u8,
    },
    Restart,
}

fn write() -> impl Strategy<Value = Write> {
    let (object, label) = (0..4_u8, 0..3_u8);
    prop_oneof![
        4 => (object.clone(), label.clone(), any::<bool>())
            .prop_map(|(object, label, finalizer)| Write::Create { object, label, finalizer }),
        3 => (object.clone(), label.clone(), any::<bool>())
            .prop_map(|(object, label, stale)| Write::Update { object, label, stale }),
        4 => (object.clone(), label.clone(), label.clone())
            .prop_map(|(object, from, to)| Write::Patch { object, from, to }),
        2 => object.clone().prop_map(|object| Write::Release { object }),
        3 => object.prop_map(|object| Write::Delete { object }),
        1 => label.prop_map(|label| Write::DeleteAll { label }),
        1 => Just(Write::Restart),
    ]
}

/// An object of the model.
#[derive(Clone, Debug, PartialEq)]
struct Thing {
    label: u8,
    finalizer: bool,
    deleting: bool,
}

type Things = BTreeMap<String, Thing>;

/// What the answer must be, the model being changed.
fn expected(things: &mut Things, write: &Write) -> u16 {
    let name = |object: &u8| format!("n{object}");
    match write {
        Write::Create { object, label, finalizer } => {
            if things.contains_key(&name(object)) {
                return 409;
            }
            things.insert(name(object), Thing { label: *label, finalizer: *finalizer, deleting: false });
            201
        }
        Write::Update { object, label, stale } => match things.get_mut(&name(object)) {
            None => 404,
            Some(_) if *stale => 409,
            Some(thing) => {
                thing.label = *label;
                200
            }
        },
        Write::Patch { object, from, to } => match things.get_mut(&name(object)) {
            None => 404,
            Some(thing) if thing.label != *from => 422,
            Some(thing) => {
                thing.label = *to;
                200
            }
        },
        Write::Release { object } => match things.get_mut(&name(object)) {
            None => 404,
            Some(thing) => {
                thing.finalizer = false;
                if thing.deleting {
                    things.remove(&name(object));
                }
                200
            }
        },
        Write::Delete { object } => match things.get_mut(&name(object)) {
            None => 404,
            Some(_) => {
                delete(things, &name(object));
                200
            }
        },
        Write::DeleteAll { label } => {
            let names: Vec<String> = things
                .iter()
                .filter(|(_, thing)| thing.label == *label)
                .map(|(name, _)| name.clone())
                .collect();
            names.iter().for_each(|name| delete(things, name));
            200
        }
        Write::Restart => 0,
    }
}

fn delete(things: &mut Things, name: &str) {
    match things.get_mut(name) {
        Some(thing) if thing.finalizer => thing.deleting = true,
        _ => {
            things.remove(name);
        }
    }
}

async fn ask(api: &Api, method: &str, path: &str, media_type: &str, body: String) -> (u16, Value) {
    let request = Request::builder().method(method).uri(path).header("content-type", media_type);
    let response = api.clone().oneshot(request.body(Full::new(Bytes::from(body))).unwrap()).await.unwrap();
    let code = response.status().as_u16();
    let body = response.into_body().collect().await.unwrap().to_bytes();
    (code, serde_json::from_slice(&body).unwrap())
}

async fn answered(api: &Api, write: &Write) -> u16 {
    let json = "application/json";
    let path = |object: &u8| format!("{NODES}/n{object}");
    match write {
        Write::Create { object, label, finalizer } => {
            let finalizers = if *finalizer { json!(["nmstate.io/a"]) } else { json!([]) };
            let meta = json!({"name": format!("n{object}"), "labels": {"l": label.to_string()}, "finalizers": finalizers});
            ask(api, "POST", NODES, json, json!({"metadata": meta}).to_string()).await.0
        }
        Write::Update { object, label, stale } => {
            let (code, mut now) = ask(api, "GET", &path(object), json, String::new()).await;
            if code != 200 {
                return code;
            }
            now["metadata"]["labels"]["l"] = label.to_string().into();
            if *stale {
                now["metadata"]["resourceVersion"] = "1".into();
            }
            ask(api, "PUT", &path(object), json, now.to_string()).await.0
        }
        Write::Patch { object, from, to } => {
            let patch = json!([{"op": "test", "path": "/metadata/labels/l", "value": from.to_string()},
                               {"op": "replace", "path": "/metadata/labels/l", "value": to.to_string()}]);
            ask(api, "PATCH", &path(object), "application/json-patch+json", patch.to_string()).await.0
        }
        Write::Release { object } => {
            let patch = json!({"metadata": {"finalizers": null}});
            ask(api, "PATCH", &path(object), "application/merge-patch+json", patch.to_string()).await.0
        }
        Write::Delete { object } => ask(api, "DELETE", &path(object), json, String::new()).await.0,
        Write::DeleteAll { label } => {
            ask(api, "DELETE", &format!("{NODES}?labelSelector=l%3D{label}"), json, String::new()).await.0
        }
        Write::Restart => 0,
    }
}

/// What a list shows.
async fn content(api: &Api, selector: &str) -> (BTreeMap<String, Value>, u64) {
    let (_, list) = ask(api, "GET", &format!("{NODES}?labelSelector={selector}"), "", String::new()).await;
    let items = list["items"].as_array().unwrap();
    let items = items.iter().map(|item| {
        let mut item = item.clone();
        // Items of a list of a built-in kind don't say their type.
        item["apiVersion"] = "v1".into();
        item["kind"] = "Node".into();
        (item["metadata"]["name"].as_str().unwrap().to_owned(), item)
    });
    (items.collect(), list["metadata"]["resourceVersion"].as_str().unwrap().parse().unwrap())
}

/// What a watch from a revision on leaves in a map, once it is where the list was.
async fn replayed(api: &Api, selector: &str) -> BTreeMap<String, Value> {
    let (expected, _) = content(api, selector).await;
    let request =
        Request::get(format!("{NODES}?watch=1&resourceVersion=2&timeoutSeconds=60&labelSelector={selector}"));
    let request = request.body(Full::new(Bytes::new())).unwrap();
    let mut body = api.clone().oneshot(request).await.unwrap().into_body();
    // A last event tells that everything before it was told.
    let end = json!({"metadata": {"name": "end", "labels": {"l": "0"}}});
    assert_eq!(ask(api, "POST", NODES, "", end.to_string()).await.0, 201);
    let (mut map, mut last, mut text) = (BTreeMap::new(), 0, Vec::new());
    while let Some(frame) = body.frame().await {
        text.extend_from_slice(frame.unwrap().data_ref().unwrap());
        while let Some(end) = text.iter().position(|byte| *byte == b'\n') {
            let line: Value = serde_json::from_slice(&text[..end]).unwrap();
            text.drain(..=end);
            let object = &line["object"];
            let name = object["metadata"]["name"].as_str().unwrap_or_else(|| panic!("{line}")).to_owned();
            if name == "end" {
                assert_eq!(ask(api, "DELETE", &format!("{NODES}/end"), "", String::new()).await.0, 200);
                return map;
            }
            let revision: u64 = object["metadata"]["resourceVersion"].as_str().unwrap().parse().unwrap();
            assert!(revision > last, "{revision} after {last}");
            last = revision;
            let before = match line["type"].as_str().unwrap() {
                "DELETED" => map.remove(&name).is_some(),
                "ADDED" => map.insert(name.clone(), object.clone()).is_none(),
                _ => map.insert(name.clone(), object.clone()).is_some(),
            };
            assert!(before, "{line} doesn't fit what came before");
        }
    }
    panic!("the watch ended; {expected:?}");
}

async fn play(writes: &[Write]) {
    let folder = Folder::new();
    let mut api = Api::open(folder.path()).unwrap();
    let mut things = Things::new();
    let mut revision = 0;
    for (index, write) in writes.iter().enumerate() {
        if matches!(write, Write::Restart) {
            drop(api);
            api = Api::open(folder.path()).unwrap();
        }
        let before = things.clone();
        let code = expected(&mut things, write);
        assert_eq!(answered(&api, write).await, code, "{index}: {write:?} on {before:?}");
        let (found, at) = content(&api, "").await;
        assert!(at >= revision, "{at} after {revision}");
        assert_eq!(at > revision || index == 0, things != before || index == 0, "{index}: {write:?}");
        revision = at;
        let found: Things = found.iter().map(|(name, value)| (name.clone(), thing(value))).collect();
        assert_eq!(found, things, "{index}: {write:?}");
    }
    for selector in ["", "l%3D0"] {
        let (found, _) = content(&api, selector).await;
        assert_eq!(replayed(&api, selector).await, found);
    }
}

fn thing(value: &Value) -> Thing {
    let meta = &value["metadata"];
    Thing {
        label: meta["labels"]["l"].as_str().unwrap().parse().unwrap(),
        finalizer: meta.get("finalizers").is_some(),
        deleting: meta.get("deletionTimestamp").is_some(),
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 60, ..ProptestConfig::default() })]

    #[test]
    fn random_writes_agree_with_a_plain_map(writes in prop::collection::vec(write(), 1..60)) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(play(&writes));
    }
}
