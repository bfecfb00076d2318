//! `tests/control-plane/build.sh`: which programs it takes, and what it says where it can't build.
//!
//! The machine is a folder of commands: the few real ones that the script uses, and programs that only tell a version.

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::process::Command;

const TOOLS: [&str; 12] =
    ["bash", "sed", "sort", "head", "dirname", "realpath", "mkdir", "flock", "rm", "mktemp", "find", "cp"];

struct Machine(PathBuf);

impl Machine {
    /// One that has none of it.
    fn new(name: &str) -> Machine {
        let machine = Machine(Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("programs-{name}")));
        if machine.0.exists() {
            fs::remove_dir_all(&machine.0).expect("remove what an earlier run left");
        }
        for folder in ["bin", "assets", "cache"] {
            fs::create_dir_all(machine.0.join(folder)).expect(folder);
        }
        for tool in TOOLS {
            let found = ["/usr/bin", "/bin"].map(|folder| Path::new(folder).join(tool));
            let found = found.iter().find(|path| path.exists()).expect(tool);
            symlink(found, machine.0.join("bin").join(tool)).expect(tool);
        }
        machine
    }

    /// A program in a folder, which says that it is this version.
    fn program(&self, folder: &str, name: &str, says: &str) {
        let path = self.0.join(folder).join(name);
        fs::create_dir_all(path.parent().expect("a folder")).expect(folder);
        fs::write(&path, format!("#!/bin/bash\nprintf '{says}\\n'\n")).expect(name);
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).expect(name);
    }

    fn all(&self, folder: &str, version: &str) {
        self.program(folder, "etcd", "etcd Version: 3.6.8");
        self.program(folder, "kube-apiserver", &format!("Kubernetes {version}"));
        self.program(folder, "kube-controller-manager", &format!("Kubernetes {version}"));
        self.program(folder, "kubectl", &format!("Client Version: {version}\\nKustomize Version: v5.7.1"));
    }

    /// Whether it went well, what it printed, and what it said.
    fn ask(&self, arguments: &[&str]) -> (bool, Vec<(String, String)>, String) {
        let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../control-plane/build.sh");
        let output = Command::new(self.0.join("bin/bash"))
            .arg(script)
            .args(arguments)
            .env_clear()
            .env("PATH", self.0.join("bin"))
            .env("HOME", &self.0)
            .env("XDG_CACHE_HOME", self.0.join("cache"))
            .env("KUBEBUILDER_ASSETS", self.0.join("assets"))
            .output()
            .expect("run build.sh");
        let printed = String::from_utf8(output.stdout).expect("text");
        let root = self.0.display().to_string();
        let line = |line: &str| {
            let (name, path) = line.split_once(' ').expect("a name and a path");
            (name.to_owned(), path.trim_start_matches(&root).trim_start_matches('/').to_owned())
        };
        let said = String::from_utf8(output.stderr).expect("text");
        (output.status.success(), printed.lines().map(line).collect(), said)
    }
}

/// The version that go.mod has, `v1.X.Y`, and its `v1.X`.
fn version() -> (String, String) {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../control-plane/go.mod");
    let text = fs::read_to_string(file).expect("go.mod");
    let version =
        text.lines().find_map(|line| line.trim().strip_prefix("k8s.io/kubernetes ")).expect("a version");
    let (minor, _) = version.rsplit_once('.').expect("three numbers");
    (version.to_owned(), minor.to_owned())
}

fn folders(printed: &[(String, String)]) -> Vec<&str> {
    printed.iter().filter_map(|(_, path)| path.split('/').next()).collect()
}

#[test]
fn assets_come_before_the_path_and_the_cache() {
    let (version, minor) = version();
    let machine = Machine::new("order");
    machine.all(&format!("cache/berth/kubernetes-{version}"), &version);
    assert_eq!(folders(&machine.ask(&[]).1), ["cache"; 4]);
    machine.all("bin", &format!("{minor}.99"));
    assert_eq!(folders(&machine.ask(&[]).1), ["bin"; 4]);
    // Assets often have no controller manager.
    machine.all("assets", &version);
    fs::remove_file(machine.0.join("assets/kube-controller-manager")).expect("a file");
    let (well, printed, said) = machine.ask(&[]);
    assert_eq!((well, said.as_str()), (true, ""));
    assert_eq!(folders(&printed), ["assets", "assets", "bin", "assets"]);
    let names: Vec<&str> = printed.iter().map(|(name, _)| name.as_str()).collect();
    assert_eq!(names, ["etcd", "kube-apiserver", "kube-controller-manager", "kubectl"]);
}

#[test]
fn a_vendors_or_another_version_is_not_used() {
    let (version, minor) = version();
    for other in ["v1.19.0".to_owned(), format!("{minor}.4-dispatcher"), format!("{minor}0.1")] {
        let machine = Machine::new("vendor");
        machine.all("bin", &other);
        machine.all("assets", &other);
        machine.all(&format!("cache/berth/kubernetes-{version}"), &version);
        assert_eq!(folders(&machine.ask(&[]).1), ["assets", "cache", "cache", "cache"], "{other}");
    }
    let machine = Machine::new("old-etcd");
    machine.all("bin", &version);
    machine.program("bin", "etcd", "etcd Version: 3.4.23");
    let (well, _, said) = machine.ask(&["--find"]);
    assert!(!well && said.contains("these are missing: etcd"), "{said}");
}

#[test]
fn where_nothing_is_to_be_had_it_says_what_to_do() {
    let machine = Machine::new("nothing");
    let (well, printed, said) = machine.ask(&["--find"]);
    assert!(!well && printed.is_empty());
    assert!(
        said.contains("these are missing: etcd kube-apiserver kube-controller-manager kubectl"),
        "{said}"
    );
    let (well, printed, said) = machine.ask(&[]);
    assert!(!well && printed.is_empty());
    assert!(said.contains("Go is not installed") && said.contains("https://go.dev/dl"), "{said}");
    assert!(said.contains("KUBEBUILDER_ASSETS"), "{said}");
    // What was half done is gone.
    let left: Vec<_> = fs::read_dir(machine.0.join("cache/berth")).expect("the cache").flatten().collect();
    assert_eq!(left.len(), 1, "the lock alone: {left:?}");
}
