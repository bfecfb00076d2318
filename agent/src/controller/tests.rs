//! The controller on the embedded API, in this process; hosts are played by writes to the API.

mod notice;
mod reading;
mod stage;

use std::collections::BTreeSet;

use futures_util::StreamExt;
use serde_json::{Value, json};

use stage::Stage;

/// R12, R13, R98: a new pool is proven before it gives, and says so.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn r12_r13_a_new_pool_becomes_available() {
    let stage = Stage::new().await;
    stage
        .pool(
            "traffic-1",
            json!({"range": {"cidr": "10.10.10.0/24", "start": "10.10.10.1", "end": "10.10.10.10",
        "exclude": ["10.10.10.4", "10.10.10.7"]}}),
        )
        .await;
    let pool = stage
        .until_pool("traffic-1", "available", |pool| {
            pool["status"]["conditions"][0]["reason"] == "ReconciledPool"
        })
        .await;
    assert_eq!(pool["status"]["rebuiltFor"], pool["metadata"]["uid"]);
    assert_eq!(pool["status"]["conditions"][0]["message"], "The pool is up to date");
    assert_eq!((&pool["status"]["capacity"], &pool["status"]["available"]), (&json!(8), &json!(8)));
}

/// R22, R23: as many hosts as addresses ask at once; each has its own, by few writes of the pool.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn r22_r23_each_host_is_granted_its_own() {
    const HOSTS: usize = 32;
    let stage = Stage::new().await;
    stage.pool("pool", json!({"range": {"cidr": "10.0.0.0/24", "start": "10.0.0.1", "end": "10.0.0.32"}, "staticBand": "None"})).await;
    stage.until_pool("pool", "proven", |pool| !pool["status"]["rebuiltFor"].is_null()).await;
    for host in 0..HOSTS {
        stage.host(&format!("node{host:02}")).await;
        stage.asks(&format!("node{host:02}"), "policy", "pool", "addr", &format!("id-{host}")).await;
    }
    let mut given = BTreeSet::new();
    for host in 0..HOSTS {
        let own = stage.until_granted(&format!("node{host:02}"), "policy", "pool", "addr").await;
        assert_eq!(own["id"], format!("id-{host}"));
        assert_eq!(own["prefix-length"], 24);
        assert!(given.insert(own["ip"].as_str().unwrap().to_owned()), "{own} twice");
    }
    let pool = stage
        .until_pool("pool", "full", |pool| pool["status"]["conditions"][0]["reason"] == "ExhaustedIPPool")
        .await;
    assert_eq!(pool["status"]["allocated-offsets"].as_array().unwrap().len(), HOSTS);
    // One more: told so, and served as soon as one is let go (R32, R69).
    stage.host("late").await;
    stage.asks("late", "policy", "pool", "addr", "id-late").await;
    let refused = stage
        .until_enactment("late", "policy", "refused", |own| {
            !own["status"]["ippool"]["pool"]["refused"]["addr"].is_null()
        })
        .await;
    assert_eq!(refused["status"]["ippool"]["pool"]["refused"]["addr"]["reason"], "NoAddress");
    stage.lets_go("node00", "policy", "pool", "addr").await;
    stage.until_granted("late", "policy", "pool", "addr").await;
}

/// R22: who asks several pools at once is answered by all of them in one write.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn r22_several_pools_answer_together() {
    let stage = Stage::new().await;
    let pools = ["one", "two", "three"];
    for (number, pool) in pools.into_iter().enumerate() {
        stage.pool(pool, json!({"range": {"cidr": format!("10.{number}.0.0/24")}})).await;
        stage.until_pool(pool, "proven", |pool| !pool["status"]["rebuiltFor"].is_null()).await;
    }
    stage.host("node").await;
    let mut versions = Box::pin(stage.watch_enactments().await);
    stage.asks_all("node", "policy", &pools).await;
    let granted = |own: &Value| {
        let of = |pool: &&&str| !own["status"]["ippool"][**pool]["grants"]["addr"].is_null();
        pools.iter().filter(of).count()
    };
    loop {
        match granted(&versions.next().await.expect("another version")) {
            0 => {}
            some => break assert_eq!(some, pools.len(), "all at once"),
        }
    }
    for pool in pools {
        let ip = stage.until_granted("node", "policy", pool, "addr").await["ip"].clone();
        let ledger = stage.until_pool(pool, "given", |pool| pool["status"]["allocated"] == 1).await;
        assert_eq!(ledger["status"]["allocations"][ip.as_str().unwrap()]["node"], "node");
    }
}

