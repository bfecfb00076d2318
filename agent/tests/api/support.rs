//! A server in a process of its own.

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};

use kube::{Client, Config};

use crate::folder::Folder;

pub(crate) const BERTH: &str = env!("CARGO_BIN_EXE_berth");

/// A folder in memory, where the system has a place for that: a sync costs nothing there. What the kernel has taken outlives a
/// process that is killed, on a disk or not; only a power cut tells them apart.
pub(crate) fn folder_in_memory() -> Folder {
    let memory = Path::new("/dev/shm");
    if memory.is_dir() { Folder::under(memory) } else { Folder::new() }
}

/// `berth serve` on loopback, ended with the test.
pub(crate) struct Server {
    child: Child,
    client: Client,
}

impl Server {
    /// Starts a server with these arguments and waits until it listens.
    pub(crate) fn start(args: &[&str]) -> Self {
        Self::run(Command::new(BERTH).args(["serve", "--listen", "127.0.0.1:0"]).args(args))
    }

    /// Starts whatever command becomes a server.
    pub(crate) fn run(command: &mut Command) -> Self {
        let mut child = command.stderr(Stdio::piped()).stdin(Stdio::null()).spawn().unwrap();
        let mut lines = BufReader::new(child.stderr.take().unwrap()).lines();
        let mut heard = Vec::new();
        let url = loop {
            let Some(Ok(line)) = lines.next() else { panic!("the server didn't start: {heard:#?}") };
            if let Some(url) = line.strip_prefix("listening on ") {
                break url.to_owned();
            }
            heard.push(line);
        };
        // What it says later must not fill the pipe.
        std::thread::spawn(move || lines.for_each(drop));
        let mut config = Config::new(url.parse().unwrap());
        // Tests watch for longer than they wait for anything else.
        config.read_timeout = None;
        Self { child, client: Client::try_from(config).unwrap() }
    }

    /// One for all: what is asked at the same time goes over connections of its own. To make one takes a while, since it
    /// reads the system's certificates, which are of no use here.
    pub(crate) fn client(&self) -> Client {
        self.client.clone()
    }

    pub(crate) fn pid(&self) -> u32 {
        self.child.id()
    }

    /// kill -9.
    pub(crate) fn kill(mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.child.kill().ok();
        self.child.wait().ok();
    }
}
