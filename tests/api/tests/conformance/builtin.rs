//! Node, Lease, Event and Namespace: what Berth uses of them.

use api_tests::server::paths::{
    EVENTS, LEASES, NAMESPACES, NEW_EVENTS, NODES, at, event, lease, namespace, node, status,
};
use api_tests::server::{STRATEGIC_PATCH, Server};
use api_tests::wait::until;
use hyper::Method;
use serde_json::{Value, json};

use crate::differences::{begins, conditions, plain};
use crate::support::{causes, names, uid, version};

async fn made_node(s: &Server) -> (String, String) {
    let name = s.name("node");
    s.post(NODES, &node(&name)).await.created();
    (at(NODES, &name), status(NODES, &name))
}

pub(crate) async fn node_and_its_status(s: Server) {
    let name = s.name("node");
    let mut object = node(&name);
    object["metadata"]["labels"] = json!({"rack": "1"});
    let made = s.post(NODES, &object).await.created();
    assert_eq!((&made["kind"], &made["apiVersion"]), (&json!("Node"), &json!("v1")));
    assert_eq!(uid(&made).len(), 36);
    assert_eq!(made["metadata"]["generation"], Value::Null);
    let path = at(NODES, &name);
    let words = format!("nodes \"{name}\" already exists");
    let refused = s.post(NODES, &object).await.says(409, "AlreadyExists", &words);
    assert_eq!(refused["details"], json!({"name": name, "kind": "nodes"}));
    let patch = json!({"status": {"conditions": [{"type": "Ready", "status": "True"}]}});
    s.merge(&path, &patch).await.ok();
    assert_eq!(conditions(&s.get(&path).await.ok()), [], "status has its own door");
    let after = s.merge(&status(NODES, &name), &patch).await.ok();
    assert_eq!(conditions(&after), [("Ready".to_owned(), "True".to_owned())]);
    assert_eq!(s.get(&path).await.ok(), after);
    let missing = s.name("node");
    let words = format!("nodes \"{missing}\" not found");
    s.get(&at(NODES, &missing)).await.says(404, "NotFound", &words);
    let words = format!("Node \"Bad_{name}\" is invalid: metadata.name: Invalid value: \"Bad_{name}\": ");
    begins(s.post(NODES, &node(&format!("Bad_{name}"))).await, 422, "Invalid", &words);
}

pub(crate) async fn node_conditions_merge_by_type(s: Server) {
    let (path, door) = made_node(&s).await;
    let merge = async |conditions: Value| {
        s.patch(&door, STRATEGIC_PATCH, &json!({"status": {"conditions": conditions}})).await.ok()
    };
    merge(json!([{"type": "Ready", "status": "True", "reason": "a"}])).await;
    let after = merge(json!([{"type": "DiskPressure", "status": "False"}])).await;
    // What is new comes first, what is there stays.
    let pair = |kind: &str, status: &str| (kind.to_owned(), status.to_owned());
    assert_eq!(conditions(&after), [pair("DiskPressure", "False"), pair("Ready", "True")]);
    let after = merge(json!([{"type": "Ready", "status": "False"}])).await;
    assert_eq!(conditions(&after), [pair("DiskPressure", "False"), pair("Ready", "False")]);
    assert_eq!(after["status"]["conditions"][1]["reason"], "a", "what is not named stays");
    let after = merge(json!([{"$patch": "delete", "type": "DiskPressure"}])).await;
    assert_eq!(conditions(&after), [pair("Ready", "False")]);
    let ordered = json!({"status": {
        "$setElementOrder/conditions": [{"type": "PIDPressure"}, {"type": "Ready"}],
        "conditions": [{"type": "PIDPressure", "status": "False"}],
    }});
    let after = s.patch(&door, STRATEGIC_PATCH, &ordered).await.ok();
    assert_eq!(conditions(&after), [pair("PIDPressure", "False"), pair("Ready", "False")]);
    assert_eq!(s.get(&path).await.ok(), after);
}

