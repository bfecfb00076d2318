use std::path::PathBuf;

use super::{LockError, NmstateLock};

fn folder(name: &str) -> PathBuf {
    let path = std::env::temp_dir().join(format!("berth-lock-{name}-{}", std::process::id()));
    std::fs::remove_dir_all(&path).ok();
    path
}

#[test]
fn who_holds_nmstates_lock_is_named() {
    let folder = folder("named");
    let path = folder.join("k8s_nmstate/handler_lock");
    let held = NmstateLock::take(&path).unwrap();
    assert!(held.is_some(), "its directory is made");
    let Err(LockError::Nmstate { holder, .. }) = NmstateLock::take(&path) else { panic!("both have it") };
    let own = format!("process {}: {}", std::process::id(), std::env::args().next().unwrap());
    assert!(holder.starts_with(&own), "{holder}");
    drop(held);
    assert!(NmstateLock::take(&path).unwrap().is_some());
    std::fs::remove_dir_all(&folder).unwrap();
}

#[test]
fn where_there_can_be_no_such_file_there_is_no_lock() {
    assert!(NmstateLock::take("/proc/no/such/lock".as_ref()).unwrap().is_none());
}
