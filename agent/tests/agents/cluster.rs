//! Real API servers that tests of this binary share, as clusters have them: our kinds, rights and admission installed, Nodes
//! that a kubelet keeps, and tokens of pods.
//!
//! A test has one to itself, since names are the same in all, and from nothing ([`clean`]); the next one has it after it. One
//! that wants another kind of server starts its own ([`Own`]).

mod clean;
pub(crate) mod tokens;

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{Condvar, Mutex, PoisonError};

use api_tests::control_plane::{ControlPlane, Options};
use k8s_openapi::api::core::v1::Node;
use kube::api::{Api, Patch, PatchParams, PostParams};
use kube::{Client, Config};
use serde_json::{Value, json};

/// Where `deploy` puts agents and controller.
pub(crate) const NAMESPACE: &str = "berth-system";
/// Their service accounts.
pub(crate) const AGENT: &str = "berth-agent";
pub(crate) const CONTROLLER: &str = "berth-controller";

/// As many tests as run at once on two cores; each takes 400 MiB.
const SIDE_BY_SIDE: usize = 2;

pub(crate) struct Cluster {
    pub(crate) plane: ControlPlane,
}

/// An API server: its address, and the file with its certificate if it has one.
#[derive(Clone, Debug)]
pub(crate) struct Way {
    pub(crate) server: String,
    pub(crate) certificate: Option<PathBuf>,
}

/// A cluster for one test, from nothing; then it is another's.
pub(crate) struct Turn {
    pub(crate) cluster: &'static Cluster,
}

/// A cluster that no other test has; it ends with this.
pub(crate) struct Own {
    pub(crate) cluster: &'static Cluster,
}

impl Own {
    /// Its API server writes down what this policy selects. Not from inside a runtime: it blocks.
    pub(crate) fn audited(policy: Value) -> Self {
        let options = Options { audit: Some(policy), ..Options::default() };
        Self { cluster: Box::leak(Box::new(Cluster::start(&options))) }
    }
}

impl Drop for Own {
    fn drop(&mut self) {
        self.cluster.plane.stop();
    }
}

struct Clusters {
    free: Vec<&'static Cluster>,
    started: usize,
}

static CLUSTERS: Mutex<Clusters> = Mutex::new(Clusters { free: Vec::new(), started: 0 });
static FREED: Condvar = Condvar::new();

impl Drop for Turn {
    fn drop(&mut self) {
        CLUSTERS.lock().unwrap_or_else(PoisonError::into_inner).free.push(self.cluster);
        FREED.notify_one();
    }
}

impl Turn {
    /// Waits for a cluster; the first that want one start it. Not from inside a runtime: it blocks.
    pub(crate) fn wait() -> Self {
        let mut clusters = CLUSTERS.lock().unwrap_or_else(PoisonError::into_inner);
        let turn = loop {
            if let Some(cluster) = clusters.free.pop() {
                break Self { cluster };
            }
            if clusters.started < SIDE_BY_SIDE {
                // While others wait: they would want the same two cores.
                let cluster = Box::leak(Box::new(Cluster::start(&Options::default())));
                clusters.started += 1;
                break Self { cluster };
            }
            clusters = FREED.wait(clusters).unwrap_or_else(PoisonError::into_inner);
        };
        drop(clusters);
        turn.cluster.plane.heal().expect("a control plane that works");
        api_tests::RUNTIME.block_on(clean::all(&turn.cluster.plane.client()));
        turn
    }
}

impl Cluster {
    fn start(options: &Options) -> Self {
        let plane = ControlPlane::start_with(options);
        let plane = plane.unwrap_or_else(|wrong| panic!("{}", agent::api::error::whole(&wrong)));
        let cluster = Self { plane };
        cluster.install();
        cluster
    }

    /// What an administrator installs, with the tool that they have for it.
    fn install(&self) {
        let deploy = Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("the workspace").join("deploy");
        for part in ["rbac", "admission"] {
            let output = Command::new(self.plane.kubectl())
                .arg(format!("--kubeconfig={}", self.plane.kubeconfig().display()))
                .args(["apply", "--kustomize"])
                .arg(deploy.join(part))
                .output()
                .expect("kubectl runs");
            assert!(output.status.success(), "{part}: {}", String::from_utf8_lossy(&output.stderr));
        }
    }

    /// The administrator's, on the runtime of who asks.
    pub(crate) fn client(&self) -> Client {
        Client::try_from(self.plane.config()).expect("a client")
    }

    /// A client with this token, and otherwise as in the program.
    pub(crate) fn client_of(&self, token: &str) -> Client {
        let mut config: Config = self.plane.config();
        config.auth_info = serde_json::from_value(json!({"token": token})).expect("a token");
        config.default_retry = true;
        Client::try_from(config).expect("a client")
    }

    pub(crate) fn way(&self) -> Way {
        let server = self.plane.config().cluster_url.to_string();
        Way { server, certificate: Some(self.plane.certificate()) }
    }

    /// The Node, as a kubelet makes it, if there is none; its UID.
    pub(crate) async fn node(&self, name: &str) -> String {
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
    pub(crate) fn kubeconfig(&self, token_file: &Path) -> Value {
        let mut cluster = json!({"server": self.server});
        if let Some(certificate) = &self.certificate {
            cluster["certificate-authority"] = json!(certificate);
        }
        json!({
            "apiVersion": "v1", "kind": "Config", "current-context": "test",
            "clusters": [{"name": "test", "cluster": cluster}],
            "users": [{"name": "own", "user": {"tokenFile": token_file}}],
            "contexts": [{"name": "test", "context": {"cluster": "test", "user": "own"}}],
        })
    }
}
