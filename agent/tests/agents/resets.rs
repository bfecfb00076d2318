//! A pool put together anew because somebody asks for it: as a whole, for one policy, for one node.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use crds::names::annotation::{CONFIRM_RELEASE, HOLD, RESET_POOL};
use crds::{NodeIPPool, NodeIPSlice, NodeNetworkConfigurationEnactment, NodeNetworkState};
use futures_util::{StreamExt, TryStreamExt};
use k8s_openapi::api::core::v1::Node;
use k8s_openapi::jiff::Timestamp;
use kube::api::{Api, Patch, PatchParams, WatchEvent, WatchParams};
use serde_json::{Value, json};
use tokio::task::JoinHandle;

use crate::SEEDS;
use crate::conditions::condition;
use crate::field::{Field, Host, address_on, one_address};
use crate::on::On;
use crate::told::{POLICY, POOL, told, told_that};

const UP_TO_DATE: [&str; 3] = ["True", "ReconciledPool", "The pool is up to date"];
const OUT_OF_STEP: [&str; 3] = [
    "False",
    "UnsyncronizedIPPool",
    "Failed to reconstruct the IP pool, it may not be in sync with the nodes.",
];

/// Every version of a pool, in the order in which they come.
struct Said {
    versions: Arc<Mutex<Vec<Value>>>,
    task: JoinHandle<()>,
}

impl Said {
    /// From now on.
    async fn of(field: &Field, pool: &str) -> Self {
        let api: Api<NodeIPPool> = Api::all(field.client());
        let now = api.get(pool).await.expect("a pool").metadata.resource_version.expect("a version");
        let only = WatchParams::default().fields(&format!("metadata.name={pool}"));
        let versions: Arc<Mutex<Vec<Value>>> = Arc::default();
        let noted = versions.clone();
        let task = tokio::spawn(async move {
            let mut watch = api.watch(&only, &now).await.expect("a watch").boxed();
            while let Ok(Some(event)) = watch.try_next().await {
                let WatchEvent::Modified(pool) = event else { continue };
                noted.lock().expect("no panic").push(json!(pool));
            }
        });
        Self { versions, task }
    }

    fn versions(&self) -> Vec<Value> {
        self.versions.lock().expect("no panic").clone()
    }

    /// The reasons that it gave.
    fn reasons(&self) -> Vec<String> {
        let all = self.versions();
        let mut reasons: Vec<String> = all.iter().map(|pool| condition(pool)[1].to_owned()).collect();
        reasons.dedup();
        reasons
    }

    /// Its entries as the reset left them, by its own write: when the pool is up to date again whatever differs is tended to
    /// as well, asked for or not.
    fn reset(&self) -> Value {
        let all = self.versions();
        let last = all.iter().rfind(|pool| condition(pool)[1] == "ReconcilingPool");
        last.expect("a reset")["status"]["allocations"].clone()
    }

    /// Its entries as the first write of a ledger that was rebuilt as a whole has them.
    fn rebuilt(&self) -> Value {
        let all = self.versions();
        let before = all.iter().rposition(|pool| condition(pool)[1] == "ReconcilingPool");
        all[before.expect("a reset") + 1]["status"]["allocations"].clone()
    }

