//! Nodes without a kubelet: one whose agent no longer renews its Lease is not Ready.
//!
//! What it holds stays its own: only a deleted Node is gone. Cost: where there is such a Node, one list of Leases every
//! [`LOOK`], and a write when one falls silent.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use crds::names::lease::NODES_NAMESPACE;
use crds::names::node as names;
use k8s_openapi::api::coordination::v1::Lease;
use k8s_openapi::api::core::v1::Node;
use k8s_openapi::jiff::Timestamp;
use kube::api::{Api, ListParams, Patch, PatchParams};
use kube::{Client, ResourceExt};
use serde_json::json;

use crate::api::Watched;
use crate::node::is_own;

const LOOK: Duration = Duration::from_secs(10);
/// As long as Kubernetes waits for a kubelet.
const SILENT: Duration = Duration::from_secs(40);

/// Looks after them until dropped.
pub(super) async fn look_after(client: Client, nodes: Watched<Node>) {
    let leases: Api<Lease> = Api::namespaced(client.clone(), NODES_NAMESPACE);
    let api: Api<Node> = Api::all(client);
    // Of each Lease the version, and when that was first seen.
    let mut seen: BTreeMap<String, (Option<String>, Instant)> = BTreeMap::new();
    loop {
        tokio::time::sleep(LOOK).await;
        let own: Vec<_> = nodes.all().into_iter().filter(|node| is_own(node)).collect();
        if own.is_empty() {
            continue;
        }
        // Away: nobody's silence is heard meanwhile.
        let Ok(listed) = leases.list(&ListParams::default()).await else {
            seen.clear();
            continue;
        };
        for lease in listed {
            let version = lease.resource_version();
            let known = seen.entry(lease.name_any()).or_insert_with(|| (version.clone(), Instant::now()));
            if known.0 != version {
                *known = (version, Instant::now());
            }
        }
        for node in own {
            let name = node.name_any();
            // One that was registered just now has no Lease yet.
            let (_, since) = seen.entry(name.clone()).or_insert_with(|| (None, Instant::now()));
            let silent = since.elapsed() >= SILENT;
            if silent == is_ready(&node) {
                let patch = Patch::Merge(ready(!silent));
                let _ = api.patch_status(&name, &PatchParams::default(), &patch).await;
            }
        }
    }
}

fn is_ready(node: &Node) -> bool {
    super::known::NodeKnown::of(node).ready
}

fn ready(is: bool) -> serde_json::Value {
    let now = Timestamp::now().strftime("%Y-%m-%dT%H:%M:%SZ").to_string();
    let (status, reason, message) = match is {
        true => ("True", names::AGENT_RUNS, "the agent of this host runs"),
        false => ("Unknown", names::AGENT_SILENT, "the agent of this host has not renewed its Lease"),
    };
    json!({"status": {"conditions": [{
        "type": "Ready", "status": status, "reason": reason, "message": message,
        "lastHeartbeatTime": now, "lastTransitionTime": now,
    }]}})
}
