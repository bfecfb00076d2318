//! Agents on real namespaces and cards, with the embedded API and the controller. Needs root.

mod alone;
mod field;
mod nodes;
mod probes;
mod told;

use std::collections::BTreeSet;

use serde_json::json;

use field::Field;

const SEEDS: &str = "10.10.10.0/24";

/// R20, R21, R22, R28: the seed's story. One policy, two pools, three hosts, each with its own addresses in the kernel.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn r20_r21_r22_r28_one_policy_gives_every_host_its_own_addresses() {
    let field = Field::new().await;
    field
        .pool(
            "traffic-1",
            json!({"range": {"cidr": SEEDS, "start": "10.10.10.1", "end": "10.10.10.10",
        "exclude": ["10.10.10.4", "10.10.10.7"]}, "quarantine": "2s"}),
        )
        .await;
    field.pool("traffic-2", json!({"range": {"cidr": "10.10.20.0/24"}, "quarantine": "2s"})).await;
    let mut hosts = Vec::new();
    for name in ["node01", "node02", "node03"] {
        hosts.push(field.host(name, 2).await);
    }
    field.policy("static-ip", field::static_ip()).await;
    let mut given = BTreeSet::new();
    for host in &hosts {
        let own = field.until_standing(host, "static-ip", "Available").await;
        for (pool, capture, card) in [("traffic-1", "first", "eth0"), ("traffic-2", "second", "eth1")] {
            let ip = own["status"]["ippool"][pool]["allocated"][0].as_str().expect("an address").to_owned();
            assert_eq!(own["status"]["capturedStates"][capture]["ip"], ip);
            assert_eq!(host.addresses(card), [format!("{ip}/24")], "{}", host.name);
            assert!(given.insert(ip), "given twice");
        }
    }
    field
        .until_policy("static-ip", "available", |policy| {
            policy["status"]["conditions"][0]["message"] == "3/3 nodes successfully configured"
        })
        .await;
    // One more joins: nothing to be done by anybody.
    let late = field.host("node04", 2).await;
    let own = field.until_standing(&late, "static-ip", "Available").await;
    assert!(given.insert(own["status"]["ippool"]["traffic-1"]["allocated"][0].as_str().unwrap().to_owned()));
    // The policy goes: addresses off, freed, enactments gone; cards stay as they are (R30).
    field.delete_policy("static-ip").await;
    for host in hosts.iter().chain([&late]) {
        field.until_no_enactment(host, "static-ip").await;
        assert_eq!(host.addresses("eth0"), Vec::<String>::new());
    }
    field.until_pool("traffic-1", "empty", |pool| pool["status"]["allocated"] == 0).await;
}

/// What a policy set and something else removed is put back.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn drift_is_put_back() {
    let field = Field::new().await;
    field.pool("traffic-1", json!({"range": {"cidr": SEEDS}})).await;
    let host = field.host("node01", 1).await;
    field.policy("one", field::one_address("traffic-1")).await;
    field.until_standing(&host, "one", "Available").await;
    let before = host.addresses("eth0");
    assert_eq!(before.len(), 1);
    host.ip(&format!("addr del {} dev eth0", before[0]));
    host.wait_until("put back", || host.addresses("eth0") == before).await;
}

/// R32: an exhausted pool fails the policy with words; others go on; room helps.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn r32_an_exhausted_pool_says_so_and_recovers() {
    let field = Field::new().await;
    field
        .pool(
            "tiny",
            json!({"range": {"cidr": SEEDS, "start": "10.10.10.1", "end": "10.10.10.1"}, "quarantine": "1s"}),
        )
        .await;
    field.pool("wide", json!({"range": {"cidr": "10.10.20.0/24"}})).await;
    let first = field.host("node01", 2).await;
    field.policy("a-tiny", field::one_address("tiny")).await;
    field.until_standing(&first, "a-tiny", "Available").await;
    let second = field.host("node02", 2).await;
    let refused = field.until_standing(&second, "a-tiny", "Failing").await;
    let message = refused["status"]["conditions"][1]["message"].as_str().unwrap();
    assert!(message.contains("pool tiny"), "{message}");
    assert_eq!(refused["status"]["conditions"][1]["reason"], "NoAddress");
    field.policy("b-wide", field::address_on("wide", "eth1")).await;
    field.until_standing(&second, "b-wide", "Available").await;
    assert!(second.addresses("eth0").is_empty());
    field.remove_host(&first).await;
    field.until_standing(&second, "a-tiny", "Available").await;
}

