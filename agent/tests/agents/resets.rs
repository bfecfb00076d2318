//! A pool put together anew because somebody asks for it: as a whole, for one policy, for one node.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use crds::NodeIPPool;
use crds::names::annotation::{CONFIRM_RELEASE, RESET_POOL};
use futures_util::{StreamExt, TryStreamExt};
use kube::api::{Api, WatchEvent, WatchParams};
use serde_json::{Value, json};
use tokio::task::JoinHandle;

use crate::SEEDS;
use crate::conditions::condition;
use crate::field::{Field, Host, address_on, one_address};
use crate::on::On;
use crate::told::{POLICY, POOL, told, told_that};

const UP_TO_DATE: [&str; 3] = ["True", "ReconciledPool", "The pool is up to date"];

/// Every reason that a pool gives, in the order in which it gives them.
struct Said {
    reasons: Arc<Mutex<Vec<String>>>,
    task: JoinHandle<()>,
}

impl Said {
    /// From now on.
    async fn of(field: &Field, pool: &str) -> Self {
        let api: Api<NodeIPPool> = Api::all(field.client());
        let now = api.get(pool).await.expect("a pool").metadata.resource_version.expect("a version");
        let only = WatchParams::default().fields(&format!("metadata.name={pool}"));
        let reasons: Arc<Mutex<Vec<String>>> = Arc::default();
        let noted = reasons.clone();
        let task = tokio::spawn(async move {
            let mut watch = api.watch(&only, &now).await.expect("a watch").boxed();
            while let Ok(Some(event)) = watch.try_next().await {
                let WatchEvent::Modified(pool) = event else { continue };
                let reason = pool.status.and_then(|status| status.conditions.into_iter().next());
                let Some(reason) = reason.map(|one| one.reason) else { continue };
                let mut noted = noted.lock().expect("no panic");
                if noted.last() != Some(&reason) {
                    noted.push(reason);
                }
            }
        });
        Self { reasons, task }
    }

