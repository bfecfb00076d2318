//! `kubectl berth …`.

use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::json;

use crate::field::{Field, run};

/// The real one, where the control plane's script finds it.
fn kubectl() -> PathBuf {
    if let Some(path) = std::env::var_os("KUBECTL") {
        return path.into();
    }
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests/control-plane/build.sh");
    let found = run(Command::new(script).arg("--find"));
    let path = found.stdout.lines().find_map(|line| line.strip_prefix("kubectl "));
    path.map(PathBuf::from)
        .unwrap_or_else(|| panic!("there is no kubectl: run tests/setup.sh --tests\n{}", found.stderr))
}

pub(crate) fn it_is_a_plugin_of_kubectl(field: &Field) {
    field.pool("traffic-1", &json!({"cidr": "10.10.10.0/24"}));
    let plugin = field.folder.path().join("kubectl-berth");
    symlink(env!("CARGO_BIN_EXE_berth"), &plugin).expect("a link");
    // Under its name it speaks of itself as people call it.
    let help = field.berth_as(&plugin, "pool show --help").ok();
    assert!(help.contains("Usage: kubectl berth pool show "), "{help}");
    let mut command = Command::new(kubectl());
    command.args(["berth", "pool", "ls"]).env("KUBECONFIG", &field.kubeconfig);
    let path = std::env::var("PATH").unwrap_or_default();
    command.env("PATH", format!("{}:{path}", field.folder.path().display())).env("HOME", field.folder.path());
    let listed = run(&mut command).ok();
    assert!(listed.contains("traffic-1"), "{listed}");
    // A 'berth serve' is also reached by its socket.
    if field.folder.path().join("api.sock").exists() {
        assert!(field.berth("pool ls --socket api.sock").ok().contains("traffic-1"));
        assert!(field.berth("pool --socket api.sock ls").ok().contains("traffic-1"));
    }
}