pub(crate) async fn node_lists_merge_or_replace(s: Server) {
    let (path, door) = made_node(&s).await;
    let status = |addresses: Value| json!({"status": {"addresses": addresses}});
    s.patch(&door, STRATEGIC_PATCH, &status(json!([{"type": "InternalIP", "address": "10.0.0.1"}])))
        .await
        .ok();
    let after =
        s.patch(&door, STRATEGIC_PATCH, &status(json!([{"type": "Hostname", "address": "n"}]))).await.ok();
    let wanted = json!([{"type": "Hostname", "address": "n"}, {"type": "InternalIP", "address": "10.0.0.1"}]);
    assert_eq!(after["status"]["addresses"], wanted);
    // Taints are one list, replaced.
    let taint = |key: &str| json!({"spec": {"taints": [{"key": key, "effect": "NoSchedule"}]}});
    s.patch(&path, STRATEGIC_PATCH, &taint("a")).await.ok();
    let after = s.patch(&path, STRATEGIC_PATCH, &taint("b")).await.ok();
    assert_eq!(after["spec"]["taints"], json!([{"key": "b", "effect": "NoSchedule"}]));
    // Finalizers are merged.
    let finalizers = |list: Value| json!({"metadata": {"finalizers": list}});
    s.patch(&path, STRATEGIC_PATCH, &finalizers(json!(["nmstate.io/a"]))).await.ok();
    let after = s.patch(&path, STRATEGIC_PATCH, &finalizers(json!(["nmstate.io/b"]))).await.ok();
    assert_eq!(after["metadata"]["finalizers"], json!(["nmstate.io/b", "nmstate.io/a"]));
    let delete = json!({"metadata": {"$deleteFromPrimitiveList/finalizers": ["nmstate.io/b"]}});
    let after = s.patch(&path, STRATEGIC_PATCH, &delete).await.ok();
    assert_eq!(after["metadata"]["finalizers"], json!(["nmstate.io/a"]));
    s.merge(&path, &finalizers(Value::Null)).await.ok();
}

pub(crate) async fn node_labels_by_strategic_merge(s: Server) {
    let (path, door) = made_node(&s).await;
    let labels = |labels: Value| json!({"metadata": {"labels": labels}});
    s.patch(&path, STRATEGIC_PATCH, &labels(json!({"a": "b", "c": "d"}))).await.ok();
    let after = s.patch(&path, STRATEGIC_PATCH, &labels(json!({"a": null, "e": "f"}))).await.ok();
    assert_eq!(after["metadata"]["labels"], json!({"c": "d", "e": "f"}));
    // A Node's status door lets labels and annotations through, and nothing of the spec.
    let patch = json!({"metadata": {"labels": {"by": "status"}}, "spec": {"unschedulable": true}});
    let after = s.patch(&door, STRATEGIC_PATCH, &patch).await.ok();
    assert_eq!(after["metadata"]["labels"]["by"], "status");
    assert_eq!(after["spec"]["unschedulable"], Value::Null);
    let replace = json!({"metadata": {"labels": {"$patch": "replace", "only": "this"}}});
    let after = s.patch(&path, STRATEGIC_PATCH, &replace).await.ok();
    assert_eq!(after["metadata"]["labels"], json!({"only": "this"}));
}

pub(crate) async fn node_fields_are_typed(s: Server) {
    let name = s.name("node");
    let mut object = node(&name);
    object["spec"] = json!({"unschedulable": "yes"});
    let about = "Node in version \"v1\" cannot be handled as a Node: ";
    begins(s.post(NODES, &object).await, 400, "BadRequest", about);
    object["spec"] = json!({"bogus": 1});
    let words = "Node in version \"v1\" cannot be handled as a Node: strict decoding error: unknown field \"spec.bogus\"";
    s.post(&format!("{NODES}?fieldValidation=Strict"), &object).await.says(400, "BadRequest", words);
    let answer = s.post(NODES, &object).await;
    assert_eq!(answer.warnings(), ["unknown field \"spec.bogus\""]);
    assert_eq!(answer.created()["spec"]["bogus"], Value::Null);
}

