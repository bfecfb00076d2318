//! A host without a kubelet registers its own Node and keeps it: Ready, by a Lease.
//!
//! Registered at the agent's start. A Node that is deleted while its agent runs is an administrator's word that this host
//! is retired: its addresses come off, and it is not made anew before the agent is started again.
//!
//! The Lease also tells two hosts apart that were given one name: whoever finds it in another's hands does nothing until it
//! has run out, and says so. Otherwise the second, which has no journal, would be given what the first one holds.
//! Cost: one read and one write of the Lease every few seconds.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use crds::names::annotation::{NODE_LABELS, SELF_REGISTERED};
use crds::names::lease::NODES_NAMESPACE;
use k8s_openapi::api::core::v1::Node;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::OwnerReference;
use k8s_openapi::jiff::Timestamp;
use kube::api::{Api, Patch, PatchParams, PostParams};
use kube::{Client, Resource, ResourceExt};
use serde_json::{Map, Value, json};

use super::Woken;
use crate::api::error::{Trouble, optional, trouble, words};
use crate::api::lease::{Election, RENEW};
use crate::api::troubles::Troubles;
use crate::fault;

/// Whether the Node is registered, where it is this agent's to do so; whoever waits for that is woken.
#[derive(Clone)]
pub(super) struct Registered {
    registered: Arc<AtomicBool>,
    woken: Arc<Woken>,
}

impl Registered {
    pub(super) fn new(registered: bool, woken: Arc<Woken>) -> Self {
        Self { registered: Arc::new(AtomicBool::new(registered)), woken }
    }

    pub(super) fn now(&self) -> bool {
        self.registered.load(Ordering::SeqCst)
    }

    fn is(&self, registered: bool) {
        if self.registered.swap(registered, Ordering::SeqCst) != registered {
            self.woken.notify.notify_one();
        }
    }
}

/// A Node to be registered.
#[derive(Clone, Debug, Default)]
pub struct Registration {
    pub labels: BTreeMap<String, String>,
}

impl Registration {
    /// Registers the Node as soon as the API can be reached and nobody else has its name, and keeps it until dropped.
    /// `identity` is this host's own.
    pub(super) async fn keep(self, client: Client, name: String, identity: String, registered: Registered) {
        let mut election = Election::new(&client, NODES_NAMESPACE, &name, &identity);
        let mut troubles = Troubles::default();
        loop {
            let wait = match self.renew(&client, &name, &mut election, &registered).await {
                Ok(Ok(())) => {
                    troubles.over();
                    RENEW
                }
                Ok(Err(holder)) => {
                    registered.is(false);
                    troubles.say(&format!(
                        "node {name} is another host's, {holder}: nothing is done here while that one keeps its Lease; \
                         give one of the two another --node"
                    ));
                    RENEW / 2
                }
                Err(error) => troubles.again(&format!("{name}: can't be registered: {}", words(&error))),
            };
            tokio::time::sleep(wait).await;
        }
    }

    /// Takes or renews the Lease, and registers the Node if it isn't yet; else who has it.
    async fn renew(
        &self,
        client: &Client,
        name: &str,
        election: &mut Election,
        registered: &Registered,
    ) -> Result<Result<(), String>, kube::Error> {
        let is_registered = registered.now();
        // A kubelet's Node has a Lease that is the kubelet's.
        let nodes: Api<Node> = Api::all(client.clone());
        if !is_registered && optional(nodes.get(name).await)?.is_some_and(|node| !is_own(&node)) {
            registered.is(true);
            return std::future::pending().await;
        }
        if let Err(holder) = election.claim().await? {
            return Ok(Err(holder));
        }
        if !is_registered {
            let node = self.register(&nodes, name).await?;
            if let Some(owner) = node.controller_owner_ref(&()).filter(|_| is_own(&node)) {
                election.owned_by(OwnerReference { controller: None, ..owner });
            }
            registered.is(true);
        }
        Ok(Ok(()))
    }

    /// Makes the Node where there is none, gives it its labels, and says that it is Ready.
    async fn register(&self, nodes: &Api<Node>, name: &str) -> Result<Node, kube::Error> {
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
        if !is_own(&node) {
            return Ok(node);
        }
        let patch = json!({"metadata": relabelled(&node, &labels)});
        nodes.patch(name, &PatchParams::default(), &Patch::Merge(patch)).await?;
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
                "type": "Ready", "status": "True", "reason": crds::names::node::AGENT_RUNS, "message": "the agent of this host runs",
                "lastHeartbeatTime": now, "lastTransitionTime": now,
            }],
        }});
        nodes.patch_status(name, &PatchParams::default(), &Patch::Merge(status)).await
    }
}

/// What a merge patch says so that a Node has these labels, and none that it was given before by its agent and is given no more.
/// Others' stay.
fn relabelled(node: &Node, labels: &BTreeMap<String, String>) -> Value {
    let before = node.annotations().get(NODE_LABELS).map(String::as_str).unwrap_or_default();
    let gone = before.split(',').filter(|key| !key.is_empty() && !labels.contains_key(*key));
    let mut patch: Map<String, Value> = gone.map(|key| (key.to_owned(), Value::Null)).collect();
    patch.extend(labels.iter().map(|(key, value)| (key.clone(), json!(value))));
    let given = labels.keys().map(String::as_str).collect::<Vec<_>>().join(",");
    json!({"labels": patch, "annotations": {NODE_LABELS: given}})
}

/// Whether a Node was made by an agent, not by a kubelet.
pub(crate) fn is_own(node: &Node) -> bool {
    node.annotations().contains_key(SELF_REGISTERED)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn labels(pairs: &[(&str, &str)]) -> BTreeMap<String, String> {
        pairs.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect()
    }

    #[test]
    fn labels_that_the_settings_have_no_more_go_and_those_of_others_stay() {
        let metadata = json!({
            "name": "a", "labels": {"rack": "r1", "zone": "z", "by-hand": "x"}, "annotations": {NODE_LABELS: "rack,zone"},
        });
        let node: Node = serde_json::from_value(json!({"metadata": metadata})).unwrap();
        let patch = relabelled(&node, &labels(&[("zone", "y")]));
        let wanted = json!({"labels": {"rack": null, "zone": "y"}, "annotations": {NODE_LABELS: "zone"}});
        assert_eq!(patch, wanted);
    }

    #[test]
    fn a_node_of_before_that_was_noted_keeps_what_it_has() {
        let node: Node =
            serde_json::from_value(json!({"metadata": {"name": "a", "labels": {"rack": "r1"}}})).unwrap();
        let patch = relabelled(&node, &labels(&[("zone", "y")]));
        assert_eq!(patch["labels"], json!({"zone": "y"}));
    }
}
