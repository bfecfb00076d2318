//! A ledger as large as there may be: what an agent may write into it is found out within what an expression may cost, in the
//! same words. Where it is not, every claim of such a pool would be refused.

use api_tests::RUNTIME;
use api_tests::server::paths::{POOLS, at, status};
use api_tests::server::{Answer, MERGE_PATCH};
use api_tests::wait::until;
use hyper::Method;
use serde_json::{Map, Value, json};

use crate::ground::{Asker, Ground, HOST};

/// The most that the schema takes.
const MOST: usize = 5_000;
const RANGES: usize = 32;

struct Large {
    name: &'static str,
    spec: Value,
    /// How many are held once the agent has its own; the others are another's.
    held: usize,
    /// The n-th address, from 0.
    address: fn(usize) -> String,
    /// Of this many families, by turns.
    families: usize,
    has_offsets: bool,
}

/// The largest of each kind; and the dearest, those that are just small enough for all their entries to be counted
/// (`uncounted` in deploy/admission/agent-ledger.yaml).
fn all() -> Vec<Large> {
    let range = |cidr: &str| json!({"range": {"cidr": cidr}, "staticBand": "None"});
    let ranges = |range: fn(usize) -> Value| {
        let named = |n| {
            let mut range = range(n);
            range["name"] = format!("r{n}").into();
            range
        };
        json!({"ranges": (0..RANGES).map(named).collect::<Vec<_>>(), "staticBand": "None"})
    };
    let ranges_4 = || {
        let range =
            |n: usize| json!({"cidr": format!("10.{n}.0.0/24"), "exclude": [format!("10.{n}.0.250")]});
        Large {
            name: "large-ranges-4",
            spec: ranges(range),
            held: 1_200,
            address: |n| format!("10.{}.0.{}", n % RANGES, n / RANGES + 1),
            families: 1,
            has_offsets: false,
        }
    };
    let one_6 = || Large {
        name: "large-6",
        spec: range("fd00::/96"),
        held: MOST,
        address: |n| format!("fd00::{:x}", n + 1),
        families: 1,
        has_offsets: true,
    };
    vec![
        Large {
            name: "large-4",
            spec: range("10.0.0.0/16"),
            held: MOST,
            address: |n| format!("10.0.{}.{}", (n + 1) / 256, (n + 1) % 256),
            families: 1,
            has_offsets: true,
        },
        one_6(),
        Large { name: "counted-6", held: 4_500, ..one_6() },
        ranges_4(),
        Large { name: "counted-ranges-4", held: 1_125, ..ranges_4() },
        Large {
            name: "counted-ranges-6",
            spec: ranges(|n| json!({"cidr": format!("fd00:0:0:{:x}::/64", n + 1)})),
            held: 625,
            address: |n| format!("fd00:0:0:{:x}::{:x}", n % RANGES + 1, n / RANGES + 1),
            families: 1,
            has_offsets: false,
        },
        Large {
            name: "counted-dual",
            spec: json!({"range": {"ipv4": {"cidr": "10.0.0.0/16"}, "ipv6": {"cidr": "fd00::/96"}}, "staticBand": "None"}),
            held: 4_090,
            address: |n| match (n % 2, n / 2 + 1) {
                (0, host) => format!("10.0.{}.{}", host / 256, host % 256),
                (_, host) => format!("fd00::{host:x}"),
            },
            families: 2,
            has_offsets: false,
        },
    ]
}

fn entry(node: &str, uid: &str, n: usize) -> Value {
    json!({"node": node, "nodeUID": uid, "policy": "web", "capture": "a", "request": format!("{n:032x}"),
        "sequence": 1, "since": "2026-01-01T00:00:00Z", "kind": "dynamic"})
}

/// How it is answered in the end that a pool's status is to say this. An API server ends a write after 34 s, and much else may run beside it: how long a
/// ledger takes is not asked here.
async fn verdict(by: &Asker, pool: &str, said: &Value) -> Answer {
    let (path, body) = (status(POOLS, pool), json!({"status": said}));
    until(&format!("an answer about {pool}"), || async {
        let answer = by.ask(Method::PATCH, &path, MERGE_PATCH, &body).await;
        if answer.code == 504 { Err(answer.text) } else { Ok(answer) }
    })
    .await
}

impl Large {
    /// What the ledger says with so many held, and besides.
    fn says(&self, many: usize, sequence: u64) -> Value {
        let mut says = json!({"sequence": sequence, "allocated": many.div_ceil(self.families), "available": 10_000 - many});
        if self.has_offsets {
            says["allocated-offsets"] = (0..many).collect();
        }
        says
    }

    async fn make(&self, ground: &Ground) {
        let object = json!({"apiVersion": "nmstate.io/v1", "kind": "NodeIPPool", "metadata": {"name": self.name}, "spec": self.spec});
        let made = ground.admin.post(POOLS, &object).await.created();
        let others = self.held - 1;
        let mut ledger = self.says(others, 1);
        let entries = (0..others).map(|n| ((self.address)(n), entry("node02", &ground.uids.node02, n)));
        ledger["allocations"] = Value::Object(entries.collect::<Map<_, _>>());
        ledger["capacity"] = 10_000.into();
        ledger["rebuiltFor"] = made["metadata"]["uid"].clone();
        verdict(&ground.person, self.name, &ledger).await.ok();
    }

    async fn check(&self, ground: &Ground) {
        self.make(ground).await;
        let mut claim = self.says(self.held, 2);
        let own = self.held - 1;
        claim["allocations"] = json!({(self.address)(own): entry(HOST, &ground.uids.node01, own)});
        let taken = verdict(&ground.agent, self.name, &claim).await;
        assert_eq!(taken.code, 200, "{}: {}", self.name, taken.text.chars().take(500).collect::<String>());
        let another = (self.address)(7);
        let mut theft = self.says(self.held, 3);
        theft["allocations"] = json!({(&another): entry(HOST, &ground.uids.node01, self.held)});
        let refused = verdict(&ground.agent, self.name, &theft).await;
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

/// One after the other: each has enough to do.
#[test]
fn the_largest_ledger_is_looked_through() {
    check(&Ground::embedded());
    check(Ground::real());
}
