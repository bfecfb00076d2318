//! Serving dual stack, literal addresses, reservations, several ranges and slices.

use std::collections::BTreeMap;

use serde_json::json;

use super::fixtures::*;
use crate::claim::*;

fn literal(node: &str, address: &str) -> Enactment {
    let mut enactment = asking(node);
    request(&mut enactment).literal = Some(ip(address));
    enactment
}

#[test]
fn r92_dual_stack_gets_both_families_ipv4_first() {
    let mut desk = Desk::new(dual(4, 4));
    let mut node = [asking("a")];
    desk.serve(&mut node);
    let given = granted_ips(&node[0]);
    assert_eq!(given.len(), 2);
    assert!(given[0].is_ipv4() && given[1].is_ipv6());
    assert_eq!(desk.ledger.sequence, 1);
}

#[test]
fn r92_or_none() {
    let mut desk = Desk::new(dual(2, 1));
    let mut nodes = [asking("a"), asking("b")];
    desk.serve(&mut nodes);
    assert_eq!(desk.addresses().len(), 2);
    let (reason, message) = refused(&nodes[1]);
    assert_eq!(reason, RefusalReason::NoAddress);
    assert!(message.contains("IPv6"), "{message}");
}

#[test]
fn r92_declining_one_family_lets_both_go() {
    let mut desk = Desk::new(dual(2, 1)).with("10.0.0.1", held("a", 1)).with("fd00::1", held("a", 1));
    let mut node = [asking("a")];
    request(&mut node[0]).declined.insert(ip("10.0.0.1"), stranger());
    desk.serve(&mut node);
    assert!(!desk.entry("10.0.0.1").is_recoverable());
    // The IPv6 address was free again, and is the only one.
    assert_eq!(granted_ips(&node[0]), ips(&["10.0.0.2", "fd00::1"]));
}

// Half a claim, its other half lost to another or freed, is not granted as if it were whole.
#[test]
fn r92_half_an_entry_is_not_recovered() {
    for request_id in ["a", "new"] {
        let mut desk = Desk::new(dual(4, 4)).with("fd00::1", held("a", 1));
        let mut node = [enactment("a", Request::new(request_id.into()))];
        desk.serve(&mut node);
        let given = granted_ips(&node[0]);
        assert_eq!(given.len(), 2, "{given:?}");
        let mine: Vec<_> = desk.ledger.held_by(&request_id.into()).collect();
        assert_eq!(mine, given);
    }
}

#[test]
fn r92_a_lost_journal_takes_up_both_families() {
    let mut desk = Desk::new(dual(4, 4)).with("10.0.0.3", held("a", 1)).with("fd00::2", held("a", 1));
    let mut node = [enactment("a", Request::new("new".into()))];
    desk.serve(&mut node);
    assert_eq!(granted_ips(&node[0]), ips(&["10.0.0.3", "fd00::2"]));
}

#[test]
fn r51_rule11_a_literal_address_is_given_in_any_band() {
    let banded = pool_of(json!({"range": {"cidr": "10.0.0.0/24"}}));
    for address in ["10.0.0.1", "10.0.0.200"] {
        let mut desk = Desk::new(banded.clone());
        let mut node = [literal("a", address)];
        desk.serve(&mut node);
        assert_eq!(granted_ips(&node[0]), ips(&[address]));
        assert_eq!(desk.entry(address).kind, EntryKind::Static);
    }
}

// In a dual-stack pool a literal address is one address: it names no other.
#[test]
fn r51_a_literal_address_of_a_dual_stack_pool_stands_alone() {
    let mut desk = Desk::new(dual(4, 4));
    let mut node = [literal("a", "fd00::3")];
    desk.serve(&mut node);
    assert_eq!(granted_ips(&node[0]), ips(&["fd00::3"]));
    slot_mut(&mut node[0]).grant = None;
    let served = desk.serve(&mut node);
    assert!(served.ledger.is_none());
    assert_eq!(granted_ips(&node[0]), ips(&["fd00::3"]));
}

