//! Releasing by hand: what rule 4 allows, for one holder.

use super::fixtures::*;
use crate::claim::*;

const OVER: Time = NOW + QUARANTINE;

fn ledger_with(entries: Vec<(&str, Entry)>) -> Ledger {
    let mut ledger = ledger();
    ledger.sequence = 5;
    ledger.allocations = entries.into_iter().map(|(text, entry)| (ip(text), entry)).collect();
    ledger
}

fn attempt(ledger: &Ledger, cluster: &Cluster, now: Time) -> Result<Released, NotReleased> {
    release(ledger, ip("10.0.0.1"), &cluster.facts(), QUARANTINE, now)
}

// R40: the manual way. Never free at once: quarantined first, as by tending.
#[test]
fn r40_what_a_vanished_node_had_is_quarantined_not_freed() {
    let before = ledger_with(vec![("10.0.0.1", held("a", 1)), ("10.0.0.2", held("b", 2))]);
    let gone = Cluster::of(&["b"], vec![asking("a"), asking("b")]);
    let released = attempt(&before, &gone, NOW).unwrap();
    assert_eq!(released.fate, Fate::Quarantined { until: OVER, reason: QuarantineReason::NodeGone });
    assert_eq!((released.ips.clone(), released.ledger.sequence), (ips(&["10.0.0.1"]), 6));
    assert!(released.ledger.allocations[&ip("10.0.0.2")].is_held(), "nobody else's is touched");
    // Tending comes to the very same ledger.
    let tended = tend(&before, &gone.facts(), QUARANTINE, NOW);
    assert_eq!(tended.ledger, Some(released.ledger));
}

// The brake is what an administrator's word replaces; the quarantine is not.
#[test]
fn one_of_many_that_vanished_at_once_can_be_released() {
    let names = ["a", "b", "c", "d", "e"];
    let texts: Vec<String> = (1..=5).map(|n| format!("10.0.0.{n}")).collect();
    let entries = texts.iter().zip(names).map(|(text, node)| (text.as_str(), held(node, 1))).collect();
    let (before, gone) = (ledger_with(entries), Cluster::of(&[], vec![]));
    assert!(tend(&before, &gone.facts(), QUARANTINE, NOW).braked.is_some());
    let released = attempt(&before, &gone, NOW).unwrap();
    let aside = released.ledger.allocations.values().filter(|entry| !entry.is_held()).count();
    assert_eq!(aside, 1);
}

#[test]
fn live_holders_are_refused_by_name() {
    let before = ledger_with(vec![("10.0.0.1", held("a", 1))]);
    let listed = Cluster::of(&["a"], vec![granted("a", lease(&["10.0.0.1"], 1))]);
    let text = attempt(&before, &listed, NOW).unwrap_err().to_string();
    assert!(text.contains("node a") && text.contains("policy static-ip"), "{text}");
    let shown = Cluster::of(&["a"], vec![]).shows("a", "s1", &["10.0.0.1"]);
    assert_eq!(
        attempt(&before, &shown, NOW).unwrap_err(),
        NotReleased::Shown { ip: ip("10.0.0.1"), node: "a".into() }
    );
}

// R34: an orphan of a live Node waits for its agent's word, by hand too.
#[test]
fn r34_an_orphan_is_quarantined_and_freed_on_its_agents_word_alone() {
    let before = ledger_with(vec![("10.0.0.1", held("a", 1))]);
    let orphan = Cluster::of(&["a"], vec![]).shows("a", "s1", &[]);
    let aside = attempt(&before, &orphan, NOW).unwrap();
    assert_eq!(aside.fate, Fate::Quarantined { until: OVER, reason: QuarantineReason::Orphan });
    let again = |cluster: &Cluster, now| attempt(&aside.ledger, cluster, now);
    assert_eq!(
        again(&orphan, OVER + 1_000).unwrap_err(),
        NotReleased::Unspoken { ip: ip("10.0.0.1"), node: "a".into() }
    );
    let spoken = Cluster::of(&["a"], vec![]).shows("a", "s2", &[]);
    assert_eq!(again(&spoken, OVER - 1).unwrap_err(), NotReleased::Waits { ip: ip("10.0.0.1"), until: OVER });
    let freed = again(&spoken, OVER).unwrap();
    assert_eq!(freed.fate, Fate::Freed);
    assert!(freed.ledger.allocations.is_empty());
}

// R92: both families of a claim, or neither.
#[test]
fn r92_both_families_of_a_claim_go_together() {
    let before = ledger_with(vec![("10.0.0.1", held("a", 1)), ("fd00::1", held("a", 1))]);
    let released = attempt(&before, &Cluster::of(&[], vec![]), NOW).unwrap();
    assert_eq!(released.ips, ips(&["10.0.0.1", "fd00::1"]));
    assert!(released.ledger.allocations.values().all(|entry| !entry.is_held()));
}

#[test]
fn nothing_is_taken_from_an_unproven_ledger_or_of_what_is_free() {
    let gone = Cluster::of(&[], vec![]);
    assert_eq!(attempt(&ledger(), &gone, NOW).unwrap_err(), NotReleased::Free { ip: ip("10.0.0.1") });
    let sound = ledger_with(vec![("10.0.0.1", held("a", 1))]);
    let held = Ledger { hold: Some(Hold { until: OVER }), ..sound.clone() };
    let unproven = Ledger { rebuilt_for: None, ..sound.clone() };
    let deleting = Ledger { deleting: true, ..sound };
    for ledger in [held, unproven, deleting] {
        assert_eq!(attempt(&ledger, &gone, NOW).unwrap_err(), NotReleased::Unsettled);
    }
}
