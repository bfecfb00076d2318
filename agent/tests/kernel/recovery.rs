//! Cut off in the middle: killed, a link gone, a checkpoint of somebody else.

use std::process::Command;
use std::time::Duration;

use agent::checkpoint::Store;
use agent::kernel::{Kernel, KernelError, Live};
use agent::netlink::{Observation, StepFailed};
use agent::netns::{Identity, Namespace};
use agent::transaction::{ApplyError, Manner, apply};
use policy::plan::Step;
use serde_json::{Value, json};

use crate::dump::{assert_same, lasting};
use crate::ground::{Ground, run};

/// A kernel that does something of its own after so many steps.
struct After<'a> {
    live: Live,
    steps: usize,
    then: Option<&'a dyn Fn()>,
    taken: usize,
    /// Count how often word comes of what is done, rather than steps, which are sent together.
    windows: bool,
}

impl After<'_> {
    fn look(&mut self) {
        if self.taken == self.steps
            && let Some(then) = self.then.take()
        {
            then();
        }
    }
}

impl Kernel for After<'_> {
    fn observe(&mut self) -> Result<Observation, KernelError> {
        self.live.observe()
    }

    fn apply(&mut self, steps: &[Step], progress: &mut dyn FnMut(usize) -> bool) -> Result<(), StepFailed> {
        if self.windows {
            // As it is: many in flight, and word of it only in between.
            let (live, wanted, then) = (&mut self.live, self.steps, &mut self.then);
            let mut word = 0;
            let mut heard = |done: usize| {
                if word == wanted
                    && let Some(then) = then.take()
                {
                    then();
                }
                word += 1;
                progress(done)
            };
            return live.apply(steps, &mut heard);
        }
        for (place, step) in steps.iter().enumerate() {
            self.look();
            self.taken += 1;
            let one = std::slice::from_ref(step);
            self.live.apply(one, &mut |_| true).map_err(|failed| StepFailed { place, ..failed })?;
            progress(place + 1);
        }
        self.look();
        Ok(())
    }

    fn settle(&mut self, at_most: Duration) -> Result<(), KernelError> {
        self.live.settle(at_most)
    }
}

fn attempt(
    ground: &Ground,
    document: &Value,
    steps: usize,
    then: &(dyn Fn() + Sync),
) -> Result<usize, ApplyError> {
    attempt_in(ground, document, false, steps, then)
}

fn attempt_in(
    ground: &Ground,
    document: &Value,
    windows: bool,
    steps: usize,
    then: &(dyn Fn() + Sync),
) -> Result<usize, ApplyError> {
    let namespace = Namespace::Named(ground.name.clone());
    let work = || {
        let live = Live::open(&namespace)?;
        let mut kernel = After { live, steps, then: Some(then), taken: 0, windows };
        let store = Store::lock(&ground.state_dir, Identity::here().unwrap())?;
        let manner = Manner { verify: true, patience: Duration::from_secs(5) };
        apply(&mut kernel, &store, document, manner, &mut |_| {}, &|| false).map(|plan| plan.len())
    };
    namespace.inside(work).unwrap()
}

/// A node whose address moves to a bridge: links made and deleted, ports, addresses, routes, rules.
fn ten_steps() -> Value {
    json!({
        "interfaces": [
            {"name": "br0", "type": "linux-bridge", "state": "up", "mtu": 1400,
             "ipv4": {"enabled": true, "address": [{"ip": "10.0.0.1", "prefix-length": 24}]},
             "ipv6": {"enabled": true, "address": [{"ip": "fd00::1", "prefix-length": 64}]},
             "bridge": {"options": {"stp": {"enabled": false}}, "port": [{"name": "eth0"}]}},
            {"name": "eth0", "ipv4": {"enabled": false}},
            {"name": "old0", "type": "veth", "state": "absent"},
            {"name": "eth1", "ipv4": {"enabled": true, "address": [{"ip": "10.1.0.2", "prefix-length": 24}]}},
        ],
        "routes": {"config": [{"destination": "0.0.0.0/0", "next-hop-address": "10.0.0.254", "next-hop-interface": "br0"}]},
        "route-rules": {"config": [{"ip-from": "10.0.0.0/24", "route-table": 100, "priority": 100}]},
    })
}

fn prepared() -> (Ground, Ground) {
    let (ground, far) = Ground::with_cards(2);
    ground.ip("addr add 10.0.0.1/24 dev eth0");
    ground.ip("route add default via 10.0.0.254 proto static");
    ground.ip("link add old0 type veth peer name old1");
    ground.ip("addr add 10.5.0.1/24 dev old0");
    ground.ip("addr add 10.1.0.1/24 dev eth1");
    (ground, far)
}

const CHILD: &str = "BERTH_TEST_KILLED_IN";

/// The part of the tests below that runs in a process of its own, and ends it.
fn killed_child(place: &str, document: &Value, windows: bool) {
    let (name, after) = place.split_once(' ').unwrap();
    let ground = std::mem::ManuallyDrop::new(Ground {
        name: name.to_owned(),
        state_dir: std::env::temp_dir().join(name),
    });
    let kill = || {
        let this = nix::unistd::Pid::this();
        nix::sys::signal::kill(this, nix::sys::signal::Signal::SIGKILL).unwrap();
    };
    let _ = attempt_in(&ground, document, windows, after.parse().unwrap(), &kill);
}

