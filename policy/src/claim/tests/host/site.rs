//! A host and an API server that is always there and always fresh. Each step is written down as a line.

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;

use super::super::fixtures::{NOW, asked, node_uid, stranger};
use crate::claim::*;
use crate::pool::{Barred, Pool};

pub(super) struct Site {
    pub(super) host: Host,
    pub(super) node: NodeSeen,
    pub(super) ready: bool,
    pub(super) now: Time,
    pub(super) wants: BTreeMap<ClaimKey, Option<IpAddr>>,
    /// Policies that can't be put on the NIC now.
    pub(super) waits: BTreeSet<PolicyName>,
    pub(super) enactments: BTreeMap<PolicyName, Enactment>,
    pub(super) state: Option<HostState>,
    pub(super) nic: BTreeSet<IpAddr>,
    /// What policies were last brought about with.
    pub(super) good: BTreeMap<PolicyName, BTreeSet<IpAddr>>,
    /// Addresses that a stranger answers for.
    pub(super) wire: BTreeSet<IpAddr>,
    pub(super) pools: BTreeMap<PoolName, (Pool, Ledger)>,
    ids: usize,
    stamps: usize,
}

impl Site {
    pub(super) fn new() -> Self {
        Self {
            host: Host::default(),
            node: NodeSeen::Is(node_uid("a")),
            ready: true,
            now: NOW,
            wants: BTreeMap::new(),
            waits: BTreeSet::new(),
            enactments: BTreeMap::new(),
            state: None,
            nic: BTreeSet::new(),
            good: BTreeMap::new(),
            wire: BTreeSet::new(),
            pools: BTreeMap::new(),
            ids: 0,
            stamps: 0,
        }
    }

    pub(super) fn pool(mut self, name: &str, pool: Pool) -> Self {
        let mut ledger = Ledger::new(PoolUid::new(format!("uid-{name}")));
        ledger.rebuilt_for = Some(ledger.pool.clone());
        self.pools.insert(name.into(), (pool, ledger));
        self
    }

    pub(super) fn wants(mut self, pool: &str, capture: &str) -> Self {
        self.wants.insert(claim(pool, capture), None);
        self
    }

    pub(super) fn ledger(&self, pool: &str) -> &Ledger {
        &self.pools[&pool.into()].1
    }

    pub(super) fn ledger_mut(&mut self, pool: &str) -> &mut Ledger {
        &mut self.pools.get_mut(&pool.into()).expect("the pool").1
    }

    pub(super) fn entry(&self, pool: &str, address: &str) -> &Entry {
        &self.ledger(pool).allocations[&super::ip(address)]
    }

    pub(super) fn record(&self, capture: &str) -> &Record {
        let of = |(key, _): &(&ClaimKey, &Record)| key.capture.as_str() == capture;
        self.host.journal.iter().find(of).expect("a record").1
    }

    /// The host is switched off and on again.
    pub(super) fn boot(&mut self) {
        self.nic.clear();
        self.host = self.host.restarted();
    }

    /// So many steps, or fewer where there is nothing more to do.
    pub(super) fn run(&mut self, steps: usize) -> Vec<String> {
        (0..steps).map_while(|_| self.step()).collect()
    }

    /// Steps until nothing is left to do.
    pub(super) fn settle(&mut self) -> Vec<String> {
        let done = self.run(200);
        assert!(done.len() < 200, "never rests: {:?}", &done[190..]);
        done
    }

    /// The host's next action; where it has none, the server's turn.
    pub(super) fn step(&mut self) -> Option<String> {
        let fresh_id = RequestId::new(format!("id{}", self.ids));
        let selected = self.wants.keys().map(|key| key.policy.clone()).collect();
        let seen = Seen {
            now: self.now,
            selected: &selected,
            waits: &self.waits,
            node: &self.node,
            ready: self.ready,
            wants: &self.wants,
            enactments: &self.enactments,
            state: self.state.as_ref(),
            refresh: false,
            nic: &self.nic,
            good: &self.good,
            fresh_id: &fresh_id,
        };
        let Some(action) = self.host.next(&seen) else {
            return self.serve().then(|| "serve".to_owned());
        };
        let line = line(&action);
        let outcome = self.act(&action);
        let after = self.host.after(&action, &outcome);
        self.host.done(&action, &outcome, self.now);
        if let Some(follow_up) = after {
            self.host.done(&follow_up, &Outcome::Done, self.now);
        }
        let uses_id = |record: &Record| record.id == fresh_id;
        self.ids += usize::from(self.host.journal.values().any(uses_id));
        Some(line)
    }

