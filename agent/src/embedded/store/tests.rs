use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::transaction::Batch;
use super::*;
use crate::embedded::resource::Table;

fn key(name: &str) -> Key {
    Key::new(Table::of("", "nodes").unwrap(), "", name)
}

fn node(name: &str, label: usize) -> Value {
    json!({"metadata": {"name": name, "uid": name, "labels": {"l": label.to_string()}}})
}

/// What there is at a revision, by name.
fn content(state: &State, revision: u64) -> Result<BTreeMap<String, u64>, Forgotten> {
    let objects = state.range_at(key("").table, None, None, revision)?;
    Ok(objects.map(|object| (object.key.name.to_string(), object.revision)).collect())
}

#[tokio::test]
async fn the_past_can_be_read_as_far_as_the_log_goes() {
    let store = Store::in_memory(Limits { log_events: 40, ..Limits::default() }).unwrap();
    let mut past = Vec::new();
    for step in 0..100_usize {
        let name = format!("n{}", step * 7 % 11);
        store
            .write(move |tx| {
                match tx.get(&key(&name)) {
                    Some(old) if step % 3 == 0 => {
                        tx.remove(&old.key, &old.value());
                    }
                    _ => {
                        tx.put(key(&name), &node(&name, step));
                    }
                }
                Ok(())
            })
            .await
            .unwrap();
        let state = store.read();
        past.push((state.revision, content(&state, state.revision).unwrap()));
    }
    let state = store.read();
    let (known, forgotten): (Vec<_>, Vec<_>) = past.into_iter().partition(|(at, _)| *at >= state.forgotten);
    assert_eq!((known.len(), forgotten.len()), (41, 59));
    for (revision, then) in known {
        assert_eq!(content(&state, revision), Ok(then), "at {revision}");
    }
    for (revision, _) in forgotten {
        assert_eq!(content(&state, revision), Err(Forgotten));
        assert!(state.since(revision).is_err());
    }
}

#[tokio::test]
async fn a_refused_write_leaves_nothing_behind() {
    let store = Store::in_memory(Limits::default()).unwrap();
    store.write(|tx| Ok(tx.put(key("a"), &node("a", 0)))).await.unwrap();
    let refused = store
        .write(|tx| -> Result<(), Status> {
            let old = tx.get(&key("a")).unwrap();
            tx.put(key("b"), &node("b", 0));
            tx.put(key("a"), &node("a", 1));
            tx.remove(&old.key, &old.value());
            tx.put(key("a"), &node("a", 2));
            assert_eq!(tx.by_uid("b").unwrap().key, key("b"));
            Err(Status::bad_request("no"))
        })
        .await;
    assert_eq!(refused.unwrap_err().code, 400);
    let state = store.read();
    assert_eq!((state.revision, state.log_size().0), (1, 1));
    assert_eq!(content(&state, 1).unwrap(), BTreeMap::from([("a".to_owned(), 1)]));
    assert!(state.by_uid("b").is_none());
}

#[tokio::test]
async fn writes_that_come_together_are_seen_by_each_other_in_order() {
    let store = Arc::new(Store::in_memory(Limits::default()).unwrap());
    let mut tasks = tokio::task::JoinSet::new();
    for _ in 0..500 {
        let store = store.clone();
        tasks.spawn(async move {
            let write = store.write(|tx| {
                let old = tx.get(&key("n")).map_or(0, |old| old.facts.labels["l"].parse::<usize>().unwrap());
                Ok(tx.put(key("n"), &node("n", old + 1)).revision)
            });
            write.await.unwrap()
        });
    }
    let mut revisions = tasks.join_all().await;
    revisions.sort_unstable();
    assert_eq!(revisions, (1..=500).collect::<Vec<u64>>());
    assert_eq!(store.read().get(&key("n")).unwrap().facts.labels["l"], "500");
}

#[test]
fn a_commit_whose_answer_was_lost_is_taken_back() {
    let folder = std::env::temp_dir().join(format!("berth-store-undo-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let mut disk = Disk::open(&folder).unwrap();
    let mut state = disk.load().unwrap();
    let mut first = Batch::after(0);
    let mut tx = Transaction::new(&state, &mut first);
    tx.put(key("kept"), &node("kept", 0));
    tx.put(key("gone"), &node("gone", 0));
    disk.commit(&first, 0).unwrap();
    state.publish(first.events, first.revision, 0);

    // On disk it is, but whoever asked was told that it isn't.
    let mut lost = Batch::after(state.revision);
    let mut tx = Transaction::new(&state, &mut lost);
    tx.put(key("kept"), &node("kept", 1));
    tx.put(key("new"), &node("new", 1));
    tx.remove(&key("gone"), &node("gone", 0));
    disk.commit(&lost, 0).unwrap();
    disk.undo(&lost, &state).unwrap();

    let loaded = disk.load().unwrap();
    assert_eq!(content(&loaded, loaded.revision), content(&state, state.revision));
    assert_eq!(loaded.log_size().0, 2);
    assert_eq!(loaded.revision, lost.revision, "numbers are not given twice");
    drop(disk);
    std::fs::remove_dir_all(&folder).unwrap();
}
