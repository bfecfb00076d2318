//! What is wrong with a policy before it has any address.

use serde_json::{Value, json};

use crate::capture::Cached;
use crate::capture::tests::state;
use crate::template::{PolicyDoc, check};

/// What is found wrong with a policy that asks pool p for `addr`, has these captures besides, and puts this text on eth1.
fn wrong(captures: Value, ip: &str) -> Option<String> {
    let mut capture = captures;
    capture["addr"] = json!("ippool.p.allocate");
    let address = json!([{"ip": ip, "prefix-length": 24}]);
    let interface = json!({"name": "eth1", "ipv4": {"enabled": true, "address": address}});
    let document = json!({"capture": capture, "desiredState": {"interfaces": [interface]}});
    let policy = PolicyDoc::from_value(&document).expect("a policy");
    check(&policy, &state(), &Cached::new()).err().map(|wrong| wrong.to_string())
}

#[test]
fn what_no_grant_can_mend_is_found_before_one_is_asked_for() {
    let nothing = || json!({});
    let cases = [
        ("{{ capture.adr.ip }}", "unknown capture \"adr\""),
        ("{{ capture.addr.adress }}", "adress"),
        ("{{ capture.addr.ip", "is never closed"),
        ("{{ addr.ip }}", "is no reference"),
        ("{{ capture.addr.ip }}{{ capture.nic }}", "capture.nic"),
    ];
    for (text, words) in cases {
        let nic = json!({"nic": "interfaces.name==eth1"});
        let found = wrong(nic, text).unwrap_or_else(|| panic!("{text} is wrong"));
        assert!(found.contains(words), "{text}: {found}");
    }
    assert!(wrong(json!({"nic": "interfaces.name==nope"}), "{{ capture.addr.ip }}").is_some());
    assert_eq!(wrong(nothing(), "{{ capture.addr.ip }}"), None);
}

#[test]
fn what_depends_on_the_grant_is_left_until_there_is_one() {
    for text in [
        "{{ capture.addr.gateway }}",
        "{{ capture.addr.attributes.ip }}",
        "{{ capture.addr.ipv6.ip }}",
        "{{ capture.addr.ip }}",
    ] {
        assert_eq!(wrong(json!({}), text), None, "{text}");
    }
    let derived = json!({"nic": "interfaces.name==capture.addr.range"});
    assert_eq!(wrong(derived, "{{ capture.nic.interfaces.0.mtu }}"), None);
}
