//! Values that can't be read, or have no place: each is named with its path.

use std::collections::BTreeMap;

use crds::{NodeIPPool, NodeNetworkConfigurationEnactment, NodeNetworkState};
use policy::claim::*;
use serde_json::{Value, json};

use super::{held, pool};
use crate::records::{self, RecordErrors};

fn said<T: std::fmt::Debug>(read: Result<T, RecordErrors>) -> String {
    read.expect_err("it is broken").to_string()
}

fn of_pool(change: &Value) -> String {
    let (object, meant) = pool("t", &json!({"range": {"cidr": "10.0.0.0/24"}}));
    let mut object = serde_json::to_value(object).expect("JSON");
    merge(&mut object, change);
    let object: NodeIPPool = serde_json::from_value(object).expect("the type");
    said(records::pool::read(&object, &meant))
}

fn merge(into: &mut Value, change: &Value) {
    match (into, change) {
        (Value::Object(into), Value::Object(change)) => {
            for (key, value) in change {
                merge(into.entry(key).or_insert(Value::Null), value);
            }
        }
        (into, change) => *into = change.clone(),
    }
}

fn entry(fields: &Value) -> Value {
    let mut entry = json!({"node": "n"});
    merge(&mut entry, fields);
    json!({"status": {"allocations": {"10.0.0.3": entry}}})
}

#[test]
fn of_a_ledger() {
    let until = "2026-01-02T03:04:05Z";
    let table = [
        (json!({"metadata": {"uid": null}}), "metadata.uid: is missing"),
        (json!({"status": {"sequence": -1}}), "status.sequence: -1 is less than 0"),
        (
            json!({"status": {"hold": {"until": "1969-12-31T23:59:59Z"}}}),
            "status.hold.until: 1969-12-31T23:59:59Z is before 1970",
        ),
        (
            json!({"status": {"allocations": {"node01": {"node": "n"}}}}),
            "status.allocations: \"node01\" is not an IP address",
        ),
        (
            json!({"status": {"allocations": {"2001:db8::1": {"node": "n"}, "2001:DB8::1": {"node": "n"}}}}),
            "status.allocations: 2001:db8::1 is listed twice, in two spellings",
        ),
        (entry(&json!({"sequence": -2})), "status.allocations.10.0.0.3.sequence: -2 is less than 0"),
        (entry(&json!({"request": ""})), "status.allocations.10.0.0.3.request: is missing"),
        (
            entry(&json!({"until": until})),
            "status.allocations.10.0.0.3.until: has no meaning without state: Quarantined",
        ),
        (
            entry(&json!({"mac": "02"})),
            "status.allocations.10.0.0.3.mac: has no meaning without state: Quarantined",
        ),
        (
            entry(&json!({"state": "Quarantined", "reason": "Orphan"})),
            "status.allocations.10.0.0.3.until: is missing",
        ),
        (
            entry(&json!({"state": "Quarantined", "until": until})),
            "status.allocations.10.0.0.3.reason: is missing",
        ),
        (
            entry(&json!({"state": "Quarantined", "until": until, "reason": "Orphan", "mac": "02"})),
            "status.allocations.10.0.0.3.mac: has no meaning without reason: IPCollision",
        ),
        (
            entry(&json!({"state": "Quarantined", "until": until, "reason": "Orphan", "interface": "eth1"})),
            "status.allocations.10.0.0.3.interface: has no meaning without reason: IPCollision",
        ),
    ];
    for (change, expected) in table {
        assert_eq!(of_pool(&change), expected);
    }
    // R59: never read as if it were empty
    let later = json!({"metadata": {"annotations": {"nmstate.io/schema-version": "2"}}});
    assert!(of_pool(&later).starts_with("nmstate.io/schema-version is \"2\""));
    let twofold = json!({"status": {"sequence": -1, "allocations": {"x": {"node": "n"}}}});
    assert_eq!(of_pool(&twofold).lines().count(), 2, "all at once");
}

#[test]
fn what_has_no_place_is_not_written() {
    let held = held();
    let write = |ip: &str, entry: Entry| {
        let allocations = BTreeMap::from([(ip.parse().expect("an address"), entry)]);
        said(records::pool::slice_status(&Ledger { allocations, ..Ledger::new("p".into()) }))
    };
    let long = Entry { since: u64::MAX, ..held.clone() };
    assert_eq!(
        write("10.0.0.3", long),
        "status.allocations.10.0.0.3.since: 18446744073709551615 s after 1970 is past the year 2999"
    );
    let high = Entry { sequence: u64::MAX, ..held.clone() };
    assert_eq!(
        write("10.0.0.3", high),
        "status.allocations.10.0.0.3.sequence: 18446744073709551615 is more than the API's integers hold"
    );
    let unnamed = Entry { request: Some("".into()), ..held.clone() };
    assert_eq!(write("10.0.0.3", unnamed), "status.allocations.10.0.0.3.request: is missing");
    let mapped = "status.allocations: \"::ffff:10.0.0.3\" is not an IP address";
    assert_eq!(write("::ffff:10.0.0.3", held), mapped);
}

