//! Who holds an address, and who doesn't any more.

use crds::NodeNetworkConfigurationEnactment;
use crds::names::annotation::RESET_POOL;
use k8s_openapi::api::core::v1::Node;
use serde_json::{Value, json};

use crate::SEEDS;
use crate::field::{Field, Host, doubles, one_address};
use crate::on::On;

async fn field(on: On) -> Field {
    let field = Field::new(on).await;
    field.pool("traffic-1", json!({"range": {"cidr": SEEDS}, "quarantine": "1s"})).await;
    field
}

fn address(host: &Host) -> String {
    let on = host.addresses("eth0");
    assert_eq!(on.len(), 1, "{}: {on:?}", host.name);
    on[0].split('/').next().expect("an address").to_owned()
}

/// The entry of an address.
fn entry<'a>(pool: &'a Value, ip: &str) -> &'a Value {
    &pool["status"]["allocations"][ip]
}

/// R24, R71: an entry that somebody deletes by force is put back for its holder; no second address is taken, and the card
/// has it all the time.
pub(crate) async fn r24_r71_a_deleted_entry_comes_back(on: On) {
    let field = field(on).await;
    let host = field.host("node01", 1).await;
    field.policy("one", one_address("traffic-1")).await;
    field.until_standing(&host, "one", "Available").await;
    let ip = address(&host);
    let before = field.until_pool("traffic-1", "held", |pool| !entry(pool, &ip).is_null()).await;
    field
        .patch_pool_status(
            "traffic-1",
            json!({"allocations": {&ip: null}, "allocated-offsets": [], "allocated": 0}),
        )
        .await;
    let back = |pool: &Value| entry(pool, &ip)["state"].is_null() && !entry(pool, &ip).is_null();
    let after = field.until_pool("traffic-1", "put back", back).await;
    assert_eq!(entry(&after, &ip)["request"], entry(&before, &ip)["request"]);
    field.until_pool("traffic-1", "as before", |pool| pool["status"]["allocated"] == 1).await;
    assert_eq!(address(&host), ip);
    field.agree().await;
}

/// Rule 1: an id is its node's. All can read all ids; who copies one, to let it go, to decline what it has or to hold something by it,
/// has another that reads the same, and holds nobody up.
pub(crate) async fn rule1_who_copies_an_id_has_another(on: On) {
    let field = field(on).await;
    let host = field.host("node01", 1).await;
    field.policy("one", one_address("traffic-1")).await;
    field.until_standing(&host, "one", "Available").await;
    let ip = address(&host);
    let before = field.until_pool("traffic-1", "held", |pool| !entry(pool, &ip).is_null()).await;
    let id = entry(&before, &ip)["request"].clone();
    field.make_node("node02", "True").await;
    let asks = |request: Value| json!({"traffic-1": {"requests": {"address": request}}});
    let declined = json!([{"ip": ip, "mac": "02:00:00:00:00:01"}]);
    field.copy_enactment("node02", "lets-go", asks(json!({"id": id, "want": false}))).await;
    field
        .copy_enactment("node02", "declines", asks(json!({"id": id, "want": true, "declined": declined})))
        .await;
    let slot = |object: &Value, part: &str| object["status"]["ippool"]["traffic-1"][part]["address"].clone();
    let enactment = |name: &'static str, part: &'static str| {
        field.until::<NodeNetworkConfigurationEnactment>(name, "answered", move |own| {
            !slot(own, part).is_null()
        })
    };
    assert_eq!(slot(&enactment("node02.lets-go", "refused").await, "refused")["reason"], "Released");
    let other = slot(&enactment("node02.declines", "grants").await, "grants")["ip"].clone();
    assert_ne!(other, json!(ip));
    let after =
        field.until_pool("traffic-1", "as before", |pool| entry(pool, &ip) == entry(&before, &ip)).await;
    assert_eq!(entry(&after, other.as_str().expect("an address"))["node"], "node02");
    // Neither does it outlast its Node, nor does anybody wait for it.
    let third = field.host("node03", 1).await;
    field.until_standing(&third, "one", "Available").await;
    field.delete::<Node>("node02").await;
    for name in ["node02.lets-go", "node02.declines"] {
        field.until_gone::<NodeNetworkConfigurationEnactment>(name).await;
    }
    assert_eq!(address(&host), ip);
    field.agree().await;
}

