//! A host without a kubelet registers its own Node and keeps it: Ready, by a Lease.
//!
//! Registered at the agent's start. A Node that is deleted while its agent runs is an administrator's word that this host
//! is retired: its addresses come off, and it is not made anew before the agent is started again. Cost: one write of
//! the Lease every few seconds.

use std::collections::BTreeMap;

use crds::names::annotation::SELF_REGISTERED;
use crds::names::lease::NODES_NAMESPACE;
use k8s_openapi::api::core::v1::Node;
use k8s_openapi::jiff::Timestamp;
use kube::Client;
use kube::api::{Api, Patch, PatchParams, PostParams};
use serde_json::json;

use crate::api::error::{Trouble, optional, trouble};
use crate::api::lease::Election;
use crate::fault;

/// A Node to be registered.
#[derive(Clone, Debug, Default)]
pub struct Registration {
    pub labels: BTreeMap<String, String>,
}

impl Registration {
    /// Makes the Node where there is none, gives it its labels, and says that it is Ready.
    pub(super) async fn register(&self, client: &Client, name: &str) -> Result<(), kube::Error> {
        let nodes: Api<Node> = Api::all(client.clone());
        let mut labels = self.labels.clone();
        labels.insert("kubernetes.io/hostname".to_owned(), name.to_owned());
        if optional(nodes.get(name).await)?.is_none() {
            let metadata = json!({"name": name, "labels": labels, "annotations": {SELF_REGISTERED: "true"}});
            let node =
                serde_json::from_value(json!({"metadata": metadata})).map_err(kube::Error::SerdeError)?;
            match nodes.create(&PostParams::default(), &node).await {
                Err(error) if trouble(&error) != Trouble::Exists => return Err(error),
                _ => {}
            }
        }
        fault::point("node-made");
        // A kubelet's Node keeps its own labels and readiness.
        let node = nodes.get(name).await?;
        let own = node.metadata.annotations.as_ref().is_some_and(|all| all.contains_key(SELF_REGISTERED));
        if !own {
            return Ok(());
        }
        let labels = json!({"metadata": {"labels": labels}});
        nodes.patch(name, &PatchParams::default(), &Patch::Merge(labels)).await?;
        fault::point("node-labelled");
        let now = Timestamp::now().strftime("%Y-%m-%dT%H:%M:%SZ").to_string();
        let machine = std::fs::read_to_string("/etc/machine-id").unwrap_or_default();
        let status = json!({"status": {
            "nodeInfo": {
                "machineID": machine.trim(), "systemUUID": "", "bootID": "", "kernelVersion": "", "osImage": "",
                "containerRuntimeVersion": "", "kubeletVersion": format!("berth {}", env!("CARGO_PKG_VERSION")),
                "kubeProxyVersion": "", "operatingSystem": "linux", "architecture": std::env::consts::ARCH,
            },
            "conditions": [{
                "type": "Ready", "status": "True", "reason": "AgentRuns", "message": "the agent of this host runs",
                "lastHeartbeatTime": now, "lastTransitionTime": now,
            }],
        }});
        nodes.patch_status(name, &PatchParams::default(), &Patch::Merge(status)).await?;
        Ok(())
    }

    /// Keeps the Node's Lease for as long as it is not dropped.
    pub(super) async fn keep(client: Client, name: String) {
        Election::new(&client, NODES_NAMESPACE, &name, &name).hold().await;
    }
}
