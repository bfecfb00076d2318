//! Addresses that a policy names itself, in the range of a pool (rule 11, R51).

use std::collections::BTreeSet;
use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

use crds::{NodeIPSlice, NodeNetworkState};
use kube::api::{Api, ListParams};
use serde_json::{Value, json};

use crate::SEEDS;
use crate::field::{Field, Host, address_on, doubles};
use crate::on::On;

const POOL: &str = "traffic-1";

/// A policy that puts these on a card, with the prefix length of the seeds.
fn named(card: &str, addresses: &[&str]) -> Value {
    let addresses: Vec<Value> = addresses.iter().map(|ip| json!({"ip": ip, "prefix-length": 24})).collect();
    json!({"maxUnavailable": "100%", "desiredState": {"interfaces": [{"name": card, "type": "veth", "state": "up",
        "ipv4": {"enabled": true, "dhcp": false, "address": addresses}}]}})
}

/// The same on nodes with this label alone.
fn on(label: &str, mut policy: Value) -> Value {
    policy["nodeSelector"] = json!({label: "yes"});
    policy
}

/// 10.10.10.1 to the last one.
fn to(last: u8) -> Value {
    json!({"cidr": SEEDS, "start": "10.10.10.1", "end": format!("10.10.10.{last}")})
}

async fn pool(field: &Field, last: u8) {
    field.pool(POOL, json!({"range": to(last), "staticBand": "None", "quarantine": "1s"})).await;
}

fn message(own: &Value) -> String {
    let conditions = own["status"]["conditions"].as_array().cloned().unwrap_or_default();
    let said = conditions.iter().find(|one| one["type"] == "Failing" && one["status"] == "True");
    said.and_then(|one| one["message"].as_str()).unwrap_or_default().to_owned()
}

/// Fails, with these words.
async fn until_refused(field: &Field, host: &Host, policy: &str, words: &str) -> Value {
    field.until_enactment(host, policy, words, |own| message(own).contains(words)).await
}

/// An address is held by a node, for a policy that names it.
async fn until_held(field: &Field, ip: &str, node: &str) -> Value {
    let holds = |pool: &Value| {
        let entry = &pool["status"]["allocations"][ip];
        entry["node"] == node && entry["kind"] == "static" && entry["state"].is_null()
    };
    field.until_pool(POOL, &format!("with {ip} of {node}"), holds).await["status"]["allocations"][ip].clone()
}

async fn until_empty(field: &Field) {
    field.until_pool(POOL, "empty", |pool| pool["status"]["allocated"] == 0).await;
}

/// Hears of every address that comes or goes on a host.
struct Ear {
    monitor: Child,
    heard: Arc<Mutex<Vec<String>>>,
}

impl Drop for Ear {
    fn drop(&mut self) {
        let _ = self.monitor.kill();
        let _ = self.monitor.wait();
    }
}

impl Ear {
    async fn at(host: &Host) -> Self {
        let mut monitor = Command::new("ip");
        monitor.args(["-n", host.namespace(), "monitor", "address"]).stdout(Stdio::piped());
        let mut monitor = monitor.spawn().expect("ip");
        let lines = BufReader::new(monitor.stdout.take().expect("its output")).lines();
        let heard: Arc<Mutex<Vec<String>>> = Arc::default();
        let keep = heard.clone();
        std::thread::spawn(move || {
            lines.map_while(Result::ok).for_each(|line| keep.lock().expect("whole").push(line));
        });
        let ear = Self { monitor, heard };
        ear.hears(host).await;
        ear
    }

    /// Waits until it has heard all that was until now.
    async fn hears(&self, host: &Host) {
        let before = self.heard.lock().expect("whole").len();
        let is_mark = |line: &String| line.contains(" 198.51.100.1/32");
        host.wait_until("heard", || {
            host.ip("addr add 198.51.100.1/32 dev lo");
            host.ip("addr del 198.51.100.1/32 dev lo");
            self.heard.lock().expect("whole")[before..].iter().any(is_mark)
        })
        .await;
    }

