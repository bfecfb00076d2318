//! Ranges that hosts are given of: larger ones, new ones, and none.

use crds::names::annotation::RESET_POOL;
use serde_json::{Value, json};

use crate::field::{Field, one_address};
use crate::on::On;
use crate::told::{POOL, told};

/// R19: the prefix length is that of the range, not of what is given out of it.
pub(crate) async fn r19_the_prefix_length_is_the_ranges(on: On) {
    let field = Field::new(on).await;
    let range = json!({"cidr": "10.10.0.0/16", "start": "10.10.11.4", "end": "10.10.11.4"});
    field.pool("traffic-1", json!({"range": range})).await;
    let host = field.host("node01", 1).await;
    field.policy("one", one_address("traffic-1")).await;
    let own = field.until_standing(&host, "one", "Available").await;
    assert_eq!(own["status"]["capturedStates"]["address"]["prefix-length"], 16);
    assert_eq!(host.addresses("eth0"), ["10.10.11.4/16"]);
}

/// R59: a pool that gives says how its ledger is written, one from before that was said included.
pub(crate) async fn r59_a_pool_that_gives_says_how_its_ledger_is_written(on: On) {
    let field = Field::new(on).await;
    field.pool("traffic-1", json!({"range": {"cidr": "10.10.10.0/24"}})).await;
    let host = field.host("node01", 1).await;
    field.policy("one", one_address("traffic-1")).await;
    field.until_standing(&host, "one", "Available").await;
    let says = |pool: &Value| {
        let said = &pool["metadata"]["annotations"];
        said["nmstate.io/schema-version"] == "1" && said["nmstate.io/ledger-encoding"] == "allocations"
    };
    let pool = field.until_pool("traffic-1", "given of", |pool| pool["status"]["allocated"] == 1).await;
    assert!(says(&pool), "{pool}");
    let unsaid = json!({"nmstate.io/schema-version": null, "nmstate.io/ledger-encoding": null});
    field.patch_pool("traffic-1", json!({"metadata": {"annotations": unsaid}})).await;
    field.until_pool("traffic-1", "said again", says).await;
}

/// R33, R97, R99: a pool re-created. What the new range has stays its holder's; what it hasn't stays on the card, is in no
/// ledger, and is moved by nobody.
pub(crate) async fn r33_r97_r99_a_pool_made_anew_takes_back_what_it_has(on: On) {
    let field = Field::new(on).await;
    let range = |end: &str| json!({"range": {"cidr": "10.10.10.0/24", "start": "10.10.10.1", "end": end}, "quarantine": "1s", "staticBand": "None"});
    field.pool("traffic-1", range("10.10.10.2")).await;
    let hosts = [field.host("node01", 1).await, field.host("node02", 1).await];
    let mut policy = one_address("traffic-1");
    policy["maxUnavailable"] = json!("100%");
    field.policy("one", policy).await;
    for host in &hosts {
        field.until_standing(host, "one", "Available").await;
    }
    let had = hosts.each_ref().map(|host| host.addresses("eth0"));
    let holders = |pool: &Value| -> Vec<(String, Value)> {
        let all = pool["status"]["allocations"].as_object().cloned().unwrap_or_default();
        all.into_iter().map(|(ip, entry)| (ip, entry["node"].clone())).collect()
    };
    let both = |pool: &Value| pool["status"]["allocated"] == 2;
    let before = field.until_pool("traffic-1", "held", both).await;
    // Larger: as it was.
    field.force_pool_away("traffic-1").await;
    field.pool("traffic-1", range("10.10.10.9")).await;
    let after = field.until_pool("traffic-1", "taken in", both).await;
    assert_eq!(holders(&after), holders(&before));
    // Smaller: one is outside, and stays where it is.
    field.force_pool_away("traffic-1").await;
    field.pool("traffic-1", range("10.10.10.1")).await;
    let after = field.until_pool("traffic-1", "taken in", |pool| pool["status"]["allocated"] == 1).await;
    assert_eq!(holders(&after), holders(&before)[..1]);
    assert_eq!(hosts.each_ref().map(|host| host.addresses("eth0")), had);
    let outside = told(&field, POOL, "AddressInNoRange").await;
    assert_eq!(outside.type_.as_deref(), Some("Warning"));
    let message = outside.message.unwrap_or_default();
    assert!(message.starts_with("10.10.10.2: held, but in no range of this pool"), "{message}");
}

