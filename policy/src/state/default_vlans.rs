//! The default that kubernetes-nmstate (not nmstate) gives bridge ports: all VLANs as a trunk.

use serde_json::{Value, json};

/// Gives every port of a `linux-bridge` that shall be up, and that says nothing of `vlan`, a trunk of 2 to
/// 4094; `vlan: {}` opts out. Applied by who renders policies, before the document is typed: 1 is left out
/// because it is the VLAN that untagged frames get.
pub fn default_port_vlans(document: &mut Value) {
    let Some(links) = document.get_mut("interfaces").and_then(Value::as_array_mut) else {
        return;
    };
    for link in links {
        let bridge = link.get("type").and_then(Value::as_str) == Some("linux-bridge");
        let up = link.get("state").is_none_or(|s| s.as_str() == Some("up"));
        if !(bridge && up) {
            continue;
        }
        let ports = link.pointer_mut("/bridge/port").and_then(Value::as_array_mut);
        for port in ports.into_iter().flatten().filter_map(Value::as_object_mut) {
            port.entry("vlan").or_insert_with(
                || json!({"mode": "trunk", "trunk-tags": [{"id-range": {"min": 2, "max": 4094}}]}),
            );
        }
    }
}
