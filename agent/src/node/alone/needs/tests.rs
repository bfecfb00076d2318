use super::*;

fn answer() -> Need {
    Need::Answer { policy: "one".into(), pool: "traffic-1".into(), id: "id".into() }
}

fn count() -> Need {
    Need::Count { policy: "one".into(), generation: 1, standing: Standing::Available }
}

fn needs(need: &Need, nobody_leads: bool, now: Instant) -> Needs {
    let mut needs = Needs::default();
    needs.are([need.clone()].into(), nobody_leads, now);
    needs
}

/// No pool is this host's alone.
fn nobodys(_: &PoolName) -> bool {
    false
}

/// Of pools that only this host serves, all are looked after together, each once; of others one after the other.
#[test]
fn what_only_this_host_serves_is_due_together() {
    let now = Instant::now();
    let of = |pool: &str, id: &str| Need::Answer { policy: "one".into(), pool: pool.into(), id: id.into() };
    let all = [of("cut-1", "a"), of("cut-1", "b"), of("cut-2", "c"), of("shared", "d"), count()];
    let mut waiting = Needs::default();
    waiting.are(all.into(), true, now);
    let is_cut = |pool: &PoolName| pool.as_str().starts_with("cut");
    assert_eq!(waiting.due(now, is_cut), [of("cut-1", "a"), of("cut-2", "c")]);
    assert_eq!(waiting.due(now, nobodys), [of("cut-1", "a")]);
    waiting.came(&of("cut-2", "c"), &Came::Overtaken, 0, now);
    assert_eq!(waiting.due(now, is_cut), [of("cut-1", "a")], "others are not hurried");
}

#[test]
fn a_leader_has_a_moment_before_anybody_asks_for_one() {
    let now = Instant::now();
    let waiting = needs(&answer(), false, now);
    assert_eq!(waiting.due(now, nobodys), []);
    assert_eq!(waiting.due(now + GRACE.1, nobodys), [answer()]);
    assert!(waiting.again(now).is_some_and(|wait| wait >= GRACE.0 && wait <= GRACE.1));
    // Known to be alone, nobody waits for nobody.
    assert_eq!(needs(&answer(), true, now).due(now, nobodys), [answer()]);
}

#[test]
fn a_leader_s_need_is_a_leader_s_but_for_claims_that_it_leaves() {
    let now = Instant::now();
    for (need, late) in [(answer(), Turn::Ours), (count(), Turn::Theirs)] {
        let waiting = needs(&need, false, now);
        assert_eq!(waiting.turn(&need, true, now), Turn::Theirs);
        assert_eq!(waiting.turn(&need, true, now + UNSERVED), late);
        assert_eq!(waiting.turn(&need, false, now), Turn::Ours);
    }
}

/// What a leader owes is asked for rarely, but at the latest when it may be taken from it.
#[test]
fn patience_ends_when_the_claim_is_our_own() {
    let now = Instant::now();
    let mut waiting = needs(&answer(), false, now);
    let mut at = now + GRACE.1;
    let mut asked = 0;
    while waiting.turn(&answer(), true, at) == Turn::Theirs {
        waiting.came(&answer(), &Came::Theirs, 0, at);
        at += waiting.again(at).unwrap();
        asked += 1;
    }
    assert!(at <= now + UNSERVED);
    assert_eq!(asked, 3, "after 1, 6 and 16 s");
}

/// Others may be quicker for ever: the pauses grow to a limit, which the ledger's length sets, or how many have the policy, and never
/// stop.
#[test]
fn being_overtaken_is_tried_again_for_ever() {
    let seconds = Duration::from_secs;
    let (answers, slots) = ([0, 100, 256, 5_000], [0, 32, 5_000]);
    let answers = answers.into_iter().zip([LONGEST.0, seconds(50), seconds(128), LONGEST.1]);
    let slots = slots.into_iter().zip([LONGEST.0, seconds(16), SLOTS]);
    let all = answers.map(|row| (answer(), row)).chain(slots.map(|row| (count(), row)));
    for (need, (many, limit)) in all {
        let mut at = Instant::now();
        let mut waiting = needs(&need, true, at);
        let mut longest = Duration::ZERO;
        for _ in 0..200 {
            waiting.came(&need, &Came::Overtaken, many, at);
            let pause = waiting.again(at).unwrap();
            assert!(pause > Duration::ZERO && pause <= limit + QUICK);
            longest = longest.max(pause);
            at += pause;
            assert_eq!(waiting.due(at, nobodys), std::slice::from_ref(&need));
        }
        assert!(longest > limit / 2, "{need:?}, {many}: {longest:?} of {limit:?}");
    }
}

#[test]
fn what_is_no_longer_needed_is_forgotten() {
    let now = Instant::now();
    let mut waiting = needs(&answer(), true, now);
    waiting.are(BTreeSet::new(), true, now);
    assert_eq!(waiting.due(now + UNSERVED, nobodys), []);
    assert_eq!(waiting.again(now), None);
}

/// An answer that this host didn't write is a leader's.
#[test]
fn whoever_answers_leads() {
    let now = Instant::now();
    let mut waiting = needs(&answer(), false, now);
    assert!(!waiting.are([answer(), count()].into(), false, now), "it still waits");
    assert!(waiting.are([count()].into(), false, now), "somebody answered");
    assert!(!waiting.are(BTreeSet::new(), false, now), "a count says nothing");
    let mut alone = needs(&answer(), true, now);
    alone.came(&answer(), &Came::Done, 1, now);
    assert!(!alone.are(BTreeSet::new(), true, now), "this host did");
    // … and to another request of the same pool with it.
    let other = Need::Answer { policy: "two".into(), pool: "traffic-1".into(), id: "id-2".into() };
    alone.are([answer(), other].into(), true, now);
    alone.came(&answer(), &Came::Done, 1, now);
    assert!(!alone.are(BTreeSet::new(), true, now), "this host did");
}

/// One that fails again and again, a pool whose ledger the API won't have, say, is behind the others that are due.
#[test]
fn what_fails_is_behind_what_is_due() {
    let now = Instant::now();
    let of = |pool: &str| Need::Answer { policy: "one".into(), pool: pool.into(), id: "id".into() };
    let mut waiting = Needs::default();
    waiting.are([of("broken"), of("sound"), count()].into(), true, now);
    assert_eq!(waiting.due(now, nobodys), [of("broken")]);
    waiting.failed(&of("broken"), now);
    let later = now + QUICK;
    assert_eq!(waiting.due(later, nobodys), [of("sound")]);
    waiting.came(&of("sound"), &Came::Nothing, 0, later);
    assert_eq!(waiting.due(later, nobodys), [count()]);
    waiting.came(&count(), &Came::Nothing, 0, later);
    assert_eq!(waiting.due(later, nobodys), [of("broken")], "it is tried again");
}
