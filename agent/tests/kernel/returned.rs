//! What comes back, stays or is said: files to the letter, MTUs of links that are not ours, routes of a bridge that goes,
//! addresses in an order that the kernel has, folders of namespaces that are gone.

use std::process::Command;

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use crate::dump::assert_same;
use crate::ground::{Ground, run};

/// A macvtap is nobody's but its owner's; the kernel shrinks it along with the card.
#[test]
fn a_link_of_an_unknown_kind_gets_its_mtu_back() {
    let (ground, _far) = Ground::with_cards(1);
    ground.ip("link add tap0 link eth0 type macvtap");
    ground.break_resolver();
    let before = ground.dump();
    let document = "{interfaces: [{name: eth0, mtu: 1400}], dns-resolver: {config: {server: [192.0.2.53]}}}";
    ground.apply(document).fails_with("the host is as it was before");
    assert_same(&before, &ground.dump(), "after the revert");
    // On the way forward it shrinks, as it would by anybody's hand.
    ground.apply("interfaces: [{name: eth0, mtu: 1400}]").ok();
    assert_eq!(ground.json("link show dev tap0")[0]["mtu"], 1400);
}

/// It goes with what it sits on, and nobody but its owner can make it again.
#[test]
fn a_link_of_an_unknown_kind_does_not_go_in_silence() {
    let (ground, _far) = Ground::with_cards(1);
    ground.ip("link add br0 type bridge");
    ground.ip("link add tap0 link br0 type macvtap");
    let before = ground.dump();
    ground
        .apply("interfaces: [{name: br0, state: absent}]")
        .fails_with("interfaces[0]: tap0 (macvtap) sits on br0 and goes with it");
    assert_same(&before, &ground.dump(), "after a refusal");
    let both = "interfaces: [{name: br0, state: absent}, {name: tap0, state: absent}]";
    let lost = "tap0 is gone, and a link of type macvtap is not Berth's to make";
    let plan = ground.berth(&["plan", "-f", "-"], both).ok();
    assert!(plan.contains(lost), "{plan}");
    ground.break_resolver();
    let fails = format!("{both}\ndns-resolver: {{config: {{server: [192.0.2.53]}}}}");
    let said = ground.apply(&fails).fails_with(lost);
    assert!(!said.contains("the host is as it was before"), "{said}");
    assert!(ground.ip("-br link").contains("br0"));
}

/// Not a line of it in another place.
#[test]
fn a_resolver_file_comes_back_to_the_letter() {
    let (ground, _far) = Ground::with_cards(1);
    ground.inside("echo 20 > /proc/sys/net/ipv6/conf/eth0/dad_transmits").ok();
    std::fs::create_dir_all(ground.resolv_conf().parent().unwrap()).unwrap();
    let text =
        "nameserver 192.0.2.1\n\n# by hand\n\tsearch a.example\nnameserver 192.0.2.2\noptions  ndots:2";
    std::fs::write(ground.resolv_conf(), text).unwrap();
    let document =
        "{interfaces: [{name: eth0, ipv6: {enabled: true, address: [{ip: 'fd00::1', prefix-length: 64}]}}],
        dns-resolver: {config: {server: [192.0.2.53]}}}";
    let child = ground.start_apply(document, &["--timeout", "60"]);
    let changed = || std::fs::read_to_string(ground.resolv_conf()).unwrap().contains("192.0.2.53");
    ground.wait_until("the file is another", changed);
    kill(Pid::from_raw(child.id().cast_signed()), Signal::SIGINT).unwrap();
    let output = child.wait_with_output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(said.contains("the host is as it was before"), "{said}");
    assert_eq!(std::fs::read_to_string(ground.resolv_conf()).unwrap(), text);
    ground.shows_what_holds();
}

