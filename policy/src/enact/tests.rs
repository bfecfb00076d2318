//! Every row of what a host does about a policy.

use std::collections::BTreeSet;
use std::net::IpAddr;

use serde_json::json;

use super::{Next, Prospect, Retries, Said, View, named, next, strays};
use crate::rollout::Standing;
use crate::state::IfName;
use crate::template::literal_addresses;

const MET: Prospect = Prospect::Rendered { met: true, said: true };
const UNMET: Prospect = Prospect::Rendered { met: false, said: true };
const NEWS: Prospect = Prospect::Rendered { met: false, said: false };

fn view(prospect: Prospect) -> View {
    View {
        now: 100,
        generation: 2,
        prospect,
        said: None,
        asks_since: None,
        slot: None,
        aborted: None,
        retry_at: None,
        gave_up: false,
    }
}

fn said(standing: Standing, message: &str) -> Option<Said> {
    Some(Said { generation: 2, standing, message: message.to_owned() })
}

fn say(standing: Standing, message: &str) -> Next {
    Next::Say { standing, message: message.to_owned() }
}

const REST: Next = Next::Rest { until: None };

/// Most answers come at once: only where one doesn't is there anything to say, and only at first.
#[test]
fn that_it_waits_is_said_after_a_moment() {
    let mut asks = View { asks_since: Some(91), ..view(Prospect::Asking { message: "why".to_owned() }) };
    assert_eq!(next(&asks), Next::Rest { until: Some(101) });
    asks.now = 101;
    assert_eq!(next(&asks), say(Standing::Waiting, "why"));
    asks.now = 100;
    asks.said = said(Standing::Available, "");
    assert_eq!(next(&asks), say(Standing::Waiting, "why"), "what it says by now is not so");
}

#[test]
fn what_is_being_done_is_said_of_what_is_rendered() {
    let mut view = View { said: said(Standing::Progressing, ""), ..view(UNMET) };
    assert!(view.says(Standing::Progressing) && !view.says(Standing::Available));
    view.prospect = NEWS;
    assert!(!view.says(Standing::Progressing));
    view.prospect = UNMET;
    view.generation = 3;
    assert!(!view.says(Standing::Progressing));
}

#[test]
fn what_stands_in_the_way_is_said_once() {
    let message = || "why".to_owned();
    for (prospect, standing) in [
        (Prospect::Broken { message: message() }, Standing::Failing),
        (Prospect::Asking { message: message() }, Standing::Waiting),
        (Prospect::Refused { message: message() }, Standing::Refused),
    ] {
        let mut view = view(prospect);
        assert_eq!(next(&view), say(standing, "why"));
        view.said = said(standing, "why");
        assert_eq!(next(&view), REST);
        view.said = said(standing, "another reason");
        assert_eq!(next(&view), say(standing, "why"));
        // What is said of an earlier generation is not said of this one.
        view.said = said(standing, "why");
        view.generation = 3;
        assert_eq!(next(&view), say(standing, "why"));
    }
}

#[test]
fn a_slot_is_waited_for_then_used() {
    let mut view = view(UNMET);
    assert_eq!(next(&view), say(Standing::Pending, ""));
    view.said = said(Standing::Pending, "Waiting for progressing nodes to finish");
    assert_eq!(next(&view), REST);
    // A slot of an earlier generation is none.
    view.slot = Some(1);
    assert_eq!(next(&view), REST);
    view.slot = Some(2);
    assert_eq!(next(&view), Next::Apply { repair: false });
    view.retry_at = Some(101);
    assert_eq!(next(&view), Next::Rest { until: Some(101) });
    view.now = 101;
    assert_eq!(next(&view), Next::Apply { repair: false });
}

#[test]
fn who_waits_while_too_many_fail_gives_up_and_who_has_a_slot_goes_on() {
    let mut view = view(UNMET);
    view.aborted = Some(2);
    assert_eq!(next(&view), say(Standing::Aborted, ""));
    view.said = said(Standing::Aborted, "aborted");
    assert_eq!(next(&view), REST);
    view.slot = Some(2);
    assert_eq!(next(&view), Next::Apply { repair: false });
    // Of an earlier generation: this one has its own chance.
    view.slot = None;
    view.aborted = Some(1);
    assert_eq!(next(&view), say(Standing::Pending, ""));
}

