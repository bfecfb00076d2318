//! A policy's status: how far it has come, and which nodes may be reconfigured now.
//!
//! `policy::rollout` decides; here its nodes are counted and the outcome is written, guarded by resourceVersion, where
//! it says something new; where nobody leads, hosts take and give back their own slots by the same. Every agent is sent every
//! write, slots and all, so writes wait for each other ([`pace`]). Cost: at most one write per change of one of its enactments, one
//! a second where only counts change, and of a thousand nodes five a second whatever changes; none for time that passes.

use std::collections::BTreeMap;
use std::sync::{Arc, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use crds::names::condition::{AVAILABLE, DEGRADED, FALSE, IGNORED, OF_POLICY, PROGRESSING, TRUE, UNKNOWN};
use crds::names::policy as names;
use crds::{Condition, NodeNetworkConfigurationPolicy, NodeNetworkConfigurationPolicyStatus};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;
use kube::api::{Api, Patch, PatchParams};
use kube::{Client, ResourceExt};
use policy::claim::{NodeName, PolicyName};
use policy::rollout::{MaxUnavailable, Part, Rollout, Standing, Summary, roll};
use serde_json::json;

use super::known::{Work, is_ours};
use super::{AGAIN, Lead};
use crate::api::error::{Trouble, optional, trouble};
use crate::clock::stamp;
use crate::records::condition::renewed;

/// How long counts may be old.
const PACE: Duration = Duration::from_secs(1);
/// How long a slot, or what the policy comes to, may wait, for each of its nodes: a write is sent to all of them, and as long as there
/// are slots in it. Of a hundred nodes nobody notices.
const PER_NODE: Duration = Duration::from_micros(200);

/// How long after a policy's status was written it may be written again.
fn pace(only_counts: bool, nodes: usize) -> Duration {
    let nodes = u32::try_from(nodes).unwrap_or(u32::MAX);
    if only_counts { PACE } else { PER_NODE.saturating_mul(nodes).min(PACE) }
}

impl Lead {
    pub(super) async fn policy(&self, name: &PolicyName) -> Result<(), kube::Error> {
        let Some(Parts { object, nodes, parts }) = self.parts(name) else {
            self.written().remove(name);
            return Ok(());
        };
        let Some(next) = status(&object, &nodes, &parts) else { return Ok(()) };
        let age = self.written().get(name).map_or(PACE, Instant::elapsed);
        let wait = pace(only_counts(&next, object.status.as_ref()), nodes.len()).saturating_sub(age);
        if !wait.is_zero() {
            self.known.put_off(Work::of_policy(name.clone()), wait);
            return Ok(());
        }
        match put(&self.client, &object, &next).await? {
            Rolled::Written(now) => {
                self.written().insert(name.clone(), Instant::now());
                self.known.fresh_policy(name, Some(*now));
            }
            // Somebody wrote first, and the watch may have told of it long ago: what there is now is looked at again.
            Rolled::Overtaken => {
                let api: Api<NodeNetworkConfigurationPolicy> = Api::all(self.client.clone());
                self.known.fresh_policy(name, optional(api.get(name.as_str()).await)?);
                self.known.put_off(Work::of_policy(name.clone()), AGAIN);
            }
        }
        Ok(())
    }

    /// When each policy's status was last written.
    fn written(&self) -> MutexGuard<'_, BTreeMap<PolicyName, Instant>> {
        self.written.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The policy, the nodes that it selects and that have an agent, and its enactments on live Nodes. Nothing of a policy whose nodes
    /// are all another's: kubernetes-nmstate's handlers, say, which report too, count for themselves, and keep their slots there.
    fn parts(&self, name: &PolicyName) -> Option<Parts> {
        let index = self.known.index();
        let object = index.policies.get(name)?.clone();
        let matches = |labels: &BTreeMap<String, String>| selects(&object, labels);
        let selected = index.nodes.iter().filter(|(_, known)| matches(&known.labels));
        let reports = selected.filter_map(|(node, known)| {
            let state = index.states.get(node).filter(|state| state.node_uid == known.uid)?;
            Some((node, known.ready, is_ours(state)))
        });
        let (own, others): (Vec<_>, Vec<_>) = reports.partition(|(_, _, is_own)| *is_own);
        if own.is_empty() && !others.is_empty() {
            return None;
        }
        let nodes = own.into_iter().map(|(node, ready, _)| (node.clone(), ready)).collect();
        let parts =
            index.by_policy.get(name).into_iter().flatten().filter_map(|name| index.enactments.get(name));
        let live = parts.filter(|known| index.is_live(&known.claims.node, &known.claims.node_uid));
        let parts = live.map(|known| known.part.clone()).collect();
        Some(Parts { object, nodes, parts })
    }
}

/// Does a policy select a node with these labels?
pub(crate) fn selects(policy: &NodeNetworkConfigurationPolicy, labels: &BTreeMap<String, String>) -> bool {
    policy.spec.node_selector.iter().all(|(key, value)| labels.get(key) == Some(value))
}

/// What became of a status.
pub(crate) enum Rolled {
    Written(Box<NodeNetworkConfigurationPolicy>),
    /// Somebody else wrote first, or it is gone.
    Overtaken,
}

/// Writes how far a policy has come, guarded by what it was decided on.
pub(crate) async fn put(
    client: &Client,
    object: &NodeNetworkConfigurationPolicy,
    status: &NodeNetworkConfigurationPolicyStatus,
) -> Result<Rolled, kube::Error> {
    let api: Api<NodeNetworkConfigurationPolicy> = Api::all(client.clone());
    let patch = Patch::Merge(json!({
        "metadata": {"resourceVersion": object.resource_version(), "uid": object.uid()},
        "status": whole(status, object.status.as_ref()),
    }));
    match api.patch_status(&object.name_any(), &PatchParams::default(), &patch).await {
        Ok(now) => {
            crate::fault::point("policy-written");
            Ok(Rolled::Written(Box::new(now)))
        }
        Err(error) => match trouble(&error) {
            Trouble::NotFound | Trouble::Conflict => Ok(Rolled::Overtaken),
            _ => Err(error),
        },
    }
}

/// What a rollout is decided on.
struct Parts {
    object: Arc<NodeNetworkConfigurationPolicy>,
    /// Those that it selects and that have an agent, and whether they are Ready.
    nodes: BTreeMap<NodeName, bool>,
    parts: Vec<Part>,
}

/// The status to write, where it says something new. `nodes` and `parts` as [`roll`] has them.
fn status(
    object: &NodeNetworkConfigurationPolicy,
    nodes: &BTreeMap<NodeName, bool>,
    parts: &[Part],
) -> Option<NodeNetworkConfigurationPolicyStatus> {
    let before = object.status.clone().unwrap_or_default();
    let generation = object.metadata.generation.unwrap_or_default();
    let slots = before.unavailable_nodes.iter().map(|(node, since)| (node.as_str().into(), *since)).collect();
    let Rollout { slots, aborted, summary } =
        roll(generation, max_unavailable(object.spec.max_unavailable.as_ref()), nodes, parts, &slots);
    let now = stamp();
    let slots: BTreeMap<String, i64> =
        slots.into_iter().map(|(node, since)| (node.to_string(), since)).collect();
    let status = NodeNetworkConfigurationPolicyStatus {
        conditions: conditions(&summary, &before.conditions, &now),
        unavailable_node_count_map: counts(&slots),
        unavailable_nodes: slots,
        aborted_generation: aborted.then_some(generation),
        // An old kubernetes-nmstate counted here. Nobody does any more, and a count that is left would be wrong.
        unavailable_node_count: None,
        last_unavailable_node_count_update: None,
    };
    (status != before).then_some(status)
}

/// Whether a status differs from the one before in what its conditions say for people, and in nothing that anybody acts on.
fn only_counts(
    status: &NodeNetworkConfigurationPolicyStatus,
    before: Option<&NodeNetworkConfigurationPolicyStatus>,
) -> bool {
    let acted_on = |status: &NodeNetworkConfigurationPolicyStatus| {
        let conditions = status.conditions.iter();
        let conditions: Vec<[String; 3]> =
            conditions.map(|one| [one.type_.clone(), one.status.clone(), one.reason.clone()]).collect();
        (conditions, status.unavailable_nodes.clone(), status.aborted_generation)
    };
    before.is_some_and(|before| acted_on(before) == acted_on(status))
}

/// The same, as far as it is one host's own slot. Others take theirs themselves, in whatever order they come.
pub(crate) fn own_slot(
    object: &NodeNetworkConfigurationPolicy,
    parts: &[Part],
    name: &NodeName,
) -> Option<NodeNetworkConfigurationPolicyStatus> {
    let before = object.status.clone().unwrap_or_default();
    let waits = |part: &Part| {
        let slot = before.unavailable_nodes.contains_key(part.node.as_str());
        part.node != *name && part.standing == Standing::Pending && !slot
    };
    let parts: Vec<Part> =
        parts
            .iter()
            .map(|part| {
                if waits(part) { Part { standing: Standing::Waiting, ..part.clone() } } else { part.clone() }
            })
            .collect();
    let rolled = status(object, &BTreeMap::new(), &parts)?.unavailable_nodes;
    let mut slots = before.unavailable_nodes.clone();
    match rolled.get(name.as_str()) {
        Some(since) => slots.insert(name.to_string(), *since),
        None => slots.remove(name.as_str()),
    };
    let changed = slots != before.unavailable_nodes;
    changed.then(|| NodeNetworkConfigurationPolicyStatus {
        unavailable_node_count_map: counts(&slots),
        unavailable_nodes: slots,
        unavailable_node_count: None,
        last_unavailable_node_count_update: None,
        ..before
    })
}

fn counts(slots: &BTreeMap<String, i64>) -> BTreeMap<String, i32> {
    let mut counts: BTreeMap<String, i32> = BTreeMap::new();
    for since in slots.values() {
        *counts.entry(since.to_string()).or_default() += 1;
    }
    counts
}

/// As a merge patch has it: maps are merged, so what is gone must be named. Conditions only if they are others: a host may
/// write none, not even that there are none.
fn whole(
    status: &NodeNetworkConfigurationPolicyStatus,
    before: Option<&NodeNetworkConfigurationPolicyStatus>,
) -> serde_json::Value {
    let mut value = json!({
        "unavailableNodes": status.unavailable_nodes,
        "unavailableNodeCountMap": status.unavailable_node_count_map,
        "abortedGeneration": status.aborted_generation,
        "unavailableNodeCount": status.unavailable_node_count,
        "lastUnavailableNodeCountUpdate": status.last_unavailable_node_count_update,
    });
    if status.conditions != before.map(|before| before.conditions.as_slice()).unwrap_or_default() {
        value["conditions"] = json!(status.conditions);
    }
    for gone in before.into_iter().flat_map(|before| before.unavailable_nodes.keys()) {
        if !status.unavailable_nodes.contains_key(gone) {
            value["unavailableNodes"][gone] = serde_json::Value::Null;
        }
    }
    for gone in before.into_iter().flat_map(|before| before.unavailable_node_count_map.keys()) {
        if !status.unavailable_node_count_map.contains_key(gone) {
            value["unavailableNodeCountMap"][gone] = serde_json::Value::Null;
        }
    }
    value
}

fn max_unavailable(spec: Option<&IntOrString>) -> MaxUnavailable {
    let read = spec.and_then(|spec| match spec {
        IntOrString::Int(number) => u64::try_from(*number).ok().map(MaxUnavailable::Number),
        IntOrString::String(text) => MaxUnavailable::from_text(text),
    });
    read.unwrap_or(MaxUnavailable::DEFAULT)
}

/// The four conditions, as kubernetes-nmstate has them: one is True.
fn conditions(summary: &Summary, before: &[Condition], now: &Time) -> Vec<Condition> {
    let (holds, reason, message) = match *summary {
        Summary::Ignored => (IGNORED, names::NO_MATCHING_NODE, names::MESSAGE_NO_MATCHING_NODE.to_owned()),
        Summary::Degraded { failed, matching, aborted } => {
            (DEGRADED, names::FAILED, names::message_failed(failed, matching, aborted))
        }
        Summary::Progressing { finished, ready, pending, not_ready } => {
            (PROGRESSING, names::PROGRESSING, names::message_progressing(finished, ready, pending, not_ready))
        }
        Summary::Available { available, matching, not_ready } => {
            (AVAILABLE, names::CONFIGURED, names::message_configured(available, matching, not_ready))
        }
    };
    let mut conditions = Vec::with_capacity(OF_POLICY.len());
    for type_ in OF_POLICY {
        let status = match type_ {
            _ if type_ == holds => TRUE,
            AVAILABLE | DEGRADED if holds == PROGRESSING => UNKNOWN,
            _ => FALSE,
        };
        let reason = if type_ == PROGRESSING && holds == DEGRADED { names::PROGRESSING } else { reason };
        let message = if status == TRUE { message.clone() } else { String::new() };
        conditions.push(renewed(type_, status, reason, message, before, now));
    }
    conditions
}

#[cfg(test)]
mod tests {
    use super::*;

    fn part(node: &str, standing: Standing) -> Part {
        Part { node: node.into(), generation: 1, standing }
    }

    fn policy(slots: &serde_json::Value) -> NodeNetworkConfigurationPolicy {
        let policy = json!({"metadata": {"name": "one", "generation": 1}, "spec": {"maxUnavailable": 2},
            "status": {"unavailableNodes": slots}});
        serde_json::from_value(policy).unwrap()
    }

    /// What somebody waits for is written at once.
    #[test]
    fn counts_wait_and_nothing_else_does() {
        let at = |standings: [Standing; 3], before: &NodeNetworkConfigurationPolicy| {
            let parts: Vec<Part> =
                ["a", "b", "c"].into_iter().zip(standings).map(|(node, at)| part(node, at)).collect();
            let nodes = ["a", "b", "c"].into_iter().map(|node| (NodeName::new(node), true)).collect();
            let mut policy = before.clone();
            policy.status = Some(status(before, &nodes, &parts).unwrap());
            policy
        };
        use Standing::{Available, Pending, Progressing, Waiting};
        let says = |next: &NodeNetworkConfigurationPolicy, before: &NodeNetworkConfigurationPolicy| {
            only_counts(next.status.as_ref().unwrap(), before.status.as_ref())
        };
        let none = policy(&json!({}));
        let first = at([Waiting; 3], &none);
        assert!(!says(&first, &none), "that it goes on at all is news");
        let counted = at([Available, Waiting, Waiting], &first);
        assert!(says(&counted, &first));
        assert!(!says(&at([Available, Pending, Waiting], &counted), &counted), "a slot is given");
        let slots = at([Available, Progressing, Waiting], &at([Available, Pending, Waiting], &counted));
        assert!(!says(&at([Available, Available, Waiting], &slots), &slots), "a slot is taken back");
        assert!(!says(&at([Available; 3], &counted), &counted), "it is over");
    }

    /// Counts wait for a second; slots for as long as there are nodes that are sent them, and never longer.
    #[test]
    fn the_more_nodes_are_told_the_less_often() {
        assert_eq!(pace(true, 3), Duration::from_secs(1));
        assert_eq!(pace(false, 0), Duration::ZERO);
        assert_eq!(pace(false, 100), Duration::from_millis(20));
        assert_eq!(pace(false, 1_000), Duration::from_millis(200));
        assert_eq!(pace(false, usize::MAX), Duration::from_secs(1));
    }

    /// A host takes its own slot, if there is one left, and gives it back; nothing else of the status is its business.
    #[test]
    fn a_host_takes_and_gives_back_its_own_slot_only() {
        let me = NodeName::new("c");
        let all = |mine| [part("a", Standing::Pending), part("b", Standing::Progressing), part("c", mine)];
        let taken = own_slot(&policy(&json!({"b": 1})), &all(Standing::Pending), &me).unwrap();
        assert_eq!(taken.unavailable_nodes, BTreeMap::from([("b".to_owned(), 1), ("c".to_owned(), 1)]));
        assert_eq!(taken.unavailable_node_count_map, BTreeMap::from([("1".to_owned(), 2)]));
        assert_eq!(taken.conditions, []);
        assert_eq!(whole(&taken, None).get("conditions"), None);
        let full = own_slot(&policy(&json!({"b": 1, "a": 1})), &all(Standing::Pending), &me);
        assert_eq!(full, None);
        let done = own_slot(&policy(&json!({"b": 1, "c": 1})), &all(Standing::Available), &me).unwrap();
        assert_eq!(done.unavailable_nodes, BTreeMap::from([("b".to_owned(), 1)]));
    }

    /// What kubernetes-nmstate left counted is no slot of anybody's, whoever writes next; else a host's slot would be refused.
    #[test]
    fn slots_that_kubernetes_nmstate_left_are_over() {
        let mut left = policy(&json!({}));
        let status = left.status.as_mut().unwrap();
        status.unavailable_node_count_map = BTreeMap::from([("1".to_owned(), 2)]);
        status.unavailable_node_count = Some(2);
        let waits = [part("c", Standing::Pending)];
        let own = own_slot(&left, &waits, &NodeName::new("c")).unwrap();
        let all = super::status(&left, &BTreeMap::new(), &[]).unwrap();
        for (next, counted) in [(own, json!({"1": 1})), (all, json!({"1": null}))] {
            let patch = whole(&next, left.status.as_ref());
            assert_eq!(patch["unavailableNodeCountMap"], counted);
            assert!(patch["unavailableNodeCount"].is_null() && patch.get("unavailableNodeCount").is_some());
        }
    }
}
