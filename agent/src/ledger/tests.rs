use policy::claim::{EntryKind, EntryState, Hold, Quarantine, QuarantineReason, Stranger};
use policy::pool::PoolSpec;
use serde_json::json;

use super::claims::NotGiving;
use super::*;

fn file(spec: &Value, status: &Value) -> FileLedger {
    let manifest = json!({"metadata": {"name": "t", "uid": "u"}, "spec": spec, "status": status});
    let pool = PoolSpec::from_manifest(&manifest).and_then(|spec| Pool::new(&spec)).expect("a pool");
    read(&pool, &manifest).expect("a ledger")
}

#[test]
fn a_file_is_read_as_the_api_is() {
    let entry = json!({"node": "n", "nodeUID": "7", "policy": "p", "capture": "c", "request": "r", "sequence": 3,
        "since": "1970-01-01T00:00:05Z", "kind": "static", "state": "Quarantined", "until": "1970-01-01T00:01:00Z",
        "reason": "IPCollision", "mac": "02:01", "interface": "eth1", "witness": "s"});
    let status =
        json!({"sequence": 4, "hold": {"until": "2026-01-02T03:04:05Z"}, "allocations": {"10.0.0.1": entry}});
    let ledger = file(&json!({"range": {"cidr": "10.0.0.0/24"}}), &status).ledger;
    let quarantine = Quarantine {
        until: 60,
        reason: QuarantineReason::Collision {
            by: Stranger { mac: "02:01".to_owned(), interface: "eth1".to_owned() },
        },
        witness: Some("s".into()),
    };
    let expected = Entry {
        node: "n".into(),
        node_uid: "uid:7".into(),
        policy: "p".into(),
        capture: "c".into(),
        request: Some("n/file:r".into()),
        sequence: 3,
        since: 5,
        kind: EntryKind::Static,
        state: EntryState::Quarantined(quarantine),
    };
    assert_eq!(ledger.allocations.into_values().collect::<Vec<_>>(), [expected]);
    assert_eq!((ledger.sequence, ledger.hold), (4, Some(Hold { until: 1_767_323_045 })));
}

#[test]
fn a_hold_says_who_began_it() {
    let spec = json!({"range": {"cidr": "10.0.0.0/24"}});
    let begun = file(&spec, &json!({"hold": {"until": "2026-01-02T03:04:05Z"}})).ledger;
    assert_eq!(
        NotGiving::of(&begun).to_string(),
        "it is on hold until 2026-01-02T03:04:05Z, for its status may be from the past"
    );
    let asked = Ledger { hold: Some(Hold { until: records::pool::ENDLESS }), ..begun };
    assert_eq!(NotGiving::of(&asked).to_string(), "it is on hold, by its annotation nmstate.io/hold");
}

#[test]
fn offsets_of_a_range_that_became_one_of_several_are_of_the_past() {
    let spec =
        json!({"ranges": [{"name": "a", "cidr": "10.0.0.0/24"}, {"name": "b", "cidr": "10.1.0.0/24"}]});
    let status = json!({"allocations": {"10.0.0.8": {"node": "n"}}, "allocated-offsets": [7]});
    let read = file(&spec, &status);
    assert_eq!(read.warnings, []);
    assert!(read.ledger.offsets_agree && read.held.len() == 1);
}