pub(crate) async fn node_field_selectors(s: Server) {
    let (path, _) = made_node(&s).await;
    let found = s.get(&path).await.ok();
    let name = found["metadata"]["name"].as_str().expect("a name");
    let list = |field: &str| format!("{NODES}?fieldSelector=metadata.name%3D{name},{field}");
    assert_eq!(names(&s.get(&list("spec.unschedulable%3Dfalse")).await.ok()), [name]);
    s.merge(&path, &json!({"spec": {"unschedulable": true}})).await.ok();
    assert_eq!(names(&s.get(&list("spec.unschedulable%3Dfalse")).await.ok()), Vec::<&str>::new());
    assert_eq!(names(&s.get(&list("spec.unschedulable%3Dtrue")).await.ok()), [name]);
    let unknown = s.get(&list("status.x%3Dy")).await.refused(400, "BadRequest");
    assert!(unknown["message"].as_str().is_some_and(|message| message.contains("status.x")), "{unknown}");
}

pub(crate) async fn lease_times_keep_their_microseconds(s: Server) {
    let name = s.name("lease");
    let mut object = lease(&name);
    object["spec"]["acquireTime"] = json!("2024-01-01T00:00:00.000000Z");
    object["spec"]["renewTime"] = json!("2024-01-01T00:00:00.123456Z");
    object["spec"]["leaseTransitions"] = json!(0);
    let made = s.post(LEASES, &object).await.created();
    assert_eq!(made["spec"], object["spec"]);
    assert_eq!(made["metadata"]["namespace"], "default");
    assert_eq!(made["metadata"]["generation"], Value::Null);
    object["metadata"]["name"] = json!(s.name("lease"));
    object["spec"] = json!({"leaseDurationSeconds": 0});
    let refused = s.post(LEASES, &object).await.refused(422, "Invalid");
    assert_eq!(causes(&refused), [("spec.leaseDurationSeconds", "FieldValueInvalid")]);
    object["spec"] = json!({"renewTime": "yesterday"});
    let about = "Lease in version \"v1\" cannot be handled as a Lease: ";
    begins(s.post(LEASES, &object).await, 400, "BadRequest", about);
}

pub(crate) async fn times_have_all_their_microseconds(s: Server) {
    let wrong = [
        "2024-01-01T00:00:00Z",
        "2024-01-01T00:00:00.1Z",
        "2024-01-01T00:00:00.123Z",
        "2024-01-01T00:00:00.1234567Z",
        "2024-01-01T00:00:00.123456",
        "2024-01-01t00:00:00.123456z",
        "2024-01-01 00:00:00.123456Z",
        "2024-01-01T00:00:60.000000Z",
        "2024-01-01T00:00:00.123456+0200",
        "",
    ];
    let mut object = lease(&s.name("lease"));
    let about = "Lease in version \"v1\" cannot be handled as a Lease: ";
    for time in wrong {
        object["spec"]["renewTime"] = json!(time);
        begins(s.post(LEASES, &object).await, 400, "BadRequest", about);
    }
    object["spec"]["renewTime"] = json!("2024-01-01T02:00:00.123456+02:00");
    assert_eq!(s.post(LEASES, &object).await.created()["spec"]["renewTime"], "2024-01-01T00:00:00.123456Z");
    for (field, value) in [
        ("eventTime", json!("2024-01-01T00:00:00Z")),
        ("series", json!({"count": 1, "lastObservedTime": "2024-01-01T00:00:00Z"})),
    ] {
        let mut object = event(&s.name("event"), "node01");
        object[field] = value;
        let about = "Event in version \"v1\" cannot be handled as a Event: ";
        begins(s.post(EVENTS, &object).await, 400, "BadRequest", about);
    }
}

pub(crate) async fn lease_update_is_guarded(s: Server) {
    let name = s.name("lease");
    let path = at(LEASES, &name);
    let made = s.post(LEASES, &lease(&name)).await.created();
    let mut mine = made.clone();
    mine["spec"]["holderIdentity"] = json!("you");
    let taken = s.put(&path, &mine).await.ok();
    assert_eq!(taken["spec"]["holderIdentity"], "you");
    let words = format!(
        "Operation cannot be fulfilled on leases.coordination.k8s.io \"{name}\": the object has been modified; please apply \
         your changes to the latest version and try again"
    );
    s.put(&path, &mine).await.says(409, "Conflict", &words);
    s.put(&path, &lease(&name)).await.refused(422, "Invalid");
    // An update may make a Lease.
    let new = s.name("lease");
    let made = s.put(&at(LEASES, &new), &lease(&new)).await.created();
    assert_eq!(plain(s.get(&at(LEASES, &new)).await.ok()), plain(made));
}

