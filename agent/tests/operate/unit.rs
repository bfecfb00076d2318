//! `berth boot install` and `berth boot remove`, as the agent's init container runs them: on a host's /etc and /var/lib/berth, mounted
//! elsewhere.

use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use crate::folder::Folder;

const BERTH: &str = env!("CARGO_BIN_EXE_berth");

/// A host, as a container sees it.
struct Host {
    folder: Folder,
}

impl Host {
    fn new() -> Self {
        let folder = Folder::new();
        for path in ["root/etc/systemd/system", "state"] {
            fs::create_dir_all(folder.path().join(path)).expect("a folder");
        }
        Self { folder }
    }

    fn at(&self, path: &str) -> PathBuf {
        self.folder.path().join(path)
    }

    fn unit(&self) -> PathBuf {
        self.at("root/etc/systemd/system/berth-boot.service")
    }

    /// What `systemctl enable` would make.
    fn link(&self) -> PathBuf {
        self.at("root/etc/systemd/system/multi-user.target.wants/berth-boot.service")
    }

    fn program(&self) -> PathBuf {
        self.at("state/bin/berth")
    }

    /// Through these mount commands, which only it sees.
    fn berth_behind(&self, mounts: &str, verb: &str) -> Output {
        let script = format!("{mounts}\nexec \"$@\"");
        let mut command = Command::new("unshare");
        command.args(["--mount", "sh", "-ec", &script, "sh", BERTH, "boot", verb]);
        command.args(["--host-root=root", "--state-dir=state"]).current_dir(self.folder.path());
        command.output().expect("berth runs")
    }

    #[track_caller]
    fn berth(&self, verb: &str) -> String {
        let output = self.berth_behind("", verb);
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).expect("text")
    }

    #[track_caller]
    fn refuses(&self, mounts: &str, words: &str) {
        let output = self.berth_behind(mounts, "install");
        let said = String::from_utf8_lossy(&output.stderr);
        assert_eq!((output.status.code(), said.as_ref()), (Some(1), words));
    }
}

/// Which files these are: one that was written again is another.
fn inodes(paths: &[PathBuf]) -> Vec<u64> {
    paths.iter().map(|path| path.symlink_metadata().expect("there").ino()).collect()
}

fn is_this_program(path: &Path) -> bool {
    fs::read(path).expect("there") == fs::read(BERTH).expect("the program")
}

const INSTALLED: &str = "berth-boot.service installed: at the next boot it runs /var/lib/berth/bin/berth\n";

/// The unit is the one that `make install` puts in place, but for where the program is: by the host's own paths.
#[test]
fn the_unit_is_enabled_and_its_program_beside_the_journal() {
    let host = Host::new();
    assert_eq!(host.berth("install"), INSTALLED);
    let unit = fs::read_to_string(host.unit()).expect("a unit");
    assert_eq!(
        unit,
        include_str!("../../../systemd/berth-boot.service").replace("@BINDIR@", "/var/lib/berth/bin")
    );
    assert!(
        unit.contains("\nExecStart=/var/lib/berth/bin/berth boot --state-dir /var/lib/berth\n"),
        "{unit}"
    );
    assert_eq!(fs::canonicalize(host.link()).expect("a link"), fs::canonicalize(host.unit()).expect("there"));
    assert!(is_this_program(&host.program()));
    let mode = |path: &Path| fs::metadata(path).expect("there").permissions().mode() & 0o777;
    assert_eq!((mode(&host.program()), mode(&host.unit())), (0o755, 0o644));
    // systemd says the same.
    let root = format!("--root={}", host.at("root").display());
    let enabled = Command::new("systemctl").args([&root, "is-enabled", "berth-boot.service"]).output();
    assert_eq!(String::from_utf8_lossy(&enabled.expect("systemctl").stdout), "enabled\n");
}

#[test]
fn what_is_there_already_is_not_written_again() {
    let host = Host::new();
    host.berth("install");
    let files = [host.program(), host.unit(), host.link()];
    let before = inodes(&files);
    let said = host.berth("install");
    assert_eq!(said, INSTALLED.replace("installed", "is installed"));
    assert_eq!(inodes(&files), before);
}

/// What an older version put there is replaced, each by itself; as long and longer ones.
#[test]
fn another_program_and_another_unit_are_replaced() {
    let host = Host::new();
    host.berth("install");
    let files = [host.program(), host.unit(), host.link()];
    let mut longer = fs::read(BERTH).expect("the program");
    longer.push(b'\n');
    let changes = [(0, longer.clone()), (0, longer[..1000].to_vec()), (1, b"[Service]\n".to_vec())];
    for (which, bytes) in changes {
        fs::write(&files[which], bytes).expect("written");
        let before = inodes(&files);
        assert_eq!(host.berth("install"), INSTALLED);
        let after = inodes(&files);
        let changed: Vec<usize> = (0..files.len()).filter(|&file| before[file] != after[file]).collect();
        assert_eq!(changed, [which]);
        assert!(is_this_program(&host.program()));
    }
    // Nothing is left of writing.
    assert_eq!(fs::read_dir(host.at("state/bin")).expect("a folder").count(), 1);
}

#[test]
fn a_host_that_cant_have_it_is_told_why() {
    let host = Host::new();
    host.refuses(
        "mount -t tmpfs -o noexec state state",
        "error: state is on a file system that is mounted noexec: berth-boot.service could not run its program from there\n",
    );
    host.refuses(
        "mount -t tmpfs -o ro state state",
        "error: can't write state/bin/berth\n  Read-only file system (os error 30)\n",
    );
    host.refuses(
        "mount --bind root/etc root/etc\nmount -o remount,bind,ro root/etc",
        "error: can't write root/etc/systemd/system/berth-boot.service\n  Read-only file system (os error 30)\n",
    );
    assert!(!host.unit().exists() && !host.link().exists());
    fs::remove_dir_all(host.at("root/etc/systemd")).expect("removed");
    host.refuses(
        "",
        "error: there is no root/etc/systemd: this host has no systemd, which would run berth-boot.service\n",
    );
}

/// `systemctl mask` is an administrator's word.
#[test]
fn a_unit_that_is_masked_is_left_alone() {
    let host = Host::new();
    std::os::unix::fs::symlink("/dev/null", host.unit()).expect("a link");
    let said = host.berth("install");
    assert_eq!(said, "left alone: root/etc/systemd/system/berth-boot.service leads to /dev/null\n");
    assert!(!host.link().exists() && !host.program().exists());
}

/// Also where there is nothing, or only a part of it.
#[test]
fn removed_nothing_of_it_is_left() {
    let host = Host::new();
    host.berth("install");
    fs::write(host.at("state/journal.json"), "{}").expect("written");
    for _ in 0..2 {
        assert_eq!(host.berth("remove"), "berth-boot.service and its program are gone\n");
        let left = [host.program(), host.unit(), host.link()].map(|path| path.symlink_metadata().is_ok());
        assert_eq!(left, [false; 3]);
    }
    assert!(host.at("state/journal.json").exists());
}
