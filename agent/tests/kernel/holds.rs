//! What must hold whatever is asked for.

use std::process::Command;

use serde_json::{Value, json};

use crate::dump::{assert_same, without};
use crate::ground::{Ground, berth, run};

/// A link that the change itself sets up has no carrier at first: its addresses are asked for when it has.
#[test]
fn a_carrier_that_comes_late_is_awaited() {
    let (ground, far) = Ground::with_cards(1);
    ground.ip("link set eth0 down");
    far.ip("link set far0 down");
    far.ip("addr add fd00::1/64 dev far0 nodad");
    // The other end is not ready for the first question.
    ground.inside("echo 10 > /proc/sys/net/ipv6/conf/eth0/dad_transmits").ok();
    let document = "interfaces: [{name: eth0, state: up, ipv6: {enabled: true, address: [{ip: 'fd00::1', prefix-length: 64}]}}]";
    let child = ground.start_apply(document, &["--timeout", "60"]);
    ground.wait_until("eth0 has the address", || ground.ip("-6 addr show dev eth0").contains("fd00::1/64"));
    far.ip("link set far0 up");
    let output = child.wait_with_output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(said.contains("duplicate address detection failed on eth0"), "{said}");
    assert!(said.contains("the host is as it was before"), "{said}");
}

/// Without a carrier to the end nothing can be asked, and nothing is wrong. Nor is there anything to wait for where no
/// carrier can come.
#[test]
fn no_carrier_is_no_failure() {
    let (ground, far) = Ground::with_cards(1);
    ground.ip("link set eth0 down");
    far.ip("link set far0 down");
    let up = "interfaces: [{name: eth0, state: up, ipv6: {enabled: true, address: [{ip: 'fd00::1', prefix-length: 64}]}}]";
    ground.berth(&["apply", "-f", "-", "--timeout", "1"], up).ok();
    let bridge = "interfaces: [{name: br0, type: linux-bridge, state: up, ipv6: {enabled: true, address: [{ip: 'fd01::1', prefix-length: 64}]}}]";
    let begun = std::time::Instant::now();
    ground.berth(&["apply", "-f", "-", "--timeout", "600"], bridge).ok();
    assert!(begun.elapsed().as_secs() < 60, "a bridge without ports has nothing to wait for");
}

#[test]
fn interfaces_not_named_are_untouched() {
    let (ground, _far) = Ground::with_cards(3);
    ground.ip("addr add 10.1.0.1/24 dev eth1");
    ground.ip("addr add 10.1.0.2/24 dev eth1");
    ground.ip("addr add fd01::1/64 dev eth1 nodad");
    ground.ip("route add 10.9.0.0/16 via 10.1.0.254 mtu 1300");
    ground.ip("rule add from 10.1.0.0/24 lookup 77 priority 50");
    ground.ip("link add br7 type bridge");
    ground.ip("link set eth2 master br7");
    ground.ip("-6 route add fd09::/32 via fd01::fe dev eth1");
    ground.ip("-6 rule add from fd01::/64 lookup 77 priority 50");
    ground.ip("route add 10.7.0.0/16 via 10.1.0.254 table 77");
    ground.inside("bridge fdb add 02:00:00:00:00:99 dev eth2 master static").ok();
    let others = || without(&ground.dump_whole(), &["eth0"]);
    let before = others();
    for part in ["table 77", "02:00:00:00:00:99 dev eth2", "eth1 rp_filter", "fd09::/32", "master br7"] {
        assert!(before.contains(part), "{part} is not in\n{before}");
    }
    let document = "
interfaces: [{name: eth0, mtu: 1300, ipv4: {enabled: true, address: [{ip: 10.0.0.1, prefix-length: 24}]}}]
routes: {config: [{destination: 10.8.0.0/16, next-hop-address: 10.0.0.254, next-hop-interface: eth0}]}
";
    ground.apply(document).ok();
    assert_same(&before, &others(), "beside a change of eth0");
}

/// Whatever the host does with secondaries whose primary goes.
#[test]
fn the_first_address_listed_is_the_primary_one() {
    for promote in ["0", "1"] {
        primary_first(promote);
    }
}

fn primary_first(promote: &str) {
    let (ground, _far) = Ground::with_cards(1);
    ground.inside(&format!("echo {promote} > /proc/sys/net/ipv4/conf/eth0/promote_secondaries")).ok();
    ground.ip("addr add 10.0.0.10/24 dev eth0");
    let list = |ips: &[&str]| {
        let list: Vec<Value> = ips.iter().map(|ip| json!({"ip": ip, "prefix-length": 24})).collect();
        json!({"interfaces": [{"name": "eth0", "ipv4": {"enabled": true, "address": list}}]}).to_string()
    };
    for ips in [&["10.0.0.20", "10.0.0.10"][..], &["10.0.0.10", "10.0.0.30", "10.0.0.20"], &["10.0.0.30"]] {
        ground.apply(&list(ips)).ok();
        let wanted: Vec<String> = ips.iter().map(|ip| format!("{ip}/24")).collect();
        assert_eq!(ground.addresses("eth0", "inet"), wanted);
        assert!(ground.ip("route get 10.0.0.99").contains(&format!("src {}", ips[0])));
        ground.is_settled(&list(ips));
    }
}

