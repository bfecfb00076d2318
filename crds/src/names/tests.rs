use super::*;

#[test]
fn a_pools_reasons_are_the_seeds_and_come_in_their_order() {
    // R12 to R17, D6
    let seed = [
        "UnsyncronizedIPPool",
        "ReconcilingPool",
        "OverlappingIPPool",
        "IPCollision",
        "ExhaustedIPPool",
        "ReconciledPool",
    ];
    assert_eq!(pool::BY_PRECEDENCE, seed);
}

#[test]
fn messages_name_what_they_are_about() {
    // R16, R17: all values filled in
    assert_eq!(
        pool::message_overlapping("traffic-2"),
        "The NodeIPPool traffic-2 is overlapping with this one."
    );
    assert_eq!(
        pool::message_collision("10.0.0.8", "node01", "eth1", "node02"),
        "The IP address 10.0.0.8 at node node01 and interface eth1 is colliding with node node02"
    );
    assert_eq!(enactment_name("node01", "static-ip"), "node01.static-ip");
    // R12 to R15: in the seed's words, its slips of grammar mended
    assert_eq!(pool::MESSAGE_RECONCILED, "The pool is up to date");
    assert_eq!(pool::MESSAGE_RECONCILING, "The pool is being updated");
    assert!(pool::MESSAGE_EXHAUSTED.ends_with("manual intervention needed to modify NodeIPPool."));
    assert!(
        pool::MESSAGE_UNSYNCRONIZED.starts_with("Failed") && pool::MESSAGE_UNSYNCRONIZED.contains("in sync")
    );
}

#[test]
fn annotations_and_finalizers_belong_to_the_group() {
    // R59: the encoding hints among them
    let all = [
        annotation::RESET_POOL,
        annotation::CONFIRM_RELEASE,
        annotation::HOLD,
        annotation::SCHEMA_VERSION,
        annotation::LEDGER_ENCODING,
        annotation::WEBHOOK_TIMESTAMP,
        annotation::REQUESTS,
        label::POLICY,
        label::NODE,
        label::FORCE_STATE_REFRESH,
        finalizer::RANGE_IN_USE,
        finalizer::ADDRESSES,
    ];
    for name in all {
        let in_group = name.strip_prefix(GROUP).is_some_and(|rest| rest.starts_with('/'));
        assert!(in_group && crate::text::is_qualified_name(name), "{name}");
    }
    assert!(crate::all().iter().all(|crd| crd.spec.group == GROUP));
}

#[test]
fn a_policys_counts_stand_where_scripts_look_for_them() {
    assert_eq!(policy::message_failed(1, 3, 0), "1/3 nodes failed to configure");
    assert_eq!(
        policy::message_failed(1, 3, 2),
        "1/3 nodes failed to configure, 2 nodes aborted configuration"
    );
    assert_eq!(policy::message_progressing(1, 3, 0, 0), "Policy is progressing 1/3 nodes finished");
    assert_eq!(
        policy::message_progressing(1, 3, 1, 2),
        "Policy is progressing 1/3 nodes finished, 1 pending, 2 nodes ignored due to NotReady state"
    );
    assert_eq!(policy::message_configured(3, 3, 0), "3/3 nodes successfully configured");
    assert_eq!(
        policy::message_configured(2, 3, 1),
        "2/3 nodes successfully configured, 1 nodes ignored due to NotReady state"
    );
}

/// What kubernetes-nmstate's users rely on: each name beside the line of the compatibility notes that has it.
#[test]
fn names_are_those_of_kubernetes_nmstate() {
    let (progressing, success, failed, pending, ignored, creation, order, labels, event) = (
        "| Progressing | Progressing | Pending, Aborted | Failing, Available | ConfigurationProgressing | `Applying desired state` |",
        "| Success | Available | other 4 | | SuccessfullyConfigured | `successfully reconciled` |",
        "| Failed | Failing | other 4 | | FailedToConfigure (Aborted carries SuccessfullyConfigured) | error text, below |",
        "| Pending | Pending | other 4 | | MaxUnavailableLimitReached | `Waiting for progressing nodes to finish` (also on Progressing) |",
        "| 0 matching nodes run a handler pod | Ignored | NoMatchingNode | `Policy does not match any node` |",
        "NNCE conditions (5 types; at creation all Unknown with empty reason, order Available, Failing, Progressing, Pending, Aborted)",
        "NNCP conditions (4 types Available, Degraded, Progressing, Ignored)",
        "plus `app.kubernetes.io/{component,part-of,version,managed-by}` from env COMPONENT/PART_OF/VERSION/MANAGED_BY when set",
        "Events: type Warning, reason `ReconcileFailed`, on the NNCP",
    );
    let retrying =
        "| Retry | Failing AND Progressing | other 3 | | Retrying (Aborted carries SuccessfullyConfigured)";
    let aborted = "| Aborted | Aborted | other 4 | | ConfigurationAborted |";
    let table = [
        (enactment::PROGRESSING, progressing),
        (enactment::MESSAGE_PROGRESSING, progressing),
        (enactment::CONFIGURED, success),
        (enactment::MESSAGE_CONFIGURED, success),
        (enactment::FAILED, failed),
        (enactment::RETRYING, retrying),
        (enactment::LIMIT_REACHED, pending),
        (enactment::MESSAGE_LIMIT_REACHED, pending),
        (enactment::ABORTED, aborted),
        (policy::PROGRESSING, progressing),
        (policy::CONFIGURED, success),
        (policy::FAILED, failed),
        (policy::NO_MATCHING_NODE, ignored),
        (policy::MESSAGE_NO_MATCHING_NODE, ignored),
        (policy::EVENT_FAILED, event),
        (condition::UNKNOWN, creation),
        (condition::TRUE, "| setter | True | False | Unknown | reason (all 5) | message (on the True one) |"),
        (
            condition::FALSE,
            "| setter | True | False | Unknown | reason (all 5) | message (on the True one) |",
        ),
    ];
    for (name, line) in table {
        assert!(line.contains(name), "{name} is not in: {line}");
    }
    assert!(creation.contains(&format!("order {}", condition::OF_ENACTMENT.join(", "))));
    assert!(order.contains(&condition::OF_POLICY.join(", ")));
    let parts = [label::APP_COMPONENT, label::APP_PART_OF, label::APP_VERSION, label::APP_MANAGED_BY];
    let short = parts.map(|label| label.strip_prefix("app.kubernetes.io/").unwrap_or("another group"));
    assert!(labels.contains(&format!("app.kubernetes.io/{{{}}}", short.join(","))));
}

#[test]
fn an_enactments_messages_are_those_of_kubernetes_nmstate() {
    assert_eq!(
        enactment::message_retrying("node01", 2, 5),
        "failed to reconcile NodeNetworkConfigurationPolicy on node node01. Retrying 2/5"
    );
    assert_eq!(
        enactment::message_apply_failed("node01", "no such link", "exit 1"),
        "error reconciling NodeNetworkConfigurationPolicy on node node01 at desired state apply: \"no such link\",\n exit 1"
    );
    assert_eq!(
        enactment::message_render_failed("no pool"),
        "failure generating desiredState and capturedStates: no pool"
    );
    assert_eq!(enactment::message_aborted("a.b"), "reconciliation of enactment \"a.b\" has aborted");
    assert_eq!(
        enactment::message_gave_up("a.b", 5),
        "reconciliation of enactment \"a.b\" has failed after 5 retries"
    );
}
