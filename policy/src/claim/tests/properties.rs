//! What holds after any sequence of operations.

use std::collections::{BTreeMap, BTreeSet};

use proptest::prelude::*;

use super::fixtures::*;
use crate::claim::*;
use crate::pool::Pool;

const NODES: [&str; 5] = ["a", "b", "c", "d", "e"];

#[derive(Clone, Debug)]
enum Op {
    Ask(usize),
    Release(usize),
    /// Declines the n-th address that is granted.
    Decline(usize, usize),
    Journal(usize),
    LoseJournal(usize),
    DropEnactment(usize),
    DropEntry(usize),
    Serve {
        ready: bool,
        fresh: bool,
    },
    Tend,
    Rebuild,
    Wait,
}

fn op() -> impl Strategy<Value = Op> {
    let node = 0..NODES.len();
    prop_oneof![
        6 => node.clone().prop_map(Op::Ask),
        2 => node.clone().prop_map(Op::Release),
        2 => (node.clone(), 0..2_usize).prop_map(|(node, nth)| Op::Decline(node, nth)),
        4 => node.clone().prop_map(Op::Journal),
        1 => node.clone().prop_map(Op::LoseJournal),
        1 => node.prop_map(Op::DropEnactment),
        1 => (0..8_usize).prop_map(Op::DropEntry),
        8 => (any::<bool>(), any::<bool>()).prop_map(|(ready, fresh)| Op::Serve { ready, fresh }),
        2 => Just(Op::Tend),
        1 => Just(Op::Rebuild),
        1 => Just(Op::Wait),
    ]
}

/// Nodes that ask, hold and let go, and a server.
struct Play {
    desk: Desk,
    enactments: BTreeMap<usize, Enactment>,
    ids: usize,
    stamps: usize,
}

impl Play {
    fn new(pool: Pool) -> Self {
        Self { desk: Desk::new(pool), enactments: BTreeMap::new(), ids: 0, stamps: 0 }
    }

    fn fresh(&mut self) -> RequestId {
        self.ids += 1;
        RequestId::new(format!("r{}", self.ids))
    }

    /// Every agent reports what its enactment says it holds.
    fn cluster(&mut self) -> Cluster {
        self.stamps += 1;
        let mut cluster = Cluster::of(&NODES, self.enactments.values().cloned().collect());
        for (index, node) in NODES.iter().enumerate() {
            let journal =
                self.enactments.get(&index).and_then(|own| slot(own).request.as_ref()?.holds.clone());
            let shown: Vec<String> =
                journal.iter().flat_map(|lease| &lease.ips).map(ToString::to_string).collect();
            let shown: Vec<&str> = shown.iter().map(String::as_str).collect();
            cluster = cluster.shows(node, &format!("s{}", self.stamps), &shown);
        }
        cluster
    }

    fn apply(&mut self, op: &Op) {
        match op {
            Op::Ask(node) => {
                let id = self.fresh();
                let asking = enactment(NODES[*node], Request::new(id));
                self.enactments.entry(*node).or_insert(asking);
            }
            Op::Release(node) => self.change(*node, |request, _| {
                request.want = false;
                request.holds = None;
            }),
            Op::Decline(node, nth) => self.change(*node, |request, grant| {
                let address = grant.and_then(|lease| lease.ips.get(*nth).copied());
                if let Some(address) = address.filter(|_| request.want) {
                    request.holds = None;
                    request.declined = BTreeMap::from([(address, stranger())]);
                }
            }),
            Op::Journal(node) => {
                let ledger = self.desk.ledger.clone();
                self.change(*node, |request, grant| {
                    let usable = |lease: &&Lease| {
                        request.want
                            && confirms(Some(&ledger), &request.id, lease)
                            && !lease.ips.iter().any(|ip| request.declined.contains_key(ip))
                    };
                    if let Some(lease) = grant.filter(usable) {
                        request.declined.clear();
                        request.holds = Some(lease.clone());
                    }
                });
            }
            Op::LoseJournal(node) => {
                let id = self.fresh();
                self.change(*node, |request, _| *request = Request::new(id.clone()));
            }
            Op::DropEnactment(node) => {
                self.enactments.remove(node);
            }
            Op::DropEntry(nth) => {
                let address = self.desk.addresses().get(*nth).copied();
                address.and_then(|address| self.desk.ledger.allocations.remove(&address));
            }
            Op::Serve { ready, fresh } => self.serve(*ready, *fresh),
            Op::Tend => {
                let cluster = self.cluster();
                let tended = tend(&self.desk.ledger, &cluster.facts(), QUARANTINE, self.desk.now);
                self.keeps_holders(tended.ledger.as_ref(), &cluster);
                if let Some(next) = tended.ledger {
                    self.desk.ledger = next;
                }
            }
            Op::Rebuild => {
                let cluster = self.cluster();
                let desk = &self.desk;
                let rebuilt = rebuild(&desk.ledger, &name(), &desk.pool, &cluster.facts(), desk.now);
                self.keeps_holders(Some(&rebuilt.ledger), &cluster);
                self.desk.ledger = rebuilt.ledger;
            }
            Op::Wait => self.desk.now += QUARANTINE,
        }
    }