#[test]
fn ipv6_addresses_keep_the_order_they_are_listed_in() {
    let (ground, _far) = Ground::with_cards(1);
    let list = |ips: &[&str]| {
        let list: Vec<Value> = ips.iter().map(|ip| json!({"ip": ip, "prefix-length": 64})).collect();
        json!({"interfaces": [{"name": "eth0", "ipv6": {"enabled": true, "address": list}}]}).to_string()
    };
    for ips in [&["fd00::1", "fd00::2"][..], &["fd00::2", "fd00::1"], &["fd00::3", "fd00::2", "fd00::1"]] {
        ground.apply(&list(ips)).ok();
        let wanted: Vec<String> = ips.iter().map(|ip| format!("{ip}/64")).collect();
        assert_eq!(ground.addresses("eth0", "inet6"), wanted);
        ground.is_settled(&list(ips));
    }
}

#[test]
fn a_prefix_changes_and_an_address_moves() {
    let (ground, _far) = Ground::with_cards(2);
    ground.ip("addr add 10.0.0.1/24 dev eth0");
    ground.ip("route add default via 10.0.0.254 proto static");
    let wider =
        "interfaces: [{name: eth0, ipv4: {enabled: true, address: [{ip: 10.0.0.1, prefix-length: 16}]}}]";
    ground.apply(wider).ok();
    assert_eq!(ground.addresses("eth0", "inet"), ["10.0.0.1/16"]);
    assert_eq!(ground.routes("-4"), ["default via 10.0.0.254 dev eth0"]);
    let moved = "
interfaces:
- {name: eth0, ipv4: {enabled: false}}
- {name: eth1, ipv4: {enabled: true, address: [{ip: 10.0.0.1, prefix-length: 24}]}}
routes: {config: [{destination: 0.0.0.0/0, next-hop-address: 10.0.0.254, next-hop-interface: eth1}]}
";
    ground.apply(moved).ok();
    assert_eq!(ground.addresses("eth1", "inet"), ["10.0.0.1/24"]);
    assert_eq!(ground.addresses("eth0", "inet"), [""; 0]);
    assert_eq!(ground.routes("-4"), ["default via 10.0.0.254 dev eth1"]);
    ground.is_settled(moved);
}

#[test]
fn absent_of_what_is_not_there_is_fine_and_both_ends_of_a_veth_go() {
    let ground = Ground::new();
    assert_eq!(
        ground.apply("interfaces: [{name: nope0, type: dummy, state: absent}]").ok(),
        "nothing to do\n"
    );
    ground.ip("link add va type veth peer name vb");
    ground.apply("interfaces: [{name: va, type: veth, state: absent}]").ok();
    assert!(!ground.ip("link").contains("va"));
}

/// What rests on a link goes with it, when a document says so.
#[test]
fn orphans_of_an_absent_parent_go() {
    let (ground, _far) = Ground::with_cards(1);
    ground.ip("link add br7 type bridge");
    ground.ip("link set eth0 master br7");
    ground.ip("link add link br7 name mv0 type macvlan mode bridge");
    ground.apply("interfaces: [{name: br7, type: linux-bridge, state: absent}]").ok();
    let links = ground.ip("-br link");
    assert!(!links.contains("br7") && !links.contains("mv0") && links.contains("eth0"), "{links}");
}

#[test]
fn an_ipv6_address_that_somebody_has_is_an_error_and_is_undone() {
    let (ground, far) = Ground::with_cards(1);
    far.ip("addr add fd00::1/64 dev far0 nodad");
    let before = ground.dump();
    let document =
        "interfaces: [{name: eth0, ipv6: {enabled: true, address: [{ip: 'fd00::1', prefix-length: 64}]}}]";
    let said = ground.apply(document).fails_with("duplicate address detection failed on eth0");
    assert!(said.contains("the host is as it was before"), "{said}");
    ground.is_as(&before);
    ground.apply(&document.replace("fd00::1", "fd00::2")).ok();
    // Awaited: usable as soon as apply is done.
    assert!(!ground.ip("-6 addr show dev eth0").contains("tentative"));
}

