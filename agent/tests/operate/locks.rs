//! One agent per host: the second refuses, and says who is there.

use std::fs::{self, File};
use std::process::Command;

use nix::fcntl::{Flock, FlockArg};

use crate::folder::Folder;
use crate::support::{Berth, Host};

fn agent(folder: &Folder, host: &Host, node: &str) -> Berth {
    let state = format!("--state-dir=state-of-{node}");
    let node = format!("--node={node}");
    let netns = format!("--netns={}", host.netns);
    Berth::start(folder.path(), &["agent", "--standalone=manifests", &node, &state, &netns])
}

fn folder() -> Folder {
    let folder = Folder::new();
    fs::create_dir(folder.path().join("manifests")).expect("a folder");
    folder
}

#[test]
fn a_second_agent_on_one_network_refuses_also_with_a_state_directory_of_its_own() {
    let (folder, host, other) = (folder(), Host::new(), Host::new());
    let mut first = agent(&folder, &host, "node01");
    first.until_says("at work");
    let (code, said) = agent(&folder, &host, "node02").end();
    let begin = format!("error: another agent (process {}: ", first.pid());
    let last = said.last().map(String::as_str).unwrap_or_default();
    assert!(code == Some(1) && last.starts_with(&begin), "{said:#?}");
    assert!(last.contains("--state-dir=state-of-node01"), "{last}");
    assert!(last.ends_with("works on this network: one host has one"), "{last}");
    // Another network is another host; and a name is free when its holder is gone, however it went.
    let mut elsewhere = agent(&folder, &other, "node03");
    elsewhere.until_says("at work");
    first.signal(nix::sys::signal::Signal::SIGKILL);
    first.end();
    agent(&folder, &host, "node02").until_says("at work");
}

#[test]
fn a_second_agent_with_one_state_directory_refuses() {
    let (folder, host, other) = (folder(), Host::new(), Host::new());
    let mut first = agent(&folder, &host, "node01");
    first.until_says("at work");
    let (code, said) = agent(&folder, &other, "node01").end();
    assert_eq!(code, Some(1), "{said:#?}");
    assert!(said.iter().any(|line| line.contains(&first.pid().to_string())), "{said:#?}");
}

/// On the host's network: here one of its own, whose first process is the agent.
#[test]
fn an_agent_refuses_where_kubernetes_nmstate_works() {
    let folder = folder();
    let path = folder.path().join("handler_lock");
    let handler = Flock::lock(File::create(&path).expect("a file"), FlockArg::LockExclusive).expect("locked");
    let start = || {
        let mut command = Command::new("unshare");
        command
            .args(["--net", "--pid", "--fork", "--kill-child", "--mount-proc", env!("CARGO_BIN_EXE_berth")])
            .env("NMSTATE_INSTANCE_NODE_LOCK_FILE", &path);
        Berth::start_as(
            command,
            folder.path(),
            &["agent", "--standalone=manifests", "--state-dir=state", "--node=node01"],
        )
    };
    let (code, said) = start().end();
    let wanted = format!(
        "holds {}, kubernetes-nmstate's lock: its handler and this agent would fight",
        path.display()
    );
    assert_eq!(code, Some(1), "{said:#?}");
    assert!(said.iter().any(|line| line.contains(&wanted)), "{said:#?}");
    // With it gone the agent has the lock, and its handler would wait.
    drop(handler);
    let mut agent = start();
    agent.until_says("at work");
    let file = File::open(&path).expect("there");
    let refused = Flock::lock(file, FlockArg::LockExclusiveNonblock);
    assert!(refused.is_err(), "the agent doesn't hold it");
}
