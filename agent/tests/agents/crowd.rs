//! Thirty-two hosts ask one pool at once: thirty-two distinct addresses in the kernels.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use crate::fleet::{Fleet, World};

const HOSTS: usize = 32;

/// As many addresses as hosts: whoever lost one would be missing it.
fn pool() -> Value {
    json!({"range": {"cidr": "10.8.0.0/24", "start": "10.8.0.1", "end": format!("10.8.0.{HOSTS}")},
        "staticBand": "None", "quarantine": "2s"})
}

fn policy() -> Value {
    let mut policy = crate::field::one_address("pool");
    policy["maxUnavailable"] = json!("100%");
    policy
}

/// Hosts that wait for a policy, and the pool that it takes from.
async fn crowd(controllers: &[&str]) -> Fleet {
    let mut fleet = Fleet::new().await;
    for controller in controllers {
        fleet.controller(controller, None);
    }
    fleet.pool("pool", pool()).await;
    for host in 0..HOSTS {
        fleet.host(&format!("h{host:02}"), 1);
    }
    fleet
        .until("ready", |world| {
            world.states.len() == HOSTS && !world.pools["pool"]["status"]["rebuiltFor"].is_null()
        })
        .await;
    fleet
}

/// Every host has an address of its own, and all say so.
async fn served(fleet: &mut Fleet) {
    let world = fleet.until("served", |world| available(world) == HOSTS).await;
    let on: BTreeSet<&String> = world.kernels.values().flatten().collect();
    assert_eq!(on.len(), HOSTS);
    let world = fleet.agree().await;
    let offsets: BTreeSet<i64> = world.pools["pool"]["status"]["allocated-offsets"]
        .as_array()
        .into_iter()
        .flatten()
        .filter_map(Value::as_i64)
        .collect();
    assert_eq!(offsets, (0..HOSTS as i64).collect());
}

fn available(world: &World) -> usize {
    world.kernels.keys().filter(|host| world.stands(host, "one", "Available")).count()
}

/// R14, R22, R23, R68: with one controller; and they all let go at once (R30).
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn r14_r22_r23_r68_a_crowd_with_the_controller() {
    let mut fleet = crowd(&["controller"]).await;
    fleet.policy("one", policy()).await;
    served(&mut fleet).await;
    // R14: and it says that there is no more.
    let exhausted = |pool: &Value| pool["status"]["conditions"][0]["reason"] == "ExhaustedIPPool";
    fleet.until("exhausted", |world| exhausted(&world.pools["pool"])).await;
    fleet.delete_policy("one").await;
    fleet.until("released", |world| world.enactments.is_empty()).await;
    let world = fleet.agree().await;
    assert!(world.allocations("pool").is_empty(), "{world}");
}

/// R22, R23, R98, R104: the one that leads is killed in the middle, and the other takes over.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn r22_r23_r104_a_crowd_whose_controller_is_killed_in_the_middle() {
    let mut fleet = crowd(&["one", "two"]).await;
    let leads = |fleet: &Fleet, name: &str| fleet.log(name).contains(": leads");
    let (first, second) = if leads(&fleet, "one") { ("one", "two") } else { ("two", "one") };
    assert!(leads(&fleet, first) && !leads(&fleet, second), "one leads");
    fleet.policy("one", policy()).await;
    fleet.until("under way", |world| !world.allocations("pool").is_empty()).await;
    fleet.kill_controller(first);
    served(&mut fleet).await;
}

/// R22, R23: nobody leads, so each serves itself.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn r22_r23_a_crowd_without_a_controller() {
    let mut fleet = crowd(&["controller"]).await;
    fleet.stop_controller("controller");
    fleet.policy("one", policy()).await;
    served(&mut fleet).await;
}
