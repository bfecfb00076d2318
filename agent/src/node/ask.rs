//! The API, asked by the thread that works on the kernel.

use std::time::Duration;

use k8s_openapi::api::core::v1::Node;
use kube::Client;
use kube::api::Api;
use tokio::runtime::Handle;

use crate::api::error::words;
use crate::controller::known::NodeKnown;
use crate::probe;

/// How long one question may take: a connection that died in a change is given up, and the next question opens another.
const ANSWER: Duration = Duration::from_secs(2);

pub(super) struct AskApi {
    client: Client,
    node: String,
    runtime: Handle,
}

impl AskApi {
    /// Within a runtime, which answers later.
    pub(super) fn new(client: Client, node: String) -> Self {
        Self { client, node, runtime: Handle::current() }
    }

    fn node(&self) -> Result<Node, String> {
        let (nodes, node): (Api<Node>, String) = (Api::all(self.client.clone()), self.node.clone());
        let answer = async move { tokio::time::timeout(ANSWER, nodes.get(&node)).await };
        // On a thread of the runtime's: a connection that is opened on this one would be of the network namespace that it
        // works in, and the API is reached from the agent's own.
        match self.runtime.block_on(self.runtime.spawn(answer)) {
            Ok(Ok(Ok(node))) => Ok(node),
            Ok(Ok(Err(error))) => Err(words(&error)),
            Ok(Err(_)) | Err(_) => Err("no answer".to_owned()),
        }
    }
}

impl probe::Api for AskApi {
    fn answers(&self) -> Result<(), String> {
        self.node().map(drop)
    }

    fn node_is_ready(&self) -> Result<(), String> {
        let node = self.node()?;
        if NodeKnown::of(&node).ready { Ok(()) } else { Err(format!("Node {} is not Ready", self.node)) }
    }
}
