//! Sliced pools: R92, R93, R105, R112 to R119, rules 1 to 7 as they are there.

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;

use ipnet::IpNet;
use proptest::prelude::*;
use serde_json::json;

use super::fixtures::*;
use crate::claim::*;
use crate::pool::{Barred, Pool};

/// A store of slices, the pool's ledger, and hosts that serve themselves.
struct Site {
    pool: Pool,
    ledger: Ledger,
    slices: BTreeMap<String, NodeSlice>,
    enactments: Vec<Enactment>,
    shown: BTreeSet<IpAddr>,
    now: Time,
}

impl Site {
    fn new(pool: Pool, enactments: Vec<Enactment>) -> Self {
        let (slices, shown) = Default::default();
        Self { pool, ledger: ledger(), slices, enactments, shown, now: NOW }
    }

    fn own(&self, node: &str) -> Vec<NodeSlice> {
        self.slices.values().filter(|slice| slice.is_of(&node.into(), &node_uid(node))).cloned().collect()
    }

    fn look(&self, node: &str) -> SlicesServed {
        let own = self.own(node);
        let others = self.slices.values().filter(|slice| slice.node.as_str() != node);
        let others: BTreeMap<IpNet, Option<NodeName>> =
            others.map(|slice| (slice.cidr, Some(slice.node.clone()))).collect();
        let theirs: Vec<&Enactment> = self.enactments.iter().filter(|e| e.node.as_str() == node).collect();
        let asked: Vec<Asked<'_>> = theirs.iter().flat_map(|own| asked(own)).collect();
        let slots = theirs.iter().flat_map(|own| own.slots.values());
        let known = slots.filter_map(|slot| Some(slot.request.as_ref()?.id.clone())).collect();
        serve_slices(&SlicedView {
            pool: &self.pool,
            ledger: &self.ledger,
            barred: &Barred::default(),
            own: &own,
            others: &others,
            asked: &asked,
            known: &known,
            shown: &self.shown,
            now: self.now,
        })
    }

    /// Looks and does, until there is nothing left to do.
    fn serve(&mut self, node: &str) {
        for _ in 0..50 {
            let served = self.look(node);
            if served == SlicesServed::default() {
                return;
            }
            for new in served.create {
                let made = new.ledger(PoolUid::new(format!("uid-{}-{}", new.name, self.now)));
                let slice = NodeSlice {
                    name: new.name.clone(),
                    cidr: new.cidr,
                    node: node.into(),
                    node_uid: node_uid(node),
                    ledger: made,
                };
                assert!(self.slices.insert(new.name, slice).is_none(), "the name is the lock");
            }
            for (name, next) in served.ledgers {
                let slice = self.slices.get_mut(&name).expect("its own");
                assert!(next.sequence > slice.ledger.sequence);
                assert_eq!(next.rebuilt_for.as_ref(), Some(&slice.ledger.pool));
                slice.ledger = next;
            }
            for name in served.give_back {
                assert!(self.slices.remove(&name).expect("its own").ledger.allocations.is_empty());
            }
            for answer in served.answers {
                let own = self.enactments.iter_mut().find(|own| answer.fits(own)).expect("it fits");
                answer.write(own.slots.get_mut(&answer.key).expect("the slot"));
            }
        }
        panic!("it never rests: {:?}", self.look(node));
    }

    fn of(&self, node: &str) -> &Enactment {
        self.enactments.iter().find(|own| own.node.as_str() == node).expect("an enactment")
    }

    fn of_mut(&mut self, node: &str) -> &mut Enactment {
        self.enactments.iter_mut().find(|own| own.node.as_str() == node).expect("an enactment")
    }

    fn cidrs(&self, node: &str) -> Vec<String> {
        self.own(node).iter().map(|slice| slice.cidr.to_string()).collect()
    }
}

fn sliced(cidr: &str, bits: u8) -> Pool {
    pool_of(json!({"range": {"cidr": cidr, "perNodeHostBits": bits}, "staticBand": "None"}))
}

fn both(v4: &str, v6: &str, bits: u8) -> Pool {
    let range = json!({"ipv4": {"cidr": v4}, "ipv6": {"cidr": v6}, "perNodeHostBits": bits});
    pool_of(json!({"range": range, "staticBand": "None"}))
}

/// An enactment with so many captures on the pool.
fn captures(node: &str, count: usize) -> Enactment {
    let mut own = asking(node);
    own.slots.clear();
    for capture in 0..count {
        let key = SlotKey { pool: name(), capture: CaptureName::new(format!("c{capture}")) };
        let request = Request::new(RequestId::new(format!("{node}-{capture}")));
        own.slots.insert(key, Slot { request: Some(request), ..Slot::default() });
    }
    own
}

fn given(own: &Enactment) -> BTreeSet<IpAddr> {
    let grants = own.slots.values().filter_map(|slot| slot.grant.as_ref());
    grants.flat_map(|grant| grant.lease.ips.iter().copied()).collect()
}

