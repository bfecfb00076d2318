//! Killed between every two writes, and started again: nothing is given twice, nothing is lost, nothing is left over.
//!
//! Each round tells a whole story with three processes that die on the way: two agents and the controller. Whoever dies at
//! its fault point is started again without one (`Fleet::revive`). In the end everything agrees.

mod alone;
mod long;
mod short;
mod sliced;
mod unled;

use std::collections::BTreeSet;

use serde_json::{Value, json};

use crate::field::address_on;
use crate::fleet::Fleet;
use crate::on::On;

pub(crate) use long::{
    r29_r33_r40_r71_r73_killed_while_nodes_and_pools_come_and_go, r33_r97_killed_when_a_pool_ends,
};
pub(crate) use short::r22_r30_r67_r70_killed_while_policies_come_and_go;
pub(crate) use sliced::r113_r117_killed_while_slices_come_and_go;
pub(crate) use unled::r22_r23_r30_r70_killed_while_serving_themselves;

/// Where the processes of one round die: of host `a`, of host `b`, of the controller.
type Round = [&'static str; 3];

/// R22, R67, R70: every fault point that there is has its rounds, and no round has one that isn't there.
#[test]
fn every_fault_point_is_reached_by_a_round() {
    let listed: BTreeSet<&str> = agent::fault::all().iter().copied().collect();
    assert!(!listed.is_empty(), "fault points are there only in a build with debug assertions");
    let rounds = short::ROUNDS
        .iter()
        .chain(&long::ROUNDS)
        .chain(&sliced::ROUNDS)
        .flatten()
        .chain(&alone::POINTS)
        .chain([&long::ENDED]);
    // Of `name:3` the name.
    let told: BTreeSet<&str> = rounds.map(|one| one.split(':').next().unwrap_or(one)).collect();
    assert_eq!(told, listed);
}

/// Two hosts and a controller.
async fn stage(on: On) -> Fleet {
    let mut fleet = Fleet::new(on).await;
    fleet.controller("controller", None).await;
    for host in ["a", "b"] {
        fleet.host(host, 2).await;
    }
    fleet.until("at work", |world| world.states.len() == 2).await;
    fleet
}

/// Where a kubelet makes the Node, no agent dies of it.
fn is_told(on: On, fault: &str) -> bool {
    !(matches!(on, On::Real(_)) && fault.starts_with("node-"))
}

/// The three start anew, each to die on the way.
async fn arm(fleet: &mut Fleet, [a, b, controller]: Round) {
    fleet.stop_controller("controller");
    fleet.controller("controller", Some(controller)).await;
    for (host, fault) in [("a", a), ("b", b)] {
        fleet.stop_agent(host);
        fleet.agent(host, Some(fault).filter(|fault| is_told(fleet.on, fault))).await;
    }
}

/// All three died where they should.
fn assert_died(fleet: &mut Fleet, round: Round) {
    for fault in round.into_iter().filter(|fault| is_told(fleet.on, fault)) {
        assert!(fleet.died.remove(fault), "nobody came to {fault}, of {round:?}");
    }
}

fn pool(number: usize, last: u8) -> Value {
    json!({"range": {"cidr": format!("10.9.{number}.0/24"), "start": format!("10.9.{number}.1"),
        "end": format!("10.9.{number}.{last}")}, "quarantine": "1s"})
}

/// One address for each host.
fn one_address(pool: &str) -> Value {
    let mut policy = address_on(pool, "eth0");
    policy["maxUnavailable"] = json!("100%");
    policy
}
