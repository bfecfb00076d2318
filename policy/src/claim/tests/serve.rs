//! Serving: rules 1 to 3, 5, 10 and 11.

use super::fixtures::*;
use crate::claim::*;

fn declining(node: &str, address: &str) -> Enactment {
    let mut enactment = asking(node);
    request(&mut enactment).declined.insert(ip(address), stranger());
    enactment
}

fn releasing(node: &str) -> Enactment {
    let mut enactment = asking(node);
    request(&mut enactment).want = false;
    enactment
}

#[test]
fn r22_a_new_request_gets_an_address_in_one_write() {
    let mut desk = Desk::new(pool(8));
    let mut node = [asking("a")];
    let served = desk.serve(&mut node);
    assert_eq!(desk.ledger.sequence, 1);
    assert_eq!(served.answers.len(), 1);
    assert_eq!(granted_ips(&node[0]), desk.addresses());
    let (address, entry) = desk.ledger.allocations.iter().next().expect("an entry");
    assert!(desk.pool.contains(*address));
    assert!(entry.is_held_by(&"a".into()));
    assert_eq!((entry.sequence, entry.since, entry.kind), (1, NOW, EntryKind::Dynamic));
    assert_eq!(slot(&node[0]).grant.as_ref().expect("a grant").lease.sequence, 1);
}

// R23, R55: the choice is made inside the write, one after the other.
#[test]
fn r23_r55_a_batch_gets_distinct_addresses_in_one_write() {
    let mut desk = Desk::new(pool(8));
    let mut nodes: Vec<Enactment> = ["a", "b", "c", "d", "e", "f", "g", "h"].map(asking).into();
    desk.serve(&mut nodes);
    assert_eq!(desk.ledger.sequence, 1);
    assert_eq!(desk.addresses().len(), 8);
    let mut given: Vec<_> = nodes.iter().flat_map(granted_ips).collect();
    given.sort();
    assert_eq!(given, desk.addresses());
}

// Rule 1: all can read all ids. Who copies one has another that reads the same: nothing is let go, declined or restored by it.
#[test]
fn rule1_an_id_is_its_nodes() {
    let [own, copied] = ["a", "b"].map(|node| RequestId::of(&node.into(), "x/y"));
    assert_ne!(own, copied);
    assert_eq!((own.text(), copied.text()), ("x/y", "x/y"));
    let mut desk = Desk::new(pool(8));
    let mut holder = [enactment("a", Request::new(own.clone()))];
    desk.serve(&mut holder);
    let (held, before) = (granted_ips(&holder[0]), desk.ledger.clone());
    let copy = |change: &dyn Fn(&mut Request)| {
        let mut request = Request::new(copied.clone());
        change(&mut request);
        enactment("b", request)
    };
    let let_go = copy(&|request| request.want = false);
    let declines = copy(&|request| drop(request.declined.insert(held[0], stranger())));
    let asserts = copy(&|request| request.holds = Some(Lease { sequence: 9, ..lease(&[], 9) }));
    for other in [let_go, declines, asserts] {
        desk.serve(&mut [other]);
        let entry = |ledger: &Ledger| ledger.allocations[&held[0]].clone();
        assert_eq!(entry(&desk.ledger), entry(&before));
    }
    assert!(desk.ledger.allocations[&held[0]].is_held_by(&own));
}

#[test]
fn r24_who_holds_gets_the_same_and_nothing_is_written() {
    let mut desk = Desk::new(pool(8));
    let mut node = [asking("a")];
    desk.serve(&mut node);
    let first = granted_ips(&node[0]);
    slot_mut(&mut node[0]).grant = None;
    let served = desk.serve(&mut node);
    assert!(served.ledger.is_none());
    assert_eq!(granted_ips(&node[0]), first);
    // What is said already is not said again.
    let served = desk.serve(&mut node);
    assert!(served.ledger.is_none() && served.answers.is_empty());
}

