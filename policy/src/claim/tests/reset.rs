//! A part of a proven ledger put together anew: R36, R37.

use super::fixtures::*;
use crate::claim::*;

fn of_policy() -> Scope {
    Scope::Policy("static-ip".into())
}

fn of_node(node: &str) -> Scope {
    Scope::Node(node_uid(node))
}

fn again(ledger: &Ledger, cluster: &Cluster, scope: &Scope) -> Option<Rebuilt> {
    reset(ledger, &name(), &pool(8), &cluster.facts(), scope, NOW)
}

fn entry<'a>(ledger: &'a Ledger, text: &str) -> &'a Entry {
    &ledger.allocations[&ip(text)]
}

/// A proven ledger, five writes old, in which a and b hold what nobody lists.
fn unlisted() -> Ledger {
    let mut ledger = ledger();
    ledger.sequence = 5;
    ledger.allocations.insert(ip("10.0.0.1"), held("a", 1));
    ledger.allocations.insert(ip("10.0.0.2"), held("b", 2));
    ledger
}

#[test]
fn r37_what_one_node_has_is_put_together_and_the_rest_is_left() {
    // c holds 10.0.0.3 by its journal, and d 10.0.0.4; the ledger has neither.
    let claims = vec![holding("c", lease(&["10.0.0.3"], 3)), holding("d", lease(&["10.0.0.4"], 4))];
    let cluster = Cluster::of(&["a", "b", "c", "d"], claims);
    let before = unlisted();
    let Rebuilt { ledger, lost, outside } = again(&before, &cluster, &of_node("c")).expect("now");
    assert!(entry(&ledger, "10.0.0.3").is_held_by(&"c".into()));
    assert_eq!(ledger.allocations.len(), 3, "d was not asked for");
    assert_eq!(entry(&ledger, "10.0.0.1"), entry(&before, "10.0.0.1"));
    assert_eq!(ledger.sequence, 6, "a write like any other");
    assert!(lost.is_empty() && outside.is_empty());
    // What nobody lists is set aside, of this node alone.
    let ledger = again(&before, &cluster, &of_node("a")).expect("now").ledger;
    assert_eq!(reason(entry(&ledger, "10.0.0.1")), Some(&QuarantineReason::Orphan));
    assert!(entry(&ledger, "10.0.0.2").is_held());
    assert_eq!(ledger.allocations.len(), 2);
}

#[test]
fn r36_what_one_policy_has_is_put_together_and_the_rest_is_left() {
    let mut other = held("x", 3);
    other.policy = "other".into();
    let mut before = unlisted();
    before.allocations.insert(ip("10.0.0.5"), other);
    let mut elsewhere = holding("e", lease(&["10.0.0.6"], 4));
    elsewhere.policy = "other".into();
    let claims =
        vec![holding("b", lease(&["10.0.0.2"], 2)), granted("c", lease(&["10.0.0.3"], 3)), elsewhere];
    let cluster = Cluster::of(&["a", "b", "c", "e", "x"], claims);
    let ledger = again(&before, &cluster, &of_policy()).expect("now").ledger;
    assert_eq!(reason(entry(&ledger, "10.0.0.1")), Some(&QuarantineReason::Orphan));
    assert!(entry(&ledger, "10.0.0.2").is_held_by(&"b".into()));
    assert!(entry(&ledger, "10.0.0.3").is_held_by(&"c".into()));
    assert!(entry(&ledger, "10.0.0.5").is_held(), "of another policy");
    assert!(!ledger.allocations.contains_key(&ip("10.0.0.6")), "for another policy");
}

// R36, R37, R97: nothing is taken from whoever is not in scope, however late the claim is.
#[test]
fn r97_what_others_hold_is_never_taken() {
    let mut before = unlisted();
    before.sequence = 9;
    before.allocations.insert(ip("10.0.0.1"), held("a", 9));
    let cluster = Cluster::of(&["a", "c"], vec![granted("c", lease(&["10.0.0.1"], 9)), asking("a")]);
    let Rebuilt { ledger, lost, .. } = again(&before, &cluster, &of_node("c")).expect("now");
    assert!(entry(&ledger, "10.0.0.1").is_held_by(&"a".into()));
    assert_eq!(lost, [("c".into(), ip("10.0.0.1"))]);
    assert_eq!(ledger, before, "nothing to write");
}

