//! Who would get what, and that it is what serving then gives.

use std::collections::BTreeMap;

use serde_json::json;

use super::fixtures::*;
use crate::claim::*;
use crate::pool::{Barred, NodeView, Pool, Want};

/// A node with its labels.
type Labelled = (&'static str, BTreeMap<String, String>);

fn plain(names: &[&'static str]) -> Vec<Labelled> {
    names.iter().map(|name| (*name, BTreeMap::new())).collect()
}

fn wish() -> Wish {
    Wish { pool: name(), capture: "addr".into(), want: Want::Any }
}

fn foresee(pool: &Pool, ledger: &Ledger, nodes: &[Labelled], wishes: &[Wish]) -> Vec<Foreseen> {
    let barred = Barred::default();
    let mut stages = BTreeMap::from([(name(), Stage::new(pool, &barred, ledger, Vec::new()))]);
    let uids: Vec<NodeUid> = nodes.iter().map(|(node, _)| node_uid(node)).collect();
    let asks: Vec<Ask<'_>> = nodes
        .iter()
        .zip(&uids)
        .map(|((node, labels), uid)| Ask {
            node: NodeView { name: node, labels },
            uid,
            ready: *node != "unready",
            policy: "static-ip",
        })
        .collect();
    preview(&mut stages, &asks, wishes)
}

fn reason(foreseen: &Foreseen) -> String {
    match &foreseen.outcome {
        Ok(given) => given.reason.to_string(),
        Err(lacks) => lacks.to_string(),
    }
}

// R79, DryRun persists nothing; R22, one address for each node.
#[test]
fn r79_r22_serving_gives_what_was_foreseen() {
    let (pool, names) = (pool(20), ["a", "b", "c", "d", "e"]);
    let foreseen = foresee(&pool, &ledger(), &plain(&names), &[wish()]);
    let mut enactments: Vec<Enactment> = names.iter().map(|name| asking(name)).collect();
    Desk::new(pool).serve(&mut enactments);
    for (one, own) in foreseen.iter().zip(&enactments) {
        assert_eq!(one.outcome.as_ref().unwrap().ips, granted_ips(own), "{}", one.node);
    }
}

#[test]
fn r24_what_is_held_is_used_again_and_what_is_quarantined_comes_back() {
    let mut ledger = ledger();
    ledger.allocations.insert(ip("10.0.0.7"), held("a", 1));
    ledger.allocations.insert(ip("10.0.0.8"), quarantined("b", QuarantineReason::Orphan, None));
    let foreseen = foresee(&pool(20), &ledger, &plain(&["a", "b"]), &[wish()]);
    let given: Vec<_> = foreseen.iter().map(|one| one.outcome.clone().unwrap()).collect();
    assert_eq!((given[0].ips.clone(), &given[0].reason), (ips(&["10.0.0.7"]), &Reason::Holds));
    assert_eq!((given[1].ips.clone(), &given[1].reason), (ips(&["10.0.0.8"]), &Reason::Returns));
}

// R32: said for which nodes it would run out; R26: a node that is not Ready gets nothing new.
#[test]
fn r32_r26_it_says_for_whom_there_is_none() {
    let foreseen = foresee(&pool(2), &ledger(), &plain(&["a", "b", "c", "unready"]), &[wish()]);
    let out: Vec<bool> =
        foreseen.iter().map(|one| one.outcome.as_ref().is_err_and(Lacks::is_exhausted)).collect();
    assert_eq!(out, [false, false, true, false]);
    assert_eq!(foreseen[3].outcome, Err(Lacks::NotReady));
}

#[test]
fn r53_reservations_ranges_by_selector_and_hashes_are_told_apart() {
    let pool = pool_of(json!({
        "ranges": [
            {"name": "rack-1", "cidr": "10.0.1.0/24", "nodeSelector": {"nodeSelectorTerms": [
                {"matchExpressions": [{"key": "rack", "operator": "In", "values": ["r1"]}]}]}},
            {"name": "rest", "cidr": "10.0.2.0/30"},
        ],
        "staticBand": "None",
        "reservations": [{"node": "kept", "ip": "10.0.2.1"}],
    }));
    let mut nodes = plain(&["kept", "other", "second"]);
    nodes.push(("in-rack", BTreeMap::from([("rack".to_owned(), "r1".to_owned())])));
    let foreseen = foresee(&pool, &ledger(), &nodes, &[wish()]);
    assert_eq!(reason(&foreseen[0]), "reserved for it");
    assert_eq!(reason(&foreseen[1]), "its hash");
    assert!(foreseen[2].outcome.as_ref().is_err_and(Lacks::is_exhausted), "{:?}", foreseen[2]);
    assert_eq!(reason(&foreseen[3]), "range rack-1 selects it; its hash");
}

// All captures of a policy or none: what a node can't use is left to the next one.
#[test]
fn all_or_none_leaves_the_address_to_others() {
    let two = [wish(), Wish { capture: "second".into(), ..wish() }];
    let foreseen = foresee(&pool(3), &ledger(), &plain(&["a", "b"]), &two);
    assert!(foreseen[0].outcome.is_ok() && foreseen[1].outcome.is_ok());
    assert_eq!(foreseen[2].outcome, Err(Lacks::Others));
    assert!(foreseen[3].outcome.as_ref().is_err_and(Lacks::is_exhausted));
    let literal = Wish { want: Want::Exactly(ip("10.0.0.2")), ..wish() };
    let named = foresee(&pool(3), &ledger(), &plain(&["a"]), &[literal]);
    assert_eq!(reason(&named[0]), "the policy names it");
    let nowhere = Wish { pool: "nowhere".into(), ..wish() };
    let lacking = foresee(&pool(3), &ledger(), &plain(&["a"]), &[nowhere]);
    assert_eq!(reason(&lacking[0]), "there is no pool nowhere");
}

// R113: of a sliced pool, a slice of the node's own, or the next one.
#[test]
fn r113_a_slice_of_its_own_or_the_next_one() {
    let pool = pool_of(json!({"range": {"cidr": "10.0.0.0/24", "perNodeHostBits": 2}, "staticBand": "None"}));
    let barred = Barred::default();
    let (labels, uid) = (BTreeMap::new(), node_uid("a"));
    let own: ipnet::IpNet = "10.0.0.8/30".parse().unwrap();
    for (slices, own_one) in [(vec![(own, node_uid("a"))], true), (vec![(own, node_uid("b"))], false)] {
        let mut stages = BTreeMap::from([(name(), Stage::new(&pool, &barred, &ledger(), slices))]);
        let node = NodeView { name: "a", labels: &labels };
        let ask = Ask { node, uid: &uid, ready: true, policy: "static-ip" };
        let foreseen = preview(&mut stages, &[ask], &[wish()]);
        let given = foreseen[0].outcome.clone().unwrap();
        assert_eq!(own.contains(&given.ips[0]), own_one, "{given:?}");
        assert!(matches!(given.reason, Reason::Slice { new, .. } if new != own_one), "{given:?}");
    }
}

// R113: what is left of a sliced pool is what no slice has, and where every block is cut it runs out for who has none.
#[test]
fn r113_a_pool_whose_slices_are_all_cut_runs_out_for_nodes_without_one() {
    let pool = pool_of(json!({"range": {"cidr": "10.0.0.0/29", "perNodeHostBits": 2}, "staticBand": "None"}));
    let barred = Barred::default();
    let labels = BTreeMap::new();
    let uids = ["a", "b", "c"].map(node_uid);
    let asks = ["a", "b", "c"].into_iter().zip(&uids).map(|(name, uid)| Ask {
        node: NodeView { name, labels: &labels },
        uid,
        ready: true,
        policy: "static-ip",
    });
    let asks: Vec<Ask<'_>> = asks.collect();
    let stage = |slices| BTreeMap::from([(name(), Stage::new(&pool, &barred, &ledger(), slices))]);
    let mut stages = stage(vec![("10.0.0.0/30".parse().unwrap(), node_uid("a"))]);
    assert_eq!(stages[&name()].available(), 3, "of 6 addresses the 3 of the other block");
    let foreseen = preview(&mut stages, &asks, &[wish()]);
    let out: Vec<bool> =
        foreseen.iter().map(|one| one.outcome.as_ref().is_err_and(Lacks::is_exhausted)).collect();
    assert_eq!((out, stages[&name()].available()), (vec![false, false, true], 0));
    // All captures or none: a block that would have been taken for one of them is left to the next.
    let nowhere = Wish { pool: "nowhere".into(), ..wish() };
    let mut stages = stage(Vec::new());
    preview(&mut stages, &asks, &[wish(), nowhere]);
    assert_eq!(stages[&name()].available(), 6);
}

// R73, R113: what serving does: a slice of a former Node of that name is not the new one's, and a block in which another has an
// address without a slice is passed over, as is one of another cut.
#[test]
fn r73_r113_what_is_another_nodes_is_not_foreseen() {
    let pool = pool_of(json!({"range": {"cidr": "10.0.0.0/28", "perNodeHostBits": 2}, "staticBand": "None"}));
    let (barred, labels, uid) = (Barred::default(), BTreeMap::new(), node_uid("a"));
    let mut ledger = ledger();
    let shown = Entry { request: None, ..quarantined("b", QuarantineReason::Observed, None) };
    ledger.allocations.extend([(ip("10.0.0.5"), held("b", 1)), (ip("10.0.0.9"), shown)]);
    let slices = vec![
        ("10.0.0.0/30".parse().unwrap(), NodeUid::from("uid-of-a-former-a")),
        ("10.0.0.20/31".parse().unwrap(), uid.clone()),
    ];
    let mut stages = BTreeMap::from([(name(), Stage::new(&pool, &barred, &ledger, slices))]);
    let ask =
        Ask { node: NodeView { name: "a", labels: &labels }, uid: &uid, ready: true, policy: "static-ip" };
    let second = Wish { capture: "second".into(), ..wish() };
    let foreseen = preview(&mut stages, &[ask], &[wish(), second]);
    let only: ipnet::IpNet = "10.0.0.12/30".parse().unwrap();
    for (one, new) in foreseen.iter().zip([true, false]) {
        let given = one.outcome.clone().unwrap();
        assert_eq!(given.reason, Reason::Slice { cidr: only, new });
        assert!(only.contains(&given.ips[0]), "{given:?}");
    }
    // Its own address without a slice keeps it from no block.
    ledger.allocations.insert(ip("10.0.0.13"), Entry { policy: "other".into(), ..held("a", 1) });
    let mut stages = BTreeMap::from([(name(), Stage::new(&pool, &barred, &ledger, Vec::new()))]);
    let foreseen = preview(&mut stages, &[ask], &[wish()]);
    assert!(foreseen[0].outcome.is_ok(), "{:?}", foreseen[0]);
}