#[test]
fn drift_is_put_right_without_a_slot() {
    let mut view = view(UNMET);
    view.said = said(Standing::Available, "successfully reconciled");
    assert_eq!(next(&view), Next::Apply { repair: true });
    // Somebody fights: the brake.
    view.retry_at = Some(105);
    assert_eq!(next(&view), Next::Rest { until: Some(105) });
    view.prospect = MET;
    assert_eq!(next(&view), REST);
    // Another address than the enactment says is a change, and takes a slot.
    view.prospect = NEWS;
    assert_eq!(next(&view), say(Standing::Pending, ""));
}

#[test]
fn what_is_met_already_needs_no_slot() {
    let view = view(Prospect::Rendered { met: true, said: false });
    assert_eq!(next(&view), say(Standing::Available, ""));
}

#[test]
fn failed_for_good_rests_until_something_changes_or_the_agent_starts_anew() {
    let mut view = view(UNMET);
    view.said = said(Standing::Failing, "no such device");
    view.slot = Some(2);
    view.gave_up = true;
    assert_eq!(next(&view), REST);
    view.gave_up = false;
    assert_eq!(next(&view), Next::Apply { repair: false });
    view.gave_up = true;
    view.prospect = NEWS;
    assert_eq!(next(&view), Next::Apply { repair: false });
}

#[test]
fn a_state_that_came_about_by_itself_is_no_failure() {
    let mut view = view(MET);
    view.said = said(Standing::Failing, "no such device");
    view.gave_up = true;
    assert_eq!(next(&view), say(Standing::Available, ""));
}

#[test]
fn why_it_failed_is_said_until_it_is_tried_again_and_that_needs_no_new_slot() {
    let mut view = view(UNMET);
    view.said = said(Standing::Retrying, "no such device");
    view.retry_at = Some(105);
    assert_eq!(next(&view), Next::Rest { until: Some(105) });
    view.now = 105;
    assert_eq!(next(&view), Next::Apply { repair: false });
}

#[test]
fn retries_double_up_to_the_longest_and_end() {
    let waits: Vec<_> = (1..=6).map(|attempts| Retries::default().after(attempts)).collect();
    assert_eq!(waits, [Some(1), Some(2), Some(4), Some(8), None, None]);
    let many = Retries { most: 100, ..Retries::default() };
    assert_eq!((many.after(6), many.after(99)), (Some(30), Some(30)));
}

/// An address that a policy uses elsewhere by now, or nowhere, is a stray; one whose link can't be told by its name is not.
#[test]
fn strays_are_where_no_policy_has_them() {
    let at = |link: &str, ip: &str| (IfName::new(link).unwrap(), ip.parse::<IpAddr>().unwrap());
    let pooled = BTreeSet::from([
        at("eth0", "10.0.0.1"),
        at("eth1", "10.0.0.1"),
        at("eth0", "10.0.0.2"),
        at("eth2", "fd00::1"),
        at("eth0", "10.0.0.9"),
    ]);
    let on = |name: &str, family: &str, ip: &str| json!({"interfaces": [{"name": name, family: {"address": [{"ip": ip}]}}]});
    let enacted =
        [on("eth1", "ipv4", "10.0.0.1"), on("eth0", "ipv4", "10.0.0.2"), on("by-its-mac", "ipv6", "fd00::1")];
    assert_eq!(strays(&pooled, &enacted), BTreeSet::from([at("eth0", "10.0.0.1"), at("eth0", "10.0.0.9")]));
    assert_eq!(strays(&BTreeSet::new(), &enacted), BTreeSet::new());
}

/// However a document writes an address, what is looked for on a card is what was claimed.
#[test]
fn an_address_of_a_state_is_read_as_the_one_that_is_claimed() {
    let addresses =
        json!([{"ip": " 10.0.0.1"}, {"ip": "::ffff:10.0.0.2"}, {"ip": "fd00:0::7"}, {"ip": "no"}]);
    let state = json!({"interfaces": [{"name": "eth0", "ipv6": {"enabled": true, "address": addresses}}]});
    let read: Vec<IpAddr> = named(&state).map(|(ip, _)| ip).collect();
    let claimed: Vec<IpAddr> = literal_addresses(&state).into_iter().map(|(ip, _)| ip).collect();
    assert_eq!(read, claimed);
    assert_eq!(read, ["10.0.0.1", "10.0.0.2", "fd00::7"].map(|ip| ip.parse::<IpAddr>().unwrap()));
}
