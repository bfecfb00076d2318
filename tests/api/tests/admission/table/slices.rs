//! A host's slices: its own, and such as their pool would cut; and that nobody takes one away from who holds addresses in it.

use api_tests::server::paths::SLICES;
use crds::names::annotation::CONFIRM_RELEASE;
use serde_json::{Value, json};

use super::objects::owned_by;
use super::{By, FORMER, HOST, Uids, change, passes, refused, slice, with};
use crate::row::{Act, Change, Row, Who};

pub(super) fn rows(uids: &Uids) -> Vec<Row> {
    let mut rows = own(uids);
    rows.extend(readable(uids));
    rows.extend(taken_away(uids));
    rows
}

fn own(uids: &Uids) -> Vec<Row> {
    let own = || slice(HOST, &uids.node01, "10.0.0.0/28");
    let theirs = || super::theirs(SLICES, uids);
    let former = || slice(HOST, FORMER, "10.0.0.0/28");
    let claim = || change(|slice| slice["status"] = json!({"sequence": 1}));
    let keep = || change(|slice| slice["metadata"]["finalizers"] = json!(["nmstate.io/addresses"]));
    let of_other = "host node01 may not write a slice of node node02";
    vec![
        passes("claims in its slice", SLICES, Some(own()), Act::PatchStatus(claim())),
        passes("gives its slice back", SLICES, Some(own()), Act::Delete),
        passes("keeps its slice", SLICES, Some(own()), Act::Patch(keep())),
        refused("makes another's slice", SLICES, None, Act::Create(theirs()), of_other),
        refused("claims in another's slice", SLICES, Some(theirs()), Act::PatchStatus(claim()), of_other),
        refused("keeps another's slice", SLICES, Some(theirs()), Act::Patch(keep()), of_other),
        refused("replaces another's ledger", SLICES, Some(theirs()), Act::PutStatus(claim()), of_other)
            .by(By::RightsAndAdmission),
        refused("gives another's slice back", SLICES, Some(theirs()), Act::Delete, of_other),
        refused(
            "claims in a slice of a former Node",
            SLICES,
            Some(former()),
            Act::PatchStatus(claim()),
            format!("spec.nodeUID must be {}, the UID of Node {HOST}", uids.node01),
        ),
        passes(
            "holds an address of its slice",
            SLICES,
            Some(own()),
            Act::PatchStatus(holds("10.0.0.5", HOST, &uids.node01)),
        ),
        refused(
            "holds an address beyond its slice",
            SLICES,
            Some(own()),
            Act::PatchStatus(holds("10.0.0.16", HOST, &uids.node01)),
            "10.0.0.16 is not an address of this slice, 10.0.0.0/28",
        ),
        refused(
            "gives an address of its slice away",
            SLICES,
            Some(own()),
            Act::PatchStatus(holds("10.0.0.5", "node02", &uids.node02)),
            format!(
                "10.0.0.5 is of Node node02 with UID {}: in its slice a host holds addresses for itself alone",
                uids.node02
            ),
        ),
        refused(
            "gives what it holds away",
            SLICES,
            Some(held(HOST, &uids.node01)),
            Act::PatchStatus(change(|slice| {
                slice["status"]["allocations"]["10.0.0.4"]["nodeUID"] = FORMER.into();
            })),
            format!(
                "10.0.0.4 is of Node {HOST} with UID {FORMER}: in its slice a host holds addresses for itself alone"
            ),
        ),
    ]
}

