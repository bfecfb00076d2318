//! `berth boot`: at boot, before the kubelet and without the API, the journal is on the host's cards. With the unit's
//! capabilities and no others.

use std::fs;
use std::path::Path;
use std::process::Command;

use nix::fcntl::{Flock, FlockArg};
use nix::sys::signal::Signal;
use serde_json::{Value, json};

use crate::folder::Folder;
use crate::service::bounds;
use crate::support::{Berth, Host, MANIFESTS, until};

const UNIT: &str = include_str!("../../../systemd/berth-boot.service");

/// A host whose agent gave it an address and is gone.
struct Left {
    folder: Folder,
    host: Host,
    address: String,
}

impl Left {
    fn behind() -> Self {
        let (folder, host) = (Folder::new(), Host::new());
        fs::create_dir(folder.path().join("manifests")).expect("a folder");
        fs::write(folder.path().join("manifests/all.yaml"), MANIFESTS).expect("written");
        let netns = format!("--netns={}", host.netns);
        let arguments = ["agent", "--standalone=manifests", "--state-dir=state", "--node=node01", &netns];
        let mut agent = Berth::start(folder.path(), &arguments);
        let journal = folder.path().join("state/journal.json");
        until("a state that is good, in the journal", || {
            read(&journal)["enacted"].as_object().filter(|all| !all.is_empty()).map(drop)
        });
        agent.signal(Signal::SIGTERM);
        assert_eq!(agent.end().0, Some(0));
        let address = host.addresses().pop().expect("an address");
        Self { folder, host, address }
    }

    fn at(&self) -> &Path {
        self.folder.path()
    }

    /// The card as it comes out of a boot.
    fn lose_address(&self) {
        self.host.ip("addr flush dev eth0");
        assert!(self.host.addresses().is_empty());
    }

    /// Somebody works with its state directory.
    fn until_locked(&self) {
        let path = self.at().join("state/agent.lock");
        until("a lock", || {
            let file = fs::File::open(&path).ok()?;
            Flock::lock(file, FlockArg::LockExclusiveNonblock).is_err().then_some(())
        });
    }

    fn boot(&self, more: &[&str]) -> Berth {
        boot(self.at(), &self.host, more)
    }
}

fn read(path: &Path) -> Value {
    let text = fs::read_to_string(path).unwrap_or_default();
    serde_json::from_str(&text).unwrap_or_default()
}

/// As the unit has it, on a host's network.
fn boot(folder: &Path, host: &Host, more: &[&str]) -> Berth {
    let mut command = Command::new("setpriv");
    // Another network is entered with more than the unit leaves: from outside.
    command.args(["--no-new-privs", &format!("--bounding-set={}", bounds(UNIT))]);
    let mut entered = Command::new("ip");
    entered.args(["netns", "exec", &host.netns]).arg(command.get_program()).args(command.get_args());
    entered.arg(env!("CARGO_BIN_EXE_berth"));
    Berth::start_as(entered, folder, &[&["boot", "--state-dir=state", "--node-lock=none"], more].concat())
}

/// R27: the address is back, marked as Berth's, without an API; once more there is nothing to do.
#[test]
fn r27_what_the_journal_holds_is_put_back() {
    let left = Left::behind();
    left.lose_address();
    let journal = fs::read(left.at().join("state/journal.json")).expect("a journal");
    let ip = left.address.split('/').next().expect("an address");
    let (code, said) = left.boot(&[]).end();
    assert_eq!(
        (code, said),
        (Some(0), vec![format!("node node01: policy web ({ip}): put back, in one step")])
    );
    assert_eq!(left.host.addresses(), [left.address.as_str()]);
    let (code, said) = left.boot(&[]).end();
    assert_eq!((code, said), (Some(0), vec![format!("node node01: policy web ({ip}): is as it was")]));
    let after = fs::read(left.at().join("state/journal.json")).expect("a journal");
    assert_eq!(after, journal, "it only reads");
}

#[test]
fn without_a_journal_there_is_nothing_to_do() {
    let (folder, host) = (Folder::new(), Host::new());
    let (code, said) = boot(folder.path(), &host, &[]).end();
    assert_eq!((code, said), (Some(0), vec!["nothing to do: there is no journal in state".to_owned()]));
    assert!(!folder.path().join("state").exists());
}

