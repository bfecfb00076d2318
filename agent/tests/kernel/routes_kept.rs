//! Routes, rules and next hop objects that documents have no words for: said when a step takes them, and put back when it
//! is undone.

use std::process::Command;
use std::time::{Duration, Instant};

use agent::checkpoint::Store;
use agent::kernel::{Kernel, Live};
use agent::netns::{Identity, Namespace};
use agent::transaction::{Manner, apply};
use serde_json::{Value, json};

use crate::ground::{Ground, run};

/// Fails at its very end, where the resolver's file can't be written ([`Ground::break_resolver`]).
const FAILS: &str = "dns-resolver: {config: {server: [10.0.0.53]}}\n";

/// What the model has no words for, each through the first card or from its address.
const ROUTES: [&str; 14] = [
    "nexthop add id 7 via 10.0.0.254 dev eth0",
    "nexthop add id 8 via 10.1.0.254 dev eth1",
    "nexthop add id 10 group 7,3/8,5",
    "route add 10.7.0.0/16 nhid 7",
    "route add 10.70.0.0/16 nhid 10",
    "-6 route add fd09::/32 from fd01::/32 via fd00::fe dev eth0",
    "-6 route add fd0a::/32 from fd01::/32 dev eth0 metric 77 table 300",
    "route add multicast 239.0.0.0/8 dev eth0",
    "route add throw 10.8.0.0/16 table 100",
    "route add local 10.10.0.0/24 dev eth0 table 200",
    "route add 10.11.0.0/24 dev eth0 proto kernel src 10.0.0.1",
    "route add 10.13.0.0/16 encap ip id 100 dst 10.0.0.9 dev eth0",
    "route add 10.12.0.0/16 via inet6 fd00::fe dev eth0",
    "route add 10.9.0.0/16 via 10.0.0.254 tos 0x10",
];

const RULES: [&str; 8] = [
    "rule add uidrange 1000-2000 lookup 100 priority 1000",
    "rule add ipproto tcp dport 80-90 lookup 101 priority 1001",
    "rule add tos 0x10 lookup 102 priority 1002",
    "rule add priority 1003 goto 6000",
    "rule add not from 10.0.0.0/24 lookup 103 priority 1004",
    "rule add from all lookup main suppress_ifgroup 5 priority 1005",
    "rule add oif eth0 lookup 104 priority 1006",
    "-6 rule add sport 53 lookup 105 priority 1007",
];

fn node() -> (Ground, Ground) {
    let (ground, far) = Ground::with_cards(2);
    for card in 0..2 {
        ground.ip(&format!("addr add 10.{card}.0.1/24 dev eth{card}"));
        ground.ip(&format!("addr add fd0{card}::1/64 dev eth{card} nodad"));
    }
    // The kernel's own routes come a little later.
    ground.wait_until("routes to its own addresses", || {
        let routes = ground.ip("-6 route show table local");
        (0..2).all(|card| routes.contains(&format!("local fd0{card}::1 ")))
    });
    (ground, far)
}

/// A dump with the next hop objects, in an order that doesn't tell when a route came.
fn whole(ground: &Ground) -> Vec<String> {
    let text = format!("{}{}", ground.dump(), ground.ip("nexthop"));
    let mut lines: Vec<String> = text.lines().map(|line| line.trim_end().to_owned()).collect();
    lines.sort();
    lines
}

/// What is gone, and what is new.
fn differ(before: &[String], after: &[String]) -> (Vec<String>, Vec<String>) {
    let only = |these: &[String], those: &[String]| -> Vec<String> {
        these.iter().filter(|line| !those.contains(line)).cloned().collect()
    };
    (only(before, after), only(after, before))
}

#[track_caller]
fn assert_same(before: &[String], after: &[String]) {
    let (gone, new) = differ(before, after);
    assert!(gone.is_empty() && new.is_empty(), "gone: {gone:#?}\nnew: {new:#?}");
}

#[track_caller]
fn undone(ground: &Ground, document: &str) {
    ground.break_resolver();
    let before = whole(ground);
    ground.apply(&format!("{document}{FAILS}")).fails_with("the host is as it was before");
    becomes(ground, &before);
}

