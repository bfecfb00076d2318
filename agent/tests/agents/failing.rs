//! What can't be had or rendered: said, and nothing else is disturbed.

use serde_json::{Value, json};

use crate::SEEDS;
use crate::field::{Field, address_on, doubles, one_address};
use crate::on::On;
use crate::told::told_of;

/// R14, R32, R69: an exhausted pool fails the policy with words, and says so itself; others go on; room helps.
pub(crate) async fn r14_r32_r69_an_exhausted_pool_says_so_and_recovers(on: On) {
    let field = Field::new(on).await;
    field
        .pool(
            "tiny",
            json!({"range": {"cidr": SEEDS, "start": "10.10.10.1", "end": "10.10.10.1"}, "quarantine": "1s"}),
        )
        .await;
    field.pool("wide", json!({"range": {"cidr": "10.10.20.0/24"}})).await;
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
}

/// R18: broken templates, captures without a match and unknown pools fail with the diagnostic, and touch nothing.
pub(crate) async fn r18_what_cannot_be_rendered_fails_with_the_diagnostic(on: On) {
    let field = Field::new(on).await;
    let host = field.host("node01", 1).await;
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
    for (policy, words) in
        [("a-unmatched", "eth9"), ("b-unknown", "no pool named nowhere"), ("c-broken", "missing")]
    {
        let own = field.until_standing(&host, policy, "Failing").await;
        let message = own["status"]["conditions"][1]["message"].as_str().expect("text");
        assert!(message.contains(words), "{policy}: {message}");
    }
    assert!(host.addresses("eth0").is_empty());
    // It appears later: no retry was needed for it to be seen.
    host.ip("link add eth9 type veth peer name far9");
    field.until_standing(&host, "a-unmatched", "Available").await;
}

/// With this address a host is cut off.
const LOST: &str = "198.51.100.5";

/// API-COMPAT 5, items 12, 13, 20: what cuts a host off is undone, tried five times, then given up; whoever waited for the slot does so, too, and
/// the policy says both. Another generation is another chance.
pub(crate) async fn what_fails_for_good_is_given_up_and_the_rest_aborted(on: On) {
    let field = Field::new(on).await;
    let mut hosts = [field.host("node01", 1).await, field.host("node02", 1).await];
    for host in &mut hosts {
        host.stop().await;
        let client = doubles::lost_with(field.client_for(host).await, host, "eth0", LOST);
        field.start_with(host, client);
    }
    let wants = |ip: &str| {
        json!({"maxUnavailable": 1, "nodeSelector": {"zone": "a"}, "desiredState": {"interfaces": [{"name": "eth0",
            "type": "veth", "state": "up", "ipv4": {"enabled": true, "address": [{"ip": ip, "prefix-length": 24}]}}]}})
    };
    field.policy("refused", wants(LOST)).await;
    field.label(&hosts[0], "zone", "a").await;
    let reason = |own: &Value, kind: &str| {
        let all = own["status"]["conditions"].as_array().cloned().unwrap_or_default();
        all.iter().find(|one| one["type"] == kind && one["status"] == "True").map(|one| one["reason"].clone())
    };
    let retries = |own: &Value| reason(own, "Failing") == Some(json!("Retrying"));
    let own = field.until_enactment(&hosts[0], "refused", "retrying", retries).await;
    let said = own["status"]["conditions"].to_string();
    assert!(said.contains("Retrying 1/5") && said.contains("api worked before the change"), "{said}");
    field.label(&hosts[1], "zone", "a").await;
    let gave_up = |own: &Value| reason(own, "Failing") == Some(json!("FailedToConfigure"));
    let own = field.until_enactment(&hosts[0], "refused", "given up", gave_up).await;
    assert_eq!(own["status"]["retryCount"], json!({"1": 5}));
    field.until_standing(&hosts[1], "refused", "Aborted").await;
    let degraded = |policy: &Value| reason(policy, "Degraded").is_some();
    let policy = field.until_policy("refused", "degraded", degraded).await;
    let said = policy["status"]["conditions"].to_string();
    assert!(said.contains("1/2 nodes failed to configure, 1 nodes aborted configuration"), "{said}");
    told_of(&field, "node01.refused", "has failed after 5 retries").await;
    told_of(&field, "node02.refused", "has aborted").await;
    assert!(hosts.iter().all(|host| host.addresses("eth0").is_empty()));
    field.try_edit_policy("refused", wants("198.51.100.6")).await.expect("it is taken");
    for host in &hosts {
        field.until_standing(host, "refused", "Available").await;
        assert_eq!(host.addresses("eth0"), ["198.51.100.6/24"]);
    }
}
