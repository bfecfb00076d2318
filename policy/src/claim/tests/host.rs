//! The host's side: a small store, a NIC, and the order in which things are done.

mod several;
mod site;

use super::fixtures::*;
use crate::claim::*;
use site::Site;

/// Everything from the wish to the NIC, in the order of docs/claims.md.
const CLAIMING: [&str; 10] = [
    "report []",
    "journal pool/addr asking",
    "create static-ip",
    "serve",
    "announce pool/addr",
    "report [10.0.0.1]",
    "confirm pool/addr",
    "journal pool/addr holding",
    "nic + [10.0.0.1]",
    "request pool/addr holds",
];

/// Rule 3, back to nothing.
const RELEASING: [&str; 7] = [
    "nic - [10.0.0.1]",
    "report []",
    "journal pool/addr releasing",
    "request pool/addr let go",
    "serve",
    "remove pool/addr",
    "journal pool/addr forgotten",
];

fn one() -> Site {
    Site::new().pool("pool", pool(1)).wants("pool", "addr")
}

fn holding_site() -> Site {
    let mut site = one();
    site.settle();
    assert_eq!(site.nic, ips(&["10.0.0.1"]).into_iter().collect());
    site
}

fn stop_wanting(site: &mut Site) {
    site.wants.clear();
}

#[test]
fn request_ledger_grant_announcement_confirmation_journal_nic() {
    let mut site = one();
    assert_eq!(site.settle(), CLAIMING);
    // At rest: nothing.
    assert!(site.settle().is_empty());
    assert!(site.entry("pool", "10.0.0.1").is_held_by(&"id0".into()));
}

#[test]
fn rule3_release_runs_the_other_way() {
    let mut site = holding_site();
    stop_wanting(&mut site);
    let mut expected: Vec<&str> = RELEASING.to_vec();
    expected.push("drop static-ip");
    // The journal is written as soon as the address is off; the report follows before `want: false`.
    let done = site.settle();
    let place =
        |what: &str| done.iter().position(|did| did == what).unwrap_or_else(|| panic!("{what}: {done:?}"));
    for pair in expected.windows(2).filter(|pair| pair[0] != "report []") {
        assert!(place(pair[0]) < place(pair[1]), "{pair:?}: {done:?}");
    }
    assert!(place("report []") < place("request pool/addr let go"), "{done:?}");
    assert!(site.ledger("pool").allocations.is_empty());
    assert!(site.host.journal.is_empty() && site.enactments.is_empty());
}

// Kill -9 after every step, of claiming and of letting go: the next process finishes.
#[test]
fn r27_a_restart_in_any_step_ends_the_same() {
    for cut in 0..CLAIMING.len() {
        let mut site = one();
        site.run(cut);
        site.host = site.host.restarted();
        site.settle();
        assert_eq!(site.nic, ips(&["10.0.0.1"]).into_iter().collect(), "cut after {cut}");
        assert!(site.entry("pool", "10.0.0.1").is_held_by(&"id0".into()));
        assert_eq!(site.ledger("pool").allocations.len(), 1);
    }
    for cut in 0..=RELEASING.len() {
        let mut site = holding_site();
        stop_wanting(&mut site);
        site.run(cut);
        site.host = site.host.restarted();
        site.settle();
        assert!(site.nic.is_empty() && site.enactments.is_empty(), "cut after {cut}");
        assert!(site.ledger("pool").allocations.is_empty());
    }
}

// Rule 3: after `want: false` an id never wants again.
#[test]
fn rule3_a_change_of_mind_is_a_new_id() {
    let mut site = holding_site();
    let wants = site.wants.clone();
    stop_wanting(&mut site);
    site.run(4);
    site.wants = wants;
    site.settle();
    let entry = site.entry("pool", "10.0.0.1");
    assert!(entry.is_held() && entry.request != Some("id0".into()));
}