#[test]
fn r113_r114_r115_a_node_makes_a_slice_and_serves_itself_out_of_it() {
    let mut site = Site::new(sliced("10.0.0.0/24", 4), vec![asking("a"), asking("b")]);
    let first = site.look("a");
    assert_eq!(first.create.len(), 1, "first the slice, and nothing else: {first:?}");
    assert!(first.answers.is_empty() && first.ledgers.is_empty());
    site.serve("a");
    site.serve("b");
    let (a, b) = (site.own("a").remove(0), site.own("b").remove(0));
    assert_ne!(a.cidr, b.cidr);
    assert_eq!(granted_ips(site.of("a")), a.ledger.allocations.keys().copied().collect::<Vec<_>>());
    assert_eq!(
        site.of("a").slots[&key()].grant.as_ref().expect("a grant").lease.pool,
        "p".into(),
        "the pool's"
    );
    assert!(a.cidr.contains(&granted_ips(site.of("a"))[0]));
    assert!(site.ledger.allocations.is_empty());
}

/// R92: creating is claiming. Where a claim needs one slice and one address, it is in the object itself, and only the answer is left.
#[test]
fn r92_a_slice_is_made_with_its_first_address() {
    for bits in [0, 4] {
        let mut site = Site::new(sliced("10.0.0.0/24", bits), vec![asking("a")]);
        let new = site.look("a").create.remove(0);
        let (ip, entry) = new.first.clone().expect("an address");
        assert!(
            new.cidr.contains(&ip)
                && entry.is_held_by(&site.of("a").slots[&key()].request.as_ref().expect("a request").id)
        );
        let ledger = new.ledger("uid-s".into());
        let slice = NodeSlice {
            name: new.name.clone(),
            cidr: new.cidr,
            node: "a".into(),
            node_uid: node_uid("a"),
            ledger,
        };
        site.slices.insert(new.name, slice);
        let then = site.look("a");
        assert!(then.create.is_empty() && then.ledgers.is_empty() && then.give_back.is_empty(), "{then:?}");
        assert_eq!(then.answers.len(), 1);
        site.serve("a");
        assert_eq!(granted_ips(site.of("a")), [ip]);
    }
}

/// What is had whole or not at all, or is no plain address, is written when all of its slices are there.
#[test]
fn rule1_what_needs_more_than_one_slice_or_address_is_no_slices_first() {
    let pair = both("10.0.0.0/24", "fd00::/120", 4);
    for (pool, own) in [
        (sliced("10.0.0.0/24", 0), captures("a", 2)),
        (sliced("10.0.0.0/24", 4), captures("a", 2)),
        (pair, asking("a")),
    ] {
        let mut site = Site::new(pool, vec![own]);
        let look = site.look("a");
        assert!(!look.create.is_empty() && look.create.iter().all(|new| new.first.is_none()), "{look:?}");
        site.serve("a");
        assert!(!given(site.of("a")).is_empty());
    }
}

#[test]
fn r115_a_node_that_fills_its_slice_takes_another_and_no_more_than_it_needs() {
    for (bits, count, wanted) in [(0, 3, 3), (1, 3, 2), (1, 4, 2), (2, 4, 1), (2, 5, 2)] {
        let mut site = Site::new(sliced("10.0.0.0/24", bits), vec![captures("a", count)]);
        site.serve("a");
        assert_eq!(given(site.of("a")).len(), count);
        assert_eq!(site.own("a").len(), wanted, "{count} addresses of {bits} bits: {:?}", site.cidrs("a"));
    }
}

#[test]
fn r118_exhaustion_says_so_and_makes_no_slice_in_vain() {
    let mut site = Site::new(sliced("10.0.0.0/30", 0), vec![asking("a"), captures("b", 2)]);
    site.serve("a");
    let refusal = site.look("b");
    assert!(refusal.create.is_empty(), "one is free, and two are wanted: {refusal:?}");
    site.serve("b");
    for slot in site.of("b").slots.values() {
        let refused = slot.refused.as_ref().expect("a refusal");
        assert_eq!(refused.reason, RefusalReason::NoAddress);
        assert!(refused.message.contains("pool pool is exhausted"), "{}", refused.message);
    }
    request(site.of_mut("a")).want = false;
    site.serve("a");
    assert!(site.own("a").is_empty(), "given back at once");
    site.serve("b");
    assert_eq!(given(site.of("b")).len(), 2);
}

