//! Tending: rule 4, the brake, and the end of an enactment.

use super::fixtures::*;
use crate::claim::*;

const OVER: Time = NOW + QUARANTINE;

fn ledger_with(entries: Vec<(&str, Entry)>) -> Ledger {
    let mut ledger = ledger();
    ledger.sequence = 5;
    ledger.allocations = entries.into_iter().map(|(text, entry)| (ip(text), entry)).collect();
    ledger
}

fn look(ledger: &Ledger, cluster: &Cluster, now: Time) -> Tended {
    tend(ledger, &cluster.facts(), QUARANTINE, now)
}

// R29, R40, R41, rule 4: quarantined first, free when the time is over and the Node still gone.
#[test]
fn r29_r40_r41_a_vanished_node_is_quarantined_then_freed() {
    let ledger = ledger_with(vec![("10.0.0.1", held("a", 1))]);
    let gone = Cluster::of(&[], vec![asking("a")]);
    let first = look(&ledger, &gone, NOW);
    assert_eq!((first.quarantined, first.freed), (ips(&["10.0.0.1"]), vec![]));
    let set_aside = first.ledger.expect("a write");
    assert_eq!(set_aside.sequence, 6);
    assert_eq!(reason(&set_aside.allocations[&ip("10.0.0.1")]), Some(&QuarantineReason::NodeGone));
    assert!(look(&set_aside, &gone, OVER - 1).ledger.is_none());
    let freed = look(&set_aside, &gone, OVER);
    assert_eq!(freed.freed, ips(&["10.0.0.1"]));
    assert!(freed.ledger.expect("a write").allocations.is_empty());
}

// R29, R40, rule 4: whoever wrote it, and whatever the pool's quarantine was then, nothing is set aside for longer than one from now.
#[test]
fn r29_r40_nothing_is_set_aside_for_longer_than_a_quarantine() {
    let aside = |reason: QuarantineReason, until: Time| {
        let state = EntryState::Quarantined(Quarantine { until, reason, witness: None });
        Entry { state, ..held("a", 1) }
    };
    let until = |ledger: &Ledger| match &ledger.allocations[&ip("10.0.0.1")].state {
        EntryState::Quarantined(aside) => aside.until,
        EntryState::Held => panic!("it is held"),
    };
    let gone = Cluster::of(&[], vec![]);
    for reason in [QuarantineReason::NodeGone, QuarantineReason::Collision { by: stranger() }] {
        let ledger = ledger_with(vec![("10.0.0.1", aside(reason.clone(), Time::MAX))]);
        let bounded = look(&ledger, &gone, NOW).ledger.expect("a write");
        assert_eq!((until(&bounded), bounded.sequence), (OVER, 6));
        assert!(look(&bounded, &gone, NOW + 1).ledger.is_none(), "it is written once");
        assert_eq!(look(&bounded, &gone, OVER).freed, ips(&["10.0.0.1"]));
        let sooner = ledger_with(vec![("10.0.0.1", aside(reason, NOW + 1))]);
        assert!(look(&sooner, &gone, NOW).ledger.is_none());
    }
}

#[test]
fn r73_another_uid_under_the_name_is_gone_too() {
    let ledger = ledger_with(vec![("10.0.0.1", held("a", 1))]);
    let mut cluster = Cluster::of(&["a"], vec![asking("a")]);
    assert!(look(&ledger, &cluster, NOW).ledger.is_none());
    cluster.nodes.insert("a".into(), "another".into());
    assert_eq!(look(&ledger, &cluster, NOW).quarantined, ips(&["10.0.0.1"]));
}

// R34, R70, R72: nobody lists it. Its Node lives, so only its agent can say that it is off.
#[test]
fn r34_r70_r72_an_orphan_of_a_live_node_is_freed_on_its_agents_word() {
    let ledger = ledger_with(vec![("10.0.0.1", held("a", 1))]);
    let cluster = Cluster::of(&["a"], vec![]).shows("a", "s1", &[]);
    let first = look(&ledger, &cluster, NOW);
    assert!(first.ask_word.contains(&"a".into()));
    let set_aside = first.ledger.expect("a write");
    assert_eq!(reason(&set_aside.allocations[&ip("10.0.0.1")]), Some(&QuarantineReason::Orphan));
    // The report that was there before is no word, however late it is.
    let silent = look(&set_aside, &cluster, OVER + 1_000);
    assert!(silent.ledger.is_none());
    assert!(silent.ask_word.contains(&"a".into()));
    // Shown in a later one: in use. Not shown: free.
    let shown = Cluster::of(&["a"], vec![]).shows("a", "s2", &["10.0.0.1"]);
    assert!(look(&set_aside, &shown, OVER).ledger.is_none());
    let off = Cluster::of(&["a"], vec![]).shows("a", "s3", &[]);
    assert!(look(&set_aside, &off, OVER - 1).ledger.is_none());
    assert_eq!(look(&set_aside, &off, OVER).freed, ips(&["10.0.0.1"]));
}

