//! Ledgers to be proven: rules 5, 6 and 7.

use serde_json::json;

use super::fixtures::*;
use crate::claim::*;

fn unproven() -> Ledger {
    Ledger::new("p2".into())
}

fn rebuilt(ledger: &Ledger, cluster: &Cluster) -> Rebuilt {
    rebuild(ledger, &name(), &pool(8), &cluster.facts(), NOW)
}

fn entry<'a>(ledger: &'a Ledger, text: &str) -> &'a Entry {
    &ledger.allocations[&ip(text)]
}

// R33, R35, R58, R76: everything held is in what holders say.
#[test]
fn r33_r35_r58_r76_rebuilt_from_holds_and_grants() {
    let cluster = Cluster::of(
        &["a", "b"],
        vec![holding("a", lease(&["10.0.0.1"], 4)), granted("b", lease(&["10.0.0.2"], 5)), asking("c")],
    );
    let Rebuilt { ledger, lost, outside } = rebuilt(&unproven(), &cluster);
    assert!(ledger.gives());
    assert_eq!(ledger.rebuilt_for, Some("p2".into()));
    assert_eq!(ledger.sequence, 5 + SEQUENCE_LEAP);
    assert_eq!(ledger.allocations.len(), 2);
    assert!(entry(&ledger, "10.0.0.1").is_held_by(&"a".into()));
    assert!(entry(&ledger, "10.0.0.2").is_held_by(&"b".into()));
    assert!(lost.is_empty() && outside.is_empty());
}

/// A sequence that no ledger can have come to is left out, or the next leap would have nowhere to go (rule 6).
#[test]
fn rule6_what_no_ledger_can_have_given_is_not_believed() {
    let most = u64::MAX / 2;
    let mut lies = [holding("a", lease(&["10.0.0.1"], most)), granted("a", lease(&["10.0.0.1"], most))];
    let cluster = Cluster::of(&["a"], lies.to_vec());
    assert!(rebuilt(&unproven(), &cluster).ledger.sequence > most, "believed, it counts");
    for lie in &mut lies {
        assert_eq!(lie.disbelieve(NOW), [key()]);
        assert_eq!(lie.disbelieve(NOW), []);
    }
    let cluster = Cluster::of(&["a"], lies.to_vec());
    let Rebuilt { ledger, .. } = rebuilt(&unproven(), &cluster);
    assert!(ledger.allocations.is_empty() && ledger.sequence == SEQUENCE_LEAP, "{ledger:?}");
    // What the highest that is believed comes to is believed a second later: who lies gets no further.
    let highest = (0..64).map(|bit| 1_u64 << bit).rfind(|one| is_believable(*one, NOW)).expect("some are");
    let mut honest = holding("b", lease(&["10.0.0.2"], highest));
    assert_eq!(honest.disbelieve(NOW), []);
    assert!(is_believable(highest + SEQUENCE_LEAP, NOW + 1) && !is_believable(most, u64::from(u32::MAX)));
}

#[test]
fn what_is_being_released_or_is_of_another_pool_is_not_taken_in() {
    let mut leaving = granted("a", lease(&["10.0.0.1"], 4));
    request(&mut leaving).want = false;
    let mut elsewhere = holding("b", lease(&["10.0.0.2"], 4));
    elsewhere.slots =
        elsewhere.slots.into_values().map(|slot| (SlotKey { pool: "other".into(), ..key() }, slot)).collect();
    // The grant is not for the id that asks.
    let mut stale = granted("c", lease(&["10.0.0.3"], 4));
    request(&mut stale).id = "new".into();
    let cluster = Cluster::of(&["a", "b", "c"], vec![leaving, elsewhere, stale]);
    assert!(rebuilt(&unproven(), &cluster).ledger.allocations.is_empty());
}

