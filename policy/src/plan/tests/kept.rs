//! What documents have no words for: when it goes, when it comes back, and that it is said.

use super::{applied, desired, observed};
use crate::plan::{Step, plan};
use crate::state::{AcceptRa, Kept, KeptKind, NextHop, Observed, Raw, RouteProtocol, Rule};

const HOST: &str = "
interfaces:
- {name: eth0, type: ethernet, state: up, ipv4: {enabled: true, address: [{ip: 10.0.0.5, prefix-length: 24}]}}
- {name: eth1, type: ethernet, state: up, ipv4: {enabled: true, address: [{ip: 10.1.0.5, prefix-length: 24}]}}
routes:
  config:
  - {destination: 192.0.2.0/24, next-hop-interface: eth0, next-hop-address: 10.0.0.1}
route-rules: {config: [{ip-from: 10.0.0.0/24, route-table: 100, priority: 7, family: ipv4}]}
";

fn hop(dev: &str, via: Option<&str>) -> NextHop {
    let via = via.map(|ip| ip.parse().expect("an address"));
    NextHop { via, dev: crate::state::IfName::new(dev).expect("a name"), weight: 1, onlink: false }
}

fn kept(kind: KeptKind, words: &str, hops: &[NextHop]) -> Kept {
    Kept {
        kind,
        words: words.to_owned(),
        family: Some(crate::state::Family::Ipv4),
        hops: hops.to_vec(),
        source: None,
        object: None,
        outlasts_down: false,
        rule: None,
        payload: words.as_bytes().to_vec(),
        passing: Raw::default(),
    }
}

fn host(list: &[Kept]) -> Observed {
    Observed { kept: list.to_vec(), ..observed(HOST) }
}

fn words(host: &Observed, document: &str) -> (Vec<String>, Vec<String>) {
    let plan = plan(host, &desired(document)).unwrap_or_else(|e| panic!("{e}"));
    let words = |list: &mut dyn Iterator<Item = String>| list.collect();
    (
        words(&mut plan.steps.iter().map(ToString::to_string)),
        words(&mut plan.losses.iter().map(ToString::to_string)),
    )
}

fn multicast() -> Kept {
    kept(KeptKind::Route, "multicast 239.0.0.0/8 dev eth0", &[hop("eth0", None)])
}

const DOWN: &str = "interfaces: [{name: eth0, state: down}]";

#[test]
fn what_goes_with_a_link_is_lost_and_a_revert_brings_it_back() {
    let mut local = kept(KeptKind::Route, "local 10.9.0.0/24 dev eth0", &[hop("eth0", None)]);
    local.outlasts_down = true;
    let host = host(&[multicast(), local, kept(KeptKind::Rule, "9: uidrange 1-2", &[])]);
    let (_, lost) = words(&host, DOWN);
    assert!(lost.contains(&"route multicast 239.0.0.0/8 dev eth0".to_owned()), "{lost:?}");
    assert!(!lost.iter().any(|loss| loss.contains("local") || loss.contains("rule")), "{lost:?}");
    let plan = plan(&host, &desired(DOWN)).expect("can be");
    let back = plan.revert(&host);
    assert!(back.steps.iter().any(|step| matches!(step, Step::Restore { .. })), "{back}");
    let after = applied(&applied(&host, &plan), &back);
    assert_eq!(after.kept.len(), host.kept.len());
}

/// The hands of others: what went without the plan's doing is not brought back.
#[test]
fn what_others_took_away_stays_away() {
    let host = host(&[kept(KeptKind::Route, "multicast 239.0.0.0/8 dev eth1", &[hop("eth1", None)])]);
    let plan = plan(&host, &desired(DOWN)).expect("can be");
    let mut now = applied(&host, &plan);
    now.kept.clear();
    let back = plan.revert_from(&now, &host);
    assert!(!back.steps.iter().any(|step| matches!(step, Step::Restore { .. })), "{back}");
}

/// Down for a moment: given back by the plan itself, objects before the routes that lead through them.
#[test]
fn a_plan_puts_back_what_can_be_again() {
    let mut object = kept(KeptKind::NextHop, "7 via 10.0.0.1 dev eth0", &[hop("eth0", Some("10.0.0.1"))]);
    object.object = Some(7);
    let mut host = host(&[multicast(), object]);
    host.routes[0].object = Some(7);
    let (steps, lost) = words(&host, "interfaces: [{name: eth0, mac-address: '02:00:00:00:00:01'}]");
    let tail = [
        "restore next hop eth0 7 via 10.0.0.1 dev eth0",
        "restore route eth0 multicast 239.0.0.0/8 dev eth0",
        "add route eth0 192.0.2.0/24 nhid 7 via 10.0.0.1 dev eth0",
    ];
    assert_eq!(steps[steps.len() - 3..], tail, "{steps:?}");
    assert_eq!(lost, <[&str; 0]>::default());
    let other = "routes: {config: [{destination: 192.0.2.0/24, next-hop-interface: eth0, next-hop-address: 10.0.0.2}]}";
    let (steps, _) = words(&host, other);
    assert_eq!(steps, ["replace route eth0 192.0.2.0/24 via 10.0.0.2 dev eth0"], "no longer the object's");
}

#[test]
fn a_rule_that_says_more_is_lifted_out_of_the_way() {
    let mut host = host(&[]);
    let plain: Rule = host.rules[0].clone();
    let mut more = kept(KeptKind::Rule, "7: from 10.0.0.0/24 uidrange 1-2", &[]);
    more.rule = Some(Box::new(plain));
    host.kept.push(more);
    let (steps, lost) = words(&host, "route-rules: {config: [{priority: 7, state: absent}]}");
    assert_eq!(
        steps,
        [
            "lift out rule 7: from 10.0.0.0/24 uidrange 1-2",
            "delete rule 7: from 10.0.0.0/24 lookup 100",
            "restore rule 7: from 10.0.0.0/24 uidrange 1-2",
        ]
    );
    assert_eq!(lost, <[&str; 0]>::default());
}

