//! Types of what comes out.

use serde_json::json;

use super::*;
use crate::state::Desired;

#[test]
fn known_leaves_are_typed() {
    let filled = fill(&json!({
        "interfaces": [{
            "name": 100, "type": "vlan", "state": "up", "mtu": "9000",
            "ipv4": {"enabled": "true", "dhcp": "no", "auto-route-metric": "10", "address": [{"ip": "10.0.0.1", "prefix-length": "24"}]},
            "vlan": {"base-iface": "eth1", "id": "100"},
            "ethtool": {"feature": {"rx-checksum": "off"}, "ring": {"rx": "256"}},
        }],
        "routes": {"config": [{"destination": "0.0.0.0/0", "metric": "-1", "table-id": "254"}]},
        "route-rules": {"config": [{"priority": "100", "route-table": "200"}]},
    }));
    let expected = json!({
        "interfaces": [{
            "name": "100", "type": "vlan", "state": "up", "mtu": 9000,
            "ipv4": {"enabled": true, "dhcp": false, "auto-route-metric": 10, "address": [{"ip": "10.0.0.1", "prefix-length": 24}]},
            "vlan": {"base-iface": "eth1", "id": 100},
            "ethtool": {"feature": {"rx-checksum": false}, "ring": {"rx": 256}},
        }],
        "routes": {"config": [{"destination": "0.0.0.0/0", "metric": -1, "table-id": 254}]},
        "route-rules": {"config": [{"priority": 100, "route-table": 200}]},
    });
    assert_eq!(filled, Ok(expected));
}

/// What renders as a boolean is planned as that boolean, quoted or not, and nothing else is.
#[test]
fn a_quoted_boolean_means_the_same_to_render_and_to_plan() {
    let words = ["true", "yes", "on", "y", "1", "false", "no", "off", "n", "0", "Y", " On ", "yep", "2", ""];
    for word in words {
        let document = json!({"interfaces": [
            {"name": "eth1", "type": "ethernet", "state": "up", "ipv4": {"enabled": word, "dhcp": false}},
        ]});
        let rendered = fill(&document).unwrap()["interfaces"][0]["ipv4"]["enabled"].as_bool();
        let quoted = Desired::from_value(&document);
        let mut plain = document.clone();
        plain["interfaces"][0]["ipv4"]["enabled"] = rendered.map_or(json!("no boolean"), Value::Bool);
        match rendered {
            Some(_) => assert_eq!(quoted, Desired::from_value(&plain), "{word:?}"),
            None => assert!(quoted.is_err(), "{word:?}"),
        }
    }
}

#[test]
fn the_unknown_and_the_unreadable_stay() {
    let document = json!({
        "interfaces": [{"name": "a", "type": "ovs-bridge", "state": "up", "mtu": "many", "speed": "10", "ipv4": "12",
            "ovs-db": {"external_ids": {"mtu": "1500"}}, "bridge": {"options": {"stp": "true"}}}],
        "ovs-db": {"other_config": {"n": "1"}},
        "something": "5",
    });
    assert_eq!(fill(&document), Ok(document.clone()));
}

#[test]
fn type_and_state_have_defaults() {
    let filled = fill(
        &json!({"interfaces": [{"name": "eth1", "mtu": 1500}, {"name": "eth2", "type": "ethernet", "state": "absent"}, {"state": null}]}),
    );
    let filled = filled.unwrap();
    assert_eq!(
        filled["interfaces"][0],
        json!({"name": "eth1", "type": "unknown", "state": "up", "mtu": 1500})
    );
    let keys: Vec<_> = filled["interfaces"][0].as_object().unwrap().keys().collect();
    assert_eq!(keys, ["name", "type", "state", "mtu"], "where people look for them");
    assert_eq!(filled["interfaces"][1], json!({"name": "eth2", "type": "ethernet", "state": "absent"}));
    assert_eq!(filled["interfaces"][2], json!({"type": "unknown", "state": "up"}));
}

#[test]
fn anything_may_be_a_document() {
    for document in [
        json!(null),
        json!([]),
        json!(1),
        json!("x"),
        json!({"interfaces": null}),
        json!({"interfaces": ["x"]}),
    ] {
        assert_eq!(fill(&document), Ok(document.clone()));
    }
}
