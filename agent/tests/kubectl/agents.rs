//! docs/guide/agents.md, played: API, controller and agent on one host, and a host on its own, each in namespaces of its own
//! with real cards. Commands run as they stand in the guide and leave nothing behind.
//!
//! Needs root. `UPDATE_GOLDENS=1` writes the guide's output anew; of what goes on it reads as many lines as the guide shows.

use std::collections::BTreeMap;
use std::fs;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::Stdio;
use std::sync::mpsc::channel;

use crate::folder::Folder;
use crate::namespaces::{Host, Running, commands, docs, programs, steady};
use crate::support::DEADLINE;

const HOSTS: [&str; 2] = ["node01", "node02"];

/// A command that goes on, and the first lines that it says.
fn background(host: &Host, folder: &Path, line: &str, lines: usize) -> (Running, String) {
    let mut child = host
        .command(folder, &format!("exec {line}"))
        .stdin(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .expect("start nsenter");
    let stderr = BufReader::new(child.stderr.take().expect("its stderr"));
    let running = Running(child);
    let (send, said) = channel();
    // To its end: whoever isn't read stops.
    std::thread::spawn(move || stderr.lines().map_while(Result::ok).for_each(|line| drop(send.send(line))));
    let mut first = String::new();
    while first.lines().count() < lines {
        let next = said.recv_timeout(DEADLINE).unwrap_or_else(|_| panic!("{line}: it ended: {first}"));
        first += &format!("{next}\n");
    }
    (running, first)
}

/// What a terminal shows; of a command that waits for something that doesn't come, what it showed until then.
fn shows(host: &Host, folder: &Path, line: &str) -> String {
    let mut command = host.command(folder, "exec 2>&1; exec timeout 60 sh -c \"$LINE\"");
    let output = command.env("LINE", line).output().expect("start nsenter");
    String::from_utf8(output.stdout).expect("text")
}

/// Besides what differs anyhow: who a controller is has something random in it.
fn known(text: &str) -> Vec<Vec<String>> {
    let is_random = |word: &str| {
        let end = word.strip_suffix(':').and_then(|word| word.rsplit_once('-'));
        end.is_some_and(|(_, end)| end.len() == 8 && end.chars().all(|digit| digit.is_ascii_hexdigit()))
    };
    let word = |word: String| if is_random(&word) { "WHO".to_owned() } else { word };
    steady(text).into_iter().map(|line| line.into_iter().map(word).collect()).collect()
}

#[test]
fn the_guides_hosts_get_their_addresses() {
    let folder = Folder::new();
    let mut hosts: BTreeMap<&str, Host> =
        HOSTS.iter().map(|name| (*name, Host::new(folder.path().join(name)))).collect();
    programs(folder.path(), &hosts);
    for (name, host) in &mut hosts {
        // Hosts share nothing; here they share a /var.
        let lock = folder.path().join(format!("{name}.lock")).display().to_string();
        host.exported.insert("NMSTATE_INSTANCE_NODE_LOCK_FILE".to_owned(), lock);
        for card in ["eth1", "eth2"] {
            let line = format!(
                "ip link add {card} type veth peer name far-{card} && ip link set far-{card} up && ip link set {card} up"
            );
            assert_eq!(host.shows(folder.path(), &line), "");
        }
    }
    let path = docs().join("guide/agents.md");
    let mut document = fs::read_to_string(&path).expect("docs/guide/agents.md");
    let commands = commands(&document);
    assert!(commands.len() > 10, "{}", commands.len());
    let (mut running, mut differ) = (Vec::new(), Vec::new());
    for (name, command, shown) in commands {
        let host = hosts.get_mut(name.as_str()).expect("a host");
        if let Some((key, value)) = command.strip_prefix("export ").and_then(|set| set.split_once('=')) {
            host.exported.insert(key.to_owned(), value.to_owned());
            continue;
        }
        let actual = match command.strip_suffix(" &") {
            Some(line) => {
                let (process, said) = background(host, folder.path(), line, shown.lines().count().max(1));
                running.push(process);
                said
            }
            None => shows(host, folder.path(), &command),
        };
        if known(&actual) != known(&shown) {
            let (before, after) =
                (format!("{name}$ {command}\n{shown}"), format!("{name}$ {command}\n{actual}"));
            document = document.replacen(&before, &after, 1);
            differ.push(after);
        }
    }
    if std::env::var_os("UPDATE_GOLDENS").is_some() {
        fs::write(&path, document).expect("written");
    } else {
        assert!(differ.is_empty(), "the guide shows something else than:\n{}", differ.join("\n"));
    }
}
