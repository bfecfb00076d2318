use super::*;
use std::time::Duration;

use hyper::http::Response;

/// The lines of a watch, as they come.
pub(super) struct Lines {
    body: Answer,
    rest: String,
}

impl Lines {
    pub(super) async fn of(api: &Api, path: &str) -> Self {
        let request = Request::get(path).body(Full::new(Bytes::new())).unwrap();
        let response: Response<Answer> = api.clone().oneshot(request).await.unwrap();
        assert_eq!(response.status(), 200);
        Self { body: response.into_body(), rest: String::new() }
    }

    /// The next one; nothing at the end. Fails rather than wait for ever.
    pub(super) async fn next(&mut self) -> Option<Value> {
        let next = async {
            loop {
                if let Some((line, rest)) = self.rest.split_once('\n') {
                    let value = serde_json::from_str(line).unwrap();
                    self.rest = rest.to_owned();
                    return Some(value);
                }
                let frame = self.body.frame().await?.unwrap();
                self.rest.push_str(std::str::from_utf8(frame.data_ref().unwrap()).unwrap());
            }
        };
        tokio::time::timeout(Duration::from_secs(30), next).await.expect("a line within half a minute")
    }

    /// `ADDED n1`, ….
    async fn told(&mut self) -> String {
        let line = self.next().await.expect("a line");
        format!(
            "{} {}",
            line["type"].as_str().unwrap(),
            line["object"]["metadata"]["name"].as_str().unwrap_or("-")
        )
    }
}

async fn label(api: &Api, name: &str, value: Value) {
    patch(api, &format!("{NODES}/{name}"), "merge-patch+json", json!({"metadata": {"labels": {"a": value}}}))
        .await;
}

#[tokio::test]
async fn a_watch_tells_what_there_is_and_then_what_happens() {
    let api = Api::in_memory();
    ask(&api, "POST", NODES, Some(node("n1"))).await;
    for query in ["", "&resourceVersion=0"] {
        let mut lines = Lines::of(&api, &format!("{NODES}?watch=1{query}")).await;
        assert_eq!(lines.told().await, "ADDED n1");
        ask(&api, "POST", POOLS, Some(pool("p"))).await;
        ask(&api, "POST", NODES, Some(node("n2"))).await;
        label(&api, "n2", json!("b")).await;
        ask(&api, "DELETE", &format!("{NODES}/n2"), None).await;
        assert_eq!(lines.told().await, "ADDED n2");
        assert_eq!(lines.told().await, "MODIFIED n2");
        assert_eq!(lines.told().await, "DELETED n2");
    }
}

#[tokio::test]
async fn a_selection_is_entered_and_left() {
    let api = Api::in_memory();
    ask(&api, "POST", NODES, Some(node("n"))).await;
    let mut lines = Lines::of(&api, &format!("{NODES}?watch=1&labelSelector=a%3Db")).await;
    label(&api, "n", json!("b")).await;
    assert_eq!(lines.told().await, "ADDED n");
    label(&api, "n", json!("c")).await;
    let left = lines.next().await.unwrap();
    let (_, now) = ask(&api, "GET", &format!("{NODES}/n"), None).await;
    assert_eq!((&left["type"], &left["object"]["metadata"]["labels"]["a"]), (&json!("DELETED"), &json!("b")));
    assert_eq!(left["object"]["metadata"]["resourceVersion"], now["metadata"]["resourceVersion"]);
    ask(&api, "DELETE", &format!("{NODES}/n"), None).await;
    ask(
        &api,
        "POST",
        NODES,
        Some({
            let mut other = node("m");
            other["metadata"]["labels"] = json!({"a": "b"});
            other
        }),
    )
    .await;
    assert_eq!(lines.told().await, "ADDED m");
}

#[tokio::test]
async fn a_watch_goes_on_from_a_revision_until_the_log_has_lost_it() {
    let api = Api::in_memory_with(Limits { log_events: 8, ..Limits::default() });
    let (_, first) = ask(&api, "POST", NODES, Some(node("n0"))).await;
    let from =
        format!("{NODES}?watch=1&resourceVersion={}", first["metadata"]["resourceVersion"].as_str().unwrap());
    for index in 1..5 {
        ask(&api, "POST", NODES, Some(node(&format!("n{index}")))).await;
    }
    let mut lines = Lines::of(&api, &from).await;
    for index in 1..5 {
        assert_eq!(lines.told().await, format!("ADDED n{index}"));
    }
    for index in 5..14 {
        ask(&api, "POST", NODES, Some(node(&format!("n{index}")))).await;
    }
    // Both the one that is too slow and the one that comes too late.
    for mut lines in [lines, Lines::of(&api, &from).await] {
        let line = lines.next().await.unwrap();
        assert_eq!(
            (&line["type"], &line["object"]["code"], &line["object"]["reason"]),
            (&json!("ERROR"), &json!(410), &json!("Expired"))
        );
        assert_eq!(lines.next().await, None);
    }
    let mut lines = Lines::of(&api, &format!("{NODES}?watch=1&resourceVersion=99999")).await;
    assert_eq!(lines.next().await.unwrap()["object"]["code"], 410);
}

