//! What is written, kept as JSON and read back is what it was: the protocol's proof holds for the store, too.

use std::collections::BTreeMap;

use crds::names::annotation::{HOLD, RESET_POOL};
use crds::{
    Kind, NodeIPPoolStatus, NodeIPSlice, NodeIPSliceSpec, NodeNetworkConfigurationEnactment,
    NodeNetworkConfigurationEnactmentStatus, NodeNetworkState, NodeNetworkStateStatus,
};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use policy::claim::*;
use policy::pool::{Barred, Pool};
use proptest::prelude::*;
use serde_json::{Value, json};

use super::{any, pool, stored, through_json};
use crate::records::{self, write_time};

/// Of every sort: with offsets and without, of one family, of two, and too large to count.
fn specs() -> [Value; 4] {
    [
        json!({"range": {"cidr": "10.0.0.0/24", "exclude": ["10.0.0.7"]}}),
        json!({"range": {"ipv4": {"cidr": "10.0.0.0/24"}, "ipv6": {"cidr": "2001:db8::/64"}}}),
        json!({"ranges": [{"name": "a", "cidr": "10.0.0.0/25"}, {"name": "b", "cidr": "10.0.0.128/25"}]}),
        json!({"range": {"cidr": "2001:db8::/64"}}),
    ]
}

