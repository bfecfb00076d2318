use super::watching::Lines;
use super::*;
use crate::embedded::store::{self, BackupError, DiskError, Held, LockError, Restored};

const SLICES: &str = "/apis/nmstate.io/v1/nodeipslices";

#[tokio::test]
async fn everything_is_there_after_a_restart() {
    let folder = Folder::new();
    let api = Api::open(folder.path()).unwrap();
    let (_, first) = ask(&api, "POST", NODES, Some(node("n0"))).await;
    for index in 1..5 {
        ask(&api, "POST", NODES, Some(node(&format!("n{index}")))).await;
    }
    patch(&api, &format!("{NODES}/n1"), "merge-patch+json", json!({"metadata": {"labels": {"a": "b"}}}))
        .await;
    ask(&api, "DELETE", &format!("{NODES}/n2"), None).await;
    let (nodes, revision) = (listed(&api, NODES).await, api.store().read().revision);
    drop(api);

    let api = Api::open(folder.path()).unwrap();
    assert_eq!(listed(&api, NODES).await, nodes);
    assert_eq!(api.store().read().revision, revision);
    let from = first["metadata"]["resourceVersion"].as_str().unwrap();
    let mut lines = Lines::of(&api, &format!("{NODES}?watch=1&resourceVersion={from}")).await;
    let mut told = Vec::new();
    for _ in 0..6 {
        let line = lines.next().await.unwrap();
        told.push(format!(
            "{} {}",
            line["type"].as_str().unwrap(),
            line["object"]["metadata"]["name"].as_str().unwrap()
        ));
    }
    assert_eq!(told, ["ADDED n1", "ADDED n2", "ADDED n3", "ADDED n4", "MODIFIED n1", "DELETED n2"]);
    let (_, next) = ask(&api, "POST", NODES, Some(node("n9"))).await;
    assert!(next["metadata"]["resourceVersion"].as_str().unwrap().parse::<u64>().unwrap() > revision);
}

#[tokio::test]
async fn selections_are_left_also_across_a_restart() {
    let folder = Folder::new();
    let limits = Limits { log_events: 2, ..Limits::default() };
    let api = Api::open_with(folder.path(), limits).unwrap();
    let mut labelled = node("n");
    labelled["metadata"]["labels"] = json!({"a": "b"});
    ask(&api, "POST", NODES, Some(labelled)).await;
    ask(&api, "POST", NODES, Some(node("other"))).await;
    let from = api.store().read().revision;
    patch(&api, &format!("{NODES}/n"), "merge-patch+json", json!({"metadata": {"labels": null}})).await;
    drop(api);
    let api = Api::open_with(folder.path(), limits).unwrap();
    let path = format!("{NODES}?watch=1&labelSelector=a&resourceVersion={from}");
    let line = Lines::of(&api, &path).await.next().await.unwrap();
    assert_eq!((&line["type"], &line["object"]["metadata"]["name"]), (&json!("DELETED"), &json!("n")));
}

#[tokio::test]
async fn the_log_stays_within_its_bounds_on_disk_too() {
    let folder = Folder::new();
    let limits = Limits { log_events: 1000, log_bytes: 20_000 };
    let api = Api::open_with(folder.path(), limits).unwrap();
    ask(&api, "POST", NODES, Some(node("n"))).await;
    for index in 0..200 {
        let labels = json!({"metadata": {"labels": {"a": index.to_string()}}});
        patch(&api, &format!("{NODES}/n"), "merge-patch+json", labels).await;
    }
    let (events, bytes) = api.store().read().log_size();
    assert!(events < 200 && bytes <= limits.log_bytes, "{events} {bytes}");
    drop(api);
    let api = Api::open_with(folder.path(), limits).unwrap();
    assert_eq!(api.store().read().log_size().0, events);
}

#[test]
fn a_second_server_is_refused_and_told_who_has_it() {
    let folder = Folder::new();
    let _first = Api::open(folder.path()).unwrap();
    let refused = Api::open(folder.path()).err().unwrap();
    let OpenError::Lock(LockError::Busy { pid, .. }) = &refused else { panic!("{refused:?}") };
    assert_eq!(*pid, Some(std::process::id()));
    assert!(refused.to_string().contains(&format!("(pid {})", std::process::id())), "{refused}");
    let refused = store::restore(&folder.path().join("none"), folder.path(), false).unwrap_err();
    assert!(matches!(refused, BackupError::Missing { .. }), "{refused}");
    let refused = store::backup(folder.path(), &folder.path().join("copy")).unwrap_err();
    assert!(matches!(refused, BackupError::Lock(LockError::Busy { .. })), "{refused}");
}

