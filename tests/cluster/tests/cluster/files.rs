//! What of a host's network is in files, from inside a pod that may write two of the host's folders and nothing else.

use cluster_tests::{run, wait};
use serde_json::{Value, json};

use crate::field::{NODES, field};

/// The resolver's file, and a switch that has no netlink message: by a policy, and put back when somebody else changes them.
#[test]
#[ignore = "a cluster: make test-cluster"]
fn dns_and_switches_of_links_reach_the_host() {
    let field = field();
    let before = field.wait_configured(&NODES);
    let node = NODES[0];
    let apply = |interface: Value, dns: Value| {
        let policy = json!({
            "apiVersion": "nmstate.io/v1", "kind": "NodeNetworkConfigurationPolicy", "metadata": {"name": "files"},
            "spec": {
                "nodeSelector": {"kubernetes.io/hostname": node.name()},
                "desiredState": {"interfaces": [interface], "dns-resolver": {"config": dns}},
            },
        });
        field.cluster.kubectl_with(&["apply", "-f", "-"], &policy.to_string());
    };
    let cat = |path: &str| run(field.cluster.on(node, "cat").arg(path));
    let switch = "/proc/sys/net/ipv6/conf/br-files/disable_ipv6";
    let was = cat("/etc/resolv.conf");

    let quiet =
        json!({"name": "br-files", "type": "linux-bridge", "state": "up", "ipv6": {"enabled": false}});
    apply(quiet, json!({"server": ["10.99.0.1"], "search": ["example.test"]}));
    field.wait_enactment(node, "files", "Available");
    let resolver = cat("/etc/resolv.conf");
    assert!(
        resolver.contains("nameserver 10.99.0.1") && resolver.contains("search example.test"),
        "{resolver}"
    );
    assert_eq!(cat(switch), "1\n");
    // The state that is reported is the host's, not the pod's.
    let state = field.cluster.get(&["nns", &node.name()]);
    assert_eq!(state["status"]["currentState"]["dns-resolver"]["running"]["server"], json!(["10.99.0.1"]));

    run(field.cluster.on(node, "sh").args(["-c", &format!("echo 0 >{switch}")]));
    wait::until("the switch to be put back", || match cat(switch).as_str() {
        "1\n" => Ok(()),
        other => Err(other.to_owned()),
    });

    let gone = json!({"name": "br-files", "type": "linux-bridge", "state": "absent"});
    apply(gone, json!({"server": [], "search": []}));
    wait::until("the resolver to be as it was", || match cat("/etc/resolv.conf") {
        now if now == was => Ok(()),
        now => Err(now),
    });
    field.wait_enactment(node, "files", "Available");
    field.cluster.kubectl(&["delete", "nncp", "files"]);
    assert_eq!(field.wait_configured(&NODES), before);
}
