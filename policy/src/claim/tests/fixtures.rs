//! A pool, a ledger and enactments small enough to read.

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;

use serde_json::{Value, json};

use crate::claim::*;
use crate::pool::{Barred, Pool, PoolSpec};

pub(super) const QUARANTINE: Time = 100;
pub(super) const NOW: Time = 1_000;

pub(super) fn ip(text: &str) -> IpAddr {
    text.parse().expect("test address")
}

/// Who answers on the wire.
pub(super) fn stranger() -> Stranger {
    Stranger { mac: "02:00:00:00:00:09".to_owned(), interface: "eth0".to_owned() }
}

pub(super) fn ips(texts: &[&str]) -> Vec<IpAddr> {
    texts.iter().map(|text| ip(text)).collect()
}

pub(super) fn pool_of(mut spec: Value) -> Pool {
    spec["quarantine"] = json!(format!("{QUARANTINE}s"));
    let spec = PoolSpec::from_spec("pool", &spec).unwrap_or_else(|e| panic!("{e}"));
    Pool::new(&spec).unwrap_or_else(|e| panic!("{e}"))
}

/// 10.0.0.1 to 10.0.0.`last`.
pub(super) fn pool(last: u8) -> Pool {
    pool_of(json!({
        "range": {"cidr": "10.0.0.0/24", "start": "10.0.0.1", "end": format!("10.0.0.{last}")},
        "staticBand": "None",
    }))
}

/// 10.0.0.1 and fd00::1 and up, as many as said of each.
pub(super) fn dual(v4: u8, v6: u8) -> Pool {
    pool_of(json!({
        "range": {
            "ipv4": {"cidr": "10.0.0.0/24", "start": "10.0.0.1", "end": format!("10.0.0.{v4}")},
            "ipv6": {"cidr": "fd00::/64", "start": "fd00::1", "end": format!("fd00::{v6:x}")},
        },
        "staticBand": "None",
    }))
}

/// A proven ledger with nothing in it.
pub(super) fn ledger() -> Ledger {
    let mut ledger = Ledger::new("p".into());
    ledger.rebuilt_for = Some("p".into());
    ledger
}

pub(super) fn name() -> PoolName {
    "pool".into()
}

pub(super) fn key() -> SlotKey {
    SlotKey { pool: name(), capture: "addr".into() }
}

pub(super) fn lease(texts: &[&str], sequence: u64) -> Lease {
    Lease { ips: ips(texts), sequence, pool: "p".into() }
}

pub(super) fn node_uid(node: &str) -> NodeUid {
    NodeUid::new(format!("uid-{node}"))
}

/// The enactment of a node, with this request.
pub(super) fn enactment(node: &str, request: Request) -> Enactment {
    let slot = Slot { request: Some(request), ..Slot::default() };
    Enactment {
        uid: EnactmentUid::new(format!("e-{node}")),
        node: node.into(),
        node_uid: node_uid(node),
        policy: "static-ip".into(),
        deleting: None,
        slots: BTreeMap::from([(key(), slot)]),
    }
}

/// A node's wish; its id is the node's name.
pub(super) fn asking(node: &str) -> Enactment {
    enactment(node, Request::new(node.into()))
}

pub(super) fn holding(node: &str, lease: Lease) -> Enactment {
    let mut request = Request::new(node.into());
    request.holds = Some(lease);
    enactment(node, request)
}

/// Granted, not yet journalled.
pub(super) fn granted(node: &str, lease: Lease) -> Enactment {
    let mut enactment = asking(node);
    slot_mut(&mut enactment).grant = Some(Grant { id: node.into(), lease });
    enactment
}

pub(super) fn slot_mut(enactment: &mut Enactment) -> &mut Slot {
    enactment.slots.get_mut(&key()).expect("the slot")
}

pub(super) fn slot(enactment: &Enactment) -> &Slot {
    &enactment.slots[&key()]
}

pub(super) fn request(enactment: &mut Enactment) -> &mut Request {
    slot_mut(enactment).request.as_mut().expect("the request")
}

pub(super) fn granted_ips(enactment: &Enactment) -> Vec<IpAddr> {
    slot(enactment).grant.as_ref().map_or_else(Vec::new, |grant| grant.lease.ips.clone())
}

pub(super) fn refused(enactment: &Enactment) -> (RefusalReason, &str) {
    let refused = slot(enactment).refused.as_ref().expect("a refusal");
    (refused.reason, &refused.message)
}

