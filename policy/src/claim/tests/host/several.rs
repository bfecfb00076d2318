//! Several captures of one policy, all or none (rule 1), and literal addresses that change.

use std::collections::BTreeSet;
use std::net::IpAddr;

use super::super::fixtures::*;
use super::site::{Site, claim};
use crate::claim::*;

fn two() -> Site {
    Site::new()
        .pool("pool-a", pool(1))
        .pool(
            "pool-b",
            pool_of(serde_json::json!({
                "range": {"cidr": "10.0.1.0/24", "start": "10.0.1.1", "end": "10.0.1.1"},
            })),
        )
        .wants("pool-a", "first")
        .wants("pool-b", "second")
}

fn take(site: &mut Site, pool: &str, address: &str) {
    site.ledger_mut(pool).allocations.insert(ip(address), held("other", 0));
}

#[test]
fn r20_rule1_two_captures_are_used_in_the_order_of_pool_names() {
    let mut site = two();
    let done = site.settle();
    assert_eq!(site.nic, ips(&["10.0.0.1", "10.0.1.1"]).into_iter().collect());
    let place =
        |what: &str| done.iter().position(|did| did == what).unwrap_or_else(|| panic!("{what}: {done:?}"));
    assert!(place("journal pool-a/first asking") < place("journal pool-b/second asking"));
    assert!(place("journal pool-b/second holding") < place("nic + [10.0.0.1]"), "whole, or not at all");
    assert!(place("nic + [10.0.0.1]") < place("nic + [10.0.1.1]"));
    // Nothing is announced before both are granted.
    assert!(place("serve") < place("announce pool-a/first, pool-b/second"));
    assert!(site.settle().is_empty());
}

// However many pools: one write asks, one report announces, one write says that all are held.
#[test]
fn several_pools_cost_no_more_writes_than_one() {
    let done = two().settle();
    let writes = ["create", "report", "request"];
    let written: Vec<&String> =
        done.iter().filter(|did| writes.iter().any(|write| did.starts_with(write))).collect();
    let expected = [
        "report []",
        "create static-ip",
        "report [10.0.0.1, 10.0.1.1]",
        "request pool-a/first holds, pool-b/second holds",
    ];
    assert_eq!(written, expected, "{done:?}");
}

#[test]
fn rule1_a_refusal_of_one_releases_the_other() {
    let taken = [("pool-a", "10.0.0.1", "pool-b"), ("pool-b", "10.0.1.1", "pool-a")];
    for (full, address, other) in taken {
        let mut site = two();
        take(&mut site, full, address);
        let done = site.settle();
        assert!(!done.iter().any(|did| did.starts_with("nic")), "{done:?}");
        assert!(site.nic.is_empty());
        assert!(site.ledger(other).allocations.is_empty(), "{other} is let go");
        // Room appears (R32): both are asked for, and used.
        site.ledger_mut(full).allocations.clear();
        site.settle();
        assert_eq!(site.nic.len(), 2, "{full} has room");
    }
}

fn two_of_one(addresses: u8) -> Site {
    Site::new().pool("pool", pool(addresses)).wants("pool", "first").wants("pool", "second")
}

#[test]
fn rule1_claims_on_one_pool_are_sent_together() {
    let mut site = two_of_one(2);
    let done = site.settle();
    assert_eq!(site.nic.len(), 2);
    let sent: Vec<_> = done.iter().filter(|did| did.starts_with("create")).collect();
    assert_eq!(sent.len(), 1, "{done:?}");
    assert!(!done.iter().any(|did| did.contains("wants")), "both were in that write: {done:?}");
}

// R32: nothing is taken in turns while there is room for one only, and both are had when there is for two.
#[test]
fn rule1_claims_on_one_pool_wait_together() {
    let mut site = two_of_one(2);
    take(&mut site, "pool", "10.0.0.1");
    let done = site.settle();
    assert!(!done.iter().any(|did| did.contains("let go")), "{done:?}");
    assert_eq!(site.ledger("pool").allocations.len(), 1);
    site.ledger_mut("pool").allocations.clear();
    site.settle();
    assert_eq!(site.nic.len(), 2);
}

