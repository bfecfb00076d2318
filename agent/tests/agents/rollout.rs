//! A policy on its way over its nodes, as its conditions tell it.

use std::collections::BTreeSet;
use std::time::Duration;

use crds::{NodeNetworkConfigurationEnactment, NodeNetworkConfigurationPolicy};
use futures_util::StreamExt;
use kube::Client;
use kube::api::{Api, Patch, PatchParams, WatchEvent, WatchParams};
use serde_json::{Value, json};
use tokio::task::JoinHandle;

use crate::field::{Field, Host};
use crate::on::On;
use crate::told::{POLICY, told_that};

/// What takes so long never comes.
pub(crate) const PATIENCE: Duration = Duration::from_secs(120);

/// Of the conditions that are True: type, reason and message.
fn holds(object: &Value) -> Vec<[&str; 3]> {
    let conditions = object["status"]["conditions"].as_array().into_iter().flatten();
    let words = |one| ["type", "reason", "message"].map(|field| text(one, field));
    conditions.filter(|one| one["status"] == "True").map(words).collect()
}

fn text<'a>(value: &'a Value, field: &str) -> &'a str {
    value[field].as_str().unwrap_or_default()
}

async fn says(field: &Field, policy: &str, wanted: [&str; 3]) {
    field.until_policy(policy, wanted[2], |policy| holds(policy) == [wanted]).await;
}

pub(crate) fn card(name: &str, fields: &Value) -> Value {
    let mut card = json!({"name": name, "type": "veth", "state": "up"});
    for (field, value) in fields.as_object().into_iter().flatten() {
        card[field] = value.clone();
    }
    json!({"desiredState": {"interfaces": [card]}})
}

/// None that it selects; one that isn't Ready and holds nobody up; all of them.
pub(crate) async fn a_policy_counts_its_nodes(on: On) {
    let field = Field::new(on).await;
    let first = field.host("node01", 1).await;
    let mut second = field.host("node02", 1).await;
    for host in [&first, &second] {
        field.label(host, "rack", "one").await;
        field.until_state(host, "reported", |state| state["status"]["currentState"].is_object()).await;
    }
    let in_rack = |rack: &str| {
        let mut policy = card("eth0", &json!({"mtu": 1400}));
        policy["nodeSelector"] = json!({"rack": rack});
        policy
    };
    field.policy("elsewhere", in_rack("two")).await;
    says(&field, "elsewhere", ["Ignored", "NoMatchingNode", "Policy does not match any node"]).await;
    second.stop().await;
    field.set_ready("node02", "False").await;
    field.policy("here", in_rack("one")).await;
    let one = "1/2 nodes successfully configured, 1 nodes ignored due to NotReady state";
    says(&field, "here", ["Available", "SuccessfullyConfigured", one]).await;
    field.start(&mut second).await;
    field.set_ready("node02", "True").await;
    let both = "2/2 nodes successfully configured";
    says(&field, "here", ["Available", "SuccessfullyConfigured", both]).await;
    field.agree().await;
}

/// A group's: no kernel gives it to a card.
pub(crate) const REFUSED: &str = "01:00:5e:00:00:01";

