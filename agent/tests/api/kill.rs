//! kill -9 under load: what was acknowledged is there, revisions never go back, watchers miss nothing.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use futures_util::StreamExt;
use k8s_openapi::api::core::v1::Node;
use kube::api::{Api, DeleteParams, ListParams, Patch, PatchParams, PostParams, WatchEvent, WatchParams};
use kube::{Client, ResourceExt};
use serde_json::json;
use tokio::sync::watch::{self, Sender};

use crate::support::{Server, folder_in_memory};

const KILLS: u64 = 50;
const WRITERS: usize = 8;

/// What one writer knows of its object. It writes one thing at a time, so at most one write is in doubt.
#[derive(Clone, Debug, Default)]
struct Known {
    /// The number of the last write that was acknowledged, and whether the object is there since.
    acknowledged: (u64, bool),
    /// The write that was under way when the server died.
    doubtful: Option<(u64, bool)>,
    revision: u64,
}

fn number(node: &Node) -> u64 {
    node.labels().get("number").and_then(|number| number.parse().ok()).unwrap_or_default()
}

fn revision(text: Option<String>) -> u64 {
    text.and_then(|text| text.parse().ok()).unwrap_or_default()
}

/// A server that is dead says nothing; nor, once in a great while, does the client's pool of connections.
const SILENCE: Duration = Duration::from_secs(30);

/// One writer: creates, changes and deletes its node, until the server is gone.
async fn write(client: Client, name: String, mut known: Known, acknowledged: Sender<u64>) -> Known {
    let nodes: Api<Node> = Api::all(client);
    loop {
        let (last, exists) = known.acknowledged;
        let next = last + 1;
        let done = if !exists {
            let node = json!({"metadata": {"name": name, "labels": {"number": next.to_string()}}});
            known.doubtful = Some((next, true));
            let node = serde_json::from_value(node).unwrap();
            in_time(nodes.create(&PostParams::default(), &node))
                .await
                .map(|made| made.map(|node| revision(node.resource_version())))
        } else if next % 7 == 0 {
            known.doubtful = Some((next, false));
            in_time(nodes.delete(&name, &DeleteParams::default())).await.map(|done| done.map(|_| 0))
        } else {
            known.doubtful = Some((next, true));
            let change = json!([
                {"op": "test", "path": "/metadata/labels/number", "value": last.to_string()},
                {"op": "replace", "path": "/metadata/labels/number", "value": next.to_string()},
            ]);
            let change: Patch<Node> = Patch::Json(serde_json::from_value(change).unwrap());
            let patched = in_time(nodes.patch(&name, &PatchParams::default(), &change)).await;
            patched.map(|done| done.map(|node| revision(node.resource_version())))
        };
        // Without a word it is as lost as with one.
        let Some(done) = done else { return known };
        match done {
            Ok(revision) => {
                assert!(
                    revision == 0 || revision > known.revision,
                    "{name}: {revision} after {}",
                    known.revision
                );
                known.revision = known.revision.max(revision);
                known.acknowledged = known.doubtful.take().unwrap();
                acknowledged.send_modify(|count| *count += 1);
            }
            // A refusal would be a bug of this test or of the server; a lost connection is what this is about.
            Err(kube::Error::Api(status)) => panic!("{name} {known:?}: {status:?}"),
            Err(_) => return known,
        }
    }
}

async fn in_time<T>(request: impl Future<Output = Result<T, kube::Error>>) -> Option<Result<T, kube::Error>> {
    tokio::time::timeout(SILENCE, request).await.ok()
}

/// What a watcher saw: where it is, and each object's number.
#[derive(Debug, Default)]
struct Seen {
    revision: u64,
    numbers: BTreeMap<String, u64>,
    /// The last number of each, also of those that are gone.
    last: BTreeMap<String, u64>,
    events: u64,
}