#[test]
fn rule11_a_literal_address_that_is_held_says_by_whom() {
    let mut desk = Desk::new(pool(8)).with("10.0.0.3", held("b", 1));
    let mut node = [literal("a", "10.0.0.3")];
    desk.serve(&mut node);
    let (reason, message) = refused(&node[0]);
    assert_eq!(reason, RefusalReason::NoAddress);
    assert!(message.contains("held by node b, policy static-ip"), "{message}");
    desk.ledger.allocations.clear();
    desk.serve(&mut node);
    assert_eq!(granted_ips(&node[0]), ips(&["10.0.0.3"]));
}

#[test]
fn rule11_a_lost_journal_gives_a_literal_claim_no_other_address() {
    let mut desk = Desk::new(pool(8)).with("10.0.0.3", held("a", 1));
    let mut request = Request::new("new".into());
    request.literal = Some(ip("10.0.0.5"));
    let mut node = [enactment("a", request)];
    desk.serve(&mut node);
    assert_eq!(granted_ips(&node[0]), ips(&["10.0.0.5"]));
}

// A policy takes another's place on a node, and names the same address: it is the node's all the time, though others wait for
// any and come first in the batch.
#[test]
fn rule11_what_a_policy_lets_go_another_of_its_node_gets_in_the_same_write() {
    let mut desk = Desk::new(pool(1)).with("10.0.0.1", held("a", 1));
    let mut old = asking("a");
    request(&mut old).want = false;
    let mut new = literal("a", "10.0.0.1");
    (new.uid, new.policy) = ("e-new".into(), "new".into());
    request(&mut new).id = "new".into();
    let mut nodes = [asking("b"), literal("c", "10.0.0.1"), new, old];
    let served = desk.serve(&mut nodes);
    assert!(served.ledger.is_some_and(|ledger| ledger.allocations.len() == 1));
    assert!(desk.entry("10.0.0.1").is_held_by(&"new".into()));
    assert_eq!(granted_ips(&nodes[2]), ips(&["10.0.0.1"]));
    assert_eq!(refused(&nodes[3]).0, RefusalReason::Released);
    assert!(nodes[..2].iter().all(|other| refused(other).0 == RefusalReason::NoAddress));
}

// What a pool finds on a NIC when it is made is the host's own as soon as its policy asks for it, and nobody else's.
#[test]
fn rule5_rule11_a_literal_address_that_the_host_shows_is_its_own() {
    let seen = Entry {
        policy: "".into(),
        capture: "".into(),
        request: None,
        ..quarantined("a", QuarantineReason::Observed, None)
    };
    let mut desk = Desk::new(pool(8)).with("10.0.0.3", seen);
    let mut nodes = [literal("b", "10.0.0.3")];
    desk.serve(&mut nodes);
    assert!(refused(&nodes[0]).1.ends_with("(seen on node a)"), "{:?}", refused(&nodes[0]));
    let mut nodes = [literal("a", "10.0.0.3")];
    // An entry gets an id only from what was read after it (rule 1).
    assert_eq!(desk.serve_as(&mut nodes, |ask| ask.fresh = false).reread.len(), 1);
    // It is there already: that the Node is not Ready keeps nothing from it (R26).
    desk.serve_as(&mut nodes, |ask| ask.ready = false);
    assert_eq!(granted_ips(&nodes[0]), ips(&["10.0.0.3"]));
    let entry = desk.entry("10.0.0.3");
    assert!(entry.is_held_by(&"a".into()));
    assert_eq!((entry.kind, entry.policy.as_str()), (EntryKind::Static, "static-ip"));
    // Of one that asks for any, it is not.
    let mut other = [asking("a")];
    other[0].policy = "other".into();
    request(&mut other[0]).id = "other".into();
    desk.serve(&mut other);
    assert_ne!(granted_ips(&other[0]), ips(&["10.0.0.3"]));
}