#[test]
fn rule1_what_was_quarantined_becomes_held_again() {
    for reason in [QuarantineReason::Orphan, QuarantineReason::NodeGone] {
        let mut desk = Desk::new(pool(8)).with("10.0.0.3", quarantined("a", reason, None));
        let mut node = [asking("a")];
        desk.serve(&mut node);
        assert_eq!(granted_ips(&node[0]), ips(&["10.0.0.3"]));
        assert!(desk.entry("10.0.0.3").is_held_by(&"a".into()));
    }
}

#[test]
fn rule1_but_not_what_was_declined() {
    let mut desk = Desk::new(pool(8)).with("10.0.0.3", quarantined("a", QuarantineReason::Orphan, None));
    let mut node = [declining("a", "10.0.0.3")];
    desk.serve(&mut node);
    assert_ne!(granted_ips(&node[0]), ips(&["10.0.0.3"]));
    assert!(matches!(reason(desk.entry("10.0.0.3")), Some(QuarantineReason::Collision { .. })));
    // Asked again without the list, the stranger still has it.
    let mut again = [asking("a")];
    desk.serve(&mut again);
    assert_eq!(granted_ips(&again[0]), granted_ips(&node[0]));
}

// Rule 1: at most one Held entry of a family; what was set aside does not come back beside it.
#[test]
fn rule1_an_id_never_holds_two_of_a_family() {
    let mut desk = Desk::new(pool(8)).with("10.0.0.1", held("a", 1));
    desk.ledger.sequence = 5;
    let mut node = [holding("a", lease(&["10.0.0.2"], 4))];
    desk.serve(&mut node);
    assert_eq!(reason(desk.entry("10.0.0.1")), Some(&QuarantineReason::Orphan));
    for _ in 0..2 {
        desk.serve(&mut node);
        assert_eq!(granted_ips(&node[0]), ips(&["10.0.0.2"]));
        assert_eq!(desk.ledger.held_by(&"a".into()).collect::<Vec<_>>(), ips(&["10.0.0.2"]));
    }
}

#[test]
fn rule1_a_lost_journal_is_rekeyed_from_a_fresh_read_only() {
    let mut desk = Desk::new(pool(8)).with("10.0.0.3", held("a", 1));
    let mut node = [enactment("a", Request::new("new".into()))];
    let served = desk.serve_as(&mut node, |ask| ask.fresh = false);
    assert!(served.ledger.is_none() && served.answers.is_empty());
    assert_eq!(served.reread, vec![("e-a".into(), key())]);
    desk.serve(&mut node);
    assert_eq!(granted_ips(&node[0]), ips(&["10.0.0.3"]));
    assert!(desk.entry("10.0.0.3").is_held_by(&"new".into()));
    assert_eq!(desk.addresses().len(), 1);
}

// Two entries of the lost claim: one is taken up, the held one; the other is left to be tended.
#[test]
fn rule1_a_lost_journal_takes_up_one_entry() {
    let orphan = Entry { request: Some("older".into()), ..quarantined("a", QuarantineReason::Orphan, None) };
    let mut desk = Desk::new(pool(8)).with("10.0.0.2", orphan).with("10.0.0.3", held("a", 1));
    let mut node = [enactment("a", Request::new("new".into()))];
    desk.serve(&mut node);
    assert_eq!(granted_ips(&node[0]), ips(&["10.0.0.3"]));
    assert_eq!(desk.entry("10.0.0.2").request, Some("older".into()));
}

#[test]
fn r73_a_node_of_the_same_name_does_not_inherit() {
    let mut desk = Desk::new(pool(8)).with("10.0.0.3", held("a", 1));
    let mut node = [enactment("a", Request::new("new".into()))];
    node[0].node_uid = "another".into();
    desk.serve(&mut node);
    assert_ne!(granted_ips(&node[0]), ips(&["10.0.0.3"]));
    assert!(desk.entry("10.0.0.3").is_held_by(&"a".into()));
}

// Rule 7: the entry went over to the successor; the predecessor's enactment asks in vain.
#[test]
fn rule7_the_predecessors_request_waits() {
    let mut desk = Desk::new(pool(8)).with("10.0.0.3", held("a", 1));
    let mut node = [asking("a")];
    node[0].node_uid = "before".into();
    let served = desk.serve(&mut node);
    assert!(served.ledger.is_none() && served.answers.is_empty());
}