pub(crate) async fn namespaces_must_exist(s: Server) {
    let nowhere = "/apis/coordination.k8s.io/v1/namespaces/nowhere/leases";
    let mut object = lease(&s.name("lease"));
    object["metadata"].as_object_mut().expect("metadata").shift_remove("namespace");
    let refused = s.post(nowhere, &object).await.says(404, "NotFound", "namespaces \"nowhere\" not found");
    assert_eq!(refused["details"], json!({"name": "nowhere", "kind": "namespaces"}));
    // To read needs none.
    assert_eq!(s.get(nowhere).await.ok()["items"], json!([]));
    let words = "leases.coordination.k8s.io \"x\" not found";
    s.get(&format!("{nowhere}/x")).await.says(404, "NotFound", words);
    let node_leases = "/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases";
    object["metadata"]["name"] = json!(s.name("lease"));
    assert_eq!(s.post(node_leases, &object).await.created()["metadata"]["namespace"], "kube-node-lease");
}

pub(crate) async fn the_namespace_must_agree(s: Server) {
    let mut object = lease(&s.name("lease"));
    object["metadata"]["namespace"] = json!("other");
    let words = "the namespace of the provided object does not match the namespace sent on the request";
    s.post(LEASES, &object).await.says(400, "BadRequest", words);
}

pub(crate) async fn default_is_there_and_stays(s: Server) {
    let found = s.get(&at(NAMESPACES, "default")).await.ok();
    assert_eq!(found["status"]["phase"], "Active");
    assert_eq!(found["metadata"]["labels"]["kubernetes.io/metadata.name"], "default");
    s.get(&at(NAMESPACES, "kube-node-lease")).await.ok();
    let words = "namespaces \"default\" is forbidden: this namespace may not be deleted";
    s.delete(&at(NAMESPACES, "default")).await.says(403, "Forbidden", words);
    let words = "Namespace \"a.b\" is invalid: metadata.name: Invalid value: \"a.b\": must not contain dots";
    s.post(NAMESPACES, &namespace("a.b")).await.says(422, "Invalid", words);
}

pub(crate) async fn a_namespace_goes(s: Server) {
    let name = s.name("space");
    let made = s.post(NAMESPACES, &namespace(&name)).await.created();
    assert_eq!(made["status"]["phase"], "Active");
    let leases = format!("/apis/coordination.k8s.io/v1/namespaces/{name}/leases");
    let mut object = lease("inside");
    object["metadata"]["namespace"] = json!(name);
    until("the namespace to be usable", || async {
        let answer = s.post(&leases, &object).await;
        if answer.code == 201 { Ok(()) } else { Err(answer.text) }
    })
    .await;
    s.delete(&at(NAMESPACES, &name)).await.ok();
    until("the namespace to go, with what is in it", || async {
        let found = [s.get(&at(NAMESPACES, &name)).await, s.get(&format!("{leases}/inside")).await];
        if found.iter().all(|answer| answer.code == 404) { Ok(()) } else { Err(format!("{found:?}")) }
    })
    .await;
}

pub(crate) async fn event_of_the_agent(s: Server) {
    let (name, about) = (s.name("event"), s.name("node"));
    let made = s.post(EVENTS, &event(&name, &about)).await.created();
    assert_eq!(made["involvedObject"], json!({"kind": "Node", "name": about, "uid": about}));
    assert_eq!((&made["reason"], &made["type"]), (&json!("AddressClaimed"), &json!("Normal")));
    // Seen again: the count grows.
    let patch = json!({"count": 2, "lastTimestamp": "2024-05-01T11:00:00Z"});
    let after = s.merge(&at(EVENTS, &name), &patch).await.ok();
    assert_eq!((&after["count"], &after["lastTimestamp"]), (&json!(2), &json!("2024-05-01T11:00:00Z")));
    assert_eq!(after["firstTimestamp"], "2024-05-01T10:00:00Z");
    let mut generated = event("x", &about);
    generated["metadata"] = json!({"generateName": format!("{name}-"), "namespace": "default"});
    let made = s.post(EVENTS, &generated).await.created();
    assert!(
        made["metadata"]["name"].as_str().is_some_and(|made| made.starts_with(&format!("{name}-"))),
        "{made}"
    );
    let mut elsewhere = event(&s.name("event"), &about);
    elsewhere["involvedObject"]["namespace"] = json!("kube-system");
    let refused = s.post(EVENTS, &elsewhere).await.refused(422, "Invalid");
    assert_eq!(causes(&refused), [("involvedObject.namespace", "FieldValueInvalid")]);
    s.delete(&at(EVENTS, &name)).await.ok();
}

