//! A host's writes to a pool's ledger: its own entries, and what follows from them.

use super::*;

fn entry(node: &str, uid: &str, sequence: u64) -> Value {
    json!({"node": node, "nodeUID": uid, "policy": "web", "capture": "a", "request": format!("id-{node}"),
        "sequence": sequence, "since": "2026-01-01T00:00:00Z", "kind": "dynamic"})
}

/// Ten addresses from 10.0.0.1, of which node02 holds 10.0.0.2 (offset 1) and node01 10.0.0.3 (offset 2).
fn pool() -> Value {
    json!({
        "apiVersion": "nmstate.io/v1", "kind": "NodeIPPool",
        "metadata": {"name": "traffic-1", "uid": "pool-1"},
        "spec": {"range": {"cidr": "10.0.0.0/24", "start": "10.0.0.1", "end": "10.0.0.10"}, "staticBand": "None",
            "reservations": [{"node": "node02", "ip": "10.0.0.9"}, {"node": "node01", "ip": "10.0.0.8"}]},
        "status": {
            "sequence": 7, "rebuiltFor": "pool-1",
            "allocations": {"10.0.0.2": entry("node02", "uid-2", 6), "10.0.0.3": entry(HOST, UID, 7)},
            "allocated-offsets": [1, 2], "capacity": 10, "allocated": 2, "available": 8,
            "conditions": [{"type": "Available", "status": "True"}],
        },
    })
}

/// The pool after node01 claimed this address, all that follows included.
fn claimed(ip: &str, offset: u64) -> Value {
    with(pool(), |pool| {
        let status = &mut pool["status"];
        status["sequence"] = 8.into();
        status["allocations"][ip] = entry(HOST, UID, 8);
        status["allocated-offsets"] = json!([1, 2, offset]);
        status["allocated"] = 3.into();
        status["available"] = 7.into();
    })
}

fn change(old: &Value, new: &Value) -> Result<(), String> {
    write(&host(), Verb::Patch, "nodeippools/status", Some(old), Some(new))
}

fn refused(new: &Value) -> String {
    change(&pool(), new).expect_err("refused")
}

#[test]
fn a_host_claims_keeps_declines_and_releases_its_own() {
    assert_eq!(change(&pool(), &claimed("10.0.0.5", 4)), Ok(()));
    assert_eq!(change(&pool(), &claimed("10.0.0.8", 7)), Ok(()), "reserved for it");
    assert_eq!(change(&pool(), &pool()), Ok(()), "nothing changed");
    let released = with(pool(), |pool| {
        let status = &mut pool["status"];
        status["sequence"] = 8.into();
        status["allocations"].as_object_mut().expect("entries").remove("10.0.0.3");
        status["allocated-offsets"] = json!([1]);
        status["allocated"] = 1.into();
        status["available"] = 9.into();
    });
    assert_eq!(change(&pool(), &released), Ok(()));
    // Rule 10: taken on the wire; quarantined and another chosen, in one write.
    let declined = with(claimed("10.0.0.5", 4), |pool| {
        let entry = &mut pool["status"]["allocations"]["10.0.0.3"];
        entry["state"] = "Quarantined".into();
        entry["until"] = "2026-01-01T00:05:00Z".into();
        entry["reason"] = "IPCollision".into();
    });
    assert_eq!(change(&pool(), &declined), Ok(()));
    // Rule 7: what a namesake held is re-keyed to this Node.
    let former = with(pool(), |pool| pool["status"]["allocations"]["10.0.0.3"]["nodeUID"] = "former".into());
    let rekeyed = with(pool(), |pool| pool["status"]["sequence"] = 8.into());
    assert_eq!(change(&former, &rekeyed), Ok(()));
}

