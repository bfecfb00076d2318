//! Checkpoints: what is found again, what is discarded, and who is kept out.

use std::fs;
use std::path::PathBuf;

use policy::state::{IfName, Link, LinkKind, Observed};
use serde_json::json;

use super::{CheckpointError, Found, Peek, Store, peek};
use crate::netns::Identity;

/// A folder of its own per test, gone with it.
struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Self {
        let path = std::env::temp_dir().join(format!("berth-checkpoint-{name}-{}", std::process::id()));
        fs::create_dir_all(&path).unwrap();
        Self(path)
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        fs::remove_dir_all(&self.0).ok();
    }
}

fn identity(boot: &str, namespace: u64) -> Identity {
    Identity { boot: boot.to_owned(), namespace }
}

fn before() -> Observed {
    let mut before = Observed::default();
    before.insert(Link::new(IfName::new("eth0").unwrap(), LinkKind::Ethernet));
    before
}

#[test]
fn what_was_written_is_found_until_it_is_removed() {
    let folder = Folder::new("found");
    let store = Store::lock_folder(&folder.0, identity("boot", 7)).unwrap();
    assert_eq!(store.find().unwrap(), Found::Nothing);
    store.write(&before(), &json!({"interfaces": []})).unwrap();
    drop(store);
    let store = Store::lock_folder(&folder.0, identity("boot", 7)).unwrap();
    let Found::Open(found) = store.find().unwrap() else { panic!("open") };
    assert_eq!((found.before, found.desired), (before(), json!({"interfaces": []})));
    store.remove().unwrap();
    store.remove().unwrap();
    assert_eq!(store.find().unwrap(), Found::Nothing);
}

#[test]
fn of_another_boot_it_says_nothing() {
    let folder = Folder::new("boot");
    Store::lock_folder(&folder.0, identity("old", 7)).unwrap().write(&before(), &json!({})).unwrap();
    let found = Store::lock_folder(&folder.0, identity("new", 7)).unwrap().find().unwrap();
    assert_eq!(found, Found::Foreign { why: "it is from before the last boot" });
}

/// A state directory that was copied, or a number that is given again.
#[test]
fn of_another_namespace_it_says_nothing() {
    let folder = Folder::new("namespace");
    Store::lock_folder(&folder.0, identity("boot", 7)).unwrap().write(&before(), &json!({})).unwrap();
    fs::rename(folder.0.join("netns-7"), folder.0.join("netns-8")).unwrap();
    let found = Store::lock_folder(&folder.0, identity("boot", 8)).unwrap().find().unwrap();
    assert_eq!(found, Found::Foreign { why: "it is of another network namespace" });
}

