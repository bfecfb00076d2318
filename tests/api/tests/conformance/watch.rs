//! Watch: nothing missed, nothing twice, and a clear word when the past is gone.

use api_tests::server::Server;
use api_tests::server::paths::{LEASES, POOLS, STATES, at, lease, node, pool, state, status};
use api_tests::wait::until;
use serde_json::{Value, json};

use crate::differences::{plain, unreadable};
use crate::support::{causes, version, with_a_forgotten_version};

/// A state in a group of its own; the query that selects the group, and its name.
async fn made(s: &Server) -> (String, String, Value) {
    let name = s.name("watched");
    let mut object = state(&name);
    object["metadata"]["labels"] = json!({"group": name});
    let made = s.post(STATES, &object).await.created();
    (format!("{STATES}?labelSelector=group%3D{name}"), name, made)
}

fn label(value: &str) -> Value {
    json!({"metadata": {"labels": {"value": value}}})
}

pub(crate) async fn events_in_order_from_a_version(s: Server) {
    let (query, name, before) = made(&s).await;
    let mut watch = s.watch(&format!("{query}&resourceVersion={}", version(&before))).await;
    let content = watch.headers.get("content-type").and_then(|value| value.to_str().ok());
    assert_eq!(content, Some("application/json"));
    let mut wanted = Vec::new();
    for value in ["1", "2", "3"] {
        wanted.push(plain(s.merge(&at(STATES, &name), &label(value)).await.ok()));
    }
    for object in &wanted {
        let event = watch.next().await;
        assert_eq!(event.kind, "MODIFIED");
        assert_eq!(plain(event.object), *object);
    }
    s.delete(&at(STATES, &name)).await.ok();
    let event = watch.next().await;
    assert_eq!(event.brief(), ("DELETED", name.as_str()));
    assert_eq!(event.object["metadata"]["labels"]["value"], "3", "as it was last");
    // The deletion has a version of its own, from which one can go on.
    let last: u64 = version(&wanted[2]).parse().expect("a number");
    assert!(event.version().parse::<u64>().expect("a number") > last);
}

pub(crate) async fn resume_without_a_gap(s: Server) {
    let (query, name, before) = made(&s).await;
    let mut watch = s.watch(&format!("{query}&resourceVersion={}", version(&before))).await;
    s.merge(&at(STATES, &name), &label("1")).await.ok();
    let seen = watch.next().await;
    drop(watch);
    // While nobody watches:
    let second = s.merge(&at(STATES, &name), &label("2")).await.ok();
    s.delete(&at(STATES, &name)).await.ok();
    let mut again = state(&name);
    again["metadata"]["labels"] = json!({"group": name});
    let third = s.post(STATES, &again).await.created();
    let mut watch = s.second().watch(&format!("{query}&resourceVersion={}", seen.version())).await;
    let events = [watch.next().await, watch.next().await, watch.next().await];
    let kinds: Vec<&str> = events.iter().map(|event| event.kind.as_str()).collect();
    assert_eq!(kinds, ["MODIFIED", "DELETED", "ADDED"]);
    assert_eq!((events[0].version(), events[2].version()), (version(&second), version(&third)));
    // And from a list's version: nothing of what the list has comes again.
    let list = s.get(&query).await.ok();
    let mut watch = s.watch(&format!("{query}&resourceVersion={}", version(&list))).await;
    let last = s.merge(&at(STATES, &name), &label("4")).await.ok();
    assert_eq!(watch.next().await.version(), version(&last));
}

pub(crate) async fn what_is_there_comes_first(s: Server) {
    let (query, name, before) = made(&s).await;
    for start in ["", "&resourceVersion=0", "&resourceVersion="] {
        let mut watch = s.watch(&format!("{query}{start}")).await;
        let event = watch.next().await;
        assert_eq!(event.brief(), ("ADDED", name.as_str()), "{start}");
        assert_eq!(plain(event.object), plain(before.clone()));
    }
    let mut watch = s.watch(&query).await;
    watch.next().await;
    let after = s.merge(&at(STATES, &name), &label("1")).await.ok();
    let event = watch.next().await;
    assert_eq!((event.kind.as_str(), event.version()), ("MODIFIED", version(&after)));
}

pub(crate) async fn a_version_of_long_ago_is_gone(s: Server) {
    let (s, forgotten, _) = with_a_forgotten_version(s).await;
    let mut watch = s.watch(&format!("{STATES}?resourceVersion={forgotten}")).await;
    let event = watch.next().await;
    assert_eq!(event.kind, "ERROR");
    let message = event.object["message"].as_str().expect("a message");
    assert!(message.starts_with(&format!("too old resource version: {forgotten} (")), "{message}");
    assert_eq!(event.object["kind"], "Status");
    assert_eq!(event.object["status"], "Failure");
    assert_eq!(event.object["reason"], "Expired");
    assert_eq!(event.object["code"], 410);
    assert_eq!(watch.next_or_end().await, None);
}

