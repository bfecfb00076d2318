//! Slices are made, written, given back and freed, and whoever does so is killed in between.

use serde_json::{Value, json};

use super::{Round, arm, assert_died, one_address, stage};
use crate::fleet::World;
use crate::on::On;

pub(super) const ROUNDS: [Round; 3] = [
    ["slice-made", "slice-written", "slice-set-aside"],
    ["slice-left", "slice-gone", "slice-set-aside"],
    ["slice-written", "slice-made", "slice-left"],
];

/// Two slices of two addresses for two hosts.
fn pool(number: usize) -> Value {
    let range = json!({"cidr": format!("10.9.{number}.0/24"), "start": format!("10.9.{number}.2"),
        "end": format!("10.9.{number}.5"), "perNodeHostBits": 1});
    json!({"range": range, "staticBand": "None", "quarantine": "1s"})
}

/// R92, R113, R117: no address is given twice, no slice is lost or left over.
pub(crate) async fn r113_r117_killed_while_slices_come_and_go(on: On) {
    let both = ["a", "b"];
    let mut fleet = stage(on).await;
    for (number, round) in ROUNDS.into_iter().enumerate() {
        arm(&mut fleet, round).await;
        let name = format!("sliced-{number}");
        fleet.pool(&name, pool(number)).await;
        fleet.policy("one", one_address(&name)).await;
        fleet.until_standing(&both, "one", "Available").await;
        let world = fleet.agree().await;
        assert_eq!(world.slices.len(), 2, "{world}");

        // A host is off for good: its slice is set aside, then free; and it comes back as a new one.
        let fault = fleet.kill_agent("b");
        fleet.machines["b"].power_cut();
        fleet.delete_node("b").await;
        let theirs = |world: &World| world.slices.values().any(|slice| slice["spec"]["node"] == "b");
        fleet.until("free", |world| !theirs(world)).await;
        fleet.until("finished", |world| world.enactment("b", "one").is_null()).await;
        fleet.agent("b", fault.as_deref()).await;
        fleet.until_standing(&both, "one", "Available").await;
        fleet.agree().await;

        fleet.delete_policy("one").await;
        fleet.until("released", |world| world.enactments.is_empty()).await;
        let world = fleet.agree().await;
        assert!(world.slices.is_empty() && world.allocations(&name).is_empty(), "{world}");
        fleet.force_pool_away(&name).await;
        fleet.agree().await;
        assert_died(&mut fleet, round);
    }
}