/// R29, R40: nothing is set aside for longer than a quarantine, whatever its host said before its Node went.
pub(crate) async fn r29_r40_what_a_host_sets_aside_for_ever_is_free_in_time(on: On) {
    let field = field(on).await;
    field.make_node("node02", "True").await;
    let uid = field.api::<Node>().get("node02").await.expect("a Node").metadata.uid;
    let pool =
        field.until_pool("traffic-1", "rebuilt", |pool| pool["status"]["rebuiltFor"].is_string()).await;
    let sequence = pool["status"]["sequence"].as_i64().expect("a number");
    let aside = json!({"node": "node02", "nodeUID": uid, "policy": "one", "capture": "address", "request": "id",
        "sequence": sequence, "since": "2026-01-01T00:00:00Z", "kind": "dynamic",
        "state": "Quarantined", "reason": "IPCollision", "until": "2999-12-31T23:59:59Z"});
    let offsets = pool["status"]["allocated-offsets"].is_array().then(|| json!([7]));
    let mut status = json!({"allocations": {"10.10.10.8": aside}, "allocated": 1});
    status["allocated-offsets"] = offsets.unwrap_or(json!([7]));
    field.patch_pool_status("traffic-1", status).await;
    field.delete::<Node>("node02").await;
    let is_free = |pool: &Value| pool["status"]["allocations"].as_object().is_some_and(|all| all.is_empty());
    field.until_pool("traffic-1", "free of it", is_free).await;
    field.agree().await;
}

/// R25: an agent writes its own enactments, its own NodeNetworkState, and nothing else.
pub(crate) async fn r25_an_agent_writes_what_is_its_own(on: On) {
    let field = field(on).await;
    let other = field.host("node02", 1).await;
    let mut host = field.machine("node01", 1);
    field.make_node("node01", "True").await;
    let (client, writes) = doubles::recorded(field.client_for(&host).await);
    field.start_with(&mut host, &client);
    field.policy("one", one_address("traffic-1")).await;
    for host in [&host, &other] {
        field.until_standing(host, "one", "Available").await;
    }
    field.delete_policy("one").await;
    for host in [&host, &other] {
        field.until_no_enactment(host, "one").await;
    }
    host.stop().await;
    let writes = writes.lock().expect("whole").clone();
    assert!(!writes.is_empty());
    for write in &writes {
        let path = write.split_whitespace().last().unwrap_or_default();
        let own = path.contains("enactments/node01.one") || path.contains("networkstates/node01");
        let made =
            write.starts_with("POST ") && (path.ends_with("enactments") || path.ends_with("networkstates"));
        assert!(own || made, "{write}, of {writes:#?}");
    }
    field.agree().await;
}

/// R26: a new address is asked for when the Node is Ready; one that is held stays when it is not.
pub(crate) async fn r26_a_new_address_waits_for_the_node_to_be_ready(on: On) {
    let field = field(on).await;
    field.policy("one", one_address("traffic-1")).await;
    let mut host = field.machine("node01", 1);
    field.make_node("node01", "False").await;
    field.start(&mut host).await;
    let own = field.until_standing(&host, "one", "Pending").await;
    assert!(own["status"]["ippool"].is_null(), "{own:#}");
    field.set_ready("node01", "True").await;
    field.until_standing(&host, "one", "Available").await;
    let ip = address(&host);
    field.set_ready("node01", "False").await;
    host.ip(&format!("addr del {ip}/24 dev eth0"));
    host.wait_until("put back", || host.addresses("eth0") == [format!("{ip}/24")]).await;
    field.agree().await;
}

/// R30, R109 (Release): a policy that no longer selects a host is, there, a policy that is gone.
pub(crate) async fn r30_a_host_that_is_selected_no_more_lets_go(on: On) {
    let field = field(on).await;
    let host = field.host("node01", 1).await;
    field.label(&host, "rack", "one").await;
    let mut policy = one_address("traffic-1");
    policy["nodeSelector"] = json!({"rack": "one"});
    field.policy("one", policy).await;
    field.until_standing(&host, "one", "Available").await;
    field.label(&host, "rack", "two").await;
    field.until_no_enactment(&host, "one").await;
    assert!(host.addresses("eth0").is_empty());
    field.until_pool("traffic-1", "empty", |pool| pool["status"]["allocated"] == 0).await;
    field.agree().await;
}

