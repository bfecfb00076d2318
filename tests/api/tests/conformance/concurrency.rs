//! Many writers at once: every write happens once, or is refused.

use std::sync::Arc;

use api_tests::server::Server;
use api_tests::server::paths::{LEASES, POOLS, STATES, at, lease, pool, state, status};
use serde_json::{Value, json};
use tokio::sync::Barrier;

use crate::support::{names, version};

/// As many as the issue asks for.
const WRITERS: usize = 100;

/// All at once: each task gets its number when all are ready. What they returned, in the order of their numbers.
async fn at_once<T, Fut>(s: &Server, task: impl Fn(Server, usize) -> Fut) -> Vec<T>
where
    T: Send + 'static,
    Fut: Future<Output = T> + Send + 'static,
{
    let barrier = Arc::new(Barrier::new(WRITERS));
    let tasks: Vec<_> = (0..WRITERS)
        .map(|number| {
            let (work, barrier) = (task(s.clone(), number), barrier.clone());
            tokio::spawn(async move {
                barrier.wait().await;
                work.await
            })
        })
        .collect();
    let mut found = Vec::new();
    for task in tasks {
        found.push(task.await.expect("a task"));
    }
    found
}

/// Each adds its own allocation, read and written back with the version it read, until that works.
pub(crate) async fn guarded_writers_never_lose_a_write(s: Server) {
    let name = s.name("pool");
    s.post(POOLS, &pool(&name)).await.created();
    let (path, door) = (at(POOLS, &name), status(POOLS, &name));
    let counts = at_once(&s, |s, number| {
        let (path, door) = (path.clone(), door.clone());
        async move {
            let mut conflicts = 0;
            loop {
                let mut object = s.get(&path).await.ok();
                let sequence = object["status"]["sequence"].as_i64().expect("a number");
                object["status"]["sequence"] = json!(sequence + 1);
                object["status"]["allocations"][format!("10.10.10.{number}")] =
                    json!({"node": format!("node{number}")});
                let answer = s.put(&door, &object).await;
                match answer.code {
                    200 => return conflicts,
                    409 => {
                        answer.refused(409, "Conflict");
                        conflicts += 1;
                    }
                    _ => panic!("{}", answer.text),
                }
            }
        }
    })
    .await;
    let after = s.get(&path).await.ok();
    // Once each: neither lost nor twice.
    assert_eq!(after["status"]["sequence"], WRITERS, "after {} conflicts", counts.iter().sum::<usize>());
    let allocations = after["status"]["allocations"].as_object().expect("allocations");
    assert_eq!(allocations.len(), WRITERS);
    for number in 0..WRITERS {
        assert_eq!(allocations[&format!("10.10.10.{number}")]["node"], format!("node{number}"));
    }
}

/// Unguarded patches: the server puts them one after the other, and each `test` sees what came before it.
pub(crate) async fn unguarded_patches_with_a_test(s: Server) {
    let name = s.name("pool");
    s.post(POOLS, &pool(&name)).await.created();
    let (path, door) = (at(POOLS, &name), status(POOLS, &name));
    // Ten ask for each of ten addresses: the first gets it.
    let won = at_once(&s, |s, number| {
        let door = door.clone();
        async move {
            let slot = format!("/status/allocations/10.10.10.{}", number % 10);
            let patch = json!([
                {"op": "test", "path": slot, "value": null},
                {"op": "add", "path": slot, "value": {"node": format!("node{number}")}},
            ]);
            let answer = s.json_patch(&door, &patch).await;
            match answer.code {
                200 => true,
                422 => false,
                // A real server gives up on a patch that it had to try again too often.
                409 | 504 => false,
                _ => panic!("{}", answer.text),
            }
        }
    })
    .await;
    let after = s.get(&path).await.ok();
    let allocations = after["status"]["allocations"].as_object().expect("allocations");
    let mut winners = 0;
    for number in (0..WRITERS).filter(|number| won[*number]) {
        let holder = &allocations[&format!("10.10.10.{}", number % 10)]["node"];
        assert_eq!(*holder, format!("node{number}"), "who was told yes has it");
        winners += 1;
    }
    assert_eq!(winners, allocations.len());
    assert!(winners > 0);
}

