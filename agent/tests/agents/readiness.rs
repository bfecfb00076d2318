//! A change that costs a Node its readiness is undone. Where there is a kubelet: an agent that keeps its Node itself says what it is.

use crate::field::{Field, doubles};
use crate::on::On;
use crate::probes::{moves_away, names};

/// The Node is no longer Ready once the change is made, as its kubelet says: undone, since it was before.
pub(crate) async fn a_change_that_loses_the_nodes_readiness_is_undone(on: On) {
    let field = Field::new(on).await;
    let mut host = field.host("node01", 1).await;
    host.stop().await;
    let own = field.client_for(&host).await;
    let client = doubles::unready_with(own, field.client(), &host, "eth0", "198.51.100.5");
    field.start_with(&mut host, &client);
    field.policy("lost", moves_away("198.51.100.5")).await;
    let words = "node worked before the change and no longer does";
    field.until_enactment(&host, "lost", "failing for its Node", |own| names(own, words)).await;
    host.wait_until("as it was", || host.addresses("eth0").is_empty()).await;
    field.agree().await;
}