#[test]
fn r92_two_families_are_two_slices_or_none() {
    let mut site =
        Site::new(both("10.0.0.0/24", "fd00::/126", 1), vec![asking("a"), asking("b"), asking("c")]);
    for node in ["a", "b"] {
        site.serve(node);
        assert_eq!(site.own(node).len(), 2);
        assert_eq!(granted_ips(site.of(node)).len(), 2);
    }
    site.serve("c");
    assert!(site.own("c").is_empty());
    assert_eq!(refused(site.of("c")).0, RefusalReason::NoAddress);
    // It had got one of IPv4 when the last of IPv6 was taken: that one is given back.
    let v4 = NodeSlice {
        name: "pool.10.0.0.200".to_owned(),
        cidr: "10.0.0.200/31".parse().expect("a network"),
        node: "c".into(),
        node_uid: node_uid("c"),
        ledger: Ledger::new("half".into()),
    };
    site.slices.insert(v4.name.clone(), v4.clone());
    site.serve("c");
    assert!(site.own("c").is_empty());
    // And where there is one of IPv6, it is made use of.
    request(site.of_mut("a")).want = false;
    site.serve("a");
    site.slices.insert(v4.name.clone(), v4);
    site.serve("c");
    assert!(site.cidrs("c").contains(&"10.0.0.200/31".to_owned()), "{:?}", site.cidrs("c"));
    assert_eq!(site.own("c").len(), 2);
}

#[test]
fn r92_the_family_that_has_room_needs_no_second_slice() {
    let range = json!({"ipv4": {"cidr": "10.0.0.0/24", "exclude": ["10.0.0.64/26"]}, "ipv6": {"cidr": "fd00::/64"}, "perNodeHostBits": 1});
    let pool = pool_of(json!({"range": range, "staticBand": "None"}));
    let mut site = Site::new(pool, vec![captures("a", 2)]);
    site.serve("a");
    assert_eq!(given(site.of("a")).len(), 4);
    let v6 = site.own("a").iter().filter(|slice| slice.cidr.addr().is_ipv6()).count();
    assert_eq!(v6, 1, "{:?}", site.cidrs("a"));
}

#[test]
fn a_slice_of_which_an_address_is_let_go_stays_until_it_is_empty() {
    let mut site = Site::new(sliced("10.0.0.0/24", 2), vec![captures("a", 2)]);
    site.serve("a");
    for (left, last) in [(1, false), (0, true)] {
        let own = site.of_mut("a");
        let wanting =
            own.slots.values_mut().filter_map(|slot| slot.request.as_mut()).find(|request| request.want);
        wanting.expect("one that wants").want = false;
        site.serve("a");
        let entries: usize = site.own("a").iter().map(|slice| slice.ledger.allocations.len()).sum();
        assert_eq!((entries, site.own("a").is_empty()), (left, last));
    }
}

#[test]
fn rule5_what_the_pool_itself_keeps_bars_its_whole_block() {
    let pool = sliced("10.0.0.0/27", 4);
    for kept in [held("z", 5), quarantined("z", QuarantineReason::Observed, None)] {
        let mut site = Site::new(pool.clone(), vec![asking("a"), asking("b")]);
        site.ledger.allocations.insert(ip("10.0.0.3"), kept);
        site.serve("a");
        assert_eq!(site.cidrs("a"), ["10.0.0.16/28"]);
        site.serve("b");
        assert_eq!(refused(site.of("b")).0, RefusalReason::NoAddress);
    }
}

#[test]
fn rule5_a_pool_that_is_not_proven_or_on_hold_gives_no_slice() {
    let stopped: [fn(&mut Ledger); 4] = [
        |ledger| ledger.rebuilt_for = None,
        |ledger| ledger.hold = Some(Hold { until: NOW + 1 }),
        |ledger| ledger.deleting = true,
        |ledger| ledger.reset = true,
    ];
    for stop in stopped {
        let mut site = Site::new(sliced("10.0.0.0/24", 4), vec![asking("a")]);
        stop(&mut site.ledger);
        assert_eq!(site.look("a"), SlicesServed::default());
    }
}

#[test]
fn a_holder_of_before_takes_the_slice_around_what_it_has() {
    let mut site =
        Site::new(sliced("10.0.0.0/24", 4), vec![holding("a", lease(&["10.0.0.19"], 3)), asking("b")]);
    site.ledger.allocations.insert(ip("10.0.0.19"), held("a", 3));
    site.shown.insert(ip("10.0.0.19"));
    site.serve("a");
    assert_eq!(site.cidrs("a"), ["10.0.0.16/28"]);
    assert!(site.own("a")[0].ledger.allocations[&ip("10.0.0.19")].is_held_by(&"a".into()));
    // And the pool need not keep it any longer.
    let cluster = Cluster::of(&["a", "b"], site.enactments.clone());
    let slices: Vec<NodeSlice> = site.slices.values().cloned().collect();
    let left = gather(&site.ledger, &name(), &site.pool, &slices, &cluster.facts(), NOW).expect("a change");
    assert!(left.allocations.is_empty());
}

