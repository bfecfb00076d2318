//! How many at once, who next, and when to stop.

use std::collections::BTreeMap;

use proptest::prelude::*;

use super::{MaxUnavailable, Part, Rollout, Standing, Summary, roll};
use crate::claim::NodeName;

fn name(i: usize) -> NodeName {
    NodeName::new(format!("node{i}"))
}

fn nodes(count: usize) -> BTreeMap<NodeName, bool> {
    (0..count).map(|i| (name(i), true)).collect()
}

fn parts(standings: &[Standing]) -> Vec<Part> {
    let part = |(i, standing): (usize, &Standing)| Part { node: name(i), generation: 2, standing: *standing };
    standings.iter().enumerate().map(part).collect()
}

fn slots(list: &[usize]) -> BTreeMap<NodeName, i64> {
    list.iter().map(|i| (name(*i), 2)).collect()
}

fn rolled(max: MaxUnavailable, standings: &[Standing], given: &[usize]) -> Rollout {
    roll(2, max, &nodes(standings.len()), &parts(standings), &slots(given))
}

/// The table of kubernetes-nmstate: rounded up, never none, and what can't be read is half.
#[test]
fn how_many_at_once() {
    use MaxUnavailable::{Number, Percent};
    for (max, nodes, expected) in [
        (Percent(50), 5, 3),
        (Percent(0), 5, 1),
        (Percent(100), 5, 5),
        (Percent(30), 10, 3),
        (Percent(31), 10, 4),
        (Percent(50), 0, 1),
        (Number(2), 5, 2),
        (Number(0), 5, 1),
        (Number(9), 5, 9),
    ] {
        assert_eq!(max.of(nodes), expected, "{max:?} of {nodes}");
    }
    assert_eq!(MaxUnavailable::from_text("42%"), Some(Percent(42)));
    for text in ["asdf", "42", "%", "-1%", "+1%", "50 %", ""] {
        assert_eq!(MaxUnavailable::from_text(text), None, "{text:?}");
    }
}

#[test]
fn slots_go_to_those_who_wait_by_name() {
    use Standing::{Available, Pending, Progressing};
    let max = MaxUnavailable::Number(2);
    assert_eq!(rolled(max, &[Pending, Pending, Pending], &[]).slots, slots(&[0, 1]));
    assert_eq!(rolled(max, &[Progressing, Pending, Pending], &[0]).slots, slots(&[0, 1]));
    // One is through: its slot is the next one's.
    assert_eq!(rolled(max, &[Available, Progressing, Pending], &[0, 1]).slots, slots(&[1, 2]));
    assert_eq!(rolled(max, &[Available, Available, Available], &[1]).slots, slots(&[]));
}

/// A node that waits for an address needs none, and one that failed keeps its own.
#[test]
fn who_needs_a_slot() {
    use Standing::{Failing, Pending, Refused, Retrying, Waiting};
    let max = MaxUnavailable::Number(2);
    assert_eq!(rolled(max, &[Waiting, Refused, Pending], &[]).slots, slots(&[2]));
    // Whoever lost its address on the way gives its slot back.
    assert_eq!(rolled(max, &[Waiting, Refused, Pending], &[0, 1]).slots, slots(&[2]));
    assert_eq!(rolled(max, &[Failing, Pending, Pending], &[0]).slots, slots(&[0, 1]));
    assert_eq!(rolled(max, &[Retrying, Retrying, Pending], &[0, 1]).slots, slots(&[0, 1]));
}

#[test]
fn a_vanished_node_gives_its_slot_back() {
    let given = BTreeMap::from([(NodeName::from("gone"), 2), (name(0), 2)]);
    let standings = parts(&[Standing::Progressing, Standing::Pending]);
    let rollout = roll(2, MaxUnavailable::Number(2), &nodes(2), &standings, &given);
    assert_eq!(rollout.slots, slots(&[0, 1]));
}

/// A new generation while some are in the middle of the old: they are unavailable still, and count.
#[test]
fn an_edit_in_the_middle_gives_no_slot_twice() {
    let old = Part { node: name(0), generation: 1, standing: Standing::Progressing };
    let waits = parts(&[Standing::Unknown, Standing::Pending, Standing::Pending]);
    let parts = [vec![old], waits[1..].to_vec()].concat();
    let given = BTreeMap::from([(name(0), 1)]);
    let rollout = roll(2, MaxUnavailable::Number(2), &nodes(3), &parts, &given);
    assert_eq!(rollout.slots, BTreeMap::from([(name(0), 1), (name(1), 2)]));
}

