//! Serving 1,000 requests to a /16, at once and one at a time, in an empty ledger and beside 2,000 holders.
//!
//! Baseline: the batch into the empty ledger. One at a time is what it would cost if every agent served
//! itself, one after the other and without a single conflict: each of these is also a write of the whole
//! ledger, which no table here counts.

use std::collections::BTreeMap;
use std::hint::black_box;

use berth_tests::bench::{Row, measure, print};
use policy::claim::{Asked, Enactment, Ledger, PoolUid, Request, RequestId, Served, Slot, SlotKey, serve};
use policy::pool::{Barred, Pool, PoolSpec};
use serde_json::json;

const REQUESTS: usize = 1_000;
/// What a shared ledger is meant for (docs/ARCHITECTURE.md).
const HELD: usize = 2_000;
const NOW: u64 = 1_000_000;

pub(crate) fn run() {
    let bench = Bench::new();
    let empty = bench.ledger();
    let waiting: Vec<Enactment> = (0..REQUESTS).map(|n| enactment("new", n)).collect();
    let holders: Vec<Enactment> = (0..HELD).map(|n| enactment("old", n)).collect();
    let full = bench.batch(&empty, &holders).ledger.expect("2,000 served");
    assert_eq!(full.allocations.len(), HELD, "everybody holds one");

    let base = bench.at_once("1,000 requests in one batch, empty ledger", &empty, &waiting);
    let rows = [
        bench.one_by_one("1,000 batches of one, empty ledger", &empty, &waiting),
        bench.at_once("1,000 requests in one batch, 2,000 held", &full, &waiting),
        bench.one_by_one("1,000 batches of one, 2,000 held", &full, &waiting),
        bench.at_once("one request, empty ledger", &empty, &waiting[..1]),
        bench.at_once("one request, 2,000 held", &full, &waiting[..1]),
    ];
    let rows: Vec<Row> =
        std::iter::once(base.clone()).chain(rows.into_iter().map(|row| row.against(&base))).collect();
    print("serve", &rows);
}

struct Bench {
    pool: Pool,
    barred: Barred,
    key: SlotKey,
    labels: BTreeMap<String, String>,
}

impl Bench {
    fn new() -> Self {
        let spec = PoolSpec::from_spec("traffic-1", &json!({"range": {"cidr": "10.10.0.0/16"}}));
        Self {
            pool: Pool::new(&spec.expect("a spec")).expect("a pool"),
            barred: Barred::default(),
            key: key(),
            labels: BTreeMap::new(),
        }
    }

    /// Nobody holds anything, and it gives.
    fn ledger(&self) -> Ledger {
        let uid = PoolUid::from("pool-uid");
        Ledger { rebuilt_for: Some(uid.clone()), ..Ledger::new(uid) }
    }

    fn batch(&self, ledger: &Ledger, enactments: &[Enactment]) -> Served {
        let asked: Vec<Asked<'_>> = enactments
            .iter()
            .map(|enactment| Asked {
                enactment,
                key: &self.key,
                labels: &self.labels,
                live: true,
                ready: true,
                fresh: true,
            })
            .collect();
        serve(ledger, &self.pool, &self.barred, &asked, NOW)
    }

    fn at_once(&self, name: &str, ledger: &Ledger, enactments: &[Enactment]) -> Row {
        measure(name, |_| {
            let served = black_box(self.batch(black_box(ledger), enactments));
            assert_eq!(served.answers.len(), enactments.len(), "everybody is answered");
        })
    }

    fn one_by_one(&self, name: &str, ledger: &Ledger, enactments: &[Enactment]) -> Row {
        measure(name, |_| {
            let mut ledger = ledger.clone();
            for enactment in enactments {
                let served = self.batch(&ledger, std::slice::from_ref(enactment));
                ledger = served.ledger.expect("something was given");
            }
            black_box(ledger);
        })
    }
}

fn key() -> SlotKey {
    SlotKey { pool: "traffic-1".into(), capture: "address-from-traffic-1".into() }
}

/// What a node that wants an address has written.
fn enactment(group: &str, n: usize) -> Enactment {
    let id = |what: &str| format!("{what}-{group}-{n}");
    let slot = Slot { request: Some(Request::new(RequestId::new(id("request")))), ..Slot::default() };
    Enactment {
        uid: id("enactment").as_str().into(),
        node: id("node").as_str().into(),
        node_uid: id("node-uid").as_str().into(),
        policy: "static-ip".into(),
        deleting: None,
        slots: BTreeMap::from([(key(), slot)]),
    }
}