    /// Was this address taken off since?
    async fn heard_going(&self, host: &Host, ip: &str) -> bool {
        self.hears(host).await;
        let is_going = |line: &String| line.starts_with("Deleted") && line.contains(&format!(" {ip}/"));
        self.heard.lock().expect("whole").iter().any(is_going)
    }
}

/// R51, rule 11: claimed as `static` for its node, in any band; an address of no pool is as it ever was. Put back when it is
/// taken off, and there without a gap when the agent starts again. The policy goes: what is a pool's is off and free, the rest stays.
pub(crate) async fn r51_rule11_an_address_that_a_policy_names_is_claimed(api: On) {
    let field = Field::new(api).await;
    field.pool(POOL, json!({"range": {"cidr": SEEDS}, "quarantine": "1s"})).await;
    let mut host = field.host("node01", 2).await;
    // In the static band, in the dynamic one, and in no pool.
    field.policy("one", named("eth0", &["10.10.10.3", "10.10.10.200", "192.0.2.7"])).await;
    field.until_standing(&host, "one", "Available").await;
    let on_card = BTreeSet::from(["10.10.10.3/24", "10.10.10.200/24", "192.0.2.7/24"].map(str::to_owned));
    assert_eq!(host.addresses("eth0").into_iter().collect::<BTreeSet<_>>(), on_card);
    let entry = until_held(&field, "10.10.10.3", "node01").await;
    assert_eq!((&entry["policy"], &entry["capture"]), (&json!("one"), &json!("literal_10-10-10-3")));
    until_held(&field, "10.10.10.200", "node01").await;
    let pool = field.until_pool(POOL, "counted", |pool| pool["status"]["allocated"] == 2).await;
    assert_eq!(pool["status"]["allocations"].as_object().map(serde_json::Map::len), Some(2), "{pool:#}");
    let own = field.enactment(&host, "one").await;
    let request = &own["status"]["ippool"][POOL]["requests"]["literal_10-10-10-3"];
    assert_eq!((&request["literal"], &request["holds"]["ip"]), (&json!("10.10.10.3"), &json!("10.10.10.3")));
    host.wait_until("marked", || host.marked("eth0").len() == 2).await;
    field.agree().await;

    host.ip("addr del 10.10.10.3/24 dev eth0");
    host.wait_until("put back", || host.addresses("eth0").contains(&"10.10.10.3/24".to_owned())).await;
    let ear = Ear::at(&host).await;
    host.stop().await;
    field.start(&mut host).await;
    // Another policy shows that the agent has been at work.
    field.policy("two", named("eth1", &["10.10.10.4"])).await;
    field.until_standing(&host, "two", "Available").await;
    assert!(!ear.heard_going(&host, "10.10.10.3").await, "there all the time");
    let again = field.enactment(&host, "one").await;
    assert_eq!(again["status"]["ippool"][POOL]["requests"], own["status"]["ippool"][POOL]["requests"]);
    field.agree().await;

    for policy in ["one", "two"] {
        field.delete_policy(policy).await;
        field.until_no_enactment(&host, policy).await;
    }
    assert_eq!(host.addresses("eth0"), ["192.0.2.7/24"]);
    until_empty(&field).await;
    field.agree().await;
}

/// One literal for two nodes: the first has it, the other says who, and gets it when that one lets go. With a controller and
/// without.
pub(crate) async fn rule11_of_two_nodes_one_has_it_and_the_other_says_who(api: On) {
    let mut field = Field::new(api).await;
    pool(&field, 9).await;
    let first = field.host("node01", 1).await;
    let second = field.host("node02", 1).await;
    field.label(&first, "on", "yes").await;
    field.policy("one", on("on", named("eth0", &["10.10.10.5"]))).await;
    field.until_standing(&first, "one", "Available").await;
    field.label(&second, "on", "yes").await;
    let words = "interfaces[0].ipv4.address[0].ip: pool traffic-1: 10.10.10.5 is in use in pool traffic-1; choose another, or \
                 release it there first (held by node node01, policy one)";
    until_refused(&field, &second, "one", words).await;
    assert!(second.addresses("eth0").is_empty());
    field.agree().await;

    field.label(&first, "on", "no").await;
    field.until_no_enactment(&first, "one").await;
    field.until_standing(&second, "one", "Available").await;
    assert!(first.addresses("eth0").is_empty());
    assert_eq!(second.addresses("eth0"), ["10.10.10.5/24"]);
    until_held(&field, "10.10.10.5", "node02").await;
    field.agree().await;

    field.lose_controller().await;
    field.label(&first, "on", "yes").await;
    until_refused(&field, &first, "one", "(held by node node02, policy one)").await;
    field.label(&second, "on", "no").await;
    field.until_no_enactment(&second, "one").await;
    field.until_standing(&first, "one", "Available").await;
    until_held(&field, "10.10.10.5", "node01").await;
    field.agree().await;
}