pub(crate) async fn initial_events_end_with_a_bookmark(s: Server) {
    let (query, name, before) = made(&s).await;
    let stream = "sendInitialEvents=true&resourceVersionMatch=NotOlderThan";
    let mut watch = s.watch(&format!("{query}&{stream}&allowWatchBookmarks=true")).await;
    let event = watch.next().await;
    assert_eq!(event.brief(), ("ADDED", name.as_str()));
    let bookmark = watch.next().await;
    assert_eq!(bookmark.kind, "BOOKMARK");
    assert_eq!(bookmark.object["apiVersion"], "nmstate.io/v1beta1");
    assert_eq!(bookmark.object["kind"], "NodeNetworkState");
    assert_eq!(bookmark.object["metadata"]["annotations"], json!({"k8s.io/initial-events-end": "true"}));
    assert_eq!(bookmark.name(), "");
    let number = |text: &str| text.parse::<u64>().expect("a number");
    assert!(number(bookmark.version()) >= number(version(&before)));
    let after = s.merge(&at(STATES, &name), &label("1")).await.ok();
    let event = watch.next_of(&name).await;
    assert_eq!((event.kind.as_str(), event.version()), ("MODIFIED", version(&after)));
    // From the bookmark's version one can go on.
    let mut watch = s.watch(&format!("{query}&resourceVersion={}", bookmark.version())).await;
    assert_eq!(watch.next().await.version(), version(&after));
    // Not wanted: only what comes.
    let stream = "sendInitialEvents=false&resourceVersionMatch=NotOlderThan";
    let mut watch = s.watch(&format!("{query}&{stream}")).await;
    let last = s.merge(&at(STATES, &name), &label("2")).await.ok();
    assert_eq!(watch.next().await.version(), version(&last));
}

pub(crate) async fn bookmarks_only_for_who_asks(s: Server) {
    let (query, name, _) = made(&s).await;
    let stream = "sendInitialEvents=true&resourceVersionMatch=NotOlderThan";
    let mut watch = s.watch(&format!("{query}&{stream}&timeoutSeconds=1")).await;
    while let Some(event) = watch.next_or_end().await {
        assert_eq!(event.brief(), ("ADDED", name.as_str()));
    }
}

pub(crate) async fn a_selector_turns_changes_into_comings_and_goings(s: Server) {
    let (query, name, before) = made(&s).await;
    let mut watch = s.watch(&format!("{query},value%3Din&resourceVersion={}", version(&before))).await;
    let path = at(STATES, &name);
    s.merge(&path, &label("out")).await.ok();
    let entered = s.merge(&path, &label("in")).await.ok();
    let changed = s.merge(&path, &json!({"metadata": {"annotations": {"a": "b"}}})).await.ok();
    let left = s.merge(&path, &label("out")).await.ok();
    s.merge(&path, &json!({"metadata": {"annotations": {"c": "d"}}})).await.ok();
    s.merge(&path, &label("in")).await.ok();
    s.delete(&path).await.ok();
    let mut kinds = Vec::new();
    let mut versions = Vec::new();
    let mut labels = Vec::new();
    for _ in 0..5 {
        let event = watch.next().await;
        labels.push(event.object["metadata"]["labels"]["value"].clone());
        versions.push(event.version().to_owned());
        kinds.push(event.kind);
    }
    assert_eq!(kinds, ["ADDED", "MODIFIED", "DELETED", "ADDED", "DELETED"]);
    assert_eq!(versions[..3], [version(&entered), version(&changed), version(&left)]);
    // What left is shown as it was while it was in.
    assert_eq!(labels[2], "in");
}

pub(crate) async fn by_name(s: Server) {
    let (_, name, before) = made(&s).await;
    let other = s.name("other");
    let query = format!("{STATES}?fieldSelector=metadata.name%3D{name}&resourceVersion={}", version(&before));
    let mut watch = s.watch(&query).await;
    s.post(STATES, &state(&other)).await.created();
    s.delete(&at(STATES, &name)).await.ok();
    assert_eq!(watch.next().await.brief(), ("DELETED", name.as_str()));
    // The old spelling.
    let old = format!("/apis/nmstate.io/v1beta1/watch/nodenetworkstates/{other}");
    assert_eq!(s.watch(&old).await.next().await.brief(), ("ADDED", other.as_str()));
}

pub(crate) async fn two_watchers_see_the_same(s: Server) {
    let (query, name, before) = made(&s).await;
    let query = format!("{query}&resourceVersion={}", version(&before));
    let (mut first, mut second) = (s.watch(&query).await, s.second().watch(&query).await);
    for number in 0..20 {
        s.merge(&at(STATES, &name), &label(&number.to_string())).await.ok();
    }
    for _ in 0..20 {
        assert_eq!(first.next().await, second.next().await);
    }
}