/// R100: an enactment claims what another host holds (copied by hand, say). Whoever holds it keeps it when the ledger is put
/// together anew, and that there were two is told.
pub(crate) async fn r100_of_two_claims_to_one_address_the_holders_counts(on: On) {
    let field = Field::new(on).await;
    field.pool("traffic-1", json!({"range": {"cidr": "10.10.10.0/24"}})).await;
    let host = field.host("node01", 1).await;
    field.policy("one", one_address("traffic-1")).await;
    let own = field.until_standing(&host, "one", "Available").await;
    let had = host.addresses("eth0");
    let ip = had[0].split('/').next().expect("an address");
    // No policy of this name: nothing is asked for, and nobody lets go. The Node isn't Ready, so that it isn't given another
    // address before the ledger is put together.
    field.make_node("node02", "False").await;
    let mut claims = own["status"]["ippool"].clone();
    claims["traffic-1"]["requests"]["address"]["id"] = json!("copied");
    claims["traffic-1"]["requests"]["address"].as_object_mut().expect("a request").remove("holds");
    claims["traffic-1"]["grants"]["address"]["id"] = json!("copied");
    field.copy_enactment("node02", "copied", claims).await;
    field.annotate_pool("traffic-1", RESET_POOL, json!("traffic-1")).await;
    let event = told(&field, POOL, "AddressHeldByAnother").await;
    assert_eq!(event.type_.as_deref(), Some("Warning"));
    let message = event.message.unwrap_or_default();
    assert!(message.starts_with(&format!("{ip}: held by one host and claimed by another")), "{message}");
    let pool = field
        .until_pool("traffic-1", "put together", |pool| pool["metadata"]["annotations"][RESET_POOL].is_null())
        .await;
    assert_eq!(pool["status"]["allocations"][ip]["node"], "node01");
    assert_eq!(host.addresses("eth0"), had);
}

/// R86, R101, R104: no range is for this host: said so, and asked on; a range is added, and nobody starts anything again.
pub(crate) async fn r101_r104_a_range_more_serves_who_waits(on: On) {
    let field = Field::new(on).await;
    let selector = |rack: &str| json!({"nodeSelectorTerms": [{"matchExpressions": [{"key": "rack", "operator": "In", "values": [rack]}]}]});
    let first = json!({"name": "rack-1", "cidr": "10.10.10.0/24", "nodeSelector": selector("one")});
    let second = json!({"name": "rack-2", "cidr": "10.10.20.0/24", "nodeSelector": selector("two")});
    field.pool("racks", json!({"ranges": [first]})).await;
    let here = field.host("node01", 1).await;
    field.label(&here, "rack", "one").await;
    let there = field.host("node02", 1).await;
    field.label(&there, "rack", "two").await;
    field.policy("one", one_address("racks")).await;
    field.until_standing(&here, "one", "Available").await;
    let own = field.until_standing(&there, "one", "Failing").await;
    assert_eq!(own["status"]["ippool"]["racks"]["refused"]["address"]["reason"], "NoAddress");
    assert!(there.addresses("eth0").is_empty());
    field.patch_pool("racks", json!({"spec": {"ranges": [first, second]}})).await;
    let own = field.until_standing(&there, "one", "Available").await;
    assert_eq!(own["status"]["capturedStates"]["address"]["range"], "rack-2");
    assert!(there.addresses("eth0")[0].starts_with("10.10.20."));
}
