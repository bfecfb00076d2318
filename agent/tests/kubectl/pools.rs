//! docs/pools.md and docs/slices.md, pasted block by block into a shell beside `berth demo --stay`: real hosts, real addresses,
//! the real kubectl.
//!
//! Needs root. `UPDATE_GOLDENS=1` writes anew what the pages show.

use std::fs;
use std::io::{BufRead, BufReader};
use std::net::Ipv4Addr;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use crate::folder::Folder;
use crate::namespaces::{docs, steady, tools};

/// How long what one only looks at may take to be as a page shows it, and how often one looks.
const PATIENCE: Duration = Duration::from_secs(60);
const LOOK: Duration = Duration::from_millis(200);

/// A block of commands, and what the page says that it shows.
struct Block<'a> {
    commands: &'a str,
    shown: Option<&'a str>,
}

impl Block<'_> {
    /// What changes nothing is looked at until it is so, as a person would.
    fn only_looks(&self) -> bool {
        const LOOKS: [&str; 5] =
            ["kubectl get ", "berth pool ls", "berth pool verify", "berth node ls", "berth node show"];
        self.commands.lines().all(|line| LOOKS.iter().any(|look| line.starts_with(look)))
    }
}

/// Every block of `sh`, and the plain one right below it.
fn blocks(page: &str) -> Vec<Block<'_>> {
    let fenced = page.split("```sh\n").skip(1).filter_map(|rest| rest.split_once("```\n"));
    fenced
        .map(|(commands, rest)| {
            let below = rest.strip_prefix("\n```\n").and_then(|rest| rest.split_once("```"));
            Block { commands, shown: below.map(|(shown, _)| shown) }
        })
        .collect()
}

/// What `ip` says beside its answer where a namespace of some other test goes while it looks for the one with a card's other end.
const GOING: &str = "Error: Peer netns reference is invalid.";

/// What of it must be so: besides days and ages, times and the last numbers of addresses differ from run to run.
fn known(text: &str) -> Vec<Vec<String>> {
    let text: String = text.lines().filter(|line| *line != GOING).flat_map(|line| [line, "\n"]).collect();
    let is_time = |word: &str| word.len() == 20 && word.contains('T') && word.ends_with('Z');
    let word = |word: String| {
        let bare = word.trim_matches(|c: char| !c.is_alphanumeric());
        let ip = bare.split('/').next().unwrap_or_default();
        match ip.parse::<Ipv4Addr>().map(|ip| ip.octets()) {
            Ok([a, b, c, _]) => word.replacen(ip, &format!("{a}.{b}.{c}.ANY"), 1),
            Err(_) if is_time(bare) => word.replacen(bare, "TIME", 1),
            Err(_) => word,
        }
    };
    steady(&text).into_iter().map(|line| line.into_iter().map(word).collect()).collect()
}

/// A terminal beside a demo that stays. Dropped, the demo is told to go, and takes everything along.
struct Terminal {
    demo: Child,
    /// The line that the demo prints for it.
    export: String,
    path: String,
    folder: Folder,
}

impl Terminal {
    fn open() -> Self {
        let folder = Folder::new();
        let path = format!("{}:{}", tools(folder.path()).display(), std::env::var("PATH").expect("a PATH"));
        let mut command = Command::new(env!("CARGO_BIN_EXE_berth"));
        let mut demo =
            command.args(["demo", "--stay"]).stdout(Stdio::piped()).spawn().expect("start berth demo");
        let mut lines = BufReader::new(demo.stdout.take().expect("its stdout")).lines().map_while(Result::ok);
        let export = lines.find(|line| line.starts_with("  export ")).unwrap_or_default();
        // To its end: whoever isn't read stops.
        std::thread::spawn(move || lines.for_each(drop));
        let terminal = Self { demo, export, path, folder };
        assert!(!terminal.export.is_empty(), "it says how to get there");
        terminal
    }

    /// What it shows, and whether all went well.
    fn paste(&self, commands: &str) -> (String, bool) {
        let output = Command::new("bash")
            .args(["-c", &format!("exec 2>&1\n{}\n{commands}", self.export)])
            .env("PATH", &self.path)
            .env("HOME", self.folder.path())
            // As wide as where there is no terminal.
            .env_remove("COLUMNS")
            .stdin(Stdio::null())
            .output()
            .expect("start bash");
        (String::from_utf8(output.stdout).expect("text"), output.status.success())
    }

    /// What a block shows in the end, where that is something else than the page has.
    fn differs(&self, block: &Block<'_>) -> Option<String> {
        let begun = Instant::now();
        loop {
            let (actual, well) = self.paste(block.commands);
            let holds = block.shown.map_or(well, |shown| known(&actual) == known(shown));
            if holds || !block.only_looks() || begun.elapsed() > PATIENCE {
                return (!holds).then_some(actual);
            }
            std::thread::sleep(LOOK);
        }
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        let pid = i32::try_from(self.demo.id()).expect("a pid");
        kill(Pid::from_raw(pid), Signal::SIGTERM).ok();
        self.demo.wait().ok();
    }
}

fn read(name: &str) -> String {
    fs::read_to_string(docs().join(name)).expect("a page")
}

/// Pastes all that a page has, after what it says goes before.
fn play(name: &str, before: &[Block<'_>]) {
    let terminal = Terminal::open();
    let page = read(name);
    let (mut updated, mut differ) = (page.clone(), Vec::new());
    for block in before.iter().chain(&blocks(&page)) {
        let Some(actual) = terminal.differs(block) else { continue };
        let page = |shown: &str| format!("{}```\n\n```\n{shown}```", block.commands);
        updated = updated.replacen(&page(block.shown.unwrap_or_default()), &page(&actual), 1);
        differ.push(format!("{}{actual}", block.commands));
    }
    if std::env::var_os("UPDATE_GOLDENS").is_some() {
        fs::write(docs().join(name), updated).expect("written");
    } else {
        assert!(differ.is_empty(), "docs/{name} shows something else than:\n{}", differ.join("\n"));
    }
}

#[test]
fn pools_are_as_the_page_shows_them() {
    assert!(blocks(&read("pools.md")).len() > 25);
    play("pools.md", &[]);
}

/// Its page goes on from the first commands of a section of the other.
#[test]
fn slices_are_as_the_page_shows_them() {
    let pools = read("pools.md");
    let (_, section) = pools.split_once("\n## A slice per node\n").expect("the section");
    play("slices.md", &blocks(section)[..1]);
}