/// R29, R40, R41: a vanished Node's address is quarantined, then free; its enactment goes.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn r29_r40_r41_a_vanished_nodes_address_comes_back() {
    let stage = Stage::new().await;
    stage.pool("pool", json!({"range": {"cidr": "10.0.0.0/24"}, "quarantine": "1s"})).await;
    stage.host("gone").await;
    stage.asks("gone", "policy", "pool", "addr", "id").await;
    let ip = stage.until_granted("gone", "policy", "pool", "addr").await["ip"].as_str().unwrap().to_owned();
    stage.delete_node("gone").await;
    stage
        .until_pool("pool", "quarantined", |pool| {
            pool["status"]["allocations"][&ip]["state"] == "Quarantined"
        })
        .await;
    stage
        .until_pool("pool", "free", |pool| pool["status"]["allocations"].as_object().unwrap().is_empty())
        .await;
    stage.until_no_enactment("gone", "policy").await;
}

/// Unknown pool (R18): refused by name; served once it is there.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn r18_an_unknown_pool_is_named() {
    let stage = Stage::new().await;
    stage.host("node").await;
    stage.asks("node", "policy", "nowhere", "addr", "id").await;
    let own = stage
        .until_enactment("node", "policy", "refused", |own| {
            !own["status"]["ippool"]["nowhere"]["refused"]["addr"].is_null()
        })
        .await;
    assert_eq!(
        own["status"]["ippool"]["nowhere"]["refused"]["addr"]["message"],
        "no pool named nowhere; make it, or correct the name"
    );
    stage.pool("nowhere", json!({"range": {"cidr": "10.0.0.0/24"}})).await;
    stage.until_granted("node", "policy", "nowhere", "addr").await;
}

/// Slots are given to those who wait, as many as may be unavailable; counts stand in the message.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_policy_goes_over_its_nodes() {
    let stage = Stage::new().await;
    stage.policy("policy", json!({"maxUnavailable": 1, "desiredState": {}})).await;
    for host in ["a", "b", "c"] {
        stage.host(host).await;
        stage.stands(host, "policy", policy::rollout::Standing::Pending).await;
    }
    let slot = stage
        .until_policy("policy", "one slot", |policy| policy["status"]["unavailableNodes"] == json!({"a": 1}))
        .await;
    assert_eq!(slot["status"]["unavailableNodeCountMap"], json!({"1": 1}));
    stage.stands("a", "policy", policy::rollout::Standing::Available).await;
    stage
        .until_policy("policy", "the next", |policy| policy["status"]["unavailableNodes"] == json!({"b": 1}))
        .await;
    // One vanishes with its slot: it is the next one's.
    stage.delete_node("b").await;
    stage
        .until_policy("policy", "the last", |policy| policy["status"]["unavailableNodes"] == json!({"c": 1}))
        .await;
    stage.stands("c", "policy", policy::rollout::Standing::Available).await;
    let done = stage
        .until_policy("policy", "available", |policy| policy["status"]["conditions"][0]["status"] == "True")
        .await;
    assert_eq!(done["status"]["conditions"][0]["message"], "2/2 nodes successfully configured");
    assert!(done["status"]["unavailableNodes"].is_null(), "{done:#}");
}

/// Where kubernetes-nmstate has some of the nodes, its handlers count those, and keep their slots in the policy's status. Ours alone are
/// counted here.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nodes_of_another_are_not_counted_and_their_policies_left_alone() {
    let stage = Stage::new().await;
    stage.handled("theirs").await;
    stage.policy("policy", json!({"desiredState": {}})).await;
    let said = json!({"unavailableNodeCountMap": {"1": 1}, "unavailableNodeCount": 1});
    stage.says("policy", &said).await;
    // What was made later was looked at, and that before it.
    stage.pool("traffic-1", json!({"range": {"cidr": "10.10.10.0/24"}})).await;
    stage
        .until_pool("traffic-1", "available", |pool| pool["status"]["conditions"][0]["status"] == "True")
        .await;
    stage.until_policy("policy", "as it was said", |policy| policy["status"] == said).await;
    stage.host("ours").await;
    stage.stands("ours", "policy", policy::rollout::Standing::Available).await;
    let done = stage
        .until_policy("policy", "available", |policy| policy["status"]["conditions"][0]["status"] == "True")
        .await;
    assert_eq!(done["status"]["conditions"][0]["message"], "1/1 nodes successfully configured");
}

/// One host's claim that the API server will not have in the ledger is left alone; all others are served.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_claim_that_the_api_refuses_holds_nobody_else_up() {
    let stage = Stage::refusing("node05").await;
    for host in 0..8 {
        stage.host(&format!("node{host:02}")).await;
        stage.asks(&format!("node{host:02}"), "policy", "pool", "addr", &format!("id-{host}")).await;
    }
    // All at once, as soon as there is a pool.
    stage.pool("pool", json!({"range": {"cidr": "10.0.0.0/24"}})).await;
    let mut given = BTreeSet::new();
    for host in [0, 1, 2, 3, 4, 6, 7] {
        let own = stage.until_granted(&format!("node{host:02}"), "policy", "pool", "addr").await;
        assert!(given.insert(own["ip"].as_str().unwrap().to_owned()), "{own} twice");
    }
    let pool = stage.until_pool("pool", "with seven", |pool| pool["status"]["allocated"] == 7).await;
    assert!(!pool["status"]["allocations"].to_string().contains("node05"));
}
