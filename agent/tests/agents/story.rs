//! The seed's story: one policy, a host more, drift; and the policy goes.

use std::collections::BTreeSet;

use serde_json::json;

use crate::SEEDS;
use crate::field::{Field, one_address, static_ip};
use crate::on::On;

/// R20, R21, R22, R28: the seed's story. One policy, two pools, three hosts, each with its own addresses in the kernel.
pub(crate) async fn r20_r21_r22_r28_one_policy_gives_every_host_its_own_addresses(on: On) {
    let field = Field::new(on).await;
    field
        .pool(
            "traffic-1",
            json!({"range": {"cidr": SEEDS, "start": "10.10.10.1", "end": "10.10.10.10",
        "exclude": ["10.10.10.4", "10.10.10.7"]}, "quarantine": "2s"}),
        )
        .await;
    field.pool("traffic-2", json!({"range": {"cidr": "10.10.20.0/24"}, "quarantine": "2s"})).await;
    let mut hosts = Vec::new();
    for name in ["node01", "node02", "node03"] {
        hosts.push(field.host(name, 2).await);
    }
    field.policy("static-ip", static_ip()).await;
    let mut given = BTreeSet::new();
    for host in &hosts {
        let own = field.until_standing(host, "static-ip", "Available").await;
        for (pool, capture, card) in [("traffic-1", "first", "eth0"), ("traffic-2", "second", "eth1")] {
            let ip = own["status"]["ippool"][pool]["allocated"][0].as_str().expect("an address").to_owned();
            assert_eq!(own["status"]["capturedStates"][capture]["ip"], ip);
            assert_eq!(host.addresses(card), [format!("{ip}/24")], "{}", host.name);
            assert!(given.insert(ip), "given twice");
        }
    }
    field
        .until_policy("static-ip", "available", |policy| {
            policy["status"]["conditions"][0]["message"] == "3/3 nodes successfully configured"
        })
        .await;
    // One more joins: nothing to be done by anybody.
    let late = field.host("node04", 2).await;
    let own = field.until_standing(&late, "static-ip", "Available").await;
    assert!(
        given.insert(own["status"]["ippool"]["traffic-1"]["allocated"][0].as_str().expect("text").to_owned())
    );
    // The policy goes: addresses off, freed, enactments gone; cards stay as they are (R30).
    field.delete_policy("static-ip").await;
    for host in hosts.iter().chain([&late]) {
        field.until_no_enactment(host, "static-ip").await;
        assert_eq!(host.addresses("eth0"), Vec::<String>::new());
    }
    field.until_pool("traffic-1", "empty", |pool| pool["status"]["allocated"] == 0).await;
}

/// What a policy set and something else removed is put back.
pub(crate) async fn drift_is_put_back(on: On) {
    let field = Field::new(on).await;
    field.pool("traffic-1", json!({"range": {"cidr": SEEDS}})).await;
    let host = field.host("node01", 1).await;
    field.policy("one", one_address("traffic-1")).await;
    field.until_standing(&host, "one", "Available").await;
    let before = host.addresses("eth0");
    assert_eq!(before.len(), 1);
    host.ip(&format!("addr del {} dev eth0", before[0]));
    host.wait_until("put back", || host.addresses("eth0") == before).await;
}
