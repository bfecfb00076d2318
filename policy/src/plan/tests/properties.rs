//! What holds for every host and every document.

use super::{applied, comparable, difference};
use crate::dice::thrown;
use crate::plan::testing::{Scenario, scenario};
use crate::plan::{Plan, Step, memory, plan, verify};
use crate::state::option::OptValue;
use crate::state::{Desired, Family, Observed, Route, RouteKey, RouteProtocol};
use proptest::prelude::*;
use proptest::strategy::ValueTree;
use serde_json::{Value, json};

/// The plan of a scenario, if its document can be brought about.
fn planned(bytes: &[u8]) -> Option<(Scenario, Desired, Plan)> {
    let scenario = scenario(bytes);
    let desired = Desired::from_value(&scenario.document).expect("a generated document is well-formed");
    let plan = plan(&scenario.host, &desired).ok()?;
    Some((scenario, desired, plan))
}

/// Whether a step leaves links where they are: the kernel drops the routes of one that goes, or goes down.
fn leaves_links_alone(step: &Step) -> bool {
    !matches!(
        step,
        Step::DeleteLink { .. }
            | Step::SetDown { .. }
            | Step::Attach { .. }
            | Step::Detach { .. }
            | Step::SetIpv6 { .. }
    )
}

/// Whether there is such a route, and not one that goes with its source.
fn is_there(state: &Observed, key: &RouteKey) -> bool {
    state.routes.iter().any(|r| r.key() == *key && r.source.is_none())
}

/// The last IPv4 address takes even direct routes; IPv6 has no such rule.
fn has_address(state: &Observed, link: &str, family: Family) -> bool {
    family == Family::Ipv6 || state.link(link).is_some_and(|l| !l.ipv4.addresses.is_empty())
}

fn text(value: &Value) -> String {
    serde_json::to_string_pretty(value).expect("JSON prints")
}

/// Options that weren't known before can't be brought back; all others are.
fn without_new_options(mut state: Observed, before: &Observed) -> Observed {
    for (name, link) in &mut state.links {
        if let Some(old) = before.links.get(name) {
            link.options.retain(|o, _| old.options.contains_key(o));
            link.port.options.retain(|o, _| old.port.options.contains_key(o));
            link.mtu = link.mtu.filter(|_| old.mtu.is_some());
            link.mac = link.mac.filter(|_| old.mac.is_some());
        }
    }
    state
}

fn bytes() -> impl Strategy<Value = Vec<u8>> {
    prop::collection::vec(any::<u8>(), 0..240)
}

