//! `berth demo`, as a person runs it: the whole story, and what is left when it is over or cut short.

use std::process::Command;

use nix::sys::signal::Signal;

use crate::folder::Folder;
use crate::support::{Berth, run, until};

/// The network namespaces of this demo, by the process that made them.
fn namespaces(pid: u32) -> Vec<String> {
    let all = run(Command::new("ip").args(["netns", "list"]));
    let own = |name: &&str| name.contains(&pid.to_string());
    all.lines().filter_map(|line| line.split_whitespace().next()).filter(own).map(str::to_owned).collect()
}

#[test]
fn the_story_is_told_to_its_end() {
    let folder = Folder::new();
    let output = Command::new(env!("CARGO_BIN_EXE_berth")).arg("demo").current_dir(folder.path()).output();
    let output = output.expect("start berth");
    let (told, said) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert_eq!(output.status.code(), Some(0), "{told}\n{said}");
    let story = format!("{told}{said}");
    let mut rest = story.as_str();
    for part in [
        "An API and a controller start",
        "node01  eth1 10.10.10.",
        "A fourth host joins",
        "node04  eth1 10.10.10.",
        "node02 leaves for good",
        "of traffic-1 is quarantined",
        "of traffic-1 is free, ",
        "The agent of node01 is killed (-9)",
        "the same as before, from its journal",
        "pool traffic-1 is exhausted",
        "The pool, address by address:\ntraffic-1: 8 of 8 held",
        "10.10.10.4   excluded",
        "Everything is taken away again.",
    ] {
        // Hosts come in any order, so only the parts of the story have one.
        let at = rest.find(part).unwrap_or_else(|| panic!("{part:?} is not told, or not there: {story}"));
        if !part.starts_with("node0") {
            rest = &rest[at..];
        }
    }
}

#[test]
fn cut_short_it_leaves_nothing() {
    let folder = Folder::new();
    let mut command = Command::new("env");
    command.args(["--default-signal=INT,TERM", env!("CARGO_BIN_EXE_berth")]);
    let mut demo = Berth::start_as(command, folder.path(), &["demo"]);
    let pid = demo.pid();
    until("hosts", || (namespaces(pid).len() >= 3).then_some(()));
    demo.signal(Signal::SIGINT);
    demo.end();
    assert_eq!(namespaces(pid), Vec::<String>::new());
}
