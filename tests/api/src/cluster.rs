//! A real API server as clusters have it: our kinds, rights and admission installed, Nodes that a kubelet keeps, and tokens
//! of pods.

mod tokens;

use std::path::{Path, PathBuf};

use k8s_openapi::api::core::v1::Node;
use kube::api::{Api, Patch, PatchParams, PostParams};
use kube::{Client, Config};
use serde_json::{Value, json};

use crate::control_plane::{ControlPlane, Kinds, Options};

/// Where `deploy` puts agents and controller.
pub const NAMESPACE: &str = "berth-system";
/// Their service accounts.
pub const AGENT: &str = "berth-agent";
pub const CONTROLLER: &str = "berth-controller";

pub struct Cluster {
    pub plane: ControlPlane,
}

/// An API server: its address, and the file with its certificate if it has one.
#[derive(Clone, Debug, Default)]
pub struct Way {
    pub server: String,
    pub certificate: Option<PathBuf>,
    /// The name that its certificate is for, where that is not its address.
    pub name: Option<String>,
    /// The network namespace that it is reached from, where that is not everybody's.
    pub from: Option<String>,
}

impl Cluster {
    /// Where our kinds are not there from the beginning, nor is anything else of ours. Not from inside a runtime: it blocks.
    pub fn start(options: &Options) -> Self {
        let plane = ControlPlane::start_with(options);
        let plane = plane.unwrap_or_else(|wrong| panic!("{}", agent::api::error::whole(&wrong)));
        let cluster = Self { plane };
        if options.kinds == Kinds::Ours {
            cluster.install();
        }
        cluster
    }

    /// What an administrator installs, with the tool that they have for it.
    pub fn install(&self) {
        let deploy = |part: &str| format!("{}/../../deploy/{part}", env!("CARGO_MANIFEST_DIR"));
        for part in ["rbac", "admission"] {
            self.plane.run_kubectl(&["apply", "--kustomize", &deploy(part)]);
        }
        self.plane.run_kubectl(&["apply", "--filename", &deploy("base/flow.yaml")]);
    }

    /// The administrator's, on the runtime of who asks.
    pub fn client(&self) -> Client {
        Client::try_from(self.plane.config()).expect("a client")
    }

    /// A client with this token, and otherwise as in the program.
    pub fn client_of(&self, token: &str) -> Client {
        let mut config: Config = self.plane.config();
        config.auth_info = serde_json::from_value(json!({"token": token})).expect("a token");
        config.default_retry = true;
        Client::try_from(config).expect("a client")
    }

    pub fn way(&self) -> Way {
        let server = self.plane.config().cluster_url.to_string();
        Way { server, certificate: Some(self.plane.certificate()), ..Way::default() }
    }

    /// The Node, as a kubelet makes it, if there is none; its UID.
    pub async fn node(&self, name: &str) -> String {
        let nodes: Api<Node> = Api::all(self.client());
        if let Some(node) = nodes.get_opt(name).await.expect("an answer") {
            return node.metadata.uid.expect("a UID");
        }
        let node: Node = serde_json::from_value(json!({"metadata": {"name": name}})).expect("a Node");
        let made = nodes.create(&PostParams::default(), &node).await.expect("it is taken");
        let ready = Patch::Merge(json!({"status": {"conditions": [{"type": "Ready", "status": "True"}]}}));
        nodes.patch_status(name, &PatchParams::default(), &ready).await.expect("Ready");
        made.metadata.uid.expect("a UID")
    }
}

impl Way {
    /// A kubeconfig whose token is in a file, as a pod's is.
    pub fn kubeconfig(&self, token_file: &Path) -> Value {
        let mut cluster = json!({"server": self.server});
        if let Some(certificate) = &self.certificate {
            cluster["certificate-authority"] = json!(certificate);
        }
        if let Some(name) = &self.name {
            cluster["tls-server-name"] = json!(name);
        }
        json!({
            "apiVersion": "v1", "kind": "Config", "current-context": "test",
            "clusters": [{"name": "test", "cluster": cluster}],
            "users": [{"name": "own", "user": {"tokenFile": token_file}}],
            "contexts": [{"name": "test", "context": {"cluster": "test", "user": "own"}}],
        })
    }
}
