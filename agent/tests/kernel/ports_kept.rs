//! Flags of ports and attributes of links that documents have no words for: as before when a change is undone.

use serde_json::Value;

use crate::ground::Ground;

/// Fails at its very end, where the resolver's file can't be written ([`Ground::break_resolver`]).
const FAILS: &str = "dns-resolver: {config: {server: [10.0.0.53]}}\n";

/// What `ip` says of a link, without what a new one has by chance or time changes.
#[track_caller]
fn link(ground: &Ground, name: &str) -> Value {
    let mut link = ground.json(&format!("link show dev {name}"))[0].clone();
    for field in ["ifindex", "flags", "operstate", "promiscuity", "allmulti", "link_index", "linkmode"] {
        link.as_object_mut().unwrap().remove(field);
    }
    for section in ["info_data", "info_slave_data"] {
        let Some(data) = link["linkinfo"].get_mut(section) else { continue };
        // Clocks, and what the spanning tree has come to.
        let mutable = |key: &String| {
            ["timer", "state", "root", "id", "no", "used", "topology"].iter().any(|word| key.contains(word))
        };
        data.as_object_mut().unwrap().retain(|key, _| !mutable(key));
    }
    link
}

#[track_caller]
fn undone(ground: &Ground, document: &str, names: &[&str]) {
    let before: Vec<Value> = names.iter().map(|name| link(ground, name)).collect();
    ground.break_resolver();
    ground.apply(&format!("{document}{FAILS}")).fails_with("the host is as it was before");
    for (name, before) in names.iter().zip(before) {
        assert_eq!(link(ground, name), before, "{name}");
    }
}

#[test]
fn a_port_has_its_flags_again() {
    let (ground, _far) = Ground::with_cards(2);
    ground.ip("link add br0 type bridge");
    ground.ip("link set br0 up");
    ground.ip("link set eth0 master br0");
    ground.ip(
        "link set eth0 type bridge_slave isolated on learning off flood off mcast_flood off bcast_flood off \
         guard on root_block on fastleave on neigh_suppress on hairpin on cost 77 priority 9 proxy_arp on",
    );
    let names = ["eth0", "br0"];
    undone(
        &ground,
        "interfaces: [{name: br0, type: linux-bridge, bridge: {port: [{name: eth1}]}}]\n",
        &names,
    );
    undone(&ground, "interfaces: [{name: br0, type: linux-bridge, state: absent}]\n", &names);
    undone(&ground, "interfaces: [{name: eth0, controller: ''}]\n", &names);
    ground.shows_what_holds();
}

#[test]
fn a_bridge_that_is_made_again_is_the_same() {
    let (ground, _far) = Ground::with_cards(1);
    ground.ip("link add br0 txqueuelen 77 type bridge mcast_stats_enabled 1 mcast_igmp_version 3 mcast_mld_version 2");
    ground.ip("link set br0 group 9");
    ground.ip("link set br0 up");
    undone(&ground, "interfaces: [{name: br0, type: linux-bridge, state: absent}]\n", &["br0"]);
}

#[test]
fn links_on_others_that_are_made_again_are_the_same() {
    let (ground, _far) = Ground::with_cards(1);
    ground.ip("addr add 10.0.0.1/24 dev eth0");
    ground.ip(
        "link add vx0 txqueuelen 55 type vxlan id 7 dev eth0 local 10.0.0.1 dstport 4789 ttl 5 tos 0x10 nolearning \
         ageing 77 maxaddress 9 srcport 1000 2000 udpcsum df set proxy",
    );
    ground.ip("link add mv0 link eth0 txqueuelen 66 type macvlan mode source bcqueuelen 500");
    ground.ip("link set mv0 type macvlan macaddr add 02:00:00:00:00:01");
    ground.ip("link set mv0 type macvlan macaddr add 02:00:00:00:00:02");
    ground.ip("link add va0 txqueuelen 88 type veth peer name vb0 txqueuelen 99");
    ground.ip("link set vb0 group 5");
    for (name, kind, all) in [
        ("vx0", "vxlan", &["vx0"][..]),
        ("mv0", "mac-vlan", &["mv0"][..]),
        ("va0", "veth", &["va0", "vb0"][..]),
    ] {
        undone(&ground, &format!("interfaces: [{{name: {name}, type: {kind}, state: absent}}]\n"), all);
    }
}