/// What is not held, because it was being let go when the power went, is not put back.
#[test]
fn what_is_not_held_is_left_to_the_agent() {
    let left = Left::behind();
    left.lose_address();
    let path = left.at().join("state/journal.json");
    let mut journal = read(&path);
    journal["claims"][0][1]["phase"] = json!("Releasing");
    fs::write(&path, journal.to_string()).expect("written");
    let (code, said) = left.boot(&[]).end();
    let words =
        "node node01: policy web: left to the agent, since the journal doesn't hold all its addresses";
    assert_eq!((code, said), (Some(0), vec![words.to_owned()]));
    assert!(left.host.addresses().is_empty());
}

#[test]
fn a_card_that_is_not_there_yet_is_waited_for() {
    let left = Left::behind();
    left.host.ip("link del eth0");
    let mut boot = left.boot(&["--wait=50"]);
    left.until_locked();
    left.host.ip("link add eth0 type veth peer name far0");
    let (code, said) = boot.end();
    assert_eq!(code, Some(0), "{said:#?}");
    assert_eq!(left.host.addresses(), [left.address.as_str()]);
    // One that never comes is said to be missing.
    left.host.ip("link del eth0");
    let (code, said) = left.boot(&["--wait=1"]).end();
    assert_eq!(code, Some(1), "{said:#?}");
    assert!(said[0].contains("not put back: interfaces[0]"), "{said:#?}");
    let last =
        "error: node node01: 1 of 1 policies could not be put back; the agent tries again when it starts";
    assert_eq!(said.last().map(String::as_str), Some(last));
}

#[test]
fn told_to_stop_it_waits_for_no_card() {
    let left = Left::behind();
    left.host.ip("link del eth0");
    let mut boot = left.boot(&["--wait=3600"]);
    left.until_locked();
    boot.signal(Signal::SIGTERM);
    let (code, said) = boot.end();
    assert_eq!(code, Some(1), "{said:#?}");
}

/// One host has one agent, and who boots it is one.
#[test]
fn where_an_agent_works_it_refuses() {
    let left = Left::behind();
    let netns = format!("--netns={}", left.host.netns);
    let arguments = ["agent", "--standalone=manifests", "--state-dir=state", "--node=node01", &netns];
    let mut agent = Berth::start(left.at(), &arguments);
    agent.until_says("at work");
    let (code, said) = left.boot(&[]).end();
    assert_eq!(code, Some(1), "{said:#?}");
    let words = format!("error: another agent (process {}: ", agent.pid());
    assert!(said.last().is_some_and(|line| line.starts_with(&words)), "{said:#?}");
}

/// The agent keeps it aside when it starts; who boots the host leaves it where it is.
#[test]
fn a_damaged_journal_is_said_and_left_alone() {
    let left = Left::behind();
    left.lose_address();
    let path = left.at().join("state/journal.json");
    fs::write(&path, "{\"form\": 1, \"no").expect("written");
    let (code, said) = left.boot(&[]).end();
    assert_eq!(code, Some(1), "{said:#?}");
    assert!(
        said.last().is_some_and(|line| line.contains("can't be read; the agent keeps it aside")),
        "{said:#?}"
    );
    assert_eq!(fs::read_to_string(&path).expect("there"), "{\"form\": 1, \"no");
}

/// A change that somebody else was killed in the middle of is undone first.
#[test]
fn a_change_that_was_cut_off_is_undone_first() {
    let left = Left::behind();
    let host = &left.host;
    let slow = ["netns", "exec", &host.netns, "sysctl", "-qw", "net.ipv6.conf.eth0.dad_transmits=30"];
    crate::support::run(Command::new("ip").args(slow));
    let document = "interfaces: [{name: eth0, type: veth, state: up, mtu: 1400, \
                    ipv6: {enabled: true, address: [{ip: 'fd00::1', prefix-length: 64}]}}]\n";
    fs::write(left.at().join("document.yaml"), document).expect("written");
    let netns = format!("--netns={}", host.netns);
    let place = format!("--state-dir={}", left.at().join("checkpoints").display());
    let arguments = ["apply", "-f", "document.yaml", "--timeout=60", &netns, &place];
    let mut apply = Berth::start(left.at(), &arguments);
    until("a change that waits for the kernel", || {
        host.ip("-6 addr show dev eth0").contains("fd00::1/64 scope global tentative").then_some(())
    });
    apply.signal(Signal::SIGKILL);
    apply.end();
    left.lose_address();
    let (code, said) = left.boot(&[]).end();
    assert_eq!(code, Some(0), "{said:#?}");
    assert!(said.iter().any(|line| line.starts_with("the change that was cut off is undone")), "{said:#?}");
    assert!(host.ip("link show dev eth0").contains("mtu 1500"));
    assert_eq!(host.addresses(), [left.address.as_str()]);
}
