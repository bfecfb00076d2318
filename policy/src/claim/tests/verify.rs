//! What differs between ledger, enactments and interfaces, and what only looks so while it is under way.

use super::fixtures::*;
use crate::claim::*;

fn ledger_with(entries: Vec<(&str, Entry)>) -> Ledger {
    let mut ledger = ledger();
    ledger.allocations = entries.into_iter().map(|(text, entry)| (ip(text), entry)).collect();
    ledger
}

fn look(ledger: &Ledger, cluster: &Cluster, sightings: &Sightings) -> Vec<String> {
    let found = verify(&name(), &pool(9), ledger, &cluster.facts(), sightings);
    let word = |one: &Difference| {
        let ip = one.ip().map(|ip| format!(" {ip}")).unwrap_or_default();
        format!("{}{ip}", one.word())
    };
    found.iter().map(word).collect()
}

fn seen(places: &[(&str, &str, &str)], looked: &[&str]) -> Sightings {
    let sighting = |(text, node, interface): &(&str, &str, &str)| Sighting {
        ip: ip(text),
        node: (*node).into(),
        node_uid: node_uid(node),
        interface: (*interface).to_owned(),
    };
    Sightings {
        looked: looked.iter().map(|node| node_uid(node)).collect(),
        seen: places.iter().map(sighting).collect(),
    }
}

/// A node that has it everywhere: ledger, enactment, interface.
fn sound() -> (Ledger, Cluster, Sightings) {
    let ledger = ledger_with(vec![("10.0.0.1", held("a", 1))]);
    let cluster = Cluster::of(&["a"], vec![holding("a", lease(&["10.0.0.1"], 1))]);
    (ledger, cluster, seen(&[("10.0.0.1", "a", "eth1")], &["a"]))
}

#[test]
fn what_agrees_has_no_difference() {
    let (ledger, cluster, sightings) = sound();
    assert!(look(&ledger, &cluster, &sightings).is_empty());
}

// R34, R40: the ledger knows a holder that nobody else knows.
#[test]
fn r34_r40_holders_that_are_gone_or_unlisted() {
    let ledger = ledger_with(vec![("10.0.0.1", held("a", 1)), ("10.0.0.2", held("b", 1))]);
    let found = look(&ledger, &Cluster::of(&["b"], vec![]), &Sightings::default());
    assert_eq!(found, ["NodeGone 10.0.0.1", "Unlisted 10.0.0.2"]);
}

// R67: one record for each address, one holder for each record.
#[test]
fn r67_what_enactments_list_and_the_ledger_has_not_or_for_another() {
    let ledger = ledger_with(vec![("10.0.0.2", held("a", 1))]);
    let cluster = Cluster::of(
        &["a", "b", "c"],
        vec![
            holding("a", lease(&["10.0.0.2"], 1)),
            granted("b", lease(&["10.0.0.2"], 1)),
            holding("c", lease(&["10.0.0.3"], 1)),
        ],
    );
    let found = look(&ledger, &cluster, &Sightings::default());
    assert_eq!(found, ["Unbacked 10.0.0.2", "Unbacked 10.0.0.3"]);
    let all = verify(&name(), &pool(9), &ledger, &cluster.facts(), &Sightings::default());
    assert_eq!(
        all[0].to_string(),
        "the enactment of node b (policy static-ip, capture addr) lists it, \
         and the ledger has it for node a (policy static-ip, capture addr)"
    );
}

#[test]
fn what_is_let_go_or_of_a_vanished_node_is_under_way() {
    let mut leaving = holding("a", lease(&["10.0.0.1"], 1));
    request(&mut leaving).want = false;
    let cluster = Cluster::of(&["a"], vec![leaving, holding("gone", lease(&["10.0.0.2"], 1))]);
    assert!(look(&ledger(), &cluster, &Sightings::default()).is_empty());
}

// R66: every allocated address is in some range; rule 1: one address of a family for each id.
#[test]
fn r66_entries_in_no_range_and_ids_with_two() {
    let ledger = ledger_with(vec![("10.0.0.1", held("a", 1)), ("10.0.9.9", held("a", 1))]);
    let cluster = Cluster::of(&["a"], vec![asking("a")]);
    let found = look(&ledger, &cluster, &Sightings::default());
    assert_eq!(found, ["OutOfRange 10.0.9.9", "Twice 10.0.9.9", "Unlisted 10.0.9.9"]);
}

#[test]
fn d16_unproven_ledgers_and_offsets_that_disagree() {
    let (sound, cluster, sightings) = sound();
    let found = look(&Ledger { rebuilt_for: None, ..sound.clone() }, &cluster, &sightings);
    assert_eq!(found, ["Unproven"]);
    let found = look(&Ledger { offsets_agree: false, ..sound }, &cluster, &sightings);
    assert_eq!(found, ["Offsets"]);
}

#[test]
fn interfaces_that_have_what_they_should_not_or_lack_what_they_should() {
    let (ledger, cluster, _) = sound();
    let elsewhere = seen(&[("10.0.0.1", "b", "eth7")], &["a", "b"]);
    assert_eq!(look(&ledger, &cluster, &elsewhere), ["Elsewhere 10.0.0.1", "NotThere 10.0.0.1"]);
    let found = verify(&name(), &pool(9), &ledger, &cluster.facts(), &elsewhere);
    assert_eq!(found[0].place().unwrap().to_string(), "eth7 of node b");
    let unrecorded = seen(&[("10.0.0.1", "a", "eth1"), ("10.0.0.5", "b", "br0")], &["a", "b"]);
    assert_eq!(look(&ledger, &cluster, &unrecorded), ["Unrecorded 10.0.0.5"]);
    // Outside the pool, or where nobody looked: nothing to say.
    assert!(look(&ledger, &cluster, &seen(&[("192.0.2.1", "b", "eth0")], &["b"])).is_empty());
    let mut aside = ledger;
    aside.allocations.insert(ip("10.0.0.1"), quarantined("a", QuarantineReason::Orphan, None));
    let gone = Cluster::of(&["a"], vec![]);
    let there = seen(&[("10.0.0.1", "a", "eth1")], &["a"]);
    assert_eq!(look(&aside, &gone, &there), ["SetAside 10.0.0.1"]);
}

// A grant that the host has not put to use yet is no difference.
#[test]
fn an_address_on_its_way_is_not_missed() {
    let (ledger, _, _) = sound();
    let cluster = Cluster::of(&["a"], vec![granted("a", lease(&["10.0.0.1"], 1))]);
    assert!(look(&ledger, &cluster, &seen(&[], &["a"])).is_empty());
}
