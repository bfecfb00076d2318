//! Many watchers, and slow ones.

use std::time::Duration;

use agent::embedded::{Api, Limits};
use futures_util::StreamExt;
use k8s_openapi::api::core::v1::Node;
use kube::api::{Patch, PatchParams, PostParams, WatchEvent, WatchParams};
use kube::{Client, ResourceExt};
use serde_json::json;

use crate::support::Server;

fn node(name: &str) -> Node {
    serde_json::from_value(json!({"metadata": {"name": name}})).unwrap()
}

/// Within a minute, or the test fails.
async fn soon<T>(future: impl Future<Output = T>) -> T {
    tokio::time::timeout(Duration::from_secs(60), future).await.expect("an answer within a minute")
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_thousand_watchers_see_every_event() {
    let server = Server::start(&["--in-memory"]);
    // Over HTTP/1.1: a connection per watch.
    let mut watchers = Vec::new();
    for _ in 0..1000 {
        let nodes: kube::Api<Node> = kube::Api::all(server.client());
        watchers.push(Box::pin(soon(nodes.watch(&WatchParams::default(), "0")).await.unwrap()));
    }
    let nodes: kube::Api<Node> = kube::Api::all(server.client());
    let names: Vec<String> = (0..10).map(|index| format!("n{index}")).collect();
    for name in &names {
        nodes.create(&PostParams::default(), &node(name)).await.unwrap();
    }
    for (number, watcher) in watchers.iter_mut().enumerate() {
        for name in &names {
            // On a slow machine the first has waited for more than a minute.
            let next = async {
                loop {
                    match watcher.next().await {
                        Some(Ok(WatchEvent::Bookmark(_))) => {}
                        other => return other,
                    }
                }
            };
            match soon(next).await {
                Some(Ok(WatchEvent::Added(node))) => assert_eq!(node.name_any(), *name, "watcher {number}"),
                other => panic!("watcher {number}: {other:?}"),
            }
        }
    }
}

async fn annotate(client: &Client, name: &str, text: String) {
    let nodes: kube::Api<Node> = kube::Api::all(client.clone());
    let change = Patch::Merge(json!({"metadata": {"annotations": {"text": text}}}));
    nodes.patch(name, &PatchParams::default(), &change).await.unwrap();
}

#[tokio::test]
async fn a_slow_watcher_is_told_that_it_is_too_late() {
    let api = Api::in_memory_with(Limits { log_events: 1000, log_bytes: 4 << 20 });
    let client = api.client();
    let nodes: kube::Api<Node> = kube::Api::all(client.clone());
    nodes.create(&PostParams::default(), &node("n")).await.unwrap();
    let mut slow = Box::pin(nodes.watch(&WatchParams::default(), "0").await.unwrap());
    assert!(matches!(soon(slow.next()).await, Some(Ok(WatchEvent::Added(_)))));
    for index in 0..100 {
        annotate(&client, "n", format!("{index}{}", "x".repeat(200_000))).await;
    }
    loop {
        match soon(slow.next()).await {
            Some(Ok(WatchEvent::Modified(_))) => {}
            Some(Ok(WatchEvent::Error(status))) => {
                assert_eq!(status.code, 410, "{status:?}");
                break;
            }
            other => panic!("{other:?}"),
        }
    }
    assert!(soon(slow.next()).await.is_none());
}

/// What a process has in memory now, in bytes.
fn memory(pid: u32) -> usize {
    let text = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
    let line = text.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap();
    line.trim().trim_end_matches(" kB").parse::<usize>().unwrap() << 10
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn watchers_that_read_nothing_cost_no_memory() {
    let server = Server::start(&["--in-memory"]);
    let client = server.client();
    let nodes: kube::Api<Node> = kube::Api::all(client.clone());
    nodes.create(&PostParams::default(), &node("n")).await.unwrap();
    let mut slow = Vec::new();
    for _ in 0..50 {
        let nodes: kube::Api<Node> = kube::Api::all(server.client());
        slow.push(Box::pin(soon(nodes.watch(&WatchParams::default(), "0")).await.unwrap()));
    }
    // 80 MB go by, more than the log keeps, which each of the 50 would have to be sent.
    for index in 0..400 {
        annotate(&client, "n", format!("{index}{}", "x".repeat(200_000))).await;
    }
    let used = memory(server.pid());
    println!("50 watchers that read nothing, 80 MB of events each: {} MiB", used >> 20);
    // The log's 64 MiB, as much again for what a watcher's connection was just about to send, and the program.
    assert!(used < 256 << 20, "{} MiB", used >> 20);
    let mut last = slow.swap_remove(0);
    loop {
        match soon(last.next()).await {
            Some(Ok(WatchEvent::Added(_) | WatchEvent::Modified(_))) => {}
            Some(Ok(WatchEvent::Error(status))) => {
                assert_eq!(status.code, 410, "{status:?}");
                break;
            }
            other => panic!("{other:?}"),
        }
    }
}
