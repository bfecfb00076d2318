//! What no honest client sends: a Status, and nothing changed.

use api_tests::server::Server;
use api_tests::server::paths::{LEASES, NAMESPACES, NODES, POLICIES, POOLS, at, node, policy, pool};
use hyper::{Method, Request};
use kube::client::Body;
use serde_json::{Value, json};

use crate::differences::{begins, leads_nowhere, patch_rejected, too_large_to_store};
use crate::support::{causes, names};

async fn raw(s: &Server, method: Method, path: &str, body: &str) -> api_tests::server::Answer {
    s.ask(method, path, Some("application/json"), body.into()).await
}

pub(crate) async fn broken_json(s: Server) {
    let bodies =
        ["{\"apiVersion\":", "[]", "\"x\"", "null", "", "7", "{]", "\u{feff}{}", "x: y", "{\"metadata\": 1}"];
    for body in bodies {
        let answer = raw(&s, Method::POST, POOLS, body).await;
        assert_eq!(answer.code, 400, "{body}: {}", answer.text);
        answer.refused(400, "BadRequest");
    }
    for body in ["{\"apiVersion\":", "[]", "null", ""] {
        let about = "the object provided is unrecognized (must be of type NodeIPPool): ";
        begins(raw(&s, Method::POST, POOLS, body).await, 400, "BadRequest", about);
    }
    let name = s.name("pool");
    let before = s.post(POOLS, &pool(&name)).await.created();
    raw(&s, Method::PUT, &at(POOLS, &name), "{\"apiVersion\":").await.refused(400, "BadRequest");
    begins(
        raw(&s, Method::POST, NODES, "{\"bro").await,
        400,
        "BadRequest",
        "the object provided is unrecognized (must be of type Node): ",
    );
    assert_eq!(s.get(&at(POOLS, &name)).await.ok(), before);
}

pub(crate) async fn another_kind_or_version(s: Server) {
    let name = s.name("pool");
    let mut other = pool(&name);
    other["kind"] = json!("NodeIPSlice");
    let words = format!(
        "NodeIPSlice.nmstate.io \"{name}\" is invalid: kind: Invalid value: \"NodeIPSlice\": must be NodeIPPool"
    );
    let status = s.post(POOLS, &other).await.says(422, "Invalid", &words);
    assert_eq!(causes(&status), [("kind", "FieldValueInvalid")]);
    other = pool(&name);
    for shown in ["v1", "nmstate.io/v7", ""] {
        other["apiVersion"] = json!(shown);
        let words = format!(
            "the API version in the data ({shown}) does not match the expected API version (nmstate.io/v1)"
        );
        s.post(POOLS, &other).await.says(400, "BadRequest", &words);
    }
    other = pool(&name);
    other.as_object_mut().expect("an object").shift_remove("kind");
    let about =
        "the object provided is unrecognized (must be of type NodeIPPool): Object 'Kind' is missing in ";
    begins(s.post(POOLS, &other).await, 400, "BadRequest", about);
    s.get(&at(POOLS, &name)).await.refused(404, "NotFound");
    // Built-in kinds: nothing said is the kind of the URL, something else is refused.
    let name = s.name("node");
    let mut pod = node(&name);
    pod["kind"] = json!("Pod");
    begins(
        s.post(NODES, &pod).await,
        400,
        "BadRequest",
        "Pod in version \"v1\" cannot be handled as a Node: ",
    );
    let mut next = node(&name);
    next["apiVersion"] = json!("v2");
    begins(
        s.post(NODES, &next).await,
        400,
        "BadRequest",
        "Node in version \"v2\" cannot be handled as a Node: ",
    );
    s.post(NODES, &json!({"metadata": {"name": name}})).await.created();
}