#[test]
fn r67_release_compares_by_id() {
    let mut desk = Desk::new(pool(1));
    let mut a = [asking("a")];
    desk.serve(&mut a);
    let mut gone = [releasing("a")];
    desk.serve(&mut gone);
    assert!(desk.addresses().is_empty());
    assert_eq!(refused(&gone[0]).0, RefusalReason::Released);
    let mut b = [asking("b")];
    desk.serve(&mut b);
    // Repeated, and stale: it is b's now.
    let served = desk.serve(&mut [releasing("a")]);
    assert!(served.ledger.is_none());
    assert!(desk.entry("10.0.0.1").is_held_by(&"b".into()));
}

#[test]
fn rule3_a_release_leaves_the_stranger_on_the_wire_in_quarantine() {
    let collision = QuarantineReason::Collision { by: stranger() };
    let mut desk = Desk::new(pool(8)).with("10.0.0.1", quarantined("a", collision, None));
    desk.serve(&mut [releasing("a")]);
    assert_eq!(desk.addresses(), ips(&["10.0.0.1"]));
}

#[test]
fn rule10_declined_is_quarantined_and_another_given_in_one_write() {
    let mut desk = Desk::new(pool(2)).with("10.0.0.1", held("a", 1));
    let mut node = [declining("a", "10.0.0.1")];
    desk.serve(&mut node);
    assert_eq!(desk.ledger.sequence, 2);
    let collision = QuarantineReason::Collision { by: stranger() };
    assert_eq!(reason(desk.entry("10.0.0.1")), Some(&collision));
    assert_eq!(granted_ips(&node[0]), ips(&["10.0.0.2"]));
}

#[test]
fn r71_what_a_holder_asserts_is_restored() {
    let mut desk = Desk::new(pool(8));
    desk.ledger.sequence = 7;
    let mut node = [holding("a", lease(&["10.0.0.3"], 7))];
    let served = desk.serve_as(&mut node, |ask| ask.fresh = false);
    assert_eq!(served.reread.len(), 1);
    desk.serve_as(&mut node, |ask| ask.ready = false);
    assert!(desk.entry("10.0.0.3").is_held_by(&"a".into()));
    assert_eq!(granted_ips(&node[0]), ips(&["10.0.0.3"]));
}

// R71, rule 5: the holder is served before the waiter, whoever stands first in the batch.
#[test]
fn r71_a_waiter_in_the_same_batch_does_not_get_it() {
    let mut desk = Desk::new(pool(1));
    desk.ledger.sequence = 7;
    let mut nodes = [asking("a"), holding("b", lease(&["10.0.0.1"], 7))];
    // Not even where the holder must be read again first.
    let served = desk.serve_as(&mut nodes, |ask| ask.fresh = false);
    assert!(served.ledger.is_none());
    desk.serve(&mut nodes);
    assert!(desk.entry("10.0.0.1").is_held_by(&"b".into()));
    assert_eq!(refused(&nodes[0]).0, RefusalReason::NoAddress);
}

#[test]
fn r99_what_no_range_covers_is_left_alone() {
    let mut desk = Desk::new(pool(8));
    desk.ledger.sequence = 7;
    let served = desk.serve(&mut [holding("a", lease(&["192.168.1.1"], 7))]);
    assert!(served.ledger.is_none() && served.answers.is_empty());
}

#[test]
fn r100_held_by_another_says_by_whom() {
    let mut desk = Desk::new(pool(8)).with("10.0.0.3", held("b", 9));
    let mut node = [holding("a", lease(&["10.0.0.3"], 4))];
    let served = desk.serve(&mut node);
    assert!(served.ledger.is_none());
    let (reason, message) = refused(&node[0]);
    assert_eq!(reason, RefusalReason::HeldByAnother);
    assert_eq!(message, "10.0.0.3 is held by node b, policy static-ip");
}