    /// Waits until this was said, one after the other and nothing in between.
    async fn until(&self, wanted: &[&str]) {
        let is_said = || {
            let said = self.reasons();
            let last = &said[said.len().saturating_sub(wanted.len())..];
            last == wanted
        };
        let waited = tokio::time::timeout(Duration::from_secs(60), async {
            while !is_said() {
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        });
        assert!(waited.await.is_ok(), "{wanted:?}: {:?}", self.reasons());
    }
}

impl Drop for Said {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// Two hosts with an address of one pool by each of two policies, and what they have.
async fn two_hosts_two_policies(field: &Field) -> ([Host; 2], Value) {
    let (hosts, pool) = two_hosts_two_policies_of(field, json!({"cidr": SEEDS})).await;
    (hosts, pool["status"]["allocations"].clone())
}

/// The same of a pool with this range, and the pool.
async fn two_hosts_two_policies_of(field: &Field, range: Value) -> ([Host; 2], Value) {
    field.pool("traffic-1", json!({"range": range, "quarantine": "1s"})).await;
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
    (hosts, pool)
}

fn on_cards(hosts: &[Host; 2]) -> Vec<Vec<String>> {
    hosts.iter().flat_map(|host| [host.addresses("eth0"), host.addresses("eth1")]).collect()
}

/// Who has what by a ledger, and how: policy, node, request, and whether it is set aside.
fn entries(ledger: &Value) -> BTreeMap<String, [String; 4]> {
    let fields = ["policy", "node", "request", "state"];
    let said = |entry: &Value| fields.map(|field| entry[field].as_str().unwrap_or_default().to_owned());
    ledger.as_object().into_iter().flatten().map(|(ip, entry)| (ip.clone(), said(entry))).collect()
}

/// The entry of a policy on a node, under an id that nobody asks by, and an address that is free for it.
fn stale(ledger: &Value, [policy, node]: [&str; 2]) -> (String, Value) {
    let all = ledger.as_object().expect("entries");
    let is_theirs = |entry: &&Value| entry["policy"] == policy && entry["node"] == node;
    let mut entry = all.values().find(is_theirs).expect("an entry").clone();
    entry["request"] = json!(format!("stale-{policy}-{node}"));
    let mut free = (1..255).map(|last| format!("10.10.10.{last}")).filter(|ip| !all.contains_key(ip));
    (free.next().expect("a free address"), entry)
}

/// A ledger that somebody has spoilt by hand, while nobody leads.
struct Spoilt {
    before: Value,
    reset: BTreeMap<String, [String; 4]>,
    said: Said,
}

impl Spoilt {
    /// A policy's entry of a node is gone, and one is there that nobody asked for: of a policy and a node that a reset is about,
    /// and of others.
    async fn by_hand(field: &mut Field, before: Value, within: [&str; 2], without: [&str; 2]) -> Self {
        field.lose_controller().await;
        let (mut ledger, mut patch) = (before.clone(), json!({}));
        let mut reset = entries(&before);
        for whose in [within, without] {
            let is_theirs = |(_, entry): &(&String, &[String; 4])| entry[..2] == whose;
            let missing = reset.iter().find(is_theirs).expect("an entry").0.clone();
            let (ip, mut entry) = stale(&ledger, whose);
            patch[&missing] = Value::Null;
            patch[&ip] = entry.clone();
            ledger[&ip] = entry.clone();
            // What the host holds is back, and the other is set aside (rule 4); or it stays as it is.
            match whose == within {
                true => entry["state"] = json!("Quarantined"),
                false => drop(reset.remove(&missing)),
            }
            reset.extend(entries(&json!({ip: entry})));
        }
        let there = entries(&ledger).into_keys().filter(|ip| patch.get(ip) != Some(&Value::Null));
        let offset = |ip: String| ip.rsplit('.').next()?.parse::<u8>().ok()?.checked_sub(1);
        let offsets: BTreeSet<u8> = there.filter_map(offset).collect();
        field
            .patch_pool_status("traffic-1", json!({"allocations": patch, "allocated-offsets": offsets}))
            .await;
        let said = Said::of(field, "traffic-1").await;
        Self { before, reset, said }
    }