/// A slice that nobody can read is never tended, and one that another keeps never goes.
fn readable(uids: &Uids) -> Vec<Row> {
    const ENCODING: &str = "nmstate.io/ledger-encoding";
    const VERSION: &str = "nmstate.io/schema-version";
    let own = || slice(HOST, &uids.node01, "10.0.0.0/28");
    let keep = || finalizers(json!(["nmstate.io/addresses", "example.com/other"]));
    let kept = || with(own(), |slice| keep()(slice));
    let says = |annotation: &'static str, value: &'static str| {
        change(move |slice| slice["metadata"]["annotations"][annotation] = value.into())
    };
    let said = |annotation, value| with(own(), |slice| says(annotation, value)(slice));
    let first = json!({"ip": "10.0.0.7", "policy": "web", "capture": "a", "request": "id", "sequence": 1,
        "since": "1969-12-31T23:59:59Z"});
    let early = with(said(ENCODING, "first"), move |slice| slice["spec"]["first"] = first);
    let unkind = {
        let mut entry = entry(HOST, &uids.node01);
        entry.as_object_mut().expect("an entry").shift_remove("kind");
        change(move |slice| slice["status"] = json!({"sequence": 1, "allocations": {"10.0.0.5": entry}}))
    };
    let claim = || change(|slice| slice["status"] = json!({"sequence": 1}));
    let other =
        "host node01 may not put the finalizer example.com/other on its slice: only nmstate.io/addresses";
    let encoding = "host node01 may set nmstate.io/ledger-encoding only to first";
    let version = "host node01 may set nmstate.io/schema-version only to 1";
    let passes = |name, old, act| passes(name, SLICES, Some(old), act);
    let changes = |name, old, to, told: &str| refused(name, SLICES, Some(old), Act::Patch(to), told);
    let makes = |name, slice, told: &str| refused(name, SLICES, None, Act::Create(slice), told);
    vec![
        passes("claims in a slice that another keeps", kept(), Act::PatchStatus(claim())),
        passes("claims in a slice of a later version", said(VERSION, "9"), Act::PatchStatus(claim())),
        passes(
            "keeps a slice of a later version",
            said(VERSION, "9"),
            Act::Patch(finalizers(json!(["nmstate.io/addresses"]))),
        ),
        passes("says how its slice is made", own(), Act::Patch(says(ENCODING, "first"))),
        makes("makes a slice that another keeps", kept(), other),
        makes("makes a slice in an encoding of its own", said(ENCODING, "later"), encoding),
        makes("makes a slice in no encoding", said(ENCODING, ""), encoding),
        makes("makes a slice of a later version", said(VERSION, "9"), version),
        makes("makes a slice since before time began", early, "spec.first.since").by(By::Schema),
        changes("has another keep its slice", own(), keep(), other),
        changes(
            "has a pool own its slice",
            own(),
            owned_by("NodeIPPool"),
            "host node01 may not give its slice an owner: NodeIPPool traffic-1",
        ),
        changes("calls its encoding another", said(ENCODING, "first"), says(ENCODING, "later"), encoding),
        changes("calls its slice a later version's", own(), says(VERSION, "9"), version),
        refused(
            "holds an address without a kind",
            SLICES,
            Some(own()),
            Act::PatchStatus(unkind),
            "status.allocations.10.0.0.5.kind is missing",
        ),
    ]
}

/// One address of a slice becomes somebody's.
fn holds(ip: &'static str, node: &'static str, uid: &str) -> Change {
    let entry = entry(node, uid);
    Box::new(move |slice| slice["status"] = json!({"sequence": 1, "allocations": {ip: entry}}))
}

fn entry(node: &str, uid: &str) -> Value {
    json!({"node": node, "nodeUID": uid, "policy": "web", "capture": "a", "request": "id",
        "sequence": 1, "since": "2026-01-01T00:00:00Z", "kind": "dynamic"})
}

/// With two addresses in it, and kept for that.
pub(super) fn held(node: &str, uid: &str) -> Value {
    let entry = entry(node, uid);
    with(slice(node, uid, "10.0.0.0/28"), |slice| {
        slice["metadata"]["finalizers"] = json!(["nmstate.io/addresses", "example.com/other"]);
        slice["status"] = json!({"sequence": 1, "allocations": {"10.0.0.5": entry, "10.0.0.4": entry}});
    })
}

