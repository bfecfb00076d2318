//! Hears of every IPv4 address that comes to a network namespace or goes.

use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// How long what the kernel says may take to be heard.
const PATIENCE: Duration = Duration::from_secs(60);

/// `ip monitor`, into a file.
pub(crate) struct Listener {
    process: Child,
    netns: String,
    heard: PathBuf,
}

impl Drop for Listener {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

impl Listener {
    /// Listens from when this returns.
    pub(crate) async fn new(netns: &str, heard: &Path) -> Self {
        let file = std::fs::File::create(heard).expect("a file");
        let mut command = Command::new("ip");
        command.args(["-n", netns, "-o", "-4", "monitor", "address"]).stdout(file).stdin(Stdio::null());
        let process = command.spawn().expect("ip monitor");
        let listener = Self { process, netns: netns.to_owned(), heard: heard.to_owned() };
        listener.mark("192.0.2.1").await;
        listener
    }

    /// All that was heard by now, a line each, of this card.
    pub(crate) async fn heard(&self, card: &str) -> Vec<String> {
        self.mark("192.0.2.2").await;
        let heard = std::fs::read_to_string(&self.heard).expect("a file");
        heard.lines().filter(|line| line.contains(card)).map(str::to_owned).collect()
    }

    /// The addresses that a card has lost since.
    pub(crate) async fn lost(&self, card: &str) -> Vec<String> {
        let mut heard = self.heard(card).await;
        heard.retain(|line| line.starts_with("Deleted"));
        heard
    }

    /// What was before this address came is heard by the time that it is heard.
    async fn mark(&self, ip: &str) {
        let begun = Instant::now();
        let heard = || std::fs::read_to_string(&self.heard).unwrap_or_default().contains(ip);
        while !heard() {
            assert!(begun.elapsed() < PATIENCE, "{}: {ip} is never heard of", self.netns);
            let line = format!("addr replace {ip}/32 dev lo valid_lft 1000 preferred_lft 1000");
            let set = Command::new("ip").args(["-n", &self.netns]).args(line.split(' ')).status();
            assert!(set.is_ok_and(|set| set.success()), "{}: ip {line}", self.netns);
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    }
}