pub(crate) async fn events_in_both_groups(s: Server) {
    let (old, new, about) = (s.name("event"), s.name("event"), s.name("node"));
    s.post(EVENTS, &event(&old, &about)).await.created();
    let found = s.get(&at(NEW_EVENTS, &old)).await.ok();
    assert_eq!(found["apiVersion"], "events.k8s.io/v1");
    assert_eq!(found["regarding"], json!({"kind": "Node", "name": about, "uid": about}));
    assert_eq!(found["note"], "10.10.10.8 of traffic-1");
    assert_eq!(found["deprecatedSource"], json!({"component": "berth"}));
    assert_eq!(found["deprecatedCount"], 1);
    assert_eq!(found["deprecatedFirstTimestamp"], "2024-05-01T10:00:00Z");
    assert_eq!(found["involvedObject"], Value::Null);
    let object = json!({
        "apiVersion": "events.k8s.io/v1", "kind": "Event", "metadata": {"name": new, "namespace": "default"},
        "regarding": {"kind": "Node", "name": about, "apiVersion": "v1"}, "action": "Claim", "reason": "AddressClaimed",
        "note": "text", "type": "Warning", "reportingController": "nmstate.io/berth", "reportingInstance": "node01",
        "eventTime": "2024-05-01T10:00:00.123456Z",
    });
    s.post(NEW_EVENTS, &object).await.created();
    let found = s.get(&at(EVENTS, &new)).await.ok();
    assert_eq!((&found["apiVersion"], &found["message"]), (&json!("v1"), &json!("text")));
    assert_eq!(found["involvedObject"]["name"], about);
    assert_eq!(
        (&found["reportingComponent"], &found["reportingInstance"]),
        (&json!("nmstate.io/berth"), &json!("node01"))
    );
    assert_eq!(
        (&found["eventTime"], &found["action"]),
        (&json!("2024-05-01T10:00:00.123456Z"), &json!("Claim"))
    );
    let series = json!({"series": {"count": 2, "lastObservedTime": "2024-05-01T11:00:00.000000Z"}});
    assert_eq!(s.merge(&at(NEW_EVENTS, &new), &series).await.ok()["series"]["count"], 2);
    s.delete(&at(NEW_EVENTS, &old)).await.ok();
    s.get(&at(EVENTS, &old)).await.refused(404, "NotFound");
}

pub(crate) async fn event_field_selectors(s: Server) {
    let (first, second, about) = (s.name("event"), s.name("event"), s.name("node"));
    s.post(EVENTS, &event(&first, &about)).await.created();
    let mut warning = event(&second, &about);
    warning["type"] = json!("Warning");
    warning["reason"] = json!("NoAddress");
    s.post(EVENTS, &warning).await.created();
    let list = |selector: &str| format!("{EVENTS}?fieldSelector=involvedObject.name%3D{about}{selector}");
    assert_eq!(names(&s.get(&list("")).await.ok()), [&first, &second]);
    for selector in
        [",type%3DWarning", ",reason%3DNoAddress", ",reason!%3DAddressClaimed,involvedObject.kind%3DNode"]
    {
        assert_eq!(names(&s.get(&list(selector)).await.ok()), [&second], "{selector}");
    }
    assert_eq!(names(&s.get(&list(",source%3Dberth,involvedObject.uid!%3Dx")).await.ok()).len(), 2);
    let regarding = format!("{NEW_EVENTS}?fieldSelector=regarding.name%3D{about},type%3DWarning");
    assert_eq!(names(&s.get(&regarding).await.ok()), [&second]);
    let words = "field label not supported: bogus";
    s.get(&format!("{EVENTS}?fieldSelector=bogus%3Dx")).await.says(400, "BadRequest", words);
}