/// Two routes that differ in their type of service are two.
#[test]
fn a_type_of_service_makes_another_route() {
    let mut host = host(&[]);
    let mut other = host.routes[0].clone();
    other.tos = 0x10;
    host.routes.push(other.clone());
    let document = "routes: {config: [{destination: 192.0.2.0/24, next-hop-interface: eth0, next-hop-address: 10.0.0.9}]}";
    let plan = plan(&host, &desired(document)).expect("can be");
    assert_eq!(plan.len(), 1, "{plan}");
    assert!(applied(&host, &plan).routes.contains(&other));
    let shown = host.to_value();
    assert_eq!(shown["routes"]["running"].as_array().map(Vec::len), Some(1));
}

/// What the kernel has from routers is its own to learn again; until then nobody says that all is as before.
#[test]
fn a_learnt_route_is_said_until_it_is_there_again() {
    let mut host = host(&[]);
    host.routes[0].protocol = RouteProtocol::RA;
    let plan = plan(&host, &desired(DOWN)).expect("can be");
    let now = applied(&host, &plan);
    let missing = |host: &Observed| -> Vec<String> {
        plan.unreturned(&now, host).iter().map(ToString::to_string).collect()
    };
    assert_eq!(missing(&host), ["route 192.0.2.0/24 via 10.0.0.1 dev eth0"]);
    assert!(plan.unreturned(&host, &host).is_empty());
    // A daemon hears routers where the kernel doesn't: its route is put back.
    host.links.values_mut().for_each(|link| link.ipv6.accept_ra = Some(AcceptRa::Off));
    assert!(missing(&host).is_empty());
    let back = plan.revert_from(&now, &host);
    assert!(back.steps.iter().any(|step| matches!(step, Step::AddRoute { .. })), "{back}");
}

/// A neighbour goes with its link's being up, a static entry of a bridge with the port that it is about.
#[test]
fn neighbours_and_forwarding_entries_come_back_where_they_can() {
    let mut neighbour =
        kept(KeptKind::Neighbour, "10.0.0.9 dev eth0 lladdr 02:00:00:00:00:09", &[hop("eth0", None)]);
    neighbour.family = Some(crate::state::Family::Ipv4);
    let host = host(&[neighbour]);
    let (steps, losses) = words(&host, DOWN);
    assert!(!steps.iter().any(|step| step.contains("restore")), "{steps:?}");
    assert!(
        losses.contains(&"neighbour 10.0.0.9 dev eth0 lladdr 02:00:00:00:00:09".to_owned()),
        "{losses:?}"
    );
    // Another hardware address: forgotten on the way, and given back.
    let (steps, losses) = words(&host, "interfaces: [{name: eth0, mac-address: '02:00:00:00:00:01'}]");
    assert!(steps.last().is_some_and(|step| step.starts_with("restore neighbour")), "{steps:?}");
    assert!(losses.is_empty(), "{losses:?}");
    let plan = plan(&host, &desired(DOWN)).expect("a plan");
    let back = plan.revert(&host);
    assert!(back.to_string().contains("restore neighbour"), "{back}");

    let bridged = "interfaces: [{name: eth9, type: ethernet, state: up, controller: br0},
        {name: br0, type: linux-bridge, state: up, bridge: {port: [{name: eth9}]}}]";
    let entry =
        kept(KeptKind::Forwarding, "02:00:00:00:00:11 dev eth9", &[hop("eth9", None), hop("br0", None)]);
    let host = Observed { kept: vec![entry], ..observed(bridged) };
    let (_, losses) = words(&host, "interfaces: [{name: br0, bridge: {port: []}}]");
    assert_eq!(losses, ["forwarding entry 02:00:00:00:00:11 dev eth9"]);
    // A static entry doesn't mind whether its port is up.
    let (_, losses) = words(&host, "interfaces: [{name: eth9, state: down}]");
    assert_eq!(losses, [""; 0]);
    let gone =
        crate::plan::plan(&host, &desired("interfaces: [{name: br0, state: absent}]")).expect("a plan");
    assert!(gone.revert(&host).to_string().contains("restore fdb entry"), "{}", gone.revert(&host));
}

/// A bridge may lose its carrier with a port that is taken off it, and its proxied neighbours with that, before the port is back.
#[test]
fn neighbours_of_a_bridge_come_back_with_its_port() {
    let bridged = "interfaces: [{name: eth9, type: ethernet, state: up, controller: br0},
        {name: br0, type: linux-bridge, state: up, bridge: {port: [{name: eth9}]}},
        {name: br0.5, type: vlan, state: up, vlan: {base-iface: br0, id: 5}},
        {name: eth8, type: ethernet, state: up}]";
    let proxy =
        |dev: &str| kept(KeptKind::Neighbour, &format!("10.0.0.7 dev {dev} proxy"), &[hop(dev, None)]);
    let all = ["br0", "br0.5", "eth8"].map(proxy);
    let host = Observed { kept: all.to_vec(), ..observed(bridged) };
    let off = plan(&host, &desired("interfaces: [{name: eth9, controller: ''}]")).expect("a plan");
    let now = Observed { kept: Vec::new(), ..applied(&host, &off) };
    let back = off.revert_from(&now, &host).to_string();
    for (dev, comes) in [("br0 ", true), ("br0.5 ", true), ("eth8 ", false)] {
        assert_eq!(back.contains(&format!("10.0.0.7 dev {dev}")), comes, "{back}");
    }
}
