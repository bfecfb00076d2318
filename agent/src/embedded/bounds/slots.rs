//! A host's write to a policy's status: its own slot of the rollout, and the counts that follow from all slots.
//!
//! Where no controller is, each agent takes a slot before it reconfigures its host and gives it back afterwards: else nothing
//! would hold `maxUnavailable`. What a policy comes to as a whole, its conditions, a host doesn't say: that is about all.
//!
//! Cost: linear in the slots, of which there are at most as many as nodes.

use std::collections::BTreeMap;

use serde_json::{Map, Value};

/// What a host may change: its own entry of the first, and the others as they follow from it.
const SLOTS: &str = "unavailableNodes";
const COUNTS: &str = "unavailableNodeCountMap";
const COUNT: &str = "unavailableNodeCount";
const UPDATED: &str = "lastUnavailableNodeCountUpdate";

/// Whether host `name` may make this status of that.
pub(super) fn may_write(name: &str, old: &Value, new: &Value) -> Result<(), String> {
    let none = Map::new();
    let before = old["status"].as_object().unwrap_or(&none);
    let after = new["status"].as_object().unwrap_or(&none);
    if before == after {
        return Ok(());
    }
    let foreign = |field: &&String| {
        ![SLOTS, COUNTS, COUNT, UPDATED].contains(&field.as_str()) && before.get(*field) != after.get(*field)
    };
    if let Some(field) = before.keys().chain(after.keys()).find(foreign) {
        return Err(format!("host {name} may not change status.{field}: only a controller does"));
    }
    let slots = |status: &Map<String, Value>| {
        status.get(SLOTS).and_then(Value::as_object).cloned().unwrap_or_default()
    };
    let (was, is) = (slots(before), slots(after));
    let others = was.keys().chain(is.keys()).filter(|node| *node != name);
    if let Some(other) = others.into_iter().find(|node| was.get(*node) != is.get(*node)) {
        return Err(format!("host {name} may not change the slot of node {other}"));
    }
    // A slot of a generation that is to come would outlast every rollout before it.
    let newest = new["metadata"]["generation"].as_i64().unwrap_or_default();
    if is.get(name) != was.get(name) && is.get(name).and_then(Value::as_i64).is_some_and(|of| of > newest) {
        return Err(format!("status.{SLOTS}.{name} must not be above the policy's generation {newest}"));
    }
    follows(&is, after)
}

/// Whether the counts are those of the slots.
fn follows(slots: &Map<String, Value>, status: &Map<String, Value>) -> Result<(), String> {
    let mut expected: BTreeMap<String, i64> = BTreeMap::new();
    for generation in slots.values() {
        *expected.entry(generation.to_string()).or_default() += 1;
    }
    let counts = status.get(COUNTS).and_then(Value::as_object).into_iter().flatten();
    let found: BTreeMap<String, i64> = counts
        .map(|(generation, count)| (generation.clone(), count.as_i64().unwrap_or_default()))
        .filter(|(_, count)| *count != 0)
        .collect();
    if found != expected {
        return Err(format!("status.{COUNTS} must count status.{SLOTS} by generation"));
    }
    match status.get(COUNT).and_then(Value::as_i64) {
        Some(count) if usize::try_from(count) != Ok(slots.len()) => {
            Err(format!("status.{COUNT} must be {}, the number of status.{SLOTS}", slots.len()))
        }
        _ => Ok(()),
    }
}
