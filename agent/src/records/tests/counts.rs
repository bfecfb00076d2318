//! A pool's status is one write.

use std::net::IpAddr;

use crds::NodeIPPoolStatus;
use policy::claim::Ledger;
use policy::pool::{Barred, Pool};
use serde_json::{Value, json};

use super::{held, pool, stored};
use crate::records;

fn ledger(ips: &[&str]) -> Ledger {
    let ip = |text: &&str| text.parse::<IpAddr>().expect("an address");
    let allocations = ips.iter().map(|text| (ip(text), held())).collect();
    Ledger { rebuilt_for: Some("p".into()), allocations, ..Ledger::new("p".into()) }
}

fn status(ledger: &Ledger, pool: &Pool) -> NodeIPPoolStatus {
    records::pool::status(ledger, pool, &Barred::default(), &NodeIPPoolStatus::default()).expect("a status")
}

/// Offsets, capacity, allocated, available.
fn numbers(status: &NodeIPPoolStatus) -> Value {
    json!([status.allocated_offsets, status.capacity, status.allocated, status.available])
}

#[test]
fn r4_entries_offsets_and_counts_are_one_write() {
    // R4, R5: offset 0 is the start, and excluded addresses keep theirs
    let (_, meant) = pool("t", &seed());
    let held = ledger(&["10.10.10.1", "10.10.10.2", "10.10.10.3", "10.10.10.5", "10.10.10.6", "10.10.10.8"]);
    let status = status(&held, &meant);
    assert_eq!(status.allocations.len(), 6);
    assert_eq!(numbers(&status), json!([[0, 1, 2, 4, 5, 7], 8, 6, 2]));
}

fn seed() -> Value {
    json!({"range": {"cidr": "10.10.10.0/24", "start": "10.10.10.1", "end": "10.10.10.10",
        "exclude": ["10.10.10.4", "10.10.10.7"]}})
}

#[test]
fn r4_offsets_are_listed_only_where_they_can_be() {
    let lists = |spec: Value, ips: &[&str]| numbers(&status(&ledger(ips), &pool("t", &spec).1));
    let nothing_held = lists(json!({"range": {"cidr": "10.0.0.0/30"}}), &[]);
    assert_eq!(
        nothing_held,
        json!([[], 2, 0, 2]),
        "an empty list, so that emptying it by hand is seen (R39)"
    );
    let several =
        json!({"ranges": [{"name": "a", "cidr": "10.0.0.0/30"}, {"name": "b", "cidr": "10.1.0.0/30"}]});
    assert_eq!(lists(several, &["10.0.0.1", "10.1.0.1"]), json!([null, 4, 2, 2]));
    let both = json!({"range": {"ipv4": {"cidr": "10.0.0.0/30"}, "ipv6": {"cidr": "2001:db8::/64"}}});
    assert_eq!(lists(both, &["10.0.0.1", "2001:db8::1"]), json!([null, 2, 1, 1]), "counted in claims");
    let outside = json!({"range": {"cidr": "10.0.0.0/30"}});
    assert_eq!(lists(outside, &["10.0.0.1", "10.9.9.9"]), json!([[0], 2, 1, 1]), "what no range has");
    let most = (1_i64 << 53) - 1;
    let huge = json!({"range": {"cidr": "2001:db8::/64"}});
    assert_eq!(
        lists(huge, &["2001:db8::1"]),
        json!([null, most, 1, most]),
        "more than a number says exactly"
    );
}

#[test]
fn only_a_rebuild_says_that_offsets_agree() {
    // R39, D16
    let (object, meant) = pool("t", &seed());
    let held = ledger(&["10.10.10.1"]);
    let emptied = NodeIPPoolStatus { allocated_offsets: Some(Vec::new()), ..status(&held, &meant) };
    let read = |status| records::pool::read(&stored(&object, status), &meant).expect("a ledger");
    let seen = read(emptied.clone());
    assert!(!seen.offsets_agree && seen.needs_rebuild());
    // What is written meanwhile, while the pool is on hold say, must not hide it.
    let written = records::pool::status(&seen, &meant, &Barred::default(), &emptied).expect("a status");
    assert!(!read(written).offsets_agree);
    let rebuilt = Ledger { offsets_agree: true, ..seen };
    let written = records::pool::status(&rebuilt, &meant, &Barred::default(), &emptied).expect("a status");
    assert_eq!(read(written), rebuilt);
    let missing = NodeIPPoolStatus { allocated_offsets: None, ..emptied };
    assert!(!read(missing).offsets_agree, "a list that is gone is no empty one");
}