// Both are granted, the first turns out to be in use on the wire, and no other is free: the second is let go,
// and from then on neither is asked for alone.
#[test]
fn rule1_a_refused_claim_does_not_wait_alone() {
    let mut elsewhere = two_of_one(2);
    elsewhere.settle();
    let mut site = two_of_one(2);
    site.wire.extend(elsewhere.ledger("pool").held_by(&elsewhere.record("first").id));
    while !site.step().expect("a step").starts_with("nic +") {}
    // The server answers before the second is put to use.
    while site.step().expect("a step") != "request pool/first wants" {}
    assert!(site.nic.is_empty() && site.serve());
    site.settle();
    assert!(site.nic.is_empty());
    assert!(
        site.ledger("pool").allocations.values().all(|entry| !entry.is_held()),
        "nothing is kept from others"
    );
}

#[test]
fn rule1_a_pool_that_does_not_give_yet_keeps_both_waiting() {
    let mut site = two();
    site.ledger_mut("pool-b").rebuilt_for = None;
    site.settle();
    assert!(site.nic.is_empty());
    assert!(site.ledger("pool-a").allocations[&ip("10.0.0.1")].is_held());
    site.ledger_mut("pool-b").rebuilt_for = Some("uid-pool-b".into());
    site.settle();
    assert_eq!(site.nic.len(), 2);
}

// What is held already is not let go because a sibling lost its address (R97).
#[test]
fn r97_a_sibling_that_is_held_stays() {
    let mut site = two();
    site.settle();
    site.ledger_mut("pool-b").sequence = 9;
    site.ledger_mut("pool-b").allocations.insert(ip("10.0.1.1"), held("other", 9));
    site.settle();
    assert_eq!(site.nic, ips(&["10.0.0.1"]).into_iter().collect());
}

// A policy that had its address is edited to ask for another, which it can't have. At a boot the NIC is empty: the first goes back
// there, under its id. What no good state ever had is let go, on the NIC or not.
#[test]
fn r27_rule1_what_a_policy_last_had_outlives_a_boot_while_a_sibling_is_refused() {
    let mut site = two();
    site.wants.remove(&claim("pool-b", "second"));
    site.settle();
    take(&mut site, "pool-b", "10.0.1.1");
    site.wants.insert(claim("pool-b", "second"), None);
    site.settle();
    let had: BTreeSet<IpAddr> = ips(&["10.0.0.1"]).into_iter().collect();
    assert_eq!(site.nic, had, "in use");
    let id = site.record("first").id.clone();
    site.good.insert("static-ip".into(), had.clone());
    site.boot();
    let done = site.settle();
    assert_eq!(site.nic, had, "{done:?}");
    assert!(site.entry("pool-a", "10.0.0.1").is_held_by(&id) && site.record("first").id == id);
    site.good.clear();
    site.boot();
    site.settle();
    assert!(site.nic.is_empty() && site.ledger("pool-a").allocations.is_empty());
}

// The journal is lost while a claim is granted and another of its policy refused: what the enactment has is taken up, and given
// back with the rest.
#[test]
fn rule1_a_lost_journal_leaves_nothing_behind_while_a_sibling_is_refused() {
    let mut site = two_of_one(2);
    let second = claim("pool", "second");
    site.wants.remove(&second);
    while site.step().expect("a step") != "serve" {}
    site.wants.insert(second, None);
    let free = site.ledger("pool").allocations.keys().next().map(|one| *one == ip("10.0.0.1"));
    take(&mut site, "pool", if free == Some(true) { "10.0.0.2" } else { "10.0.0.1" });
    while site.step().expect("a step") != "request pool/second wants" {}
    assert!(site.serve());
    site.host = Host::default();
    site.settle();
    assert_eq!(site.ledger("pool").allocations.len(), 1, "the other's");
    assert!(site.nic.is_empty());
}

// A pool on hold is asked again and again; the claims on other pools don't wait for that.
#[test]
fn one_pool_on_hold_does_not_stop_the_claims_on_others() {
    let mut site = two();
    site.wants.remove(&claim("pool-b", "second"));
    site.settle();
    let mut other = claim("pool-b", "second");
    other.policy = "z-other".into();
    // Granted from pool-a, then on hold before it is confirmed.
    let mut site = two();
    site.wants.remove(&claim("pool-b", "second"));
    site.wants.insert(other, None);
    while !site.step().expect("a step").starts_with("announce pool-a") {}
    site.ledger_mut("pool-a").hold = Some(Hold { until: NOW + 1 });
    site.run(100);
    assert_eq!(site.nic, ips(&["10.0.1.1"]).into_iter().collect());
}