#[tokio::test]
async fn the_initial_state_ends_with_a_bookmark_where_asked_for() {
    let api = Api::in_memory();
    for index in 0..150 {
        ask(&api, "POST", NODES, Some(node(&format!("n{index:03}")))).await;
    }
    let query = "watch=1&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true";
    let mut lines = Lines::of(&api, &format!("{NODES}?{query}")).await;
    assert_eq!(lines.told().await, "ADDED n000");
    // What happens meanwhile comes after what there was.
    ask(&api, "DELETE", &format!("{NODES}/n149"), None).await;
    label(&api, "n148", json!("b")).await;
    for index in 1..150 {
        let line = lines.next().await.unwrap();
        assert_eq!(line["object"]["metadata"]["name"], format!("n{index:03}"));
        assert_eq!(line["object"]["metadata"].get("labels"), None);
    }
    let line = lines.next().await.unwrap();
    assert_eq!(line["type"], "BOOKMARK");
    assert_eq!(line["object"]["metadata"]["annotations"]["k8s.io/initial-events-end"], "true");
    assert_eq!(lines.told().await, "DELETED n149");
    assert_eq!(lines.told().await, "MODIFIED n148");
}

#[tokio::test]
async fn watches_end_when_the_api_stops_or_is_gone_and_at_their_time() {
    let api = Api::in_memory();
    let mut ends = Lines::of(&api, &format!("{NODES}?watch=1&timeoutSeconds=1")).await;
    assert_eq!(ends.next().await, None);
    let mut lines = Lines::of(&api, &format!("{NODES}?watch=1")).await;
    api.stop();
    assert_eq!(lines.next().await, None);
    let other = Api::in_memory();
    let mut lines = Lines::of(&other, &format!("{NODES}?watch=1")).await;
    drop(other);
    assert_eq!(lines.next().await, None);
}

#[tokio::test]
async fn a_watch_may_be_asked_for_longer_than_any_clock_counts() {
    let api = Api::in_memory();
    ask(&api, "POST", NODES, Some(node("n"))).await;
    for seconds in [i64::MAX, i64::MAX / 1_000_000_000, 1 << 40] {
        let mut lines = Lines::of(&api, &format!("{NODES}?watch=1&timeoutSeconds={seconds}")).await;
        assert_eq!(lines.told().await, "ADDED n", "{seconds}");
    }
}

#[tokio::test]
async fn a_bookmark_comes_before_the_end() {
    let api = Api::in_memory();
    ask(&api, "POST", POOLS, Some(pool("p"))).await;
    let mut lines =
        Lines::of(&api, &format!("{NODES}?watch=1&allowWatchBookmarks=true&timeoutSeconds=3")).await;
    let line = lines.next().await.unwrap();
    let revision = api.store().read().revision.to_string();
    assert_eq!(
        (&line["type"], &line["object"]["metadata"]["resourceVersion"]),
        (&json!("BOOKMARK"), &json!(revision))
    );
    assert_eq!(lines.next().await, None);
}

#[tokio::test]
async fn bookmarks_come_by_the_clock_and_lead_on() {
    let mut api = Api::in_memory();
    Arc::get_mut(&mut api.inner).unwrap().bookmarks = Duration::from_millis(10);
    let selected = format!("{NODES}?watch=1&labelSelector=a%3Db&allowWatchBookmarks=true");
    let mut lines = Lines::of(&api, &selected).await;
    // Nothing of these is in the selection: only bookmarks tell how far the watch has come.
    for name in ["n1", "n2"] {
        let (_, made) = ask(&api, "POST", NODES, Some(node(name))).await;
        let revision = made["metadata"]["resourceVersion"].as_str().unwrap().to_owned();
        loop {
            let line = lines.next().await.unwrap();
            assert_eq!((&line["type"], &line["object"]["kind"]), (&json!("BOOKMARK"), &json!("Node")));
            if line["object"]["metadata"]["resourceVersion"] == revision {
                break;
            }
        }
    }
    // From the last of them on nothing is missed, and nothing comes twice.
    let from = api.store().read().revision;
    label(&api, "n1", json!("b")).await;
    let mut on = Lines::of(&api, &format!("{selected}&resourceVersion={from}")).await;
    assert_eq!(on.told().await, "ADDED n1");
    // Who asks for none gets none.
    let mut silent = Lines::of(&api, &format!("{NODES}?watch=1&resourceVersion={from}")).await;
    assert_eq!(silent.told().await, "MODIFIED n1");
    label(&api, "n2", json!("b")).await;
    assert_eq!(silent.told().await, "MODIFIED n2");
}

#[tokio::test]
async fn a_watch_ends_at_its_time_also_if_it_has_more_to_tell() {
    let api = Api::in_memory();
    for index in 0..200 {
        ask(&api, "POST", NODES, Some(node(&format!("n{index:03}")))).await;
    }
    let mut busy = Lines::of(&api, &format!("{NODES}?watch=1&timeoutSeconds=1")).await;
    assert_eq!(busy.told().await, "ADDED n000");
    // One that began later has ended: so the first one's time is over.
    let mut later = Lines::of(&api, &format!("{POOLS}?watch=1&timeoutSeconds=1")).await;
    assert_eq!(later.next().await, None);
    assert_eq!(busy.next().await, None);
}

#[tokio::test]
async fn events_are_shared_and_not_copied() {
    let api = Api::in_memory();
    let mut watches = Vec::new();
    for _ in 0..2 {
        let request = Request::get(format!("{NODES}?watch=1")).body(Full::new(Bytes::new())).unwrap();
        watches.push(api.clone().oneshot(request).await.unwrap().into_body());
    }
    ask(&api, "POST", NODES, Some(node("n"))).await;
    let mut places = Vec::new();
    for watch in &mut watches {
        places.push(watch.frame().await.unwrap().unwrap().into_data().unwrap().as_ptr());
    }
    assert_eq!(places[0], places[1]);
}