/// A link that comes up with it is waited for too: its probe begins when the wire is there.
#[test]
fn an_ipv6_address_that_somebody_has_is_an_error_on_a_link_that_comes_up() {
    let (ground, far) = Ground::with_cards(1);
    far.ip("addr add fd00::1/64 dev far0 nodad");
    let document = "interfaces: [{name: eth0, state: up, ipv6: {enabled: true, address: [{ip: 'fd00::1', prefix-length: 64}]}}]";
    for _ in 0..5 {
        ground.ip("link set eth0 down");
        ground.apply(document).fails_with("duplicate address detection failed on eth0");
    }
}

#[test]
fn five_hundred_interfaces() {
    let ground = Ground::new();
    let lines: String = (0..250).map(|n| format!("link add a{n} type veth peer name b{n}\n")).collect();
    run(Command::new("ip").args(["-n", &ground.name, "-batch", "-"]), &lines).ok();
    let links: Vec<Value> = (0..500)
        .map(|n| {
            let name = if n < 250 { format!("a{n}") } else { format!("b{}", n - 250) };
            let ip = format!("10.{}.{}.1", n / 250, n % 250);
            json!({"name": name, "mtu": 1400, "ipv4": {"enabled": true, "address": [{"ip": ip, "prefix-length": 24}]}})
        })
        .collect();
    let document = json!({"interfaces": links}).to_string();
    ground.apply(&document).ok();
    assert_eq!(ground.addresses("b249", "inet"), ["10.1.249.1/24"]);
    assert_eq!(ground.json("link show dev a77")[0]["mtu"], 1400);
    ground.is_settled(&document);
}

#[test]
fn without_the_right_a_clear_error_and_nothing_touched() {
    let (ground, _far) = Ground::with_cards(1);
    ground.ip("addr add 10.0.0.1/24 dev eth0");
    let before = ground.dump_whole();
    let mut command = Command::new("ip");
    command.args(["netns", "exec", &ground.name, "setpriv", "--reuid", "65534", "--regid", "65534"]);
    command.args(["--clear-groups", "--bounding-set=-all"]).arg(berth()).args(["apply", "-f", "-"]);
    let document = "interfaces: [{name: eth0, mtu: 1400, ipv4: {enabled: false}}]";
    let said = run(command.arg("--state-dir").arg(&ground.state_dir), document);
    said.fails_with("needs CAP_NET_ADMIN");
    assert_same(&before, &ground.dump_whole(), "without the right");
    assert!(!ground.state_dir.exists());
}

#[test]
fn a_dry_run_changes_nothing_and_a_wrong_document_neither() {
    let (ground, _far) = Ground::with_cards(1);
    let before = ground.dump();
    let document = "interfaces: [{name: eth0, mtu: 1400}]";
    let said = ground.berth(&["apply", "-f", "-", "--dry-run"], document).ok();
    assert!(said.contains("set mtu") && said.contains("nothing was changed"), "{said}");
    let live = ground.berth(&["plan", "-f", "-"], document).ok();
    assert!(said.starts_with(live.trim_end()), "{live}");
    ground
        .apply("interfaces: [{name: eth0, mtu: 1400, lldp: {enabled: true}}]")
        .fails_with("interfaces[0].lldp");
    ground.apply("interfaces: [{name: eth0, mtu: 100000}]").fails_with("interfaces[0].mtu");
    ground.is_as(&before);
    assert_eq!(ground.checkpoints(), 0);
}

/// On a terminal a line says where things stand; elsewhere there is nothing of it.
#[test]
fn progress_is_for_terminals() {
    let (ground, _far) = Ground::with_cards(1);
    let mut document = "interfaces: [{name: eth0, mtu: 1400, description: first}]".to_owned();
    let said = ground.apply(&document);
    assert_eq!(said.stderr, "");
    assert!(said.ok().contains("2 steps done and verified"));
    document = document.replace("first", "second");
    let line = format!(
        "echo '{document}' | {} apply -f - --netns {} --state-dir {}",
        berth().display(),
        ground.name,
        ground.state_dir.display()
    );
    let said = run(Command::new("script").args(["-qec", &line, "/dev/null"]), "").ok();
    for part in ["[0/1] set alias eth0 second", "[1/1]", "verifying", "1 step done and verified"] {
        assert!(said.contains(part), "{part:?} is not in {said:?}");
    }
}

#[test]
fn the_resolver_of_a_namespace_is_its_own() {
    let ground = Ground::new();
    let document = "dns-resolver: {config: {server: [10.0.0.53], search: [a.example]}}";
    ground.apply(document).ok();
    let text = std::fs::read_to_string(ground.resolv_conf()).unwrap();
    assert_eq!(text, "search a.example\nnameserver 10.0.0.53\n");
    ground.is_settled(document);
}
