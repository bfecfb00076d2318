//! `make install` lays out what a host needs, and systemd finds nothing wrong with the unit.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::folder::Folder;

fn make(target: &str, destination: &Path) -> String {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("the workspace");
    let output = Command::new("make")
        .args(["--no-print-directory", "-s", target])
        .arg(format!("DESTDIR={}", destination.display()))
        .arg(format!("BINARY={}", env!("CARGO_BIN_EXE_berth")))
        // What the tests were started with is not for this one.
        .env_remove("MAKEFLAGS")
        .current_dir(root)
        .output()
        .expect("start make");
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success(), "make {target}: {said}");
    said
}

fn files(folder: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder).expect("a folder") {
        let path = entry.expect("an entry").path();
        match path.is_dir() {
            true if fs::read_dir(&path).expect("a folder").next().is_some() => found.extend(files(&path)),
            _ => found.push(path),
        }
    }
    found.sort();
    found
}

#[test]
fn files_are_where_they_belong_and_settings_stay() {
    let folder = Folder::new();
    let at = folder.path();
    make("install", at);
    let mode = |path: &Path| fs::metadata(path).expect("there").permissions().mode() & 0o777;
    let (pages, rest): (Vec<PathBuf>, Vec<PathBuf>) =
        files(at).into_iter().partition(|path| path.starts_with(at.join("usr/local/share/man/man1")));
    // As many as are committed, and one of each kind by name.
    let committed = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/man");
    assert_eq!(pages.len(), files(&committed).len());
    for page in ["berth.1", "berth-pool-show.1", "berth-node-rm.1", "berth-policy-preview.1"] {
        assert!(pages.iter().any(|path| path.ends_with(page)), "{page}: {pages:?}");
    }
    assert!(pages.iter().all(|path| mode(path) == 0o644));
    let found: Vec<(String, u32)> = rest
        .iter()
        .map(|path| (path.strip_prefix(at).expect("below").display().to_string(), mode(path)))
        .collect();
    let wanted = [
        ("etc/berth/agent.yaml", 0o644),
        ("etc/berth/manifests", 0o755),
        ("etc/berth/serve.env", 0o644),
        ("usr/local/bin/berth", 0o755),
        ("usr/local/bin/kubectl-berth", 0o755),
        ("usr/local/lib/systemd/system/berth-boot.service", 0o644),
        ("usr/local/lib/systemd/system/berth-serve.service", 0o644),
        ("usr/local/lib/systemd/system/berth.service", 0o644),
        ("usr/local/share/bash-completion/completions/berth", 0o644),
        ("usr/local/share/fish/vendor_completions.d/berth.fish", 0o644),
        ("usr/local/share/zsh/site-functions/_berth", 0o644),
    ];
    assert_eq!(found, wanted.map(|(name, mode)| (name.to_owned(), mode)));
    assert_eq!(fs::read_link(at.join("usr/local/bin/kubectl-berth")).expect("a link"), Path::new("berth"));
    // What somebody set is theirs.
    let settings = ["agent.yaml", "serve.env"].map(|name| at.join("etc/berth").join(name));
    settings.iter().for_each(|path| fs::write(path, "node: mine\n").expect("written"));
    make("install", at);
    for path in &settings {
        assert_eq!(fs::read_to_string(path).expect("text"), "node: mine\n");
    }
    make("uninstall", at);
    let left: Vec<PathBuf> = files(&at.join("etc"));
    let kept = ["agent.yaml", "manifests", "serve.env"].map(|name| at.join("etc/berth").join(name));
    assert_eq!(left, kept);
    let empty = files(&at.join("usr")).into_iter().all(|path| path.is_dir());
    assert!(empty, "{:?}", files(&at.join("usr")));
}

#[test]
fn systemd_takes_the_units() {
    let folder = Folder::new();
    let at = folder.path();
    make("install", at);
    for (name, start) in [
        ("berth.service", "ExecStart=/usr/local/bin/berth agent --config /etc/berth/agent.yaml\n"),
        ("berth-boot.service", "ExecStart=/usr/local/bin/berth boot --state-dir /var/lib/berth\n"),
        (
            "berth-serve.service",
            "ExecStart=/usr/local/bin/berth serve --state-dir /var/lib/berth/api --listen ",
        ),
    ] {
        let unit = fs::read_to_string(at.join("usr/local/lib/systemd/system").join(name)).expect("text");
        assert!(!unit.contains('@') || !unit.contains("DIR@"), "{unit}");
        assert!(unit.contains(start), "{unit}");
        // It looks for the program where the unit says it is.
        let unit = unit.replace("/usr/local/bin/", &format!("{}/usr/local/bin/", at.display()));
        let path = at.join(name);
        fs::write(&path, unit).expect("written");
        let output = Command::new("systemd-analyze")
            .arg("verify")
            .arg(&path)
            .output()
            .expect("systemd-analyze: install systemd (it need not run)");
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!((output.status.code(), said.as_str()), (Some(0), ""), "{name}");
    }
}

/// The settings that are installed are settings: the program reads them, and complains of nothing but the state directory
/// that this test puts out of reach.
#[test]
fn the_installed_settings_are_taken() {
    let folder = Folder::new();
    let text = include_str!("../../../systemd/agent.yaml");
    let file = folder.path().join("agent.yaml");
    let uncommented: String = text
        .lines()
        .map(|line| {
            line.strip_prefix("# ")
                .filter(|rest| rest.split_once(": ").is_some_and(|(key, _)| !key.contains(' ')))
                .unwrap_or(line)
        })
        .filter(|line| !line.starts_with("standalone"))
        .map(|line| format!("{line}\n"))
        .collect();
    assert!(uncommented.contains("\nnode-labels: {rack: rack1}\n"), "{uncommented}");
    for settings in [text, &uncommented] {
        fs::write(&file, settings.replace("/var/lib/berth", "/dev/null/berth")).expect("written");
        let output = Command::new(env!("CARGO_BIN_EXE_berth"))
            .args(["agent", "--config"])
            .arg(&file)
            .env_remove("NODE_NAME")
            .output()
            .expect("start berth");
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(said.starts_with("error: --state-dir /dev/null/berth\n"), "{said}");
    }
}