    fn change(&mut self, node: usize, change: impl FnOnce(&mut Request, Option<&Lease>)) {
        let Some(own) = self.enactments.get_mut(&node) else {
            return;
        };
        let slot = slot_mut(own);
        let grant = slot.grant.clone();
        let Some(request) = &mut slot.request else { return };
        let lease = grant.filter(|grant| grant.id == request.id).map(|grant| grant.lease);
        change(request, lease.as_ref());
    }

    fn serve(&mut self, ready: bool, fresh: bool) {
        let mut asking: Vec<Enactment> = self.enactments.values().cloned().collect();
        let served = self.desk.serve_as(&mut asking, |ask| {
            ask.ready = ready;
            ask.fresh = fresh;
        });
        assert!(!served.went_back, "this store never went back");
        for (own, answered) in self.enactments.values_mut().zip(asking) {
            *own = answered;
        }
        self.enactments.retain(|_, own| {
            let refused = slot(own).refused.as_ref();
            refused.is_none_or(|refused| refused.reason != RefusalReason::Released)
        });
        for own in self.enactments.values() {
            let slot = slot(own);
            let current = slot.grant.as_ref().zip(slot.request.as_ref());
            if let Some((grant, request)) = current.filter(|(grant, request)| grant.id == request.id) {
                let expected = if self.desk.pool.ranges()[0].parts().count() == 2 { 2 } else { 1 };
                assert_eq!(grant.lease.ips.len(), expected, "both families or none (R92): {request:?}");
            }
        }
    }

    /// What is Held and listed before is Held by the same afterwards, unless a journal names something else.
    fn keeps_holders(&self, after: Option<&Ledger>, cluster: &Cluster) {
        let Some(after) = after else { return };
        for (ip, entry) in self.desk.ledger.allocations.iter().filter(|(_, entry)| entry.is_held()) {
            let Some(id) = &entry.request else { continue };
            let journalled = cluster.enactments.iter().any(|own| {
                let request = slot(own).request.as_ref();
                request.is_some_and(|r| r.id == *id && r.holds.as_ref().is_some_and(|l| l.ips.contains(ip)))
            });
            let listed = cluster
                .enactments
                .iter()
                .any(|own| own.node_uid == entry.node_uid && own.grants(id, *ip) && own.wants(id));
            let claimed_otherwise = cluster.enactments.iter().any(|own| {
                let holds = slot(own).request.as_ref().and_then(|request| request.holds.as_ref());
                holds.is_some_and(|lease| lease.ips.contains(ip)) && !own.wants(id)
            });
            if journalled || (listed && !claimed_otherwise) {
                let kept = after.allocations.get(ip);
                assert!(kept.is_some_and(|entry| entry.is_held_by(id)), "{ip} of {id} is lost: {kept:?}");
            }
        }
    }

    fn check(&self) {
        let mut seen = BTreeSet::new();
        for (ip, entry) in &self.desk.ledger.allocations {
            assert!(self.desk.pool.contains(*ip));
            if entry.is_held() {
                let id = entry.request.clone().expect("who is Held has an id");
                assert!(seen.insert((id.clone(), ip.is_ipv4())), "{id} holds two of a family");
            }
        }
        // No address is confirmed for two.
        let mut used = BTreeSet::new();
        for own in self.enactments.values() {
            let slot = slot(own);
            let grant = slot.grant.as_ref().filter(|grant| own.wants(&grant.id));
            let backed = grant.filter(|grant| confirms(Some(&self.desk.ledger), &grant.id, &grant.lease));
            for ip in backed.iter().flat_map(|grant| &grant.lease.ips) {
                assert!(used.insert(*ip), "{ip} is two nodes'");
            }
        }
    }
}

fn play(pool: Pool, ops: &[Op]) {
    let mut play = Play::new(pool);
    for op in ops {
        play.apply(op);
        play.check();
    }
}

proptest! {
    // R22, R67, R92, rules 1, 4 and 5.
    #[test]
    fn any_sequence_keeps_addresses_apart(ops in prop::collection::vec(op(), 1..60), last in 1_u8..6) {
        play(pool(last), &ops);
    }

    #[test]
    fn any_sequence_keeps_both_families_together(
        ops in prop::collection::vec(op(), 1..60), v4 in 1_u8..5, v6 in 1_u8..5,
    ) {
        play(dual(v4, v6), &ops);
    }

    // Whatever an object was edited to, nothing panics.
    #[test]
    fn no_number_is_too_large(sequence in any::<u64>(), now in any::<u64>(), until in any::<u64>()) {
        let mut ledger = ledger();
        ledger.sequence = sequence;
        ledger.allocations.insert(ip("10.0.0.1"), held("a", sequence));
        let cluster = Cluster::of(&["a", "b"], vec![holding("b", lease(&["10.0.0.2"], u64::MAX))]);
        let facts = cluster.facts();
        tend(&ledger, &facts, until, now);
        let rebuilt = rebuild(&ledger, &name(), &pool(4), &facts, now).ledger;
        prop_assert!(rebuilt.sequence >= sequence);
        inherit(&ledger, &"a".into(), &lease(&["10.0.0.1"], 1), &"new".into());
        ledger.hold = Some(Hold { until });
        reassert(&ledger, &name(), &pool(9), &facts, now);
        let mut leaving = asking("a");
        leaving.deleting = Some(now);
        may_finish(&leaving, |_| None, until, now);
    }
}