#[test]
fn as_many_failures_as_slots_and_the_rest_gives_up() {
    use Standing::{Aborted, Available, Failing, Pending, Retrying};
    let max = MaxUnavailable::Number(2);
    assert!(!rolled(max, &[Failing, Retrying, Pending], &[0, 1]).aborted);
    let rollout = rolled(max, &[Failing, Failing, Pending], &[0, 1]);
    assert!(rollout.aborted);
    assert_eq!(rollout.slots, slots(&[0, 1]));
    // What failed in another generation is no reason to give up in this one.
    let old = |i| Part { node: name(i), generation: 1, standing: Failing };
    assert!(!roll(2, max, &nodes(2), &[old(0), old(1)], &slots(&[])).aborted);
    let done = rolled(max, &[Failing, Failing, Aborted, Available], &[0, 1, 2]);
    assert_eq!(done.slots, slots(&[0, 1]));
    assert_eq!(done.summary, Summary::Degraded { failed: 2, matching: 4, aborted: 1 });
}

#[test]
fn what_a_policy_comes_to() {
    use Standing::{Available, Pending, Progressing, Retrying, Unknown};
    let max = MaxUnavailable::DEFAULT;
    assert_eq!(roll(2, max, &nodes(0), &[], &slots(&[])).summary, Summary::Ignored);
    let summary = |standings: &[Standing]| rolled(max, standings, &[]).summary;
    let progressing =
        |finished, ready, pending| Summary::Progressing { finished, ready, pending, not_ready: 0 };
    assert_eq!(summary(&[Available, Progressing, Unknown]), progressing(1, 3, 0));
    assert_eq!(summary(&[Available, Pending]), progressing(1, 2, 1));
    assert_eq!(summary(&[Available, Retrying]), Summary::Degraded { failed: 1, matching: 2, aborted: 0 });
    let all = Summary::Available { available: 2, matching: 2, not_ready: 0 };
    assert_eq!(summary(&[Available, Available]), all);
    // A node that isn't Ready holds nobody up.
    let mut some = nodes(2);
    some.insert(name(1), false);
    let rollout = roll(2, max, &some, &parts(&[Available]), &slots(&[]));
    assert_eq!(rollout.summary, Summary::Available { available: 1, matching: 2, not_ready: 1 });
}

fn any_standing() -> impl Strategy<Value = Standing> {
    use Standing::*;
    prop::sample::select(vec![
        Unknown,
        Waiting,
        Refused,
        Pending,
        Progressing,
        Available,
        Retrying,
        Failing,
        Aborted,
    ])
}

proptest! {
    /// Whatever is there, no slot is given beyond the limit; nobody loses one in the middle; and where nobody failed and
    /// somebody waits, somebody is unavailable: it never stands still.
    #[test]
    fn never_more_than_may_be_and_never_at_a_stand(
        standings in prop::collection::vec((any_standing(), 1i64..3, any::<bool>()), 0..12),
        max in 0u64..6,
    ) {
        let all: Vec<Part> = standings
            .iter()
            .enumerate()
            .map(|(i, (standing, generation, _))| Part { node: name(i), generation: *generation, standing: *standing })
            .collect();
        let given: BTreeMap<NodeName, i64> = standings
            .iter()
            .enumerate()
            .filter(|(_, (.., has))| *has)
            .map(|(i, (_, generation, _))| (name(i), *generation))
            .collect();
        let max = MaxUnavailable::Number(max);
        let rollout = roll(2, max, &nodes(all.len()), &all, &given);
        let limit = max.of(all.len());
        prop_assert!(rollout.slots.len() <= limit.max(given.len()));
        for part in &all {
            let busy = matches!(part.standing, Standing::Progressing | Standing::Retrying | Standing::Failing);
            if given.contains_key(&part.node) && busy && part.generation == 2 {
                prop_assert!(rollout.slots.contains_key(&part.node));
            }
            let waits = part.standing == Standing::Pending && part.generation == 2;
            prop_assert!(!waits || rollout.aborted || !rollout.slots.is_empty());
        }
        let again = roll(2, max, &nodes(all.len()), &all, &rollout.slots);
        prop_assert_eq!(again, rollout);
    }
}