    fn act(&mut self, action: &Action) -> Outcome {
        match action {
            Action::Journal { .. } | Action::Announce { .. } => {}
            Action::AddToNic { lease, .. } => {
                if let Some(ip) = lease.ips.iter().find(|ip| self.wire.contains(ip)) {
                    return Outcome::Taken { ip: *ip, by: stranger() };
                }
                self.nic.extend(&lease.ips);
            }
            Action::RemoveFromNic { ips } => self.nic.retain(|ip| !ips.contains(ip)),
            Action::Report { node_uid, shows } => {
                self.stamps += 1;
                self.state = Some(HostState {
                    node: "a".into(),
                    node_uid: node_uid.clone(),
                    stamp: Stamp::new(format!("s{}", self.stamps)),
                    shows: shows.clone(),
                });
            }
            Action::Confirm { key, lease } => {
                let ledger = self.pools.get(&key.pool).map(|(_, ledger)| ledger);
                return Outcome::Backed(confirms(ledger, &self.host.journal[key].id, lease));
            }
            Action::Inherit { key, id, lease, node_uid } => return self.inherit(key, id, lease, node_uid),
            Action::CreateEnactment { policy, node_uid, slots } => {
                let enactment = Enactment {
                    uid: EnactmentUid::new(format!("e-{node_uid}-{policy}")),
                    node: "a".into(),
                    node_uid: node_uid.clone(),
                    policy: policy.clone(),
                    deleting: None,
                    slots: slots.clone(),
                };
                assert!(self.enactments.insert(policy.clone(), enactment).is_none(), "the name is taken");
            }
            Action::WriteRequests { policy, requests } => {
                let own = self.enactments.get_mut(policy).expect("the enactment");
                for (key, request) in requests {
                    own.slots.entry(key.clone()).or_default().request = Some(request.clone());
                }
            }
            Action::RemoveSlot { key } => {
                let own = self.enactments.get_mut(&key.policy).expect("the enactment");
                own.slots.remove(&key.slot());
            }
            Action::DropEnactment { policy, node_uid } => {
                let dropped = self.enactments.remove(policy).expect("the enactment");
                assert_eq!(dropped.node_uid, *node_uid);
            }
        }
        Outcome::Done
    }

    fn inherit(&mut self, key: &ClaimKey, id: &RequestId, lease: &Lease, uid: &NodeUid) -> Outcome {
        let Some((_, ledger)) = self.pools.get_mut(&key.pool) else {
            return Outcome::Asserted;
        };
        match inherit(ledger, id, lease, uid) {
            // Written; what came of it is seen at the next look.
            Inheritance::Write(next) => {
                *ledger = next;
                Outcome::Done
            }
            Inheritance::Done => Outcome::Inherited,
            Inheritance::Lost => Outcome::NotOurs,
            Inheritance::NotNow => Outcome::Asserted,
        }
    }

    /// The controller, up to date: every pool in the order of names.
    pub(super) fn serve(&mut self) -> bool {
        let read: Vec<Enactment> = self.enactments.values().cloned().collect();
        let mut answers = Vec::new();
        let mut wrote = false;
        for (name, (pool, ledger)) in &mut self.pools {
            let mut asks: Vec<Asked<'_>> = read.iter().flat_map(asked).collect();
            asks.retain(|ask| ask.key.pool == *name);
            for ask in &mut asks {
                ask.live = self.node == NodeSeen::Is(ask.enactment.node_uid.clone());
            }
            let served = serve(ledger, pool, &Barred::default(), &asks, self.now);
            if let Some(next) = served.ledger {
                *ledger = next;
                wrote = true;
            }
            answers.extend(served.answers);
        }
        for answer in &answers {
            let own = self.enactments.values_mut().find(|own| answer.fits(own)).expect("it fits");
            answer.write(own.slots.get_mut(&answer.key).expect("the slot"));
        }
        wrote || !answers.is_empty()
    }
}

pub(super) fn claim(pool: &str, capture: &str) -> ClaimKey {
    ClaimKey { policy: "static-ip".into(), pool: pool.into(), capture: capture.into() }
}

fn line(action: &Action) -> String {
    let of = |key: &ClaimKey| format!("{}/{}", key.pool, key.capture);
    match action {
        Action::Journal { key, record } => {
            let phase = match record.as_ref().map(|record| &record.phase) {
                None => "forgotten",
                Some(Phase::Asking { .. }) => "asking",
                Some(Phase::Holding(_)) => "holding",
                Some(Phase::Parked(_)) => "parked",
                Some(Phase::Releasing) => "releasing",
            };
            format!("journal {} {phase}", of(key))
        }
        Action::AddToNic { lease, .. } => format!("nic + {:?}", lease.ips),
        Action::RemoveFromNic { ips } => format!("nic - {ips:?}"),
        Action::Report { shows, .. } => format!("report {:?}", Vec::from_iter(shows)),
        Action::Announce { leases } => {
            format!("announce {}", leases.keys().map(of).collect::<Vec<_>>().join(", "))
        }
        Action::Confirm { key, .. } => format!("confirm {}", of(key)),
        Action::CreateEnactment { policy, .. } => format!("create {policy}"),
        Action::WriteRequests { requests, .. } => {
            let what = |request: &Request| match (request.want, &request.holds) {
                (false, _) => "let go",
                (true, Some(_)) => "holds",
                (true, None) => "wants",
            };
            let each = requests
                .iter()
                .map(|(key, request)| format!("{}/{} {}", key.pool, key.capture, what(request)));
            format!("request {}", each.collect::<Vec<_>>().join(", "))
        }
        Action::RemoveSlot { key } => format!("remove {}", of(key)),
        Action::DropEnactment { policy, .. } => format!("drop {policy}"),
        Action::Inherit { key, .. } => format!("inherit {}", of(key)),
    }
}
