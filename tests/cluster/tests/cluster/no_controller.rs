//! Agents alone: they elect one of themselves.

use cluster_tests::{Node, wait};

use crate::field::{Field, NODES, field, quick};
use crate::uninstall::remove;

/// Whose node leads, by the Lease.
fn leader(field: &Field) -> Result<Node, String> {
    let lease = field.cluster.try_get(&["lease", "-n", "berth-system", "berth-controller"])?;
    let holder = lease["spec"]["holderIdentity"].as_str().unwrap_or_default().to_owned();
    NODES.into_iter().find(|node| node.name() == holder).ok_or_else(|| format!("{holder:?} leads"))
}

/// As docs/install.md tells: the base goes, the overlay comes. The leader's node dies, and another takes over: a node that joins
/// then is served.
#[test]
#[ignore = "a cluster: make test-cluster"]
fn agents_elect_one_of_themselves_and_another_when_it_dies() {
    let field = field();
    let before = field.wait_configured(&NODES);
    remove(&field);
    field.cluster.kubectl(&["wait", "--for=delete", "namespace/berth-system", "--timeout=2m"]);
    field.cluster.kubectl(&["apply", "-k", &quick("no-controller")]);
    let rolled_out = ["-n", "berth-system", "rollout", "status", "daemonset/berth-agent", "--timeout=120s"];
    field.cluster.kubectl(&rolled_out);
    assert_eq!(field.wait_configured(&NODES), before);
    assert!(field.pods("controller", None).is_empty());
    let first = wait::until("a leader", || leader(&field));

    field.cluster.power_cut(first);
    let second = wait::until("another leader", || match leader(&field)? {
        still if still == first => Err(format!("{} leads", still.name())),
        other => Ok(other),
    });
    assert_ne!(second, first);
    let fourth = Node(4);
    field.cluster.boot(fourth);
    field.wait_ready(fourth);
    field.wait_configured(&[fourth]);
    // What only a leader does: the addresses of a node that is gone are set aside, and then free.
    field.retire(fourth);

    field.cluster.boot(first);
    field.wait_ready(first);
    field.cluster.kubectl(&rolled_out);
    assert_eq!(field.wait_configured(&NODES), before);
    // Agents of another kind must not meet those that come next; the rest is applied over.
    let agents = ["-n", "berth-system", "delete", "daemonset", "berth-agent", "--cascade=foreground"];
    field.cluster.kubectl(&agents);
}
