//! Changes that would cut a host off are undone.

use serde_json::{Value, json};

use crate::field::{Field, doubles};
use crate::on::On;

const GATEWAY: &str = "192.0.2.254";

pub(crate) fn moves_away(network: &str) -> Value {
    json!({"desiredState": {"interfaces": [{"name": "eth0", "type": "veth", "state": "up",
        "ipv4": {"enabled": true, "dhcp": false, "address": [{"ip": network, "prefix-length": 24}]}}]}})
}

pub(crate) fn names(own: &Value, words: &str) -> bool {
    own["status"]["conditions"].as_array().is_some_and(|all| {
        all.iter().any(|one| {
            one["status"] == "True" && one["message"].as_str().is_some_and(|text| text.contains(words))
        })
    })
}

/// docs/compatibility.md, item 3: a policy that takes the default gateway away is rolled back, and says why; one that is told not
/// to ask is not.
pub(crate) async fn a_change_that_loses_the_gateway_is_undone(on: On) {
    let field = Field::new(on).await;
    let host = field.host("node01", 2).await;
    let _gateway = host.gateway("eth0", GATEWAY);
    host.ip("addr add 192.0.2.1/24 dev eth0");
    host.ip(&format!("route add default via {GATEWAY}"));
    let before = (host.addresses("eth0"), host.ip("route show"));
    field.policy("cut-off", moves_away("198.51.100.5")).await;
    field
        .until_enactment(&host, "cut-off", "failing for the gateway", |own| {
            names(own, "gateway worked before the change and no longer does")
        })
        .await;
    host.wait_until("as it was", || (host.addresses("eth0"), host.ip("route show")) == before).await;
    // It is not done again: each time the host would be away for as long as a probe is waited for.
    let own = field.until_standing(&host, "cut-off", "Failing").await;
    assert_eq!(own["status"]["retryCount"], json!({"1": 1}), "{own:#}");
    field.delete_policy("cut-off").await;
    field.until_no_enactment(&host, "cut-off").await;
    // Another network of the same card beside it: nothing is lost.
    let mut beside = moves_away("192.0.2.1");
    beside["desiredState"]["interfaces"][0]["mtu"] = json!(1400);
    field.policy("harmless", beside).await;
    field.until_standing(&host, "harmless", "Available").await;
    field.delete_policy("harmless").await;
    field.policy_with("asked-for", json!({"nmstate.io/probes": "none"}), moves_away("198.51.100.5")).await;
    field.until_standing(&host, "asked-for", "Available").await;
    assert_eq!(host.addresses("eth0"), ["198.51.100.5/24"]);
    field.agree().await;
}

pub(crate) async fn a_probe_that_there_is_not_is_named_and_nothing_is_touched(on: On) {
    let field = Field::new(on).await;
    let host = field.host("node01", 1).await;
    field.policy_with("one", json!({"nmstate.io/probes": "gateway,ping"}), moves_away("198.51.100.5")).await;
    let own = field.until_standing(&host, "one", "Failing").await;
    assert!(names(&own, "\"ping\" is no probe"), "{own:#}");
    assert!(host.addresses("eth0").is_empty());
    field.agree().await;
}

/// The API can't be reached once the change is made: undone, since it could before.
pub(crate) async fn a_change_that_loses_the_api_is_undone(on: On) {
    let field = Field::new(on).await;
    let mut host = field.host("node01", 1).await;
    host.stop().await;
    let client = doubles::lost_with(field.client_for(&host).await, &host, "eth0", "198.51.100.5");
    field.start_with(&mut host, &client);
    field.policy("lost", moves_away("198.51.100.5")).await;
    field
        .until_enactment(&host, "lost", "failing for the API", |own| {
            names(own, "api worked before the change and no longer does")
        })
        .await;
    host.wait_until("as it was", || host.addresses("eth0").is_empty()).await;
    field.agree().await;
}

/// The name server can't be reached once the change is made: undone, since it could before.
pub(crate) async fn a_change_that_loses_dns_is_undone(on: On) {
    let field = Field::new(on).await;
    let host = field.host("node01", 1).await;
    let gateway = host.gateway("eth0", GATEWAY);
    let _names = gateway.answers_names();
    host.ip("addr add 192.0.2.1/24 dev eth0");
    host.resolves_by(GATEWAY);
    field.policy_with("lost", json!({"nmstate.io/probes": "dns"}), moves_away("198.51.100.5")).await;
    let words = format!("dns worked before the change and no longer does: {GATEWAY}: ");
    field.until_enactment(&host, "lost", "failing for DNS", |own| names(own, &words)).await;
    host.wait_until("as it was", || host.addresses("eth0") == ["192.0.2.1/24"]).await;
    field.agree().await;
}

/// The API is reached from the network of the agent, whichever it works on: so also when it is asked in a change.
pub(crate) async fn the_api_is_asked_from_the_agents_own_network(on: On) {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let field = Field::new(on).await;
    let mut host = field.host("node01", 1).await;
    host.stop().await;
    let place = listener.local_addr().expect("a port");
    let client = doubles::connects_with(field.client_for(&host).await, &host, "eth0", "198.51.100.5", place);
    field.start_with(&mut host, &client);
    field.policy("kept", moves_away("198.51.100.5")).await;
    field.until_standing(&host, "kept", "Available").await;
    assert_eq!(host.addresses("eth0"), ["198.51.100.5/24"]);
    field.agree().await;
}
