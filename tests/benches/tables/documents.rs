//! A host with many interfaces, as documents: 50 cards, nine VLANs on each, an address on every one.

use serde_json::{Value, json};

pub(crate) const INTERFACES: usize = 500;
const PER_CARD: usize = 10;

/// The n-th interface's name: every tenth is a card, the nine behind it are VLANs on it.
pub(crate) fn name(n: usize) -> String {
    let card = n / PER_CARD;
    match n % PER_CARD {
        0 => format!("eth{card}"),
        vlan => format!("eth{card}.{vlan}"),
    }
}

pub(crate) fn address(n: usize) -> String {
    format!("10.{}.{}.1", n / 250, n % 250)
}

pub(crate) fn is_card(n: usize) -> bool {
    n.is_multiple_of(PER_CARD)
}

/// One interface as nmstate writes it.
pub(crate) fn interface(n: usize, mtu: u32, addresses: &[Value]) -> Value {
    let mut link = json!({
        "name": name(n),
        "type": if is_card(n) { "ethernet" } else { "vlan" },
        "state": "up",
        "mtu": mtu,
        "ipv4": {"enabled": true, "dhcp": false, "address": addresses},
        "ipv6": {"enabled": false},
    });
    if is_card(n) {
        link["mac-address"] = json!(mac(n));
    } else {
        link["vlan"] = json!({"base-iface": name(n - n % PER_CARD), "id": n % PER_CARD});
    }
    link
}

pub(crate) fn mac(n: usize) -> String {
    format!("02:00:00:00:{:02X}:{:02X}", n / 256, n % 256)
}

pub(crate) fn static_address(n: usize) -> Value {
    json!({"ip": address(n), "prefix-length": 24})
}

/// What such a host has: the interfaces, and a route through each.
pub(crate) fn state() -> Value {
    let interfaces: Vec<Value> = (0..INTERFACES).map(|n| interface(n, 1500, &[static_address(n)])).collect();
    let routes = routes();
    json!({
        "interfaces": interfaces,
        "routes": {"running": routes, "config": routes},
    })
}

pub(crate) fn routes() -> Vec<Value> {
    let behind = |n: usize| {
        json!({
            "destination": format!("172.{}.{}.0/24", 16 + n / 250, n % 250),
            "next-hop-interface": name(n),
            "next-hop-address": format!("10.{}.{}.254", n / 250, n % 250),
            "table-id": 254,
        })
    };
    let default = json!({
        "destination": "0.0.0.0/0",
        "next-hop-interface": name(0),
        "next-hop-address": "10.0.0.254",
        "table-id": 254,
    });
    std::iter::once(default).chain((0..INTERFACES).map(behind)).collect()
}