#[test]
fn rule2_nothing_is_used_that_the_pool_does_not_back() {
    let mut site = one();
    site.run(6);
    site.ledger_mut("pool").hold = Some(Hold { until: NOW + 1 });
    site.run(4);
    assert!(site.nic.is_empty());
    assert!(matches!(site.record("addr").phase, Phase::Asking { .. }));
    // What is doubted is shown no more.
    assert!(site.state.as_ref().expect("a report").shows.is_empty());
    site.ledger_mut("pool").hold = None;
    site.settle();
    assert_eq!(site.nic.len(), 1);
}

#[test]
fn a_question_without_an_answer_keeps_no_finished_enactment() {
    let mut site = one();
    site.run(6);
    site.ledger_mut("pool").hold = Some(Hold { until: NOW + 1 });
    site.run(4);
    let finished = Enactment {
        policy: "done-with".into(),
        slots: Default::default(),
        ..site.enactments[&"static-ip".into()].clone()
    };
    site.enactments.insert("done-with".into(), finished);
    let done = site.run(4);
    assert!(done.iter().any(|did| did == "drop done-with"), "{done:?}");
}

#[test]
fn rule2_a_confirmation_runs_out() {
    let mut site = one();
    site.run(7);
    site.now += CONFIRMED_FOR + 1;
    assert_eq!(site.run(2), ["confirm pool/addr", "journal pool/addr holding"]);
}

#[test]
fn r26_a_node_that_is_not_ready_asks_for_nothing_and_keeps_what_it_has() {
    let mut site = one();
    site.ready = false;
    assert_eq!(site.settle(), ["report []"]);
    let mut site = holding_site();
    site.ready = false;
    assert!(site.settle().is_empty());
}

#[test]
fn r27_an_offline_boot_applies_the_journal() {
    let mut site = holding_site();
    site.nic.clear();
    site.host = site.host.restarted();
    site.node = NodeSeen::Unreachable;
    assert_eq!(site.settle(), ["nic + [10.0.0.1]"]);
}

#[test]
fn r111_without_the_api_nothing_is_asked_for() {
    let mut site = one();
    site.node = NodeSeen::Unreachable;
    assert!(site.settle().is_empty());
}

#[test]
fn rule7_a_node_that_is_gone_parks() {
    let mut site = holding_site();
    site.node = NodeSeen::Gone;
    assert_eq!(site.settle(), ["nic - [10.0.0.1]", "journal pool/addr parked"]);
}

// Rule 7: never touches the NIC; reports under the new UID, then re-keys, then the enactment.
#[test]
fn rule7_a_node_created_anew_inherits() {
    let mut site = holding_site();
    site.node = NodeSeen::Is("new".into());
    let done = site.settle();
    // Inherited twice: once to write the ledger, once to see that it is so; the journal is part of that.
    let order = [
        "report [10.0.0.1]",
        "inherit pool/addr",
        "inherit pool/addr",
        "drop static-ip",
        "create static-ip",
        "serve",
    ];
    assert_eq!(done, order);
    let entry = site.entry("pool", "10.0.0.1");
    assert!(entry.is_held_by(&"id0".into()) && entry.node_uid == "new".into());
    assert_eq!(site.enactments[&"static-ip".into()].node_uid, "new".into());
}

#[test]
fn rule7_without_a_pool_it_asserts_instead() {
    let mut site = holding_site();
    site.pools.clear();
    site.node = NodeSeen::Is("new".into());
    let done = site.settle();
    assert!(!done.iter().any(|did| did.starts_with("nic")), "{done:?}");
    let own = &site.enactments[&"static-ip".into()];
    assert_eq!(own.node_uid, "new".into());
    let request = own.slots[&key()].request.as_ref().expect("a request");
    assert_eq!(request.holds.as_ref().expect("holds").ips, ips(&["10.0.0.1"]));
}

// Rule 7: parked, then created anew: the same address by the same id, though it was off the NIC.
#[test]
fn rule7_what_was_parked_is_inherited_too() {
    let mut site = holding_site();
    site.node = NodeSeen::Gone;
    site.settle();
    site.node = NodeSeen::Is("new".into());
    site.settle();
    assert!(site.entry("pool", "10.0.0.1").is_held_by(&"id0".into()));
    assert_eq!(site.nic, ips(&["10.0.0.1"]).into_iter().collect());
    assert_eq!(site.enactments[&"static-ip".into()].node_uid, "new".into());
}

