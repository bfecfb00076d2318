//! A condition in place of the one before: its transition is when its status last changed.

use crds::Condition;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;

/// The condition that says this from now on, or as long as it has said the same: time that passes is no news.
pub fn renewed(
    type_: &str,
    status: &str,
    reason: &str,
    message: String,
    before: &[Condition],
    now: &Time,
) -> Condition {
    let old = before.iter().find(|old| old.type_ == type_);
    let same = old.filter(|old| old.status == status && old.reason == reason && old.message == message);
    let heartbeat = same.and_then(|old| old.last_heartbeat_time.clone());
    let since = old.filter(|old| old.status == status).and_then(|old| old.last_transition_time.clone());
    Condition {
        type_: type_.to_owned(),
        status: status.to_owned(),
        reason: reason.to_owned(),
        message,
        last_heartbeat_time: heartbeat.or_else(|| Some(now.clone())),
        last_transition_time: since.or_else(|| Some(now.clone())),
    }
}
