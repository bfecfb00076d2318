//! `tests/setup.sh` on machines without Rust: what it installs, and what it says where it can't.
//!
//! The machine is a folder of commands: the few real ones that the script uses, and stand-ins for those that would
//! change something.

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::process::Command;

/// What the script and the stand-ins use of the real machine.
const TOOLS: [&str; 9] = ["bash", "sed", "sort", "head", "cut", "dirname", "cat", "chmod", "true"];

/// A machine whose apt has packages of these versions.
struct Machine(PathBuf);

impl Machine {
    fn new(name: &str, root: bool, packages: &[(&str, &str)]) -> Machine {
        let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("setup-{name}"));
        if folder.exists() {
            fs::remove_dir_all(&folder).expect("remove what an earlier run left");
        }
        fs::create_dir_all(folder.join("bin")).expect("a folder");
        let machine = Machine(folder);
        for tool in TOOLS {
            let found = ["/usr/bin", "/bin"].map(|folder| Path::new(folder).join(tool));
            let found = found.iter().find(|path| path.exists()).expect(tool);
            symlink(found, machine.0.join("bin").join(tool)).expect(tool);
        }
        for (package, version) in packages {
            fs::write(machine.0.join(package), version).expect(package);
        }
        machine.command("id", &format!("echo {}", if root { 0 } else { 1000 }));
        machine.command("cc", "true");
        machine
            .command("apt-cache", r#"[ ! -e "$HERE/$2" ] || printf '  Candidate: %s\n' "$(cat "$HERE/$2")""#);
        // Installing brings commands, which write down what they are asked.
        machine.command(
            "apt-get",
            r#"echo "apt-get ${*: -4}" >>"$HERE/log"
            [ "$2" = install ] || exit 0
            version=$(cat "$HERE/rustc" 2>/dev/null || echo 1.99.0)
            for one in cargo rustc rustup; do
                printf '#!%s/bin/bash\necho "%s $*" >>"%s/log"\necho "%s %s"\n' \
                    "$HERE" "$one" "$HERE" "$one" "${version%%+*}" >"$HERE/bin/$one"
                chmod +x "$HERE/bin/$one"
            done"#,
        );
        machine
    }

    fn command(&self, name: &str, script: &str) {
        let path = self.0.join("bin").join(name);
        fs::write(&path, format!("#!{}/bin/bash\n{script}\n", self.0.display())).expect(name);
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).expect(name);
    }

    /// Whether setup went well, what it said against it, and what was asked of the stand-ins.
    fn set_up(&self) -> (bool, String, String) {
        let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("setup.sh");
        let output = Command::new(self.0.join("bin/bash"))
            .arg(script)
            .env_clear()
            .env("PATH", self.0.join("bin"))
            .env("HERE", &self.0)
            .output()
            .expect("run setup.sh");
        let stderr = String::from_utf8(output.stderr).expect("text");
        (output.status.success(), stderr, fs::read_to_string(self.0.join("log")).unwrap_or_default())
    }
}

#[test]
fn rustup_where_the_distribution_has_it() {
    let (well, stderr, log) =
        Machine::new("rustup", true, &[("rustup", "1.27.1-3"), ("rustc", "1.63.0+dfsg1-2")]).set_up();
    assert!(log.contains("--no-install-recommends rustup\n"), "{log}");
    assert!(
        log.contains("rustup toolchain install stable --profile minimal -c rustfmt -c clippy\n"),
        "{log}"
    );
    // The stand-in is as old as the package says: what was installed is checked all the same.
    assert!(!well && stderr.contains("Rust 1.63.0 is too old"), "{stderr}");
}

#[test]
fn debians_own_rust_where_it_is_new_enough() {
    let (well, stderr, log) = Machine::new("own", true, &[("rustc", "1.99.0+dfsg1-2")]).set_up();
    assert!(log.contains("apt-get cargo rustc rustfmt rust-clippy\n"), "{log}");
    assert_eq!((well, stderr.as_str()), (true, ""), "{log}");
}

#[test]
fn where_neither_is_to_be_had_nothing_is_installed() {
    let machines = [
        Machine::new("old", true, &[("rustc", "1.63.0+dfsg1-2")]),
        Machine::new("nothing", true, &[("rustc", "(none)")]),
        Machine::new("user", false, &[("rustup", "1.27.1-3")]),
    ];
    for machine in machines {
        let (well, stderr, log) = machine.set_up();
        assert!(!well && stderr.starts_with("setup: cargo is not installed; Berth needs Rust "), "{stderr}");
        assert!(stderr.contains("https://rustup.rs"), "{stderr}");
        assert!(!log.contains("recommends"), "{log}");
    }
}
