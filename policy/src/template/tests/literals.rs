//! Literal addresses that are a pool's (rule 11).

use serde_json::{Value, json};

use crate::capture::Problem;
use crate::pool::{Pool, PoolSpec};
use crate::template::{PolicyDoc, literal_capture, literal_of, literals};

fn pool(name: &str, cidr: &str) -> Pool {
    let manifest = json!({"metadata": {"name": name}, "spec": {"range": {"cidr": cidr}}});
    Pool::new(&PoolSpec::from_manifest(&manifest).unwrap()).unwrap()
}

fn found(interfaces: &Value) -> Vec<(String, String, String)> {
    let pools = [pool("four", "10.0.0.0/24"), pool("six", "fd00::/64"), pool("also", "10.0.0.128/25")];
    let state = json!({"interfaces": interfaces});
    let all = literals(&state, &pools.iter().collect::<Vec<_>>());
    all.into_iter().map(|one| (one.ip.to_string(), one.pool, one.path)).collect()
}

fn claim(ip: &str, pool: &str, path: &str) -> (String, String, String) {
    (ip.to_owned(), pool.to_owned(), path.to_owned())
}

#[test]
fn rule11_each_literal_address_of_a_pool_with_its_path() {
    let interfaces = json!([
        {"name": "eth0"},
        {
            "name": "eth1",
            "ipv4": {"address": [{"ip": "192.0.2.1"}, {"ip": " 10.0.0.5 "}]},
            "ipv6": {"address": [{"ip": "fd00:0::7"}]},
        },
    ]);
    let expected = [
        claim("10.0.0.5", "four", "interfaces[1].ipv4.address[1].ip"),
        claim("fd00::7", "six", "interfaces[1].ipv6.address[0].ip"),
    ];
    assert_eq!(found(&interfaces), expected);
}

#[test]
fn rule11_an_address_of_two_pools_is_claimed_of_both_and_only_once() {
    let twice = json!({"ipv4": {"address": [{"ip": "10.0.0.200"}]}});
    let path = "interfaces[0].ipv4.address[0].ip";
    let expected = [claim("10.0.0.200", "four", path), claim("10.0.0.200", "also", path)];
    assert_eq!(found(&json!([twice.clone(), twice])), expected);
}

#[test]
fn rule11_what_a_template_or_a_pool_gives_and_what_goes_is_not_literal() {
    let interfaces = json!([
        {"ipv4": {"address": [{"ip": "{{ capture.a.ip }}"}, {"ip": "10.0.0.{{ capture.b.c }}"}]}},
        {"ipv4": {"address": [{"ipam": {"pool": "four"}}, {"ip": 5}, null]}},
        {"state": "absent", "ipv4": {"address": [{"ip": "10.0.0.5"}]}},
        {"state": "ignore", "ipv4": {"address": [{"ip": "10.0.0.5"}]}},
        {"ipv4": {"enabled": false, "address": [{"ip": "10.0.0.5"}]}},
        {"ipv4": {"address": "10.0.0.5"}},
    ]);
    assert_eq!(found(&interfaces), []);
}

/// What a claim is called says of which address it is, and nothing else does.
#[test]
fn rule11_a_claim_is_called_by_its_address() {
    let names = [
        ("10.0.0.5", "literal_10-0-0-5"),
        ("fd00:0::7", "literal_fd00--7"),
        ("::ffff:10.0.0.5", "literal_10-0-0-5"),
        ("1:2:3:4:5:6:7:8", "literal_1-2-3-4-5-6-7-8"),
        ("::1.2.3.4", "literal_--102-304"),
        ("::", "literal_--"),
    ];
    for (text, name) in names {
        let ip: std::net::IpAddr = text.parse().unwrap();
        assert_eq!(literal_capture(ip), name);
        assert_eq!(literal_of(name), Some(ip.to_canonical()), "{name}");
    }
    for name in
        ["10-0-0-5", "literal_", "literal_10-0-0", "literal_10-0-0-05", "literal_FD00--7", "ipam_eth0_p"]
    {
        assert_eq!(literal_of(name), None, "{name}");
    }
}

#[test]
fn rule11_a_pool_capture_may_not_have_the_name_of_a_literal() {
    let policy = |expression: &str| {
        PolicyDoc::from_value(&json!({"capture": {"literal_10-0-0-5": expression}, "desiredState": {}}))
            .unwrap()
    };
    let wrong = policy("ippool.four.allocate").pools().unwrap_err();
    let name = "literal_10-0-0-5".to_owned();
    assert_eq!(wrong.iter().next().unwrap().problem, Problem::LiteralName { name });
    // Others make no claim, and may be called as they please.
    assert!(policy("routes.running").pools().unwrap().is_empty());
}