/// A policy takes another's place on a node and names the same address, with a controller and without: it says who has it, gets
/// it when that one is deleted, and nobody else does, though another node waits for any address of that pool.
pub(crate) async fn rule11_a_renamed_policy_keeps_its_address_from_others(api: On) {
    let mut field = Field::new(api).await;
    pool(&field, 1).await;
    let host = field.host("node01", 1).await;
    let other = field.host("node02", 1).await;
    for (host, label) in [(&host, "one"), (&other, "two")] {
        field.label(host, label, "yes").await;
    }
    field.policy("old", on("one", named("eth0", &["10.10.10.1"]))).await;
    field.until_standing(&host, "old", "Available").await;
    field.policy("any", on("two", address_on(POOL, "eth0"))).await;
    until_refused(&field, &other, "any", "is exhausted").await;
    for (old, new) in [("old", "new"), ("new", "a-third")] {
        field.policy(new, on("one", named("eth0", &["10.10.10.1"]))).await;
        until_refused(&field, &host, new, &format!("(held by node node01, policy {old})")).await;
        field.delete_policy(old).await;
        field.until_standing(&host, new, "Available").await;
        assert_eq!(host.addresses("eth0"), ["10.10.10.1/24"]);
        assert_eq!(until_held(&field, "10.10.10.1", "node01").await["policy"], new);
        field.until_no_enactment(&host, old).await;
        let theirs = field.enactment(&other, "any").await;
        let grants = theirs["status"]["ippool"][POOL]["grants"].as_object();
        assert!(grants.is_none_or(|grants| grants.is_empty()), "{theirs:#}");
        assert!(other.addresses("eth0").is_empty());
        field.agree().await;
        if new == "new" {
            field.lose_controller().await;
        }
    }
}

/// What a policy names no capture gets, neither of its own nor of another's. All of a policy's claims or none: a capture that
/// goes with a literal that can't be had gets nothing.
pub(crate) async fn rule11_no_capture_gets_what_a_policy_names(api: On) {
    let field = Field::new(api).await;
    pool(&field, 2).await;
    let host = field.host("node01", 2).await;
    let other = field.host("node02", 2).await;
    for (host, label) in [(&host, "one"), (&other, "two")] {
        field.label(host, label, "yes").await;
    }
    for ip in ["10.10.10.1", "10.10.10.2"] {
        let mut policy = on("one", address_on(POOL, "eth1"));
        let literal = named("eth0", &[ip])["desiredState"]["interfaces"][0].clone();
        policy["desiredState"]["interfaces"].as_array_mut().expect("a list").push(literal);
        field.policy("both", policy).await;
        field.until_standing(&host, "both", "Available").await;
        assert_eq!(host.addresses("eth0"), [format!("{ip}/24")]);
        assert_ne!(host.addresses("eth1"), host.addresses("eth0"));
        until_held(&field, ip, "node01").await;
        field.delete_policy("both").await;
        field.until_no_enactment(&host, "both").await;
    }
    field.policy("first", on("one", named("eth0", &["10.10.10.1"]))).await;
    field.until_standing(&host, "first", "Available").await;
    field.policy("dynamic", on("two", address_on(POOL, "eth0"))).await;
    field.until_standing(&other, "dynamic", "Available").await;
    assert_eq!(other.addresses("eth0"), ["10.10.10.2/24"]);
    field.delete_policy("dynamic").await;
    field.until_no_enactment(&other, "dynamic").await;

    let mut policy = on("two", address_on(POOL, "eth1"));
    let literal = named("eth0", &["10.10.10.1"])["desiredState"]["interfaces"][0].clone();
    policy["desiredState"]["interfaces"].as_array_mut().expect("a list").push(literal);
    field.policy("both", policy).await;
    until_refused(&field, &other, "both", "(held by node node01, policy first)").await;
    assert!(other.addresses("eth0").is_empty() && other.addresses("eth1").is_empty());
    field.until_pool(POOL, "with one", |pool| pool["status"]["allocated"] == 1).await;
    field.agree().await;
}