// Each of several parked claims has its turn, also while the pool of the first is gone.
#[test]
fn parked_claims_take_turns() {
    let mut site = two();
    site.settle();
    site.node = NodeSeen::Gone;
    site.settle();
    site.pools.remove(&"pool-a".into());
    site.node = NodeSeen::Is("new".into());
    for _ in 0..20 {
        site.now += 1;
        site.step();
    }
    let entry = &site.ledger("pool-b").allocations[&ip("10.0.1.1")];
    assert!(entry.is_held_by(&site.record("second").id) && entry.node_uid == "new".into());
}

#[test]
fn rule11_a_literal_address_is_claimed_and_a_change_of_it_is_a_new_claim() {
    let mut site = Site::new().pool("pool", pool(8));
    site.wants.insert(claim("pool", "addr"), Some(ip("10.0.0.3")));
    site.settle();
    assert_eq!(site.nic, ips(&["10.0.0.3"]).into_iter().collect());
    assert_eq!(site.entry("pool", "10.0.0.3").kind, EntryKind::Static);
    let before = site.record("addr").id.clone();
    site.wants.insert(claim("pool", "addr"), Some(ip("10.0.0.5")));
    site.settle();
    assert_eq!(site.nic, ips(&["10.0.0.5"]).into_iter().collect());
    assert_eq!(site.ledger("pool").allocations.len(), 1);
    assert_ne!(site.record("addr").id, before);
    // Also while the first is still being asked for.
    take(&mut site, "pool", "10.0.0.7");
    site.wants.insert(claim("pool", "addr"), Some(ip("10.0.0.7")));
    site.settle();
    assert!(site.nic.is_empty());
    site.wants.insert(claim("pool", "addr"), Some(ip("10.0.0.8")));
    site.settle();
    assert_eq!(site.nic, ips(&["10.0.0.8"]).into_iter().collect());
}

// A policy is replaced by another that names the same address: that one asks before the first lets go, so at no time is the
// address nobody's.
#[test]
fn rule11_a_policy_that_takes_anothers_place_has_its_address() {
    let mut site = Site::new().pool("pool", pool(8));
    let literal = Some(ip("10.0.0.3"));
    site.wants.insert(claim("pool", "addr"), literal);
    site.settle();
    let mut other = claim("pool", "addr");
    other.policy = "z-other".into();
    site.wants = [(other, literal)].into();
    let mut done = Vec::new();
    while let Some(did) = site.step() {
        done.push(did);
        assert!(site.entry("pool", "10.0.0.3").is_held(), "{done:?}");
    }
    assert_eq!(site.nic, ips(&["10.0.0.3"]).into_iter().collect(), "{done:?}");
    assert_eq!(site.entry("pool", "10.0.0.3").policy, "z-other".into());
    assert!(!site.enactments.contains_key(&"static-ip".into()), "{done:?}");
}

// There is no other to be given: the same is asked for again, and used once the stranger is gone.
#[test]
fn rule10_rule11_a_literal_address_that_was_in_use_is_asked_for_again() {
    let mut site = Site::new().pool("pool", pool(8));
    site.wants.insert(claim("pool", "addr"), Some(ip("10.0.0.3")));
    site.wire.insert(ip("10.0.0.3"));
    site.settle();
    assert!(site.nic.is_empty());
    assert!(matches!(reason(site.entry("pool", "10.0.0.3")), Some(QuarantineReason::Collision { .. })));
    let Phase::Asking { declined } = &site.record("addr").phase else { panic!("it asks") };
    assert!(declined.is_empty(), "under an id that has declined nothing");
    // The quarantine is over.
    site.wire.clear();
    site.ledger_mut("pool").allocations.clear();
    site.settle();
    assert_eq!(site.nic, ips(&["10.0.0.3"]).into_iter().collect());
}

// An address that was on the NIC before it was claimed stays there, and is recorded, though another claim of its policy is
// refused.
#[test]
fn rule11_what_is_in_use_is_claimed_alone() {
    let mut site = two();
    take(&mut site, "pool-b", "10.0.1.1");
    site.wants.insert(claim("pool-a", "first"), Some(ip("10.0.0.1")));
    while site.step().expect("a step") != "serve" {}
    // Known to be a pool's from the grant on.
    site.nic.insert(ip("10.0.0.1"));
    let done = site.settle();
    assert_eq!(site.nic, ips(&["10.0.0.1"]).into_iter().collect(), "{done:?}");
    assert!(done.iter().all(|did| !did.starts_with("nic")), "{done:?}");
    assert!(site.entry("pool-a", "10.0.0.1").is_held_by(&site.record("first").id));
    assert!(matches!(site.record("second").phase, Phase::Asking { .. }));
}
