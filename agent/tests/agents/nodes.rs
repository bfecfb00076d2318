//! Nodes that go and come back while their hosts go on.

use serde_json::json;

use crate::field::{self, Field};
use crate::on::On;

/// Rule 7: the Node is deleted while its agent is off, and registered anew when it starts. The journal proves whose the
/// address is: it is never off the card, and the ledger has it for the new Node.
pub(crate) async fn rule7_a_node_registered_anew_never_loses_its_address(on: On) {
    let field = Field::new(on).await;
    field.pool("traffic-1", json!({"range": {"cidr": "10.10.10.0/24"}})).await;
    let mut host = field.host("node01", 1).await;
    host.registers = true;
    let old = field.until_node_is_another(&host, "").await;
    field.policy("one", field::one_address("traffic-1")).await;
    field.until_standing(&host, "one", "Available").await;
    let before = host.addresses("eth0");
    host.stop().await;
    let listener = host.listen().await;
    field.delete_node(&host).await;
    field.start(&mut host).await;
    let new = field.until_node_is_another(&host, &old).await;
    let ip = before[0].split('/').next().expect("an address").to_owned();
    field
        .until_pool("traffic-1", "for the new Node", |pool| {
            let entry = &pool["status"]["allocations"][&ip];
            entry["nodeUID"] == new.as_str() && entry["state"].is_null()
        })
        .await;
    field
        .until_enactment(&host, "one", "of the new Node, and Available", |own| {
            own["metadata"]["ownerReferences"][0]["uid"] == new.as_str()
                && own["status"]["conditions"][0]["status"] == "True"
        })
        .await;
    assert_eq!(host.addresses("eth0"), before);
    assert_eq!(listener.lost("eth0").await, Vec::<String>::new());
    field.agree().await;
}

/// Rule 7: a host that lost its journal and its Node. What it had is told by its mark, and taken off before it is
/// another's; an address that somebody set by hand is left alone.
pub(crate) async fn rule7_a_marked_address_that_nobody_knows_is_taken_off(on: On) {
    let field = Field::new(on).await;
    field.pool("traffic-1", json!({"range": {"cidr": "10.10.10.0/24"}, "quarantine": "1s"})).await;
    let mut host = field.host("node01", 2).await;
    field.policy("one", field::one_address("traffic-1")).await;
    field.until_standing(&host, "one", "Available").await;
    host.wait_until("marked", || host.marked("eth0").len() == 1).await;
    host.ip("addr add 10.10.10.200/24 dev eth1");
    host.stop().await;
    field.delete_policy("one").await;
    host.lose_journal();
    field.delete_node(&host).await;
    field.until_no_enactment(&host, "one").await;
    host.registers = true;
    field.start(&mut host).await;
    host.wait_until("off", || host.addresses("eth0").is_empty()).await;
    assert_eq!(host.addresses("eth1"), ["10.10.10.200/24"]);
    // What somebody set by hand is an address of the pool, and in no ledger.
    field.agree_but(&["node01: 10.10.10.200 is on a card"]).await;
}
