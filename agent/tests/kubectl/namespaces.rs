//! docs/serve.md, played: three hosts in network namespaces on a bridge share one server. Each host has its own /etc,
//! /var/lib and /run on top of this machine's, so commands run as they stand in the document and leave nothing behind.
//!
//! Needs root. `UPDATE_GOLDENS=1` writes the document's output anew.

use std::collections::BTreeMap;
use std::fs;
use std::io::{BufRead, BufReader, Read};
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use crate::folder::Folder;
use crate::support::KUBECTL;

const HOSTS: [&str; 4] = ["server", "node01", "node02", "node03"];

/// A network and a mount namespace that end with the pipe to the process in them: also when the test is killed.
pub(crate) struct Host {
    holder: Child,
    home: PathBuf,
    /// What `export` said.
    pub(crate) exported: BTreeMap<String, String>,
}

/// Everything below these is a host's own.
const OWN: &str = r#"
set -e
mount -t tmpfs tmpfs "$1"
for dir in etc var/lib; do
    mkdir -p "$1/own/$dir/upper" "$1/own/$dir/work"
    mount -t overlay overlay -o "lowerdir=/$dir,upperdir=$1/own/$dir/upper,workdir=$1/own/$dir/work" "/$dir"
done
mount -t tmpfs tmpfs /run
ip link set lo up
echo ready
exec cat
"#;

impl Host {
    pub(crate) fn new(home: PathBuf) -> Self {
        fs::create_dir_all(&home).expect("a folder");
        let mut holder = Command::new("unshare")
            .args(["--net", "--mount", "sh", "-c", OWN, "sh"])
            .arg(&home)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("start unshare");
        let mut line = String::new();
        let stdout = holder.stdout.as_mut().expect("its stdout");
        BufReader::new(stdout).read_line(&mut line).expect("text");
        assert_eq!(line, "ready\n", "namespaces need root");
        // What it says depends on who else is on this host.
        let exported = BTreeMap::from([("BERTH_PAGE_ADDRESS".to_owned(), "none".to_owned())]);
        Self { holder, home, exported }
    }

    fn pid(&self) -> String {
        self.holder.id().to_string()
    }

    pub(crate) fn command(&self, folder: &Path, line: &str) -> Command {
        let path = std::env::var("PATH").expect("a PATH");
        let mut command = Command::new("nsenter");
        command
            .args(["-t", &self.pid(), "--net", "--mount"])
            .arg(format!("--wd={}", docs().join("examples").display()))
            .args(["sh", "-c", line])
            .envs(&self.exported)
            .env("HOME", &self.home)
            .env("PATH", format!("{}:{path}", folder.join("bin").display()));
        command
    }

    /// What a terminal shows.
    pub(crate) fn shows(&self, folder: &Path, line: &str) -> String {
        let output = self.command(folder, &format!("exec 2>&1; {line}")).output().expect("start nsenter");
        String::from_utf8(output.stdout).expect("text")
    }
}

impl Drop for Host {
    fn drop(&mut self) {
        drop(self.holder.stdin.take());
        self.holder.wait().ok();
    }
}

pub(crate) fn docs() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs").canonicalize().expect("the documents")
}

/// `(host, command, what the terminal shows)` of each `host$ …` in the document's console blocks.
pub(crate) fn commands(text: &str) -> Vec<(String, String, String)> {
    let mut found: Vec<(String, String, String)> = Vec::new();
    let mut inside = false;
    for line in text.lines() {
        let prompt =
            HOSTS.iter().find_map(|host| Some((*host, line.strip_prefix(host)?.strip_prefix("$ ")?)));
        if let Some(fence) = line.strip_prefix("```") {
            inside = !inside && fence == "console";
        } else if !inside {
            continue;
        } else if let Some((host, command)) = prompt {
            found.push((host.to_owned(), command.to_owned(), String::new()));
        } else if let Some((_, _, output)) = found.last_mut() {
            output.push_str(line);
            output.push('\n');
        }
    }
    found
}

/// Days, ages and spaces between columns differ from run to run.
pub(crate) fn steady(text: &str) -> Vec<Vec<String>> {
    let day = |word: &str| {
        let parts: Vec<&str> = word.split('-').collect();
        parts.len() == 3 && parts.iter().all(|part| part.parse::<u32>().is_ok())
    };
    let age = |word: &str| {
        let number = word.strip_suffix(['s', 'm']);
        number.is_some_and(|number| number.parse::<u32>().is_ok())
    };
    let word = |word: &str| match (day(word), age(word)) {
        (true, _) => "DAY".to_owned(),
        (_, true) => "AGE".to_owned(),
        _ => word.to_owned(),
    };
    text.lines().map(|line| line.split_whitespace().map(word).collect()).collect()
}

/// A folder for the PATH, with `berth` and `kubectl` in it.
pub(crate) fn tools(folder: &Path) -> PathBuf {
    let bin = folder.join("bin");
    fs::create_dir_all(&bin).expect("a folder");
    symlink(env!("CARGO_BIN_EXE_berth"), bin.join("berth")).expect("a link");
    symlink(&*KUBECTL, bin.join("kubectl")).expect("a link");
    bin
}