/// What a pool gives nobody it gives no policy either: excluded, its gateway, reserved for another node; and of two policies
/// of one node the first has it.
pub(crate) async fn rule11_what_a_pool_gives_nobody_is_refused(api: On) {
    let field = Field::new(api).await;
    let mut range = to(20);
    range["exclude"] = json!(["10.10.10.4"]);
    range["gateway"] = json!("10.10.10.9");
    let reserved = json!([{"node": "node09", "ip": "10.10.10.6"}]);
    field.pool(POOL, json!({"range": range, "reservations": reserved, "quarantine": "1s"})).await;
    let host = field.host("node01", 1).await;
    let cases = [
        ("10.10.10.4", "10.10.10.4 can't be had from pool traffic-1: range default excludes it"),
        ("10.10.10.9", "10.10.10.9 can't be had from pool traffic-1: it is the gateway of range default"),
        ("10.10.10.6", "10.10.10.6 of pool traffic-1 is reserved for node node09"),
    ];
    for (ip, words) in cases {
        field.policy("one", named("eth0", &[ip, "192.0.2.7"])).await;
        until_refused(&field, &host, "one", words).await;
        assert!(host.addresses("eth0").is_empty(), "untouched");
        field.delete_policy("one").await;
        field.until_no_enactment(&host, "one").await;
    }
    field.policy("one", named("eth0", &["10.10.10.5"])).await;
    field.until_standing(&host, "one", "Available").await;
    field.policy("two", named("eth0", &["10.10.10.5"])).await;
    until_refused(&field, &host, "two", "(held by node node01, policy one)").await;
    assert_eq!(host.addresses("eth0"), ["10.10.10.5/24"]);
    field.agree().await;
}

/// A pool is made over an address that a policy has put on a card already: it is that node's, without a gap on the card and
/// without a word in its enactment's conditions, and nobody else's.
pub(crate) async fn rule5_rule11_a_pool_made_later_finds_who_has_it(api: On) {
    let field = Field::new(api).await;
    let host = field.host("node01", 1).await;
    let other = field.host("node02", 1).await;
    for (host, label) in [(&host, "one"), (&other, "two")] {
        field.label(host, label, "yes").await;
    }
    field.policy("one", on("one", named("eth0", &["10.10.10.1"]))).await;
    field.until_standing(&host, "one", "Available").await;
    assert!(host.marked("eth0").is_empty(), "of no pool");
    let shown = |state: &Value| state["status"]["currentState"].to_string().contains("10.10.10.1");
    field.until::<NodeNetworkState>("node01", "shown", shown).await;
    let conditions = field.enactment(&host, "one").await["status"]["conditions"].clone();
    let ear = Ear::at(&host).await;
    field.policy("two", on("two", address_on(POOL, "eth0"))).await;
    pool(&field, 1).await;
    until_held(&field, "10.10.10.1", "node01").await;
    until_refused(&field, &other, "two", "is exhausted").await;
    host.wait_until("marked", || host.marked("eth0").len() == 1).await;
    assert!(!ear.heard_going(&host, "10.10.10.1").await, "there all the time");
    assert_eq!(field.enactment(&host, "one").await["status"]["conditions"], conditions, "nothing to say");
    field.agree().await;

    field.delete_policy("one").await;
    field.until_no_enactment(&host, "one").await;
    assert!(host.addresses("eth0").is_empty());
    field.until_standing(&other, "two", "Available").await;
    field.agree().await;
}

