//! A ledger as large as there may be: what an agent may write into it is found out within what an expression may cost, in the
//! same words. Where it is not, every claim of such a pool would be refused.

use api_tests::RUNTIME;
use api_tests::server::MERGE_PATCH;
use api_tests::server::paths::{POOLS, at, status};
use hyper::Method;
use serde_json::{Map, Value, json};

use crate::ground::{Ground, HOST};

/// The most that the schema takes, but for one; and what is documented for many ranges.
const MOST: usize = 4_999;
const IN_RANGES: usize = 1_200;
const RANGES: usize = 32;

struct Large {
    name: &'static str,
    spec: Value,
    /// How many are held, all by another.
    held: usize,
    /// The n-th address, from 0.
    address: fn(usize) -> String,
    has_offsets: bool,
}

fn all() -> [Large; 3] {
    let range = |n: usize| json!({"name": format!("r{n}"), "cidr": format!("10.{n}.0.0/24"), "excludes": [format!("10.{n}.0.250")]});
    let ranges: Vec<Value> = (0..RANGES).map(range).collect();
    [
        Large {
            name: "large-4",
            spec: json!({"range": {"cidr": "10.0.0.0/16"}, "staticBand": "None"}),
            held: MOST,
            address: |n| format!("10.0.{}.{}", (n + 1) / 256, (n + 1) % 256),
            has_offsets: true,
        },
        Large {
            name: "large-6",
            spec: json!({"range": {"cidr": "fd00::/96"}, "staticBand": "None"}),
            held: MOST,
            address: |n| format!("fd00::{:x}", n + 1),
            has_offsets: true,
        },
        Large {
            name: "large-ranges",
            spec: json!({"ranges": ranges, "staticBand": "None"}),
            held: IN_RANGES,
            address: |n| format!("10.{}.0.{}", n % RANGES, n / RANGES + 1),
            has_offsets: false,
        },
    ]
}

fn entry(node: &str, uid: &str, n: usize) -> Value {
    json!({"node": node, "nodeUID": uid, "policy": "web", "capture": "a", "request": format!("{n:032x}"),
        "sequence": 1, "since": "2026-01-01T00:00:00Z", "kind": "dynamic"})
}

impl Large {
    /// What the ledger says with so many held, and besides.
    fn says(&self, many: usize, sequence: u64) -> Value {
        let mut says = json!({"sequence": sequence, "allocated": many, "available": 10_000 - many});
        if self.has_offsets {
            says["allocated-offsets"] = (0..many).collect();
        }
        says
    }

    async fn make(&self, ground: &Ground) {
        let object = json!({"apiVersion": "nmstate.io/v1", "kind": "NodeIPPool", "metadata": {"name": self.name}, "spec": self.spec});
        let made = ground.admin.post(POOLS, &object).await.created();
        let mut ledger = self.says(self.held, 1);
        let entries = (0..self.held).map(|n| ((self.address)(n), entry("node02", &ground.uids.node02, n)));
        ledger["allocations"] = Value::Object(entries.collect::<Map<_, _>>());
        ledger["capacity"] = 10_000.into();
        ledger["rebuiltFor"] = made["metadata"]["uid"].clone();
        ground.admin.merge(&status(POOLS, self.name), &json!({"status": ledger})).await.ok();
    }

    async fn check(&self, ground: &Ground) {
        self.make(ground).await;
        let path = status(POOLS, self.name);
        let mut claim = self.says(self.held + 1, 2);
        claim["allocations"] =
            json!({(self.address)(self.held): entry(HOST, &ground.uids.node01, self.held)});
        let taken = ground.agent.ask(Method::PATCH, &path, MERGE_PATCH, &json!({"status": claim})).await;
        assert_eq!(taken.code, 200, "{}: {}", self.name, taken.text.chars().take(500).collect::<String>());
        let another = (self.address)(7);
        let mut theft = self.says(self.held + 1, 3);
        theft["allocations"] = json!({(&another): entry(HOST, &ground.uids.node01, self.held + 1)});
        let refused = ground.agent.ask(Method::PATCH, &path, MERGE_PATCH, &json!({"status": theft})).await;
        let said = refused.text.chars().take(500).collect::<String>();
        assert_eq!(refused.code, 403, "{}: {said}", self.name);
        assert!(said.contains(&another) && said.contains("node02"), "{}: {said}", self.name);
        ground.admin.delete(&at(POOLS, self.name)).await.ok();
    }
}

fn check(ground: &Ground) {
    RUNTIME.block_on(async {
        for large in all() {
            large.check(ground).await;
        }
    });
}

#[test]
fn a_policy_looks_through_the_largest_ledger() {
    check(Ground::real());
}

#[test]
fn the_embedded_api_looks_through_the_largest_ledger() {
    check(&Ground::embedded());
}