/// The kernel's own routes to an address follow it a moment later, and its own addresses the card's carrier.
#[track_caller]
fn becomes(ground: &Ground, before: &[String]) {
    let end = Instant::now() + Duration::from_secs(10);
    while differ(before, &whole(ground)) != Default::default() && Instant::now() < end {
        std::thread::sleep(Duration::from_millis(10));
    }
    assert_same(before, &whole(ground));
}

/// Documents that take what is beyond them away, each in its own way.
const DOCUMENTS: [&str; 4] = [
    "interfaces: [{name: eth0, state: down}]\n",
    "interfaces: [{name: eth0, ipv4: {enabled: false}, ipv6: {enabled: false}}]\n",
    "interfaces: [{name: eth0, ipv4: {enabled: true, address: [{ip: 10.5.0.1, prefix-length: 24}]}}]\n",
    "interfaces: [{name: br0, type: linux-bridge, state: up, bridge: {port: [{name: eth0}]}}]\n",
];

#[test]
fn each_alone_is_put_back() {
    for line in ROUTES.iter().filter(|line| !line.contains("nhid") && !line.contains("nexthop")) {
        let (ground, _far) = node();
        ground.ip(line);
        for document in DOCUMENTS {
            undone(&ground, document);
        }
    }
}

#[test]
fn all_together_are_put_back() {
    let (ground, _far) = node();
    ROUTES.iter().chain(&RULES).for_each(|line| drop(ground.ip(line)));
    for document in DOCUMENTS {
        undone(&ground, document);
    }
    ground.shows_what_holds();
}

/// A document shows none of it, asks for none of it, and takes none of it away.
#[test]
fn no_document_speaks_of_them() {
    let (ground, _far) = node();
    let (shown, _) = (ground.show(), ROUTES.map(|line| ground.ip(line)));
    RULES.iter().for_each(|line| drop(ground.ip(line)));
    let before = whole(&ground);
    let then = ground.show();
    assert_eq!(shown["route-rules"], then["route-rules"]);
    let list = then["routes"]["running"].as_array().unwrap();
    let destinations: Vec<&str> = list.iter().map(|route| route["destination"].as_str().unwrap()).collect();
    // Those that are simple on the face of it.
    let simple = ["10.7.0.0/16", "10.12.0.0/16", "10.13.0.0/16", "10.70.0.0/16", "10.70.0.0/16"];
    let mut found = destinations.clone();
    found.sort_unstable_by_key(|net| net.parse::<ipnet::IpNet>().unwrap());
    assert_eq!(found, simple, "{then:#}");
    ground.shows_what_holds();
    assert_same(&before, &whole(&ground));
    // Another metric at their place touches none of them.
    let document = "routes: {config: [{destination: 10.9.0.0/16, next-hop-interface: eth0, next-hop-address: 10.0.0.9}]}";
    ground.apply(document).ok();
    ground.is_settled(document);
    let routes = ground.routes("-4");
    assert!(routes.contains(&"10.9.0.0/16 tos 0x10 via 10.0.0.254 dev eth0".to_owned()), "{routes:?}");
    assert!(routes.contains(&"10.9.0.0/16 via 10.0.0.9 dev eth0".to_owned()), "{routes:?}");
}

#[test]
fn a_plan_says_which_are_lost() {
    let (ground, _far) = node();
    ROUTES.iter().chain(&RULES).for_each(|line| drop(ground.ip(line)));
    let plan = ground.berth(&["plan", "-f", "-"], DOCUMENTS[0]).ok();
    let lost: Vec<&str> = plan.lines().filter_map(|line| line.strip_prefix("also lost: ")).collect();
    for words in [
        "next hop 7 via 10.0.0.254 dev eth0",
        "route fd09::/32 from fd01::/32 via fd00::fe dev eth0",
        "route fd0a::/32 from fd01::/32 dev eth0 metric 77 table 300",
        "route multicast 239.0.0.0/8 dev eth0",
        "route 10.11.0.0/24 dev eth0 proto kernel src 10.0.0.1",
    ] {
        assert!(lost.contains(&words), "{words}: {plan}");
    }
    // It needs no link, and one to the host itself outlasts a link that is down.
    assert!(!plan.contains("throw") && !plan.contains("rule") && !plan.contains("10.10.0.0"), "{plan}");
}