pub(crate) async fn bodies_that_are_too_large(s: Server) {
    let of = |name: &str, bytes: usize| {
        let mut object = policy(name);
        object["spec"]["desiredState"] = json!({"x": "y".repeat(bytes)});
        object
    };
    let name = s.name("large");
    s.post(POLICIES, &of(&name, 1200 * 1024)).await.created();
    let path = at(POLICIES, &name);
    let before = s.get(&path).await.ok();
    for bytes in [1600 * 1024, 2 << 20] {
        let name = s.name("large");
        too_large_to_store(&s.post(POLICIES, &of(&name, bytes)).await);
        s.get(&at(POLICIES, &name)).await.refused(404, "NotFound");
        // By a change, too.
        too_large_to_store(
            &s.merge(&path, &json!({"spec": {"desiredState": {"x": "z".repeat(bytes)}}})).await,
        );
    }
    let words = "Request entity too large: limit is 3145728";
    let name = s.name("large");
    s.post(POLICIES, &of(&name, 4 << 20)).await.says(413, "RequestEntityTooLarge", words);
    let patch = json!({"spec": {"desiredState": {"x": "z".repeat(4 << 20)}}});
    s.merge(&path, &patch).await.says(413, "RequestEntityTooLarge", words);
    assert_eq!(s.get(&path).await.ok(), before);
    // Large objects are taken away again, so that lists of other tests stay small.
    s.delete(&path).await.ok();
}

pub(crate) async fn deep_nesting(s: Server) {
    let name = s.name("deep");
    let nested = |depth: usize| {
        let (open, close) = ("{\"a\":".repeat(depth), "}".repeat(depth));
        format!(
            r#"{{"apiVersion": "nmstate.io/v1", "kind": "NodeNetworkConfigurationPolicy", "metadata": {{"name": "{name}"}},
                "spec": {{"desiredState": {open}1{close}}}}}"#
        )
    };
    let answer = raw(&s, Method::POST, POLICIES, &nested(20_000)).await;
    let about = "the object provided is unrecognized (must be of type NodeNetworkConfigurationPolicy): ";
    begins(answer, 400, "BadRequest", about);
    s.get(&at(POLICIES, &name)).await.refused(404, "NotFound");
    raw(&s, Method::POST, POLICIES, &nested(50)).await.created();
}

pub(crate) async fn paths_that_lead_elsewhere(s: Server) {
    let name = s.name("pool");
    s.post(POOLS, &pool(&name)).await.created();
    let nowhere = [
        "/apis/nmstate.io/v1//nodeippools".to_owned(),
        "/apis/nmstate.io/v1/nothing".to_owned(),
        "/apis/nmstate.io/v7/nodeippools".to_owned(),
        "/apis/nothing.io/v1/x".to_owned(),
        "/apis/nmstate.io/v1/namespaces/default/nodeippools".to_owned(),
        format!("/apis/nmstate.io/v1/namespaces/default/nodeippools/{name}"),
        "/api/v1/namespaces/default/nodes".to_owned(),
        "/nothing".to_owned(),
        "/api/v1/nothing".to_owned(),
        "/api/v1/nodes/..%2fx".to_owned(),
        format!("{LEASES}/{name}/status"),
        format!("{POOLS}/{name}/nothing"),
        format!("{POOLS}/../nodeippools/nothing"),
    ];
    for path in nowhere {
        leads_nowhere(&s, s.get(&path).await);
    }
    let odd = ["%2e%2e", "..", ".", "%00", "UPPER", "a%20b", "%ff", "a%2fb"];
    for odd in odd {
        for method in [Method::GET, Method::DELETE] {
            let answer = s.ask(method, &format!("{POOLS}/{odd}"), None, Vec::new()).await;
            assert!(matches!(answer.code, 400 | 404), "{}: {} {}", answer.asked, answer.code, answer.text);
        }
    }
    let words = "Name parameter invalid: \"..\": may not be '..'";
    s.get(&format!("{POOLS}/%2e%2e")).await.says(400, "BadRequest", words);
    assert_eq!(s.get(&format!("{POOLS}/")).await.ok()["kind"], "NodeIPPoolList");
    s.get(&at(POOLS, &name)).await.ok();
}