// A slice around it is made and deleted before anything is in it, and the pool's entry set aside meanwhile: what is in use is Held again.
#[test]
fn rule1_what_a_holder_has_is_held_again_in_a_slice_that_goes() {
    let mut site = Site::new(sliced("10.0.0.0/24", 4), vec![holding("a", lease(&["10.0.0.19"], 3))]);
    site.ledger.allocations.insert(ip("10.0.0.19"), quarantined("a", QuarantineReason::Orphan, None));
    site.shown.insert(ip("10.0.0.19"));
    site.serve("a");
    let slice = site.slices.values_mut().next().expect("a slice");
    slice.ledger.allocations.clear();
    slice.ledger.deleting = true;
    site.serve("a");
    assert!(site.own("a")[0].ledger.allocations[&ip("10.0.0.19")].is_held_by(&"a".into()));
}

// The pool's own ledger set it aside under the id of before, and its node has it again under another, in a slice: written once, and
// then the pool's has no more of it. What a stranger answers for is more than that.
#[test]
fn rule1_what_the_pool_set_aside_does_not_hide_what_its_node_holds_in_a_slice() {
    let mut site = Site::new(sliced("10.0.0.0/28", 4), vec![asking("a")]);
    let of_before = |reason| Entry { request: Some("before".into()), ..quarantined("a", reason, None) };
    site.ledger.allocations.insert(ip("10.0.0.5"), of_before(QuarantineReason::Orphan));
    site.serve("a");
    let grant = slot(site.of("a")).grant.clone().expect("a grant");
    assert_eq!(grant.lease.ips, ips(&["10.0.0.5"]));
    let cluster = Cluster::of(&["a"], vec![site.of("a").clone()]);
    let look = |ledger: &Ledger| {
        let own = site.own("a");
        let left = gather(ledger, &name(), &site.pool, &own, &cluster.facts(), NOW);
        (slices_confirm(ledger, &own, &grant.id, &grant.lease), left.map(|left| left.allocations.len()))
    };
    assert_eq!(look(&site.ledger), (true, Some(0)));
    let mut taken = site.ledger.clone();
    let stranger = QuarantineReason::Collision { by: stranger() };
    taken.allocations.insert(ip("10.0.0.5"), of_before(stranger));
    assert_eq!(look(&taken), (false, None));
}

// What a stranger takes of before the pool was sliced is set aside in the slice, and the pool's own ledger has it as Held still.
#[test]
fn rule10_what_a_stranger_has_is_not_held_again_by_the_pools_ledger() {
    let (taken, of_before) = (ip("10.0.0.19"), lease(&["10.0.0.19"], 3));
    let mut site = Site::new(sliced("10.0.0.0/24", 4), vec![holding("a", of_before.clone())]);
    site.ledger.allocations.insert(taken, held("a", 3));
    site.serve("a");
    assert!(site.own("a")[0].ledger.allocations[&taken].is_held_by(&"a".into()));
    let asks = request(site.of_mut("a"));
    asks.holds = None;
    asks.declined.insert(taken, stranger());
    site.serve("a");
    let another = granted_ips(site.of("a"));
    assert_ne!(another, [taken]);
    // The host has the other by now, and nothing more to say of the first.
    let lease = slot(site.of("a")).grant.clone().expect("a grant").lease;
    let asks = request(site.of_mut("a"));
    asks.holds = Some(lease);
    asks.declined.clear();
    site.shown.extend(another.clone());
    let holds = |site: &Site| {
        let own = site.own("a");
        own.iter().flat_map(|slice| slice.ledger.held_by(&"a".into()).collect::<Vec<_>>()).collect::<Vec<_>>()
    };
    let end = site.own("a")[0].first_end().expect("a quarantine");
    for now in [end - 1, end] {
        site.now = now;
        for reset in [true, false] {
            site.ledger.reset = reset;
            site.serve("a");
            assert_eq!(holds(&site), another);
            assert_eq!(site.own("a")[0].first_end(), Some(end), "nobody's while the pool's ledger has it");
        }
    }
    let slices = site.own("a");
    let look = |own: Enactment| {
        let cluster = Cluster::of(&["a"], vec![own]);
        gather(&site.ledger, &name(), &site.pool, &slices, &cluster.facts(), end)
    };
    let mut asserts = site.of("a").clone();
    request(&mut asserts).holds = Some(of_before);
    assert!(look(asserts).is_none(), "not what a journal names");
    site.ledger = look(site.of("a").clone()).expect("a change");
    assert!(site.ledger.allocations.is_empty());
    site.serve("a");
    assert_eq!(site.own("a")[0].ledger.allocations.keys().copied().collect::<Vec<_>>(), another);
    // A controller that read before what was so then puts it into the pool's ledger again, later than what the host has.
    site.ledger.allocations.insert(taken, held("a", u64::MAX / 2));
    for reset in [true, false] {
        site.ledger.reset = reset;
        site.serve("a");
        site.now += 1;
        assert_eq!(site.look("a"), SlicesServed::default(), "written once");
        assert_eq!((holds(&site), granted_ips(site.of("a"))), (another.clone(), another.clone()));
    }
}

