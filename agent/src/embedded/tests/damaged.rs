//! Files that are no stores, or not whole: refused in words, and nothing is lost by it.

use std::fs;
use std::path::Path;

use super::*;
use crate::embedded::store::{self, BackupError, DiskError, Restored};

const FILE: &str = "store.redb";

/// What a directory has in it, without the lock and the reserve.
fn left(dir: &Path) -> Vec<String> {
    let names = fs::read_dir(dir).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap());
    let mut names: Vec<String> = names.filter(|name| name != "lock" && name != "reserve").collect();
    names.sort();
    names
}

/// A store with one Node in it, a backup of it beside, and how many bytes the backup has.
async fn stored(folder: &Folder) -> (std::path::PathBuf, std::path::PathBuf) {
    let (dir, copy) = (folder.path().join("state"), folder.path().join("copy"));
    let api = Api::open(&dir).unwrap();
    ask(&api, "POST", NODES, Some(node("n"))).await;
    api.backup(&copy).unwrap();
    (dir, copy)
}

async fn nodes(dir: &Path) -> Vec<String> {
    listed(&Api::open(dir).unwrap(), NODES).await.into_keys().collect()
}

#[tokio::test]
async fn what_is_no_backup_is_refused_and_the_store_stays() {
    let folder = Folder::new();
    let (dir, copy) = stored(&folder).await;
    let whole = fs::read(&copy).unwrap();
    let bad = folder.path().join("bad");
    let mut flipped = whole.clone();
    for byte in &mut flipped[8192..] {
        *byte = !*byte;
    }
    let cut = |length: usize| whole[..length].to_vec();
    for (bytes, why) in [
        (Vec::new(), "it is empty"),
        (b"something else entirely".to_vec(), "it begins as something else"),
        (cut(5), "it begins as something else"),
        (cut(100), "it is cut off: 100 bytes are left"),
        (cut(320), "it is cut off: 320 bytes are left of "),
        (cut(8192), "it is cut off: 8192 bytes are left of "),
        (cut(whole.len() - 1), "it is cut off: "),
        (flipped, ""),
    ] {
        fs::write(&bad, &bytes).unwrap();
        let refused = store::restore(&bad, &dir, false).unwrap_err();
        let BackupError::Disk(error) = &refused else { panic!("{refused:?}") };
        assert!(refused.to_string().contains("/bad"), "{refused}");
        match error {
            DiskError::Foreign { why: said, .. } => assert!(said.starts_with(why), "{said}"),
            other => assert!(why.is_empty(), "{other:?}"),
        }
        assert_eq!(left(&dir), [FILE], "{refused}");
    }
    assert_eq!(nodes(&dir).await, ["n"]);
}

#[tokio::test]
async fn a_store_without_a_word_in_it_is_no_backup() {
    let folder = Folder::new();
    let (dir, _) = stored(&folder).await;
    let empty = folder.path().join("empty");
    // redb's, and not berth's.
    drop(redb::Database::create(&empty).unwrap());
    let refused = store::restore(&empty, &dir, false).unwrap_err();
    assert!(matches!(refused, BackupError::Disk(DiskError::Foreign { .. })), "{refused:?}");
    // Berth's, and of no server.
    fs::remove_file(&empty).unwrap();
    let database = redb::Database::create(&empty).unwrap();
    let write = database.begin_write().unwrap();
    write.open_table(redb::TableDefinition::<&str, u64>::new("meta")).unwrap().insert("format", 1).unwrap();
    write.open_table(redb::TableDefinition::<&str, &[u8]>::new("objects")).unwrap();
    write.open_table(redb::TableDefinition::<u64, &[u8]>::new("log")).unwrap();
    write.commit().unwrap();
    drop(database);
    let refused = store::restore(&empty, &dir, true).unwrap_err();
    assert!(matches!(refused, BackupError::Empty { .. }), "{refused:?}");
    assert_eq!(nodes(&dir).await, ["n"]);
}

#[tokio::test]
async fn what_a_restore_replaces_is_kept() {
    let folder = Folder::new();
    let (dir, copy) = stored(&folder).await;
    let api = Api::open(&dir).unwrap();
    ask(&api, "POST", NODES, Some(node("later"))).await;
    drop(api);
    let kept = ["store.redb.before-restore", "store.redb.before-restore-2"].map(|name| dir.join(name));
    for kept in &kept {
        let restored = store::restore(&copy, &dir, false).unwrap();
        assert_eq!(restored.kept.as_ref(), Some(kept));
        assert_eq!(nodes(&dir).await, ["n"]);
    }
    // It is a store as any other: also the way back from a restore that was a mistake.
    store::restore(&kept[0], &dir, false).unwrap();
    assert_eq!(nodes(&dir).await, ["later", "n"]);
}

#[tokio::test]
async fn a_store_that_cannot_be_read_is_replaced_only_by_force() {
    let folder = Folder::new();
    let (dir, copy) = stored(&folder).await;
    let whole = fs::read(dir.join(FILE)).unwrap();
    for damaged in [&whole[..0], &whole[..8192]] {
        fs::write(dir.join(FILE), damaged).unwrap();
        let refused = Api::open(&dir).err().unwrap();
        assert!(matches!(refused, OpenError::Disk(DiskError::Foreign { .. })), "{refused:?}");
        let refused = store::restore(&copy, &dir, false).unwrap_err();
        assert!(matches!(refused, BackupError::Unreadable { .. }), "{refused:?}");
        assert_eq!(fs::read(dir.join(FILE)).unwrap(), damaged);
        let Restored { kept, .. } = store::restore(&copy, &dir, true).unwrap();
        assert_eq!(fs::read(kept.unwrap()).unwrap(), damaged);
        assert_eq!(nodes(&dir).await, ["n"]);
    }
}

/// What a kill in the middle of a first start, of a restore or of a backup leaves.
#[tokio::test]
async fn what_a_killed_process_left_is_in_nobodys_way() {
    let folder = Folder::new();
    let dir = folder.path();
    let names = ["store.redb.partial", "store.restoring", "backup.4711.0", "backup.4711.1.partial"];
    for name in names {
        fs::write(dir.join(name), "half of it").unwrap();
    }
    fs::write(dir.join("backup.mine"), "somebody's").unwrap();
    let api = Api::open(dir).unwrap();
    assert_eq!(ask(&api, "POST", NODES, Some(node("n"))).await.0, 201);
    assert_eq!(left(dir), ["backup.mine", FILE]);
    drop(api);
    assert_eq!(nodes(dir).await, ["n"]);
}

#[test]
fn a_new_store_and_a_backup_are_their_owners() {
    use std::os::unix::fs::PermissionsExt;
    let folder = Folder::new();
    drop(Api::open(folder.path()).unwrap());
    store::backup(folder.path(), &folder.path().join("offline")).unwrap();
    for name in [FILE, "offline"] {
        let mode = fs::metadata(folder.path().join(name)).unwrap().permissions().mode() & 0o777;
        assert_eq!(mode, 0o600, "{name}");
    }
}
