//! Addresses that somebody outside uses on the wire (rule 10, R17).

use crds::names::annotation::WIRE_PROBE;
use crds::{NodeIPPool, NodeIPSlice};
use serde_json::{Value, json};

use crate::SEEDS;
use crate::field::{Field, Gateway, Host, one_address};
use crate::on::On;
use crate::restart::dead;
use crate::told::{POLICY, POOL, told_that};
use crate::world::Object;

/// Where whoever is at the other end of a card is at first.
const ELSEWHERE: &str = "192.0.2.254";

/// A host that has had its address of a pool and gave it back, and a machine at the other end of its card that takes it:
/// the same is given again (rule 8).
async fn known_address(field: &Field, host: &Host, stranger: &Gateway) -> String {
    field.policy("first", one_address("traffic-1")).await;
    let ip = address(&field.until_standing(host, "first", "Available").await);
    field.delete_policy("first").await;
    field.until_no_enactment(host, "first").await;
    field.until_pool("traffic-1", "empty", |pool| pool["status"]["allocated"] == 0).await;
    stranger.ip(&format!("addr add {ip}/24 dev far0"));
    ip
}

fn address(own: &Value) -> String {
    own["status"]["ippool"]["traffic-1"]["allocated"][0].as_str().expect("an address").to_owned()
}

fn condition(pool: &Value) -> [&str; 3] {
    let condition = &pool["status"]["conditions"][0];
    ["status", "reason", "message"].map(|field| condition[field].as_str().unwrap_or_default())
}

fn message(ip: &str, mac: &str) -> String {
    format!("The IP address {ip} at node node01 and interface eth0 is colliding with node {mac}")
}

/// Somebody else is found to have the address: another is used.
async fn another_is_used(field: &Field, host: &Host, policy: &str, ip: &str) -> String {
    let moved = |own: &Value| {
        let given = &own["status"]["ippool"]["traffic-1"]["allocated"][0];
        let available = own["status"]["conditions"]
            .as_array()
            .is_some_and(|all| all.iter().any(|one| one["type"] == "Available" && one["status"] == "True"));
        available && given.is_string() && *given != ip
    };
    let now = address(&field.until_enactment(host, policy, "with another address", moved).await);
    host.wait_until("on the card", || host.addresses("eth0") == [format!("{now}/24")]).await;
    now
}

fn is_quarantined(ledger: &Value, ip: &str, mac: &str) -> bool {
    let entry = &ledger["status"]["allocations"][ip];
    let fields = ["state", "reason", "mac", "interface", "node"].map(|field| entry[field].as_str());
    fields == [Some("Quarantined"), Some("IPCollision"), Some(mac), Some("eth0"), Some("node01")]
}

/// All agree but for what is set aside, which counts as taken and is held by nobody.
async fn agree_but_aside(field: &Field, ips: &[&str]) {
    let aside: Vec<String> = ips.iter().map(|ip| format!("traffic-1: {ip}")).collect();
    let named: Vec<&str> = aside.iter().map(String::as_str).chain(["traffic-1: allocated is not"]).collect();
    field.agree_but(&named).await;
}

/// Another is claimed and the policy succeeds; condition and Events name address, node, interface and the other side; when the
/// quarantine is over all is well again. `K`: what has the ledger that the address is in, and how it is called.
async fn another_is_used_and_all_is_well_again<K: Object>(
    on: On,
    range: Value,
    ledger: impl Fn(&str) -> String,
) {
    let field = Field::new(on).await;
    field.pool("traffic-1", json!({"range": range, "quarantine": "4s"})).await;
    let host = field.host("node01", 1).await;
    let stranger = host.gateway("eth0", ELSEWHERE);
    let ip = known_address(&field, &host, &stranger).await;
    field.policy("one", one_address("traffic-1")).await;
    let mac = stranger.mac("far0");
    let collides = ["False", "IPCollision", &message(&ip, &mac)];
    field.until_pool("traffic-1", "colliding", |pool| condition(pool) == collides).await;
    field.until::<K>(&ledger(&ip), "where it is set aside", |of| is_quarantined(of, &ip, &mac)).await;
    let now = another_is_used(&field, &host, "one", &ip).await;
    told_that(&field, POOL, "IPCollision", &message(&ip, &mac)).await;
    let words = format!("node node01: {ip} of pool traffic-1 is in use by {mac}, heard on eth0");
    let event = told_that(&field, POLICY, "IPCollision", &words).await;
    assert_eq!(event.type_.as_deref(), Some("Warning"));
    let well = |pool: &Value| {
        condition(pool) == ["True", "ReconciledPool", "The pool is up to date"]
            && pool["status"]["allocations"].get(&ip).is_none()
    };
    field.until_pool("traffic-1", "well again", well).await;
    assert_eq!(host.addresses("eth0"), [format!("{now}/24")]);
    assert_eq!(stranger.ip("-4 -o addr show dev far0").matches(&format!("{ip}/24")).count(), 1);
    field.agree().await;
}