#[test]
fn r100_of_two_claims_the_later_wins_and_the_other_is_told() {
    let claims = vec![
        holding("a", lease(&["10.0.0.1"], 4)),
        holding("b", lease(&["10.0.0.1"], 7)),
        holding("c", lease(&["10.0.0.1"], 5)),
    ];
    let Rebuilt { ledger, lost, .. } = rebuilt(&unproven(), &Cluster::of(&["a", "b", "c"], claims));
    assert!(entry(&ledger, "10.0.0.1").is_held_by(&"b".into()));
    assert_eq!(lost, [("a".into(), ip("10.0.0.1")), ("c".into(), ip("10.0.0.1"))]);
    let mut desk = Desk::new(pool(8));
    desk.ledger = ledger;
    let mut loser = [holding("a", lease(&["10.0.0.1"], 4))];
    desk.serve(&mut loser);
    assert_eq!(refused(&loser[0]).0, RefusalReason::HeldByAnother);
}

// Rule 5: an entry in the ledger counts with its own sequence, listed or not.
#[test]
fn rule5_an_entry_of_the_ledger_counts_with_its_own_sequence() {
    let mut ledger = ledger();
    ledger.allocations.insert(ip("10.0.0.1"), held("x", 5));
    ledger.reset = true;
    let claim = |sequence| Cluster::of(&["a", "x"], vec![holding("a", lease(&["10.0.0.1"], sequence))]);
    let before = rebuilt(&ledger, &claim(4));
    assert_eq!(entry(&before.ledger, "10.0.0.1").request, Some("x".into()));
    assert_eq!(before.lost, [("a".into(), ip("10.0.0.1"))]);
    let after = rebuilt(&ledger, &claim(6));
    assert!(entry(&after.ledger, "10.0.0.1").is_held_by(&"a".into()));
    assert_eq!(after.lost, [("x".into(), ip("10.0.0.1"))]);
}

#[test]
fn rule5_what_a_live_host_shows_outranks_a_mere_grant() {
    let shows = |claim| Cluster::of(&["a", "z"], vec![claim]).shows("z", "s1", &["10.0.0.1"]);
    let granted = rebuilt(&unproven(), &shows(granted("a", lease(&["10.0.0.1"], 4)))).ledger;
    let observed = entry(&granted, "10.0.0.1");
    assert_eq!(reason(observed), Some(&QuarantineReason::Observed));
    assert_eq!((observed.node.as_str(), &observed.request), ("z", &None));
    let held = rebuilt(&unproven(), &shows(holding("a", lease(&["10.0.0.1"], 4)))).ledger;
    assert!(entry(&held, "10.0.0.1").is_held_by(&"a".into()));
    // Seen only in a range, and only of hosts that live.
    let mut gone = Cluster::of(&["z"], vec![]).shows("z", "s1", &["10.0.0.1", "172.16.0.1"]);
    assert_eq!(rebuilt(&unproven(), &gone).ledger.allocations.len(), 1);
    gone.nodes.clear();
    assert!(rebuilt(&unproven(), &gone).ledger.allocations.is_empty());
}

// Rule 5: not a listed entry; but one that nobody lists and its own host doesn't show.
#[test]
fn rule5_what_a_live_host_shows_outranks_an_unlisted_entry_only() {
    let mut ledger = ledger();
    ledger.reset = true;
    ledger.allocations.insert(ip("10.0.0.1"), held("a", 4));
    let shown = |enactments| Cluster::of(&["a", "z"], enactments).shows("z", "s1", &["10.0.0.1"]);
    let listed = rebuilt(&ledger, &shown(vec![asking("a")])).ledger;
    assert!(entry(&listed, "10.0.0.1").is_held_by(&"a".into()));
    let unlisted = rebuilt(&ledger, &shown(vec![])).ledger;
    assert_eq!(entry(&unlisted, "10.0.0.1").node.as_str(), "z");
    assert_eq!(reason(entry(&unlisted, "10.0.0.1")), Some(&QuarantineReason::Observed));
    let both = shown(vec![]).shows("a", "s2", &["10.0.0.1"]);
    let kept = rebuilt(&ledger, &both).ledger;
    assert_eq!(entry(&kept, "10.0.0.1").request, Some("a".into()));
}

