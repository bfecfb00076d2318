//! Agents that start again, with and without the API, on hosts that are still wanted or not.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use serde_json::{Value, json};

use crate::SEEDS;
use crate::field::{Field, doubles, one_address};
use crate::on::On;

/// R27: an agent that starts again finds its journal: same address, no new claim.
pub(crate) async fn r27_a_restarted_agent_keeps_its_address(on: On) {
    let field = Field::new(on).await;
    field.pool("traffic-1", json!({"range": {"cidr": SEEDS}})).await;
    let mut host = field.host("node01", 1).await;
    field.policy("one", one_address("traffic-1")).await;
    let own = field.until_standing(&host, "one", "Available").await;
    let (before, id) = (host.addresses("eth0"), own["status"]["ippool"]["traffic-1"]["requests"].clone());
    host.stop().await;
    // As after a boot.
    host.ip(&format!("addr del {} dev eth0", before[0]));
    field.start(&mut host).await;
    host.wait_until("as it was", || host.addresses("eth0") == before).await;
    let own = field.until_standing(&host, "one", "Available").await;
    assert_eq!(own["status"]["ippool"]["traffic-1"]["requests"], id);
    field.agree().await;
}

/// R27, rule 1: a policy that has its address is edited to ask for another, which it can't have. What it has it keeps: put back
/// when something takes it off, and after a boot, under the same id. It gets the other when there is one.
pub(crate) async fn r27_rule1_what_a_policy_has_is_kept_while_it_is_refused_more(on: On) {
    let field = Field::new(on).await;
    field.pool("traffic-1", json!({"range": {"cidr": SEEDS}})).await;
    let range = json!({"cidr": "10.10.20.0/24", "start": "10.10.20.1", "end": "10.10.20.1"});
    field.pool("traffic-2", json!({"range": range, "quarantine": "1s"})).await;
    let mut host = field.host("node01", 2).await;
    let other = field.host("node02", 1).await;
    for (host, label) in [(&host, "one"), (&other, "two")] {
        field.label(host, label, "yes").await;
    }
    let mut theirs = one_address("traffic-2");
    theirs["nodeSelector"] = json!({"two": "yes"});
    field.policy("theirs", theirs).await;
    field.until_standing(&other, "theirs", "Available").await;
    let from = |card: &str, pool: &str| {
        let address = json!({"enabled": true, "address": [{"ipam": {"pool": pool}}]});
        json!({"name": card, "type": "veth", "state": "up", "ipv4": address})
    };
    let (first, second) = (from("eth0", "traffic-1"), from("eth1", "traffic-2"));
    let asks = |interfaces: Value| json!({"nodeSelector": {"one": "yes"}, "desiredState": {"interfaces": interfaces}});
    field.policy("one", asks(json!([first]))).await;
    field.until_policy("one", "over", |policy| policy["status"]["conditions"][0]["status"] == "True").await;
    let had = host.addresses("eth0");
    field.try_edit_policy("one", asks(json!([first, second]))).await.expect("it is over");
    let own = field.until_standing(&host, "one", "Failing").await;
    let ids = |own: &Value| {
        let requests =
            own["status"]["ippool"]["traffic-1"]["requests"].as_object().cloned().expect("requests");
        requests.values().map(|request| request["id"].clone()).collect::<Vec<Value>>()
    };
    for boot in [false, true] {
        if boot {
            host.stop().await;
        }
        host.ip(&format!("addr del {} dev eth0", had[0]));
        if boot {
            field.start(&mut host).await;
        }
        host.wait_until("put back", || host.addresses("eth0") == had).await;
    }
    field.delete_policy("theirs").await;
    field.until_no_enactment(&other, "theirs").await;
    let after = field.until_standing(&host, "one", "Available").await;
    assert_eq!(ids(&after), ids(&own));
    assert_eq!((host.addresses("eth0"), host.addresses("eth1")), (had, vec!["10.10.20.1/24".to_owned()]));
    field.agree().await;
}