    /// Exactly what the reset is about is put right by it. What else differs is found out then, as it would have been without.
    async fn until_put_right(self, field: &Field) {
        self.said.until(&["ReconcilingPool", "ReconciledPool"]).await;
        assert_eq!(entries(&self.said.reset()), self.reset);
        let before = entries(&self.before);
        let is_whole =
            |pool: &Value| condition(pool) == UP_TO_DATE && entries(&pool["status"]["allocations"]) == before;
        field.until_pool("traffic-1", "as it was", is_whole).await;
    }
}

fn is_unmarked(object: &Value) -> bool {
    object["metadata"]["annotations"][RESET_POOL].is_null()
}

fn is_reset(pool: &Value) -> bool {
    is_unmarked(pool) && condition(pool) == UP_TO_DATE
}

/// R36, R38: of a policy alone. The pool says that it is being updated, and then that it is up to date; what of the policy's is
/// wrong in the ledger is put right, and nothing of another's; no card changes; the annotation goes, and the policy is
/// otherwise left as it is.
pub(crate) async fn r36_r38_a_pool_is_reset_for_a_policy(on: On) {
    let mut field = Field::new(on).await;
    let (hosts, before) = two_hosts_two_policies(&field).await;
    let cards = on_cards(&hosts);
    let policy = field.until_policy("one", "there", |_| true).await;
    let spoilt = Spoilt::by_hand(&mut field, before, ["one", "node02"], ["two", "node02"]).await;
    field.annotate_policy("one", RESET_POOL, json!("traffic-1")).await;
    field.find_controller();
    let after = field.until_policy("one", "done", is_unmarked).await;
    assert_eq!(after["metadata"]["generation"], policy["metadata"]["generation"]);
    spoilt.until_put_right(&field).await;
    assert_eq!(on_cards(&hosts), cards);
    told_that(&field, POOL, "PoolReset", "policy one").await;
    field.agree().await;
}

/// R37, R38: of one node alone, by its enactment, and of all that it has there.
pub(crate) async fn r37_r38_a_pool_is_reset_for_a_node(on: On) {
    let mut field = Field::new(on).await;
    let (hosts, before) = two_hosts_two_policies(&field).await;
    let cards = on_cards(&hosts);
    let spoilt = Spoilt::by_hand(&mut field, before, ["two", "node02"], ["two", "node01"]).await;
    field.annotate_enactment(&hosts[1], "one", RESET_POOL, json!("traffic-1")).await;
    field.find_controller();
    field.until_enactment(&hosts[1], "one", "done", is_unmarked).await;
    spoilt.until_put_right(&field).await;
    assert_eq!(on_cards(&hosts), cards);
    told_that(&field, POOL, "PoolReset", "enactment node02.one").await;
    field.agree().await;
}

/// R35, R38, R39: of the whole pool, by its annotation and by emptied offsets: the same is said, and nothing that is held changes.
/// What is not goes with the offsets, after a quarantine (rule 4).
pub(crate) async fn r35_r38_r39_a_whole_pool_is_reset(on: On) {
    let field = Field::new(on).await;
    let (hosts, before) = two_hosts_two_policies(&field).await;
    let cards = on_cards(&hosts);
    let said = Said::of(&field, "traffic-1").await;
    field.annotate_pool("traffic-1", RESET_POOL, json!("traffic-1")).await;
    field.until_pool("traffic-1", "done", is_unmarked).await;
    said.until(&["ReconcilingPool", "ReconciledPool"]).await;
    let (ip, entry) = stale(&before, ["one", "node01"]);
    field.patch_pool_status("traffic-1", json!({"allocations": {&ip: entry}, "allocated-offsets": []})).await;
    let whole = |pool: &Value| pool["status"]["allocated-offsets"].as_array().map(Vec::len) == Some(4);
    let pool = field.until_pool("traffic-1", "whole", whole).await;
    said.until(&["ReconcilingPool", "ReconciledPool", "ReconcilingPool", "ReconciledPool"]).await;
    assert_eq!(said.rebuilt()[&ip]["state"], "Quarantined");
    assert_eq!(entries(&pool["status"]["allocations"]), entries(&before));
    assert_eq!(on_cards(&hosts), cards);
    field.agree().await;
}

/// R35, R38: of a sliced pool what is put together anew is its own ledger: what nobody holds is set aside there, and then the block
/// around it is anybody's again. Slices stay as they are.
pub(crate) async fn r35_r38_a_sliced_pool_is_reset(on: On) {
    let mut field = Field::new(on).await;
    let range = json!({"cidr": SEEDS, "perNodeHostBits": 0});
    field.pool("traffic-1", json!({"range": range, "quarantine": "1s"})).await;
    let host = field.host("node01", 1).await;
    field.policy("one", one_address("traffic-1")).await;
    field.until_standing(&host, "one", "Available").await;
    let counted = |pool: &Value| condition(pool) == UP_TO_DATE && pool["status"]["allocated"] == 1;
    let before = field.until_pool("traffic-1", "given of", counted).await;
    let name = format!("traffic-1.{}", host.addresses("eth0")[0].split('/').next().expect("an address"));
    let slice = field.until::<NodeIPSlice>(&name, "held", |_| true).await;
    field.lose_controller().await;
    let (ip, entry) = stale(&json!(crate::world::entries(&slice)), ["one", "node01"]);
    field.patch_pool_status("traffic-1", json!({"allocations": {&ip: entry}})).await;
    let said = Said::of(&field, "traffic-1").await;
    field.annotate_pool("traffic-1", RESET_POOL, json!("traffic-1")).await;
    field.find_controller();
    field.until_pool("traffic-1", "done", is_unmarked).await;
    said.until(&["ReconcilingPool", "ReconciledPool"]).await;
    assert_eq!(entries(&said.rebuilt()).keys().collect::<Vec<_>>(), [&ip]);
    assert_eq!(said.rebuilt()[&ip]["state"], "Quarantined");
    let pool = field.until_pool("traffic-1", "as it was", counted).await;
    assert_eq!(pool["status"]["available"], before["status"]["available"]);
    let after = field.until::<NodeIPSlice>(&name, "there", |_| true).await;
    assert_eq!(after["metadata"]["resourceVersion"], slice["metadata"]["resourceVersion"]);
    field.agree().await;
}

/// R36, R37 of a sliced pool: what its own ledger says of that policy, or of that node, is put together anew, and nothing of another's.
/// What is in slices their nodes say, and nobody touches it.
pub(crate) async fn r36_r37_a_sliced_pool_is_reset_in_part(on: On) {
    let mut field = Field::new(on).await;
    let (hosts, _) = two_hosts_two_policies_of(&field, json!({"cidr": SEEDS, "perNodeHostBits": 0})).await;
    let cards = on_cards(&hosts);
    let slices: Api<NodeIPSlice> = Api::all(field.client());
    let all = || async { slices.list(&Default::default()).await.expect("listed").items };
    let before = all().await;
    let held: Value = before.iter().flat_map(|slice| crate::world::entries(&json!(slice))).collect();
    let parts = [
        ("policy one", ["one", "node02"], ["two", "node02"]),
        ("enactment node02.one", ["two", "node02"], ["two", "node01"]),
    ];
    for (of, within, without) in parts {
        field.lose_controller().await;
        let (mut ledger, mut stales, mut reset) = (held.clone(), json!({}), BTreeMap::new());
        for whose in [within, without] {
            let (ip, mut entry) = stale(&ledger, whose);
            ledger[&ip] = entry.clone();
            stales[&ip] = entry.clone();
            if whose == within {
                entry["state"] = json!("Quarantined");
            }
            reset.extend(entries(&json!({ip: entry})));
        }
        field.patch_pool_status("traffic-1", json!({"allocations": stales})).await;
        let said = Said::of(&field, "traffic-1").await;
        match of {
            "policy one" => field.annotate_policy("one", RESET_POOL, json!("traffic-1")).await,
            _ => field.annotate_enactment(&hosts[1], "one", RESET_POOL, json!("traffic-1")).await,
        }
        field.find_controller();
        match of {
            "policy one" => drop(field.until_policy("one", "done", is_unmarked).await),
            _ => drop(field.until_enactment(&hosts[1], "one", "done", is_unmarked).await),
        }
        said.until(&["ReconcilingPool", "ReconciledPool"]).await;
        assert_eq!(entries(&said.reset()), reset, "of {of}");
        told_that(&field, POOL, "PoolReset", of).await;
        // What else is nobody's is found out then, as it would have been without.
        let is_free =
            |pool: &Value| pool["status"]["allocations"].as_object().is_some_and(|all| all.is_empty());
        field.until_pool("traffic-1", "free of both", is_free).await;
    }
    let version = |slice: NodeIPSlice| (slice.metadata.name, slice.metadata.resource_version);
    let versions = |slices: Vec<NodeIPSlice>| slices.into_iter().map(version).collect::<Vec<_>>();
    assert_eq!(versions(all().await), versions(before));
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
    field.until_pool("traffic-1", "out of step", |pool| condition(pool) == OUT_OF_STEP).await;
    told_that(&field, POOL, "UnsyncronizedIPPool", "node02.broken").await;
    let late = field.host("node03", 1).await;
    field.until_standing(&late, "one", "Pending").await;
    assert!(late.addresses("eth0").is_empty(), "nothing is given");
    field.relabel_enactment("node02", "broken", json!({"nmstate.io/policy": "broken"})).await;
    field.until_pool("traffic-1", "up to date", is_reset).await;
    field.until_standing(&late, "one", "Available").await;
    assert_eq!(host.addresses("eth0"), had);
    // What somebody copied is still there.
    field.agree_but(&["enactment node02.broken"]).await;
}

/// R15, R38: what can't be read of one node's enactment holds up the pools that it names, and no other; and no longer than that
/// node's host has to hear that its Node is gone. Then the enactment goes, too.
pub(crate) async fn r15_r38_r40_what_cannot_be_read_ends_with_its_node(on: On) {
    let field = Field::new(on).await;
    let pools = [("traffic-1", SEEDS), ("traffic-2", "10.10.20.0/24")];
    for (pool, cidr) in pools {
        field.pool(pool, json!({"range": {"cidr": cidr}, "quarantine": "1s"})).await;
        field.until_pool(pool, "up to date", is_reset).await;
    }
    field.make_node("node02", "False").await;
    let request = json!({"id": "broken", "want": true, "holds": {"ip": "nonsense"}});
    let claims = json!({"traffic-1": {"requests": {"address": request}}});
    field.copy_enactment("node02", "broken", claims).await;
    for (pool, _) in pools {
        field.annotate_pool(pool, RESET_POOL, json!(pool)).await;
    }
    field.until_pool("traffic-1", "out of step", |pool| condition(pool) == OUT_OF_STEP).await;
    let told = told_that(&field, POOL, "UnsyncronizedIPPool", "node02.broken").await;
    assert_eq!(told.involved_object.name.as_deref(), Some("traffic-1"));
    field.until_pool("traffic-2", "up to date", is_reset).await;
    field.delete::<Node>("node02").await;
    field.until_gone::<NodeNetworkConfigurationEnactment>("node02.broken").await;
    field.until_pool("traffic-1", "up to date", is_reset).await;
    // As `kubectl delete node --cascade=orphan` leaves them: nobody's. A report holds nothing up, an enactment until it is deleted.
    field.make_node("node03", "False").await;
    let request = json!({"id": "broken", "want": true, "holds": {"ip": "nonsense"}});
    field.copy_enactment("node03", "broken", json!({"traffic-1": {"requests": {"address": request}}})).await;
    field.create::<NodeNetworkState>(json!({"metadata": {"name": "node03"}})).await;
    field.disown::<NodeNetworkConfigurationEnactment>("node03.broken").await;
    field.delete::<Node>("node03").await;
    for (pool, _) in pools {
        field.annotate_pool(pool, RESET_POOL, json!(pool)).await;
    }
    field.until_pool("traffic-2", "up to date", is_reset).await;
    field.until_pool("traffic-1", "out of step", |pool| condition(pool) == OUT_OF_STEP).await;
    field.delete::<NodeNetworkConfigurationEnactment>("node03.broken").await;
    field.until_gone::<NodeNetworkConfigurationEnactment>("node03.broken").await;
    field.until_pool("traffic-1", "up to date", is_reset).await;
    field.delete::<NodeNetworkState>("node03").await;
    let host = field.host("node01", 1).await;
    field.policy("one", one_address("traffic-1")).await;
    field.until_standing(&host, "one", "Available").await;
    field.agree().await;
}

/// Rule 4 where the pool is gone, too: its slices say how many, and whose. The word is for those that wait for it: on the slice of a
/// node that lives it changes nothing, and when none waits it goes.
pub(crate) async fn r40_slices_of_a_pool_that_is_gone_need_a_word(on: On) {
    let mut field = Field::new(on).await;
    let range = json!({"cidr": "10.20.0.0/24", "perNodeHostBits": 4});
    field.pool("sliced", json!({"range": range, "quarantine": "1s"})).await;
    let mut spec = one_address("sliced");
    spec["maxUnavailable"] = json!("100%");
    field.policy("one", spec).await;
    let mut hosts = Vec::new();
    for name in ["node01", "node02", "node03", "node04", "node05"] {
        hosts.push(field.host(name, 1).await);
    }
    for host in &hosts {
        field.until_standing(host, "one", "Available").await;
    }
    let lives = hosts.pop().expect("five");
    for host in &mut hosts {
        host.stop().await;
    }
    field.lose_controller().await;
    field.force_pool_away("sliced").await;
    for host in &hosts {
        field.delete_node(host).await;
    }
    field.find_controller();
    let word = "nmstate.io/confirm-release: \"4 of sliced\" on the slices of pool sliced, which is gone";
    told_that(&field, "NodeIPSlice", "ReleaseStopped", word).await;
    let api: Api<NodeIPSlice> = Api::all(field.client());
    let all = || async { api.list(&Default::default()).await.expect("listed").items };
    let is_held =
        |slice: &NodeIPSlice| slice.ledger().allocations.values().all(|entry| entry.state.is_none());
    let annotated = |word: &str| Patch::Merge(json!({"metadata": {"annotations": {CONFIRM_RELEASE: word}}}));
    let is_theirs = |slice: &NodeIPSlice| slice.spec.node == lives.name;
    let slices = all().await;
    assert_eq!(slices.len(), 5);
    // Of one alone it would be about that one. That of the node that lives is not asked.
    let (kept, gone): (Vec<&NodeIPSlice>, Vec<&NodeIPSlice>) =
        slices.iter().partition(|slice| is_theirs(slice));
    for (word, slice) in [("4", &gone), ("4 of sliced", &kept), ("4 of sliced", &gone)]
        .into_iter()
        .flat_map(|(word, slices)| slices.iter().map(move |slice| (word, slice)))
    {
        assert!(all().await.iter().all(is_held), "{slices:#?}");
        let name = slice.metadata.name.as_deref().expect("a name");
        api.patch(name, &PatchParams::default(), &annotated(word)).await.expect("annotated");
    }
    let is_done = |slice: &Value| {
        let all = slice["status"]["allocations"].as_object().cloned().unwrap_or_default();
        let is_aside = !all.is_empty() && all.values().all(|entry| entry["state"] == "Quarantined");
        is_aside && slice["metadata"]["annotations"][CONFIRM_RELEASE].is_null()
    };
    for slice in &gone {
        field
            .until::<NodeIPSlice>(slice.metadata.name.as_deref().expect("a name"), "set aside", is_done)
            .await;
    }
    let without_word = |slice: &Value| slice["metadata"]["annotations"][CONFIRM_RELEASE].is_null();
    let name = kept[0].metadata.name.as_deref().expect("a name");
    field.until::<NodeIPSlice>(name, "without the word", without_word).await;
    assert!(all().await.iter().filter(|slice| is_theirs(slice)).all(is_held));
    // A number alone says of a slice that it may go: that is somebody else's to take off.
    api.patch(name, &PatchParams::default(), &annotated("2")).await.expect("annotated");
    // Until that quarantine is over, five minutes where no pool says another.
    let mut left = vec!["slice sliced.".to_owned()];
    left.extend(hosts.iter().map(|host| format!("enactment {}.one is of no Node", host.name)));
    hosts.push(lives);
    left.extend(left_on(&hosts));
    field.agree_but(&left.iter().map(String::as_str).collect::<Vec<_>>()).await;
}

/// What hosts that are off have, of addresses that are nobody's by now.
fn left_on(hosts: &[Host]) -> Vec<String> {
    let of = |host: &Host| {
        let ips = host.addresses("eth0");
        let ip = ips[0].split('/').next().expect("an address");
        let name = &host.name;
        [format!("{name}: journalled and in no ledger"), format!("{name}: {ip} is on a card")]
    };
    hosts.iter().flat_map(of).collect()
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
    // That word was for these four, and for no four of another day.
    let has_word = |pool: &Value| !pool["metadata"]["annotations"][CONFIRM_RELEASE].is_null();
    field.until_pool("traffic-1", "without the word", |pool| !has_word(pool)).await;
    // The hosts are off, with all that they had.
    let left = left_on(&hosts);
    field.agree_but(&left.iter().map(String::as_str).collect::<Vec<_>>()).await;
}

/// Rule 6: pools were put on hold, and then the backup was made; days later it is restored, and the hold taken off at once. The time
/// of that hold was over long ago, and no host was heard in it: it begins anew when a controller meets it.
pub(crate) async fn rule6_a_hold_out_of_a_backup_has_its_time_before_it(on: On) {
    let mut field = Field::new(on).await;
    let pool = json!({"range": {"cidr": SEEDS}, "quarantine": "4s"});
    field.pool("traffic-1", pool).await;
    field.until_pool("traffic-1", "proven", |pool| pool["status"]["rebuiltFor"].is_string()).await;
    field.lose_controller().await;
    let over = "2026-01-01T00:00:00Z";
    field.annotate_pool("traffic-1", HOLD, json!("by hand")).await;
    field.patch_pool_status("traffic-1", json!({"hold": {"until": over}})).await;
    field.annotate_pool("traffic-1", HOLD, json!(null)).await;
    let begun = Timestamp::now();
    field.find_controller();
    let until = |pool: &Value| pool["status"]["hold"]["until"].as_str().map(str::to_owned);
    let met = |pool: &Value| until(pool).is_none_or(|until| until != over);
    let met = field.until_pool("traffic-1", "met", met).await;
    let ends: Timestamp = until(&met).expect("on hold still").parse().expect("a time");
    assert!(ends.as_second() >= begun.as_second() + 4, "{ends}, met after {begun}");
    let host = field.host("node01", 1).await;
    field.policy("one", one_address("traffic-1")).await;
    field.until_standing(&host, "one", "Available").await;
    assert!(Timestamp::now().as_second() >= ends.as_second(), "given before {ends}");
    field.agree().await;
}
