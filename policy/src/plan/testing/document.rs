//! A desired document for a host.

use super::host::{address, destination};
use super::{CARDS, Dice, MADE};
use crate::state::{Address, Family, Observed};
use serde_json::{Map, Value, json};

pub(super) fn document(dice: &mut Dice<'_>, host: &Observed) -> Value {
    let mut links: Vec<(String, Value)> = Vec::new();
    for _ in 0..dice.roll(5) {
        let (name, kind) = match dice.once_in(2) {
            true => *dice.pick(&MADE),
            false => (*dice.pick(&CARDS), "ethernet"),
        };
        if !links.iter().any(|(n, _)| n == name) {
            let link = link(dice, host, name, kind);
            links.push((name.to_owned(), link));
        }
    }
    let interfaces: Vec<Value> = links.into_iter().map(|(_, link)| link).collect();
    let mut out = Map::new();
    out.insert("interfaces".into(), json!(interfaces));
    let routes: Vec<Value> = (0..dice.roll(4)).map(|_| route(dice, host, &interfaces)).collect();
    out.insert("routes".into(), json!({"config": routes}));
    let rules: Vec<Value> = (0..dice.roll(3)).map(|_| rule(dice)).collect();
    out.insert("route-rules".into(), json!({"config": rules}));
    if dice.once_in(4) {
        out.insert(
            "dns-resolver".into(),
            json!({"config": {"server": ["192.0.2.53"], "search": ["example.org"]}}),
        );
    }
    if dice.once_in(8) {
        out.insert("hostname".into(), json!({"config": "renamed"}));
    }
    Value::Object(out)
}

fn link(dice: &mut Dice<'_>, host: &Observed, name: &str, kind: &str) -> Value {
    let mut out = Map::new();
    out.insert("name".into(), json!(name));
    out.insert("type".into(), json!(kind));
    let state = *dice.pick(&["up", "up", "up", "up", "up", "absent", "down"]);
    out.insert("state".into(), json!(state));
    if state == "absent" {
        return Value::Object(out);
    }
    if dice.once_in(4) {
        out.insert("mtu".into(), json!(*dice.pick(&[1400, 1500, 9000])));
    }
    if dice.once_in(6) {
        let last = dice.roll(4);
        out.insert("mac-address".into(), json!(format!("02:00:00:00:01:{last:02}")));
    }
    if dice.once_in(6) {
        out.insert("description".into(), json!(*dice.pick(&["", "uplink", "storage"])));
    }
    if let Some((key, section)) = section(dice, host, kind, name) {
        out.insert(key.into(), section);
    }
    for family in Family::BOTH {
        if dice.once_in(2) {
            out.insert(family.as_str().into(), ip(dice, family));
        }
    }
    Value::Object(out)
}

