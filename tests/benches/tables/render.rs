//! Rendering on a host with 500 interfaces.
//!
//! Baseline: a copy of the same desired state, the least that a renderer which returns a new document can
//! do. The rest is parsing the captures, looking them up, finding references, and types.

use std::collections::BTreeMap;
use std::hint::black_box;

use berth_tests::bench::{Row, measure, print};
use ipnet::IpNet;
use policy::capture::{Cached, Granted, Grants};
use policy::template::{PolicyDoc, render};
use serde_json::{Value, json};

use crate::documents::{INTERFACES, address, interface, mac, state, static_address};

pub(crate) fn run() {
    let current = state();
    let none = Grants::new();
    let literal = policy(BTreeMap::new(), static_address);
    let copy = measure("a copy of the desired state, 500 interfaces", |_| {
        black_box(black_box(&literal.desired_state).clone());
    });
    let rows = [
        rendering("render, nothing to fill in", &literal, &current, &none),
        rendering("render, 6 captures, one short interface", &bridge(), &current, &none),
        rendering("render, 500 references to one capture", &looked_up(), &current, &none),
        rendering("render, 500 captures by MAC, one per interface", &by_mac(), &current, &none),
        rendering("render, 500 pool captures, one per interface", &pooled(), &current, &grants()),
    ];
    let rows: Vec<Row> =
        std::iter::once(copy.clone()).chain(rows.into_iter().map(|row| row.against(&copy))).collect();
    print("render", &rows);
}

fn rendering(name: &str, policy: &PolicyDoc, current: &Value, grants: &Grants) -> Row {
    let cached = Cached::new();
    measure(name, |_| {
        black_box(render(black_box(policy), current, &cached, grants).expect("it renders"));
    })
}

/// 500 interfaces, each with an address that `address` writes.
fn policy(capture: BTreeMap<String, String>, address: impl Fn(usize) -> Value) -> PolicyDoc {
    let interfaces: Vec<Value> = (0..INTERFACES).map(|n| interface(n, 9000, &[address(n)])).collect();
    PolicyDoc { capture, desired_state: json!({"interfaces": interfaces}) }
}

/// The classic: a bridge over whichever card has the default route.
fn bridge() -> PolicyDoc {
    let default = "capture.default-gw.routes.running.0.next-hop-interface";
    let capture = [
        ("default-gw", "routes.running.destination==\"0.0.0.0/0\"".to_owned()),
        ("base", format!("interfaces.name=={default}")),
        ("routes", format!("routes.running.next-hop-interface=={default}")),
        ("moved", "capture.routes | routes.running.next-hop-interface:=\"br1\"".to_owned()),
        ("gone", "capture.routes | routes.running.state:=\"absent\"".to_owned()),
        ("all", "capture.moved".to_owned()),
    ];
    let desired_state = json!({
        "interfaces": [{
            "name": "br1",
            "type": "linux-bridge",
            "state": "up",
            "ipv4": "{{ capture.base.interfaces.0.ipv4 }}",
            "bridge": {"port": [{"name": "{{ capture.base.interfaces.0.name }}"}]},
        }],
        "routes": {"config": "{{ capture.moved.routes.running }}"},
    });
    PolicyDoc { capture: capture.map(|(name, line)| (name.to_owned(), line)).into(), desired_state }
}

fn looked_up() -> PolicyDoc {
    let capture = BTreeMap::from([("first".to_owned(), format!("interfaces.mac-address==\"{}\"", mac(0)))]);
    policy(capture, |_| {
        json!({
            "ip": "{{ capture.first.interfaces.0.ipv4.address.0.ip }}",
            "prefix-length": "{{ capture.first.interfaces.0.ipv4.address.0.prefix-length }}",
        })
    })
}

fn by_mac() -> PolicyDoc {
    let capture = (0..INTERFACES)
        .map(|n| {
            // Every capture looks through all interfaces; only cards have a MAC of their own here.
            let line = format!("interfaces.mac-address==\"{}\"", mac(n - n % 10));
            (format!("nic-{n}"), line)
        })
        .collect();
    policy(capture, |n| {
        json!({
            "ip": format!("{{{{ capture.nic-{n}.interfaces.0.ipv4.address.0.ip }}}}"),
            "prefix-length": format!("{{{{ capture.nic-{n}.interfaces.0.ipv4.address.0.prefix-length }}}}"),
        })
    })
}

fn pooled() -> PolicyDoc {
    let capture =
        (0..INTERFACES).map(|n| (format!("address-{n}"), "ippool.traffic-1.allocate".to_owned())).collect();
    policy(capture, |n| {
        json!({
            "ip": format!("{{{{ capture.address-{n}.ip }}}}"),
            "prefix-length": format!("{{{{ capture.address-{n}.prefix-length }}}}"),
        })
    })
}

fn grants() -> Grants {
    let granted = |n: usize| {
        let address: IpNet = format!("{}/16", address(n)).parse().expect("an address");
        (format!("address-{n}"), Granted::single(address))
    };
    (0..INTERFACES).map(granted).collect()
}
