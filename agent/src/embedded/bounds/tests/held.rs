//! A slice in use: what an administrator is told, by every way in which it would go. `tests/api` asks a cluster the same.

use super::*;

fn held(count: usize) -> Value {
    let entries: serde_json::Map<String, Value> =
        (1..=count).map(|last| (format!("10.0.0.{last}"), json!({"node": HOST}))).collect();
    let mut slice = slice(HOST, UID);
    slice["metadata"]["finalizers"] = json!(["nmstate.io/addresses"]);
    slice["status"] = json!({"allocations": entries});
    slice
}

fn unkept(mut slice: Value) -> Value {
    slice["metadata"]["finalizers"] = json!([]);
    slice
}

fn confirmed(mut slice: Value, count: &str) -> Value {
    slice["metadata"]["annotations"] = json!({"nmstate.io/confirm-release": count});
    slice
}

#[test]
fn nobody_takes_away_a_slice_in_use() {
    let all = Caller::Everything;
    let told = |held: &str, count: usize| {
        Err(format!(
            "node node01 holds {held} in this slice. If its host is off for good, delete Node node01: the slice goes after \
             the quarantine. If another node may be given what this one uses, annotate the slice with \
             nmstate.io/confirm-release: \"{count}\""
        ))
    };
    let patch = |old: &Value, new: &Value| write(&all, Verb::Patch, "nodeipslices", Some(old), Some(new));
    let goes = |verb: Verb, old: &Value| write(&all, verb, "nodeipslices", Some(old), None);
    assert_eq!(patch(&held(1), &unkept(held(1))), told("10.0.0.1", 1));
    assert_eq!(patch(&held(3), &unkept(held(3))), told("10.0.0.1 and 2 more", 3));
    assert_eq!(goes(Verb::Delete, &unkept(held(2))), told("10.0.0.1 and 1 more", 2));
    assert_eq!(goes(Verb::DeleteCollection, &unkept(held(2))), told("10.0.0.1 and 1 more", 2));
    // What was confirmed of another number was not about this.
    assert_eq!(patch(&held(2), &confirmed(unkept(held(2)), "1")), told("10.0.0.1 and 1 more", 2));
    // The word must be there when it goes, not have been there once.
    assert_eq!(patch(&confirmed(held(1), "1"), &unkept(held(1))), told("10.0.0.1", 1));
    assert_eq!(patch(&held(2), &confirmed(unkept(held(2)), "2")), Ok(()));
    assert_eq!(goes(Verb::Delete, &confirmed(unkept(held(2)), "2")), Ok(()));
}

/// What a slice was made with is held until its ledger says otherwise.
#[test]
fn nobody_takes_away_a_slice_that_was_made_with_an_address() {
    let all = Caller::Everything;
    let lets_go =
        |slice: &Value| write(&all, Verb::Patch, "nodeipslices", Some(slice), Some(&unkept(slice.clone())));
    let mut made = held(0);
    made["spec"]["first"] = json!({"ip": "10.0.0.7"});
    let refused = lets_go(&made).expect_err("it is in use");
    assert!(refused.starts_with("node node01 holds 10.0.0.7 in this slice."), "{refused}");
    made["status"]["rebuiltFor"] = json!("u");
    assert_eq!(lets_go(&made), Ok(()));
}

#[test]
fn what_does_not_let_go_of_addresses_passes() {
    let all = Caller::Everything;
    let patch = |old: &Value, new: &Value| write(&all, Verb::Patch, "nodeipslices", Some(old), Some(new));
    assert_eq!(patch(&held(0), &unkept(held(0))), Ok(()));
    assert_eq!(patch(&slice(HOST, UID), &held(2)), Ok(()));
    assert_eq!(patch(&unkept(held(2)), &unkept(held(2))), Ok(()));
    // Its finalizer keeps it until its node has let go.
    assert_eq!(write(&all, Verb::Delete, "nodeipslices", Some(&held(2)), None), Ok(()));
    let pool = json!({"metadata": {"name": "x"}, "status": {"allocations": {"10.0.0.1": {}}}});
    assert_eq!(write(&all, Verb::Delete, "nodeippools", Some(&pool), None), Ok(()));
}