/// An upgrade and then a boot: what another version left says nothing about this boot.
#[test]
fn of_another_boot_it_says_nothing_whatever_its_form() {
    let folder = Folder::new("form-of-another-boot");
    let store = Store::lock_folder(&folder.0, identity("new", 7)).unwrap();
    fs::write(store.path(), r#"{"form": 2, "identity": {"boot": "old", "namespace": 7}, "more": 1}"#)
        .unwrap();
    assert_eq!(store.find().unwrap(), Found::Foreign { why: "it is from before the last boot" });
    fs::write(store.path(), r#"{"form": 2, "identity": {"boot": "new", "namespace": 7}}"#).unwrap();
    assert!(matches!(store.find(), Err(CheckpointError::OtherForm { .. })));
}

#[test]
fn a_damaged_one_is_neither_used_nor_lost() {
    let folder = Folder::new("damaged");
    let store = Store::lock_folder(&folder.0, identity("boot", 7)).unwrap();
    store.write(&before(), &json!({})).unwrap();
    let text = fs::read_to_string(store.path()).unwrap();
    fs::write(store.path(), &text[..text.len() / 2]).unwrap();
    assert!(matches!(store.find(), Err(CheckpointError::Damaged { .. })));
    assert!(store.path().exists());
    let path = store.path().to_owned();
    assert_eq!(peek(&folder.0, &identity("boot", 7)), Peek::Damaged { path });
}

#[test]
fn two_do_not_work_on_one_namespace_at_once() {
    let folder = Folder::new("lock");
    let first = Store::lock_folder(&folder.0, identity("boot", 7)).unwrap();
    assert!(matches!(Store::lock_folder(&folder.0, identity("boot", 7)), Err(CheckpointError::Busy { .. })));
    Store::lock_folder(&folder.0, identity("boot", 8)).unwrap();
    drop(first);
    Store::lock_folder(&folder.0, identity("boot", 7)).unwrap();
}

/// What can't be undone whole is out of the way and still there, also twice in a second.
#[test]
fn set_aside_it_is_open_no_more_and_not_lost() {
    let folder = Folder::new("aside");
    let store = Store::lock_folder(&folder.0, identity("boot", 7)).unwrap();
    let mut kept: Vec<PathBuf> = Vec::new();
    for _ in 0..3 {
        store.write(&before(), &json!({"interfaces": []})).unwrap();
        kept.push(store.set_aside().unwrap());
        assert_eq!(store.find().unwrap(), Found::Nothing);
    }
    kept.dedup();
    assert!(kept.len() == 3 && kept.iter().all(|path| path.exists()), "{kept:?}");
}

/// Who only looks is told what there is, and keeps nobody out.
#[test]
fn a_peek_tells_what_is_cut_off_from_what_is_under_way() {
    let folder = Folder::new("peek");
    let (ours, rebooted) = (identity("boot", 7), identity("other", 7));
    assert_eq!(peek(&folder.0, &ours), Peek::Nothing);
    let store = Store::lock_folder(&folder.0, ours.clone()).unwrap();
    assert_eq!(peek(&folder.0, &ours), Peek::Nothing, "nothing is written yet");
    store.write(&before(), &json!({})).unwrap();
    assert_eq!(peek(&folder.0, &ours), Peek::UnderWay);
    assert_eq!(peek(&folder.0, &rebooted), Peek::Nothing);
    drop(store);
    assert_eq!(peek(&folder.0, &ours), Peek::CutOff);
    let store = Store::lock_folder(&folder.0, ours.clone()).unwrap();
    store.remove().unwrap();
    assert_eq!(peek(&folder.0, &ours), Peek::Nothing);
}

/// Folders of namespaces in which nothing is under way go; one that is locked or holds something doesn't.
#[test]
fn folders_that_nobody_needs_are_swept_away() {
    let folder = Folder::new("sweep");
    let there = |number: u64| folder.0.join(format!("netns-{number}")).exists();
    drop(Store::lock_folder(&folder.0, identity("boot", 1)).unwrap());
    let locked = Store::lock_folder(&folder.0, identity("boot", 2)).unwrap();
    assert!(!there(1) && there(2));
    Store::lock_folder(&folder.0, identity("boot", 3)).unwrap().write(&before(), &json!({})).unwrap();
    let aside = Store::lock_folder(&folder.0, identity("boot", 4)).unwrap();
    aside.write(&before(), &json!({})).unwrap();
    aside.set_aside().unwrap();
    drop(aside);
    fs::create_dir(folder.0.join("somebody-else")).unwrap();
    let own = Store::lock_folder(&folder.0, identity("boot", 5)).unwrap();
    assert!([2, 3, 4, 5].into_iter().all(there));
    assert!(folder.0.join("somebody-else").exists());
    drop(locked);
    drop(own);
    Store::lock_folder(&folder.0, identity("boot", 3)).unwrap().remove().unwrap();
    assert!(!there(2) && !there(5) && there(3) && there(4));
}

/// Many at once, each with a namespace of its own and all of them sweeping: none is ever kept out of its own, and no two
/// have the same lock.
#[test]
fn who_sweeps_takes_nobodys_lock_away() {
    let folder = Folder::new("sweepers");
    let inside = std::sync::atomic::AtomicUsize::new(0);
    let work = |number: u64| {
        for _ in 0..200 {
            match Store::lock_folder(&folder.0, identity("boot", number % 2)) {
                Ok(store) if number < 2 => {
                    assert_eq!(inside.fetch_add(1, std::sync::atomic::Ordering::SeqCst), 0, "two have it");
                    inside.fetch_sub(1, std::sync::atomic::Ordering::SeqCst);
                    drop(store);
                }
                Ok(_) | Err(CheckpointError::Busy { .. }) => {}
                Err(error) => panic!("{error:?}"),
            }
        }
    };
    // Two for one namespace, two for the other, which sweeps the first one's folder.
    let work = &work;
    std::thread::scope(|scope| {
        for number in [0, 0, 3, 5] {
            scope.spawn(move || work(number));
        }
    });
}
