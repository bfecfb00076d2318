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