// Rule 6: a reset must not hide that the store went back in time, whoever knows it.
#[test]
fn rule6_a_holder_who_knows_a_later_ledger_comes_first() {
    let before = unlisted();
    let cluster = Cluster::of(&["a", "b", "c"], vec![holding("c", lease(&["10.0.0.3"], 6))]);
    for scope in [of_node("a"), of_node("c"), of_policy()] {
        assert!(again(&before, &cluster, &scope).is_none(), "{scope:?}");
    }
    let gone = Cluster { nodes: Default::default(), ..cluster };
    assert!(again(&before, &gone, &of_node("a")).is_some(), "a vanished Node's word is no proof of that");
}

// Rule 5: what is not proven as a whole is rebuilt as a whole.
#[test]
fn rule5_an_unproven_ledger_is_not_reset_in_parts() {
    let cluster = Cluster::of(&["a"], vec![asking("a")]);
    let proven = unlisted();
    let on_hold = Ledger { hold: Some(Hold { until: NOW }), ..proven.clone() };
    let unproven = Ledger { rebuilt_for: None, ..proven.clone() };
    let all = Ledger { reset: true, ..proven.clone() };
    let deleting = Ledger { deleting: true, ..proven };
    for ledger in [on_hold, unproven, all, deleting] {
        assert!(again(&ledger, &cluster, &of_node("a")).is_none());
    }
}

#[test]
fn r37_what_a_node_shows_and_nobody_claims_is_set_aside_for_it() {
    let cluster = Cluster::of(&["a", "b", "z"], vec![asking("a"), asking("b")])
        .shows("z", "s1", &["10.0.0.7", "10.0.0.1"])
        .shows("y", "s2", &["10.0.0.8"]);
    let before = unlisted();
    let ledger = again(&before, &cluster, &of_node("z")).expect("now").ledger;
    assert_eq!(reason(entry(&ledger, "10.0.0.7")), Some(&QuarantineReason::Observed));
    assert_eq!(entry(&ledger, "10.0.0.1"), entry(&before, "10.0.0.1"), "another holds it");
    assert!(!ledger.allocations.contains_key(&ip("10.0.0.8")));
    assert_eq!(again(&before, &cluster, &of_policy()).expect("now").ledger, before, "no policy has it");
    // Whose journal names it gets it by asking: nothing is lost.
    let claims = vec![asking("a"), asking("b"), holding("z", lease(&["10.0.0.7"], 4))];
    let claimed = Cluster::of(&["a", "b", "z"], claims);
    let Rebuilt { ledger: after, lost, .. } = again(&ledger, &claimed, &of_policy()).expect("now");
    assert_eq!((after, lost), (ledger, vec![]));
}

// R38, R66, R99: no live address changes, what no range has is told, and a second time changes nothing.
#[test]
fn r38_twice_is_once() {
    let claims = vec![holding("a", lease(&["10.0.0.1"], 1)), holding("c", lease(&["192.168.1.1"], 3))];
    let cluster = Cluster::of(&["a", "b", "c"], claims);
    let Rebuilt { ledger: once, outside, .. } = again(&unlisted(), &cluster, &of_policy()).expect("now");
    assert_eq!(outside, [("c".into(), ip("192.168.1.1"))]);
    assert_eq!(entry(&once, "10.0.0.1"), &held("a", 1));
    assert_eq!(again(&once, &cluster, &of_policy()).expect("now").ledger, once);
}

// A range is appended: what a live host shows there is set aside for it, and its own as soon as it asks; what is held, or is a gone
// Node's, or in no range, is left.
#[test]
fn rule5_rule11_what_hosts_show_in_a_new_range_is_noticed() {
    let before = unlisted();
    let cluster = Cluster::of(&["a", "b", "c"], Vec::new())
        .shows("a", "s1", &["10.0.0.1", "192.0.2.7"])
        .shows("c", "s1", &["10.0.0.5"])
        .shows("gone", "s1", &["10.0.0.6"]);
    let ledger = notice(&before, &pool(8), &cluster.facts(), NOW).expect("something new");
    assert_eq!(reason(entry(&ledger, "10.0.0.5")), Some(&QuarantineReason::Observed));
    assert_eq!((ledger.allocations.len(), ledger.sequence), (3, 6));
    assert_eq!(entry(&ledger, "10.0.0.1"), entry(&before, "10.0.0.1"));
    assert_eq!(notice(&ledger, &pool(8), &cluster.facts(), NOW), None);
    let held = Ledger { hold: Some(Hold { until: NOW + 1 }), ..before };
    assert_eq!(notice(&held, &pool(8), &cluster.facts(), NOW), None, "rule 6 comes first");
}
