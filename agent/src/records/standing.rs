//! Where a policy stands on a node: `policy::rollout::Standing` ↔ an enactment's conditions, as kubernetes-nmstate
//! writes them: five types, one reason for all, the message on those that are True.

use crds::Condition;
use crds::names::condition::{
    ABORTED, AVAILABLE, FAILING, FALSE, OF_ENACTMENT, PENDING, PROGRESSING, TRUE, UNKNOWN,
};
use crds::names::enactment as names;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use policy::rollout::Standing;

/// What the conditions say.
pub fn read(conditions: &[Condition]) -> Standing {
    let one = |type_: &str| conditions.iter().find(|condition| condition.type_ == type_);
    let is = |type_: &str| one(type_).is_some_and(|condition| condition.status == TRUE);
    let for_reason = |type_, reason: &str| one(type_).is_some_and(|condition| condition.reason == reason);
    if is(ABORTED) {
        Standing::Aborted
    } else if is(AVAILABLE) {
        Standing::Available
    } else if is(FAILING) && is(PROGRESSING) {
        Standing::Retrying
    } else if is(FAILING) && is(PENDING) {
        Standing::Refused
    } else if is(FAILING) {
        Standing::Failing
    } else if is(PENDING) && for_reason(PENDING, names::WAITING) {
        Standing::Waiting
    } else if is(PENDING) {
        Standing::Pending
    } else if is(PROGRESSING) {
        Standing::Progressing
    } else {
        Standing::Unknown
    }
}

/// What the conditions say for people: the message of the first that is True.
pub fn message(conditions: &[Condition]) -> &str {
    conditions
        .iter()
        .find(|condition| condition.status == TRUE)
        .map_or("", |condition| condition.message.as_str())
}

/// The conditions to write in place of those before: a transition is noted only where a status changes.
pub fn write(standing: Standing, message: &str, before: &[Condition], now: &Time) -> Vec<Condition> {
    let row = Row::of(standing);
    let mut conditions = Vec::with_capacity(OF_ENACTMENT.len());
    for type_ in OF_ENACTMENT {
        let status = row.status(type_);
        let old = before.iter().find(|old| old.type_ == type_ && old.status == status);
        let says = status == TRUE || row.also_says == Some(type_);
        // The reason of a failure stands on all but this one, as in kubernetes-nmstate.
        let reason = if type_ == ABORTED && status == FALSE { row.unaborted } else { row.reason };
        conditions.push(Condition {
            type_: type_.to_owned(),
            status: status.to_owned(),
            reason: reason.to_owned(),
            message: if says { message.to_owned() } else { String::new() },
            last_heartbeat_time: Some(now.clone()),
            last_transition_time: old
                .and_then(|old| old.last_transition_time.clone())
                .or_else(|| Some(now.clone())),
        });
    }
    conditions
}

/// A row of kubernetes-nmstate's table.
struct Row {
    holds: &'static [&'static str],
    unknown: &'static [&'static str],
    reason: &'static str,
    /// The reason of `Aborted` where it is False.
    unaborted: &'static str,
    /// Has the message though it is not True.
    also_says: Option<&'static str>,
}

impl Row {
    fn of(standing: Standing) -> Self {
        let row = |holds, reason| Self { holds, unknown: &[], reason, unaborted: reason, also_says: None };
        let failed = |holds, reason| Self { unaborted: names::CONFIGURED, ..row(holds, reason) };
        match standing {
            Standing::Unknown => Self { unknown: &OF_ENACTMENT, ..row(&[], "") },
            Standing::Waiting => row(&[PENDING], names::WAITING),
            Standing::Refused => failed(&[FAILING, PENDING], names::REFUSED),
            Standing::Pending => {
                Self { also_says: Some(PROGRESSING), ..row(&[PENDING], names::LIMIT_REACHED) }
            }
            Standing::Progressing => {
                Self { unknown: &[FAILING, AVAILABLE], ..row(&[PROGRESSING], names::PROGRESSING) }
            }
            Standing::Available => row(&[AVAILABLE], names::CONFIGURED),
            Standing::Retrying => failed(&[FAILING, PROGRESSING], names::RETRYING),
            Standing::Failing => failed(&[FAILING], names::FAILED),
            Standing::Aborted => row(&[ABORTED], names::ABORTED),
        }
    }

    fn status(&self, type_: &str) -> &'static str {
        match type_ {
            _ if self.holds.contains(&type_) => TRUE,
            _ if self.unknown.contains(&type_) => UNKNOWN,
            _ => FALSE,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ALL: [Standing; 9] = [
        Standing::Unknown,
        Standing::Waiting,
        Standing::Refused,
        Standing::Pending,
        Standing::Progressing,
        Standing::Available,
        Standing::Retrying,
        Standing::Failing,
        Standing::Aborted,
    ];

    fn at(second: i64) -> Time {
        Time(k8s_openapi::jiff::Timestamp::from_second(second).unwrap())
    }

    #[test]
    fn whatever_is_written_is_read_back() {
        for standing in ALL {
            let written = write(standing, "why", &[], &at(1));
            assert_eq!(read(&written), standing);
            assert_eq!(message(&written), if standing == Standing::Unknown { "" } else { "why" });
        }
        assert_eq!(read(&[]), Standing::Unknown);
    }

    /// The rows of kubernetes-nmstate's table: status of Available, Failing, Progressing, Pending, Aborted, and the reasons.
    #[test]
    fn conditions_are_kubernetes_nmstates() {
        let rows = [
            (Standing::Progressing, "U U T F F", "ConfigurationProgressing", "ConfigurationProgressing"),
            (Standing::Available, "T F F F F", "SuccessfullyConfigured", "SuccessfullyConfigured"),
            (Standing::Failing, "F T F F F", "FailedToConfigure", "SuccessfullyConfigured"),
            (Standing::Retrying, "F T T F F", "Retrying", "SuccessfullyConfigured"),
            (Standing::Pending, "F F F T F", "MaxUnavailableLimitReached", "MaxUnavailableLimitReached"),
            (Standing::Aborted, "F F F F T", "ConfigurationAborted", "ConfigurationAborted"),
            (Standing::Unknown, "U U U U U", "", ""),
            (Standing::Waiting, "F F F T F", "WaitingForAddress", "WaitingForAddress"),
            (Standing::Refused, "F T F T F", "NoAddress", "SuccessfullyConfigured"),
        ];
        for (standing, statuses, reason, of_aborted) in rows {
            let written = write(standing, "why", &[], &at(1));
            let seen: Vec<&str> = written.iter().map(|condition| &condition.status[..1]).collect();
            assert_eq!(seen.join(" "), statuses, "{standing:?}");
            let reasons: Vec<&str> = written.iter().map(|condition| condition.reason.as_str()).collect();
            assert_eq!(reasons, [reason, reason, reason, reason, of_aborted], "{standing:?}");
        }
    }

    #[test]
    fn a_transition_is_noted_where_a_status_changes() {
        let first = write(Standing::Progressing, "", &[], &at(1));
        let second = write(Standing::Available, "", &first, &at(2));
        let times: Vec<i64> = second
            .iter()
            .map(|condition| condition.last_transition_time.as_ref().unwrap().0.as_second())
            .collect();
        // Pending and Aborted were False before.
        assert_eq!(times, [2, 2, 2, 1, 1]);
        assert!(second.iter().all(|condition| condition.last_heartbeat_time == Some(at(2))));
    }
}
