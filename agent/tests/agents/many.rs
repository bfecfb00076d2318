//! Five hundred policies in the directory of a host on its own.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::time::{Duration, Instant};

use crate::fleet::{Machine, Process};
use crate::folder::Folder;

const POLICIES: usize = 500;
/// A minute is enough on a quiet machine.
const PATIENCE: Duration = Duration::from_secs(400);

/// All are applied, one that appears later too, and one that goes is forgotten; the agent ends when it is told to.
#[test]
fn five_hundred_policies_in_a_directory() {
    let folder = Folder::new();
    let machine = Machine::new("many", 1);
    let manifests = folder.path().join("manifests");
    std::fs::create_dir(&manifests).expect("a folder");
    // Some in a file of their own, most of them together.
    let mut text = String::new();
    for number in 1..POLICIES {
        write!(text, "---\n{}", policy(number)).expect("text");
    }
    std::fs::write(manifests.join("most.yaml"), text).expect("a manifest");
    std::fs::write(manifests.join("first.yaml"), policy(0)).expect("a manifest");
    let path = |name: &str| folder.path().join(name).to_string_lossy().into_owned();
    let (from, state) = (path("manifests"), path("state"));
    let args =
        ["agent", "--node", "many", "--standalone", &from, "--state-dir", &state, "--netns", &machine.netns];
    let args: Vec<String> = args.map(str::to_owned).to_vec();
    let mut process = Process::start(folder.path(), "many", &args, None);
    let log = || std::fs::read_to_string(folder.path().join("many.log")).unwrap_or_default();
    let mut until = |what: &str, holds: &dyn Fn(&BTreeMap<usize, ()>) -> bool| {
        let begun = Instant::now();
        loop {
            let routes = routes(&machine);
            if holds(&routes) {
                return;
            }
            assert!(process.ended().is_none(), "it ended: {}", log());
            assert!(begun.elapsed() < PATIENCE, "never {what}: {} routes\n{}", routes.len(), log());
            std::thread::sleep(Duration::from_millis(200));
        }
    };
    until("applied", &|routes| routes.len() == POLICIES);
    std::fs::write(manifests.join("late.yaml"), policy(POLICIES)).expect("a manifest");
    until("late", &|routes| routes.contains_key(&POLICIES));
    process.stop();
}

/// A route of its own.
fn policy(number: usize) -> String {
    let (high, low) = (number / 250, number % 250);
    format!(
        "apiVersion: nmstate.io/v1\nkind: NodeNetworkConfigurationPolicy\nmetadata: {{name: p{number:03}}}\n\
         spec: {{desiredState: {{routes: {{config: [{{destination: 10.{}.{low}.0/24, next-hop-interface: eth0}}]}}}}}}\n",
        100 + high
    )
}

/// Which of them are in the kernel.
fn routes(machine: &Machine) -> BTreeMap<usize, ()> {
    let text = machine.ip("route show dev eth0");
    let number = |line: &str| {
        let mut parts = line.split('.').skip(1).map(|part| part.parse::<usize>().unwrap_or(999));
        let (high, low) = (parts.next()?, parts.next()?);
        Some(((high.checked_sub(100)?) * 250 + low, ()))
    };
    text.lines().filter_map(number).collect()
}