/// The way out follows the address back from the bridge, as it followed it there.
#[test]
fn a_bridge_that_goes_leaves_the_way_out() {
    let (ground, _far) = Ground::with_cards(1);
    let bridged = "{interfaces: [{name: br0, type: linux-bridge, state: up, bridge: {port: [{name: eth0}]},
        ipv4: {enabled: true, address: [{ip: 10.0.0.1, prefix-length: 24}]}}],
        routes: {config: [{destination: 0.0.0.0/0, next-hop-interface: br0, next-hop-address: 10.0.0.254}]}}";
    ground.apply(bridged).ok();
    let back = "interfaces: [{name: br0, state: absent}, {name: eth0, state: up,
        ipv4: {enabled: true, address: [{ip: 10.0.0.1, prefix-length: 24}]}}]";
    let ran = ground.apply(back);
    assert!(!ran.stderr.contains("default route"), "{}", ran.stderr);
    ran.ok();
    assert_eq!(ground.routes("-4"), ["default via 10.0.0.254 dev eth0"]);
    ground.is_settled(back);
}

/// The kernel has addresses of a narrow scope first, whatever the order they come in.
#[test]
fn an_order_that_the_kernel_can_not_have_is_taken_for_the_one_it_has() {
    let (ground, _far) = Ground::with_cards(1);
    let document = "interfaces: [{name: eth0, ipv4: {enabled: true, address: [
        {ip: 10.0.0.1, prefix-length: 24}, {ip: 169.254.7.1, prefix-length: 16}, {ip: 10.1.0.1, prefix-length: 24}]},
        ipv6: {enabled: true, address: [{ip: 'fe80::7', prefix-length: 64}, {ip: 'fd00::1', prefix-length: 64}]}}]";
    ground.apply(document).ok();
    let listed = ground.ip("-4 -o addr show dev eth0");
    let at = |ip: &str| listed.find(ip).unwrap_or_else(|| panic!("{ip} is not in\n{listed}"));
    assert!(at("169.254.7.1") < at("10.0.0.1") && at("10.0.0.1") < at("10.1.0.1"), "{listed}");
    ground.is_settled(document);
    // Without it, and with it again: the others are left alone.
    let without = document.replace("{ip: 169.254.7.1, prefix-length: 16},", "");
    assert!(ground.apply(&without).ok().contains("1 step done"), "{listed}");
    assert!(ground.apply(document).ok().contains("1 step done"), "{listed}");
}

/// While a topology changes the kernel shows another ageing time than the one that is set.
#[test]
fn an_ageing_time_that_is_not_shown_is_not_missing() {
    let (ground, _far) = Ground::with_cards(1);
    let document = "interfaces: [{name: br0, type: linux-bridge, state: up, bridge: {port: [{name: eth0}],
        options: {mac-ageing-time: 300, stp: {enabled: true, forward-delay: 2, hello-time: 1, max-age: 6}}}}]";
    ground.apply(document).ok();
    let data = || ground.json("link show dev br0")[0]["linkinfo"]["info_data"].clone();
    ground.wait_until("the topology changes", || data()["topology_change"] == 1);
    let shown = data();
    assert_ne!(shown["ageing_time"], 30000, "this kernel shows what is set: {shown}");
    ground.is_settled(document);
    let show = ground.show().to_string();
    // It may be over by now, and then is shown.
    assert!(!show.contains("mac-ageing-time") || show.contains("\"mac-ageing-time\":300"), "{show}");
}

/// Who only looks is told as well: nothing can be applied before somebody has seen to it.
#[test]
fn a_damaged_checkpoint_is_said_by_those_who_look() {
    let (ground, _far) = Ground::with_cards(1);
    ground.apply("interfaces: [{name: eth0, mtu: 1400}]").ok();
    let folder = std::fs::read_dir(&ground.state_dir).unwrap().next().unwrap().unwrap().path();
    std::fs::write(folder.join("checkpoint.json"), "{\"form\": 1, \"identi").unwrap();
    for args in [&["show"][..], &["plan", "-f", "-"]] {
        let ran = ground.berth(args, "interfaces: []");
        assert!(
            ran.stderr.contains("is damaged") && ran.stderr.contains("checkpoint.json"),
            "{}",
            ran.stderr
        );
        ran.ok();
    }
    ground.apply("interfaces: [{name: eth0, mtu: 1500}]").fails_with("is damaged");
}