/// R17.
pub(crate) async fn r17_an_address_in_use_is_declined_and_another_used(on: On) {
    let pool = |_: &str| "traffic-1".to_owned();
    another_is_used_and_all_is_well_again::<NodeIPPool>(on, json!({"cidr": SEEDS}), pool).await;
}

/// R17, R41: of a sliced pool, too. What is set aside is in a slice, and the pool tells of it all the same; its host gives the
/// slice back in time, though nobody asks it for anything.
pub(crate) async fn r17_r41_an_address_in_use_of_a_sliced_pool_is_free_in_time(on: On) {
    let slice = |ip: &str| format!("traffic-1.{ip}");
    let range = json!({"cidr": SEEDS, "perNodeHostBits": 0});
    another_is_used_and_all_is_well_again::<NodeIPSlice>(on, range, slice).await;
}

/// R17, R41: without a controller, and though agent and policy are others by then.
pub(crate) async fn r17_r41_what_a_slice_has_aside_is_free_without_a_controller(on: On) {
    let mut field = Field::new(on).await;
    let range = json!({"cidr": SEEDS, "perNodeHostBits": 8});
    field.pool("traffic-1", json!({"range": range, "quarantine": "6s"})).await;
    let mut host = field.host("node01", 1).await;
    let stranger = host.gateway("eth0", ELSEWHERE);
    let ip = known_address(&field, &host, &stranger).await;
    field.lose_controller().await;
    field.policy("one", one_address("traffic-1")).await;
    another_is_used(&field, &host, "one", &ip).await;
    let (slice, mac) = ("traffic-1.10.10.10.0", stranger.mac("far0"));
    field.until::<NodeIPSlice>(slice, "where it is set aside", |of| is_quarantined(of, &ip, &mac)).await;
    field.delete_policy("one").await;
    field.until_no_enactment(&host, "one").await;
    host.stop().await;
    field.start(&mut host).await;
    field.until_gone::<NodeIPSlice>(slice).await;
    field.agree().await;
}

/// The same where nobody leads: the host serves itself, and may say what it found.
pub(crate) async fn r17_a_host_that_serves_itself_declines_too(on: On) {
    let mut field = Field::new(on).await;
    field.pool("traffic-1", json!({"range": {"cidr": SEEDS}, "quarantine": "10m"})).await;
    let host = field.host("node01", 1).await;
    let stranger = host.gateway("eth0", ELSEWHERE);
    let ip = known_address(&field, &host, &stranger).await;
    field.lose_controller().await;
    field.policy("one", one_address("traffic-1")).await;
    another_is_used(&field, &host, "one", &ip).await;
    let mac = stranger.mac("far0");
    field.until_pool("traffic-1", "quarantined", |pool| is_quarantined(pool, &ip, &mac)).await;
    agree_but_aside(&field, &[&ip]).await;
}

