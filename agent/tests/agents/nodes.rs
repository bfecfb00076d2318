//! Nodes that go and come back while their hosts go on.

use serde_json::json;

use crate::field::{self, Field};

/// Rule 7: the Node is deleted while its agent is off, and registered anew when it starts. The journal proves whose the
/// address is: it is never off the card, and the ledger has it for the new Node.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn rule7_a_node_registered_anew_never_loses_its_address() {
    let field = Field::new().await;
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
    field.start(&mut host);
    let new = field.until_node_is_another(&host, &old).await;
    let ip = before[0].split('/').next().unwrap().to_owned();
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
    assert_eq!(host.lost(&listener, "eth0").await, Vec::<String>::new());
}
