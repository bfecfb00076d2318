//! A network namespace for a test: made with it, gone with it.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering};

use serde_json::Value;

static NEXT: AtomicUsize = AtomicUsize::new(0);

/// What a command said.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Ran {
    pub(crate) code: i32,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

impl Ran {
    /// Succeeded, or the test is over with all that was said.
    #[track_caller]
    pub(crate) fn ok(self) -> String {
        assert_eq!(self.code, 0, "{}\n{}", self.stdout, self.stderr);
        self.stdout
    }

    /// Refused or failed, with this among its words.
    #[track_caller]
    pub(crate) fn fails_with(self, words: &str) -> String {
        assert_eq!(self.code, 1, "{}\n{}", self.stdout, self.stderr);
        assert!(self.stderr.contains(words), "{words:?} is not in\n{}", self.stderr);
        self.stderr
    }
}

pub(crate) fn run(command: &mut Command, stdin: &str) -> Ran {
    let mut child = command
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap_or_else(|error| panic!("{command:?}: {error}"));
    // A command that doesn't read it may be gone already.
    let _ = child.stdin.take().unwrap().write_all(stdin.as_bytes());
    let output = child.wait_with_output().unwrap();
    Ran {
        code: output.status.code().unwrap_or(-1),
        stdout: String::from_utf8_lossy(&output.stdout).into_owned(),
        stderr: String::from_utf8_lossy(&output.stderr).into_owned(),
    }
}

/// The binary under test: beside this one, or where a guest has it.
pub(crate) fn berth() -> PathBuf {
    let built = PathBuf::from(env!("CARGO_BIN_EXE_berth"));
    if built.exists() { built } else { PathBuf::from("/tests/berth") }
}

/// A program that ignores no signal, whatever the one that started the tests does: in the background of a shell, or under
/// `nohup`, some are ignored, and that is handed down.
pub(crate) fn unignored(program: &Path) -> Command {
    let mut command = Command::new("env");
    command.arg("--default-signal=INT,TERM,HUP").arg(program);
    command
}

/// A namespace.
pub(crate) struct Ground {
    pub(crate) name: String,
    pub(crate) state_dir: PathBuf,
}

impl Ground {
    /// Empty but for a loopback that is up.
    #[track_caller]
    pub(crate) fn new() -> Self {
        let name = format!("berth-{}-{}", std::process::id(), NEXT.fetch_add(1, Ordering::Relaxed));
        let state_dir = std::env::temp_dir().join(&name);
        run(Command::new("ip").args(["netns", "add", &name]), "").ok();
        let ground = Self { name, state_dir };
        ground.ip("link set lo up");
        ground
    }

    /// With cards `eth0`…: ends of veths, up, their other ends (`far0`…) in a namespace of their own.
    #[track_caller]
    pub(crate) fn with_cards(count: usize) -> (Self, Self) {
        let (near, far) = (Self::new(), Self::new());
        for card in 0..count {
            near.ip(&format!("link add eth{card} type veth peer name far{card} netns {}", far.name));
            near.ip(&format!("link set eth{card} up"));
            far.ip(&format!("link set far{card} up"));
        }
        // Link-local addresses come by themselves, a little later: what is dumped from now on is steady.
        for ground in [&near, &far] {
            ground.wait_until("all cards have link-local addresses", || {
                ground.ip("-6 -o addr").matches("inet6 fe80").count() == count
            });
        }
        (near, far)
    }

    /// `ip`, here.
    #[track_caller]
    pub(crate) fn ip(&self, line: &str) -> String {
        self.try_ip(line).ok()
    }

    pub(crate) fn try_ip(&self, line: &str) -> Ran {
        run(Command::new("ip").args(["-n", &self.name]).args(line.split_whitespace()), "")
    }

    /// What `ip -j` says, as values.
    #[track_caller]
    pub(crate) fn json(&self, line: &str) -> Value {
        let text = self.ip(&format!("-j -d {line}"));
        if text.trim().is_empty() { Value::Array(Vec::new()) } else { serde_json::from_str(&text).unwrap() }
    }