/// Namespaces come and go; what a command leaves of them on disk goes with the next one.
#[test]
fn folders_of_namespaces_that_are_gone_go_too() {
    let (ground, mut other) = Ground::with_cards(1);
    other.state_dir.clone_from(&ground.state_dir);
    let folders = || std::fs::read_dir(&ground.state_dir).unwrap().count();
    other.apply("interfaces: [{name: far0, mtu: 1400}]").ok();
    assert_eq!(folders(), 1);
    ground.apply("interfaces: [{name: eth0, mtu: 1400}]").ok();
    assert_eq!(folders(), 1, "the other one's is gone");
    // One that something is left to be done about stays, whoever comes.
    let folder = std::fs::read_dir(&ground.state_dir).unwrap().next().unwrap().unwrap().path();
    std::fs::write(folder.join("checkpoint.json"), "{}").unwrap();
    other.apply("interfaces: [{name: far0, mtu: 1300}]").ok();
    assert_eq!(folders(), 2);
    assert!(folder.join("checkpoint.json").exists());
}

fn bridge(ground: &Ground, line: &str) -> String {
    run(Command::new("bridge").args(["-n", &ground.name]).args(line.split_whitespace()), "").ok()
}

/// Who sets them means them to stay; the kernel forgets them whenever a link is down or has another hardware address.
#[test]
fn permanent_neighbours_outlast_a_change_and_a_revert() {
    let (ground, _far) = Ground::with_cards(1);
    ground.ip("addr add 10.0.0.1/24 dev eth0");
    ground.ip("-6 addr add fd00::1/64 dev eth0 nodad");
    ground.ip("neigh add 10.0.0.9 lladdr 02:00:00:00:00:09 dev eth0 nud permanent");
    ground.ip("-6 neigh add fd00::9 lladdr 02:00:00:00:00:09 dev eth0 nud permanent");
    let neighbours = || ground.ip("neigh show nud permanent") + &ground.ip("-6 neigh show nud permanent");
    let before = neighbours();
    assert!(before.contains("10.0.0.9") && before.contains("fd00::9"), "{before}");
    ground.shows_what_holds();
    let said = ground.apply("interfaces: [{name: eth0, mac-address: '02:00:00:00:01:01'}]").ok();
    assert!(said.contains("restore neighbour"), "{said}");
    assert_eq!(neighbours(), before);
    // A change of everything, undone.
    ground.break_resolver();
    let (all, document) = (
        ground.dump(),
        "{interfaces: [{name: br0, type: linux-bridge, state: up, bridge: {port: [{name: eth0}]},
        ipv4: {enabled: true, address: [{ip: 10.0.0.1, prefix-length: 24}]}}],
        dns-resolver: {config: {server: [192.0.2.53]}}}",
    );
    ground.apply(document).fails_with("the host is as it was before");
    assert_same(&all, &ground.dump(), "after the revert");
    // Down they are gone, and that is said.
    let ran = ground.berth(&["plan", "-f", "-"], "interfaces: [{name: eth0, state: down}]").ok();
    assert!(ran.contains("also lost") && ran.contains("neighbour 10.0.0.9"), "{ran}");
}

/// A tunnel made anew forwards as the old one did.
#[test]
fn forwarding_entries_outlast_a_tunnel_made_anew() {
    let (ground, _far) = Ground::with_cards(1);
    ground.ip("addr add 10.0.0.1/24 dev eth0");
    let document = "interfaces: [{name: vx0, type: vxlan, state: up,
        vxlan: {base-iface: eth0, id: 5, remote: 10.0.0.2, destination-port: 4789}}]";
    ground.apply(document).ok();
    bridge(&ground, "fdb append 00:00:00:00:00:00 dev vx0 dst 10.0.0.3");
    bridge(&ground, "fdb add 02:00:00:00:00:07 dev vx0 dst 10.0.0.4 permanent");
    bridge(&ground, "fdb add 02:00:00:00:00:08 dev vx0 dst 10.0.0.5 static");
    let entries = || {
        let text = bridge(&ground, "fdb show dev vx0");
        let mut lines: Vec<String> =
            text.lines().filter(|line| line.contains("dst")).map(str::to_owned).collect();
        lines.sort();
        lines
    };
    let before = entries();
    assert_eq!(before.len(), 4, "{before:?}");
    ground.is_settled(document);
    ground.apply(&document.replace("id: 5", "id: 6")).ok();
    assert_eq!(ground.json("link show dev vx0")[0]["linkinfo"]["info_data"]["id"], 6);
    assert_eq!(entries(), before);
    // Gone with the tunnel, and back with it.
    ground.break_resolver();
    let gone = "{interfaces: [{name: vx0, state: absent}], dns-resolver: {config: {server: [192.0.2.53]}}}";
    ground.apply(gone).fails_with("the host is as it was before");
    assert_eq!(entries(), before);
}