/// Half of three nodes is two. It can't be done there: tried again ever more slowly, then given up, and whoever waits for a
/// slot gives up with them. What the policy, the enactments and the Events say is what kubernetes-nmstate says.
pub(crate) async fn what_cannot_be_applied_is_retried_and_the_rest_gives_up(on: On) {
    let field = Field::new(on).await;
    let mut hosts = Vec::new();
    for name in ["node01", "node02", "node03"] {
        let host = field.host(name, 1).await;
        field.until_state(&host, "reported", |state| state["status"]["currentState"].is_object()).await;
        hosts.push(host);
    }
    let ipv4 = |ip: &str| json!({"ipv4": {"enabled": true, "address": [{"ip": ip, "prefix-length": 24}]}});
    let mut refused = ipv4("198.51.100.5");
    refused["mac-address"] = json!(REFUSED);
    field.policy("refused", card("eth0", &refused)).await;
    let degraded = |policy: &Value, message: &str| {
        holds(policy) == [["Degraded", "FailedToConfigure", message]]
            && policy["status"]["unavailableNodes"].as_object().is_some_and(|slots| slots.len() == 2)
    };
    let two = "2/3 nodes failed to configure";
    let rolling = field.until_policy("refused", two, |policy| degraded(policy, two)).await;
    let slots = &rolling["status"]["unavailableNodes"];
    let (failing, waiting): (Vec<&Host>, Vec<&Host>) =
        hosts.iter().partition(|host| slots.get(&host.name).is_some());
    for host in &failing {
        let begin =
            format!("failed to reconcile NodeNetworkConfigurationPolicy on node {}. Retrying ", host.name);
        let retries = |own: &Value| {
            let held = holds(own);
            held.iter().map(|[type_, ..]| *type_).eq(["Failing", "Progressing"])
                && held.iter().all(|[_, reason, words]| *reason == "Retrying" && words.starts_with(&begin))
        };
        field.until_enactment(host, "refused", "retried", retries).await;
    }
    for host in &failing {
        let begin = format!(
            "error reconciling NodeNetworkConfigurationPolicy on node {} at desired state apply: ",
            host.name
        );
        let gave_up = |own: &Value| matches!(holds(own)[..], [["Failing", "FailedToConfigure", words]] if words.starts_with(&begin));
        let own = field.until_enactment(host, "refused", "given up", gave_up).await;
        // How the host was left, which step it was, and the kernel's own word.
        let words = holds(&own)[0][2];
        let [left, step, why] =
            ["not applied; the host is as it was before", "step 1 (", "the kernel refused"];
        assert!(words.contains(left) && words.contains(step) && words.contains(why), "{words}");
        assert_eq!(own["status"]["retryCount"], json!({"1": 5}));
        let words =
            format!("reconciliation of enactment \"{}.refused\" has failed after 5 retries", host.name);
        told_that(&field, POLICY, "ReconcileFailed", &words).await;
    }
    for host in &waiting {
        let own = field.until_standing(host, "refused", "Aborted").await;
        let words = format!("reconciliation of enactment \"{}.refused\" has aborted", host.name);
        assert_eq!(holds(&own), [["Aborted", "ConfigurationAborted", &words]]);
        told_that(&field, POLICY, "ReconcileFailed", &words).await;
    }
    let all = "2/3 nodes failed to configure, 1 nodes aborted configuration";
    field.until_policy("refused", all, |policy| degraded(policy, all)).await;
    assert!(hosts.iter().all(|host| host.addresses("eth0").is_empty()));
    // Another generation is another chance.
    let spec = card("eth0", &ipv4("198.51.100.6"));
    field.try_edit_policy("refused", spec).await.expect("it is taken");
    for host in &hosts {
        field.until_standing(host, "refused", "Available").await;
        assert_eq!(host.addresses("eth0"), ["198.51.100.6/24"]);
    }
    field.agree().await;
}

/// How many hosts had a slot of policy `one`, were at work on it, and have done it; the first two also at the most.
#[derive(Default)]
pub(crate) struct AtWork {
    slots: usize,
    hosts: BTreeSet<String>,
    done: BTreeSet<String>,
    pub(crate) most_slots: usize,
    pub(crate) most_hosts: usize,
}