pub(crate) async fn one_name_one_winner(s: Server) {
    let name = s.name("state");
    let codes = at_once(&s, |s, _| {
        let object = state(&name);
        async move { s.post(STATES, &object).await.code }
    })
    .await;
    assert_eq!(codes.iter().filter(|code| **code == 201).count(), 1);
    assert_eq!(codes.iter().filter(|code| **code == 409).count(), WRITERS - 1);
}

/// A lease is taken by who writes first on the version that all read.
pub(crate) async fn lease_races_have_one_winner(s: Server) {
    let name = s.name("lease");
    let made = s.post(LEASES, &lease(&name)).await.created();
    let path = at(LEASES, &name);
    let codes = at_once(&s, |s, number| {
        let (path, mut mine) = (path.clone(), made.clone());
        mine["spec"]["holderIdentity"] = json!(format!("holder{number}"));
        async move { s.put(&path, &mine).await.code }
    })
    .await;
    let winners: Vec<usize> = (0..WRITERS).filter(|number| codes[*number] == 200).collect();
    assert_eq!(winners.len(), 1, "{codes:?}");
    assert!(codes.iter().all(|code| matches!(code, 200 | 409)), "{codes:?}");
    assert_eq!(s.get(&path).await.ok()["spec"]["holderIdentity"], format!("holder{}", winners[0]));
}

pub(crate) async fn different_objects_do_not_conflict(s: Server) {
    let group = s.name("group");
    let made = at_once(&s, |s, number| {
        let mut object = state(&format!("{group}-{number:03}"));
        object["metadata"]["labels"] = json!({"group": group});
        async move {
            let made = s.post(STATES, &object).await.created();
            let path = at(STATES, made["metadata"]["name"].as_str().expect("a name"));
            s.merge(&path, &json!({"metadata": {"labels": {"done": "yes"}}})).await.ok()
        }
    })
    .await;
    let mut versions: Vec<&str> = made.iter().map(version).collect();
    versions.sort_unstable();
    versions.dedup();
    assert_eq!(versions.len(), WRITERS, "no two writes have one version");
    let list = s.get(&format!("{STATES}?labelSelector=group%3D{group},done%3Dyes")).await.ok();
    assert_eq!(names(&list).len(), WRITERS);
}

/// What a watch shows is every write, once, in the order of their versions.
pub(crate) async fn a_watch_sees_every_write(s: Server) {
    let group = s.name("group");
    let start = s.get(&format!("{STATES}?limit=1")).await.ok();
    let query = format!("{STATES}?labelSelector=group%3D{group}");
    let seen = tokio::spawn(follow(s.clone(), query, version(&start).to_owned()));
    let made = at_once(&s, |s, number| {
        let mut object = state(&format!("{group}-{number:03}"));
        object["metadata"]["labels"] = json!({"group": group});
        async move {
            let made = s.post(STATES, &object).await.created();
            let path = at(STATES, made["metadata"]["name"].as_str().expect("a name"));
            let changed = s.merge(&path, &json!({"metadata": {"labels": {"done": "yes"}}})).await.ok();
            s.delete(&path).await.ok();
            [made, changed]
        }
    })
    .await;
    let seen = seen.await.expect("the events");
    assert!(seen.is_sorted_by(|a, b| a.0 < b.0), "in order, none twice");
    let written: Vec<u64> =
        made.iter().flatten().map(|object: &Value| version(object).parse().expect("a number")).collect();
    assert!(written.iter().all(|version| seen.iter().any(|(found, _)| found == version)));
    assert_eq!(seen.iter().filter(|(_, kind)| kind == "DELETED").count(), WRITERS);
}

/// Versions and kinds of three events for each writer. A server may cut off a watcher that is slow, as a real one does
/// when it has much to do; then it goes on from where it was, as any client does.
async fn follow(s: Server, query: String, from: String) -> Vec<(u64, String)> {
    let mut seen: Vec<(u64, String)> = Vec::new();
    let mut last = from;
    while seen.len() < 3 * WRITERS {
        let mut watch = s.watch(&format!("{query}&resourceVersion={last}")).await;
        while let Some(event) = watch.next_or_end().await {
            assert_ne!(event.kind, "ERROR", "{}", event.object);
            event.version().clone_into(&mut last);
            seen.push((last.parse().expect("a number"), event.kind));
            if seen.len() == 3 * WRITERS {
                break;
            }
        }
    }
    seen
}