/// What a bridge knows of a port for good is back when the port is.
#[test]
fn static_entries_of_a_bridge_come_back_with_their_port() {
    let (ground, _far) = Ground::with_cards(2);
    let document = "interfaces: [{name: br0, type: linux-bridge, state: up, bridge: {port: [{name: eth0}, {name: eth1}]}}]";
    ground.apply(document).ok();
    bridge(&ground, "fdb add 02:00:00:00:00:11 dev eth0 master static");
    ground.break_resolver();
    let before = ground.dump();
    assert!(before.contains("02:00:00:00:00:11"), "{before}");
    ground.is_settled(document);
    let less = document.replace("{name: eth0}, ", "");
    let ran = ground.berth(&["plan", "-f", "-"], &less).ok();
    assert!(ran.contains("also lost") && ran.contains("forwarding entry 02:00:00:00:00:11"), "{ran}");
    let fails = format!("{less}\ndns-resolver: {{config: {{server: [192.0.2.53]}}}}");
    ground.apply(&fails).fails_with("the host is as it was before");
    ground.is_still(&crate::dump::lasting(&before), crate::dump::lasting, "after the revert");
}

/// Whatever of a bridge somebody set for good: entries of a port and its own, groups, proxied neighbours.
#[test]
fn permanent_entries_groups_and_proxies_of_a_bridge_come_back() {
    let (ground, _far) = Ground::with_cards(2);
    ground
        .apply("interfaces: [{name: br0, type: linux-bridge, state: up, bridge: {port: [{name: eth0}]}}]")
        .ok();
    bridge(&ground, "fdb add 02:00:00:00:00:11 dev eth0 master");
    bridge(&ground, "fdb add 02:00:00:00:00:12 dev br0 self");
    bridge(&ground, "mdb add dev br0 port eth0 grp 239.1.1.1 permanent");
    bridge(&ground, "mdb add dev br0 port eth0 grp 239.1.1.2 src 10.0.0.9 permanent");
    bridge(&ground, "mdb add dev br0 port eth0 grp ff15::7 permanent");
    ground.ip("addr add 10.0.0.1/24 dev br0");
    ground.ip("neigh add proxy 10.0.0.7 dev br0");
    ground.ip("neigh add proxy fd00::7 dev br0");
    ground.shows_what_holds();
    ground.break_resolver();
    let before = crate::dump::lasting(&ground.dump());
    for part in [
        "02:00:00:00:00:11",
        "02:00:00:00:00:12",
        "239.1.1.1",
        "src 10.0.0.9",
        "ff15::7",
        "10.0.0.7 dev br0 proxy",
    ] {
        assert!(before.contains(part), "{part} is not in {before}");
    }
    let plan = ground.berth(&["plan", "-f", "-"], "interfaces: [{name: br0, state: absent}]").ok();
    for part in
        ["forwarding entry 02:00:00:00:00:11", "multicast group 239.1.1.1", "neighbour proxy 10.0.0.7"]
    {
        assert!(plan.contains(part), "{part} is not in {plan}");
    }
    for change in ["name: br0, state: absent", "name: br0, state: down", "name: eth0, controller: ''"] {
        let fails = format!("interfaces: [{{{change}}}]\ndns-resolver: {{config: {{server: [192.0.2.53]}}}}");
        ground.apply(&fails).fails_with("the host is as it was before");
        ground.is_still(&before, crate::dump::lasting, change);
    }
}