    pub(crate) fn berth(&self, args: &[&str], stdin: &str) -> Ran {
        let mut command = Command::new(berth());
        command.args(args).args(["--netns", &self.name]);
        command.arg("--state-dir").arg(&self.state_dir);
        run(&mut command, stdin)
    }

    pub(crate) fn apply(&self, document: &str) -> Ran {
        self.berth(&["apply", "-f", "-", "--timeout", "20"], document)
    }

    #[track_caller]
    pub(crate) fn show(&self) -> Value {
        serde_json::from_str(&self.berth(&["show", "-o", "json"], "").ok()).unwrap()
    }

    /// Asking again for the same changes nothing, and so does asking for what there is.
    #[track_caller]
    pub(crate) fn is_settled(&self, document: &str) {
        assert_eq!(self.apply(document).ok(), "nothing to do\n");
        self.shows_what_holds();
    }

    #[track_caller]
    pub(crate) fn shows_what_holds(&self) {
        let shown = self.berth(&["show"], "").ok();
        assert_eq!(self.apply(&shown).ok(), "nothing to do\n", "{shown}");
    }

    /// Looks until it holds.
    #[track_caller]
    pub(crate) fn wait_until(&self, what: &str, holds: impl Fn() -> bool) {
        let end = std::time::Instant::now() + std::time::Duration::from_secs(30);
        while !holds() {
            assert!(std::time::Instant::now() < end, "waited in vain: {what}");
            std::thread::sleep(std::time::Duration::from_millis(10));
        }
    }

    /// Changes under way, or left in the middle.
    pub(crate) fn checkpoints(&self) -> usize {
        let folders = std::fs::read_dir(&self.state_dir).into_iter().flatten().flatten();
        folders.filter(|folder| folder.path().join("checkpoint.json").exists()).count()
    }

    pub(crate) fn resolv_conf(&self) -> PathBuf {
        PathBuf::from(format!("/etc/netns/{}/resolv.conf", self.name))
    }

    /// From here on the resolver's file can be read and not replaced: a change that sets it fails at its last step.
    pub(crate) fn break_resolver(&self) {
        std::fs::create_dir_all(self.resolv_conf().parent().unwrap()).unwrap();
        if self.resolv_conf().symlink_metadata().is_err() {
            std::os::unix::fs::symlink("/proc/version", self.resolv_conf()).unwrap();
        }
    }

    /// `berth apply` of a document on its standard input, left running.
    pub(crate) fn start_apply(&self, document: &str, args: &[&str]) -> Child {
        let mut child = unignored(&berth())
            .args(["apply", "-f", "-", "--netns", &self.name, "--state-dir"])
            .arg(&self.state_dir)
            .args(args)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        child.stdin.take().unwrap().write_all(document.as_bytes()).unwrap();
        child
    }

    /// A shell line, inside.
    pub(crate) fn inside(&self, line: &str) -> Ran {
        run(Command::new("ip").args(["netns", "exec", &self.name, "sh", "-c", line]), "")
    }

    /// The addresses of a link and family in the kernel's order.
    #[track_caller]
    pub(crate) fn addresses(&self, link: &str, family: &str) -> Vec<String> {
        let all = self.json(&format!("addr show dev {link}"));
        let list = all[0]["addr_info"].as_array().cloned().unwrap_or_default();
        let ours = list.iter().filter(|a| a["family"] == family && a["scope"] != "link");
        ours.map(|a| format!("{}/{}", a["local"].as_str().unwrap(), a["prefixlen"])).collect()
    }

    /// One line per route of the main table, without what the kernel made.
    #[track_caller]
    pub(crate) fn routes(&self, family: &str) -> Vec<String> {
        let text = self.ip(&format!("{family} route show table main"));
        let ours = text.lines().filter(|line| !line.contains("proto kernel"));
        ours.map(|line| line.replace(" proto static", "").trim().to_owned()).collect()
    }
}

impl Drop for Ground {
    fn drop(&mut self) {
        run(Command::new("ip").args(["netns", "del", &self.name]), "");
        std::fs::remove_dir_all(&self.state_dir).ok();
        std::fs::remove_dir_all(format!("/etc/netns/{}", self.name)).ok();
    }
}