/// A host that was off comes back, and somebody has taken its address meanwhile: with the API it gets another at once, without
/// it its card stays empty until the API is there.
pub(crate) async fn r17_r27_at_boot_the_wire_is_asked_first(on: On) {
    let field = Field::new(on).await;
    field.pool("traffic-1", json!({"range": {"cidr": SEEDS}, "quarantine": "10m"})).await;
    let mut host = field.host("node01", 1).await;
    let stranger = host.gateway("eth0", ELSEWHERE);
    field.policy("one", one_address("traffic-1")).await;
    let mut ip = address(&field.until_standing(&host, "one", "Available").await);
    let mut aside = Vec::new();
    for api in ["there", "away"] {
        host.stop().await;
        host.ip("-4 addr flush dev eth0");
        stranger.ip(&format!("addr add {ip}/24 dev far0"));
        if api == "away" {
            field.start_with(&mut host, &dead());
            host.wait_until("declined", || host.journal().contains("\"declined\":{\"10.")).await;
            assert!(host.addresses("eth0").is_empty(), "{:?}", host.addresses("eth0"));
            host.stop().await;
        }
        field.start(&mut host).await;
        let now = another_is_used(&field, &host, "one", &ip).await;
        let mac = stranger.mac("far0");
        field.until_pool("traffic-1", "quarantined", |pool| is_quarantined(pool, &ip, &mac)).await;
        aside.push(std::mem::replace(&mut ip, now));
    }
    agree_but_aside(&field, &[&aside[0], &aside[1]]).await;
}

/// What is on the card stays there, whoever else has it: an agent that starts anew asks nobody, and neither does one that puts
/// back what something took off a moment ago.
pub(crate) async fn r17_what_is_on_the_card_is_not_asked_for(on: On) {
    let field = Field::new(on).await;
    field.pool("traffic-1", json!({"range": {"cidr": SEEDS}})).await;
    let mut host = field.host("node01", 1).await;
    let stranger = host.gateway("eth0", ELSEWHERE);
    field.policy("one", one_address("traffic-1")).await;
    let ip = address(&field.until_standing(&host, "one", "Available").await);
    let before = host.addresses("eth0");
    host.stop().await;
    stranger.ip(&format!("addr add {ip}/24 dev far0"));
    field.start(&mut host).await;
    let stamp = |state: &Value| state["status"]["stamp"].clone();
    let state = field.until_state(&host, "reported", |state| stamp(state).is_string()).await;
    field.ask_for_report(&host).await;
    field.until_state(&host, "reported anew", |now| stamp(now) != stamp(&state)).await;
    assert_eq!(host.addresses("eth0"), before);
    host.ip(&format!("addr del {} dev eth0", before[0]));
    host.wait_until("put back", || host.addresses("eth0") == before).await;
    let pool = field.until_pool("traffic-1", "as it was", |_| true).await;
    assert_eq!(pool["status"]["allocations"].as_object().map(|all| all.len()), Some(1), "{pool:#}");
    assert!(pool["status"]["allocations"][&ip].get("state").is_none(), "{pool:#}");
    field.agree().await;
}

/// Switched off by the policy, or without ARP on the link: the address is used, whoever has it. A word that says nothing is
/// named.
pub(crate) async fn r17_nobody_is_asked_where_that_is_off(on: On) {
    let field = Field::new(on).await;
    field.pool("traffic-1", json!({"range": {"cidr": SEEDS}, "quarantine": "1s"})).await;
    let host = field.host("node01", 1).await;
    let stranger = host.gateway("eth0", ELSEWHERE);
    let ip = known_address(&field, &host, &stranger).await;
    let off = |word: &str| json!({WIRE_PROBE: word});
    field.policy_with("one", off("never"), one_address("traffic-1")).await;
    let own = field.until_standing(&host, "one", "Failing").await;
    assert!(own.to_string().contains("\\\"never\\\" is no time to probe the wire for"), "{own:#}");
    field.delete_policy("one").await;
    field.until_no_enactment(&host, "one").await;
    field.policy_with("one", off("off"), one_address("traffic-1")).await;
    let given = address(&field.until_standing(&host, "one", "Available").await);
    assert_eq!((given.as_str(), host.addresses("eth0")), (ip.as_str(), vec![format!("{ip}/24")]));
    field.delete_policy("one").await;
    field.until_no_enactment(&host, "one").await;
    field.until_pool("traffic-1", "empty", |pool| pool["status"]["allocated"] == 0).await;
    host.ip("link set eth0 arp off");
    field.policy("one", one_address("traffic-1")).await;
    let given = address(&field.until_standing(&host, "one", "Available").await);
    assert_eq!((given.as_str(), host.addresses("eth0")), (ip.as_str(), vec![format!("{ip}/24")]));
    field.agree().await;
}

