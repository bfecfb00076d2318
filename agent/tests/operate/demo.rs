//! `berth demo`, as a person runs it: the whole story, what is left when it is over or cut short, and what one can do while
//! it stays.

use std::path::{Path, PathBuf};
use std::process::Command;

use nix::sys::signal::Signal;

use crate::folder::Folder;
use crate::support::{Berth, get, run, until};

/// The network namespaces of this demo, by the process that made them.
fn namespaces(pid: u32) -> Vec<String> {
    let all = run(Command::new("ip").args(["netns", "list"]));
    let own = |name: &&str| name.contains(&pid.to_string());
    all.lines().filter_map(|line| line.split_whitespace().next()).filter(own).map(str::to_owned).collect()
}

#[test]
fn the_story_is_told_to_its_end() {
    is_told(Command::new(env!("CARGO_BIN_EXE_berth")));
}

/// In a user namespace of its own, of which nothing is seen outside.
#[test]
fn without_root_the_story_is_told_to_its_end() {
    let folder = Folder::new();
    let mut command = nobody();
    command.arg(for_nobody(&folder));
    is_told(command);
}

/// Whoever has no rights at all.
fn nobody() -> Command {
    let mut command = Command::new("setpriv");
    command.args([
        "--reuid=65534",
        "--regid=65534",
        "--clear-groups",
        "--inh-caps=-all",
        "--bounding-set=-all",
    ]);
    command
}

/// The program where anybody may read it: what is built may lie in root's home.
fn for_nobody(folder: &Folder) -> PathBuf {
    let program = folder.path().join("berth");
    std::fs::copy(env!("CARGO_BIN_EXE_berth"), &program).expect("a copy");
    run(Command::new("chmod").args(["755"]).arg(folder.path()).arg(&program));
    program
}

fn is_told(mut berth: Command) {
    let folder = Folder::new();
    let output = berth.arg("demo").current_dir(folder.path()).output();
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

/// By whoever presses Ctrl-C, by a service manager, by a terminal that is closed: no host, no process, no folder is left.
#[test]
fn cut_short_it_leaves_nothing() {
    for signal in [Signal::SIGINT, Signal::SIGTERM, Signal::SIGHUP] {
        let folder = Folder::new();
        let mut command = Command::new("env");
        command.args(["--default-signal=INT,TERM,HUP", env!("CARGO_BIN_EXE_berth")]);
        let mut demo = Berth::start_as(command, folder.path(), &["demo"]);
        let pid = demo.pid();
        until("hosts", || (namespaces(pid).len() >= 3).then_some(()));
        assert!(std::env::temp_dir().join(format!("berth-demo-{pid}")).is_dir());
        demo.signal(signal);
        assert_eq!(demo.end().0, Some(1), "{signal}");
        is_gone(pid);
    }
}

/// A demo that stays, once it has said how to get there; and the commands for that, each on a line of its own.
fn staying(command: &Command, folder: &Folder) -> (Berth, Vec<String>) {
    // What it tells goes where a test listens.
    let mut shell = Command::new("sh");
    shell.args(["-c", "exec \"$@\" >&2", "sh"]).arg(command.get_program()).args(command.get_args());
    let mut demo = Berth::start_as(shell, folder.path(), &["demo", "--stay"]);
    demo.until_says("Ctrl-C takes everything away again");
    let commands = demo.said.iter().filter_map(|line| line.strip_prefix("  ")).map(str::to_owned).collect();
    (demo, commands)
}

/// In another terminal the API answers, and hosts can be looked at.
fn answers_elsewhere(mut terminal: Command, program: &Path, export: &str) {
    let folder = program.parent().expect("a folder").display();
    let lines = format!("PATH=\"{folder}:$PATH\"\n{export}\nberth node ls\nip -n $DEMO-node04 addr");
    let shown = run(terminal.args(["sh", "-ec", &lines]));
    for part in ["node01  yes", "node04  yes", "eth1@if", "eth2@if"] {
        assert!(shown.contains(part), "{part}: {shown}");
    }
}

/// All that it makes is named after its process.
fn is_gone(pid: u32) {
    assert_eq!(namespaces(pid), Vec::<String>::new());
    let own = std::env::temp_dir().join(format!("berth-demo-{pid}"));
    assert!(!own.exists());
    assert_eq!(processes(&own), Vec::<String>::new());
}

#[test]
fn it_stays_until_it_is_told_to_go() {
    let folder = Folder::new();
    let program = Path::new(env!("CARGO_BIN_EXE_berth"));
    let (mut demo, commands) = staying(&Command::new(program), &folder);
    answers_elsewhere(Command::new("env"), program, &commands[0]);
    let page = demo.said.iter().find_map(|line| line.strip_prefix("A page to look at: http://"));
    assert!(get(page.expect("a page"), "/").starts_with("HTTP/1.1 200"));
    demo.signal(Signal::SIGINT);
    assert_eq!(demo.end().0, Some(0));
    is_gone(demo.pid());
}

/// By the command that it prints its user gets in; and who ends what was started ends what runs inside.
#[test]
fn without_root_it_stays_until_it_is_told_to_go() {
    let folder = Folder::new();
    let program = for_nobody(&folder);
    let mut command = nobody();
    command.arg(&program);
    let (mut demo, commands) = staying(&command, &folder);
    let [enter, export] = &commands[..2] else { panic!("{commands:?}") };
    let inside = enter.split_whitespace().find_map(|word| word.parse().ok()).expect("a process");
    let mut terminal = nobody();
    terminal.args(enter.split_whitespace());
    answers_elsewhere(terminal, &program, export);
    demo.signal(Signal::SIGTERM);
    assert_eq!(demo.end().0, Some(0));
    is_gone(inside);
}

/// Whoever reads it stops reading ('berth demo | head'): it goes on to its end, and takes everything away.
#[test]
fn without_a_reader_it_leaves_nothing() {
    let mut command = Command::new(env!("CARGO_BIN_EXE_berth"));
    let mut demo = command.arg("demo").stdout(std::process::Stdio::piped()).spawn().expect("it starts");
    drop(demo.stdout.take());
    let pid = demo.id();
    until("hosts", || (namespaces(pid).len() >= 3).then_some(()));
    // That nobody heard its last words is all that is wrong.
    demo.wait().expect("its end");
    assert_eq!(namespaces(pid), Vec::<String>::new());
    assert!(!std::env::temp_dir().join(format!("berth-demo-{pid}")).exists());
}

/// Command lines of processes that speak of a folder.
fn processes(folder: &Path) -> Vec<String> {
    let folder = folder.display().to_string();
    let all = std::fs::read_dir("/proc").expect("processes").filter_map(Result::ok);
    let lines = all.filter_map(|one| std::fs::read_to_string(one.path().join("cmdline")).ok());
    lines.filter(|line| line.contains(&folder)).collect()
}
