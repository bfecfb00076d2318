//! What can't be had or rendered: said, and nothing else is disturbed.

use std::time::Duration;

use serde_json::json;

use crate::SEEDS;
use crate::field::{Field, address_on, doubles, one_address};
use crate::on::On;

/// R14, R32, R69: an exhausted pool fails the policy with words, and says so itself; others go on; room helps.
pub(crate) async fn r14_r32_r69_an_exhausted_pool_says_so_and_recovers(on: On) {
    let field = Field::new(on).await;
    field
        .pool(
            "tiny",
            json!({"range": {"cidr": SEEDS, "start": "10.10.10.1", "end": "10.10.10.1"}, "quarantine": "1s"}),
        )
        .await;
    field.pool("wide", json!({"range": {"cidr": "10.10.20.0/24"}, "quarantine": "1s"})).await;
    let first = field.host("node01", 2).await;
    field.policy("a-tiny", one_address("tiny")).await;
    field.until_standing(&first, "a-tiny", "Available").await;
    let second = field.host("node02", 2).await;
    let refused = field.until_standing(&second, "a-tiny", "Failing").await;
    let message = refused["status"]["conditions"][1]["message"].as_str().expect("text");
    assert!(message.contains("pool tiny"), "{message}");
    assert_eq!(refused["status"]["conditions"][1]["reason"], "NoAddress");
    let tiny = field.until_pool("tiny", "exhausted", |pool| pool["status"]["available"] == 0).await;
    let condition = &tiny["status"]["conditions"][0];
    assert_eq!((&condition["status"], &condition["reason"]), (&json!("False"), &json!("ExhaustedIPPool")));
    let message = condition["message"].as_str().expect("text");
    assert!(message.contains("depleted, manual intervention needed to modify NodeIPPool"), "{message}");
    field.policy("b-wide", address_on("wide", "eth1")).await;
    field.until_standing(&second, "b-wide", "Available").await;
    assert!(second.addresses("eth0").is_empty());
    field.remove_host(&first).await;
    field.until_standing(&second, "a-tiny", "Available").await;
    field.agree().await;
}

/// R18: broken templates, captures without a match and unknown pools fail with the diagnostic, and touch nothing.
pub(crate) async fn r18_what_cannot_be_rendered_fails_with_the_diagnostic(on: On) {
    let field = Field::new(on).await;
    let mut host = field.machine("node01", 1);
    field.make_node("node01", "True").await;
    let (client, writes) = doubles::recorded(field.client_for(&host).await);
    field.start_with(&mut host, &client);
    let looks = || ["-d link show", "addr show", "route show table all"].map(|line| host.ip(line));
    // What the kernel does by itself is over when both ends have link-local addresses that nobody else has.
    let is_settled = || {
        let addresses = host.ip("addr show");
        addresses.matches("inet6 fe80:").count() == 2 && !addresses.contains("tentative")
    };
    let settled = async {
        while !is_settled() {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(60), settled).await.expect("no address is tentative");
    let before = looks();
    let address = |capture: &str| {
        json!({"interfaces": [{"name": "eth0", "type": "veth", "state": "up",
        "ipv4": {"enabled": true, "dhcp": false, "address": [{"ip": format!("{{{{ capture.{capture}.ip }}}}"), "prefix-length": 24}]}}]})
    };
    field
        .policy(
            "a-unmatched",
            json!({"capture": {"nic": "interfaces.name == \"eth9\""}, "desiredState": {"interfaces": []}}),
        )
        .await;
    field
        .policy(
            "b-unknown",
            json!({"capture": {"a": "ippool.nowhere.allocate"}, "desiredState": address("a")}),
        )
        .await;
    field.policy("c-broken", json!({"capture": {}, "desiredState": address("missing")})).await;
    // Whatever address it were given, it could not be rendered: none is claimed for it.
    field.pool("traffic-1", json!({"range": {"cidr": SEEDS}})).await;
    let mut misspelt = address("a");
    misspelt["interfaces"][0]["ipv4"]["address"][0]["ip"] = json!("{{ capture.a.adress }}");
    field
        .policy(
            "c-misspelt",
            json!({"capture": {"a": "ippool.traffic-1.allocate"}, "desiredState": misspelt}),
        )
        .await;
    for (policy, words) in [
        ("a-unmatched", "eth9"),
        ("b-unknown", "no pool named nowhere"),
        ("c-broken", "missing"),
        ("c-misspelt", "adress"),
    ] {
        let own = field.until_standing(&host, policy, "Failing").await;
        let message = own["status"]["conditions"][1]["message"].as_str().expect("text");
        assert!(message.contains(words), "{policy}: {message}");
    }
    // One that comes later, and after them by its name: by then each had its turn, and the host is as it was.
    field
        .policy(
            "d-good",
            json!({"desiredState": {"interfaces": [{"name": "eth0", "type": "veth", "state": "up"}]}}),
        )
        .await;
    field.until_standing(&host, "d-good", "Available").await;
    assert_eq!(looks(), before);
    let claims = field.enactment(&host, "c-misspelt").await["status"]["ippool"].clone();
    assert!(claims.is_null(), "{claims:#}");
    for policy in ["a-unmatched", "b-unknown", "c-broken", "c-misspelt"] {
        let of = format!("enactments/node01.{policy}");
        let writes: Vec<String> =
            writes.lock().expect("whole").iter().filter(|write| write.contains(&of)).cloned().collect();
        assert!((1..=4).contains(&writes.len()), "no storm: {writes:#?}");
    }
    // It appears later: no retry was needed for it to be seen.
    host.ip("link add eth9 type veth peer name far9");
    field.until_standing(&host, "a-unmatched", "Available").await;
    field.agree().await;
}