#[test]
fn rule6_an_assertion_of_later_sequence_stops_everything() {
    let mut desk = Desk::new(pool(8)).with("10.0.0.3", held("b", 2));
    for asserted in [lease(&["10.0.0.4"], 3), lease(&["10.0.0.3"], 3)] {
        let mut nodes = [asking("c"), holding("a", asserted)];
        let served = desk.serve(&mut nodes);
        assert!(served.went_back);
        assert!(served.ledger.is_none() && served.answers.is_empty());
    }
    // On hold, or from a pool that was, it says nothing about this ledger's age.
    let mut foreign = lease(&["10.0.0.4"], 3);
    foreign.pool = "earlier".into();
    assert!(!desk.serve(&mut [holding("a", foreign)]).went_back);
    desk.ledger.hold = Some(Hold { until: NOW + 1 });
    assert!(!desk.serve(&mut [holding("a", lease(&["10.0.0.4"], 9))]).went_back);
}

// Rule 5, R98: holders first. Self-service is the same function, so it gives nothing either.
#[test]
fn rule5_r98_a_ledger_that_is_not_proven_gives_nothing() {
    let changes: [fn(&mut Ledger); 6] = [
        |ledger| ledger.rebuilt_for = None,
        |ledger| ledger.rebuilt_for = Some("earlier".into()),
        |ledger| ledger.reset = true,
        |ledger| ledger.hold = Some(Hold { until: NOW + 1 }),
        |ledger| ledger.deleting = true,
        |ledger| ledger.offsets_agree = false,
    ];
    for change in changes {
        let mut desk = Desk::new(pool(8)).with("10.0.0.1", held("b", 1));
        change(&mut desk.ledger);
        assert!(!desk.ledger.gives());
        let served = desk.serve(&mut [asking("a"), asking("b")]);
        assert!(served.ledger.is_none() && served.answers.is_empty());
        assert!(!confirms(Some(&desk.ledger), &"b".into(), &lease(&["10.0.0.1"], 1)));
        // Letting go is the holder's word and always heard.
        desk.serve(&mut [releasing("b")]);
        assert!(desk.addresses().is_empty());
    }
}

#[test]
fn r32_r69_exhausted_is_said_and_room_is_given() {
    let mut desk = Desk::new(pool(1));
    let mut nodes = [asking("a"), asking("b")];
    desk.serve(&mut nodes);
    let (reason, message) = refused(&nodes[1]);
    assert_eq!(reason, RefusalReason::NoAddress);
    assert!(message.contains("pool pool is exhausted") && message.contains("node b"), "{message}");
    // The same refusal is not written again.
    assert!(desk.serve(&mut nodes).answers.is_empty());
    desk.serve(&mut [releasing("a")]);
    desk.serve(&mut nodes[1..]);
    assert_eq!(granted_ips(&nodes[1]), ips(&["10.0.0.1"]));
    assert!(slot(&nodes[1]).refused.is_none());
}

#[test]
fn r26_not_ready_gets_nothing_new_and_keeps_what_it_has() {
    let mut desk = Desk::new(pool(8)).with("10.0.0.3", held("b", 1));
    let mut nodes = [asking("a"), asking("b")];
    desk.serve_as(&mut nodes, |ask| ask.ready = false);
    assert!(granted_ips(&nodes[0]).is_empty());
    assert_eq!(granted_ips(&nodes[1]), ips(&["10.0.0.3"]));
}

#[test]
fn what_a_vanished_node_asks_for_is_not_served() {
    let mut desk = Desk::new(pool(8)).with("10.0.0.3", quarantined("b", QuarantineReason::NodeGone, None));
    let mut nodes = [asking("a"), asking("b"), holding("c", lease(&["10.0.0.4"], 1))];
    let served = desk.serve_as(&mut nodes, |ask| ask.live = false);
    assert!(served.ledger.is_none() && served.answers.is_empty());
}