/// Without a carrier nobody can be asked, and the policy doesn't wait for one. When there is one, it is asked.
pub(crate) async fn r17_without_a_carrier_the_wire_is_asked_later(on: On) {
    let field = Field::new(on).await;
    field.pool("traffic-1", json!({"range": {"cidr": SEEDS}, "quarantine": "10m"})).await;
    let host = field.host("node01", 1).await;
    let stranger = host.gateway("eth0", ELSEWHERE);
    let ip = known_address(&field, &host, &stranger).await;
    stranger.ip("link set far0 down");
    field.policy("one", one_address("traffic-1")).await;
    let given = address(&field.until_standing(&host, "one", "Available").await);
    assert_eq!((given.as_str(), host.addresses("eth0")), (ip.as_str(), vec![format!("{ip}/24")]));
    stranger.ip("link set far0 up");
    another_is_used(&field, &host, "one", &ip).await;
    let mac = stranger.mac("far0");
    field.until_pool("traffic-1", "quarantined", |pool| is_quarantined(pool, &ip, &mac)).await;
    agree_but_aside(&field, &[&ip]).await;
}

/// Who answers for whatever is asked is not asked for the whole pool.
pub(crate) async fn r17_who_answers_for_everything_is_named(on: On) {
    let field = Field::new(on).await;
    let range = json!({"cidr": SEEDS, "start": "10.10.10.1", "end": "10.10.10.12"});
    field.pool("traffic-1", json!({"range": range, "quarantine": "10m"})).await;
    let host = field.host("node01", 1).await;
    let stranger = host.gateway("eth0", ELSEWHERE);
    for last in 1..=12 {
        stranger.ip(&format!("addr add 10.10.10.{last}/24 dev far0"));
    }
    field.policy("one", one_address("traffic-1")).await;
    let words = format!("{} answers on eth0 for whatever is asked for", stranger.mac("far0"));
    let says = |own: &Value| own["status"]["conditions"].to_string().contains(&words);
    field.until_enactment(&host, "one", "failing for it", says).await;
    assert!(host.addresses("eth0").is_empty());
    let pool = field.until_pool("traffic-1", "as it is", |_| true).await;
    let entries = pool["status"]["allocations"].as_object().expect("entries");
    let aside = entries.values().filter(|entry| entry["reason"] == "IPCollision").count();
    assert_eq!((aside, entries.len()), (8, 9), "{pool:#}");
    agree_but_aside(&field, &["10.10.10."]).await;
}

/// IPv6: the kernel finds it out, and who it is is asked.
pub(crate) async fn r17_an_ipv6_address_in_use_is_declined(on: On) {
    let field = Field::new(on).await;
    let range = json!({"cidr": "fd00:10::/64", "start": "fd00:10::1", "end": "fd00:10::40"});
    field.pool("traffic-1", json!({"range": range, "quarantine": "10m"})).await;
    let host = field.host("node01", 1).await;
    let stranger = host.gateway("eth0", ELSEWHERE);
    let six = json!({"capture": {"address": "ippool.traffic-1.allocate"}, "desiredState": {"interfaces": [
        {"name": "eth0", "type": "veth", "state": "up", "ipv6": {"enabled": true, "dhcp": false, "autoconf": false, "address": [
            {"ip": "{{ capture.address.ip }}", "prefix-length": "{{ capture.address.prefix-length }}"}]}}]}});
    field.policy("first", six.clone()).await;
    let ip = address(&field.until_standing(&host, "first", "Available").await);
    field.delete_policy("first").await;
    field.until_no_enactment(&host, "first").await;
    stranger.ip(&format!("addr add {ip}/64 dev far0 nodad"));
    field.policy("one", six).await;
    let mac = stranger.mac("far0");
    field.until_pool("traffic-1", "quarantined", |pool| is_quarantined(pool, &ip, &mac)).await;
    let own = field.until_standing(&host, "one", "Available").await;
    let now = address(&own);
    assert_ne!(now, ip);
    let there = host.ip("-6 -o addr show dev eth0");
    assert!(there.contains(&format!("{now}/64")) && !there.contains(&format!("{ip}/64")), "{there}");
    agree_but_aside(&field, &[&ip]).await;
}
