//! A change that was cut off is undone by whoever comes next, `berth apply` or the agent, and it is said; two never change
//! one network at once, whichever state directories they have.

use std::path::{Path, PathBuf};
use std::process::Command;

use nix::sys::signal::Signal;

use crate::folder::Folder;
use crate::support::{Berth, Host, run, until};

/// An MTU, and an address that the kernel probes for long enough that the change is not over before we say so.
const CHANGE: &str = "\
interfaces:
- {name: eth0, type: veth, state: up, mtu: 1400,
   ipv6: {enabled: true, address: [{ip: 'fd00::1', prefix-length: 64}]}}
";
const NOTHING: &str = "interfaces: [{name: lo, state: up}]\n";

fn slow_host() -> Host {
    let host = Host::new();
    let slow = ["netns", "exec", &host.netns, "sysctl", "-qw", "net.ipv6.conf.eth0.dad_transmits=30"];
    run(Command::new("ip").args(slow));
    host
}

fn apply(folder: &Path, host: &Host, document: &str, checkpoints: &str) -> Berth {
    std::fs::write(folder.join("document.yaml"), document).expect("written");
    let netns = format!("--netns={}", host.netns);
    let place = format!("--state-dir={}", folder.join(checkpoints).display());
    Berth::start(folder, &["apply", "-f", "document.yaml", "--timeout=60", &netns, &place])
}

fn agent(folder: &Path, host: &Host) -> Berth {
    std::fs::create_dir_all(folder.join("manifests")).expect("a folder");
    let netns = format!("--netns={}", host.netns);
    let arguments = ["agent", "--standalone=manifests", "--state-dir=state", "--node=node01", &netns];
    Berth::start(folder, &arguments)
}

fn until_changing(host: &Host) {
    until("a change that waits for the kernel", || {
        host.ip("-6 addr show dev eth0").contains("fd00::1/64 scope global tentative").then_some(())
    });
}

#[track_caller]
fn is_as_before(host: &Host) {
    let shown = host.ip("addr show dev eth0");
    assert!(shown.contains("mtu 1500") && !shown.contains("fd00::1"), "{shown}");
}

fn killed(mut berth: Berth) {
    berth.signal(Signal::SIGKILL);
    berth.end();
}

/// The checkpoint of the host's namespace.
fn checkpoint(folder: &Path) -> PathBuf {
    let folders = std::fs::read_dir(folder.join("checkpoints")).expect("a folder").flatten();
    let own = folders.map(|one| one.path()).find(|path| path.join("lock").exists());
    own.expect("its folder").join("checkpoint.json")
}

/// The place of the checkpoint of an agent that was here, and left nothing.
fn place_of_an_agents(folder: &Path, host: &Host) -> PathBuf {
    let mut gone = agent(folder, host);
    gone.until_says("at work");
    gone.signal(Signal::SIGTERM);
    gone.end();
    checkpoint(folder)
}

#[test]
fn what_apply_left_the_agent_undoes_and_says() {
    let (folder, host) = (Folder::new(), slow_host());
    let cut_off = apply(folder.path(), &host, CHANGE, "checkpoints");
    until_changing(&host);
    killed(cut_off);
    assert!(checkpoint(folder.path()).exists());
    let mut agent = agent(folder.path(), &host);
    agent.until_says("a change that was cut off is being undone");
    let undone = agent.until_says("the change that was cut off is undone: ");
    assert!(undone.contains("mtu") && undone.contains("fd00::1"), "{undone}");
    agent.until_says("the pass is over");
    is_as_before(&host);
    assert!(!checkpoint(folder.path()).exists());
}

#[test]
fn what_the_agent_left_apply_undoes() {
    let (folder, host) = (Folder::new(), slow_host());
    std::fs::create_dir(folder.path().join("manifests")).expect("a folder");
    let desired: String = CHANGE.lines().map(|line| format!("    {line}\n")).collect();
    let policy = format!(
        "apiVersion: nmstate.io/v1\nkind: NodeNetworkConfigurationPolicy\nmetadata: {{name: web}}\nspec:\n  desiredState:\n{desired}"
    );
    std::fs::write(folder.path().join("manifests/web.yaml"), policy).expect("written");
    let cut_off = agent(folder.path(), &host);
    until_changing(&host);
    killed(cut_off);
    let (code, said) = apply(folder.path(), &host, NOTHING, "checkpoints").end();
    assert_eq!(code, Some(0), "{said:#?}");
    assert!(said.iter().any(|line| line.starts_with("undone:")), "{said:#?}");
    is_as_before(&host);
}

#[test]
fn two_never_change_one_network_at_once() {
    let (folder, host) = (Folder::new(), slow_host());
    let mut first = apply(folder.path(), &host, CHANGE, "one");
    until_changing(&host);
    let (code, said) = apply(folder.path(), &host, NOTHING, "other").end();
    let process = format!("(process {}: ", first.pid());
    let line = said.iter().find(|line| line.contains("another berth is changing this network namespace"));
    let line = line.unwrap_or_else(|| panic!("{said:#?}"));
    assert!(code == Some(1) && line.contains(&process) && line.contains("another state directory"), "{line}");
    first.signal(Signal::SIGTERM);
    first.end();
    is_as_before(&host);
}

#[test]
fn what_another_boot_left_is_discarded_saying_so_whatever_its_form() {
    let (folder, host) = (Folder::new(), Host::new());
    let path = place_of_an_agents(folder.path(), &host);
    std::fs::write(&path, r#"{"form": 7, "identity": {"boot": "another", "namespace": 1}}"#)
        .expect("written");
    let mut second = agent(folder.path(), &host);
    second.until_says("a checkpoint is discarded: it is from before the last boot");
    second.until_says("the pass is over");
    assert!(!path.exists());
}

/// Somebody has to look at the host: the agent stays, says so once, and goes on when that is done.
#[test]
fn what_nobody_can_undo_is_said_and_waited_for() {
    let (folder, host) = (Folder::new(), Host::new());
    let path = place_of_an_agents(folder.path(), &host);
    std::fs::write(&path, "{").expect("written");
    let mut second = agent(folder.path(), &host);
    let line = second.until_says("is damaged");
    assert!(line.contains("look at the host and remove it"), "{line}");
    std::fs::remove_file(&path).expect("removed");
    second.until_says("the pass is over");
}
