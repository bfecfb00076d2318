//! Policies are created, applied, edited, fail, and are deleted.

use serde_json::{Value, json};

use super::{Round, arm, assert_died, one_address, pool, stage};
use crate::on::On;

/// Each has every point of the agent's at least once; the controller dies at ever other times.
pub(super) const ROUNDS: [Round; 11] = [
    ["journal-asking", "reported:2", "pool-begun"],
    ["enactment-made", "requested", "rebuilt"],
    ["reported", "confirmed", "ledger-written"],
    ["journal-holding", "holds-written", "ledger-written:2"],
    ["progressing-said", "applied", "ledger-written:3"],
    ["state-journalled", "available-said", "answered"],
    ["progressing-said:2", "available-said:2", "answered:2"],
    ["off-the-nic", "journal-releasing", "policy-written"],
    ["let-go", "slot-removed", "policy-written:3"],
    ["journal-gone", "finalizer-off", "ledger-written:5"],
    ["enactment-dropped", "reported:3", "answered:4"],
];

/// A card's MTU, which takes no address.
fn mtu(mtu: u32) -> Value {
    json!({"maxUnavailable": "100%", "desiredState": {"interfaces": [
        {"name": "eth1", "type": "veth", "state": "up", "mtu": mtu},
    ]}})
}

/// Nothing that a card can be: the kernel refuses it.
fn refused() -> Value {
    json!({"maxUnavailable": "100%", "desiredState": {"interfaces": [
        {"name": "eth1", "type": "veth", "state": "up", "mac-address": "01:00:5e:00:00:01"},
    ]}})
}

/// An address on a card that appears later: the enactment is there before the claim.
fn late(pool: &str) -> Value {
    let mut policy = crate::field::address_on(pool, "eth9");
    policy["maxUnavailable"] = json!("100%");
    policy["capture"]["card"] = json!("interfaces.name == \"eth9\"");
    policy
}

/// An address that the policy names itself (rule 11): one host's.
fn named(ip: &str) -> Value {
    json!({"maxUnavailable": "100%", "desiredState": {"interfaces": [{"name": "eth1", "type": "veth", "state": "up",
        "ipv4": {"enabled": true, "dhcp": false, "address": [{"ip": ip, "prefix-length": 24}]}}]}})
}

/// R22, R30, R67, R69, R70, R97: claim, apply, edit, fail, release.
pub(crate) async fn r22_r30_r67_r70_killed_while_policies_come_and_go(on: On) {
    let both = ["a", "b"];
    let mut fleet = stage(on).await;
    for (number, round) in ROUNDS.into_iter().enumerate() {
        arm(&mut fleet, round).await;
        let name = format!("pool-{number}");
        fleet.pool(&name, pool(number, 9)).await;
        let ip = format!("10.9.{number}.7");
        fleet.policy("named", named(&ip)).await;
        fleet.until("named", |world| world.allocations(&name).contains_key(&ip)).await;
        fleet.policy("late", late(&name)).await;
        fleet.policy("mtu", mtu(1400)).await;
        fleet.policy("one", one_address(&name)).await;
        fleet.policy("refused", refused()).await;
        fleet.until_standing(&both, "late", "Failing").await;
        fleet.until_standing(&both, "one", "Available").await;
        fleet.until_standing(&both, "mtu", "Available").await;
        for host in both {
            fleet.machines[host].card("eth9");
        }
        fleet.edit_policy("mtu", mtu(1300)).await;
        fleet.until_standing(&both, "late", "Available").await;
        fleet.until_standing(&both, "mtu", "Available").await;
        let retried = |own: &Value| own["status"]["retryCount"]["1"].as_u64() >= Some(1);
        fleet
            .until("retried", |world| both.iter().all(|host| retried(world.enactment(host, "refused"))))
            .await;
        fleet.until("in use", |world| world.allocations(&name).len() == 5).await;
        fleet.agree().await;
        for policy in ["late", "mtu", "named", "one", "refused"] {
            fleet.delete_policy(policy).await;
        }
        fleet.until("released", |world| world.enactments.is_empty()).await;
        let world = fleet.agree().await;
        assert!(
            world.allocations(&name).is_empty() && world.kernels.values().all(|on| on.is_empty()),
            "{world}"
        );
        for host in both {
            fleet.machines[host].ip("link del eth9");
        }
        fleet.force_pool_away(&name).await;
        assert_died(&mut fleet, round);
    }
    fleet.agree().await;
}
