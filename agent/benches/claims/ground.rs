//! Where a crowd lives: a real API server, or the embedded one where there are more hosts than a real one has room for here.

use agent::embedded;
use anyhow::Result;
use api_tests::cluster::{AGENT, Cluster, NAMESPACE};
use k8s_openapi::api::core::v1::Node;
use kube::Client;
use kube::api::{Api, Patch, PatchParams, PostParams};
use serde_json::json;

#[derive(Clone, Copy)]
pub(crate) enum Ground {
    Real(&'static Cluster),
    Embedded(&'static embedded::Api),
}

impl Ground {
    /// The administrator's.
    pub(crate) fn client(self) -> Client {
        match self {
            Self::Real(cluster) => cluster.client(),
            Self::Embedded(api) => api.client(),
        }
    }

    /// Where the controller's Lease is.
    pub(crate) fn namespace(self) -> &'static str {
        match self {
            Self::Real(_) => NAMESPACE,
            Self::Embedded(_) => "default",
        }
    }

    pub(crate) async fn controller(self) -> Client {
        match self {
            Self::Real(cluster) => cluster.client_of(&cluster.controller_token().await),
            Self::Embedded(api) => api.client(),
        }
    }

    /// Makes a Node, if there is none, and gives its agent what it has of the API.
    pub(crate) async fn host(self, node: &str) -> Result<Client> {
        match self {
            Self::Real(cluster) => {
                cluster.node(node).await;
                Ok(cluster.client_of(&cluster.agent_token(AGENT, node).await))
            }
            Self::Embedded(api) => {
                let nodes: Api<Node> = Api::all(api.client());
                let new = serde_json::from_value(json!({"metadata": {"name": node}}))?;
                nodes.create(&PostParams::default(), &new).await?;
                let ready = json!({"status": {"conditions": [{"type": "Ready", "status": "True"}]}});
                nodes.patch_status(node, &PatchParams::default(), &Patch::Merge(ready)).await?;
                Ok(api.client())
            }
        }
    }
}