pub(crate) async fn methods_that_are_not_there(s: Server) {
    let name = s.name("pool");
    let before = s.post(POOLS, &pool(&name)).await.created();
    let path = at(POOLS, &name);
    for (method, path) in [
        (Method::POST, format!("{path}/status")),
        (Method::DELETE, format!("{path}/status")),
        (Method::TRACE, path.clone()),
        (Method::OPTIONS, path.clone()),
        (Method::from_bytes(b"FOO").expect("a method"), path.clone()),
        (Method::PUT, NODES.to_owned()),
        (Method::PATCH, NODES.to_owned()),
        (Method::DELETE, NAMESPACES.to_owned()),
        (Method::POST, format!("{NODES}/{name}/status")),
        (Method::POST, "/apis/coordination.k8s.io/v1/leases".to_owned()),
        (Method::from_bytes(b"FOO").expect("a method"), format!("{NODES}/{name}")),
    ] {
        let body = pool(&name).to_string().into_bytes();
        let answer = s.ask(method, &path, Some("application/json"), body).await;
        answer.refused(405, "MethodNotAllowed");
    }
    // A collection is not an object; a name is not for creating.
    s.put(POOLS, &pool(&name)).await.says(400, "BadRequest", "name must be provided");
    s.merge(POOLS, &json!({})).await.says(400, "BadRequest", "name must be provided");
    s.post(&path, &pool(&name)).await.refused(409, "AlreadyExists");
    assert_eq!(s.get(&path).await.ok(), before);
}

pub(crate) async fn bodies_of_other_types(s: Server) {
    let name = s.name("pool");
    let body = pool(&name).to_string().into_bytes();
    let words = "the body of the request was in an unknown format - accepted media types include: application/json, \
                 application/yaml";
    for content_type in ["text/plain", "application/xml", "nonsense"] {
        let answer = s.ask(Method::POST, POOLS, Some(content_type), body.clone()).await;
        let status = answer.refused(415, "UnsupportedMediaType");
        assert!(status["message"].as_str().is_some_and(|message| message.starts_with(words)), "{status}");
    }
    s.ask(Method::POST, POOLS, Some("application/json; charset=utf-8"), body).await.created();
    // Nothing said is JSON.
    let name = s.name("pool");
    s.ask(Method::POST, POOLS, None, pool(&name).to_string().into_bytes()).await.created();
    // Who asks for protobuf first and JSON next, as client-go does for some kinds, gets what there is.
    let accept = "application/vnd.unheard.of, application/json";
    let request =
        Request::get(at(POOLS, &name)).header("accept", accept).body(Body::empty()).expect("a request");
    assert_eq!(s.send(request).await.ok()["kind"], "NodeIPPool");
    let request =
        Request::get(at(POOLS, &name)).header("accept", "*/*").body(Body::empty()).expect("a request");
    assert_eq!(s.send(request).await.ok()["kind"], "NodeIPPool");
    let request =
        Request::get(at(POOLS, &name)).header("accept", "text/html").body(Body::empty()).expect("a request");
    assert_eq!(s.send(request).await.code, 406);
}

pub(crate) async fn yaml_is_read(s: Server) {
    let name = s.name("pool");
    let yaml = format!(
        "apiVersion: nmstate.io/v1\nkind: NodeIPPool\nmetadata:\n  name: {name}\nspec: {{range: {{cidr: 10.0.0.0/24}}}}\n"
    );
    let made = s.ask(Method::POST, POOLS, Some("application/yaml"), yaml.into()).await.created();
    assert_eq!(made["spec"]["range"]["cidr"], "10.0.0.0/24");
    s.ask(Method::POST, POOLS, Some("application/yaml"), "a: [".into()).await.refused(400, "BadRequest");
}