#[test]
fn a_holder_whose_block_is_anothers_has_lost_it_unless_the_pool_keeps_it() {
    let mut site =
        Site::new(sliced("10.0.0.0/28", 4), vec![asking("b"), holding("a", lease(&["10.0.0.5"], 3))]);
    site.serve("b");
    site.shown.insert(ip("10.0.0.5"));
    site.serve("a");
    assert_eq!(refused(site.of("a")).0, RefusalReason::HeldByAnother);
    let mut site =
        Site::new(sliced("10.0.0.0/28", 4), vec![asking("b"), holding("a", lease(&["10.0.0.5"], 3))]);
    site.serve("b");
    site.ledger.allocations.insert(ip("10.0.0.5"), held("a", 3));
    site.shown.insert(ip("10.0.0.5"));
    site.serve("a");
    assert_eq!(slot(site.of("a")).refused, None, "left alone");
}

// R51: the slice around it is claimed, also where the host had the address before the pool was made; others hear whose it is.
#[test]
fn r51_rule11_a_literal_address_takes_the_slice_around_it() {
    let literal = |node: &str, address: &str| {
        let mut own = asking(node);
        request(&mut own).literal = Some(ip(address));
        own
    };
    for shown in [false, true] {
        let own = vec![literal("a", "10.0.0.37"), literal("b", "10.0.0.38")];
        let mut site = Site::new(sliced("10.0.0.0/24", 4), own);
        if shown {
            let seen = Entry {
                policy: "".into(),
                capture: "".into(),
                request: None,
                ..quarantined("a", QuarantineReason::Observed, None)
            };
            site.ledger.allocations.insert(ip("10.0.0.37"), seen);
            site.shown.insert(ip("10.0.0.37"));
            // Before its host has asked, its block is nobody else's.
            site.serve("b");
            assert!(refused(site.of("b")).1.ends_with("belongs to node a"), "{:?}", refused(site.of("b")));
        }
        site.serve("a");
        assert_eq!(granted_ips(site.of("a")), ips(&["10.0.0.37"]), "{shown}");
        assert_eq!(site.cidrs("a"), ["10.0.0.32/28"]);
        assert_eq!(site.own("a")[0].ledger.allocations[&ip("10.0.0.37")].kind, EntryKind::Static);
        site.serve("b");
        let said = "slice 10.0.0.32/28 of pool pool, where 10.0.0.38 lies, belongs to node a";
        assert_eq!(refused(site.of("b")), (RefusalReason::NoAddress, said));
        // Held by another policy of the same host: that is said, not that the slice is somebody's.
        let mut other = literal("a", "10.0.0.37");
        (other.uid, other.policy) = ("e-other".into(), "other".into());
        request(&mut other).id = "other".into();
        site.enactments.push(other);
        site.serve("a");
        let (_, message) = refused(site.enactments.last().expect("it"));
        assert!(message.ends_with("(held by node a, policy static-ip)"), "{message}");
    }
}

// One family is asked for, so one is taken.
#[test]
fn r51_r92_a_literal_address_of_two_families_takes_one_slice() {
    let mut own = asking("a");
    request(&mut own).literal = Some(ip("10.0.0.5"));
    let mut site = Site::new(both("10.0.0.0/24", "fd00::/112", 4), vec![own]);
    site.serve("a");
    assert_eq!(granted_ips(site.of("a")), ips(&["10.0.0.5"]));
    assert_eq!(site.cidrs("a"), ["10.0.0.0/28"]);
    // Who asks for any gets both of both, the one from the slice that there is.
    let mut more = captures("a", 1);
    (more.uid, more.policy) = ("e-more".into(), "more".into());
    site.enactments.push(more);
    site.serve("a");
    let given = given(site.enactments.last().expect("it"));
    assert_eq!((given.len(), site.cidrs("a").len()), (2, 2), "{given:?}");
    assert!(site.cidrs("a").contains(&"10.0.0.0/28".to_owned()));
}

#[test]
fn rule2_a_grant_is_confirmed_by_its_slice_and_the_pool() {
    let mut site = Site::new(sliced("10.0.0.0/24", 4), vec![asking("a")]);
    site.serve("a");
    let lease = slot(site.of("a")).grant.as_ref().expect("a grant").lease.clone();
    let own = site.own("a");
    let confirms = |ledger: &Ledger, own: &[NodeSlice]| slices_confirm(ledger, own, &"a".into(), &lease);
    assert!(confirms(&site.ledger, &own));
    assert!(!confirms(&site.ledger, &[]), "the slice is gone");
    let mut stopped = site.ledger.clone();
    stopped.hold = Some(Hold { until: NOW });
    assert!(!confirms(&stopped, &own), "the pool is on hold");
    let mut theirs = site.ledger.clone();
    theirs.allocations.insert(lease.ips[0], held("z", 9));
    assert!(!confirms(&theirs, &own), "the pool keeps it for another");
    let mut aside = own;
    let entry = aside[0].ledger.allocations.get_mut(&lease.ips[0]).expect("an entry");
    *entry = quarantined("a", QuarantineReason::NodeGone, None);
    assert!(!confirms(&site.ledger, &aside), "it was set aside");
}

