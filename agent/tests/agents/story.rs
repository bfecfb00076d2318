//! The seed's story: one policy, a host more, drift; and the policy goes.

use std::collections::BTreeSet;

use serde_json::json;

use crate::SEEDS;
use crate::field::{Field, Host, address_on, one_address, static_ip};
use crate::on::On;

/// R20, R21, R22, R28, R84, R109 (Allocate, add node): the seed's story. One policy, two pools, three hosts, each with its own addresses in the kernel.
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
    field.agree().await;
}

/// A host with so many cards, and what policy `one` has put on the first.
async fn with_an_address(on: On, cards: usize) -> (Field, Host, Vec<String>) {
    let field = Field::new(on).await;
    field.pool("traffic-1", json!({"range": {"cidr": SEEDS}})).await;
    let host = field.host("node01", cards).await;
    field.policy("one", one_address("traffic-1")).await;
    field.until_standing(&host, "one", "Available").await;
    let before = host.addresses("eth0");
    assert_eq!(before.len(), 1);
    (field, host, before)
}

/// What a policy set and something else removed is put back.
pub(crate) async fn drift_is_put_back(on: On) {
    let (field, host, before) = with_an_address(on, 1).await;
    host.ip(&format!("addr del {} dev eth0", before[0]));
    host.wait_until("put back", || host.addresses("eth0") == before).await;
    field.agree().await;
}

/// R30: a policy goes, and with it its pooled address; another address of the same subnet, which the kernel takes along with
/// it, and a route by that, stay.
pub(crate) async fn r30_what_else_is_on_the_card_stays(on: On) {
    let field = Field::new(on).await;
    let range = json!({"cidr": SEEDS, "start": "10.10.10.1", "end": "10.10.10.9"});
    field.pool("traffic-1", json!({"range": range, "quarantine": "1s"})).await;
    let host = field.host("node01", 1).await;
    host.sysctl("net.ipv4.conf.eth0.promote_secondaries=0");
    let mut policy = one_address("traffic-1");
    let addresses = &mut policy["desiredState"]["interfaces"][0]["ipv4"]["address"];
    addresses.as_array_mut().expect("a list").push(json!({"ip": "10.10.10.200", "prefix-length": 24}));
    field.policy("one", policy).await;
    field.until_standing(&host, "one", "Available").await;
    assert_eq!(host.addresses("eth0").len(), 2);
    host.ip("route add 192.0.2.0/24 via 10.10.10.254 dev eth0");
    field.delete_policy("one").await;
    field.until_no_enactment(&host, "one").await;
    assert_eq!(host.addresses("eth0"), ["10.10.10.200/24"]);
    let route = host.ip("route show 192.0.2.0/24");
    assert!(route.contains("via 10.10.10.254 dev eth0"), "{route:?}");
    field.agree().await;
}

/// A policy is edited to have its address on another card, and then on none: it is the same address, and it is nowhere else.
pub(crate) async fn an_edited_policy_takes_its_address_along(on: On) {
    let (field, host, before) = with_an_address(on, 2).await;
    let is_over = |policy: &serde_json::Value| policy["status"]["conditions"][0]["status"] == "True";
    field.until_policy("one", "over", is_over).await;
    field.try_edit_policy("one", address_on("traffic-1", "eth1")).await.expect("it is over");
    let on = |card: &str| host.addresses(card);
    host.wait_until("moved", || on("eth1") == before && on("eth0").is_empty()).await;
    field
        .until_policy("one", "over again", |policy| {
            let seen = policy["status"]["conditions"][0]["message"].as_str().unwrap_or_default();
            is_over(policy) && policy["metadata"]["generation"] == 2 && seen.contains("1/1")
        })
        .await;
    let unused = json!({"desiredState": {"interfaces": []}});
    while field.try_edit_policy("one", unused.clone()).await.is_err() {
        tokio::task::yield_now().await;
    }
    host.wait_until("off", || on("eth1").is_empty() && on("eth0").is_empty()).await;
    field.until_pool("traffic-1", "still held", |pool| pool["status"]["allocated"] == 1).await;
    // Held, and on no card.
    let ip = before[0].split('/').next().expect("an address");
    field.agree_but(&[&format!("traffic-1: {ip}: the kernel doesn't have it")]).await;
}