/// A range is appended over what a policy has put on a card already, with a controller, and where one comes later: it is that
/// node's, without a gap on the card, and nobody else's.
pub(crate) async fn rule5_rule11_a_range_appended_later_finds_who_has_it(api: On) {
    let mut field = Field::new(api).await;
    let range =
        |name: &str, ip: &str| json!({"name": name, "cidr": format!("{ip}/24"), "start": ip, "end": ip});
    let first = range("first", "10.10.20.1");
    field.pool(POOL, json!({"ranges": [first], "staticBand": "None", "quarantine": "1s"})).await;
    let host = field.host("node01", 1).await;
    let other = field.host("node02", 2).await;
    for (host, label) in [(&host, "one"), (&other, "two")] {
        field.label(host, label, "yes").await;
    }
    field.policy("one", on("one", named("eth0", &["10.10.10.1", "10.10.30.1"]))).await;
    field.until_standing(&host, "one", "Available").await;
    field.policy("first", on("two", address_on(POOL, "eth0"))).await;
    field.until_standing(&other, "first", "Available").await;
    field.policy("waits", on("two", address_on(POOL, "eth1"))).await;
    until_refused(&field, &other, "waits", "is exhausted").await;
    let shown = |state: &Value| state["status"]["currentState"].to_string().contains("10.10.10.1");
    field.until::<NodeNetworkState>("node01", "shown", shown).await;
    let ear = Ear::at(&host).await;
    let second = range("second", "10.10.10.1");
    field.patch_pool(POOL, json!({"spec": {"ranges": [first, second]}})).await;
    until_held(&field, "10.10.10.1", "node01").await;
    field.until_standing(&other, "waits", "Failing").await;
    field.delete_policy("waits").await;
    field.until_no_enactment(&other, "waits").await;

    field.lose_controller().await;
    let third = range("third", "10.10.30.1");
    field.patch_pool(POOL, json!({"spec": {"ranges": [first, second, third]}})).await;
    field.find_controller();
    until_held(&field, "10.10.30.1", "node01").await;
    for ip in ["10.10.10.1", "10.10.30.1"] {
        assert!(!ear.heard_going(&host, ip).await, "there all the time");
    }
    field.agree().await;
}

/// An agent that did not claim such addresses is replaced by one that does: what is on the card stays there, whatever the pool
/// says. What is free is claimed; what is excluded needs no claim; what is another's is said to be.
pub(crate) async fn rule11_what_was_in_use_unclaimed_stays_on_the_card(api: On) {
    let field = Field::new(api).await;
    let mut host = field.host("node01", 3).await;
    let had = [
        ("free", "eth0", "10.10.10.5"),
        ("excluded", "eth1", "10.10.10.4"),
        ("reserved", "eth2", "10.10.10.6"),
    ];
    for (policy, card, ip) in had {
        field.policy(policy, named(card, &[ip])).await;
        field.until_standing(&host, policy, "Available").await;
    }
    // The pool never heard of them.
    host.stop().await;
    field.delete::<NodeNetworkState>("node01").await;
    let mut range = to(20);
    range["exclude"] = json!(["10.10.10.4"]);
    let reserved = json!([{"node": "node09", "ip": "10.10.10.6"}]);
    field.pool(POOL, json!({"range": range, "reservations": reserved, "quarantine": "1s"})).await;
    field.until_pool(POOL, "ready", |pool| pool["status"]["conditions"][0]["status"] == "True").await;
    let ear = Ear::at(&host).await;
    field.start(&mut host).await;
    until_held(&field, "10.10.10.5", "node01").await;
    until_refused(&field, &host, "reserved", "10.10.10.6 of pool traffic-1 is reserved for node node09")
        .await;
    field.until_standing(&host, "free", "Available").await;
    field.until_standing(&host, "excluded", "Available").await;
    for (_, card, ip) in had {
        assert_eq!(host.addresses(card), [format!("{ip}/24")]);
    }
    for (_, _, ip) in had {
        assert!(!ear.heard_going(&host, ip).await, "{ip} was there all the time");
    }
    // What no pool gives to anybody is put back like anything else that a policy set.
    host.ip("addr del 10.10.10.4/24 dev eth1");
    host.wait_until("put back", || host.addresses("eth1") == ["10.10.10.4/24"]).await;
    let unclaimed = [
        "node01: 10.10.10.4 is on a card and in no ledger",
        "node01: 10.10.10.6 is on a card and in no ledger",
    ];
    field.agree_but(&unclaimed).await;
}