#[test]
fn rule7_what_is_not_ours_any_more_comes_off() {
    let mut site = holding_site();
    site.ledger_mut("pool").allocations.insert(ip("10.0.0.1"), held("other", 9));
    site.node = NodeSeen::Is("new".into());
    let done = site.settle();
    assert!(done.contains(&"nic - [10.0.0.1]".to_owned()), "{done:?}");
    assert!(site.entry("pool", "10.0.0.1").is_held_by(&"other".into()));
}

// Rule 7: a marked address that neither journal nor enactment knows.
#[test]
fn rule7_an_unknown_pooled_address_is_taken_off() {
    let mut site = one();
    site.nic.insert(ip("10.0.0.7"));
    let done = site.run(3);
    assert_eq!(done, ["report [10.0.0.7]", "nic - [10.0.0.7]", "report []"]);
}

#[test]
fn rule1_a_lost_journal_finds_its_address_by_the_enactment() {
    let mut site = holding_site();
    site.host = Host::default();
    let done = site.settle();
    assert!(!done.iter().any(|did| did.starts_with("nic")), "never off the NIC: {done:?}");
    assert!(site.entry("pool", "10.0.0.1").is_held_by(&site.record("addr").id));
    assert_ne!(site.record("addr").id, "id0".into());
}

// Rule 3: the journal was lost, the new id not yet journalled as holding; off the NIC first all the same.
#[test]
fn rule3_after_a_lost_journal_too_the_nic_comes_first() {
    for cut in 0..6 {
        let mut site = holding_site();
        site.host = Host::default();
        site.run(cut);
        stop_wanting(&mut site);
        while let Some(did) = site.step() {
            let on_nic = site.nic.contains(&ip("10.0.0.1"));
            let free = site.ledger("pool").allocations.is_empty();
            assert!(!(on_nic && free), "freed while on the NIC, cut {cut}, {did}");
        }
        assert!(site.nic.is_empty());
    }
}

#[test]
fn r100_what_another_holds_is_taken_off_and_asked_for_anew() {
    let mut site = one();
    site.pools.clear();
    let mut site = site.pool("pool", pool(2));
    site.settle();
    let mine = *site.nic.iter().next().expect("an address");
    site.ledger_mut("pool").sequence = 9;
    site.ledger_mut("pool").allocations.insert(mine, held("other", 9));
    site.host = site.host.restarted();
    site.settle();
    assert_eq!(site.nic.len(), 1);
    assert!(!site.nic.contains(&mine));
}

#[test]
fn rule10_taken_on_the_wire_is_declined_and_another_used() {
    let mut site = Site::new().pool("pool", pool(2)).wants("pool", "addr");
    let mut first = Site::new().pool("pool", pool(2)).wants("pool", "addr");
    first.settle();
    site.wire = first.nic.clone();
    site.settle();
    assert_eq!(site.nic.len(), 1);
    assert!(site.nic.is_disjoint(&site.wire));
    let stranger = *site.wire.iter().next().expect("an address");
    assert!(!site.ledger("pool").allocations[&stranger].is_recoverable());
}

// R92, rule 3: one family taken on the wire while the other is on the NIC: that one is off before it is
// anybody else's.
#[test]
fn rule10_r92_the_other_family_is_off_the_nic_before_it_is_let_go() {
    let mut site = Site::new().pool("pool", dual(2, 2)).wants("pool", "addr");
    site.settle();
    assert_eq!(site.nic.len(), 2);
    let v6 = *site.nic.iter().find(|ip| ip.is_ipv6()).expect("IPv6");
    site.nic.remove(&v6);
    site.wire.insert(v6);
    while let Some(did) = site.step() {
        if did == "request pool/addr wants" {
            assert!(site.nic.is_empty(), "declined while half of it is on the NIC");
        }
        for ip in &site.nic {
            let entry = site.ledger("pool").allocations.get(ip);
            assert!(entry.is_some_and(Entry::is_held), "{ip} is on the NIC and free after {did}");
        }
    }
    assert_eq!(site.nic.len(), 2);
    assert!(!site.nic.contains(&v6));
}