/// R18: broken templates, captures without a match and unknown pools fail with the diagnostic, and touch nothing.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn r18_what_cannot_be_rendered_fails_with_the_diagnostic() {
    let field = Field::new().await;
    let host = field.host("node01", 1).await;
    let address = |capture: &str| {
        json!({"interfaces": [{"name": "eth0", "type": "veth", "state": "up",
        "ipv4": {"enabled": true, "dhcp": false, "address": [{"ip": format!("{{{{ capture.{capture}.ip }}}}"), "prefix-length": 24}]}}]})
    };
    field
        .policy(
            "a-unmatched",
            json!({"capture": {"nic": "interfaces.name == \"eth9\""}, "desiredState": {"interfaces": []}}),
        )
        .await;
    field
        .policy(
            "b-unknown",
            json!({"capture": {"a": "ippool.nowhere.allocate"}, "desiredState": address("a")}),
        )
        .await;
    field.policy("c-broken", json!({"capture": {}, "desiredState": address("missing")})).await;
    for (policy, words) in
        [("a-unmatched", "eth9"), ("b-unknown", "no pool named nowhere"), ("c-broken", "missing")]
    {
        let own = field.until_standing(&host, policy, "Failing").await;
        let message = own["status"]["conditions"][1]["message"].as_str().unwrap();
        assert!(message.contains(words), "{policy}: {message}");
    }
    assert!(host.addresses("eth0").is_empty());
    // It appears later: no retry was needed for it to be seen.
    host.ip("link add eth9 type veth peer name far9");
    field.until_standing(&host, "a-unmatched", "Available").await;
}

/// R27: an agent that starts again finds its journal: same address, no new claim.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn r27_a_restarted_agent_keeps_its_address() {
    let field = Field::new().await;
    field.pool("traffic-1", json!({"range": {"cidr": SEEDS}})).await;
    let mut host = field.host("node01", 1).await;
    field.policy("one", field::one_address("traffic-1")).await;
    let own = field.until_standing(&host, "one", "Available").await;
    let (before, id) = (host.addresses("eth0"), own["status"]["ippool"]["traffic-1"]["requests"].clone());
    host.stop().await;
    // As after a boot.
    host.ip(&format!("addr del {} dev eth0", before[0]));
    field.start(&mut host);
    host.wait_until("as it was", || host.addresses("eth0") == before).await;
    let own = field.until_standing(&host, "one", "Available").await;
    assert_eq!(own["status"]["ippool"]["traffic-1"]["requests"], id);
}

/// An API that nobody answers at.
fn dead() -> kube::Client {
    let nowhere = "http://127.0.0.1:9".parse().expect("a place");
    kube::Client::try_from(kube::Config::new(nowhere)).expect("a client")
}

/// R27, R111: without the API what the journal says is held comes back, and only that.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn r27_r111_a_start_without_the_api_is_from_the_journal() {
    let field = Field::new().await;
    field.pool("traffic-1", json!({"range": {"cidr": SEEDS}})).await;
    let mut host = field.host("node01", 1).await;
    field.policy("one", field::one_address("traffic-1")).await;
    field.until_standing(&host, "one", "Available").await;
    let before = host.addresses("eth0");
    host.stop().await;
    host.ip(&format!("addr del {} dev eth0", before[0]));
    field.start_with(&mut host, dead());
    host.wait_until("as it was", || host.addresses("eth0") == before).await;
    // And kept so.
    host.ip(&format!("addr del {} dev eth0", before[0]));
    host.wait_until("put back", || host.addresses("eth0") == before).await;
    host.stop().await;
}

