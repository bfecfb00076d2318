//! Nobody leads: hosts that answer their own claims are killed between the ledger and the answer, and after a rollout.

use super::{one_address, pool, stage};
use crate::on::On;

/// Where the agents of hosts `a` and `b` die.
const ROUNDS: [[&str; 2]; 4] = [
    ["ledger-written", "answered"],
    ["ledger-written:2", "policy-written"],
    ["answered:2", "policy-written:2"],
    ["journal-holding", "ledger-written"],
];

/// R22, R23, R30, R70: claimed, applied and given back without a controller, whoever dies on the way.
pub(crate) async fn r22_r23_r30_r70_killed_while_serving_themselves(on: On) {
    let both = ["a", "b"];
    let mut fleet = stage(on).await;
    fleet.pool("pool", pool(1, 9)).await;
    let proven = |pool: &serde_json::Value| pool["status"]["conditions"][0]["status"] == "True";
    fleet.until("proven", |world| world.pools.values().all(proven) && !world.pools.is_empty()).await;
    fleet.stop_controller("controller");
    for round in ROUNDS {
        for (host, fault) in both.into_iter().zip(round) {
            fleet.stop_agent(host);
            fleet.agent(host, Some(fault)).await;
        }
        fleet.policy("one", one_address("pool")).await;
        fleet.until_standing(&both, "one", "Available").await;
        fleet.agree().await;
        fleet.delete_policy("one").await;
        fleet.until("released", |world| world.enactments.is_empty()).await;
        let world = fleet.agree().await;
        assert!(world.allocations("pool").is_empty(), "{world}");
        for fault in round {
            assert!(fleet.died.remove(fault), "nobody came to {fault}, of {round:?}");
        }
    }
}