/// A policy that had to wait for its pool, and names an address of that pool too: it is claimed like the other.
pub(crate) async fn rule11_a_policy_from_before_its_pool_claims_what_it_names(api: On) {
    let field = Field::new(api).await;
    let host = field.host("node01", 2).await;
    let mut spec = address_on(POOL, "eth0");
    let literal = named("eth1", &["10.10.10.3"])["desiredState"]["interfaces"][0].clone();
    spec["desiredState"]["interfaces"].as_array_mut().expect("a list").push(literal);
    field.policy("one", spec).await;
    until_refused(&field, &host, "one", "no pool").await;
    pool(&field, 9).await;
    field.until_standing(&host, "one", "Available").await;
    until_held(&field, "10.10.10.3", "node01").await;
    assert_eq!(host.addresses("eth1"), ["10.10.10.3/24"]);
    assert_ne!(host.addresses("eth0"), ["10.10.10.3/24"]);
    field.until_pool(POOL, "with both", |pool| pool["status"]["allocated"] == 2).await;
    field.agree().await;
}

/// A policy is edited to name another address: it keeps the one that it has until it has the other.
pub(crate) async fn rule11_an_edited_policy_keeps_its_address_until_it_has_the_other(api: On) {
    let field = Field::new(api).await;
    pool(&field, 9).await;
    let host = field.host("node01", 1).await;
    let other = field.host("node02", 1).await;
    for (host, label) in [(&host, "one"), (&other, "two")] {
        field.label(host, label, "yes").await;
    }
    field.policy("one", on("one", named("eth0", &["10.10.10.5"]))).await;
    field.policy("two", on("two", named("eth0", &["10.10.10.6"]))).await;
    let done = |policy: &Value| policy["status"]["conditions"][0]["status"] == "True";
    for policy in ["one", "two"] {
        field.until_policy(policy, "over", done).await;
    }
    field.try_edit_policy("one", on("one", named("eth0", &["10.10.10.6"]))).await.expect("it is over");
    until_refused(&field, &host, "one", "(held by node node02, policy two)").await;
    assert_eq!(host.addresses("eth0"), ["10.10.10.5/24"]);
    until_held(&field, "10.10.10.5", "node01").await;
    field.delete_policy("two").await;
    host.wait_until("the other", || host.addresses("eth0") == ["10.10.10.6/24"]).await;
    until_held(&field, "10.10.10.6", "node01").await;
    let is_free = |pool: &Value| pool["status"]["allocated"] == 1;
    field.until_pool(POOL, "without the first", is_free).await;
    field.until_standing(&host, "one", "Available").await;
    field.agree().await;
}

/// R51, R92: of a pool of two families a literal is one address, though the other family has none left.
pub(crate) async fn r51_r92_of_two_families_a_literal_is_one(api: On) {
    let field = Field::new(api).await;
    let six = json!({"cidr": "fd00::/64", "start": "fd00::1", "end": "fd00::1"});
    let range = json!({"ipv4": {"cidr": SEEDS}, "ipv6": six});
    field.pool(POOL, json!({"range": range, "quarantine": "1s"})).await;
    let host = field.host("node01", 2).await;
    field.policy("both", address_on(POOL, "eth1")).await;
    field.until_standing(&host, "both", "Available").await;
    field.policy("one", named("eth0", &["10.10.10.5"])).await;
    field.until_standing(&host, "one", "Available").await;
    assert_eq!(host.addresses("eth0"), ["10.10.10.5/24"]);
    until_held(&field, "10.10.10.5", "node01").await;
    field.delete_policy("both").await;
    field.until_no_enactment(&host, "both").await;
    field.delete_policy("one").await;
    field.until_no_enactment(&host, "one").await;
    until_empty(&field).await;
    field.agree().await;
}