fn base(dice: &mut Dice<'_>) -> &'static str {
    const BASES: [&str; 6] = ["eth0", "eth1", "eth2", "eth3", "bond0", "br0"];
    BASES[dice.roll(BASES.len())]
}

fn ports(dice: &mut Dice<'_>) -> Vec<&'static str> {
    let mut names: Vec<&str> = Vec::new();
    for _ in 0..dice.roll(3) {
        let name = *dice.pick(&["eth0", "eth1", "eth2", "eth3", "vlan10", "dummy0"]);
        if !names.contains(&name) {
            names.push(name);
        }
    }
    names
}

fn section(dice: &mut Dice<'_>, host: &Observed, kind: &str, name: &str) -> Option<(&'static str, Value)> {
    // A link that is there may be left as it is made.
    if host.link(name).is_some() && dice.once_in(2) {
        return None;
    }
    let section = match kind {
        "linux-bridge" => {
            let port = |dice: &mut Dice<'_>, name: &str| match dice.roll(4) {
                0 => json!({"name": name, "vlan": {"mode": "access", "tag": 10 + dice.roll(2)}}),
                1 => json!({"name": name, "vlan": {}}),
                2 => json!({"name": name, "stp-path-cost": 100 + dice.roll(2),
                            "vlan": {"mode": "trunk", "trunk-tags": [{"id-range": {"min": 2, "max": 4094}}]}}),
                _ => json!({"name": name}),
            };
            let ports: Vec<_> = ports(dice).into_iter().map(|p| port(dice, p)).collect();
            ("bridge", json!({"options": {"stp": {"enabled": dice.once_in(2)}}, "port": ports}))
        }
        "bond" => {
            let mode = *dice.pick(&["active-backup", "802.3ad"]);
            let options = match mode {
                "802.3ad" => json!({"miimon": 100, "lacp_rate": *dice.pick(&["slow", "fast"])}),
                _ => json!({"miimon": *dice.pick(&[100, 140])}),
            };
            ("link-aggregation", json!({"mode": mode, "options": options, "port": ports(dice)}))
        }
        "vlan" => {
            let usual = if name == "vlan10" { 10 } else { 20 };
            let id = if dice.once_in(5) { 30 } else { usual };
            ("vlan", json!({"base-iface": base(dice), "id": id}))
        }
        "mac-vlan" => {
            ("mac-vlan", json!({"base-iface": base(dice), "mode": *dice.pick(&["bridge", "vepa"])}))
        }
        "vrf" => ("vrf", json!({"route-table-id": 1000, "port": ports(dice)})),
        "veth" => ("veth", json!({"peer": "vb0"})),
        _ => return None,
    };
    Some(section)
}

fn ip(dice: &mut Dice<'_>, family: Family) -> Value {
    if dice.once_in(6) {
        return json!({"enabled": false});
    }
    let mut list: Vec<Address> = Vec::new();
    for _ in 0..dice.roll(4) {
        let address = address(dice, family);
        if !list.contains(&address) {
            list.push(address);
        }
    }
    let list: Vec<Value> =
        list.iter().map(|a| json!({"ip": a.ip.to_string(), "prefix-length": a.prefix})).collect();
    let mut out = json!({"enabled": true, "address": list});
    if let (true, Some(map)) = (dice.once_in(2), out.as_object_mut()) {
        map.insert("dhcp".into(), json!(false));
        if family == Family::Ipv6 {
            map.insert("autoconf".into(), json!(false));
        }
    }
    out
}

/// Through a link of the document, by a gateway in one of its new subnets; or away with some.
fn route(dice: &mut Dice<'_>, host: &Observed, interfaces: &[Value]) -> Value {
    let family = *dice.pick(&Family::BOTH);
    let to = destination(dice, family).to_string();
    if dice.once_in(4) {
        return json!({"state": "absent", "destination": to});
    }
    if dice.once_in(8) {
        return json!({"destination": to, "route-type": "blackhole"});
    }
    let said = dice.pick(if interfaces.is_empty() { &[Value::Null] } else { interfaces });
    let name = said["name"].as_str().unwrap_or("eth0");
    let pointer = format!("/{family}/address/0/ip");
    let own = said.pointer(&pointer).and_then(Value::as_str).and_then(|ip| ip.parse().ok());
    let there = host.link(name).and_then(|l| l.ip(family).addresses.first()).map(|a| a.ip);
    let prefix = if family == Family::Ipv4 { 24 } else { 64 };
    let subnet = own.or(there).map(|ip| Address::new(ip, prefix).subnet());
    let mut out = json!({"destination": to, "next-hop-interface": name});
    if let Some(map) = out.as_object_mut() {
        if let Some(via) = subnet.and_then(|net| net.hosts().nth(100 + dice.roll(2))) {
            map.insert("next-hop-address".into(), json!(via.to_string()));
        }
        if dice.once_in(2) {
            map.insert("metric".into(), json!(*dice.pick(&[100, 300])));
        }
        if dice.once_in(4) {
            map.insert("table-id".into(), json!(1000));
        }
    }
    out
}

fn rule(dice: &mut Dice<'_>) -> Value {
    let from = destination(dice, Family::Ipv4).to_string();
    match dice.roll(4) {
        0 => json!({"state": "absent", "ip-from": from}),
        1 => json!({"ip-from": from, "route-table": 1000, "priority": 1000}),
        2 => json!({"family": "ipv4", "fwmark": 7, "route-table": 1000}),
        _ => json!({"ip-from": from, "route-table": 1000}),
    }
}