/// Rule 7: a Node deleted while its agent runs. Its address is off for good, also when it is another's by then and the API
/// goes away.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn rule7_a_host_whose_node_is_deleted_takes_its_addresses_off_for_good() {
    let field = Field::new().await;
    let range = json!({"cidr": SEEDS, "start": "10.10.10.1", "end": "10.10.10.1"});
    field.pool("tiny", json!({"range": range, "quarantine": "1s"})).await;
    let mut first = field.host("node01", 1).await;
    field.policy("one", field::one_address("tiny")).await;
    field.until_standing(&first, "one", "Available").await;
    let second = field.host("node02", 1).await;
    field.until_standing(&second, "one", "Failing").await;
    field.delete_node(&first).await;
    first.wait_until("off", || first.addresses("eth0").is_empty()).await;
    field.until_standing(&second, "one", "Available").await;
    assert_eq!(second.addresses("eth0"), ["10.10.10.1/24"]);
    assert!(first.addresses("eth0").is_empty());
    // Started anew without the API: nothing is its own.
    first.stop().await;
    field.start_with(&mut first, dead());
    first.ip("link set eth0 mtu 1400");
    first.stop().await;
    assert!(first.addresses("eth0").is_empty());
}

/// Policies that can't be read are not policies that are gone: nothing is released.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_cannot_be_read_is_not_gone() {
    let field = Field::new().await;
    field.pool("traffic-1", json!({"range": {"cidr": SEEDS}})).await;
    let mut host = field.host("node01", 1).await;
    field.policy("one", field::one_address("traffic-1")).await;
    field.until_standing(&host, "one", "Available").await;
    let before = host.addresses("eth0");
    for kind in ["policies", "enactments", "networkstates"] {
        host.stop().await;
        field.start_with(&mut host, field.client_without(kind));
        // It works, as far as it can.
        host.ip(&format!("addr del {} dev eth0", before[0]));
        host.wait_until("put back", || host.addresses("eth0") == before).await;
        let own = field.enactment(&host, "one").await;
        assert_eq!(own["status"]["ippool"]["traffic-1"]["requests"]["address"]["want"], true, "{kind}");
    }
    host.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_second_agent_for_one_host_refuses() {
    let field = Field::new().await;
    let host = field.host("node01", 1).await;
    let second = agent::node::Agent::open(field.client(), host.settings());
    assert!(matches!(second, Err(agent::node::NodeError::Busy { .. })));
}

/// Node `a` with policy `b.c` and node `a.b` with policy `c` have one name for two enactments: the second leaves the
/// first's alone, and goes on with the rest.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_enactment_of_another_node_is_left_alone() {
    let field = Field::new().await;
    field.pool("traffic-1", json!({"range": {"cidr": SEEDS}})).await;
    let mut policy = field::one_address("traffic-1");
    policy["nodeSelector"] = json!({"only": "first"});
    let first = field.host("a", 1).await;
    field.label(&first, "only", "first").await;
    field.policy("b.c", policy).await;
    let own = field.until_standing(&first, "b.c", "Available").await;
    let second = field.host("a.b", 2).await;
    field.label(&second, "only", "second").await;
    for (name, card) in [("c", "eth0"), ("d", "eth1")] {
        let mut policy = field::address_on("traffic-1", card);
        policy["nodeSelector"] = json!({"only": "second"});
        field.policy(name, policy).await;
    }
    field.until_standing(&second, "d", "Available").await;
    let now = field.enactment(&first, "b.c").await;
    assert_eq!(now["metadata"]["ownerReferences"], own["metadata"]["ownerReferences"]);
    assert_eq!(now["status"]["ippool"], own["status"]["ippool"]);
    assert_eq!(first.addresses("eth0").len(), 1);
}

/// A policy re-created under its name while its agent is away is another: what was captured for the first is not used.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn captures_of_a_policy_of_before_are_not_used() {
    let field = Field::new().await;
    let mut host = field.host("node01", 2).await;
    let policy = |card: &str| {
        json!({"capture": {"nic": format!("interfaces.name == \"{card}\"")}, "desiredState": {"interfaces": [
            {"name": "{{ capture.nic.interfaces.0.name }}", "type": "veth", "state": "up", "mtu": 1400},
        ]}})
    };
    let mtu = |host: &field::Host, card: &str| host.ip(&format!("link show dev {card}")).contains("mtu 1400");
    field.policy("cap", policy("eth0")).await;
    field.until_standing(&host, "cap", "Available").await;
    assert!(mtu(&host, "eth0"));
    host.stop().await;
    field.delete_policy("cap").await;
    field.policy("cap", policy("eth1")).await;
    field.start(&mut host);
    host.wait_until("the other card", || mtu(&host, "eth1")).await;
}
