//! Nodes are deleted and come back, enactments are deleted by force, pools are re-created.

use crds::{NodeIPPool, NodeNetworkState};
use kube::api::PostParams;
use serde_json::{Value, json};

use super::{Round, arm, assert_died, one_address, stage};
use crate::fleet::{Fleet, World};
use crate::on::On;

pub(super) const ROUNDS: [Round; 5] = [
    ["node-made", "node-labelled", "word-asked"],
    ["journal-parked", "state-dropped", "enactment-finished"],
    ["inherited", "state-made", "ledger-written:4"],
    ["off-the-nic", "journal-gone", "ledger-written:6"],
    ["ledger-written", "reported:2", "rebuilt:2"],
];
/// A host whose Node was deleted is back before its address is free, also where the machine is busy: else there is nothing
/// that it could inherit.
fn pool(number: usize, last: u8) -> Value {
    let mut pool = super::pool(number, last);
    pool["quarantine"] = json!("6s");
    pool
}

/// A minute after a pool was deleted.
pub(super) const ENDED: &str = "pool-ended";

/// R29, R33, R34, R40, R58, R71, R72, R73, R110: with a fault on the way in each of three processes.
pub(crate) async fn r29_r33_r40_r71_r73_killed_while_nodes_and_pools_come_and_go(on: On) {
    let mut fleet = stage(on).await;
    for (number, round) in ROUNDS.into_iter().enumerate() {
        arm(&mut fleet, round).await;
        let name = format!("pool-{number}");
        let held = |world: &World, host: &str| world.held(&name, host);
        fleet.pool(&name, pool(number, 9)).await;
        fleet.policy("one", one_address(&name)).await;
        let both = ["a", "b"];
        fleet.until_standing(&both, "one", "Available").await;

        // The Node of a host that runs is deleted: off, until its agent starts again; then it is its own or another's.
        fleet.delete_node("a").await;
        let parked =
            |world: &World| world.claims("a").iter().all(|(_, record)| record["phase"]["Parked"].is_object());
        // Where it died on the way, it has started again already.
        let anew = |world: &World| world.nodes.contains_key("a");
        fleet.until("off", |world| anew(world) || (world.kernels["a"].is_empty() && parked(world))).await;
        start_again(&mut fleet, "a").await;
        fleet.until_standing(&both, "one", "Available").await;

        // A host that is off is deleted, and somebody made its report: the address is quarantined, then free.
        let fault = fleet.kill_agent("b");
        fleet.machines["b"].power_cut();
        fleet.delete_node("b").await;
        fleet
            .until("free", |world| world.allocations(&name).values().all(|entry| entry["node"] != "b"))
            .await;
        fleet.until("finished", |world| world.enactment("b", "one").is_null()).await;
        strange_report(&fleet, "b").await;
        fleet.agent("b", fault.as_deref()).await;
        fleet.until_standing(&both, "one", "Available").await;

        // An enactment is deleted by force while its agent is away: quarantined, and its own again.
        let before = fleet.agree().await;
        let fault = fleet.kill_agent("a");
        fleet.force_enactment_away("a", "one").await;
        fleet
            .until("asked for its word", |world| {
                let label = &world.states["a"]["metadata"]["labels"][crds::names::label::FORCE_STATE_REFRESH];
                held(world, "a").is_none() && !label.is_null()
            })
            .await;
        fleet.agent("a", fault.as_deref()).await;
        fleet.until_standing(&both, "one", "Available").await;
        let after = fleet.agree().await;
        assert_eq!(held(&after, "a"), held(&before, "a"), "it was on the card all the time");

        // The pool is re-created, larger.
        fleet.force_pool_away(&name).await;
        fleet.pool(&name, pool(number, 99)).await;
        fleet.until("rebuilt", |world| world.allocations(&name).len() == 2).await;
        let rebuilt = fleet.agree().await;
        for host in both {
            assert_eq!(held(&rebuilt, host), held(&after, host), "{host}");
        }
        fleet.delete_policy("one").await;
        fleet.until("released", |world| world.enactments.is_empty()).await;
        fleet.agree().await;
        fleet.force_pool_away(&name).await;
        assert_died(&mut fleet, round);
    }
    fleet.agree().await;
}

/// An agent makes its Node anew only when it starts.
async fn start_again(fleet: &mut Fleet, host: &str) {
    let fault = fleet.kill_agent(host);
    fleet.agent(host, fault.as_deref()).await;
}

/// A report that is not of this Node.
async fn strange_report(fleet: &Fleet, host: &str) {
    let report: NodeNetworkState =
        serde_json::from_value(json!({"metadata": {"name": host}})).expect("a report");
    // The garbage collector may not have come to that of the Node that was.
    let api = fleet.api::<NodeNetworkState>();
    if api.get_opt(host).await.expect("an answer").is_none() {
        api.create(&PostParams::default(), &report).await.expect("it is taken");
    }
}

/// R33, R97: a deleted pool goes after its grace, also where its controller dies then; holders keep what they have, and a
/// pool of that name takes them in again.
pub(crate) async fn r33_r97_killed_when_a_pool_ends(on: On) {
    let mut fleet = stage(on).await;
    fleet.stop_controller("controller");
    fleet.controller("controller", Some(ENDED)).await;
    fleet.pool("pool", pool(1, 9)).await;
    fleet.policy("one", one_address("pool")).await;
    fleet.until_standing(&["a", "b"], "one", "Available").await;
    let before = fleet.agree().await;
    fleet.delete::<NodeIPPool>("pool").await;
    let gone = |world: &World| world.pools.is_empty();
    fleet.until("gone", gone).await;
    let during = fleet.until("dead and back", |_| true).await;
    assert_eq!(during.kernels, before.kernels);
    fleet.pool("pool", pool(1, 99)).await;
    let holders = |world: &World| -> Vec<Value> {
        world
            .allocations("pool")
            .into_iter()
            .map(|(ip, entry)| json!([ip, entry["node"], entry["request"]]))
            .collect()
    };
    fleet.until("rebuilt", |world| world.allocations("pool").len() == 2).await;
    let after = fleet.agree().await;
    assert_eq!(holders(&after), holders(&before));
    assert!(fleet.died.contains(ENDED));
}