/// A change that takes a link down for a moment gives them back by itself.
#[test]
fn what_can_stay_stays() {
    let (ground, _far) = node();
    ground.ip("link add mv0 link eth1 type macvlan mode bridge");
    ground.ip("link set mv0 up");
    ground.ip("addr add 10.3.0.1/24 dev mv0");
    ground.ip("route add multicast 239.1.0.0/16 dev mv0");
    ground.ip("nexthop add id 7 via 10.3.0.254 dev mv0");
    ground.ip("route add 10.7.0.0/16 nhid 7");
    let before = ground.routes("-4");
    // Another mode is another link.
    let document =
        "interfaces: [{name: mv0, type: mac-vlan, state: up, mac-vlan: {base-iface: eth1, mode: private}}]";
    ground.apply(document).ok();
    assert_eq!(ground.routes("-4"), before);
}

/// Of two rules that the kernel can't tell apart when one is to go, the right one does.
#[test]
fn a_rule_that_says_more_is_not_deleted_for_one_that_says_less() {
    let (ground, _far) = node();
    ground.ip("rule add from 10.0.0.0/24 uidrange 1000-2000 lookup 100 priority 1000 protocol static");
    ground.ip("rule add not from 10.0.0.0/24 lookup 100 priority 1000 protocol static");
    let narrow = ground.ip("rule");
    ground.apply("route-rules: {config: [{ip-from: 10.0.0.0/24, route-table: 100, priority: 1000}]}").ok();
    let absent =
        "route-rules: {config: [{ip-from: 10.0.0.0/24, priority: 1000, route-table: 100, state: absent}]}\n";
    let before = ground.ip("rule");
    ground.break_resolver();
    ground.apply(&format!("{absent}{FAILS}")).fails_with("the host is as it was before");
    let sorted = |text: &str| -> Vec<String> {
        let mut lines: Vec<String> = text.lines().map(str::to_owned).collect();
        lines.sort();
        lines
    };
    assert_eq!(sorted(&ground.ip("rule")), sorted(&before));
    ground.apply(absent).ok();
    assert_eq!(sorted(&ground.ip("rule")), sorted(&narrow));
}

/// What a manager of networks adds beside an address that makes no route, and calls the kernel's.
#[test]
fn a_subnet_route_that_is_not_the_kernels() {
    let (ground, _far) = Ground::with_cards(1);
    ground.ip("addr add 10.0.0.1/24 dev eth0 noprefixroute");
    ground.ip("route add 10.0.0.0/24 dev eth0 proto kernel scope link src 10.0.0.1 metric 100");
    ground.ip("route add default via 10.0.0.254 dev eth0 proto dhcp metric 100");
    undone(&ground, "interfaces: [{name: eth0, state: down}]\n");
}

/// Routers' routes that a daemon added: the kernel doesn't hear routers here.
#[test]
fn a_daemons_router_route_comes_back_with_its_lifetime() {
    let (ground, _far) = node();
    ground.inside("echo 0 > /proc/sys/net/ipv6/conf/eth0/accept_ra").ok();
    ground.ip("-6 route add default via fe80::1 dev eth0 proto ra expires 3000");
    let document = format!("interfaces: [{{name: eth0, state: down}}]\n{FAILS}");
    ground.break_resolver();
    ground.apply(&document).fails_with("the host is as it was before");
    let route = ground.ip("-6 route show default");
    assert!(
        route.contains("proto ra") && route.contains("expires 2") || route.contains("expires 3000"),
        "{route}"
    );
}

