//! Addresses and routes of others, as they really come: leases beside static ones, and a router that advertises.

use std::net::{Ipv6Addr, SocketAddrV6, UdpSocket};

use agent::netns::Namespace;
use nix::sys::socket::{AddressFamily, SockFlag, SockProtocol, SockType, setsockopt, socket, sockopt};
use serde_json::Value;

use crate::ground::Ground;

/// The link-local address of a link, once it may be used.
fn link_local(ground: &Ground, link: &str) -> Ipv6Addr {
    let find = || {
        let all = ground.json(&format!("-6 addr show dev {link}"));
        let list = all[0]["addr_info"].as_array().cloned().unwrap_or_default();
        let usable = |a: &&Value| a["scope"] == "link" && a.get("tentative").is_none();
        list.iter().find(usable).map(|a| a["local"].as_str().unwrap().parse().unwrap())
    };
    ground.wait_until("it has a link-local address", || find().is_some());
    find().unwrap()
}

/// A router advertisement (RFC 4861) from `far0` to the host behind it: a default router, and a prefix to make addresses of.
fn advertise(ground: &Ground, far: &Ground) {
    let to = link_local(ground, "eth0");
    link_local(far, "far0");
    let index = u32::try_from(far.json("link show dev far0")[0]["ifindex"].as_u64().unwrap()).unwrap();
    let prefix: Ipv6Addr = "fd00:aa::".parse().unwrap();
    // Type, code, checksum (the kernel's), hop limit, flags, the router's lifetime; two timers that are not said.
    let mut message = vec![134, 0, 0, 0, 64, 0];
    message.extend(1800u16.to_be_bytes());
    message.extend([0; 8]);
    // The prefix: 64 bits, on the link and for addresses, valid and preferred so long.
    message.extend([3, 4, 64, 0xc0]);
    message.extend(3600u32.to_be_bytes());
    message.extend(1800u32.to_be_bytes());
    message.extend([0; 4]);
    message.extend(prefix.octets());
    let send = || {
        let socket =
            socket(AddressFamily::Inet6, SockType::Raw, SockFlag::SOCK_CLOEXEC, SockProtocol::IcmpV6)
                .unwrap();
        // From further away it is nobody's router.
        setsockopt(&socket, sockopt::Ipv6Ttl, &255).unwrap();
        // Where the standard library has no word for it, one that can send to an address does.
        UdpSocket::from(socket).send_to(&message, SocketAddrV6::new(to, 0, 0, index)).unwrap();
    };
    Namespace::Named(far.name.clone()).inside(send).unwrap();
    ground.wait_until("the advertisement has come, and its address is probed", || {
        let addresses = ground.ip("-6 addr show dev eth0");
        let made = addresses.contains("fd00:aa:") && !addresses.contains("tentative");
        made && default_route(ground).contains("proto ra")
    });
}

fn default_route(ground: &Ground) -> String {
    ground.ip("-6 route show default")
}

/// Addresses of a link with how long they have: `forever`, or not.
fn lifetimes(ground: &Ground) -> Vec<(String, bool)> {
    let all = ground.json("addr show dev eth0");
    let list = all[0]["addr_info"].as_array().unwrap();
    let forever = |a: &Value| a["valid_life_time"].as_u64() == Some(u64::from(u32::MAX));
    list.iter()
        .filter(|a| a["scope"] != "link")
        .map(|a| (a["local"].as_str().unwrap().to_owned(), forever(a)))
        .collect()
}

#[test]
fn a_router_that_advertises() {
    let (ground, far) = Ground::with_cards(1);
    far.inside("echo 1 > /proc/sys/net/ipv6/conf/far0/forwarding").ok();
    advertise(&ground, &far);
    let eth0 = || {
        let state = ground.show();
        state["interfaces"].as_array().unwrap().iter().find(|link| link["name"] == "eth0").cloned().unwrap()
    };
    assert_eq!(eth0()["ipv6"]["autoconf"], true, "{}", eth0());
    let before = ground.dump();
    ground.shows_what_holds();
    crate::dump::assert_same(&before, &ground.dump(), "asked for what is shown");
    // A static address beside it, and away again: neither its address nor its route is anybody else's business.
    let made = lifetimes(&ground);
    let document = "interfaces: [{name: eth0, mtu: 1400, ipv6: {enabled: true, address: [{ip: 'fd00::5', prefix-length: 64}]}}]";
    ground.apply(document).ok();
    ground.is_settled(document);
    assert!(lifetimes(&ground).contains(&("fd00::5".to_owned(), true)));
    assert!(made.iter().all(|one| lifetimes(&ground).contains(one)), "{:?}", lifetimes(&ground));
    assert!(default_route(&ground).contains("proto ra"), "{}", default_route(&ground));
    ground.apply("interfaces: [{name: eth0, ipv6: {enabled: true, address: []}}]").ok();
    assert_eq!(lifetimes(&ground), made);
    assert!(default_route(&ground).contains("proto ra"), "{}", default_route(&ground));
}

/// As a DHCP client leaves it: an address with an end, beside one without.
#[test]
fn a_static_address_beside_a_lease() {
    let (ground, _far) = Ground::with_cards(1);
    ground.ip("addr add 10.0.0.7/24 dev eth0 valid_lft 3600 preferred_lft 1800");
    ground.ip("route add default via 10.0.0.254 proto dhcp src 10.0.0.7");
    ground.ip("addr add 10.1.0.1/24 dev eth0");
    let before = ground.dump();
    ground.shows_what_holds();
    crate::dump::assert_same(&before, &ground.dump(), "asked for what is shown");
    let document = "interfaces: [{name: eth0, ipv4: {enabled: true, dhcp: true, address: [{ip: 10.2.0.1, prefix-length: 24}]}}]";
    let said = ground.apply(document);
    assert_eq!(said.code, 0, "{said:?}");
    let has = lifetimes(&ground);
    assert!(
        has.contains(&("10.0.0.7".to_owned(), false)) && has.contains(&("10.2.0.1".to_owned(), true)),
        "{has:?}"
    );
    assert!(
        ground.routes("-4").iter().any(|route| route.contains("proto dhcp")),
        "{:?}",
        ground.routes("-4")
    );
}
