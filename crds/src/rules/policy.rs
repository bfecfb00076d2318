//! Rules of `NodeNetworkConfigurationPolicy`, in the words that kubernetes-nmstate uses: scripts know them.

use serde_json::Value;

use super::{AdmissionRule, Operation, Placed, Rule, list, name, place, rule, text, unchanged};
use crate::{names, text as shape, validate::Reason};

pub(super) fn rules() -> Vec<Placed> {
    let mut all: Vec<Placed> = place("spec", vec![capture_stays()]).collect();
    all.extend(place("spec.nodeSelector", vec![selector_keys(), selector_values()]));
    all.extend(place("spec.capture", vec![pool_captures_have_their_shape()]));
    all
}

pub(super) fn admission() -> Vec<AdmissionRule> {
    vec![name_fits_a_label(), not_in_progress()]
}

/// R31.
fn capture_stays() -> Rule {
    rule("invalid policy operation: capture field cannot be modified", unchanged("capture"), |new, old| {
        new.get("capture") == old.get("capture")
    })
    .at(".capture")
}

/// Patterns, not CEL's `format`: API servers before 1.32 don't know that in a CRD.
fn selector_keys() -> Rule {
    rule(
        "nodeSelector keys must be valid qualified names",
        r"self.all(key, key.indexOf('/') <= 253 && key.matches('^([a-z0-9]([-a-z0-9]*[a-z0-9])?([.][a-z0-9]([-a-z0-9]*[a-z0-9])?)*/)?[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?$'))",
        |new, _| entries(new).all(|(key, _)| shape::is_qualified_name(key)),
    )
}

fn selector_values() -> Rule {
    rule(
        "nodeSelector values must be valid label values",
        "self.all(key, self[key].matches('^([A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?)?$'))",
        |new, _| entries(new).all(|(_, value)| value.as_str().is_some_and(shape::is_label_value)),
    )
}

/// R18: an expression that begins like a pool capture and isn't one would mean something else to the capture
/// language, and silently so.
fn pool_captures_have_their_shape() -> Rule {
    rule(
        "a capture of a pool must be ippool.<pool>.allocate, the pool's name without dots",
        r"self.all(name, !self[name].matches('^\\s*ippool\\.') || self[name].matches('^\\s*ippool\\.[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?\\.allocate\\s*$'))",
        |new, _| {
            let asks_a_pool = |text: &str| text.trim_start().starts_with("ippool.");
            let fits = |value: &Value| {
                value.as_str().is_none_or(|text| !asks_a_pool(text) || shape::pool_of_capture(text).is_some())
            };
            entries(new).all(|(_, value)| fits(value))
        },
    )
}

/// The name becomes a label's value on every enactment. Asked at creation only: policies that are there
/// already must stay writable.
fn name_fits_a_label() -> AdmissionRule {
    AdmissionRule {
        operation: Operation::Create,
        cel: "object.metadata.name.size() <= 63 && \
             object.metadata.name.matches('^([A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?)?$')",
        say: "'invalid policy name: \"' + object.metadata.name + \
             '\": must be no more than 63 characters or match label value format'",
        holds: |new, _| shape::is_label_value(name(new)),
        words: |new| {
            let name = name(new);
            format!(
                "invalid policy name: \"{name}\": must be no more than 63 characters or match label value format"
            )
        },
        field: "metadata.name",
        reason: Reason::Invalid,
    }
}

/// While nodes are at it, a change would be lost on those that have finished. A policy that nobody has begun
/// with has no condition yet, and may be changed.
fn not_in_progress() -> AdmissionRule {
    AdmissionRule {
        operation: Operation::Update,
        cel: "object.spec == oldObject.spec || !has(oldObject.status) || !has(oldObject.status.conditions) || \
             !oldObject.status.conditions.exists(c, c.type == 'Available' && \
             (!has(c.reason) || c.reason in ['', 'ConfigurationProgressing']))",
        say: "'policy ' + object.metadata.name + ' is still in progress'",
        holds: |new, old| {
            let conditions = old.get("status").map(|status| list(status, "conditions")).unwrap_or_default();
            let available = conditions.iter().find(|c| text(c, "type") == Some(names::condition::AVAILABLE));
            let under_way = available
                .is_some_and(|c| matches!(text(c, "reason"), None | Some("" | names::policy::PROGRESSING)));
            new.get("spec") == old.get("spec") || !under_way
        },
        words: |new| format!("policy {} is still in progress", name(new)),
        field: "",
        reason: Reason::Forbidden,
    }
}

fn entries(map: &Value) -> impl Iterator<Item = (&String, &Value)> {
    map.as_object().into_iter().flatten()
}