proptest! {
    #![proptest_config(thrown(400))]

    #[test]
    fn a_plan_brings_about_what_was_asked_and_then_there_is_nothing_to_do(bytes in bytes()) {
        if let Some((scenario, desired, steps)) = planned(&bytes) {
            let after = applied(&scenario.host, &steps);
            let unmet = verify(&after, &desired);
            prop_assert!(unmet.is_empty(), "{unmet:?}\n{steps}\n{}\nfrom {}", text(&scenario.document),
                text(&scenario.host.to_value()));
            let again = plan(&after, &desired);
            prop_assert!(again.as_ref().is_ok_and(Plan::is_empty), "again:\n{again:?}\nfirst:\n{steps}\n{}\nfrom {}",
                text(&scenario.document), text(&scenario.host.to_value()));
        }
    }

    #[test]
    fn routes_that_stay_are_never_away_while_links_stay_as_they_are(bytes in bytes()) {
        if let Some((scenario, _, steps)) = planned(&bytes)
            && steps.steps.iter().all(leaves_links_alone)
        {
            let before = &scenario.host;
            let after = applied(before, &steps);
            let lasting = |r: &&Route| r.next_hops.iter().all(|hop| has_address(&after, hop.dev.as_str(), r.family()));
            let stay: Vec<_> = before.routes.iter().filter(lasting).map(Route::key).collect();
            let stay: Vec<_> = stay.iter().filter(|k| is_there(before, k) && is_there(&after, k)).collect();
            let mut now = before.clone();
            for step in &steps.steps {
                memory::apply(&mut now, step).expect("a planned step works");
                let away = stay.iter().find(|key| !is_there(&now, key));
                prop_assert!(away.is_none(), "{away:?} is away after {step}\n{steps}\n{}", text(&scenario.document));
            }
        }
    }

    #[test]
    fn revert_restores_after_all_steps_and_after_any(bytes in bytes()) {
        if let Some((scenario, _, steps)) = planned(&bytes) {
            let before = &scenario.host;
            let mut now = before.clone();
            for done in 0..=steps.len() {
                let back = steps.revert_from(&now, before);
                let restored = without_new_options(applied(&now, &back), before);
                let wrong = difference(&comparable(&restored), &comparable(before));
                prop_assert!(wrong.is_empty(), "{wrong}after {done} steps of\n{steps}\nback:\n{back}\n{}",
                    text(&scenario.document));
                if let Some(step) = steps.steps.get(done) {
                    memory::apply(&mut now, step).expect("a planned step works");
                }
            }
            let back = steps.revert(before);
            let restored = without_new_options(applied(&now, &back), before);
            prop_assert_eq!(difference(&comparable(&restored), &comparable(before)), "");
        }
    }

    #[test]
    fn a_state_that_is_shown_asks_for_nothing(bytes in bytes()) {
        let host = scenario(&bytes).host;
        let shown = host.to_value();
        let desired = Desired::from_value(&shown).unwrap_or_else(|e| panic!("{e}\n{}", text(&shown)));
        let steps = plan(&host, &desired);
        prop_assert!(steps.as_ref().is_ok_and(Plan::is_empty), "{steps:?}\n{}", text(&shown));
        let unmet = verify(&host, &desired);
        prop_assert!(unmet.is_empty(), "{unmet:?}\n{}", text(&shown));
    }

    #[test]
    fn a_state_survives_being_printed_and_read(bytes in bytes()) {
        let mut host = scenario(&bytes).host;
        let kept: Observed = serde_json::from_value(serde_json::to_value(&host).expect("prints")).expect("reads");
        prop_assert_eq!(&kept, &host);
        let back = Observed::from_value(&host.to_value()).expect("a printed state reads");
        // nmstate's form says who made a route only by where it stands, and gives addresses no place but theirs.
        host.routes.sort_by_key(Route::key);
        for route in &mut host.routes {
            if !route.protocol.is_config() {
                route.protocol = RouteProtocol::UNSPEC;
            }
        }
        for link in host.links.values_mut() {
            link.ipv4.enabled = !link.ipv4.addresses.is_empty();
            link.ipv4.dhcp |= link.ipv4.addresses.iter().any(|a| a.is_dynamic());
            link.ipv6.autoconf |= !link.ipv6.dhcp && link.ipv6.addresses.iter().any(|a| a.is_dynamic());
            link.options.retain(|_, v| *v != OptValue::Bool(false));
        }
        let mut back = back;
        back.links.values_mut().for_each(|l| l.options.retain(|_, v| *v != OptValue::Bool(false)));
        prop_assert_eq!(back, host);
    }

    #[test]
    fn nothing_panics_on_any_value(value in any_document(), bytes in bytes()) {
        let host = Observed::from_value(&value).unwrap_or_else(|_| scenario(&bytes).host);
        let _ = Observed::from_value(&host.to_value());
        if let Ok(desired) = Desired::from_value(&value) {
            let _ = verify(&host, &desired);
            for host in [&host, &scenario(&bytes).host] {
                if let Ok(plan) = plan(host, &desired) {
                    let _ = (plan.to_string(), plan.revert(host));
                }
            }
        }
    }
}

/// Words of documents.
const WORDS: &str = "
interfaces name type state ipv4 ipv6 address ip prefix-length routes config destination
next-hop-interface next-hop-address bridge port vlan id base-iface link-aggregation mode options mtu
mac-address controller eth0 eth1 br0 ethernet linux-bridge bond up absent 10.0.0.1 10.0.0.0/24 ::/0
fe80::1 1500 true -1 identifier enabled dhcp route-rules ip-from priority dns-resolver server trunk-tags
id-range min max veth peer vrf stp priority weight metric table-id source
";

/// Values that look like documents here and there.
fn any_document() -> impl Strategy<Value = Value> {
    let words: Vec<&str> = WORDS.split_whitespace().collect();
    let word = prop::sample::select(words).prop_map(str::to_owned);
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(|b| json!(b)),
        any::<i64>().prop_map(|n| json!(n)),
        any::<f64>().prop_map(|n| json!(n)),
        word.clone().prop_map(|w| json!(w)),
        ".{0,12}".prop_map(|s| json!(s)),
    ];
    let tree = leaf.prop_recursive(5, 60, 6, move |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..5).prop_map(Value::Array),
            prop::collection::vec((word.clone(), inner), 0..6)
                .prop_map(|list| Value::Object(list.into_iter().collect())),
        ]
    });
    (tree.clone(), prop::collection::vec(tree, 0..4)).prop_map(|(mut document, links)| {
        if let Some(map) = document.as_object_mut() {
            map.insert("interfaces".into(), Value::Array(links));
        }
        document
    })
}

#[test]
fn the_generator_makes_documents_that_can_be_applied() {
    // A generator that only makes refusals would let every property above hold for nothing.
    let mut runner = proptest::test_runner::TestRunner::deterministic();
    let (mut planned_some, mut steps) = (0, 0);
    for _ in 0..400 {
        let bytes = bytes().new_tree(&mut runner).expect("bytes").current();
        if let Some((_, _, plan)) = planned(&bytes) {
            planned_some += usize::from(!plan.is_empty());
            steps += plan.len();
        }
    }
    assert!(planned_some > 120, "only {planned_some} of 400 scenarios gave a plan");
    assert!(steps > 800, "{steps} steps in {planned_some} plans");
}