/// What the API server and people keep in the metadata.
fn metadata(ledger: &Ledger, before: &ObjectMeta) -> ObjectMeta {
    let annotations = ledger.reset.then(|| (RESET_POOL.to_owned(), String::new()));
    ObjectMeta {
        uid: Some(ledger.pool.to_string()),
        annotations: Some(annotations.into_iter().collect()),
        deletion_timestamp: ledger.deleting.then(|| write_time("", 1).expect("a time")),
        ..before.clone()
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn a_pools_ledger(ledger in any::ledger(), which in 0..4_usize) {
        let (mut object, meant) = pool("t", &specs()[which]);
        // A pool that lists no offsets has none that could disagree.
        let ledger = Ledger { offsets_agree: ledger.offsets_agree || !meant.lists_offsets(), ..ledger };
        object.metadata = metadata(&ledger, &object.metadata);
        let emptied = NodeIPPoolStatus { allocated_offsets: Some(vec![-1]), ..NodeIPPoolStatus::default() };
        let status = records::pool::status(&ledger, &meant, &Barred::default(), &emptied).expect("a status");
        let read = records::pool::read(&stored(&object, status), &meant).expect("a ledger");
        prop_assert_eq!(read.guard(), ledger.guard());
        prop_assert_eq!(read, ledger);
    }

    #[test]
    fn a_slices_ledger(ledger in any::ledger()) {
        let ledger = Ledger { offsets_agree: true, ..ledger };
        let spec = json!({"pool": "t", "cidr": "10.0.0.16/28", "node": "n", "nodeUID": "u"});
        let spec: NodeIPSliceSpec = serde_json::from_value(spec).expect("a spec");
        let mut slice = NodeIPSlice::new("t.10.0.0.16", spec);
        slice.metadata = metadata(&ledger, &slice.metadata);
        slice.status = Some(records::pool::slice_status(&ledger).expect("a status"));
        let read = records::pool::read_slice(&through_json(Kind::NodeIPSlice, &slice)).expect("a ledger");
        prop_assert_eq!(read, ledger);
    }

    /// What an enactment is made to ask for counts as long as it has no status.
    #[test]
    fn what_an_enactment_is_made_with(enactment in any::enactment()) {
        let asked = |slot: &Slot| Slot { request: slot.request.clone(), ..Slot::default() };
        let slots: BTreeMap<SlotKey, Slot> = enactment.slots.iter().map(|(key, slot)| (key.clone(), asked(slot))).collect();
        let made = records::enactment::metadata(&enactment.node, &enactment.node_uid, &enactment.policy);
        let annotations = records::enactment::asked(&slots).expect("requests").map(|one| [one].into());
        let metadata = ObjectMeta { uid: Some("u".to_owned()), annotations, ..made.expect("metadata") };
        let mut object = NodeNetworkConfigurationEnactment { metadata, ..Default::default() };
        let read = |object: &NodeNetworkConfigurationEnactment| {
            records::enactment::read(&through_json(Kind::NodeNetworkConfigurationEnactment, object)).expect("claims")
        };
        let expected: BTreeMap<SlotKey, Slot> =
            slots.into_iter().filter(|(_, slot)| slot.request.is_some()).collect();
        prop_assert_eq!(read(&object).slots, expected);
        object.status = Some(NodeNetworkConfigurationEnactmentStatus::default());
        prop_assert_eq!(read(&object).slots, BTreeMap::new());
    }

    #[test]
    fn an_enactment(enactment in any::enactment()) {
        let names = enactment.slots.keys().map(|key| key.pool.clone());
        let pools: BTreeMap<PoolName, Pool> =
            names.map(|name| (name.clone(), pool(name.as_str(), &specs()[1]).1)).collect();
        let claims = records::enactment::claims(&enactment.slots, |name| pools.get(name)).expect("claims");
        let made = records::enactment::metadata(&enactment.node, &enactment.node_uid, &enactment.policy);
        let made = made.expect("metadata");
        let object = NodeNetworkConfigurationEnactment {
            metadata: ObjectMeta {
                uid: Some(enactment.uid.to_string()),
                deletion_timestamp: enactment.deleting.map(|time| write_time("", time).expect("a time")),
                ..made
            },
            status: Some(NodeNetworkConfigurationEnactmentStatus { ippool: claims, ..Default::default() }),
            ..Default::default()
        };
        let kind = Kind::NodeNetworkConfigurationEnactment;
        let read = records::enactment::read(&through_json(kind, &object)).expect("an enactment");
        prop_assert_eq!(read, enactment);
    }

    #[test]
    fn a_report(state in any::host_state()) {
        let before = NodeNetworkStateStatus { handler_nmstate_version: Some("1".into()), ..Default::default() };
        let status = records::state::status(&state, &any::host(&state.shows), &before).expect("a status");
        prop_assert_eq!(&status.handler_nmstate_version, &before.handler_nmstate_version);
        let metadata = records::state::metadata(&state.node, &state.node_uid);
        let object = through_json(Kind::NodeNetworkState, &NodeNetworkState { metadata, status: Some(status), ..Default::default() });
        prop_assert_eq!(&records::state::said(&object).expect("a report"), &state);
        prop_assert_eq!(&records::state::shown(&object).expect("a report"), &state);
    }
}

#[test]
fn a_hold_that_is_asked_for_holds_before_it_is_begun() {
    let (mut object, meant) = pool("t", &specs()[0]);
    object.metadata.annotations = Some(BTreeMap::from([(HOLD.to_owned(), String::new())]));
    let asked = records::pool::read(&object, &meant).expect("a ledger");
    assert_eq!(asked.hold, Some(Hold { until: records::pool::ENDLESS }));
    let begun = Ledger { hold: Some(Hold { until: 7 }), ..asked };
    let status = records::pool::status(&begun, &meant, &Barred::default(), &NodeIPPoolStatus::default());
    let read = records::pool::read(&stored(&object, status.expect("a status")), &meant).expect("a ledger");
    assert_eq!(read.hold, begun.hold, "once begun, the end in the status counts");
}

#[test]
fn what_is_on_a_nic_is_shown_though_nobody_said_so() {
    let current = json!({"interfaces": [
        {"name": "lo"},
        {"name": "eth1", "ipv4": {"address": [{"ip": "10.0.0.9", "prefix-length": 24}]},
         "ipv6": {"address": [{"ip": "2001:db8::9", "prefix-length": 64}]}},
    ]});
    let object = NodeNetworkState {
        metadata: records::state::metadata(&"n".into(), &"u".into()),
        status: Some(NodeNetworkStateStatus { current_state: Some(current), ..Default::default() }),
        ..Default::default()
    };
    assert!(records::state::said(&object).expect("a report").shows.is_empty());
    let shown = records::state::shown(&object).expect("a report");
    assert_eq!(shown.shows, ["10.0.0.9", "2001:db8::9"].map(|ip| ip.parse().expect("an address")).into());
    assert_eq!(shown.stamp, Stamp::new(""), "who puts no stamp never has news");
}

#[test]
fn a_slot_that_says_nothing_is_no_slot() {
    let key = SlotKey { pool: "t".into(), capture: "c".into() };
    let claims = records::enactment::claims(&BTreeMap::from([(key, Slot::default())]), |_| None);
    assert_eq!(claims, Ok(BTreeMap::new()));
}

#[test]
fn whose_an_address_is_stands_beside_it() {
    let shows = ["10.0.0.1", "10.0.0.2", "10.0.0.3"].map(|ip| ip.parse().expect("an address")).into();
    let state = HostState { node: "n".into(), node_uid: "u".into(), stamp: "s".into(), shows };
    let status = records::state::status(&state, &any::host(&state.shows), &NodeNetworkStateStatus::default());
    let written = serde_json::to_value(status.expect("a status").pooled_addresses).expect("JSON");
    let expected = json!([
        {"ip": "10.0.0.1", "pool": "t", "id": "r0", "state": "Journalled"},
        {"ip": "10.0.0.2", "pool": "t", "id": "r1", "state": "Announced"},
        {"ip": "10.0.0.3"},
    ]);
    assert_eq!(written, expected);
}

/// What no schema has looked at is held to its bounds where it is read.
#[test]
fn requests_in_an_annotation_are_what_a_status_could_have() {
    let made = |request: Value| {
        let made = records::enactment::metadata(&"n".into(), &"u".into(), &"p".into()).expect("metadata");
        let asked = json!({"pool": {"capture": request}}).to_string();
        let annotations = Some([(crds::names::annotation::REQUESTS.to_owned(), asked)].into());
        let metadata = ObjectMeta { uid: Some("e".to_owned()), annotations, ..made };
        NodeNetworkConfigurationEnactment { metadata, ..Default::default() }
    };
    let good = made(json!({"id": "r", "want": true}));
    assert_eq!(records::enactment::read(&good).expect("claims").slots.len(), 1);
    for (request, words) in [
        (json!({"id": "r".repeat(65), "want": true}), "at most 64"),
        (json!({"id": "", "want": true}), "at least one"),
        (json!({"id": "r"}), "as JSON"),
        (json!({"id": "r", "want": "yes"}), "as JSON"),
        (
            json!({"id": "r", "want": true, "holds": {"ip": "10.0.0.1", "poolUID": "u".repeat(65)}}),
            "at most 64",
        ),
    ] {
        let object = made(request);
        let wrong = records::enactment::read(&object).expect_err("it is no request").to_string();
        assert!(wrong.contains("nmstate.io/requests") && wrong.contains(words), "{wrong}");
        assert!(records::enactment::has_claims(&object), "what can't be read may still count");
    }
}