/// R110: Berth is taken away, agent and controller: what a host has it keeps, on its card and in the ledger. Somebody takes
/// the finalizers off and deletes enactment and pool by hand: the card keeps its address. Berth is back, and the pool: it is
/// the same host's.
pub(crate) async fn r110_a_rollback_keeps_what_is_held(on: On) {
    let mut field = Field::new(on).await;
    let pool = json!({"range": {"cidr": SEEDS}, "quarantine": "1s"});
    field.pool("traffic-1", pool.clone()).await;
    let mut host = field.host("node01", 1).await;
    field.policy("one", one_address("traffic-1")).await;
    field.until_standing(&host, "one", "Available").await;
    let before = host.addresses("eth0");
    let ip = before[0].split('/').next().expect("an address").to_owned();
    let holder = |pool: &Value| pool["status"]["allocations"][&ip]["node"] == "node01";
    host.stop().await;
    field.lose_controller().await;
    assert_eq!(host.addresses("eth0"), before);
    field.until_pool("traffic-1", "as it was", holder).await;
    field.force_enactment_away(&host, "one").await;
    field.force_pool_away("traffic-1").await;
    assert_eq!(host.addresses("eth0"), before);
    field.pool("traffic-1", pool).await;
    field.find_controller();
    field.start(&mut host).await;
    field.until_standing(&host, "one", "Available").await;
    field.until_pool("traffic-1", "the holder's again", holder).await;
    assert_eq!(host.addresses("eth0"), before);
    field.agree().await;
}

/// An API that nobody answers at.
pub(crate) fn dead() -> kube::Client {
    let nowhere = "http://127.0.0.1:9".parse().expect("a place");
    kube::Client::try_from(kube::Config::new(nowhere)).expect("a client")
}

/// R27, R111: without the API what the journal says is held comes back, and only that.
pub(crate) async fn r27_r111_a_start_without_the_api_is_from_the_journal(on: On) {
    let field = Field::new(on).await;
    field.pool("traffic-1", json!({"range": {"cidr": SEEDS}})).await;
    let mut host = field.host("node01", 1).await;
    field.policy("one", one_address("traffic-1")).await;
    field.until_standing(&host, "one", "Available").await;
    let before = host.addresses("eth0");
    host.stop().await;
    host.ip(&format!("addr del {} dev eth0", before[0]));
    field.start_with(&mut host, &dead());
    host.wait_until("as it was", || host.addresses("eth0") == before).await;
    // And kept so.
    host.ip(&format!("addr del {} dev eth0", before[0]));
    host.wait_until("put back", || host.addresses("eth0") == before).await;
    host.stop().await;
    field.agree().await;
}

/// Rule 7: a Node deleted while its agent runs. Its address is off for good, also when it is another's by then and the API
/// goes away.
pub(crate) async fn rule7_a_host_whose_node_is_deleted_takes_its_addresses_off_for_good(on: On) {
    let field = Field::new(on).await;
    let range = json!({"cidr": SEEDS, "start": "10.10.10.1", "end": "10.10.10.1"});
    field.pool("tiny", json!({"range": range, "quarantine": "1s"})).await;
    let mut first = field.host("node01", 1).await;
    field.policy("one", one_address("tiny")).await;
    field.until_standing(&first, "one", "Available").await;
    let small = json!([{"name": "eth0", "type": "veth", "state": "up", "mtu": 1300}]);
    field.policy("size", json!({"desiredState": {"interfaces": small}})).await;
    field.until_standing(&first, "size", "Available").await;
    let second = field.host("node02", 1).await;
    field.until_standing(&second, "one", "Failing").await;
    field.delete_node(&first).await;
    first.wait_until("off", || first.addresses("eth0").is_empty()).await;
    field.until_standing(&second, "one", "Available").await;
    assert_eq!(second.addresses("eth0"), ["10.10.10.1/24"]);
    assert!(first.addresses("eth0").is_empty());
    // Started anew without the API: it keeps what is no address of a pool, and of those it has none.
    first.stop().await;
    first.ip("link set eth0 mtu 1400");
    field.start_with(&mut first, &dead());
    first.wait_until("looked after", || first.ip("link show eth0").contains("mtu 1300")).await;
    first.stop().await;
    assert!(first.addresses("eth0").is_empty());
    // Of its Node that was it remembers the request, which would be its proof if nobody else had the address.
    field.agree_but(&["node01: journalled and in no ledger"]).await;
}