#[test]
fn rule5_an_observed_address_goes_to_the_id_whose_journal_names_it() {
    let cluster =
        Cluster::of(&["a"], vec![granted("a", lease(&["10.0.0.1"], 4))]).shows("a", "s1", &["10.0.0.1"]);
    let mut desk = Desk::new(pool(8));
    desk.ledger = rebuilt(&unproven(), &cluster).ledger;
    let mut wishing = [asking("a")];
    desk.serve(&mut wishing);
    assert_ne!(granted_ips(&wishing[0]), ips(&["10.0.0.1"]), "a wish is no proof");
    let mut node = [holding("a", lease(&["10.0.0.1"], 4))];
    desk.serve(&mut node);
    assert_eq!(granted_ips(&node[0]), ips(&["10.0.0.1"]));
    assert!(desk.entry("10.0.0.1").is_held_by(&"a".into()));
}

#[test]
fn r39_what_nobody_lists_is_quarantined() {
    let mut ledger = ledger();
    ledger.offsets_agree = false;
    ledger.allocations.insert(ip("10.0.0.1"), held("a", 1));
    ledger.allocations.insert(ip("10.0.0.2"), held("b", 2));
    let next = rebuilt(&ledger, &Cluster::of(&["a", "b"], vec![asking("b")])).ledger;
    assert_eq!(reason(entry(&next, "10.0.0.1")), Some(&QuarantineReason::Orphan));
    assert!(entry(&next, "10.0.0.2").is_held_by(&"b".into()));
    assert!(next.offsets_agree);
}

#[test]
fn r66_r99_what_no_range_covers_is_reported() {
    let cluster = Cluster::of(&["a"], vec![holding("a", lease(&["192.168.1.1"], 4))]);
    let Rebuilt { ledger, outside, .. } = rebuilt(&unproven(), &cluster);
    assert_eq!(outside, [("a".into(), ip("192.168.1.1"))]);
    assert!(ledger.allocations.is_empty());
}

#[test]
fn r35_a_second_rebuild_changes_nothing_but_the_sequence() {
    let cluster = Cluster::of(
        &["a", "b", "z"],
        vec![
            holding("a", lease(&["10.0.0.1"], 4)),
            granted("b", lease(&["10.0.0.2"], 5)),
            holding("c", lease(&["10.0.0.1"], 2)),
        ],
    )
    .shows("z", "s1", &["10.0.0.7"]);
    let once = rebuilt(&unproven(), &cluster).ledger;
    let twice = rebuilt(&once, &cluster).ledger;
    assert_eq!(twice.allocations, once.allocations);
    assert_eq!(twice.sequence, once.sequence + SEQUENCE_LEAP);
}

#[test]
fn rule1_an_id_keeps_one_address_per_family_what_its_journal_names() {
    let mut ledger = ledger();
    ledger.reset = true;
    ledger.allocations.insert(ip("10.0.0.1"), held("a", 9));
    let cluster = Cluster::of(&["a"], vec![holding("a", lease(&["10.0.0.2", "fd00::1"], 4))]);
    let both = rebuild(&ledger, &name(), &dual(8, 8), &cluster.facts(), NOW).ledger;
    let mine: Vec<_> = both.held_by(&"a".into()).collect();
    assert_eq!(mine, ips(&["10.0.0.2", "fd00::1"]));
    assert_eq!(reason(entry(&both, "10.0.0.1")), Some(&QuarantineReason::Orphan));
}

#[test]
fn rule10_a_rebuild_does_not_give_back_what_answers_on_the_wire() {
    let collision = QuarantineReason::Collision { by: stranger() };
    let mut ledger = ledger();
    ledger.reset = true;
    ledger.allocations.insert(ip("10.0.0.1"), quarantined("a", collision, None));
    let cluster = Cluster::of(&["a"], vec![granted("a", lease(&["10.0.0.1"], 1))]);
    assert!(!entry(&rebuilt(&ledger, &cluster).ledger, "10.0.0.1").is_recoverable());
}

// D5: the seed's enactment holds 10.10.11.9 while its pool lacks offset 8.
#[test]
fn d5_the_seeds_state_is_repaired() {
    let seed = pool_of(json!({
        "range": {"cidr": "10.10.11.0/24", "start": "10.10.11.1", "end": "10.10.11.10",
                  "exclude": ["10.10.11.4", "10.10.11.7"]},
    }));
    let cluster = Cluster::of(&["node01"], vec![holding("node01", lease(&["10.10.11.9"], 3))]);
    let next = rebuild(&unproven(), &name(), &seed, &cluster.facts(), NOW).ledger;
    let (address, entry) = next.allocations.iter().next().expect("an entry");
    assert_eq!(seed.offset_of(*address), Some(8));
    assert_eq!(entry.node.as_str(), "node01");
}