#[test]
fn of_a_claim() {
    let read = |ippool: Value, metadata: Value| {
        let object = json!({"metadata": metadata, "status": {"ippool": {"t": ippool}}});
        let object: NodeNetworkConfigurationEnactment = serde_json::from_value(object).expect("the type");
        said(records::enactment::read(&object))
    };
    let whole = records::enactment::metadata(&"n".into(), &"u".into(), &"p".into());
    let mut whole = serde_json::to_value(whole.expect("metadata")).expect("JSON");
    whole["uid"] = json!("e");
    let request = |fields: Value| {
        let mut request = json!({"id": "r", "want": true});
        merge(&mut request, &fields);
        json!({"requests": {"c": request}})
    };
    let table = [
        (request(json!({"literal": "eth1"})), "requests.c.literal: \"eth1\" is not an IP address"),
        (
            request(json!({"declined": [{"ip": "10.0.0.1"}, {"ip": "10.0.0.1"}]})),
            "requests.c.declined[1].ip: 10.0.0.1 is listed twice, in two spellings",
        ),
        (
            request(json!({"holds": {"ip": "2001:db8::1", "ipv6": "2001:db8::2"}})),
            "requests.c.holds: must be one address, or one of each family",
        ),
        (
            request(json!({"holds": {"ip": "10.0.0.1", "sequence": -1}})),
            "requests.c.holds.sequence: -1 is less than 0",
        ),
        (
            json!({"grants": {"c": {"id": "r", "ip": "10.0.0.1", "prefix-length": 24, "ipv4": {"ip": "10.0.0.1", "prefix-length": 24}}}}),
            "grants.c.ipv6: is missing",
        ),
        (
            json!({"grants": {"c": {"id": "r", "ip": "10.0.0.1", "prefix-length": 24,
                "ipv4": {"ip": "10.0.0.2", "prefix-length": 24}, "ipv6": {"ip": "2001:db8::1", "prefix-length": 64}}}}),
            "grants.c.ip: is 10.0.0.1, and ipv4.ip is 10.0.0.2",
        ),
    ];
    for (ippool, expected) in table {
        assert_eq!(read(ippool, whole.clone()), format!("status.ippool.t.{expected}"));
    }
    let named = |name: &str, value: Value| {
        let mut metadata = whole.clone();
        metadata[name] = value;
        read(json!({}), metadata)
    };
    assert_eq!(named("ownerReferences", json!([])), "metadata.ownerReferences[Node]: is missing");
    let another = json!({"nmstate.io/node": "m", "nmstate.io/policy": "p"});
    assert_eq!(
        named("labels", another),
        "metadata.labels.nmstate.io/node: is m, and the Node that owns it is n"
    );
    let missing =
        "metadata.labels.nmstate.io/node: is missing\nmetadata.labels.nmstate.io/policy: is missing";
    assert_eq!(named("labels", json!({})), missing);
}

#[test]
fn of_a_policy_that_no_label_can_name() {
    let long = PolicyName::new("p".repeat(64));
    let made = records::enactment::metadata(&"n".into(), &"u".into(), &long);
    assert_eq!(
        made.expect_err("too long").to_string(),
        "metadata.labels.nmstate.io/policy: must be a policy's name of at most 63 characters"
    );
}

#[test]
fn of_a_grant_that_no_pool_can_fill_in() {
    let (_, meant) = pool("t", &json!({"range": {"cidr": "10.0.0.0/24"}}));
    let grant = |ips: &[&str]| {
        let ips = ips.iter().map(|ip| ip.parse().expect("an address")).collect();
        let lease = Lease { ips, sequence: 1, pool: "p".into() };
        let slot = Slot { grant: Some(Grant { id: "r".into(), lease }), ..Slot::default() };
        BTreeMap::from([(SlotKey { pool: "t".into(), capture: "c".into() }, slot)])
    };
    let write = |ips: &[&str]| said(records::enactment::claims(&grant(ips), |_| Some(&meant)));
    assert_eq!(
        write(&["10.9.0.1"]),
        "status.ippool.t.grants.c: no range of pool t has 10.9.0.1: nothing says its prefix length"
    );
    assert_eq!(write(&[]), "status.ippool.t.grants.c: must be one address, or one of each family");
    assert_eq!(
        said(records::enactment::claims(&grant(&["10.0.0.1"]), |_| None)),
        "status.ippool.t.grants.c: there is no pool t that says its prefix length"
    );
}

#[test]
fn of_a_report() {
    let read = |status: Value| {
        let metadata =
            serde_json::to_value(records::state::metadata(&"n".into(), &"u".into())).expect("JSON");
        let object: NodeNetworkState =
            serde_json::from_value(json!({"metadata": metadata, "status": status})).expect("the type");
        records::state::shown(&object)
    };
    assert_eq!(
        said(read(json!({"pooledAddresses": [{"ip": "10.0.0.1"}, {"ip": "x"}]}))),
        "status.pooledAddresses[1].ip: \"x\" is not an IP address"
    );
    let addresses = json!([{"prefix-length": 24}, {"ip": "x"}, {"ip": "10.0.0.1"}]);
    let state = read(json!({"currentState": {"interfaces": [{"ipv4": {"address": addresses}}, 1]}}));
    assert_eq!(state.expect("what is no address shows none").shows, ["10.0.0.1".parse().unwrap()].into());
}

/// An enactment that can't be read still names its pools.
#[test]
fn of_a_claim_in_named_pools() {
    let named = |object: Value| {
        let object = serde_json::from_value(object).expect("the type");
        assert!(records::enactment::read(&object).is_err());
        records::enactment::named(&object).map(|names| names.iter().map(ToString::to_string).collect())
    };
    let asked = |text: &str| json!({"metadata": {"annotations": {"nmstate.io/requests": text}}});
    let names = |names: &[&str]| Some(names.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>());
    assert_eq!(named(json!({"metadata": {}, "status": {"ippool": {"a": {}, "b": {}}}})), names(&["a", "b"]));
    assert_eq!(named(json!({"metadata": {}})), names(&[]));
    assert_eq!(named(asked(r#"{"a": 1}"#)), names(&["a"]));
    assert_eq!(named(asked("a")), None);
}