pub(crate) async fn a_list_over_all_namespaces(s: Server) {
    let name = s.name("lease");
    s.post(LEASES, &lease(&name)).await.created();
    let node_leases = "/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases";
    let mut object = lease(&name);
    object["metadata"]["namespace"] = json!("kube-node-lease");
    let second = s.post(node_leases, &object).await.created();
    let selector = format!("fieldSelector=metadata.name%3D{name}");
    let all = s.get(&format!("/apis/coordination.k8s.io/v1/leases?{selector}")).await.ok();
    assert_eq!(names(&all), [&name, &name]);
    let one = s
        .get(&format!("/apis/coordination.k8s.io/v1/leases?{selector},metadata.namespace%3Ddefault"))
        .await
        .ok();
    assert_eq!(one["items"][0]["metadata"]["namespace"], "default");
    assert_eq!(names(&one).len(), 1);
    let one = s.get(&format!("{node_leases}?{selector}")).await.ok();
    assert_eq!(version(&one["items"][0]), version(&second));
}

const PROTOBUF: &str = "application/vnd.kubernetes.protobuf";

/// A field with its length first; all here are shorter than 128 bytes.
fn field(number: u8, bytes: &[u8]) -> Vec<u8> {
    let length = u8::try_from(bytes.len()).ok().filter(|length| *length < 128).expect("short");
    [&[number << 3 | 2, length], bytes].concat()
}

/// An object in the envelope that Go clients send.
fn envelope(api_version: &str, kind: &str, object: &[u8]) -> Vec<u8> {
    let about = [field(1, api_version.as_bytes()), field(2, kind.as_bytes())].concat();
    [b"k8s\0", &field(1, &about)[..], &field(2, object)].concat()
}

/// `kubectl create namespace`, leader election and event recorders send protobuf.
pub(crate) async fn bodies_in_protobuf(s: Server) {
    let send =
        async |method: Method, path: &str, body: Vec<u8>| s.ask(method, path, Some(PROTOBUF), body).await;
    let name = s.name("made");
    let labels = field(11, &[field(1, b"a"), field(2, b"b")].concat());
    let meta = field(1, &[field(1, name.as_bytes()), labels].concat());
    let made = send(Method::POST, NAMESPACES, envelope("v1", "Namespace", &meta)).await.created();
    assert_eq!((&made["metadata"]["name"], &made["metadata"]["labels"]["a"]), (&json!(name), &json!("b")));
    assert_eq!((&made["kind"], &made["status"]["phase"]), (&json!("Namespace"), &json!("Active")));

    let spec =
        [&field(1, b"me")[..], b"\x10\x0f", &field(4, b"\x08\x80\xf2\xd6\xca\x06\x10\xf8\xc0\x07")].concat();
    let lease = [meta.clone(), field(2, &spec)].concat();
    let made =
        send(Method::POST, LEASES, envelope("coordination.k8s.io/v1", "Lease", &lease)).await.created();
    let expected = json!({"holderIdentity": "me", "leaseDurationSeconds": 15, "renewTime": "2026-01-01T00:00:00.000123Z"});
    assert_eq!(made["spec"], expected);
    let stale = field(2, &field(1, b"another"));
    let refused = send(Method::DELETE, &at(LEASES, &name), envelope("v1", "DeleteOptions", &stale)).await;
    refused.refused(409, "Conflict");
    let options = field(2, &field(1, uid(&made).as_bytes()));
    send(Method::DELETE, &at(LEASES, &name), envelope("v1", "DeleteOptions", &options)).await.ok();
    assert_eq!(s.get(&at(LEASES, &name)).await.code, 404);

    let event = [
        meta,
        field(2, &[field(1, b"Node"), field(3, b"n"), field(2, b"default")].concat()),
        field(3, b"Claimed"),
        field(4, b"it has an address"),
        field(5, &field(1, b"berth")),
        field(9, b"Normal"),
    ]
    .concat();
    let made = send(Method::POST, EVENTS, envelope("v1", "Event", &event)).await.created();
    assert_eq!((&made["reason"], &made["involvedObject"]["name"]), (&json!("Claimed"), &json!("n")));
    begins(
        send(Method::POST, LEASES, b"k8s\0\x0a".to_vec()).await,
        400,
        "BadRequest",
        "the object provided is unrecognized (must be of type Lease): ",
    );
}