/// R51: in a sliced pool the slice around it is claimed; whoever names another address of it hears whose it is.
pub(crate) async fn r51_rule11_in_a_sliced_pool_the_slice_is_claimed(api: On) {
    let field = Field::new(api).await;
    let range = json!({"cidr": "10.10.10.0/24", "perNodeHostBits": 4});
    field.pool(POOL, json!({"range": range, "staticBand": "None", "quarantine": "1s"})).await;
    let first = field.host("node01", 2).await;
    let second = field.host("node02", 2).await;
    for (host, label) in [(&first, "one"), (&second, "two")] {
        field.label(host, label, "yes").await;
    }
    field.policy("one", on("one", named("eth0", &["10.10.10.37"]))).await;
    field.until_standing(&first, "one", "Available").await;
    let slices: Api<NodeIPSlice> = Api::all(field.client());
    let slice = slices.get("traffic-1.10.10.10.32").await.expect("a slice");
    assert_eq!((slice.spec.node.as_str(), slice.spec.cidr.as_str()), ("node01", "10.10.10.32/28"));
    let entry = json!(slice.status)["allocations"]["10.10.10.37"].clone();
    assert_eq!((&entry["kind"], &entry["policy"]), (&json!("static"), &json!("one")), "{entry:#}");
    field.policy("two", on("two", named("eth0", &["10.10.10.38"]))).await;
    let words = "slice 10.10.10.32/28 of pool traffic-1, where 10.10.10.38 lies, belongs to node node01";
    until_refused(&field, &second, "two", words).await;
    assert!(second.addresses("eth0").is_empty());
    field.agree().await;
    field.delete_policy("one").await;
    field.until_standing(&second, "two", "Available").await;
    assert_eq!(second.addresses("eth0"), ["10.10.10.38/24"]);
    field.delete_policy("two").await;
    field.until_no_enactment(&second, "two").await;
    assert!(slices.list(&ListParams::default()).await.expect("slices").items.is_empty());
    field.agree().await;
}

/// Rule 10: somebody on the wire has it. It is not used, and said who it is; when that machine is gone and the quarantine
/// is over it is used.
pub(crate) async fn r17_rule11_a_literal_in_use_on_the_wire_is_used_when_it_is_free(api: On) {
    let field = Field::new(api).await;
    pool(&field, 9).await;
    let host = field.host("node01", 1).await;
    let stranger = host.gateway("eth0", "10.10.10.5");
    let mac = stranger.mac("far0");
    field.policy("one", named("eth0", &["10.10.10.5"])).await;
    until_refused(&field, &host, "one", &format!("({mac} answers for it on the wire of node node01)")).await;
    assert!(host.addresses("eth0").is_empty());
    stranger.ip("addr del 10.10.10.5/24 dev far0");
    field.until_standing(&host, "one", "Available").await;
    assert_eq!(host.addresses("eth0"), ["10.10.10.5/24"]);
    until_held(&field, "10.10.10.5", "node01").await;
    field.agree().await;
}

/// Rule 9: which pools there are costs nothing where no policy names an address; where one does a list of metadata before it is
/// applied, and another if no pool had it; and the pools themselves once for each that is new.
pub(crate) async fn rule9_rule11_what_it_costs_to_know_the_pools(api: On) {
    let field = Field::new(api).await;
    let mut host = field.machine("node01", 4);
    field.make_node("node01", "True").await;
    let (client, lists) = doubles::pools_read(field.client_for(&host).await);
    field.start_with(&mut host, &client);
    let read = || lists.lock().expect("whole").clone();
    let plain = json!({"desiredState": {"interfaces": [{"name": "eth0", "type": "veth", "state": "up", "mtu": 1400}]}});
    field.policy("plain", plain).await;
    field.until_standing(&host, "plain", "Available").await;
    assert!(read().is_empty(), "{:?}", read());
    field.policy("outside", named("eth1", &["192.0.2.7"])).await;
    field.until_standing(&host, "outside", "Available").await;
    host.wait_until("read again", || read().len() >= 2).await;
    pool(&field, 9).await;
    for (policy, card, ip) in [("five", "eth2", "10.10.10.5"), ("six", "eth3", "10.10.10.6")] {
        field.policy(policy, named(card, &[ip])).await;
        field.until_standing(&host, policy, "Available").await;
        until_held(&field, ip, "node01").await;
    }
    // Once for each policy and for each report with an address of no pool, and again where a slow machine came late; never all pools, ledgers and all.
    assert!(
        (4..=12).contains(&read().len()) && read().iter().all(|what| *what == "metadata"),
        "{:?}",
        read()
    );
    field.agree().await;
}

