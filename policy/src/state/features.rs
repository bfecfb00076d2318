//! Which of nmstate's features a document uses, by the names that its statistics have for them: kubernetes-nmstate keeps them
//! in an enactment and counts them in a metric.
//!
//! Those of kinds that are refused (Open vSwitch, SR-IOV, LLDP) are missing: a document with them is never applied.

use serde_json::Value;

/// In the order of their names.
pub fn features(document: &Value) -> Vec<&'static str> {
    let items = |path: &str| document.pointer(path).and_then(Value::as_array).into_iter().flatten();
    let asks = |path: &str| document.pointer(path).is_some_and(|value| !value.is_null());
    let by_mac = |interface: &Value| interface["identifier"] == "mac-address";
    let suppresses = |rule: &Value| rule.get("suppress-prefix-length").is_some();
    let all = [
        ("mac-based-identifier", items("/interfaces").any(by_mac)),
        ("static-dns-name-server", asks("/dns-resolver/config/server")),
        ("static-dns-option", asks("/dns-resolver/config/options")),
        ("static-dns-search", asks("/dns-resolver/config/search")),
        ("static-hostname", asks("/hostname/config")),
        ("static-route", asks("/routes/config")),
        ("static-route-rule", asks("/route-rules/config")),
        ("static-route-rule-suppress-prefix-length", items("/route-rules/config").any(suppresses)),
    ];
    all.into_iter().filter(|(_, used)| *used).map(|(name, _)| name).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_document_is_told_by_what_it_asks_for() {
        let all = json!({
            "interfaces": [{"name": "eth1"}, {"name": "nic", "identifier": "mac-address", "mac-address": "00:00:5E:00:53:01"}],
            "dns-resolver": {"config": {"server": ["192.0.2.1"], "search": [], "options": ["rotate"]}},
            "hostname": {"config": "node01"},
            "routes": {"config": []},
            "route-rules": {"config": [{"ip-to": "192.0.2.0/24", "suppress-prefix-length": 0}]},
        });
        let expected = [
            "mac-based-identifier",
            "static-dns-name-server",
            "static-dns-option",
            "static-dns-search",
            "static-hostname",
            "static-route",
            "static-route-rule",
            "static-route-rule-suppress-prefix-length",
        ];
        assert_eq!(features(&all), expected);
        let none = json!({"interfaces": [{"name": "eth1", "identifier": "name"}], "routes": {"running": []},
            "dns-resolver": {"config": {"server": null}}, "route-rules": {}});
        assert!(features(&none).is_empty());
        assert!(features(&Value::Null).is_empty());
        let plain = json!({"route-rules": {"config": [{"ip-to": "192.0.2.0/24"}]}});
        assert_eq!(features(&plain), ["static-route-rule"]);
    }
}