fn on_hold() -> Ledger {
    Ledger { hold: Some(Hold { until: NOW + QUARANTINE }), ..ledger() }
}

// Rule 6: the backup gave 10.0.0.1 to x; since then a got it, and b was granted it before that.
#[test]
fn rule6_sequences_decide_and_grants_never_count() {
    let mut ledger = on_hold();
    ledger.sequence = 5;
    ledger.allocations.insert(ip("10.0.0.1"), held("x", 5));
    let said = |claim: Enactment| Cluster::of(&["a", "x"], vec![claim]);
    let next = |claim| reassert(&ledger, &name(), &pool(9), &said(claim).facts(), NOW);
    assert_eq!(next(granted("a", lease(&["10.0.0.1"], 9))), None);
    assert_eq!(next(holding("a", lease(&["10.0.0.1"], 4))), None);
    let won = next(holding("a", lease(&["10.0.0.1"], 9))).expect("a write");
    assert!(entry(&won, "10.0.0.1").is_held_by(&"a".into()));
    assert_eq!((won.sequence, won.hold), (6, ledger.hold));
}

#[test]
fn rule6_a_node_that_vanished_during_the_hold_is_taken_from_by_quarantine() {
    let gone = Cluster::of(&["b"], vec![holding("a", lease(&["10.0.0.1"], 9)), asking("b")]);
    let over = NOW + QUARANTINE;
    let lifted = reassert(&on_hold(), &name(), &pool(1), &gone.facts(), over).expect("lifted");
    assert!(entry(&lifted, "10.0.0.1").is_held_by(&"a".into()), "its host may not have heard of it yet");
    let tended = tend(&lifted, &gone.facts(), QUARANTINE, over);
    assert_eq!(tended.quarantined, ips(&["10.0.0.1"]));
    // What is set aside stays so: nothing is given back to a Node that is gone.
    let mut ledger = on_hold();
    ledger.allocations.insert(ip("10.0.0.1"), quarantined("a", QuarantineReason::NodeGone, None));
    assert_eq!(reassert(&ledger, &name(), &pool(1), &gone.facts(), NOW), None);
}

#[test]
fn rule6_an_id_holds_what_its_journal_names() {
    let mut ledger = on_hold();
    ledger.allocations.insert(ip("10.0.0.1"), held("a", 1));
    let cluster = Cluster::of(&["a"], vec![holding("a", lease(&["10.0.0.2"], 9))]);
    let next = reassert(&ledger, &name(), &pool(9), &cluster.facts(), NOW).expect("a write");
    assert_eq!(next.held_by(&"a".into()).collect::<Vec<_>>(), ips(&["10.0.0.2"]));
    assert_eq!(reason(entry(&next, "10.0.0.1")), Some(&QuarantineReason::Orphan));
    // And after the hold too, when it is served again (rule 1).
    let mut desk = Desk::new(pool(8));
    desk.ledger = reassert(&next, &name(), &pool(9), &cluster.facts(), NOW + QUARANTINE).expect("lifted");
    desk.serve(&mut [holding("a", lease(&["10.0.0.2"], 9))]);
    assert_eq!(desk.ledger.held_by(&"a".into()).collect::<Vec<_>>(), ips(&["10.0.0.2"]));
}