/// Which pools there are can't be read: who names an address waits, and says why; nobody else does.
pub(crate) async fn rule11_pools_that_cannot_be_read_hold_up_who_names_an_address_alone(api: On) {
    let field = Field::new(api).await;
    pool(&field, 9).await;
    let mut host = field.machine("node01", 2);
    field.make_node("node01", "True").await;
    let lost = Arc::new(AtomicBool::new(true));
    let client = doubles::unlisted(field.client_for(&host).await, lost.clone());
    field.start_with(&mut host, &client);
    field.policy("a-named", named("eth0", &["10.10.10.7"])).await;
    field.policy("captured", address_on(POOL, "eth1")).await;
    field.until_standing(&host, "captured", "Available").await;
    let says =
        |own: &Value| own["status"]["conditions"].to_string().contains("the pools can't be read: etcd");
    field.until_enactment(&host, "a-named", "said to wait", says).await;
    assert!(host.addresses("eth0").is_empty());
    lost.store(false, Ordering::SeqCst);
    field.until_standing(&host, "a-named", "Available").await;
    until_held(&field, "10.10.10.7", "node01").await;
    // What is on the card is put back without them, by an agent that never read them, too.
    host.stop().await;
    lost.store(true, Ordering::SeqCst);
    field.start_with(&mut host, &client);
    host.ip("addr del 10.10.10.7/24 dev eth0");
    host.wait_until("put back", || host.addresses("eth0") == ["10.10.10.7/24"]).await;
    field.until_standing(&host, "a-named", "Available").await;
    field.agree().await;
}

/// What the journal holds is put back, and its policy is well, though who should grant it once more does nothing.
pub(crate) async fn rule11_what_is_held_needs_no_grant_to_be_put_back(api: On) {
    let mut field = Field::new(api).await;
    pool(&field, 9).await;
    let mut host = field.host("node01", 1).await;
    field.policy("one", named("eth0", &["10.10.10.5"])).await;
    field.until_standing(&host, "one", "Available").await;
    until_held(&field, "10.10.10.5", "node01").await;
    host.stop().await;
    field.lose_controller().await;
    field.lease_for_ever().await;
    field.force_enactment_away(&host, "one").await;
    host.ip("addr del 10.10.10.5/24 dev eth0");
    field.start(&mut host).await;
    let own = field.until_standing(&host, "one", "Available").await;
    assert_eq!(host.addresses("eth0"), ["10.10.10.5/24"]);
    let claims = &own["status"]["ippool"][POOL];
    assert!(!claims["requests"].is_null(), "{own:#}");
    assert!(claims["grants"].as_object().is_none_or(|grants| grants.is_empty()), "{own:#}");
    field.lose_controller().await;
    field.find_controller();
    let granted = |own: &Value| own["status"]["ippool"][POOL]["grants"]["literal_10-10-10-5"].is_object();
    field.until_enactment(&host, "one", "granted", granted).await;
    field.agree().await;
}

/// A pool goes while its address is asked for: it is nobody's business any more. And while it is held: it is kept.
pub(crate) async fn rule11_a_pool_that_goes_takes_nothing_along(api: On) {
    let field = Field::new(api).await;
    let mut range = to(9);
    range["exclude"] = json!(["10.10.10.6"]);
    field.pool(POOL, json!({"range": range, "quarantine": "1s"})).await;
    let host = field.host("node01", 2).await;
    field.policy("held", named("eth0", &["10.10.10.5"])).await;
    field.until_standing(&host, "held", "Available").await;
    field.policy("asks", named("eth1", &["10.10.10.6"])).await;
    until_refused(&field, &host, "asks", "excludes it").await;
    field.force_pool_away(POOL).await;
    field.until_standing(&host, "asks", "Available").await;
    assert_eq!(host.addresses("eth1"), ["10.10.10.6/24"]);
    assert_eq!(host.addresses("eth0"), ["10.10.10.5/24"]);
    pool(&field, 5).await;
    until_held(&field, "10.10.10.5", "node01").await;
    field.until_standing(&host, "held", "Available").await;
    field.agree().await;
}