#[test]
fn r117_rule4_a_gone_nodes_slice_is_set_aside_then_free() {
    let mut site = Site::new(sliced("10.0.0.0/24", 4), vec![asking("a"), asking("b")]);
    site.serve("a");
    site.serve("b");
    let all = |site: &Site| site.slices.values().cloned().collect::<Vec<_>>();
    let live = Cluster::of(&["a", "b"], site.enactments.clone());
    let tend = |slices: &[NodeSlice], cluster: &Cluster, now| {
        tend_slices(slices, Some(&ledger()), &cluster.facts(), QUARANTINE, now)
    };
    assert_eq!(tend(&all(&site), &live, NOW), SlicesTended::default());
    let gone = Cluster::of(&["b"], site.enactments.clone());
    let tended = tend(&all(&site), &gone, NOW);
    assert_eq!(tended.ledgers.len(), 1);
    assert!(tended.free.is_empty());
    for (name, next) in tended.ledgers {
        site.slices.get_mut(&name).expect("there").ledger = next;
    }
    let waiting = tend(&all(&site), &gone, NOW + QUARANTINE - 1);
    assert_eq!((waiting.until, waiting.freed.len(), waiting.free.len()), (Some(NOW + QUARANTINE), 0, 0));
    let over = tend(&all(&site), &gone, NOW + QUARANTINE);
    assert_eq!(over.freed.len(), 1);
    for (name, next) in over.ledgers {
        site.slices.get_mut(&name).expect("there").ledger = next;
    }
    let free = tend(&all(&site), &gone, NOW + QUARANTINE);
    assert_eq!(free.free, [site.own("a")[0].name.clone()]);
}

#[test]
fn rule4_the_brake_counts_holders_of_all_slices() {
    let nodes: Vec<String> = (0..10).map(|node| format!("n{node}")).collect();
    let mut site = Site::new(sliced("10.0.0.0/24", 2), nodes.iter().map(|node| asking(node)).collect());
    nodes.iter().for_each(|node| site.serve(node));
    let slices: Vec<NodeSlice> = site.slices.values().cloned().collect();
    let tended = |left: usize, confirmed| {
        let live: Vec<&str> = nodes.iter().take(left).map(String::as_str).collect();
        let mut cluster = Cluster::of(&live, Vec::new());
        cluster.confirmed = confirmed;
        tend_slices(&slices, Some(&ledger()), &cluster.facts(), QUARANTINE, NOW)
    };
    assert_eq!(tended(7, None).ledgers.len(), 3);
    let braked = tended(6, None);
    assert_eq!((braked.braked, braked.ledgers.len()), (Some(Brake { vanished: 4, allowed: 3 }), 0));
    assert_eq!(tended(6, Some(4)).ledgers.len(), 4);
}

#[test]
fn rule7_what_a_live_host_shows_is_freed_only_where_the_pool_keeps_it() {
    let mut site = Site::new(sliced("10.0.0.0/24", 4), vec![asking("a")]);
    site.serve("a");
    let mut slice = site.own("a").remove(0);
    let shown = granted_ips(site.of("a"))[0];
    let mut entry = quarantined("a", QuarantineReason::NodeGone, None);
    entry.node_uid = "former".into();
    slice.node_uid = "former".into();
    slice.ledger.allocations.insert(shown, entry);
    let text = shown.to_string();
    let cluster = Cluster::of(&["a"], Vec::new()).shows("a", "1", &[&text]);
    let now = NOW + 2 * QUARANTINE;
    let freed = |pool: &Ledger| {
        tend_slices(std::slice::from_ref(&slice), Some(pool), &cluster.facts(), QUARANTINE, now).freed
    };
    assert!(freed(&ledger()).is_empty());
    let mut keeps = ledger();
    keeps.allocations.insert(shown, held("a", 3));
    assert_eq!(freed(&keeps), [shown]);
}

#[test]
fn r71_what_is_held_without_a_slice_is_kept_by_the_pool() {
    let pool = sliced("10.0.0.0/24", 4);
    let cluster = Cluster::of(
        &["a"],
        vec![holding("a", lease(&["10.0.0.5"], 3)), holding("z", lease(&["10.0.0.40"], 3))],
    );
    let kept = gather(&ledger(), &name(), &pool, &[], &cluster.facts(), NOW).expect("a change");
    assert_eq!(kept.allocations.keys().copied().collect::<Vec<_>>(), ips(&["10.0.0.5"]), "of live Nodes");
    assert!(gather(&kept, &name(), &pool, &[], &cluster.facts(), NOW).is_none());
    // Set aside meanwhile, it is the holder's again; not what a stranger answers for.
    let mut aside = kept;
    aside.allocations.insert(ip("10.0.0.5"), quarantined("a", QuarantineReason::Orphan, None));
    let again = gather(&aside, &name(), &pool, &[], &cluster.facts(), NOW).expect("a change");
    assert!(again.allocations[&ip("10.0.0.5")].is_held_by(&"a".into()));
    let taken = QuarantineReason::Collision { by: stranger() };
    aside.allocations.insert(ip("10.0.0.5"), quarantined("a", taken, None));
    assert!(gather(&aside, &name(), &pool, &[], &cluster.facts(), NOW).is_none());
}

