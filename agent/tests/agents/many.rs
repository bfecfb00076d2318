//! Five hundred policies in the directory of a host on its own.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::fleet::{Machine, Process};
use crate::folder::Folder;

const POLICIES: usize = 500;
/// A minute is enough on a quiet machine, for the whole.
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
    // What was applied and verified is journalled, by policy.
    let journalled = || {
        let text = std::fs::read_to_string(folder.path().join("state/journal.json")).unwrap_or_default();
        let journal: Value = serde_json::from_str(&text).unwrap_or_default();
        journal["enacted"].as_object().map_or(0, |enacted| enacted.len())
    };
    let mut until = |policies: usize, last: usize| {
        let begun = Instant::now();
        loop {
            let (there, routes) = (journalled(), routes(&machine));
            if there == policies && routes == (0..=last).step_by(10).collect() {
                return;
            }
            assert!(process.ended().is_none(), "it ended: {}", log());
            assert!(begun.elapsed() < PATIENCE, "only {there} of {policies}: {routes:?}\n{}", log());
            std::thread::sleep(Duration::from_millis(200));
        }
    };
    until(POLICIES, POLICIES - 10);
    std::fs::write(manifests.join("late.yaml"), policy(POLICIES)).expect("a manifest");
    until(POLICIES + 1, POLICIES);
    // One goes: it is forgotten, and what it set stays.
    std::fs::remove_file(manifests.join("late.yaml")).expect("it was there");
    until(POLICIES, POLICIES);
    process.stop();
}

/// Every tenth has a route of its own; the others say what is so already. Each route that is new has every policy looked at
/// again, so that ten times as many would take ten times as long.
fn policy(number: usize) -> String {
    let (high, low) = (100 + number / 250, number % 250);
    let state = match number % 10 {
        0 => format!("routes: {{config: [{{destination: 10.{high}.{low}.0/24, next-hop-interface: eth0}}]}}"),
        _ => "interfaces: [{name: eth0, type: veth, state: up}]".to_owned(),
    };
    format!(
        "apiVersion: nmstate.io/v1\nkind: NodeNetworkConfigurationPolicy\nmetadata: {{name: p{number:03}}}\n\
         spec: {{desiredState: {{{state}}}}}\n"
    )
}

/// Which of them are in the kernel.
fn routes(machine: &Machine) -> BTreeSet<usize> {
    let text = machine.ip("route show dev eth0");
    let number = |line: &str| {
        let mut parts = line.split('.').skip(1).map(|part| part.parse::<usize>().unwrap_or(999));
        let (high, low) = (parts.next()?, parts.next()?);
        Some(high.checked_sub(100)? * 250 + low)
    };
    text.lines().filter_map(number).collect()
}