#[test]
fn a_newer_store_and_a_foreign_file_are_refused() {
    let folder = Folder::new();
    drop(Api::open(folder.path()).unwrap());
    let file = folder.path().join("store.redb");
    let database = redb::Database::open(&file).unwrap();
    let write = database.begin_write().unwrap();
    write.open_table(redb::TableDefinition::<&str, u64>::new("meta")).unwrap().insert("format", 3).unwrap();
    write.commit().unwrap();
    drop(database);
    let refused = Api::open(folder.path()).err().unwrap();
    assert!(matches!(refused, OpenError::Disk(DiskError::Newer { found: 3, .. })), "{refused:?}");
    assert!(refused.to_string().contains("made by a newer berth: format 3, this one knows 1"), "{refused}");

    std::fs::write(&file, b"something else entirely, long enough to be looked at").unwrap();
    let refused = Api::open(folder.path()).err().unwrap();
    assert!(matches!(refused, OpenError::Disk(DiskError::Foreign { .. })), "{refused:?}");
    let refused = store::restore(&file, Folder::new().path(), false).unwrap_err();
    assert!(matches!(refused, BackupError::Disk(DiskError::Foreign { .. })), "{refused:?}");
}

#[tokio::test]
async fn a_backup_is_of_one_moment_and_revisions_never_go_back() {
    let (folder, other) = (Folder::new(), Folder::new());
    std::fs::create_dir_all(other.path()).unwrap();
    let copy = other.path().join("copy");
    let api = Api::open(folder.path()).unwrap();
    ask(&api, "POST", NODES, Some(node("before"))).await;
    ask(&api, "POST", POOLS, Some(pool("p"))).await;
    let slice = json!({"apiVersion": "nmstate.io/v1", "kind": "NodeIPSlice", "metadata": {"name": "p.10.0.0.0"},
        "spec": {"pool": "p", "cidr": "10.0.0.0/28", "node": "before", "nodeUID": "u"}});
    let (code, made) = ask(&api, "POST", SLICES, Some(slice)).await;
    assert_eq!(code, 201, "{made}");
    // A hold that was under way, and is long over.
    let held = json!({"status": {"hold": {"until": "2026-01-01T00:00:00Z"}}});
    let (code, put) = patch(&api, &format!("{POOLS}/p/status"), "merge-patch+json", held).await;
    assert_eq!(code, 200, "{put}");
    let nodes = listed(&api, NODES).await;
    let copied = api.backup(&copy).unwrap();
    assert_eq!((copied.objects, copied.held), (5, Held::default()));
    assert!(matches!(api.backup(&copy), Err(BackupError::Exists { .. })));
    ask(&api, "POST", NODES, Some(node("after"))).await;
    let revision = api.store().read().revision;
    drop(api);

    let Restored { copied, kept } = store::restore(&copy, folder.path(), false).unwrap();
    assert!(copied.revision > revision);
    assert_eq!(copied.held, Held { pools: 1, slices: 1 });
    assert_eq!(kept, Some(folder.path().join("store.redb.before-restore")));
    let api = Api::open(folder.path()).unwrap();
    assert_eq!(listed(&api, NODES).await, nodes);
    // Rule 6: neither ledger gives anything before hosts have said what they hold.
    for path in [POOLS, SLICES] {
        for (name, ledger) in listed(&api, path).await {
            let annotations = &ledger["metadata"]["annotations"];
            assert_eq!(annotations["nmstate.io/hold"], "restored from a backup", "{name}");
            assert!(ledger["status"]["hold"].is_null(), "{name}: counted anew");
            assert!(
                ledger["metadata"]["resourceVersion"].as_str().unwrap().parse::<u64>().unwrap() > revision
            );
        }
    }
    // Whoever watched before is told to start again: what it knows is not what is there.
    let line =
        Lines::of(&api, &format!("{NODES}?watch=1&resourceVersion={revision}")).await.next().await.unwrap();
    assert_eq!(line["object"]["code"], 410);
    drop(api);
    store::backup(folder.path(), &other.path().join("offline")).unwrap();
    let restored = store::restore(&other.path().join("offline"), &other.path().join("new"), false).unwrap();
    assert_eq!(restored.kept, None);
    assert_eq!(listed(&Api::open(&other.path().join("new")).unwrap(), NODES).await, nodes);
}
