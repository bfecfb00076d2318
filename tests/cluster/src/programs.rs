//! Where the programs are: asked of `build.sh`, which fetches or builds what is nowhere to be found.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// What a cluster is made of.
#[derive(Clone, Debug)]
pub(crate) struct Programs {
    /// The folder with this crate's own.
    pub(crate) scripts: PathBuf,
    pub(crate) etcd: PathBuf,
    pub(crate) api_server: PathBuf,
    pub(crate) controller_manager: PathBuf,
    pub(crate) scheduler: PathBuf,
    pub(crate) kubelet: PathBuf,
    pub(crate) kubectl: PathBuf,
    /// A folder with containerd and runc.
    pub(crate) runtime: PathBuf,
    /// A folder with CNI plugins.
    pub(crate) plugins: PathBuf,
    pub(crate) pause: PathBuf,
}

impl Programs {
    /// A second where all is there. What the script says while it builds goes to stderr as it comes.
    pub(crate) fn find() -> Programs {
        let scripts = Path::new(env!("CARGO_MANIFEST_DIR")).to_owned();
        let output = Command::new(scripts.join("build.sh"))
            .stdin(Stdio::null())
            .stderr(Stdio::inherit())
            .output()
            .expect("tests/cluster/build.sh can be run");
        assert!(output.status.success(), "tests/cluster/build.sh: {}", output.status);
        let said = String::from_utf8(output.stdout).expect("text");
        let places: BTreeMap<&str, &str> = said.lines().filter_map(|line| line.split_once(' ')).collect();
        let place =
            |name: &str| PathBuf::from(places.get(name).unwrap_or_else(|| panic!("no {name} in {said}")));
        Programs {
            etcd: place("etcd"),
            api_server: place("kube-apiserver"),
            controller_manager: place("kube-controller-manager"),
            scheduler: place("kube-scheduler"),
            kubelet: place("kubelet"),
            kubectl: place("kubectl"),
            runtime: place("runtime"),
            plugins: place("plugins"),
            pause: place("pause"),
            scripts,
        }
    }
}
