//! Hosts without a controller: they serve themselves, and take and give back their own slots.

use std::collections::BTreeSet;

use serde_json::json;

use crate::field::{self, Field};
use crate::on::On;
use crate::rollout;

const RANGE: &str = "10.10.10.0/24";

/// A field whose pool was made while there was a controller, which is gone now.
async fn without_controller(on: On, range: serde_json::Value) -> Field {
    let mut field = Field::new(on).await;
    field.pool("traffic-1", json!({"range": range, "quarantine": "2s"})).await;
    field
        .until_pool("traffic-1", "ready to give", |pool| {
            pool["status"]["conditions"][0]["status"] == "True" && pool["status"]["rebuiltFor"].is_string()
        })
        .await;
    field.lose_controller().await;
    field
}

/// R22, R23: eight hosts at once on one ledger, each its own server. Never more at work than the policy allows, and all
/// come through; then all is given back.
pub(crate) async fn r22_r23_hosts_without_a_controller_serve_themselves(on: On) {
    let field = without_controller(on, json!({"cidr": RANGE})).await;
    let mut hosts = Vec::new();
    for i in 1..=8 {
        hosts.push(field.host(&format!("node{i:02}"), 1).await);
    }
    let followed = rollout::follow(field.client(), hosts.len()).await;
    field.policy("one", field::one_address("traffic-1")).await;
    let mut given = BTreeSet::new();
    for host in &hosts {
        let own = field.until_standing(host, "one", "Available").await;
        let ip =
            own["status"]["ippool"]["traffic-1"]["allocated"][0].as_str().expect("an address").to_owned();
        assert_eq!(host.addresses("eth0"), [format!("{ip}/24")]);
        assert!(given.insert(ip), "given twice");
    }
    // What a policy comes to is a leader's to say; hosts take their slots, half of them at a time, and give them back. One that is
    // through gives its own back a moment later, and nobody else may: so there may be more slots than hosts at work.
    let seen =
        tokio::time::timeout(rollout::PATIENCE, followed).await.expect("all is given back").expect("a count");
    assert!(seen.most_slots >= 1, "nobody took a slot");
    assert!((1..=4).contains(&seen.most_hosts), "{} hosts at once", seen.most_hosts);
    let pool = field.until_pool("traffic-1", "with eight", |pool| pool["status"]["allocated"] == 8).await;
    let held: BTreeSet<String> =
        pool["status"]["allocations"].as_object().expect("entries").keys().cloned().collect();
    assert_eq!(held, given);
    field.delete_policy("one").await;
    for host in &hosts {
        field.until_no_enactment(host, "one").await;
        assert!(host.addresses("eth0").is_empty());
    }
    field.until_pool("traffic-1", "empty", |pool| pool["status"]["allocated"] == 0).await;
    field.agree().await;
}

/// Refused for want of room, a host asks again by itself; when a controller is back, it goes on from there.
pub(crate) async fn room_is_found_without_a_controller_and_one_that_comes_back_goes_on(on: On) {
    let range = json!({"cidr": RANGE, "start": "10.10.10.1", "end": "10.10.10.1"});
    let mut field = without_controller(on, range).await;
    let first = field.host("node01", 1).await;
    field.label(&first, "in", "yes").await;
    let mut policy = field::one_address("traffic-1");
    policy["nodeSelector"] = json!({"in": "yes"});
    field.policy("one", policy).await;
    field.until_standing(&first, "one", "Available").await;
    let second = field.host("node02", 1).await;
    field.label(&second, "in", "yes").await;
    let refused = field.until_standing(&second, "one", "Failing").await;
    assert_eq!(refused["status"]["conditions"][1]["reason"], "NoAddress");
    field.label(&first, "in", "no").await;
    field.until_standing(&second, "one", "Available").await;
    assert_eq!(second.addresses("eth0"), ["10.10.10.1/24"]);
    assert!(first.addresses("eth0").is_empty());
    field.find_controller();
    field.label(&second, "in", "no").await;
    field.until_no_enactment(&second, "one").await;
    field.label(&first, "in", "yes").await;
    field.until_standing(&first, "one", "Available").await;
    field.agree().await;
}

/// A Lease that is renewed by something that serves nobody: after half a minute a host serves itself.
pub(crate) async fn a_claim_that_a_leader_leaves_is_served_by_its_host(on: On) {
    let field = without_controller(on, json!({"cidr": RANGE})).await;
    field.lease_for_ever().await;
    let host = field.host("node01", 1).await;
    field.policy("one", field::one_address("traffic-1")).await;
    let granted =
        |own: &serde_json::Value| own["status"]["ippool"]["traffic-1"]["grants"]["address"]["ip"].is_string();
    field.until_enactment(&host, "one", "granted", granted).await;
    // Whether it may be reconfigured is the leader's to say, though.
    let own = field.until_standing(&host, "one", "Pending").await;
    assert!(host.addresses("eth0").is_empty());
    // Held, and not yet used.
    let ip = own["status"]["ippool"]["traffic-1"]["grants"]["address"]["ip"].as_str().expect("an address");
    field.agree_but(&[&format!("traffic-1: {ip}: the kernel doesn't have it")]).await;
}