pub(super) fn held(node: &str, sequence: u64) -> Entry {
    Entry {
        node: node.into(),
        node_uid: node_uid(node),
        policy: "static-ip".into(),
        capture: "addr".into(),
        request: Some(node.into()),
        sequence,
        since: NOW,
        kind: EntryKind::Dynamic,
        state: EntryState::Held,
    }
}

pub(super) fn quarantined(node: &str, reason: QuarantineReason, witness: Option<&str>) -> Entry {
    Entry {
        state: EntryState::Quarantined(Quarantine {
            until: NOW + QUARANTINE,
            reason,
            witness: witness.map(Stamp::from),
        }),
        ..held(node, 1)
    }
}

pub(super) fn reason(entry: &Entry) -> Option<&QuarantineReason> {
    match &entry.state {
        EntryState::Held => None,
        EntryState::Quarantined(quarantine) => Some(&quarantine.reason),
    }
}

pub(super) fn asked(enactment: &Enactment) -> Vec<Asked<'_>> {
    static NO_LABELS: BTreeMap<String, String> = BTreeMap::new();
    let ask = |key| Asked { enactment, key, labels: &NO_LABELS, live: true, ready: true, fresh: true };
    enactment.slots.keys().map(ask).collect()
}

/// A server of claims with its pool: what comes out is written at once.
pub(super) struct Desk {
    pub(super) pool: Pool,
    pub(super) barred: Barred,
    pub(super) ledger: Ledger,
    pub(super) now: Time,
}

impl Desk {
    pub(super) fn new(pool: Pool) -> Self {
        Self { pool, barred: Barred::default(), ledger: ledger(), now: NOW }
    }

    pub(super) fn with(mut self, text: &str, entry: Entry) -> Self {
        self.ledger.sequence = self.ledger.sequence.max(entry.sequence);
        self.ledger.allocations.insert(ip(text), entry);
        self
    }

    pub(super) fn serve(&mut self, enactments: &mut [Enactment]) -> Served {
        self.serve_as(enactments, |_| {})
    }

    /// Serves, with what the server read of each changed first.
    pub(super) fn serve_as(
        &mut self,
        enactments: &mut [Enactment],
        change: impl Fn(&mut Asked<'_>),
    ) -> Served {
        let mut asks: Vec<Asked<'_>> = enactments.iter().flat_map(asked).collect();
        asks.iter_mut().for_each(change);
        let served = serve(&self.ledger, &self.pool, &self.barred, &asks, self.now);
        if let Some(next) = &served.ledger {
            assert_eq!(next.sequence, self.ledger.sequence + 1, "one write, one sequence");
            self.ledger = next.clone();
        }
        for answer in &served.answers {
            let target = enactments.iter_mut().find(|enactment| answer.fits(enactment));
            let slot = target.and_then(|enactment| enactment.slots.get_mut(&answer.key));
            answer.write(slot.expect("the answer fits"));
        }
        served
    }

    pub(super) fn entry(&self, text: &str) -> &Entry {
        &self.ledger.allocations[&ip(text)]
    }

    pub(super) fn addresses(&self) -> Vec<IpAddr> {
        self.ledger.allocations.keys().copied().collect()
    }
}

/// What a controller reads besides the ledger.
pub(super) struct Cluster {
    pub(super) nodes: BTreeMap<NodeName, NodeUid>,
    pub(super) enactments: Vec<Enactment>,
    pub(super) states: Vec<HostState>,
    pub(super) witnessed: BTreeSet<NodeUid>,
    pub(super) confirmed: Option<usize>,
}

impl Cluster {
    pub(super) fn of(nodes: &[&str], enactments: Vec<Enactment>) -> Self {
        Self {
            nodes: nodes.iter().map(|node| ((*node).into(), node_uid(node))).collect(),
            enactments,
            states: Vec::new(),
            witnessed: BTreeSet::new(),
            confirmed: None,
        }
    }

    /// What a node's agent reports.
    pub(super) fn shows(mut self, node: &str, stamp: &str, shown: &[&str]) -> Self {
        self.states.retain(|state| state.node.as_str() != node);
        self.states.push(HostState {
            node: node.into(),
            node_uid: node_uid(node),
            stamp: stamp.into(),
            shows: ips(shown).into_iter().collect(),
        });
        self
    }

    pub(super) fn facts(&self) -> Facts<'_> {
        Facts {
            nodes: &self.nodes,
            enactments: self.enactments.iter().collect(),
            states: self.states.iter().collect(),
            witnessed: &self.witnessed,
            confirmed: self.confirmed,
        }
    }
}