/// Policies that can't be read are not policies that are gone: nothing is released.
pub(crate) async fn what_cannot_be_read_is_not_gone(on: On) {
    let field = Field::new(on).await;
    field.pool("traffic-1", json!({"range": {"cidr": SEEDS}})).await;
    let mut host = field.host("node01", 1).await;
    field.policy("one", one_address("traffic-1")).await;
    field.until_standing(&host, "one", "Available").await;
    let before = host.addresses("eth0");
    for kind in ["policies", "enactments", "networkstates"] {
        host.stop().await;
        let client = doubles::without(field.client_for(&host).await, kind);
        field.start_with(&mut host, &client);
        // It works, as far as it can.
        host.ip(&format!("addr del {} dev eth0", before[0]));
        host.wait_until("put back", || host.addresses("eth0") == before).await;
        let own = field.enactment(&host, "one").await;
        assert_eq!(own["status"]["ippool"]["traffic-1"]["requests"]["address"]["want"], true, "{kind}");
    }
    host.stop().await;
    field.agree().await;
}

pub(crate) async fn a_second_agent_for_one_host_refuses(on: On) {
    let field = Field::new(on).await;
    let host = field.host("node01", 1).await;
    let second = agent::node::Agent::open(field.client(), host.settings());
    assert!(matches!(second, Err(agent::node::NodeError::Busy { .. })));
    field.agree().await;
}

/// An API that takes questions and never answers, as one that is stopped in the middle, holds no repair up.
pub(crate) async fn r27_an_api_that_does_not_answer_holds_no_repair_up(on: On) {
    let field = Field::new(on).await;
    let mut host = field.host("node01", 1).await;
    host.stop().await;
    let hangs = Arc::new(AtomicBool::new(false));
    let client = doubles::silent(field.client_for(&host).await, hangs.clone());
    field.start_with(&mut host, &client);
    field.pool("traffic-1", json!({"range": {"cidr": SEEDS}})).await;
    field.policy("one", one_address("traffic-1")).await;
    field.until_standing(&host, "one", "Available").await;
    let had = host.addresses("eth0");
    hangs.store(true, Ordering::SeqCst);
    for _ in 0..3 {
        host.ip("-4 addr flush dev eth0");
        host.wait_until("put back", || host.addresses("eth0") == had).await;
    }
    hangs.store(false, Ordering::SeqCst);
    field.policy("two", json!({"desiredState": {"interfaces": []}})).await;
    field.until_standing(&host, "two", "Available").await;
    field.agree().await;
}

/// An API that can be read and not written is no reason to be without an address, at a start or later.
pub(crate) async fn r27_an_api_that_takes_no_writes_keeps_no_address_off(on: On) {
    let field = Field::new(on).await;
    let mut host = field.host("node01", 1).await;
    field.pool("traffic-1", json!({"range": {"cidr": SEEDS}})).await;
    field.policy("one", one_address("traffic-1")).await;
    field.until_standing(&host, "one", "Available").await;
    let had = host.addresses("eth0");
    host.stop().await;
    host.ip("-4 addr flush dev eth0");
    let full = Arc::new(AtomicBool::new(true));
    let client = doubles::unwritable(field.client_for(&host).await, full.clone());
    field.start_with(&mut host, &client);
    host.wait_until("as it was", || host.addresses("eth0") == had).await;
    host.ip("-4 addr flush dev eth0");
    host.wait_until("put back", || host.addresses("eth0") == had).await;
    full.store(false, Ordering::SeqCst);
    // It catches up.
    field.annotate_pool("traffic-1", "example.org/news", json!("1")).await;
    field.policy("two", json!({"desiredState": {"interfaces": []}})).await;
    field.until_standing(&host, "two", "Available").await;
    assert_eq!(host.addresses("eth0"), had);
    field.agree().await;
}