pub(crate) async fn odd_queries(s: Server) {
    let name = s.name("pool");
    s.post(POOLS, &pool(&name)).await.created();
    let selector = format!("fieldSelector=metadata.name%3D{name}");
    for query in [
        format!("{selector}&unheard=of"),
        format!("{selector}&&"),
        format!("{selector}&pretty=true"),
        format!("{selector}&limit=0"),
        format!("&{selector}"),
        format!("{selector}&labelSelector="),
    ] {
        assert_eq!(names(&s.get(&format!("{POOLS}?{query}")).await.ok()), [&name], "{query}");
    }
    for query in ["limit=", "limit=99999999999999999999", "timeoutSeconds=x"] {
        s.get(&format!("{POOLS}?{query}")).await.refused(400, "BadRequest");
    }
    // Longer than any clock counts: a watch as any other, or (a real one's sum overflows) one that is over at once.
    for seconds in ["9223372036854775807", "9223372037", "18446744073"] {
        let mut watch = s.watch(&format!("{POOLS}?{selector}&timeoutSeconds={seconds}")).await;
        if let Some(event) = watch.next_or_end().await.filter(|event| event.kind != "ERROR") {
            assert_eq!((event.kind.as_str(), event.name()), ("ADDED", name.as_str()), "{seconds}");
        }
        assert_eq!(names(&s.get(&format!("{POOLS}?{selector}")).await.ok()), [&name], "{seconds}");
    }
}

pub(crate) async fn odd_patches(s: Server) {
    let name = s.name("pool");
    let path = at(POOLS, &name);
    let before = s.post(POOLS, &pool(&name)).await.created();
    for patch in [
        json!([{"op": "remove", "path": "/metadata"}]),
        json!([{"op": "replace", "path": "", "value": 7}]),
        json!([{"op": "replace", "path": "", "value": {}}]),
        json!([{"op": "add", "path": "spec", "value": {}}]),
        json!([{"path": "/spec"}]),
        json!([{"op": "remove", "path": "/spec/range"}]),
        json!([{"op": "add", "path": "/metadata/labels", "value": "text"}]),
        json!([7]),
    ] {
        let answer = s.json_patch(&path, &patch).await;
        assert!(matches!(answer.code, 400 | 422 | 500), "{patch}: {} {}", answer.code, answer.text);
        assert_eq!(answer.body["kind"], "Status", "{patch}");
        assert_eq!(s.get(&path).await.ok(), before, "{patch}");
    }
    let many: Vec<Value> =
        (0..10_001).map(|_| json!({"op": "test", "path": "/spec/x", "value": null})).collect();
    let words =
        "Request entity too large: The allowed maximum operations in a JSON patch is 10000, got 10001";
    s.json_patch(&path, &json!(many)).await.says(413, "RequestEntityTooLarge", words);
    assert_eq!(s.get(&path).await.ok(), before);
}

/// Each operation copies the whole into itself: forty of them would be more than there is memory.
pub(crate) async fn patches_that_copy_themselves(s: Server) {
    let name = s.name("policy");
    let before = s.post(POLICIES, &policy(&name)).await.created();
    let copy = |index: usize| json!({"op": "copy", "from": "/spec/desiredState", "path": format!("/spec/desiredState/b{index}")});
    let patch: Value = (0..40).map(copy).collect::<Vec<_>>().into();
    patch_rejected(&s, s.json_patch(&at(POLICIES, &name), &patch).await);
    assert_eq!(s.get(&at(POLICIES, &name)).await.ok(), before);
    // A few are as good as any other.
    let patch: Value = (0..3).map(copy).collect::<Vec<_>>().into();
    let after = s.json_patch(&at(POLICIES, &name), &patch).await.ok();
    assert!(after["spec"]["desiredState"]["b2"]["b1"]["b0"]["interfaces"].is_array(), "{after}");
}
