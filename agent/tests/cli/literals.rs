//! Rule 11: a literal address in a pool's range is claimed for its node, or refused with who holds it.

use serde_json::{Value, json};

use crate::support::{Ran, berth, fixtures};

const PATH: &str = "interfaces[0].ipv4.address[0].ip";

/// Renders a policy that puts these addresses on eth1, for a node, from a pool's file.
fn render(addresses: &[&str], capture: &Value, pool: &str, more: &[&str]) -> Ran {
    let addresses: Vec<Value> = addresses.iter().map(|ip| json!({"ip": ip, "prefix-length": 24})).collect();
    let interface =
        json!({"name": "eth1", "type": "ethernet", "ipv4": {"enabled": true, "address": addresses}});
    let policy = json!({
        "apiVersion": "nmstate.io/v1",
        "kind": "NodeNetworkConfigurationPolicy",
        "metadata": {"name": "static-ip"},
        "spec": {"capture": capture, "desiredState": {"interfaces": [interface]}},
    });
    let mut arguments = vec!["render", "-f", "-", "-o", "json", "--pool", pool];
    arguments.extend(more);
    berth(&fixtures(), &arguments, policy.to_string().as_bytes())
}

fn rendered(ran: &Ran) -> Vec<String> {
    assert_eq!((ran.code, ran.stderr.as_str()), (0, ""));
    let state: Value = serde_json::from_str(&ran.stdout).expect("a state");
    let addresses = state["interfaces"][0]["ipv4"]["address"].as_array().expect("addresses");
    addresses.iter().map(|one| one["ip"].as_str().expect("an address").to_owned()).collect()
}

fn refused(ran: &Ran, why: &str) {
    let expected = format!("error: standard input: can't be rendered\n  {why}\n");
    assert_eq!((ran.code, ran.stdout.as_str(), ran.stderr.as_str()), (1, "", expected.as_str()));
}

#[test]
fn rule11_a_literal_address_that_is_held_says_by_whom() {
    let cases = [
        ("more/holders.yaml", "10.10.10.2", "of pool traffic-1 is held by node node02, policy static-ip"),
        (
            "more/holders.yaml",
            "10.10.10.6",
            "of pool traffic-1 is in quarantine: it was held by node node09, policy static-ip",
        ),
        (
            "seeds/traffic-1.yaml",
            "10.10.10.1",
            "of pool traffic-1 is held, and the pool's status doesn't say by whom",
        ),
        ("more/holders.yaml", "10.10.10.3", "of pool traffic-1 is reserved for node node03"),
        ("more/holders.yaml", "10.10.10.4", "can't be had from pool traffic-1: range default excludes it"),
    ];
    for (pool, ip, why) in cases {
        refused(&render(&[ip], &json!({}), pool, &["--node", "node04"]), &format!("{PATH}: {ip} {why}"));
    }
}

#[test]
fn r51_rule11_a_free_literal_address_and_one_that_the_node_holds_are_rendered() {
    for (ip, node) in [("10.10.10.5", "node04"), ("10.10.10.2", "node02"), ("10.10.10.3", "node03")] {
        let ran = render(&[ip], &json!({}), "more/holders.yaml", &["--node", node]);
        assert_eq!(rendered(&ran), [ip], "{node}");
    }
    // Of no pool's range: nobody's business.
    let ran = render(&["192.0.2.1"], &json!({}), "more/holders.yaml", &[]);
    assert_eq!(rendered(&ran), ["192.0.2.1"]);
}

/// What a capture would be given is known without the literal: with it, the capture gets something else.
#[test]
fn rule11_a_capture_is_not_given_what_the_policy_names() {
    let capture = json!({"a": "ippool.traffic-1.allocate"});
    let asked = "{{ capture.a.ip }}";
    let alone = rendered(&render(&[asked], &capture, "more/holders.yaml", &["--node", "node10"]));
    let both = rendered(&render(&[&alone[0], asked], &capture, "more/holders.yaml", &["--node", "node10"]));
    assert_eq!(both[0], alone[0]);
    assert_ne!(both[1], alone[0]);
}

#[test]
fn rule11_what_a_capture_of_the_policy_holds_is_not_literal_too() {
    let capture = json!({"address-from-traffic-1": "ippool.traffic-1.allocate"});
    let addresses = ["10.10.10.8", "{{ capture.address-from-traffic-1.ip }}"];
    let ran = render(&addresses, &capture, "more/holders.yaml", &["--node", "node01"]);
    let why = "of pool traffic-1 is held by this node for capture \"address-from-traffic-1\" of this policy: \
               one of the two must go";
    refused(&ran, &format!("{PATH}: 10.10.10.8 {why}"));
}

#[test]
fn rule11_without_a_node_nobody_can_claim() {
    let ran = render(&["10.10.10.5"], &json!({}), "more/holders.yaml", &[]);
    let said =
        format!("error: {PATH}: 10.10.10.5 is pool traffic-1's: say for which node with --node NAME\n");
    assert!(ran.stderr.starts_with(&said), "{}", ran.stderr);
    assert_eq!((ran.code, ran.stdout.as_str()), (2, ""));
}

/// Claiming an address of a sliced pool is claiming the slice around it.
#[test]
fn rule11_in_a_sliced_pool_the_slice_must_be_had() {
    let capture = json!({"a": "ippool.sliced.allocate"});
    let render =
        |ip: &str, node| render(&[ip, "{{ capture.a.ip }}"], &capture, "more/sliced.yaml", &["--node", node]);
    for (ip, node) in [("10.7.0.70", "node01"), ("10.7.0.90", "node02")] {
        let found = rendered(&render(ip, node));
        assert_eq!(found[0], ip);
        assert_ne!(found[1], ip);
        // The capture is served from the same slice, which the node now has.
        let block =
            |ip: &str| ip.rsplit_once('.').map(|(_, last)| last.parse::<u8>().expect("an octet") >> 4);
        assert_eq!(block(&found[0]), block(&found[1]), "{node}");
    }
    let ran = render("10.7.0.70", "node02");
    refused(
        &ran,
        &format!("{PATH}: slice 10.7.0.64/28 of pool sliced, where 10.7.0.70 lies, belongs to node node01"),
    );
}
