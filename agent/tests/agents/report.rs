//! What a host's agent says of it, and whose that is.

use serde_json::{Value, json};

use crate::field::Field;
use crate::on::On;

fn mtu(state: &Value, card: &str) -> Option<u64> {
    let interfaces = state["status"]["currentState"]["interfaces"].as_array()?;
    interfaces.iter().find(|one| one["name"] == card)?["mtu"].as_u64()
}

fn policy(mtu: u32) -> Value {
    json!({"desiredState": {"interfaces": [{"name": "eth0", "type": "veth", "state": "up", "mtu": mtu}]}})
}

/// Whatever changes the host, a policy or anybody, its report says so at once; and anew when somebody asks.
pub(crate) async fn a_report_follows_its_host(on: On) {
    let field = Field::new(on).await;
    let host = field.host("node01", 2).await;
    let first = field.until_state(&host, "reported", |state| mtu(state, "eth1") == Some(1500)).await;
    assert!(first["status"]["lastSuccessfulUpdateTime"].is_string(), "{first:#}");
    host.ip("link set eth1 mtu 1400");
    field.until_state(&host, "as the host", |state| mtu(state, "eth1") == Some(1400)).await;
    field.policy("one", policy(1450)).await;
    let applied = |state: &Value| mtu(state, "eth0") == Some(1450);
    let before = field.until_state(&host, "as the policy", applied).await;
    field.until_standing(&host, "one", "Available").await;
    field.ask_for_report(&host).await;
    let again = |state: &Value| state["status"]["stamp"] != before["status"]["stamp"];
    field.until_state(&host, "written anew", again).await;
    field.agree().await;
}

/// Enactment and report are a Node's. A policy that goes while the host is off takes its enactment along when the host is back,
/// and leaves the host as it is.
pub(crate) async fn an_enactment_is_its_nodes_and_goes_with_its_policy(on: On) {
    let field = Field::new(on).await;
    let mut host = field.host("node01", 1).await;
    field.policy("one", policy(1400)).await;
    let own = field.until_standing(&host, "one", "Available").await;
    assert_eq!(own["metadata"]["name"], "node01.one");
    assert_eq!(own["metadata"]["labels"], json!({"nmstate.io/node": "node01", "nmstate.io/policy": "one"}));
    let state = field.until_state(&host, "there", |_| true).await;
    let uid = field.until_node_is_another(&host, "").await;
    for object in [&own, &state] {
        let owners = object["metadata"]["ownerReferences"].as_array().expect("owners");
        let owner = ["apiVersion", "kind", "name", "uid"].map(|part| owners[0][part].as_str().unwrap_or(""));
        assert_eq!((owners.len(), owner), (1, ["v1", "Node", "node01", &uid]));
    }
    host.stop().await;
    field.delete_policy("one").await;
    field.start(&mut host).await;
    field.until_no_enactment(&host, "one").await;
    assert!(host.ip("link show dev eth0").contains("mtu 1400"));
    field.agree().await;
}