pub(crate) async fn a_watch_ends_when_its_time_is_over(s: Server) {
    let (query, name, before) = made(&s).await;
    let mut watch = s.watch(&format!("{query}&resourceVersion={}&timeoutSeconds=1", version(&before))).await;
    assert_eq!(watch.next_or_end().await, None);
    // What comes before its end is still told.
    let mut watch = s.watch(&format!("{query}&resourceVersion={}&timeoutSeconds=3", version(&before))).await;
    s.merge(&at(STATES, &name), &label("1")).await.ok();
    assert_eq!(watch.next().await.kind, "MODIFIED");
    assert_eq!(watch.next_or_end().await, None);
}

pub(crate) async fn status_and_deletion_are_seen(s: Server) {
    let name = s.name("pool");
    let mut object = pool(&name);
    object["metadata"]["finalizers"] = json!(["nmstate.io/hold"]);
    let before = s.post(POOLS, &object).await.created();
    let query = format!("{POOLS}?fieldSelector=metadata.name%3D{name}&resourceVersion={}", version(&before));
    let mut watch = s.watch(&query).await;
    s.merge(&status(POOLS, &name), &json!({"status": {"sequence": 1}})).await.ok();
    assert_eq!(watch.next().await.object["status"]["sequence"], 1);
    s.delete(&at(POOLS, &name)).await.ok();
    let event = watch.next().await;
    assert_eq!(event.kind, "MODIFIED");
    assert!(event.object["metadata"]["deletionTimestamp"].is_string());
    s.merge(&at(POOLS, &name), &json!({"metadata": {"finalizers": null}})).await.ok();
    assert_eq!(watch.next().await.brief(), ("DELETED", name.as_str()));
}

pub(crate) async fn options_that_do_not_go_together(s: Server) {
    let forbidden = [
        ("sendInitialEvents=true", "sendInitialEvents requires setting resourceVersionMatch to NotOlderThan"),
        (
            "resourceVersionMatch=NotOlderThan",
            "resourceVersionMatch is forbidden for watch unless sendInitialEvents is provided",
        ),
    ];
    for (query, words) in forbidden {
        let status = s.get(&format!("{STATES}?watch=true&{query}")).await.says(
            422,
            "Invalid",
            &format!("ListOptions.meta.k8s.io \"\" is invalid: resourceVersionMatch: Forbidden: {words}"),
        );
        assert_eq!(causes(&status), [("resourceVersionMatch", "FieldValueForbidden")]);
    }
    s.get(&format!("{STATES}?watch=true&labelSelector=a%3D%3D%3D")).await.refused(400, "BadRequest");
    s.get(&format!("{STATES}?watch=true&fieldSelector=spec.x%3D1")).await.refused(400, "BadRequest");
    s.get(&format!("{STATES}?watch=true&timeoutSeconds=abc")).await.refused(400, "BadRequest");
}

pub(crate) async fn a_version_that_can_not_be_read(s: Server) {
    let answer = s.get(&format!("{STATES}?watch=true&resourceVersion=abc")).await;
    unreadable(&s, &answer);
    // One that is yet to come is waited for: nothing comes, and it ends in time.
    let mut watch = s.watch(&format!("{STATES}?resourceVersion=99999999999&timeoutSeconds=1")).await;
    while let Some(event) = watch.next_or_end().await {
        assert_eq!(event.kind, "ERROR", "{event:?}");
    }
}

pub(crate) async fn all_namespaces_or_one(s: Server) {
    let spaces = [s.name("space"), s.name("space")];
    for space in &spaces {
        s.post("/api/v1/namespaces", &api_tests::server::paths::namespace(space)).await.created();
    }
    let collection = |space: &str| format!("/apis/coordination.k8s.io/v1/namespaces/{space}/leases");
    let first = s.post(LEASES, &lease(&s.name("lease"))).await.created();
    let from = version(&first);
    let mut all = s.watch(&format!("/apis/coordination.k8s.io/v1/leases?resourceVersion={from}")).await;
    let mut one = s.watch(&format!("{}?resourceVersion={from}", collection(&spaces[1]))).await;
    let name = s.name("lease");
    for space in &spaces {
        let mut object = lease(&name);
        object["metadata"]["namespace"] = json!(space);
        until("the namespace to be usable", || async {
            let answer = s.post(&collection(space), &object).await;
            if answer.code == 201 { Ok(()) } else { Err(answer.text) }
        })
        .await;
    }
    let space = |event: &api_tests::server::Event| event.object["metadata"]["namespace"].clone();
    assert_eq!(
        [space(&all.next_of(&name).await), space(&all.next_of(&name).await)],
        [spaces[0].as_str(), &spaces[1]]
    );
    assert_eq!(space(&one.next().await), spaces[1]);
    s.post("/api/v1/nodes", &node(&s.name("node"))).await.created();
    s.delete(&format!("{}/{name}", collection(&spaces[1]))).await.ok();
    assert_eq!(one.next().await.brief(), ("DELETED", name.as_str()));
}
