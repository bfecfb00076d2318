//! Hearing of changes.

use std::time::Duration;

use agent::netlink::monitor::{Heard, Monitor};
use agent::netns::Namespace;

use crate::ground::Ground;

fn open(ground: &Ground, bytes: Option<i32>) -> Monitor {
    let open = || bytes.map_or_else(Monitor::open, Monitor::with_buffer);
    Namespace::Named(ground.name.clone()).inside(open).unwrap().unwrap()
}

const PATIENCE: Duration = Duration::from_secs(10);

#[test]
fn links_addresses_routes_and_rules_are_heard() {
    let (ground, _far) = Ground::with_cards(1);
    let mut monitor = open(&ground, None);
    let lines = [
        "link set eth0 mtu 1400",
        "addr add 10.0.0.1/24 dev eth0",
        "route add 10.9.0.0/16 via 10.0.0.254",
        "rule add from 10.0.0.0/24 lookup 100",
        "-6 route add fd09::/16 dev eth0",
        "-6 rule add from fd00::/16 lookup 100",
    ];
    for line in lines {
        // Link-local addresses take their time; what comes from them is heard before.
        while monitor.wait(Duration::from_millis(50)).unwrap() != Heard::Silence {}
        ground.ip(line);
        assert!(matches!(monitor.wait(PATIENCE).unwrap(), Heard::Changes(1..)), "{line}");
    }
}

#[test]
fn what_happens_elsewhere_is_not_heard() {
    let (here, elsewhere) = (Ground::new(), Ground::new());
    let mut monitor = open(&here, None);
    elsewhere.ip("addr add 10.7.0.1/24 dev lo");
    assert_eq!(monitor.wait(Duration::from_millis(100)).unwrap(), Heard::Silence);
    here.ip("addr add 10.7.0.1/24 dev lo");
    assert!(matches!(monitor.wait(PATIENCE).unwrap(), Heard::Changes(1..)));
}

/// A buffer that is full: something was lost, so anything may have changed.
#[test]
fn what_is_lost_is_said() {
    let ground = Ground::new();
    let mut monitor = open(&ground, Some(4096));
    let lines: String = (0..100).map(|n| format!("addr add 10.0.{n}.1/24 dev lo\n")).collect();
    crate::ground::run(std::process::Command::new("ip").args(["-n", &ground.name, "-batch", "-"]), &lines)
        .ok();
    assert_eq!(monitor.wait(PATIENCE).unwrap(), Heard::Overrun);
    // And heard again from then on.
    ground.ip("addr add 10.200.0.1/24 dev lo");
    assert!(matches!(monitor.wait(PATIENCE).unwrap(), Heard::Changes(1..)));
}

/// A storm that fills the buffer, in which a link goes and comes again under its name: nothing that was known before is
/// relied on, and what is seen next is what there is.
#[test]
fn after_a_storm_all_is_looked_at_again() {
    use agent::kernel::{Kernel, Live};
    use policy::plan::Step;
    use policy::state::IfName;

    let ground = Ground::new();
    ground.ip("link add a0 type veth peer name b0");
    let namespace = Namespace::Named(ground.name.clone());
    let work = || {
        let mut kernel = Live::listening(&namespace, Monitor::with_buffer(4096).unwrap()).unwrap();
        kernel.observe().unwrap();
        let mut storm = "link del a0\nlink add a0 type veth peer name b0\n".to_owned();
        for n in 0..3000 {
            storm.push_str(&format!("addr add 10.{}.{}.1/24 dev lo\n", n / 250, n % 250));
        }
        crate::ground::run(
            std::process::Command::new("ip").args(["-n", &ground.name, "-batch", "-"]),
            &storm,
        )
        .ok();
        kernel.settle(PATIENCE).unwrap();
        // To the link that has this name now, though nobody observed it.
        let link = IfName::new("a0").unwrap();
        kernel.apply(&[Step::SetMtu { link: link.clone(), mtu: 1400 }], &mut |_| true).unwrap();
        let state = kernel.observe().unwrap().state;
        (state.links[&link].mtu, state.links["lo"].ipv4.addresses.len())
    };
    let (mtu, addresses) = namespace.inside(work).unwrap();
    assert_eq!((mtu, addresses), (Some(1400), 3001));
}