#[test]
fn rule4_listed_again_is_kept() {
    let ledger = ledger_with(vec![("10.0.0.1", quarantined("a", QuarantineReason::Orphan, Some("s1")))]);
    for listed in [asking("a"), granted("a", lease(&["10.0.0.1"], 1))] {
        let cluster = Cluster::of(&["a"], vec![listed]).shows("a", "s2", &[]);
        assert!(look(&ledger, &cluster, OVER).ledger.is_none());
    }
}

// A wish stands for one entry of a family, the held one; with two families for one of each.
#[test]
fn rule4_a_wish_lists_one_entry_of_each_family() {
    let ledger = ledger_with(vec![
        ("10.0.0.1", quarantined("a", QuarantineReason::Orphan, Some("s1"))),
        ("10.0.0.2", held("a", 3)),
        ("fd00::1", held("a", 3)),
    ]);
    let cluster = Cluster::of(&["a"], vec![asking("a")]).shows("a", "s2", &["10.0.0.2", "fd00::1"]);
    let tended = look(&ledger, &cluster, OVER);
    assert_eq!((tended.quarantined, tended.freed), (vec![], ips(&["10.0.0.1"])));
}

// A host that says it holds another address of the family, in a slice say, has no wish left that an entry could stand for.
#[test]
fn rule4_who_holds_another_address_lists_none_by_its_wish() {
    let ledger = ledger_with(vec![("10.0.0.1", held("a", 1)), ("fd00::1", held("a", 1))]);
    let cluster =
        Cluster::of(&["a"], vec![holding("a", lease(&["10.0.0.9"], 3))]).shows("a", "s1", &["10.0.0.9"]);
    let tended = look(&ledger, &cluster, NOW);
    assert_eq!(tended.quarantined, ips(&["10.0.0.1"]), "of that family");
    assert_eq!(tended.ask_word, ["a".into()].into(), "free on its word");
    let cluster = Cluster::of(&["a"], vec![holding("a", lease(&["10.0.0.1"], 3))]);
    assert!(look(&ledger, &cluster, NOW).quarantined.is_empty());
}

// The enactment of another Node, or of its predecessor, lists nothing for this one.
#[test]
fn rule4_only_the_own_enactment_lists() {
    let ledger = ledger_with(vec![("10.0.0.1", held("a", 1))]);
    let mut other = granted("a", lease(&["10.0.0.1"], 1));
    other.node_uid = "before".into();
    let cluster = Cluster::of(&["a"], vec![other]);
    assert_eq!(look(&ledger, &cluster, NOW).quarantined, ips(&["10.0.0.1"]));
}

// Rule 4: the proof changed. The host of a Node that was deleted just now may not have heard of it.
#[test]
fn rule4_an_orphan_whose_node_vanishes_gets_a_quarantine_for_that() {
    for why in [QuarantineReason::Orphan, QuarantineReason::Observed] {
        let ledger = ledger_with(vec![("10.0.0.1", quarantined("a", why, Some("s1")))]);
        let gone = Cluster::of(&[], vec![]);
        let tended = look(&ledger, &gone, OVER + 1_000);
        assert_eq!((&tended.quarantined, &tended.freed), (&ips(&["10.0.0.1"]), &vec![]));
        let next = tended.ledger.expect("a write");
        assert!(look(&next, &gone, OVER + 1_000).ledger.is_none());
        assert_eq!(look(&next, &gone, OVER + 1_000 + QUARANTINE).freed, ips(&["10.0.0.1"]));
    }
}

#[test]
fn rule10_a_collision_is_freed_when_its_time_is_over() {
    let collision = QuarantineReason::Collision { by: stranger() };
    let ledger = ledger_with(vec![("10.0.0.1", quarantined("a", collision, None))]);
    let cluster = Cluster::of(&["a"], vec![asking("a")]).shows("a", "s1", &[]);
    assert!(look(&ledger, &cluster, OVER - 1).ledger.is_none());
    assert_eq!(look(&ledger, &cluster, OVER).freed, ips(&["10.0.0.1"]));
}

#[test]
fn a_ledger_that_is_not_proven_is_left_alone() {
    let changes: [fn(&mut Ledger); 4] = [
        |ledger| ledger.rebuilt_for = None,
        |ledger| ledger.reset = true,
        |ledger| ledger.hold = Some(Hold { until: NOW }),
        |ledger| ledger.deleting = true,
    ];
    for change in changes {
        let mut ledger = ledger_with(vec![("10.0.0.1", held("a", 1))]);
        change(&mut ledger);
        assert!(look(&ledger, &Cluster::of(&[], vec![]), NOW).ledger.is_none());
    }
}