// Whichever the hash would be: captures of a policy are asked about in the order of their names.
#[test]
fn rule11_a_capture_is_not_given_what_its_policy_names() {
    for last in 1..=4 {
        let mut desk = Desk::new(pool(4));
        let mut own = asking("a");
        let named = ip(&format!("10.0.0.{last}"));
        let request = Request { literal: Some(named), ..Request::new("named".into()) };
        let slot = Slot { request: Some(request), ..Slot::default() };
        own.slots.insert(SlotKey { capture: "literal_".into(), ..key() }, slot);
        let mut node = [own];
        desk.serve(&mut node);
        assert_eq!(desk.ledger.held_by(&"named".into()).collect::<Vec<_>>(), [named]);
        assert_eq!(granted_ips(&node[0]).len(), 1);
    }
}

#[test]
fn rule10_rule11_a_literal_address_that_answers_on_the_wire_says_so() {
    let mut desk = Desk::new(pool(8)).with("10.0.0.3", held("a", 1));
    let mut node = [literal("a", "10.0.0.3")];
    request(&mut node[0]).declined.insert(ip("10.0.0.3"), stranger());
    desk.serve(&mut node);
    let (reason, message) = refused(&node[0]);
    assert_eq!(reason, RefusalReason::NoAddress);
    assert!(message.ends_with("(02:00:00:00:00:09 answers for it on the wire of node a)"), "{message}");
}

#[test]
fn rule1_a_reservation_comes_before_the_choice_and_after_what_is_held() {
    let reserving = pool_of(json!({
        "range": {"cidr": "10.0.0.0/24", "start": "10.0.0.1", "end": "10.0.0.8"},
        "reservations": [{"node": "a", "ip": "10.0.0.6"}],
    }));
    let mut desk = Desk::new(reserving.clone());
    let mut nodes = [asking("a"), literal("b", "10.0.0.6")];
    desk.serve(&mut nodes);
    assert_eq!(granted_ips(&nodes[0]), ips(&["10.0.0.6"]));
    assert_eq!(desk.entry("10.0.0.6").kind, EntryKind::Reserved);
    assert_eq!(refused(&nodes[1]).0, RefusalReason::NoAddress);
    let mut desk = Desk::new(reserving).with("10.0.0.2", held("a", 1));
    let mut node = [asking("a")];
    desk.serve(&mut node);
    assert_eq!(granted_ips(&node[0]), ips(&["10.0.0.2"]));
}

#[test]
fn r86_labels_choose_the_range() {
    let racks = pool_of(json!({
        "ranges": [
            {"name": "rack-1", "cidr": "10.1.0.0/28", "nodeSelector": {"nodeSelectorTerms": [
                {"matchExpressions": [{"key": "rack", "operator": "In", "values": ["rack-1"]}]}]}},
            {"name": "others", "cidr": "10.2.0.0/28"},
        ],
        "staticBand": "None",
    }));
    let labels = BTreeMap::from([("rack".to_owned(), "rack-1".to_owned())]);
    let nodes = [asking("a"), asking("b")];
    let mut asks: Vec<Asked<'_>> = nodes.iter().flat_map(asked).collect();
    asks[0].labels = &labels;
    let served = serve(&ledger(), &racks, &Default::default(), &asks, NOW);
    let next = served.ledger.expect("a write");
    let range = |id: &str| {
        let address = next.held_by(&id.into()).next().expect("an address");
        racks.range_of(address).expect("a range").name().to_owned()
    };
    assert_eq!((range("a"), range("b")), ("rack-1".to_owned(), "others".to_owned()));
}

