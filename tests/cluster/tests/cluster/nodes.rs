//! Nodes that come, go, and come back.

use std::fs;

use cluster_tests::{Node, run};

use crate::field::{Held, IMAGE, NODES, POOLS, field, quick};

#[test]
#[ignore = "a cluster: make test-cluster"]
fn a_fourth_node_joins_dies_and_comes_back() {
    let field = field();
    let before = field.wait_configured(&NODES);
    let fourth = Node(4);
    field.cluster.boot(fourth);
    field.wait_ready(fourth);
    // Nobody does anything for it.
    let held = field.wait_configured(&[fourth]);
    for node in NODES {
        for (pool, card) in POOLS {
            let own = &held[&(node.name(), pool.to_owned())];
            field.cluster.ping(fourth, card, own).expect("the others answer");
        }
    }

    field.retire(fourth);

    // With the disk that it had, on which its journal says what it held: its own again if nobody has it, or others; never
    // somebody else's, and the rest has what it had.
    field.cluster.boot(fourth);
    field.wait_ready(fourth);
    let mut after = field.wait_configured(&[NODES[0], NODES[1], NODES[2], fourth]);
    after.retain(|(node, _), _| *node != fourth.name());
    assert_eq!(after, before);
    field.take_away(fourth);
}

/// R27
#[test]
#[ignore = "a cluster: make test-cluster"]
fn a_node_that_reboots_keeps_its_addresses() {
    let field = field();
    let before = field.wait_configured(&NODES);
    let agent = field.agent(NODES[2]).expect("an agent");
    field.cluster.power_cut(NODES[2]);
    field.cluster.boot(NODES[2]);
    field.wait_restarted(NODES[2], &agent);
    assert_eq!(field.wait_configured(&NODES), before);
}

/// R27: with the unit on the hosts, which agents put there, the addresses are on their cards before the kubelet starts, and so before
/// any container. With kubectl alone, as docs/install.md and docs/uninstall.md have it.
#[test]
#[ignore = "a cluster: make test-cluster"]
fn with_the_unit_a_node_that_reboots_has_its_addresses_before_its_pods() {
    let field = field();
    let before = field.wait_configured(&NODES);
    let node = NODES[1];
    field.disturb();
    field.cluster.kubectl(&["apply", "-k", &quick("boot")]);
    field.wait_rolled_out();
    let agent = field.agent(node).expect("an agent");
    field.cluster.power_cut(node);
    field.cluster.boot(node);
    let noted = field.cluster.before_kubelet(node);
    for (pool, card) in POOLS {
        let own = format!("{}/24", before[&(node.name(), pool.to_owned())]);
        let line = noted.lines().find(|line| line.starts_with(&format!("{card}@")));
        assert!(line.is_some_and(|line| line.split_whitespace().any(|word| word == own)), "{own}: {noted}");
    }
    // The head of a list that is empty.
    let containers = noted.lines().skip_while(|line| !line.starts_with("TASK")).count();
    assert_eq!(containers, 1, "{noted}");
    // What came of it is in the host's log, for who looks there.
    let log = fs::read_to_string(field.cluster.folder().join(format!("units-{}.log", node.name())));
    let log = log.expect("a log");
    assert!(
        log.contains("node node02: policy static-ip (10.10.10.") && log.contains("): put back, in "),
        "{log}"
    );

    // The agent finds its host as it left it: nothing is taken off, and nothing put on again.
    let watch = field.cluster.watch_addresses(node);
    field.wait_restarted(node, &agent);
    assert_eq!(field.wait_configured(&NODES), before);
    let seen: Vec<String> = watch.seen().into_iter().filter(|line| line.contains(" inet 10.10.1")).collect();
    assert_eq!(seen, Vec::<String>::new());

    let manual = include_str!("../../../../docs/uninstall.md");
    let line = manual.lines().find(|line| line.contains("initContainers")).expect("how it is taken off");
    let line = line.replace('\'', "");
    field.cluster.kubectl(&line.split_whitespace().skip(1).collect::<Vec<_>>());
    field.wait_rolled_out();
    for node in NODES {
        let search = ["/etc/systemd", "/var/lib/berth", "-name", "berth*", "-not", "-type", "d"];
        assert_eq!(run(field.cluster.on(node, "find").args(search)), "", "{}", node.name());
    }
}

/// Hosts that died, whose addresses machines have that took their places. They are repaired, and come back with journals that say
/// that those are their own; one of them with the unit, which has only the wire to ask.
#[test]
#[ignore = "a cluster: make test-cluster"]
fn nodes_that_come_back_when_others_have_their_addresses_get_others() {
    let field = field();
    let (old, new) = ([Node(4), Node(5)], [Node(6), Node(7)]);
    let with_unit = old[1];
    let switch_on = |nodes: &[Node]| {
        nodes.iter().for_each(|&node| field.cluster.boot(node));
        nodes.iter().for_each(|&node| field.wait_ready(node));
    };
    switch_on(&old);
    let was = field.wait_configured(&old);
    field.cluster.install_boot_unit(with_unit, IMAGE);
    let own = |held: &Held, node: Node, pool: &str| held[&(node.name(), pool.to_owned())].clone();
    // Both at once: the second's are free by the time that the first's are.
    field.take_away(with_unit);
    field.retire(old[0]);
    for (pool, _) in POOLS {
        let ips = old.map(|old| own(&was, old, pool));
        field.reserve(pool, &[(new[0], &ips[0]), (new[1], &ips[1])]);
    }
    switch_on(&new);
    let taken = field.wait_configured(&new);
    for (pool, _) in POOLS {
        assert_eq!(new.map(|new| own(&taken, new, pool)), old.map(|old| own(&was, old, pool)));
    }

    let watches = old.map(|old| {
        field.cluster.boot(old);
        field.cluster.watch_addresses(old)
    });
    let noted = field.cluster.before_kubelet(with_unit);
    assert!(noted.contains(" 10.99.0.") && !noted.contains(" 10.10.1"), "{noted}");
    let log = fs::read_to_string(field.cluster.folder().join(format!("units-{}.log", with_unit.name())));
    let log = log.expect("a log");
    let is_heard = |(pool, _)| log.contains(&format!("{} is in use by", own(&was, with_unit, pool)));
    assert!(log.contains("): not put back: ") && POOLS.into_iter().all(is_heard), "{log}");
    old.into_iter().for_each(|old| field.wait_ready(old));
    let after = field.wait_configured(&[&NODES[..], &new, &old].concat());
    for ((old, new), watch) in old.into_iter().zip(new).zip(watches) {
        for (pool, card) in POOLS {
            assert_ne!(own(&after, old, pool), own(&was, old, pool));
            assert_eq!(own(&after, new, pool), own(&was, old, pool));
            assert_eq!(field.cluster.addresses(old, card), [format!("{}/24", own(&after, old, pool))]);
        }
        // Not even for a moment.
        let seen = watch.seen();
        let others = POOLS.map(|(pool, _)| format!(" inet {}/", own(&was, old, pool)));
        let borne = |line: &&String| others.iter().any(|other| line.contains(other));
        assert_eq!(seen.iter().find(borne), None, "{others:?}: {seen:#?}");
    }
    old.into_iter().chain(new).for_each(|node| field.take_away(node));
}
