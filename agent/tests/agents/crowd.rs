//! Thirty-two hosts ask one pool at once: thirty-two distinct addresses in the kernels.

use std::collections::BTreeSet;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::cluster::Way;
use crate::fleet::{Fleet, World};
use crate::on::On;

pub(crate) const HOSTS: usize = 32;

/// As many addresses as hosts: whoever lost one would be missing it.
fn pool() -> Value {
    json!({"range": {"cidr": "10.8.0.0/24", "start": "10.8.0.1", "end": format!("10.8.0.{HOSTS}")},
        "staticBand": "None", "quarantine": "2s"})
}

pub(crate) fn policy() -> Value {
    let mut policy = crate::field::one_address("pool");
    policy["maxUnavailable"] = json!("100%");
    policy
}

/// Hosts that wait for a policy, and the pool that it takes from.
async fn crowd(on: On, controllers: &[&str]) -> Fleet {
    let mut fleet = Fleet::new(on).await;
    for controller in controllers {
        fleet.controller(controller, None).await;
    }
    let way = fleet.way.clone();
    gather(&mut fleet, &[way]).await;
    fleet
}

/// The pool, and the hosts, each by the next of these ways to the API; how long it took to start them.
pub(crate) async fn gather(fleet: &mut Fleet, ways: &[Way]) -> Duration {
    fleet.pool("pool", pool()).await;
    let names: Vec<String> = (0..HOSTS).map(|host| format!("h{host:02}")).collect();
    for name in &names {
        fleet.machine(name, 1);
    }
    fleet.listen().await;
    let begun = Instant::now();
    for (name, way) in names.iter().zip(ways.iter().cycle()) {
        fleet.way = way.clone();
        fleet.agent(name, None).await;
    }
    fleet
        .until("ready", |world| {
            world.states.len() == HOSTS && !world.pools["pool"]["status"]["rebuiltFor"].is_null()
        })
        .await;
    begun.elapsed()
}

/// Every host has an address of its own, and all say so.
pub(crate) async fn served(fleet: &mut Fleet) {
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
    fleet.assert_never_twice().await;
}

pub(crate) fn available(world: &World) -> usize {
    world.kernels.keys().filter(|host| world.stands(host, "one", "Available")).count()
}

/// R14, R22, R23, R68: with one controller; and they all let go at once (R30).
pub(crate) async fn r14_r22_r23_r68_a_crowd_with_the_controller(on: On) {
    let mut fleet = crowd(on, &["controller"]).await;
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
pub(crate) async fn r22_r23_r104_a_crowd_whose_controller_is_killed_in_the_middle(on: On) {
    let mut fleet = crowd(on, &["one", "two"]).await;
    fleet.policy("one", policy()).await;
    fleet.until("under way", |world| !world.allocations("pool").is_empty()).await;
    let leader = fleet.leader(&["one", "two"]).await;
    fleet.kill_controller(leader);
    served(&mut fleet).await;
    let other = if leader == "one" { "two" } else { "one" };
    assert_eq!(fleet.leader(&[other]).await, other, "it took over");
}

/// R22, R23: nobody leads, so each serves itself.
pub(crate) async fn r22_r23_a_crowd_without_a_controller(on: On) {
    let mut fleet = crowd(on, &["controller"]).await;
    fleet.stop_controller("controller");
    fleet.policy("one", policy()).await;
    served(&mut fleet).await;
}
