//! Many interfaces: nothing to do is nothing done, and a change says no more than it must.

use crate::plan::plan;
use crate::state::{Address, Desired, IfName, Link, LinkKind, Observed};
use serde_json::{Value, json};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

const MANY: u16 = 500;

fn addresses(i: u16) -> (Ipv4Addr, Ipv6Addr) {
    let [high, low] = i.to_be_bytes();
    (Ipv4Addr::new(10, high, low, 1), Ipv6Addr::new(0x2001, 0xdb8, i, 0, 0, 0, 0, 1))
}

fn host(with_addresses: bool) -> Observed {
    let mut host = Observed::default();
    for i in 0..MANY {
        let mut link = Link::new(IfName::new(&format!("eth{i}")).expect("a name"), LinkKind::Ethernet);
        (link.up, link.mtu) = (true, Some(1500));
        if with_addresses {
            let (v4, v6) = addresses(i);
            link.ipv4.addresses.push(Address::new(IpAddr::V4(v4), 24));
            link.ipv6.addresses.push(Address::new(IpAddr::V6(v6), 64));
        }
        host.insert(link);
    }
    host
}

fn document() -> Desired {
    let links: Vec<Value> = (0..MANY)
        .map(|i| {
            let (v4, v6) = addresses(i);
            json!({
                "name": format!("eth{i}"), "type": "ethernet", "state": "up", "mtu": 1500,
                "ipv4": {"enabled": true, "dhcp": false, "address": [{"ip": v4.to_string(), "prefix-length": 24}]},
                "ipv6": {"enabled": true, "address": [{"ip": v6.to_string(), "prefix-length": 64}]},
            })
        })
        .collect();
    Desired::from_value(&json!({"interfaces": links})).expect("well-formed")
}

#[test]
fn five_hundred_that_hold_need_nothing() {
    assert!(plan(&host(true), &document()).expect("can be").is_empty());
}

#[test]
fn five_hundred_new_pairs_of_addresses_are_a_thousand_steps() {
    assert_eq!(plan(&host(false), &document()).expect("can be").len(), 2 * usize::from(MANY));
}

#[test]
fn one_change_among_five_hundred_is_one_step() {
    let mut host = host(true);
    host.links.values_mut().take(1).for_each(|l| l.mtu = Some(1400));
    let steps = plan(&host, &document()).expect("can be").steps;
    assert_eq!(steps.iter().map(ToString::to_string).collect::<Vec<_>>(), ["set mtu eth0 1500"]);
}

/// Thousands of addresses on one link, several to a subnet, or of routes through it: a pass over them, not one over each
/// for each of them (that took minutes).
#[test]
fn thousands_on_one_link() {
    let ip = |i: u32| Ipv4Addr::from(0x0a00_0000 + (i / 4) * 256 + i % 4 + 1).to_string();
    let list: Vec<Value> = (0..2000).map(|i| json!({"ip": ip(i), "prefix-length": 24})).collect();
    let routes: Vec<Value> = (0..2000u32)
        .map(|i| {
            let net = Ipv4Addr::from(0x0b00_0000 + i * 256);
            json!({"destination": format!("{net}/24"), "next-hop-interface": "eth0", "next-hop-address": "10.0.0.254"})
        })
        .collect();
    let document = json!({
        "interfaces": [{"name": "eth0", "ipv4": {"enabled": true, "address": list}}],
        "routes": {"config": routes},
    });
    let desired = Desired::from_value(&document).expect("well-formed");
    let mut host = host(false);
    let steps = plan(&host, &desired).expect("can be").steps;
    assert_eq!(steps.len(), 4000);
    for step in &steps {
        crate::plan::memory::apply(&mut host, step).expect("planned");
    }
    assert!(plan(&host, &desired).expect("can be").is_empty());
}
