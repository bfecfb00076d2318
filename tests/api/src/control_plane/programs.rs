//! Where the programs are: asked of `tests/control-plane/build.sh`, which builds what is nowhere to be found.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use super::StartError;

/// The programs of a control plane, all of one version.
#[derive(Clone, Debug)]
pub struct Programs {
    pub etcd: PathBuf,
    pub api_server: PathBuf,
    pub controller_manager: PathBuf,
    pub kubectl: PathBuf,
}

/// The folder with the scripts.
pub(super) fn scripts() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../control-plane")
}

impl Programs {
    /// Half a second where all is there. What the script says while it builds goes to stderr as it comes.
    pub fn find() -> Result<Programs, StartError> {
        let output = Command::new(scripts().join("build.sh"))
            .stdin(Stdio::null())
            .stderr(Stdio::inherit())
            .output()
            .map_err(|source| StartError::Io { what: "the script build.sh", source })?;
        let said = String::from_utf8_lossy(&output.stdout).into_owned();
        let place = |name: &str| -> Result<PathBuf, StartError> {
            said.lines()
                .filter_map(|line| line.split_once(' '))
                .find(|(found, _)| *found == name)
                .map(|(_, path)| PathBuf::from(path))
                .ok_or_else(|| StartError::Programs {
                    said: format!("tests/control-plane/build.sh ({}) named no {name}", output.status),
                })
        };
        Ok(Programs {
            etcd: place("etcd")?,
            api_server: place("kube-apiserver")?,
            controller_manager: place("kube-controller-manager")?,
            kubectl: place("kubectl")?,
        })
    }
}
