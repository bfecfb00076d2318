//! Slots of a rollout: a host takes and gives back its own.

use api_tests::server::paths::{POLICIES, policy};
use serde_json::{Value, json};

use super::{change, passes, refused, with};
use crate::row::{Act, By, Row};

/// A policy of its first generation, with these slots and counts.
fn rolling(slots: &Value, counts: &Value) -> Value {
    with(policy("web"), |policy| {
        let condition = json!({"type": "Available", "status": "True", "reason": "SuccessfullyConfigured"});
        policy["status"] =
            json!({"unavailableNodes": slots, "unavailableNodeCountMap": counts, "conditions": [condition]});
    })
}

/// With one slot, of node02.
fn one() -> Value {
    rolling(&json!({"node02": 1}), &json!({"1": 1}))
}

fn two() -> Value {
    rolling(&json!({"node01": 1, "node02": 1}), &json!({"1": 2}))
}

fn put(field: &'static str, value: Value) -> Act {
    Act::PatchStatus(change(move |policy| policy["status"][field] = value.clone()))
}

fn become_(to: &Value) -> Act {
    let status = to["status"].clone();
    Act::PatchStatus(change(move |policy| policy["status"] = status.clone()))
}

pub(super) fn rows() -> Vec<Row> {
    // Where nobody has said anything yet.
    let first = json!({"status": {"unavailableNodes": {"node01": 1}, "unavailableNodeCountMap": {"1": 1}}});
    let counts = "status.unavailableNodeCountMap must count status.unavailableNodes by generation";
    let zero = with(one(), |policy| policy["status"]["unavailableNodeCountMap"]["7"] = 0.into());
    let refused = |name, act, told: &str| refused(name, POLICIES, Some(one()), act, told);
    vec![
        passes("takes its slot", POLICIES, Some(one()), become_(&two())),
        passes("gives its slot back", POLICIES, Some(two()), become_(&one())),
        passes("gives its slot back and leaves a zero", POLICIES, Some(two()), become_(&zero)),
        passes("takes the first slot", POLICIES, Some(policy("web")), become_(&first)),
        passes("writes a policy's status as it is", POLICIES, Some(one()), become_(&one())),
        refused(
            "takes another's slot away",
            become_(&rolling(&json!({}), &json!({}))),
            "host node01 may not change the slot of node node02",
        ),
        refused(
            "takes a slot for another",
            become_(&rolling(&json!({"node02": 1, "node03": 1}), &json!({"1": 2}))),
            "host node01 may not change the slot of node node03",
        ),
        refused(
            "takes a slot that isn't counted",
            put("unavailableNodes", json!({"node01": 1, "node02": 1})),
            counts,
        ),
        refused("counts no slots", put("unavailableNodeCountMap", json!({})), counts),
        refused(
            "takes a slot of a generation to come",
            become_(&rolling(&json!({"node01": 2, "node02": 1}), &json!({"1": 1, "2": 1}))),
            "status.unavailableNodes.node01 must not be above the policy's generation 1",
        ),
        refused(
            "counts slots wrongly",
            put("unavailableNodeCount", json!(7)),
            "status.unavailableNodeCount must be 1, the number of status.unavailableNodes",
        ),
        refused(
            "counts slots at a time that nobody can read",
            put("lastUnavailableNodeCountUpdate", json!("2026-01-01T00:00:00+99:99")),
            "status.lastUnavailableNodeCountUpdate",
        )
        .by(By::Schema),
        refused(
            "says what a policy comes to",
            put("conditions", json!([])),
            "host node01 may not change status.conditions: only a controller does",
        ),
        refused(
            "gives a policy up for all",
            put("abortedGeneration", json!(1)),
            "host node01 may not change status.abortedGeneration: only a controller does",
        ),
    ]
}
