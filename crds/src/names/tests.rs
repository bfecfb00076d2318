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
        label::POLICY,
        label::NODE,
        label::FORCE_STATE_REFRESH,
        finalizer::RANGE_IN_USE,
        finalizer::ADDRESSES,
    ];
    for name in all {
        assert!(
            name.starts_with("nmstate.io/") && crate::text::is_qualified_name(name),
            "{name}"
        );
    }
}

#[test]
fn a_policys_counts_stand_where_scripts_look_for_them() {
    assert_eq!(policy::message_failed(1, 3, 0), "1/3 nodes failed to configure");
    assert_eq!(
        policy::message_failed(1, 3, 2),
        "1/3 nodes failed to configure, 2 nodes aborted configuration"
    );
    assert_eq!(
        policy::message_progressing(1, 3, 0, 0),
        "Policy is progressing 1/3 nodes finished"
    );
    assert_eq!(
        policy::message_progressing(1, 3, 1, 2),
        "Policy is progressing 1/3 nodes finished, 1 pending, 2 nodes ignored due to NotReady state"
    );
    assert_eq!(
        policy::message_configured(3, 3, 0),
        "3/3 nodes successfully configured"
    );
    assert_eq!(
        policy::message_configured(2, 3, 1),
        "2/3 nodes successfully configured, 1 nodes ignored due to NotReady state"
    );
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
    assert_eq!(
        enactment::message_aborted("a.b"),
        "reconciliation of enactment \"a.b\" has aborted"
    );
    assert_eq!(
        enactment::message_gave_up("a.b", 5),
        "reconciliation of enactment \"a.b\" has failed after 5 retries"
    );
}
