//! What a pool says of itself, while hosts hold addresses of it.

use crds::names::annotation::HOLD;
use serde_json::{Value, json};

use crate::SEEDS;
use crate::field::{Field, one_address};
use crate::on::On;

pub(crate) fn condition(pool: &Value) -> [&str; 3] {
    let condition = &pool["status"]["conditions"][0];
    ["status", "reason", "message"].map(|field| condition[field].as_str().unwrap_or_default())
}

/// R12, R13: up to date; being updated while it is on hold, when nobody gets anything; and up to date again.
pub(crate) async fn r12_r13_a_pool_says_when_it_is_up_to_date(on: On) {
    const UP_TO_DATE: [&str; 3] = ["True", "ReconciledPool", "The pool is up to date"];
    const UPDATED: [&str; 3] = ["Unknown", "ReconcilingPool", "The pool is being updated"];
    let field = Field::new(on).await;
    field.pool("traffic-1", json!({"range": {"cidr": SEEDS}, "quarantine": "1s"})).await;
    let first = field.host("node01", 1).await;
    field.policy("one", one_address("traffic-1")).await;
    field.until_standing(&first, "one", "Available").await;
    field.until_pool("traffic-1", "up to date", |pool| condition(pool) == UP_TO_DATE).await;
    field.annotate_pool("traffic-1", HOLD, json!("true")).await;
    field.until_pool("traffic-1", "being updated", |pool| condition(pool) == UPDATED).await;
    let second = field.host("node02", 1).await;
    field.until_standing(&second, "one", "Pending").await;
    assert!(second.addresses("eth0").is_empty());
    field.annotate_pool("traffic-1", HOLD, Value::Null).await;
    field.until_standing(&second, "one", "Available").await;
    field.until_pool("traffic-1", "up to date", |pool| condition(pool) == UP_TO_DATE).await;
    field.agree().await;
}

/// R16: two pools meet. Both say so, each with the other's name; neither gives what both have, and both give the rest; when
/// one goes the other has all of its own again.
pub(crate) async fn r16_pools_that_overlap_say_so_and_recover(on: On) {
    let field = Field::new(on).await;
    let range = |from: &str, to: &str| json!({"range": {"cidr": SEEDS, "start": from, "end": to}, "quarantine": "1s", "staticBand": "None"});
    field.pool("lower", range("10.10.10.1", "10.10.10.2")).await;
    field.pool("upper", range("10.10.10.2", "10.10.10.3")).await;
    for (pool, other) in [("lower", "upper"), ("upper", "lower")] {
        let message = format!("The NodeIPPool {other} is overlapping with this one.");
        field
            .until_pool(pool, "overlapping", |pool| {
                condition(pool) == ["False", "OverlappingIPPool", message.as_str()]
                    && pool["status"]["available"] == 1
            })
            .await;
    }
    let first = field.host("node01", 1).await;
    field.policy("one", one_address("lower")).await;
    field.until_standing(&first, "one", "Available").await;
    assert_eq!(first.addresses("eth0"), ["10.10.10.1/24"]);
    let second = field.host("node02", 1).await;
    let own = field.until_standing(&second, "one", "Failing").await;
    assert_eq!(own["status"]["ippool"]["lower"]["refused"]["address"]["reason"], "NoAddress");
    field.force_pool_away("upper").await;
    field.until_standing(&second, "one", "Available").await;
    assert_eq!(second.addresses("eth0"), ["10.10.10.2/24"]);
    field.until_pool("lower", "alone", |pool| condition(pool)[1] == "ExhaustedIPPool").await;
    field.agree().await;
}

/// R43: the same story on a store in memory and on one on disk. Of the embedded API by nature: a cluster's store is etcd, and
/// what is on that is every other test's subject.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn r43_in_memory_and_on_disk_alike() {
    let folder = crate::folder::Folder::new();
    let disk = agent::embedded::Api::open(folder.path()).expect("a store");
    for api in [agent::embedded::Api::in_memory(), disk] {
        let field = Field::in_store(&api);
        field.pool("traffic-1", json!({"range": {"cidr": SEEDS}, "quarantine": "1s"})).await;
        let host = field.host("node01", 1).await;
        field.policy("one", one_address("traffic-1")).await;
        let own = field.until_standing(&host, "one", "Available").await;
        let ip = own["status"]["ippool"]["traffic-1"]["allocated"][0].as_str().expect("an address");
        // By hash: the same on both (rule 8).
        assert_eq!(host.addresses("eth0"), [format!("{ip}/24")]);
        field.delete_policy("one").await;
        field.until_no_enactment(&host, "one").await;
        field.until_pool("traffic-1", "empty", |pool| pool["status"]["allocated"] == 0).await;
        field.agree().await;
    }
}