#[test]
fn a_rebuilt_pool_keeps_only_what_no_slice_covers() {
    let pool = sliced("10.0.0.0/24", 4);
    let mut site = Site::new(pool.clone(), vec![asking("a")]);
    site.serve("a");
    let mine = granted_ips(site.of("a"))[0];
    let holds = vec![holding("a", lease(&[&mine.to_string()], 3)), holding("b", lease(&["10.0.0.100"], 3))];
    let cluster = Cluster::of(&["a", "b"], holds).shows("a", "1", &[&mine.to_string()]);
    let facts = cluster.facts();
    let uncovered = Uncovered::of(&name(), &site.own("a"), &facts);
    let rebuilt = rebuild(&Ledger::new("new".into()), &name(), &pool, &uncovered.facts(&facts), NOW);
    assert_eq!(rebuilt.ledger.allocations.keys().copied().collect::<Vec<_>>(), ips(&["10.0.0.100"]));
}

/// R17, R41: another is given, out of another slice where the first has no more. When the quarantine is over the first is given
/// back, with the pool and without.
#[test]
fn r17_r41_what_a_stranger_has_is_free_in_its_time() {
    for (bits, slices) in [(0, 2), (4, 1)] {
        let mut site = Site::new(sliced("10.0.0.0/24", bits), vec![asking("a")]);
        site.serve("a");
        let taken = granted_ips(site.of("a"))[0];
        request(site.of_mut("a")).declined.insert(taken, stranger());
        site.serve("a");
        assert_ne!(granted_ips(site.of("a")), [taken]);
        let end = site.own("a").iter().find_map(NodeSlice::first_end).expect("a quarantine");
        site.now = end - 1;
        site.serve("a");
        let aside = |site: &Site| site.own("a").iter().filter_map(NodeSlice::first_end).count();
        assert_eq!((site.own("a").len(), aside(&site)), (slices, 1));
        let freed = serve_slices_without_pool(&site.own("a"), &asked(site.of("a")), end);
        assert_eq!((freed.ledgers.len(), freed.give_back.len()), (1, slices - 1));
        site.now = end;
        site.serve("a");
        assert_eq!((site.own("a").len(), aside(&site)), (1, 0));
        assert_ne!(granted_ips(site.of("a")), [taken]);
    }
}

#[test]
fn without_a_pool_what_is_let_go_leaves_its_slice() {
    let mut site = Site::new(sliced("10.0.0.0/24", 4), vec![asking("a")]);
    site.serve("a");
    let own = site.own("a");
    let served = |enactment: &Enactment| serve_slices_without_pool(&own, &asked(enactment), NOW);
    assert_eq!(served(site.of("a")), SlicesServed::default(), "a holder keeps what it has");
    request(site.of_mut("a")).want = false;
    let gone = served(site.of("a"));
    assert_eq!((gone.give_back.len(), gone.ledgers.len(), gone.answers.len()), (1, 1, 1));
}

/// While the pool gives nothing: an empty slice goes unless its host might use it when the pool gives again.
#[test]
fn rule5_an_empty_slice_that_nobody_will_ask_about_goes_though_the_pool_gives_nothing() {
    let mut site = Site::new(sliced("10.0.0.0/24", 1), vec![asking("a"), captures("b", 3)]);
    site.serve("a");
    site.serve("b");
    assert_eq!(site.own("b").len(), 2);
    site.ledger.rebuilt_for = None;
    // It is off the card, and nobody is to ask again.
    request(site.of_mut("a")).want = false;
    site.serve("a");
    assert!(site.own("a").is_empty(), "nothing is left");
    // Of two slices the one that is empty now goes, though its host holds on to the other.
    let last = given(site.of("b")).into_iter().find(|ip| {
        let own = site.own("b");
        let around = own.iter().find(|slice| slice.cidr.contains(ip)).expect("its slice");
        around.ledger.allocations.len() == 1
    });
    let last = last.expect("three in two slices of two");
    let grants = |slot: &Slot| slot.grant.as_ref().is_some_and(|grant| grant.lease.ips.contains(&last));
    let slot = site.of_mut("b").slots.values_mut().find(|slot| grants(slot)).expect("its claim");
    slot.request.as_mut().expect("a request").want = false;
    // Not while it is shown: the pool may have to be put together from that.
    site.shown = [last].into();
    site.serve("b");
    assert_eq!(site.own("b").len(), 2);
    site.shown.clear();
    site.serve("b");
    assert_eq!(site.own("b").len(), 1);
}