    /// Waits until this was said, one after the other and nothing in between.
    async fn until(&self, wanted: &[&str]) {
        let said = || self.reasons.lock().expect("no panic").clone();
        let is_said = || {
            let said = said();
            let last = &said[said.len().saturating_sub(wanted.len())..];
            last == wanted
        };
        let waited = tokio::time::timeout(Duration::from_secs(60), async {
            while !is_said() {
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        });
        assert!(waited.await.is_ok(), "{wanted:?}: {:?}", said());
    }
}

impl Drop for Said {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// Two hosts with an address of one pool by each of two policies, and what they have.
async fn two_hosts_two_policies(field: &Field) -> ([Host; 2], Value) {
    field.pool("traffic-1", json!({"range": {"cidr": SEEDS}, "quarantine": "1s"})).await;
    let hosts = [field.host("node01", 2).await, field.host("node02", 2).await];
    for (policy, card) in [("one", "eth0"), ("two", "eth1")] {
        let mut spec = address_on("traffic-1", card);
        spec["maxUnavailable"] = json!("100%");
        field.policy(policy, spec).await;
    }
    for host in &hosts {
        field.until_standing(host, "one", "Available").await;
        field.until_standing(host, "two", "Available").await;
    }
    let all = |pool: &Value| pool["status"]["allocated"] == 4 && condition(pool) == UP_TO_DATE;
    let pool = field.until_pool("traffic-1", "given of", all).await;
    (hosts, pool["status"]["allocations"].clone())
}

fn on_cards(hosts: &[Host; 2]) -> Vec<Vec<String>> {
    hosts.iter().flat_map(|host| [host.addresses("eth0"), host.addresses("eth1")]).collect()
}

fn is_unmarked(object: &Value) -> bool {
    object["metadata"]["annotations"][RESET_POOL].is_null()
}

/// R36, R38: of a policy alone. The pool says that it is being updated, and then that it is up to date; nobody's address
/// changes, neither in the ledger nor on a card; the annotation goes, and the policy is otherwise left as it is.
pub(crate) async fn r36_r38_a_pool_is_reset_for_a_policy(on: On) {
    let field = Field::new(on).await;
    let (hosts, before) = two_hosts_two_policies(&field).await;
    let cards = on_cards(&hosts);
    let policy = field.until_policy("one", "there", |_| true).await;
    let said = Said::of(&field, "traffic-1").await;
    field.annotate_policy("one", RESET_POOL, json!("traffic-1")).await;
    let after = field.until_policy("one", "done", is_unmarked).await;
    assert_eq!(after["metadata"]["generation"], policy["metadata"]["generation"]);
    said.until(&["ReconcilingPool", "ReconciledPool"]).await;
    let pool = field.until_pool("traffic-1", "up to date", |pool| condition(pool) == UP_TO_DATE).await;
    assert_eq!(pool["status"]["allocations"], before);
    assert_eq!(on_cards(&hosts), cards);
    told_that(&field, POOL, "PoolReset", "policy one").await;
    field.agree().await;
}

/// R37, R38: of one node alone, by its enactment.
pub(crate) async fn r37_r38_a_pool_is_reset_for_a_node(on: On) {
    let field = Field::new(on).await;
    let (hosts, before) = two_hosts_two_policies(&field).await;
    let cards = on_cards(&hosts);
    let said = Said::of(&field, "traffic-1").await;
    field.annotate_enactment(&hosts[1], "one", RESET_POOL, json!("traffic-1")).await;
    field.until_enactment(&hosts[1], "one", "done", is_unmarked).await;
    said.until(&["ReconcilingPool", "ReconciledPool"]).await;
    let pool = field.until_pool("traffic-1", "up to date", |pool| condition(pool) == UP_TO_DATE).await;
    assert_eq!(pool["status"]["allocations"], before);
    assert_eq!(on_cards(&hosts), cards);
    told_that(&field, POOL, "PoolReset", "enactment node02.one").await;
    field.agree().await;
}

/// R35, R38, R39: of the whole pool, by its annotation and by emptied offsets: the same is said, and nothing changes.
pub(crate) async fn r35_r38_r39_a_whole_pool_is_reset(on: On) {
    let field = Field::new(on).await;
    let (hosts, before) = two_hosts_two_policies(&field).await;
    let cards = on_cards(&hosts);
    let ips = |entries: &Value| -> Vec<(String, Value)> {
        let all = entries.as_object().cloned().unwrap_or_default();
        all.into_iter().map(|(ip, entry)| (ip, entry["request"].clone())).collect()
    };
    let said = Said::of(&field, "traffic-1").await;
    field.annotate_pool("traffic-1", RESET_POOL, json!("traffic-1")).await;
    field.until_pool("traffic-1", "done", is_unmarked).await;
    said.until(&["ReconcilingPool", "ReconciledPool"]).await;
    field.patch_pool_status("traffic-1", json!({"allocated-offsets": []})).await;
    let whole = |pool: &Value| pool["status"]["allocated-offsets"].as_array().map(Vec::len) == Some(4);
    let pool = field.until_pool("traffic-1", "whole", whole).await;
    said.until(&["ReconcilingPool", "ReconciledPool", "ReconcilingPool", "ReconciledPool"]).await;
    assert_eq!(ips(&pool["status"]["allocations"]), ips(&before));
    assert_eq!(on_cards(&hosts), cards);
    field.agree().await;
}

/// D7 (R36): the value is a pool's name, exactly. Another is told on the policy, and nothing is reset.
pub(crate) async fn r36_a_name_that_no_pool_has_is_told(on: On) {
    let field = Field::new(on).await;
    field.pool("traffic-1", json!({"range": {"cidr": SEEDS}})).await;
    let host = field.host("node01", 1).await;
    field.policy("one", one_address("traffic-1")).await;
    field.until_standing(&host, "one", "Available").await;
    let sequence = |pool: &Value| pool["status"]["sequence"].clone();
    let before = field.until_pool("traffic-1", "given of", |pool| condition(pool) == UP_TO_DATE).await;
    field.annotate_policy("one", RESET_POOL, json!("traffic1")).await;
    let event = told(&field, POLICY, "NoSuchPool").await;
    assert_eq!(event.type_.as_deref(), Some("Warning"));
    let message = event.message.unwrap_or_default();
    assert!(message.contains("there is no NodeIPPool \"traffic1\""), "{message}");
    let after = field.until_pool("traffic-1", "there", |_| true).await;
    assert_eq!(sequence(&after), sequence(&before));
    let policy = field.until_policy("one", "there", |_| true).await;
    assert_eq!(policy["metadata"]["annotations"][RESET_POOL], "traffic1");
    field.agree().await;
}

/// R15, R38: what hosts hold can't be read, since somebody broke an enactment: the pool says that it is out of step, what is
/// broken is named, and nothing is given; once it is mended the reset goes on by itself.
pub(crate) async fn r15_r38_a_reset_that_fails_says_so(on: On) {
    let field = Field::new(on).await;
    field.pool("traffic-1", json!({"range": {"cidr": SEEDS}, "quarantine": "1s"})).await;
    let host = field.host("node01", 1).await;
    field.policy("one", one_address("traffic-1")).await;
    let own = field.until_standing(&host, "one", "Available").await;
    let had = host.addresses("eth0");
    field.make_node("node02", "False").await;
    let mut claims = own["status"]["ippool"].clone();
    claims["traffic-1"]["requests"]["address"]["id"] = json!("copied");
    claims["traffic-1"]["requests"]["address"].as_object_mut().expect("a request").remove("holds");
    claims["traffic-1"].as_object_mut().expect("claims").remove("grants");
    field.copy_enactment("node02", "broken", claims).await;
    field.relabel_enactment("node02", "broken", json!({"nmstate.io/policy": null})).await;
    field.annotate_pool("traffic-1", RESET_POOL, json!("traffic-1")).await;
    let failed = |pool: &Value| {
        condition(pool)
            == [
                "False",
                "UnsyncronizedIPPool",
                "Failed to reconstruct the IP pool, it may not be in sync with the nodes.",
            ]
    };
    field.until_pool("traffic-1", "out of step", failed).await;
    told_that(&field, POOL, "UnsyncronizedIPPool", "node02.broken").await;
    let late = field.host("node03", 1).await;
    field.until_standing(&late, "one", "Pending").await;
    assert!(late.addresses("eth0").is_empty(), "nothing is given");
    field.relabel_enactment("node02", "broken", json!({"nmstate.io/policy": "broken"})).await;
    field
        .until_pool("traffic-1", "up to date", |pool| is_unmarked(pool) && condition(pool) == UP_TO_DATE)
        .await;
    field.until_standing(&late, "one", "Available").await;
    assert_eq!(host.addresses("eth0"), had);
    // What somebody copied is still there.
    field.agree_but(&["enactment node02.broken"]).await;
}

/// R29, R40: more hosts than are lost on a bad day vanish while nobody looks: nothing of theirs is released before an
/// administrator says that it is meant, with their number.
pub(crate) async fn r29_r40_many_that_vanish_at_once_need_a_word(on: On) {
    let mut field = Field::new(on).await;
    field.pool("traffic-1", json!({"range": {"cidr": SEEDS}, "quarantine": "1s"})).await;
    let mut spec = one_address("traffic-1");
    spec["maxUnavailable"] = json!("100%");
    field.policy("one", spec).await;
    let mut hosts = Vec::new();
    for name in ["node01", "node02", "node03", "node04"] {
        hosts.push(field.host(name, 1).await);
    }
    for host in &hosts {
        field.until_standing(host, "one", "Available").await;
    }
    for host in &mut hosts {
        host.stop().await;
    }
    field.lose_controller().await;
    for host in &hosts {
        field.delete_node(host).await;
    }
    field.find_controller();
    let event = told(&field, POOL, "ReleaseStopped").await;
    assert_eq!(event.type_.as_deref(), Some("Warning"));
    assert!(event.message.is_some_and(|message| message.contains("nmstate.io/confirm-release: \"4\"")));
    let held = |pool: &Value| {
        let all = pool["status"]["allocations"].as_object().cloned().unwrap_or_default();
        all.len() == 4 && all.values().all(|entry| entry["state"].is_null())
    };
    field.until_pool("traffic-1", "held", held).await;
    field.annotate_pool("traffic-1", CONFIRM_RELEASE, json!("4")).await;
    field.until_pool("traffic-1", "free", |pool| pool["status"]["allocated"] == 0).await;
    // The hosts are off, with all that they had.
    let left: Vec<String> = (hosts.iter())
        .flat_map(|host| {
            let ips = host.addresses("eth0");
            let ip = ips[0].split('/').next().expect("an address");
            let name = &host.name;
            [format!("{name}: journalled and in no ledger"), format!("{name}: {ip} is on a card")]
        })
        .collect();
    field.agree_but(&left.iter().map(String::as_str).collect::<Vec<_>>()).await;
}