/// The same, and in place of ssh a copy from one mount namespace to another.
pub(crate) fn programs(folder: &Path, hosts: &BTreeMap<&str, Host>) {
    let bin = tools(folder);
    let cases: String = hosts.iter().map(|(name, host)| format!("{name}) pid={};;\n", host.pid())).collect();
    let script = format!(
        "#!/bin/sh\nset -e\nto=${{2#*:}}\ncase ${{2%%:*}} in\n{cases}esac\n\
        exec nsenter -t $pid --mount sh -c 'umask 077; mkdir -p \"$(dirname \"$1\")\"; cat > \"$1\"' sh \"$to\" < \"$1\"\n"
    );
    fs::write(bin.join("scp"), script).expect("written");
    fs::set_permissions(bin.join("scp"), fs::Permissions::from_mode(0o755)).expect("runnable");
}

/// The server's namespace has the bridge; each host a cable to it.
fn wire(hosts: &BTreeMap<&str, Host>, folder: &Path) {
    let run = |host: &str, line: String| {
        let output = hosts[host].command(folder, &line).output().expect("start nsenter");
        assert!(output.status.success(), "{line}: {}", String::from_utf8_lossy(&output.stderr));
    };
    run(
        "server",
        "ip link add br0 type bridge && ip link set br0 up && ip addr add 10.0.0.1/24 dev br0".to_owned(),
    );
    for (number, host) in HOSTS.iter().enumerate().skip(1) {
        let pid = hosts[host].pid();
        let cable = format!("ip link add p{number} type veth peer name eth0 netns {pid}");
        run("server", format!("{cable} && ip link set p{number} master br0 up"));
        run(host, format!("ip link set eth0 up && ip addr add 10.0.0.1{number}/24 dev eth0"));
    }
}

/// A command that goes on, and what it says until it listens everywhere.
fn background(host: &Host, folder: &Path, line: &str) -> (Child, String) {
    let mut child = host
        .command(folder, &format!("exec {line}"))
        .stdin(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .expect("start nsenter");
    let stderr = BufReader::new(child.stderr.take().expect("its stderr"));
    let wanted = 1 + line.split_whitespace().filter(|word| word.starts_with("unix:")).count();
    let mut said = String::new();
    let mut lines = stderr.lines();
    while said.matches("listening on").count() < wanted {
        let line = lines.next().unwrap_or_else(|| panic!("it ended: {said}")).expect("text");
        said += &format!("{line}\n");
    }
    // Nobody reads the rest: what it says at its end goes nowhere, and doesn't stop it.
    std::thread::spawn(move || lines.for_each(drop));
    (child, said)
}

pub(crate) struct Running(pub(crate) Child);

impl Running {
    /// As a service is stopped.
    fn stop(mut self) {
        let pid = i32::try_from(self.0.id()).expect("a pid");
        nix::sys::signal::kill(nix::unistd::Pid::from_raw(pid), nix::sys::signal::SIGTERM).expect("told");
        assert_eq!(self.0.wait().expect("its end").code(), Some(0));
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.0.kill().ok();
        self.0.wait().ok();
    }
}

#[test]
fn the_documents_three_hosts_share_one_server() {
    let folder = Folder::new();
    let mut hosts: BTreeMap<&str, Host> =
        HOSTS.iter().map(|name| (*name, Host::new(folder.path().join(name)))).collect();
    programs(folder.path(), &hosts);
    wire(&hosts, folder.path());
    let path = docs().join("serve.md");
    let mut document = String::new();
    fs::File::open(&path).and_then(|mut file| file.read_to_string(&mut document)).expect("docs/serve.md");
    let commands = commands(&document);
    assert!(commands.len() > 15, "{}", commands.len());
    let mut running = Vec::new();
    let mut differ = Vec::new();
    for (name, command, shown) in commands {
        let host = hosts.get_mut(name.as_str()).expect("a host");
        if let Some((key, value)) = command.strip_prefix("export ").and_then(|set| set.split_once('=')) {
            host.exported.insert(key.to_owned(), value.to_owned());
            continue;
        }
        let actual = if command.starts_with("berth serve --state-dir") {
            let (child, said) = background(host, folder.path(), &command);
            running.push(Running(child));
            said
        } else {
            if command == "systemctl stop berth-serve" {
                running.drain(..).for_each(Running::stop);
                continue;
            }
            host.shows(folder.path(), &command)
        };
        if steady(&actual) != steady(&shown) {
            let (before, after) =
                (format!("{name}$ {command}\n{shown}"), format!("{name}$ {command}\n{actual}"));
            document = document.replacen(&before, &after, 1);
            differ.push(after);
        }
    }
    if std::env::var_os("UPDATE_GOLDENS").is_some() {
        fs::write(&path, document).expect("written");
    } else {
        assert!(differ.is_empty(), "the document shows something else than:\n{}", differ.join("\n"));
    }
}
