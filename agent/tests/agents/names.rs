//! Names that are alike, and policies that had a name before.

use serde_json::json;

use crate::SEEDS;
use crate::field::{Field, Host, address_on, one_address};
use crate::on::On;

/// Node `a` with policy `b.c` and node `a.b` with policy `c` have one name for two enactments: the second leaves the
/// first's alone, and goes on with the rest.
pub(crate) async fn an_enactment_of_another_node_is_left_alone(on: On) {
    let field = Field::new(on).await;
    field.pool("traffic-1", json!({"range": {"cidr": SEEDS}})).await;
    let mut policy = one_address("traffic-1");
    policy["nodeSelector"] = json!({"only": "first"});
    let first = field.host("a", 1).await;
    field.label(&first, "only", "first").await;
    field.policy("b.c", policy).await;
    let own = field.until_standing(&first, "b.c", "Available").await;
    let second = field.host("a.b", 2).await;
    field.label(&second, "only", "second").await;
    for (name, card) in [("c", "eth0"), ("d", "eth1")] {
        let mut policy = address_on("traffic-1", card);
        policy["nodeSelector"] = json!({"only": "second"});
        field.policy(name, policy).await;
    }
    field.until_standing(&second, "d", "Available").await;
    let now = field.enactment(&first, "b.c").await;
    assert_eq!(now["metadata"]["ownerReferences"], own["metadata"]["ownerReferences"]);
    assert_eq!(now["status"]["ippool"], own["status"]["ippool"]);
    assert_eq!(first.addresses("eth0").len(), 1);
    field.agree().await;
}

/// A policy re-created under its name while its agent is away is another: what was captured for the first is not used.
pub(crate) async fn captures_of_a_policy_of_before_are_not_used(on: On) {
    let field = Field::new(on).await;
    let mut host = field.host("node01", 2).await;
    let policy = |card: &str| {
        json!({"capture": {"nic": format!("interfaces.name == \"{card}\"")}, "desiredState": {"interfaces": [
            {"name": "{{ capture.nic.interfaces.0.name }}", "type": "veth", "state": "up", "mtu": 1400},
        ]}})
    };
    let mtu = |host: &Host, card: &str| host.ip(&format!("link show dev {card}")).contains("mtu 1400");
    field.policy("cap", policy("eth0")).await;
    field.until_standing(&host, "cap", "Available").await;
    assert!(mtu(&host, "eth0"));
    host.stop().await;
    field.delete_policy("cap").await;
    field.policy("cap", policy("eth1")).await;
    field.start(&mut host).await;
    host.wait_until("the other card", || mtu(&host, "eth1")).await;
    field.agree().await;
}

/// What a capture found is remembered in the enactment: the host that the policy made has nothing that it would find now.
pub(crate) async fn captures_are_looked_up_once(on: On) {
    let field = Field::new(on).await;
    let mut host = field.host("node01", 2).await;
    let has = |host: &Host, mtu: &str| host.ip("link show dev eth1").contains(mtu);
    host.ip("link set eth1 mtu 1450");
    let policy = json!({"capture": {"nic": "interfaces.mtu == 1450"}, "desiredState": {"interfaces": [
        {"name": "{{ capture.nic.interfaces.0.name }}", "type": "veth", "state": "up", "mtu": 1400},
    ]}});
    field.policy("once", policy).await;
    let before = field.until_standing(&host, "once", "Available").await;
    assert!(has(&host, "mtu 1400"));
    assert_eq!(before["status"]["capturedStates"]["nic"]["state"]["interfaces"][0]["name"], "eth1");
    host.stop().await;
    host.ip("link set eth1 mtu 1300");
    field.start(&mut host).await;
    host.wait_until("put back", || has(&host, "mtu 1400")).await;
    // In name order: when this one has been looked at, the other has been, too.
    field.policy("other", json!({"desiredState": {"interfaces": []}})).await;
    field.until_standing(&host, "other", "Available").await;
    let after = field.until_standing(&host, "once", "Available").await;
    assert_eq!(after["status"]["capturedStates"], before["status"]["capturedStates"], "time and all");
    field.agree().await;
}