// A pool of the name that was before gave it. Recorded, it would be in no range: never given, and in the way of a range that is to go.
#[test]
fn r99_a_hold_records_nothing_that_no_range_has() {
    let of_before = Lease { pool: "before".into(), ..lease(&["192.168.1.1"], 9) };
    let claims = vec![holding("a", of_before), holding("b", lease(&["10.0.0.2"], 8))];
    let cluster = Cluster::of(&["a", "b"], claims);
    let next = reassert(&on_hold(), &name(), &pool(9), &cluster.facts(), NOW).expect("a write");
    assert_eq!(next.allocations.keys().copied().collect::<Vec<_>>(), ips(&["10.0.0.2"]));
    // It counts among what was seen all the same.
    let lifted = reassert(&next, &name(), &pool(9), &cluster.facts(), NOW + QUARANTINE).expect("lifted");
    assert_eq!((lifted.allocations, lifted.sequence), (next.allocations, 9 + SEQUENCE_LEAP));
    // What the id had in the pool is set aside: it holds another, wherever that lies (rule 1).
    let mut ledger = on_hold();
    ledger.allocations.insert(ip("10.0.0.1"), held("a", 1));
    let next = reassert(&ledger, &name(), &pool(9), &cluster.facts(), NOW).expect("a write");
    assert_eq!(reason(entry(&next, "10.0.0.1")), Some(&QuarantineReason::Orphan));
}

// The backup was made before the range was appended that it is of: appended again, it must not be given to another.
#[test]
fn rule6_what_this_very_pool_gave_is_recorded_whatever_its_ranges_are_now() {
    let cluster = Cluster::of(&["a"], vec![holding("a", lease(&["10.0.0.9"], 9))]);
    let next = reassert(&on_hold(), &name(), &pool(8), &cluster.facts(), NOW).expect("a write");
    assert!(entry(&next, "10.0.0.9").is_held_by(&"a".into()));
}

#[test]
fn rule6_the_hold_ends_with_a_leap_above_all_seen() {
    let mut ledger = on_hold();
    ledger.sequence = 5;
    let cluster = Cluster::of(&["a"], vec![granted("a", lease(&["10.0.0.1"], 40))]);
    assert_eq!(reassert(&ledger, &name(), &pool(9), &cluster.facts(), NOW + QUARANTINE - 1), None);
    let lifted = reassert(&ledger, &name(), &pool(9), &cluster.facts(), NOW + QUARANTINE).expect("lifted");
    assert_eq!((lifted.hold, lifted.sequence), (None, 40 + SEQUENCE_LEAP));
    assert!(lifted.gives());
    assert_ne!(lifted.guard(), ledger.guard());
    assert_eq!(reassert(&lifted, &name(), &pool(9), &cluster.facts(), NOW + QUARANTINE), None);
}

#[test]
fn rule6_a_server_that_remembers_more_has_proof() {
    let mut ledger = ledger();
    ledger.sequence = 5;
    assert!(went_back(&ledger, 6));
    assert!(!went_back(&ledger, 5));
    ledger.hold = Some(Hold { until: NOW });
    assert!(!went_back(&ledger, 6), "it is dealt with already");
}

#[test]
fn rule7_inherits_by_the_id_alone() {
    let new: NodeUid = "new".into();
    let held_by_a = lease(&["10.0.0.1", "fd00::1"], 1);
    for entry_of in [held("a", 1), quarantined("a", QuarantineReason::NodeGone, None)] {
        let mut ledger = ledger();
        ledger.allocations.insert(ip("10.0.0.1"), entry_of.clone());
        ledger.allocations.insert(ip("fd00::1"), entry_of);
        let Inheritance::Write(next) = inherit(&ledger, &"a".into(), &held_by_a, &new) else {
            panic!("inherits");
        };
        assert_eq!(next.sequence, 1);
        for entry in next.allocations.values() {
            assert!(entry.is_held_by(&"a".into()) && entry.node_uid == new);
        }
        assert_eq!(inherit(&next, &"a".into(), &held_by_a, &new), Inheritance::Done);
        assert_eq!(inherit(&ledger, &"b".into(), &held_by_a, &new), Inheritance::Lost);
        // Both families or none (R92).
        ledger.allocations.remove(&ip("fd00::1"));
        assert_eq!(inherit(&ledger, &"a".into(), &held_by_a, &new), Inheritance::Lost);
    }
    let unproven = Ledger { rebuilt_for: None, ..ledger() };
    let deleting = Ledger { deleting: true, ..ledger() };
    for ledger in [unproven, on_hold(), deleting] {
        assert_eq!(inherit(&ledger, &"a".into(), &held_by_a, &new), Inheritance::NotNow);
    }
}