impl Seen {
    fn take(&mut self, event: WatchEvent<Node>) {
        let (node, here) = match event {
            WatchEvent::Added(node) | WatchEvent::Modified(node) => (node, true),
            WatchEvent::Deleted(node) => (node, false),
            WatchEvent::Bookmark(_) => return,
            WatchEvent::Error(error) => panic!("the watch can't go on: {error:?}"),
        };
        let (name, at) = (node.name_any(), revision(node.resource_version()));
        assert!(at > self.revision, "{name}: {at} after {}", self.revision);
        self.revision = at;
        self.events += 1;
        let last = self.last.entry(name.clone()).or_default();
        if here {
            // A delete has a number too, which its event doesn't show.
            let expected =
                if self.numbers.contains_key(&name) { *last + 1 } else { *last + 1 + u64::from(*last > 0) };
            assert_eq!(number(&node), expected, "{name}: a gap");
            *last = number(&node);
            self.numbers.insert(name, *last);
        } else {
            self.numbers.remove(&name);
        }
    }
}

/// Watches until the server is gone, or until it has seen a revision.
async fn follow(client: Client, seen: Arc<Mutex<Seen>>, until: u64) {
    let nodes: Api<Node> = Api::all(client);
    let from = seen.lock().unwrap().revision;
    let Ok(stream) = nodes.watch(&WatchParams::default().timeout(290), &from.to_string()).await else {
        return;
    };
    let mut stream = std::pin::pin!(stream);
    while seen.lock().unwrap().revision < until {
        match stream.next().await {
            Some(Ok(event)) => seen.lock().unwrap().take(event),
            Some(Err(_)) | None => return,
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn kill_9_under_load_loses_nothing_that_was_acknowledged() {
    let folder = folder_in_memory();
    let dir = folder.path().join("state");
    let dir = dir.to_str().unwrap();
    let names: Vec<String> = (0..WRITERS).map(|index| format!("n{index}")).collect();
    let mut known = vec![Known::default(); WRITERS];
    let seen = Arc::new(Mutex::new(Seen { revision: 2, ..Seen::default() }));
    let mut highest = 0;
    let mut total = 0;
    for round in 0..=KILLS {
        let server = Server::start(&["--state-dir", dir]);
        let nodes: Api<Node> = Api::all(server.client());
        let list = nodes.list(&ListParams::default()).await.unwrap();
        let now = revision(list.metadata.resource_version.clone());
        assert!(now >= highest, "round {round}: revision {now} after {highest}");
        let found: BTreeMap<String, u64> = list.iter().map(|node| (node.name_any(), number(node))).collect();
        for (name, known) in names.iter().zip(&mut known) {
            settle(name, known, found.get(name).copied());
            assert!(known.revision <= now);
        }
        if round == KILLS {
            follow(server.client(), seen.clone(), now).await;
            let seen = seen.lock().unwrap();
            assert_eq!(seen.numbers, found);
            println!("{KILLS} kills, {total} writes acknowledged, {} events seen, none missed", seen.events);
            break;
        }
        let (acknowledged, mut count) = watch::channel(0);
        let writers: Vec<_> = names
            .iter()
            .zip(&known)
            .map(|(name, known)| {
                tokio::spawn(write(server.client(), name.clone(), known.clone(), acknowledged.clone()))
            })
            .collect();
        let watcher = tokio::spawn(follow(server.client(), seen.clone(), u64::MAX));
        // Another moment in each round, from the very first writes on.
        let enough = (round * 37) % 150;
        let reached = count.wait_for(|count| *count >= enough);
        tokio::time::timeout(Duration::from_secs(60), reached)
            .await
            .expect("writes within a minute")
            .unwrap();
        server.kill();
        known.clear();
        for writer in writers {
            known.push(writer.await.unwrap());
        }
        let end = watcher.abort_handle();
        match tokio::time::timeout(SILENCE, watcher).await {
            Ok(watched) => watched.unwrap(),
            Err(_) => end.abort(),
        }
        highest = known.iter().map(|known| known.revision).max().unwrap_or_default().max(now);
        total += *acknowledged.borrow();
    }
    assert!(total > KILLS, "hardly anything was written: {total}");
}

/// An object is as the last acknowledged write left it, or as the one left it that was under way.
fn settle(name: &str, known: &mut Known, found: Option<u64>) {
    let fits = |(number, exists): (u64, bool)| if exists { found == Some(number) } else { found.is_none() };
    let doubtful = known.doubtful.take();
    if let Some(write) = doubtful.filter(|write| fits(*write)) {
        known.acknowledged = write;
        return;
    }
    // Before its first write there is nothing.
    assert!(fits(known.acknowledged), "{name}: found {found:?}, acknowledged {:?}", known.acknowledged);
}