/// Follows policy `one` and its enactments, change by change from now on, until so many hosts have done it and all slots are given
/// back. What it returns can be awaited; what happens meanwhile is not missed.
pub(crate) async fn follow(client: Client, many: usize) -> JoinHandle<AtWork> {
    let params = WatchParams::default();
    let policies: Api<NodeNetworkConfigurationPolicy> = Api::all(client.clone());
    let enactments: Api<NodeNetworkConfigurationEnactment> = Api::all(client);
    let mut policies = Box::pin(policies.watch(&params, "0").await.expect("a watch"));
    let mut enactments = Box::pin(enactments.watch(&params, "0").await.expect("a watch"));
    tokio::spawn(async move {
        let mut seen = AtWork::default();
        while seen.done.len() < many || seen.slots > 0 || !seen.hosts.is_empty() {
            tokio::select! {
                Some(event) = policies.next() => {
                    let Ok(WatchEvent::Added(policy) | WatchEvent::Modified(policy)) = event else { continue };
                    seen.slots = policy.status.unwrap_or_default().unavailable_nodes.len();
                }
                Some(event) = enactments.next() => {
                    let Ok(WatchEvent::Added(own) | WatchEvent::Modified(own)) = event else { continue };
                    let name = own.metadata.name.clone().unwrap_or_default();
                    let conditions = own.status.unwrap_or_default().conditions;
                    for (condition, those) in [("Progressing", &mut seen.hosts), ("Available", &mut seen.done)] {
                        match conditions.iter().any(|one| one.type_ == condition && one.status == "True") {
                            true => those.insert(name.clone()),
                            false => those.remove(&name),
                        };
                    }
                }
            }
            seen.most_slots = seen.most_slots.max(seen.slots);
            seen.most_hosts = seen.most_hosts.max(seen.hosts.len());
        }
        seen
    })
}

/// Never more hosts at work than half of them, rounded up, where the policy doesn't say how many; and one that is no more, slot and
/// all, keeps nobody from it.
pub(crate) async fn as_many_hosts_as_allowed_are_at_work(on: On) {
    let field = Field::new(on).await;
    let mut hosts = Vec::new();
    for number in 1..=5 {
        let host = field.host(&format!("node{number:02}"), 1).await;
        field.until_state(&host, "reported", |state| state["status"]["currentState"].is_object()).await;
        hosts.push(host);
    }
    field.pool("traffic-1", json!({"range": {"cidr": crate::SEEDS}})).await;
    let mut policy = crate::field::one_address("traffic-1");
    policy["nodeSelector"] = json!({"in": "yes"});
    field.policy("one", policy).await;
    says(&field, "one", ["Ignored", "NoMatchingNode", "Policy does not match any node"]).await;
    let api: Api<NodeNetworkConfigurationPolicy> = Api::all(field.client());
    let left = json!({"status": {"unavailableNodes": {"gone-1": 1, "gone-2": 1}, "unavailableNodeCountMap": {"1": 2}}});
    api.patch_status("one", &PatchParams::default(), &Patch::Merge(left)).await.expect("slots of no node");
    let followed = follow(field.client(), hosts.len()).await;
    for host in &hosts {
        field.label(host, "in", "yes").await;
    }
    for host in &hosts {
        field.until_standing(host, "one", "Available").await;
    }
    let seen = tokio::time::timeout(PATIENCE, followed).await.expect("all is given back").expect("a count");
    assert!(seen.most_slots <= 3, "{} slots at once", seen.most_slots);
    assert!((1..=3).contains(&seen.most_hosts), "{} hosts at once", seen.most_hosts);
    field.agree().await;
}

/// One after the other, by name, in whatever order they were made.
pub(crate) async fn policies_are_applied_in_the_order_of_their_names(on: On) {
    let field = Field::new(on).await;
    let mut host = field.host("node01", 3).await;
    for (policy, nic, ip) in [("c", "eth0", "10.0.1.1"), ("a", "eth1", "10.0.2.1"), ("b", "eth2", "10.0.3.1")]
    {
        let addresses = json!([{"ip": ip, "prefix-length": 24}]);
        let ipv4 = json!({"enabled": true, "dhcp": false, "address": addresses});
        field.policy(policy, card(nic, &json!({"ipv4": ipv4}))).await;
        field.until_standing(&host, policy, "Available").await;
    }
    host.stop().await;
    let cards = ["eth1", "eth2", "eth0"];
    for card in cards {
        host.ip(&format!("-4 addr flush dev {card}"));
    }
    let listener = host.listen().await;
    field.start(&mut host).await;
    host.wait_until("as they were", || cards.iter().all(|card| host.addresses(card).len() == 1)).await;
    let heard = listener.heard("eth").await;
    let came: Vec<&str> = heard.iter().filter_map(|line| line.split_whitespace().nth(1)).collect();
    assert_eq!(came, cards, "{heard:#?}");
    field.agree().await;
}