/// What can't be put back is named, and nobody says that all is well.
#[test]
fn what_cant_be_put_back_is_named() {
    let (ground, far) = node();
    ground.ip("route add multicast 239.0.0.0/8 dev eth0");
    let namespace = Namespace::Named(ground.name.clone());
    let document = json!({"interfaces": [{"name": "eth0", "state": "down"}],
        "dns-resolver": {"config": {"server": ["10.0.0.53"]}}});
    ground.break_resolver();
    let work = || {
        let mut kernel = Pulled { live: Live::open(&namespace).unwrap(), far: Some(&far) };
        let store = Store::lock(&ground.state_dir, Identity::here().unwrap()).unwrap();
        let manner = Manner { verify: true, patience: Duration::from_secs(5) };
        apply(&mut kernel, &store, &document, manner, &mut |_| {}, &|| false).unwrap_err()
    };
    let agent::transaction::ApplyError::Failed { reverted, .. } = namespace.inside(work).unwrap() else {
        panic!("it can't be applied")
    };
    assert!(!reverted.is_complete());
    let lost: Vec<String> = reverted.lost.iter().map(ToString::to_string).collect();
    assert!(lost.iter().any(|line| line.starts_with("eth0 ")), "{lost:?}");
}

/// A kernel whose card is pulled out after the first step.
struct Pulled<'a> {
    live: Live,
    far: Option<&'a Ground>,
}

impl Kernel for Pulled<'_> {
    fn observe(&mut self) -> Result<agent::netlink::Observation, agent::kernel::KernelError> {
        self.live.observe()
    }

    fn apply(
        &mut self,
        steps: &[policy::plan::Step],
        progress: &mut dyn FnMut(usize) -> bool,
    ) -> Result<(), agent::netlink::StepFailed> {
        let applied = self.live.apply(steps, progress);
        if let Some(far) = self.far.take() {
            far.ip("link del far0");
        }
        applied
    }

    fn settle(&mut self, at_most: Duration) -> Result<(), agent::kernel::KernelError> {
        self.live.settle(at_most)
    }
}

const CHILD: &str = "BERTH_TEST_KEPT_KILLED_IN";

/// Killed with the link down: what the checkpoint holds is enough.
#[test]
fn recovery_puts_them_back_too() {
    let document: Value =
        json!({"interfaces": [{"name": "eth0", "state": "down"}, {"name": "eth1", "mtu": 1400}]});
    if let Ok(name) = std::env::var(CHILD) {
        let namespace = Namespace::Named(name.clone());
        let work = || {
            let mut kernel = Live::open(&namespace).unwrap();
            let before = kernel.observe().unwrap().state;
            let state_dir = std::env::temp_dir().join(&name);
            let store = Store::lock(&state_dir, Identity::here().unwrap()).unwrap();
            store.write(&before, &document).unwrap();
            let plan = policy::plan::plan_document(&before, &document).unwrap();
            kernel.apply(&plan.steps, &mut |_| true).unwrap();
        };
        return namespace.inside(work).unwrap();
    }
    let (ground, _far) = node();
    ROUTES.iter().chain(&RULES).for_each(|line| drop(ground.ip(line)));
    let before = whole(&ground);
    let mut child = Command::new(std::env::current_exe().unwrap());
    child.args(["--exact", "routes_kept::recovery_puts_them_back_too"]);
    run(child.env(CHILD, &ground.name), "").ok();
    assert_eq!(ground.checkpoints(), 1);
    assert!(!ground.ip("route").contains("multicast"), "it went with its link");
    ground.apply("interfaces: [{name: lo, state: up}]").ok();
    becomes(&ground, &before);
}

/// A bridge over the card that the default route leads through by a next hop object: the route goes along, the object
/// stays where it is.
#[test]
fn a_route_by_an_object_moves_to_the_bridge() {
    let (ground, _far) = node();
    ground.ip("nexthop add id 7 via 10.0.0.254 dev eth0");
    ground.ip("route add default nhid 7");
    ground.ip("nexthop add id 8 via fd00::fe dev eth0");
    ground.ip("-6 route add default nhid 8");
    let document = "interfaces:
- {name: br0, type: linux-bridge, state: up, bridge: {port: [{name: eth0}]},
   ipv4: {enabled: true, address: [{ip: 10.0.0.1, prefix-length: 24}]},
   ipv6: {enabled: true, address: [{ip: \"fd00::1\", prefix-length: 64}]}}
";
    ground.apply(document).ok();
    for (family, gateway) in [("-4", "10.0.0.254"), ("-6", "fd00::fe")] {
        let route = ground.ip(&format!("{family} route show default"));
        assert!(route.contains(&format!("via {gateway} dev br0")), "{route}");
    }
    assert_eq!(ground.apply(document).ok(), "nothing to do\n");
}
