//! Processes of the binary, and namespaces with cards.

use std::fs::File;
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::Value;

/// A process of this binary; killed when dropped.
pub(crate) struct Process {
    pub(crate) name: String,
    /// Where it is to die.
    pub(crate) fault: Option<String>,
    /// So long was its log when it started.
    pub(crate) said: usize,
    child: Child,
}

/// The name of `name:nth`.
pub(crate) fn point_of(fault: &str) -> &str {
    fault.split_once(':').map_or(fault, |(name, _)| name)
}

impl Process {
    /// What it says is added to a file of its own.
    pub(crate) fn start(folder: &Path, name: &str, args: &[String], fault: Option<&str>) -> Self {
        Self::start_from(None, folder, name, args, fault)
    }

    /// The same, with this network namespace as its own.
    pub(crate) fn start_from(
        netns: Option<&str>,
        folder: &Path,
        name: &str,
        args: &[String],
        fault: Option<&str>,
    ) -> Self {
        let log = folder.join(format!("{name}.log"));
        let file = File::options().create(true).append(true).open(log).expect("a log");
        let said = file.metadata().map_or(0, |about| usize::try_from(about.len()).unwrap_or(0));
        let program = env!("CARGO_BIN_EXE_berth");
        let mut command = Command::new(if netns.is_some() { "ip" } else { program });
        if let Some(netns) = netns {
            // It becomes the program: same process, same end.
            command.args(["netns", "exec", netns, program]);
        }
        command.args(args).stdin(Stdio::null()).stdout(file.try_clone().expect("a file")).stderr(file);
        command.env_remove("BERTH_FAULT").env("BERTH_CHECKPOINT_DIR", folder.join("checkpoints"));
        if let Some(fault) = fault {
            command.env("BERTH_FAULT", fault);
        }
        let child = command.spawn().expect("start berth");
        Self { name: name.to_owned(), fault: fault.map(str::to_owned), said, child }
    }

    pub(crate) fn ended(&mut self) -> Option<ExitStatus> {
        self.child.try_wait().expect("a child")
    }

    pub(crate) fn kill(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }

    pub(crate) fn terminate(&self) {
        let pid = i32::try_from(self.child.id()).expect("a pid");
        kill(Pid::from_raw(pid), Signal::SIGTERM).expect("told");
    }

    /// SIGTERM, and its end, which must come soon and be good.
    pub(crate) fn stop(mut self) {
        self.terminate();
        let ended = self.wait();
        assert!(ended.success(), "{} ended: {ended}", self.name);
    }

    pub(crate) fn wait(&mut self) -> ExitStatus {
        let begun = Instant::now();
        loop {
            if let Some(ended) = self.ended() {
                return ended;
            }
            assert!(begun.elapsed() < super::PATIENCE, "{} never ends", self.name);
            std::thread::sleep(Duration::from_millis(5));
        }
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        self.kill();
    }
}

/// A network namespace with veths `eth0`, …; gone when dropped.
pub(crate) struct Machine {
    pub(crate) netns: String,
}

impl Machine {
    pub(crate) fn new(name: &str, cards: usize) -> Self {
        static NEXT: AtomicUsize = AtomicUsize::new(0);
        let count = NEXT.fetch_add(1, Ordering::Relaxed);
        let netns = format!("berth-f{}-{count}-{name}", std::process::id());
        run(Command::new("ip").args(["netns", "add", &netns]));
        let machine = Self { netns };
        machine.ip("link set lo up");
        for card in 0..cards {
            machine.card(&format!("eth{card}"));
        }
        machine
    }

    pub(crate) fn card(&self, name: &str) {
        self.ip(&format!("link add {name} type veth peer name far-{name}"));
        self.ip(&format!("link set far-{name} up"));
        self.ip(&format!("link set {name} up"));
    }

    #[track_caller]
    pub(crate) fn ip(&self, line: &str) -> String {
        run(Command::new("ip").args(["-n", &self.netns]).args(line.split_whitespace()))
    }

    #[track_caller]
    pub(crate) fn sysctl(&self, setting: &str) {
        run(Command::new("ip").args(["netns", "exec", &self.netns, "sysctl", "-qw", setting]));
    }

    /// IPv4 addresses by card, without `lo`.
    pub(crate) fn all_addresses(&self) -> Vec<(String, String)> {
        let links: Value = serde_json::from_str(&self.ip("-j -4 addr")).unwrap_or_default();
        let links = links.as_array().cloned().unwrap_or_default();
        let mut all = Vec::new();
        for link in links.iter().filter(|link| link["ifname"] != "lo") {
            for address in link["addr_info"].as_array().into_iter().flatten() {
                let text = |field: &str| address[field].as_str().unwrap_or_default().to_owned();
                all.push((link["ifname"].as_str().unwrap_or_default().to_owned(), text("local")));
            }
        }
        all
    }

    pub(crate) fn addresses(&self, card: &str) -> Vec<String> {
        self.all_addresses().into_iter().filter(|(on, _)| on == card).map(|(_, ip)| ip).collect()
    }

    /// As after a power cut: nothing is configured.
    pub(crate) fn power_cut(&self) {
        for (card, ip) in self.all_addresses() {
            // Whichever is taken off first may take others along.
            let line = format!("addr flush dev {card} to {ip}");
            self.ip(&line);
        }
    }
}

impl Drop for Machine {
    fn drop(&mut self) {
        let _ = Command::new("ip").args(["netns", "del", &self.netns]).stderr(Stdio::null()).status();
    }
}

/// The ends of all logs, for whoever reads why a test failed.
pub(crate) fn print_logs(folder: &Path) {
    let mut logs: Vec<_> =
        std::fs::read_dir(folder).into_iter().flatten().flatten().map(|one| one.path()).collect();
    logs.retain(|path| path.extension().is_some_and(|end| end == "log"));
    logs.sort();
    for log in logs {
        let text = std::fs::read_to_string(&log).unwrap_or_default();
        let lines: Vec<&str> = text.lines().collect();
        let name = log.file_stem().unwrap_or_default().to_string_lossy().into_owned();
        for line in &lines[lines.len().saturating_sub(15)..] {
            eprintln!("{name}: {line}");
        }
    }
}

#[track_caller]
fn run(command: &mut Command) -> String {
    let output = command.output().unwrap_or_else(|error| panic!("{command:?}: {error}"));
    assert!(output.status.success(), "{command:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8_lossy(&output.stdout).into_owned()
}
