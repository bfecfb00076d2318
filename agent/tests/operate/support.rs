//! A host in a network namespace, processes of berth, and what they say.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

/// Longer than anything takes here: a test that waits for it has failed.
pub(crate) const DEADLINE: Duration = Duration::from_secs(50);

/// Waits for something that is to come about by itself.
#[track_caller]
pub(crate) fn until<T>(what: &str, mut look: impl FnMut() -> Option<T>) -> T {
    let since = Instant::now();
    loop {
        if let Some(found) = look() {
            return found;
        }
        assert!(since.elapsed() < DEADLINE, "never: {what}");
        std::thread::sleep(Duration::from_millis(5));
    }
}

#[track_caller]
pub(crate) fn run(command: &mut Command) -> String {
    let output = command.output().unwrap_or_else(|error| panic!("{command:?}: {error}"));
    assert!(output.status.success(), "{command:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8_lossy(&output.stdout).into_owned()
}

/// A namespace with a card, `eth0`; gone with it.
pub(crate) struct Host {
    pub(crate) netns: String,
}

impl Host {
    pub(crate) fn new() -> Self {
        static NEXT: AtomicUsize = AtomicUsize::new(0);
        let netns = format!("berth-o{}-{}", std::process::id(), NEXT.fetch_add(1, Ordering::Relaxed));
        run(Command::new("ip").args(["netns", "add", &netns]));
        let host = Self { netns };
        for line in [
            "link set lo up",
            "link add eth0 type veth peer name far0",
            "link set far0 up",
            "link set eth0 up",
        ] {
            host.ip(line);
        }
        host
    }

    #[track_caller]
    pub(crate) fn ip(&self, line: &str) -> String {
        run(Command::new("ip").args(["-n", &self.netns]).args(line.split_whitespace()))
    }

    /// The IPv4 addresses of its card, with their prefixes.
    pub(crate) fn addresses(&self) -> Vec<String> {
        let shown = self.ip("-o -4 addr show dev eth0");
        let address = |line: &str| line.split_whitespace().nth(3).map(str::to_owned);
        shown.lines().filter_map(address).collect()
    }
}

impl Drop for Host {
    fn drop(&mut self) {
        let _ = Command::new("ip").args(["netns", "del", &self.netns]).status();
    }
}

/// A process of berth, and what it says, line by line. Killed with the test.
pub(crate) struct Berth {
    child: Child,
    lines: Receiver<String>,
    pub(crate) said: Vec<String>,
}

impl Berth {
    pub(crate) fn start(folder: &Path, arguments: &[&str]) -> Self {
        Self::start_as(Command::new(env!("CARGO_BIN_EXE_berth")), folder, arguments)
    }

    /// The same by way of another program, which becomes it.
    pub(crate) fn start_as(mut command: Command, folder: &Path, arguments: &[&str]) -> Self {
        for (name, _) in std::env::vars().filter(|(name, _)| name.starts_with("BERTH_")) {
            command.env_remove(name);
        }
        let mut child = command
            .args(arguments)
            .env("BERTH_CHECKPOINT_DIR", folder.join("checkpoints"))
            .current_dir(folder)
            .stdin(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap_or_else(|error| panic!("{command:?}: {error}"));
        let stderr = BufReader::new(child.stderr.take().expect("its stderr"));
        let (send, lines) = channel();
        std::thread::spawn(move || stderr.lines().map_while(Result::ok).all(|line| send.send(line).is_ok()));
        Self { child, lines, said: Vec::new() }
    }

    /// Waits for a line that has these words; the whole line.
    #[track_caller]
    pub(crate) fn until_says(&mut self, words: &str) -> String {
        while let Ok(line) = self.lines.recv_timeout(DEADLINE) {
            self.said.push(line.clone());
            if line.contains(words) {
                return line;
            }
        }
        panic!("it never says {words:?}: {:#?}", self.said)
    }

    pub(crate) fn pid(&self) -> u32 {
        self.child.id()
    }

    pub(crate) fn signal(&self, signal: Signal) {
        kill(Pid::from_raw(i32::try_from(self.child.id()).expect("a pid")), signal).expect("told");
    }

    /// Its exit code, and all that it said.
    #[track_caller]
    pub(crate) fn end(&mut self) -> (Option<i32>, Vec<String>) {
        let status = until("its end", || self.child.try_wait().expect("a child"));
        self.said.extend(self.lines.iter());
        (status.code(), self.said.clone())
    }
}

impl Drop for Berth {
    fn drop(&mut self) {
        self.child.kill().ok();
        self.child.wait().ok();
    }
}

/// What a web server answers: head and body.
pub(crate) fn get(address: &str, path: &str) -> String {
    let mut stream = TcpStream::connect(address).expect("it listens");
    write!(stream, "GET {path} HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n\r\n").expect("sent");
    answer(stream)
}

/// Head and body, as long as the head says, or until the end: not every server closes a connection because it is asked to.
fn answer(stream: TcpStream) -> String {
    let mut stream = BufReader::new(stream);
    let mut text = String::new();
    let mut length = None;
    while !text.ends_with("\r\n\r\n") && stream.read_line(&mut text).expect("text") > 0 {
        let line = text.trim_end().rsplit('\n').next().unwrap_or_default().to_lowercase();
        length = line.strip_prefix("content-length:").and_then(|bytes| bytes.trim().parse().ok()).or(length);
    }
    stream.take(length.unwrap_or(u64::MAX)).read_to_string(&mut text).expect("text");
    text
}

/// Creates an object, which must be taken.
#[track_caller]
pub(crate) fn post(address: &str, path: &str, object: &serde_json::Value) {
    let answer = send(address, "POST", path, "application/json", object);
    assert!(answer.starts_with("HTTP/1.1 201"), "{answer}");
}

/// What a web server answers to a document: head and body.
pub(crate) fn send(
    address: &str,
    method: &str,
    path: &str,
    kind: &str,
    object: &serde_json::Value,
) -> String {
    let mut stream = TcpStream::connect(address).expect("it listens");
    let body = object.to_string();
    let head = format!(
        "{method} {path} HTTP/1.1\r\nHost: {address}\r\nContent-Type: {kind}\r\nContent-Length: {}\r\nConnection: close\r\n\r\n",
        body.len()
    );
    stream.write_all(head.as_bytes()).and_then(|()| stream.write_all(body.as_bytes())).expect("sent");
    answer(stream)
}

/// A pool and a policy that takes an address of it for `eth0`.
pub(crate) const MANIFESTS: &str = "
apiVersion: nmstate.io/v1
kind: NodeIPPool
metadata: {name: traffic-1}
spec: {range: {cidr: 10.10.10.0/24}}
---
apiVersion: nmstate.io/v1
kind: NodeNetworkConfigurationPolicy
metadata: {name: web}
spec:
  capture: {address: ippool.traffic-1.allocate}
  desiredState:
    interfaces:
    - name: eth0
      type: veth
      state: up
      ipv4:
        enabled: true
        dhcp: false
        address:
        - ip: '{{ capture.address.ip }}'
          prefix-length: '{{ capture.address.prefix-length }}'
";