/// Runs this test again as its own child, which kills itself there, and then lets the next one put it right; whether it
/// was killed.
fn killed_and_recovered(test: &str, ground: &Ground, before: &str, after: usize) -> bool {
    let mut child = Command::new(std::env::current_exe().unwrap());
    child.args(["--exact", test]);
    let ran = run(child.env(CHILD, format!("{} {after}", ground.name)), "");
    if ran.code != -1 {
        return false;
    }
    let said = ground.apply("interfaces: [{name: lo, state: up}]");
    assert!(said.stderr.contains("a change was cut off earlier"), "after {after}: {said:?}");
    said.ok();
    assert_same(before, &lasting(&ground.dump()), &format!("killed after {after}"));
    true
}

#[test]
fn killed_after_each_step() {
    if let Ok(place) = std::env::var(CHILD) {
        return killed_child(&place, &ten_steps(), false);
    }
    let (ground, _far) = prepared();
    let before = lasting(&ground.dump());
    let steps = {
        let plan = ground.berth(&["plan", "-f", "-", "-o", "json"], &ten_steps().to_string()).ok();
        serde_json::from_str::<Value>(&plan).unwrap()["steps"].as_array().unwrap().len()
    };
    assert!(steps >= 10, "{steps}");
    for after in 0..=steps {
        let killed = killed_and_recovered("recovery::killed_after_each_step", &ground, &before, after);
        assert!(killed, "killed, not ended, after {after} of {steps} steps");
    }
}

/// More of a kind than are sent at once.
fn windows() -> Value {
    let mut document = ten_steps();
    let list = |net: u8| -> Vec<Value> {
        (0..150).map(|n| json!({"ip": format!("10.{net}.{n}.1"), "prefix-length": 24})).collect()
    };
    document["interfaces"][0]["ipv4"]["address"].as_array_mut().unwrap().extend(list(20));
    document["interfaces"][3]["ipv4"]["address"].as_array_mut().unwrap().extend(list(21));
    let route = |n: u8| json!({"destination": format!("10.30.{n}.0/24"), "next-hop-address": "10.0.0.254", "next-hop-interface": "br0"});
    document["routes"]["config"].as_array_mut().unwrap().extend((0..150).map(route));
    document
}

/// As it is in earnest: steps are sent many at a time, and it is killed between two such times, at each of them.
#[test]
fn killed_after_each_window() {
    if let Ok(place) = std::env::var(CHILD) {
        return killed_child(&place, &windows(), true);
    }
    let (ground, _far) = prepared();
    let before = lasting(&ground.dump());
    let test = "recovery::killed_after_each_window";
    let times = (0..).take_while(|after| killed_and_recovered(test, &ground, &before, *after)).count();
    assert!(times > 15, "only {times} windows");
    // The last one was not killed: all of it is there.
    assert_eq!(ground.addresses("br0", "inet").len(), 151);
    assert_eq!(ground.checkpoints(), 0);
}

#[test]
fn a_link_that_vanishes_while_applying() {
    let (ground, _far) = prepared();
    let (document, before) = (ten_steps(), lasting(&ground.dump()));
    // From the first step that finds it there to the last.
    for after in 3..=12 {
        let vanish = || {
            ground.ip("link del br0");
        };
        let error = attempt(&ground, &document, after, &vanish).unwrap_err();
        let ApplyError::Failed { reverted, .. } = &error else { panic!("{error}") };
        assert!(reverted.is_complete(), "{reverted:?}");
        ground.is_still(&before, lasting, &format!("gone after step {after}"));
    }
}

/// What somebody else does to a link while a change is under way stays when the change is undone.
#[test]
fn the_hands_of_others_stay() {
    let (ground, _far) = Ground::with_cards(1);
    ground.ip("addr add 10.0.0.1/24 dev eth0");
    let document = json!({
        "interfaces": [{"name": "eth0", "mtu": 1400, "ipv4": {"enabled": true, "address": [
            {"ip": "10.0.0.1", "prefix-length": 24}, {"ip": "10.5.0.1", "prefix-length": 24},
        ]}}],
        // The step that fails.
        "dns-resolver": {"config": {"server": ["10.0.0.53"]}},
    });
    ground.break_resolver();
    let hand = || {
        ground.ip("addr add 10.77.0.1/24 dev eth0");
        ground.ip("route add 10.78.0.0/16 via 10.77.0.254");
        ground.ip("link set eth0 alias theirs");
    };
    let error = attempt(&ground, &document, 2, &hand).unwrap_err();
    let ApplyError::Failed { reverted, .. } = &error else { panic!("{error}") };
    assert!(reverted.is_complete(), "{reverted:?}");
    assert_eq!(ground.addresses("eth0", "inet"), ["10.0.0.1/24", "10.77.0.1/24"]);
    assert_eq!(ground.routes("-4"), ["10.78.0.0/16 via 10.77.0.254 dev eth0"]);
    let link = &ground.json("link show dev eth0")[0];
    assert_eq!((&link["mtu"], &link["ifalias"]), (&json!(1500), &json!("theirs")));
}

#[test]
fn a_checkpoint_of_another_boot_is_discarded_with_a_word() {
    let (ground, _far) = Ground::with_cards(1);
    let namespace = Namespace::Named(ground.name.clone());
    let write = || {
        let mut identity = Identity::here().unwrap();
        identity.boot = "another".to_owned();
        let mut before = Live::open(&namespace).unwrap().observe().unwrap().state;
        before.links.values_mut().for_each(|link| link.mtu = Some(1280));
        let store = Store::lock(&ground.state_dir, identity).unwrap();
        store.write(&before, &json!({"interfaces": [{"name": "eth0", "mtu": 1500}]})).unwrap();
    };
    namespace.inside(write).unwrap();
    let before = ground.dump();
    let said = ground.apply("interfaces: [{name: lo, state: up}]");
    assert!(
        said.stderr.contains("an old checkpoint is discarded: it is from before the last boot"),
        "{said:?}"
    );
    assert_eq!(said.ok(), "nothing to do\n");
    ground.is_as(&before);
}
