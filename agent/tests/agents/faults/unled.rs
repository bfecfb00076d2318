//! Nobody leads: hosts that answer their own claims are killed between the ledger and the answer, and after a rollout.

use serde_json::{Value, json};

use super::{one_address, pool, stage};
use crate::field::address_on;
use crate::on::On;

/// Where the agents of hosts `a` and `b` die.
const ROUNDS: [[&str; 2]; 4] = [
    ["ledger-written", "answered"],
    ["ledger-written:2", "policy-written"],
    ["answered:2", "policy-written:2"],
    ["journal-holding", "ledger-written"],
];

/// An address for one host alone: nobody else has anything to do with the policy, so its rollout is this host's to write.
fn own(host: &str) -> Value {
    let mut policy = address_on("pool", "eth1");
    policy["nodeSelector"] = json!({"host": host});
    policy
}

/// R22, R23, R30, R70: claimed, applied and given back without a controller, whoever dies on the way.
pub(crate) async fn r22_r23_r30_r70_killed_while_serving_themselves(on: On) {
    let both = ["a", "b"];
    let mut fleet = stage(on).await;
    for host in both {
        fleet.label_node(host, "host", host).await;
    }
    fleet.pool("pool", pool(1, 9)).await;
    let proven = |pool: &Value| pool["status"]["conditions"][0]["status"] == "True";
    fleet.until("proven", |world| world.pools.values().all(proven) && !world.pools.is_empty()).await;
    fleet.stop_controller("controller");
    for round in ROUNDS {
        for (host, fault) in both.into_iter().zip(round) {
            fleet.stop_agent(host);
            fleet.agent(host, Some(fault)).await;
        }
        fleet.policy("one", one_address("pool")).await;
        for host in both {
            fleet.policy(&format!("own-{host}"), own(host)).await;
        }
        fleet.until_standing(&both, "one", "Available").await;
        for host in both {
            fleet.until_standing(&[host], &format!("own-{host}"), "Available").await;
        }
        fleet.agree().await;
        for policy in ["one", "own-a", "own-b"] {
            fleet.delete_policy(policy).await;
        }
        fleet.until("released", |world| world.enactments.is_empty()).await;
        let world = fleet.agree().await;
        assert!(world.allocations("pool").is_empty(), "{world}");
        for fault in round {
            assert!(fleet.died.remove(fault), "nobody came to {fault}, of {round:?}");
        }
    }
}