#[test]
fn each_refusal_says_why() {
    type Change = fn(&mut Value);
    let own = "host node01 may claim 10.0.0.5 only for itself, nodeUID uid-1, not for node ";
    let table: Vec<(Change, String)> = vec![
        (
            |p| p["status"]["allocations"]["10.0.0.2"]["capture"] = "b".into(),
            "host node01 may not change 10.0.0.2 of node node02".to_owned(),
        ),
        (
            |p| p["status"]["allocations"]["10.0.0.2"] = entry(HOST, UID, 8),
            "host node01 may not change 10.0.0.2 of node node02".to_owned(),
        ),
        (
            |p| drop(p["status"]["allocations"].as_object_mut().expect("entries").remove("10.0.0.2")),
            "host node01 may not release 10.0.0.2 of node node02".to_owned(),
        ),
        (
            |p| p["status"]["allocations"]["10.0.0.5"] = entry("node02", "uid-2", 8),
            format!("{own}node02, nodeUID uid-2"),
        ),
        (
            |p| p["status"]["allocations"]["10.0.0.5"] = entry(HOST, "former", 8),
            format!("{own}node01, nodeUID former"),
        ),
        (
            |p| p["status"]["allocations"]["10.0.0.5"]["sequence"] = 9.into(),
            "status.allocations.10.0.0.5.sequence must not be above status.sequence 8".to_owned(),
        ),
        (
            |p| p["status"]["allocations"]["010.0.0.6"] = entry(HOST, UID, 8),
            "status.allocations: \"010.0.0.6\" is not an address in its canonical form".to_owned(),
        ),
        (
            |p| p["status"]["allocations"]["10.0.1.1"] = entry(HOST, UID, 8),
            "10.0.1.1 is in no range of the pool".to_owned(),
        ),
        (
            |p| p["status"]["allocations"]["10.0.0.9"] = entry(HOST, UID, 8),
            "10.0.0.9 is reserved for node node02".to_owned(),
        ),
        (
            |p| p["status"]["sequence"] = 7.into(),
            "status.sequence must be 8, one more than it was".to_owned(),
        ),
        (
            |p| p["status"]["sequence"] = 9.into(),
            "status.sequence must be 8, one more than it was".to_owned(),
        ),
        (
            |p| p["status"]["rebuiltFor"] = "other".into(),
            "host node01 may not change status.rebuiltFor: only a controller does".to_owned(),
        ),
        (
            |p| p["status"]["hold"] = json!({"until": "2026-01-01T00:00:00Z"}),
            "host node01 may not change status.hold: only a controller does".to_owned(),
        ),
        (
            |p| p["status"]["conditions"] = json!([]),
            "host node01 may not change status.conditions: only a controller does".to_owned(),
        ),
        (
            |p| p["status"]["capacity"] = 9.into(),
            "host node01 may not change status.capacity: only a controller does".to_owned(),
        ),
        (
            |p| p["status"]["allocated-offsets"] = json!([1, 2]),
            "status.allocated-offsets must be the offsets of status.allocations".to_owned(),
        ),
        (
            |p| p["status"]["allocated"] = 2.into(),
            "status.allocated must be 3, the number of claims in status.allocations".to_owned(),
        ),
        (
            |p| p["status"]["available"] = 11.into(),
            "status.available must be between 0 and status.capacity".to_owned(),
        ),
        (
            |p| p["status"]["available"] = (-1).into(),
            "status.available must be between 0 and status.capacity".to_owned(),
        ),
    ];
    for (change, why) in table {
        assert_eq!(refused(&with(claimed("10.0.0.5", 4), change)), why);
    }
}

#[test]
fn what_nobody_gets_a_host_does_not_take() {
    for (field, value, why) in [
        ("exclude", json!(["10.0.0.5"]), "10.0.0.5 is given to nobody: range default excludes it"),
        ("exclude", json!(["10.0.0.4/30"]), "10.0.0.5 is given to nobody: range default excludes it"),
        ("gateway", json!("10.0.0.5"), "10.0.0.5 is the gateway of range default"),
    ] {
        let change_spec = |pool: &mut Value| pool["spec"]["range"][field] = value.clone();
        let (old, new) = (with(pool(), change_spec), with(claimed("10.0.0.5", 4), change_spec));
        assert_eq!(change(&old, &new), Err(why.to_owned()), "{value}");
        // What it has it may give back, also where that was excluded since.
        let kept = with(old.clone(), |pool| pool["status"]["sequence"] = 8.into());
        assert_eq!(change(&old, &kept), Ok(()), "{value}");
    }
}

#[test]
fn a_pool_that_gives_nothing_gives_a_host_nothing_either() {
    type Stop = fn(&mut Value);
    let table: [(Stop, &str); 5] = [
        (
            |p| p["metadata"]["annotations"] = json!({"nmstate.io/hold": ""}),
            "the pool gives nothing: it is on hold",
        ),
        (
            |p| p["metadata"]["annotations"] = json!({"nmstate.io/reset-ippool": "true"}),
            "the pool gives nothing: its ledger is to be rebuilt",
        ),
        (
            |p| p["status"]["rebuiltFor"] = "another".into(),
            "the pool gives nothing: its ledger is not rebuilt",
        ),
        (
            |p| p["status"]["hold"] = json!({"until": "2026-01-01T00:00:00Z"}),
            "the pool gives nothing: it is on hold",
        ),
        (
            |p| p["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z".into(),
            "the pool gives nothing: it is being deleted",
        ),
    ];
    for (stops, why) in table {
        let (old, new) = (with(pool(), stops), with(claimed("10.0.0.5", 4), stops));
        assert_eq!(change(&old, &new), Err(why.to_owned()));
    }
}