/// Flags, numbers of queues and sizes of segments, which `ip -d link` has all of.
#[test]
fn a_pair_that_is_made_again_has_its_flags_and_queues() {
    let (ground, _far) = Ground::with_cards(1);
    ground.ip("link add va0 numtxqueues 3 numrxqueues 5 gso_max_size 40000 gso_max_segs 77 type veth peer name vb0 numtxqueues 4 numrxqueues 4");
    ground.ip("link set va0 arp off multicast off allmulticast on");
    ground.ip("link set vb0 gro_max_size 30000 arp off");
    ground.ip("link set va0 up");
    ground.ip("link add br0 type bridge");
    ground.ip("link set br0 address 02:00:00:00:00:42 arp off allmulticast on gso_max_segs 99");
    ground.break_resolver();
    let before = crate::dump::lasting(&ground.dump());
    for part in
        ["NOARP,ALLMULTI", "numtxqueues 3", "gso_max_segs 77", "gro_max_size 30000", "gso_max_segs 99"]
    {
        assert!(before.contains(part), "{part} is not in {before}");
    }
    let document = "interfaces: [{name: va0, type: veth, state: absent}, {name: br0, type: linux-bridge, state: absent}]\n";
    ground.apply(&format!("{document}{FAILS}")).fails_with("the host is as it was before");
    ground.is_still(&before, crate::dump::lasting, "made again");
}

/// What nobody can give it again is said, there and back, and then the host is not as it was.
#[test]
fn a_link_that_is_made_again_without_its_queueing_discipline() {
    let (ground, _far) = Ground::with_cards(1);
    ground.ip("link add va0 type veth peer name vb0");
    ground.ip("link add vx0 type vxlan id 7 dev eth0 dstport 4789");
    for link in ["va0", "vb0", "vx0"] {
        ground.ip(&format!("link set {link} up"));
        ground.inside(&format!("tc qdisc add dev {link} root pfifo limit 77")).ok();
    }
    let anew = "interfaces: [{name: vx0, type: vxlan, state: up, vxlan: {id: 8, base-iface: eth0}}]";
    let plan = ground.berth(&["plan", "-f", "-"], anew).ok();
    assert!(plan.contains("vx0 is made again, without its queueing discipline pfifo"), "{plan}");
    ground.break_resolver();
    let away = "interfaces: [{name: va0, type: veth, state: absent}]\n";
    let said = ground
        .apply(&format!("{away}{FAILS}"))
        .fails_with("va0 is made again, without its queueing discipline pfifo");
    assert!(said.contains("vb0 is made again, without its queueing discipline pfifo"), "{said}");
    assert!(!said.contains("the host is as it was before"), "{said}");
}

/// One that has to be made anew for what is asked keeps the rest too.
#[test]
fn a_vxlan_that_changes_its_id_keeps_the_rest() {
    let (ground, _far) = Ground::with_cards(1);
    ground.ip("link add vx0 txqueuelen 55 type vxlan id 7 dev eth0 dstport 4789 ttl 5 ageing 77");
    ground.ip("link set vx0 up");
    let document = "interfaces: [{name: vx0, type: vxlan, state: up, vxlan: {id: 8, base-iface: eth0}}]";
    ground.apply(document).ok();
    let link = &ground.json("link show dev vx0")[0];
    let data = &link["linkinfo"]["info_data"];
    assert_eq!((&data["id"], &data["ttl"], &data["ageing"]), (&8.into(), &5.into(), &77.into()), "{link}");
    assert_eq!(link["txqlen"], 55, "{link}");
}

/// A link that the kernel won't have with all it had comes without, and what it lacks is named.
#[test]
fn what_a_kernel_refuses_is_no_reason_for_no_link() {
    use agent::checkpoint::Store;
    use agent::kernel::{Kernel, Live};
    use agent::netns::{Identity, Namespace};

    let (ground, _far) = Ground::with_cards(1);
    ground.ip("link add vx0 type vxlan id 7 dev eth0 dstport 4789 ttl 5");
    let namespace = Namespace::Named(ground.name.clone());
    let cut_off = || {
        let mut before = Live::open(&namespace).unwrap().observe().unwrap().state;
        // A flag with something in it: nothing that this kernel takes.
        before.links.get_mut("vx0").unwrap().kind_attributes.push((28, vec![1]));
        let store = Store::lock(&ground.state_dir, Identity::here().unwrap()).unwrap();
        let document =
            serde_json::json!({"interfaces": [{"name": "vx0", "type": "vxlan", "state": "absent"}]});
        store.write(&before, &document).unwrap();
    };
    namespace.inside(cut_off).unwrap();
    ground.ip("link del vx0");
    let said =
        ground.apply("interfaces: [{name: lo, state: up}]").fails_with("NOT all of it could be put back");
    assert!(said.contains("restore link vx0 attributes as a vxlan"), "{said}");
    assert_eq!(link(&ground, "vx0")["linkinfo"]["info_data"]["port"], 4789);
}