#[test]
fn brake_limit_is_five_percent_but_three_at_least() {
    let limits = [0, 3, 60, 79, 80, 100, 2_000].map(brake_limit);
    assert_eq!(limits, [3, 3, 3, 3, 4, 5, 100]);
}

fn four_gone() -> (Ledger, Cluster) {
    let nodes = ["a", "b", "c", "d"];
    let entries = ["10.0.0.1", "10.0.0.2", "10.0.0.3", "10.0.0.4"];
    let ledger = ledger_with(entries.into_iter().zip(nodes.map(|node| held(node, 1))).collect());
    (ledger, Cluster::of(&[], nodes.map(asking).into()))
}

#[test]
fn rule4_the_brake_stops_until_that_very_batch_is_confirmed() {
    let (ledger, mut cluster) = four_gone();
    let tended = look(&ledger, &cluster, NOW);
    assert!(tended.ledger.is_none());
    assert_eq!(tended.braked, Some(Brake { vanished: 4, allowed: 3 }));
    cluster.confirmed = Some(3);
    assert!(look(&ledger, &cluster, NOW).ledger.is_none());
    cluster.confirmed = Some(4);
    let tended = look(&ledger, &cluster, NOW);
    assert_eq!((tended.quarantined.len(), tended.braked), (4, None));
}

#[test]
fn rule4_witnessed_deletions_do_not_count_and_are_not_braked() {
    let (ledger, mut cluster) = four_gone();
    cluster.witnessed.insert(node_uid("a"));
    let tended = look(&ledger, &cluster, NOW);
    assert_eq!((tended.quarantined.len(), tended.braked), (4, None));
    // Four unseen beside one that was seen: only that one goes.
    let (mut ledger, mut cluster) = four_gone();
    ledger.allocations.insert(ip("10.0.0.5"), held("e", 1));
    cluster.witnessed.insert(node_uid("e"));
    let tended = look(&ledger, &cluster, NOW);
    assert_eq!(tended.quarantined, ips(&["10.0.0.5"]));
    assert!(tended.braked.is_some());
}

// Holders count, not addresses: two dual-stack nodes are two.
#[test]
fn rule4_the_brake_counts_a_dual_stack_holder_once() {
    let ledger = ledger_with(vec![
        ("10.0.0.1", held("a", 1)),
        ("10.0.0.2", held("b", 1)),
        ("fd00::1", held("a", 1)),
        ("fd00::2", held("b", 1)),
    ]);
    let tended = look(&ledger, &Cluster::of(&[], vec![]), NOW);
    assert_eq!((tended.quarantined.len(), tended.braked), (4, None));
}

#[test]
fn rule4_an_enactment_ends_when_its_entries_are_free() {
    let mut leaving = granted("a", lease(&["10.0.0.1"], 1));
    let held_still = ledger_with(vec![("10.0.0.1", held("a", 1))]);
    let quarantined = ledger_with(vec![("10.0.0.1", quarantined("a", QuarantineReason::NodeGone, None))]);
    let free = ledger_with(vec![("10.0.0.1", held("b", 1))]);
    let ends = |enactment: &Enactment, ledger: Option<&Ledger>, now| {
        may_finish(enactment, |_| ledger, QUARANTINE, now)
    };
    assert!(!ends(&leaving, Some(&free), NOW), "not being deleted");
    leaving.deleting = Some(NOW);
    assert!(!ends(&leaving, Some(&held_still), NOW));
    assert!(!ends(&leaving, Some(&quarantined), NOW));
    assert!(ends(&leaving, Some(&free), NOW));
    // A ledger that is to be rebuilt from enactments, or on hold, needs it still.
    let unproven = Ledger { rebuilt_for: None, ..free.clone() };
    let on_hold = Ledger { hold: Some(Hold { until: NOW }), ..free };
    assert!(!ends(&leaving, Some(&unproven), OVER) && !ends(&leaving, Some(&on_hold), OVER));
    // No pool: after one quarantine.
    assert!(!ends(&leaving, None, OVER - 1));
    assert!(ends(&leaving, None, OVER));
}

// Rules 4 and 7: the Node was created anew while the pool was reset; its agent has reported under the new
// UID and not yet asserted. What is visibly in use is not free, however long that takes.
#[test]
fn rule4_rule7_what_a_live_host_shows_is_not_freed() {
    let ledger = ledger_with(vec![("10.0.0.1", quarantined("a", QuarantineReason::NodeGone, None))]);
    let mut cluster = Cluster::of(&["a"], vec![]).shows("a", "s1", &["10.0.0.1"]);
    cluster.nodes.insert("a".into(), "new".into());
    cluster.states[0].node_uid = "new".into();
    assert!(look(&ledger, &cluster, OVER).ledger.is_none());
    cluster.states[0].shows.clear();
    assert_eq!(look(&ledger, &cluster, OVER).freed, ips(&["10.0.0.1"]));
}