// R85: of ranges that overlap, an answer names the one that is for the node, whether its address is new, was held under a lost
// id, or is asserted by a journal. What is written stays as it is when labels change.
#[test]
fn r63_r85_an_answer_names_the_range_that_speaks() {
    let racks = pool_of(json!({
        "ranges": [
            {"name": "any", "cidr": "10.0.0.0/16"},
            {"name": "rack", "cidr": "10.0.1.0/28", "nodeSelector": {"nodeSelectorTerms": [
                {"matchExpressions": [{"key": "rack", "operator": "In", "values": ["one"]}]}]}},
        ],
        "staticBand": "None",
    }));
    let labels = BTreeMap::from([("rack".to_owned(), "one".to_owned())]);
    let mut ledger = ledger();
    ledger.allocations.insert(ip("10.0.1.3"), Entry { request: Some("lost".into()), ..held("b", 1) });
    let mut nodes = [asking("a"), asking("b"), holding("c", lease(&["10.0.1.4"], 0))];
    let mut asks: Vec<Asked<'_>> = nodes.iter().flat_map(asked).collect();
    asks.iter_mut().for_each(|ask| ask.labels = &labels);
    let served = serve(&ledger, &racks, &Default::default(), &asks, NOW);
    let ranges: Vec<&[String]> = served.answers.iter().map(|answer| answer.ranges.as_slice()).collect();
    assert_eq!(ranges, [["rack"]; 3]);
    for answer in &served.answers {
        let own = nodes.iter_mut().find(|own| answer.fits(own)).expect("it fits");
        answer.write(slot_mut(own));
    }
    let unlabelled: Vec<Asked<'_>> = nodes.iter().flat_map(asked).collect();
    let again = serve(&served.ledger.expect("a write"), &racks, &Default::default(), &unlabelled, NOW);
    assert!(again.ledger.is_none() && again.answers.is_empty(), "what is written stays");
}

// R114: the ledger of a slice is served by the same function, within the slice.
#[test]
fn r114_a_slice_gives_only_its_own() {
    let sliced = pool_of(json!({
        "range": {"cidr": "10.0.0.0/24", "perNodeHostBits": 2},
        "staticBand": "None",
    }));
    let within = sliced.within(&["10.0.0.8/30".parse().expect("a slice")]).expect("a slice");
    let mut desk = Desk::new(within);
    let mut nodes: Vec<Enactment> = ["a", "b", "c", "d", "e"].map(asking).into();
    desk.serve(&mut nodes);
    assert_eq!(desk.addresses(), ips(&["10.0.0.8", "10.0.0.9", "10.0.0.10", "10.0.0.11"]));
    assert_eq!(refused(&nodes[4]).0, RefusalReason::NoAddress);
}

// Two captures of one policy on one pool are two holders.
#[test]
fn two_captures_on_one_pool_are_two_claims() {
    let mut desk = Desk::new(pool(8));
    let mut node = [asking("a")];
    let second = SlotKey { capture: "second".into(), ..key() };
    let other = Slot { request: Some(Request::new("a2".into())), ..Slot::default() };
    node[0].slots.insert(second.clone(), other);
    desk.serve(&mut node);
    assert_eq!(desk.addresses().len(), 2);
    // Its journal lost, each finds its own.
    let before = node[0].slots.clone();
    for (slot, id) in node[0].slots.values_mut().zip(["new", "new2"]) {
        slot.request = Some(Request::new(id.into()));
    }
    desk.serve(&mut node);
    for key in [key(), second] {
        let ips = |slot: &Slot| slot.grant.as_ref().expect("a grant").lease.ips.clone();
        assert_eq!(ips(&node[0].slots[&key]), ips(&before[&key]));
    }
}

// R83, R108: five thousand nodes in over a thousand ranges, a few dozen to a pool. What it takes is what is asked: each
// pool's ledger has its own entries and no more, each batch is one write, and a second look changes nothing.
#[test]
fn r83_r108_five_thousand_nodes_in_a_thousand_ranges() {
    let (pools, ranges, each) = (40, 32, 125);
    let mut given = std::collections::BTreeSet::new();
    for number in 0..pools {
        let ranges: Vec<_> = (0..ranges)
            .map(|range| json!({"name": format!("r{range}"), "cidr": format!("10.{number}.{range}.0/29")}))
            .collect();
        let mut desk = Desk::new(pool_of(json!({"ranges": ranges, "staticBand": "None"})));
        let mut nodes: Vec<Enactment> = (0..each).map(|node| asking(&format!("n{number}-{node}"))).collect();
        let served = desk.serve(&mut nodes);
        assert_eq!(served.answers.len(), each);
        assert_eq!(desk.ledger.sequence, 1, "one write");
        assert_eq!(desk.ledger.allocations.len(), each);
        given.extend(desk.addresses());
        let again = desk.serve(&mut nodes);
        assert!(again.ledger.is_none() && again.answers.is_empty());
    }
    assert_eq!(given.len(), 5_000);
}