/// Who deletes a slice deletes what keeps others from its addresses (R110: a finalizer may be taken off by hand, and then it is
/// meant).
fn taken_away(uids: &Uids) -> Vec<Row> {
    let theirs = || held("node02", &uids.node02);
    let one = || {
        with(theirs(), |slice| {
            slice["status"]["allocations"].as_object_mut().and_then(|all| all.shift_remove("10.0.0.5"));
        })
    };
    let empty = || with(theirs(), |slice| slice["status"] = json!({"sequence": 1}));
    // Its ledger is not written yet.
    let made = || {
        with(theirs(), |slice| {
            slice["spec"]["first"] = json!({"ip": "10.0.0.7", "policy": "web", "capture": "a", "request": "id",
                "sequence": 1, "since": "2026-01-01T00:00:00Z"});
            drop(slice.as_object_mut().and_then(|slice| slice.shift_remove("status")));
        })
    };
    let unkept = || {
        with(theirs(), |slice| drop(slice["metadata"].as_object_mut().and_then(|m| m.remove("finalizers"))))
    };
    let going =
        || with(theirs(), |slice| slice["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z".into());
    let confirmed = |slice: Value, count: &'static str| {
        with(slice, |slice| slice["metadata"]["annotations"] = json!({CONFIRM_RELEASE: count}))
    };
    let free = || finalizers(json!(["example.com/other"]));
    let told = |held: &str, count: u8| {
        format!(
            "node node02 holds {held} in this slice. If its host is off for good, delete Node node02: the slice goes after \
             the quarantine. If another node may be given what this one uses, annotate the slice with \
             nmstate.io/confirm-release: \"{count}\""
        )
    };
    let two = || told("10.0.0.4 and 1 more", 2);
    let person = |row: Row| Row { who: Who::Person, ..row };
    let confirms = |slice: &mut Value| {
        slice["metadata"]["finalizers"] = json!([]);
        slice["metadata"]["annotations"] = json!({CONFIRM_RELEASE: "2"});
    };
    let labelled = change(|slice| slice["metadata"]["labels"] = json!({"x": "y"}));
    let rows = vec![
        refused("a person frees a slice in use", SLICES, Some(theirs()), Act::Patch(free()), two()),
        refused("a person frees a slice in use that goes", SLICES, Some(going()), Act::Patch(free()), two()),
        refused(
            "a person frees a slice with one address",
            SLICES,
            Some(one()),
            Act::Patch(free()),
            told("10.0.0.4", 1),
        ),
        refused(
            "a person frees a slice that was made with an address",
            SLICES,
            Some(made()),
            Act::Patch(free()),
            told("10.0.0.7", 1),
        ),
        refused(
            "a person confirms another number",
            SLICES,
            Some(confirmed(theirs(), "1")),
            Act::Patch(free()),
            two(),
        ),
        refused("a person deletes a slice that nothing keeps", SLICES, Some(unkept()), Act::Delete, two()),
        passes("a person says that it is meant", SLICES, Some(confirmed(theirs(), "2")), Act::Patch(free())),
        passes("a person says so with it", SLICES, Some(theirs()), Act::Patch(change(confirms))),
        passes("a person deletes what is meant to go", SLICES, Some(confirmed(unkept(), "2")), Act::Delete),
        passes("a person has a slice go when it is empty", SLICES, Some(theirs()), Act::Delete),
        passes("a person labels a slice in use", SLICES, Some(theirs()), Act::Patch(labelled)),
        passes(
            "a person takes off what others keep it by",
            SLICES,
            Some(theirs()),
            Act::Patch(finalizers(json!(["nmstate.io/addresses"]))),
        ),
        passes("a person frees an empty slice", SLICES, Some(empty()), Act::Patch(free())),
    ];
    let of_other = "host node01 may not write a slice of node node02";
    let mut rows: Vec<Row> = rows.into_iter().map(person).collect();
    rows.push(refused("frees another's slice in use", SLICES, Some(theirs()), Act::Patch(free()), of_other));
    rows.push(passes("frees its slice", SLICES, Some(held(HOST, &uids.node01)), Act::Patch(free())));
    let frees = passes("a controller frees a slice", SLICES, Some(theirs()), Act::Patch(free()));
    rows.push(Row { who: Who::Controller, ..frees });
    rows
}

fn finalizers(list: Value) -> Change {
    change(move |slice| slice["metadata"]["finalizers"] = list.clone())
}