/// R31: captures can't be changed; deleted and created anew, a policy gets the same address, by a new request.
pub(crate) async fn r31_captures_stay_and_a_policy_made_anew_gets_the_same_address(on: On) {
    let field = field(on).await;
    let host = field.host("node01", 1).await;
    field.policy("one", one_address("traffic-1")).await;
    let before = field.until_standing(&host, "one", "Available").await;
    let ip = address(&host);
    field.until_policy("one", "over", |policy| policy["status"]["conditions"][0]["status"] == "True").await;
    let other = json!({"capture": {"address": "ippool.other.allocate"}});
    let refused = field.try_edit_policy("one", other).await.expect_err("not to be changed");
    assert!(refused.to_string().contains("capture field cannot be modified"), "{refused}");
    field.delete_policy("one").await;
    field.until_no_enactment(&host, "one").await;
    field.policy("one", one_address("traffic-1")).await;
    let after = field.until_standing(&host, "one", "Available").await;
    assert_eq!(address(&host), ip);
    let id = |own: &Value| own["status"]["ippool"]["traffic-1"]["requests"]["address"]["id"].clone();
    assert_ne!(id(&after), id(&before));
    field.agree().await;
}

/// R29, R40: a host is lost. While its Node is there its address is kept; that it was deleted is seen also by a controller
/// that was away then.
pub(crate) async fn r29_r40_a_lost_host_is_found_out(on: On) {
    lose_a_host(on, false).await;
}

/// R29, R34, R40: and a reset by hand finds the same.
pub(crate) async fn r29_r34_r40_a_lost_host_is_found_out_by_a_reset(on: On) {
    lose_a_host(on, true).await;
}

async fn lose_a_host(on: On, by_hand: bool) {
    let mut field = field(on).await;
    let mut host = field.host("node01", 1).await;
    field.policy("one", one_address("traffic-1")).await;
    field.until_standing(&host, "one", "Available").await;
    let ip = address(&host);
    host.stop().await;
    field.lose_controller().await;
    field.delete_node(&host).await;
    let pool = field.until_pool("traffic-1", "held", |pool| !entry(pool, &ip).is_null()).await;
    assert!(entry(&pool, &ip)["state"].is_null(), "nobody was there to see it");
    if by_hand {
        field.annotate_pool("traffic-1", RESET_POOL, json!("traffic-1")).await;
    }
    field.find_controller();
    field.until_pool("traffic-1", "free", |pool| entry(pool, &ip).is_null()).await;
    field.until_no_enactment(&host, "one").await;
    let pool = field.until_pool("traffic-1", "counted", |pool| pool["status"]["allocated"] == 0).await;
    assert!(pool["metadata"]["annotations"][RESET_POOL].is_null());
    // The host is off, with all that it had.
    field.agree_but(&["node01: journalled and in no ledger", &format!("node01: {ip} is on a card")]).await;
}

/// R73: a Node made anew under its name, on a host that remembers nothing, is another holder: the old entry is quarantined
/// first, whoever asks.
pub(crate) async fn r73_a_namesake_inherits_nothing(on: On) {
    let field = Field::new(on).await;
    let one = json!({"cidr": SEEDS, "start": "10.10.10.1", "end": "10.10.10.1"});
    field.pool("tiny", json!({"range": one, "quarantine": "3s"})).await;
    let mut host = field.host("node01", 1).await;
    field.policy("one", one_address("tiny")).await;
    let before = field.until_standing(&host, "one", "Available").await;
    host.stop().await;
    host.wipe();
    field.delete_node(&host).await;
    field.make_node("node01", "True").await;
    field.start(&mut host).await;
    let ip = "10.10.10.1";
    let pool = field.until_pool("tiny", "set aside", |pool| entry(pool, ip)["state"] == "Quarantined").await;
    let uid = |own: &Value| own["metadata"]["ownerReferences"][0]["uid"].clone();
    assert_eq!(entry(&pool, ip)["nodeUID"], uid(&before));
    field
        .until_pool("tiny", "its own", |pool| {
            entry(pool, ip)["state"].is_null()
                && !entry(pool, ip).is_null()
                && entry(pool, ip)["nodeUID"] != uid(&before)
        })
        .await;
    let after = field.until_standing(&host, "one", "Available").await;
    assert_ne!(uid(&after), uid(&before));
    assert_eq!(host.addresses("eth0"), ["10.10.10.1/24"]);
    field.agree().await;
}