/// One who waits will ask again, and then uses what there is.
#[test]
fn rule5_an_empty_slice_is_kept_for_who_waits() {
    let mut site = Site::new(sliced("10.0.0.0/24", 1), vec![asking("a")]);
    let made = site.look("a").create.remove(0);
    let ledger = Ledger::new("uid-s".into());
    let (node, uid) = ("a".into(), node_uid("a"));
    site.slices.insert(
        made.name.clone(),
        NodeSlice { name: made.name, cidr: made.cidr, node, node_uid: uid, ledger },
    );
    site.ledger.rebuilt_for = None;
    site.serve("a");
    assert_eq!(site.own("a").len(), 1);
    site.ledger.rebuilt_for = Some(site.ledger.pool.clone());
    site.serve("a");
    assert_eq!(site.own("a")[0].ledger.allocations.len(), 1);
}

/// A slice that somebody deletes between its ledger and the confirmation of the grant: its host is served from another.
#[test]
fn rule2_what_is_given_out_of_a_slice_that_goes_and_is_not_in_use_is_given_anew() {
    for used in [false, true] {
        let mut site = Site::new(sliced("10.0.0.0/24", 1), vec![asking("a")]);
        site.serve("a");
        let first = site.own("a").remove(0);
        let had = granted_ips(site.of("a"));
        site.slices.get_mut(&first.name).expect("its own").ledger.deleting = true;
        site.shown = if used { had.iter().copied().collect() } else { BTreeSet::new() };
        site.serve("a");
        // In use it stays, until its host has let go.
        assert_eq!(granted_ips(site.of("a")) == had, used);
        assert_eq!(site.slices.contains_key(&first.name), used);
        assert_eq!(site.own("a").len(), 1);
    }
}

/// R105: a /20 of /24 blocks is sixteen nodes, and with a second range thirty-two; every one serves itself.
#[test]
fn r105_two_ranges_serve_thirty_two_nodes() {
    let ranges = json!([{"name": "one", "cidr": "10.1.0.0/20", "perNodeHostBits": 8}, {"name": "two", "cidr": "10.2.0.0/20", "perNodeHostBits": 8}]);
    let pool = pool_of(json!({"ranges": ranges, "staticBand": "None"}));
    let nodes: Vec<String> = (0..33).map(|node| format!("n{node}")).collect();
    let mut site = Site::new(pool, nodes.iter().map(|node| asking(node)).collect());
    nodes.iter().for_each(|node| site.serve(node));
    let served = nodes.iter().filter(|node| !granted_ips(site.of(node)).is_empty()).count();
    assert_eq!((served, site.slices.len()), (32, 32));
    let given: BTreeSet<IpAddr> = site.enactments.iter().flat_map(given).collect();
    assert_eq!(given.len(), 32);
}

proptest! {
    /// Whatever nodes ask and let go, in whatever order: no address is given twice, every one lies in a slice of its node,
    /// all captures are served or none, and no slice is kept empty.
    #[test]
    fn slices_never_give_twice(
        bits in 0_u8..4, dual in any::<bool>(), moves in prop::collection::vec((0_usize..4, any::<bool>()), 1..30),
    ) {
        let pool = match dual {
            true => both("10.0.0.0/27", "fd00::/123", bits),
            false => sliced("10.0.0.0/28", bits),
        };
        let nodes = ["a", "b", "c", "d"];
        let mut site = Site::new(pool, Vec::new());
        for (node, wants) in moves {
            let name = nodes[node];
            site.now += 1;
            match wants {
                true if !site.enactments.iter().any(|own| own.node.as_str() == name) => {
                    site.enactments.push(captures(name, node + 1));
                }
                true => {}
                false => {
                    for own in site.enactments.iter_mut().filter(|own| own.node.as_str() == name) {
                        own.slots.values_mut().filter_map(|slot| slot.request.as_mut()).for_each(|r| r.want = false);
                    }
                }
            }
            site.serve(name);
            site.enactments.retain(|own| own.slots.values().all(|slot| slot.request.as_ref().is_some_and(|r| r.want)));
            let mut all = BTreeSet::new();
            for own in &site.enactments {
                let ips = given(own);
                let each = if dual { 2 } else { 1 };
                prop_assert!(ips.is_empty() || ips.len() == own.slots.len() * each, "{own:?}");
                let slices = site.own(own.node.as_str());
                for ip in ips {
                    prop_assert!(all.insert(ip), "{ip} is given twice");
                    prop_assert!(slices.iter().any(|slice| slice.ledger.allocations.contains_key(&ip)));
                }
            }
            prop_assert!(site.slices.values().all(|slice| !slice.ledger.allocations.is_empty()));
        }
    }
}