#[test]
fn without_a_pool_holders_keep_waiters_are_told_and_releases_end() {
    let nodes = [
        asking("a"),
        holding("b", lease(&["10.0.0.3"], 1)),
        granted("c", lease(&["10.0.0.4"], 1)),
        releasing("d"),
    ];
    let asks: Vec<Asked<'_>> = nodes.iter().flat_map(asked).collect();
    let said: Vec<(String, RefusalReason, String)> = serve_without_pool(&asks)
        .into_iter()
        .map(|answer| match answer.reply {
            Reply::Refuse(refusal) => (answer.id.to_string(), refusal.reason, refusal.message),
            Reply::Grant(grant) => panic!("{grant:?}"),
        })
        .collect();
    let told = (
        "a".to_owned(),
        RefusalReason::NoSuchPool,
        "no pool named pool; make it, or correct the name".to_owned(),
    );
    let ended = ("d".to_owned(), RefusalReason::Released, String::new());
    assert_eq!(said, [told, ended]);
}

#[test]
fn rule2_an_answer_fits_only_who_asked_and_still_asks_the_same() {
    let mut desk = Desk::new(pool(8));
    let mut node = [asking("a")];
    let served = desk.serve(&mut node);
    let answer = &served.answers[0];
    assert!(answer.fits(&asking("a")));
    let mut recreated = asking("a");
    recreated.uid = "another".into();
    assert!(!answer.fits(&recreated));
    assert!(!answer.fits(&enactment("a", Request::new("new".into()))));
    assert!(!answer.fits(&releasing("a")));
    let mut empty = asking("a");
    empty.slots.clear();
    assert!(!answer.fits(&empty));
}

#[test]
fn rule2_a_late_answer_does_not_undo_a_later_one() {
    let mut desk = Desk::new(pool(1)).with("10.0.0.1", held("x", 1));
    let late = serve(&desk.ledger, &pool(1), &Default::default(), &asked(&asking("a")), NOW).answers;
    assert!(matches!(&late[0].reply, Reply::Refuse(refusal) if refusal.reason == RefusalReason::NoAddress));
    desk.ledger.allocations.clear();
    let mut node = [asking("a")];
    desk.serve(&mut node);
    assert_eq!(granted_ips(&node[0]), ips(&["10.0.0.1"]));
    assert!(!late[0].fits(&node[0]), "it was written when nothing was granted");
}

/// Two captures of one policy on one pool, asked for in one write.
fn asking_two(node: &str) -> Enactment {
    let mut enactment = asking(node);
    let more = SlotKey { capture: "more".into(), ..key() };
    let request = Some(Request::new(format!("{node}-more").as_str().into()));
    enactment.slots.insert(more, Slot { request, ..Slot::default() });
    enactment
}

#[test]
fn rule1_all_captures_of_an_enactment_are_served_or_none() {
    let mut desk = Desk::new(pool(3));
    let mut nodes = [asking_two("a"), asking_two("b"), asking("c")];
    desk.serve(&mut nodes);
    let has = |node: &Enactment| node.slots.values().filter(|slot| slot.grant.is_some()).count();
    // The last address would be half of what b needs; c needs one.
    assert_eq!(nodes.iter().map(has).collect::<Vec<_>>(), [2, 0, 1]);
    let why = |slot: &Slot| slot.refused.as_ref().map(|refused| (refused.reason, refused.message.clone()));
    let refusals: Vec<_> = nodes[1].slots.values().filter_map(why).collect();
    assert!(refusals.iter().all(|(reason, _)| *reason == RefusalReason::NoAddress));
    assert!(refusals[0].1.starts_with("all captures of policy"), "{refusals:?}");
    // c took the last one, which both of b's are told now; then nothing is written for those who wait.
    let sequence = desk.ledger.sequence;
    desk.serve(&mut nodes);
    let served = desk.serve(&mut nodes);
    assert!(served.ledger.is_none() && served.answers.is_empty());
    assert_eq!(desk.ledger.sequence, sequence);
}

#[test]
fn sequences_at_their_end_do_not_panic() {
    let mut ledger = ledger();
    ledger.sequence = u64::MAX;
    let node = asking("a");
    let served = serve(&ledger, &pool(8), &Default::default(), &asked(&node), Time::MAX);
    assert_eq!(served.ledger.expect("a write").sequence, u64::MAX);
}
