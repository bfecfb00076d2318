//! The table: what a host may write, and each refusal with what it is told.

use super::*;

const STATUS: &str = "nodenetworkconfigurationenactments/status";

fn event(teller: &str) -> Value {
    json!({"metadata": {"name": "e"}, "reportingInstance": teller})
}

const OWN_EVENTS: &str = "only Events of its own: reportingInstance and source.host node01, reportingComponent nmstate.io/berth-agent, source.component node01.nmstate-handler";

#[test]
fn a_host_writes_what_is_its_own() {
    let labelled = with(node(HOST), |node| node["metadata"]["labels"]["rack"] = "2".into());
    let source = json!({"metadata": {"name": "e"}, "reportingInstance": "", "source": {"host": HOST}});
    // As agents make one with an address in it.
    let kept = with(slice(HOST, UID), |slice| {
        slice["metadata"]["annotations"] = json!({"nmstate.io/ledger-encoding": "first"});
        slice["metadata"]["finalizers"] = json!(["nmstate.io/addresses"]);
    });
    let allowed = [
        create("nodes", node(HOST)),
        update("nodes", node(HOST), labelled),
        update("nodes", with(node(HOST), |node| node["metadata"]["finalizers"] = json!([])), node(HOST)),
        update("nodes/status", node(HOST), node(HOST)),
        create("leases", lease("kube-node-lease", HOST)),
        update("leases", lease("kube-node-lease", HOST), lease("kube-node-lease", HOST)),
        create("events", event(HOST)),
        update("events", event(HOST), event(HOST)),
        update("events", source.clone(), source),
        create(ENACTMENTS, own()),
        update(STATUS, own(), own()),
        delete(ENACTMENTS, own()),
        create("nodenetworkstates", state(HOST, UID)),
        update("nodenetworkstates/status", state(HOST, UID), state(HOST, UID)),
        update("nodenetworkstates", state(HOST, "former"), state(HOST, UID)),
        create("nodeipslices", slice(HOST, UID)),
        create("nodeipslices", kept),
        update("nodeipslices/status", slice(HOST, UID), slice(HOST, UID)),
        delete("nodeipslices", slice(HOST, UID)),
    ];
    for tried in allowed {
        assert_eq!(attempt(&tried), Ok(()), "{:?} {}", tried.verb, tried.what);
    }
    for what in
        ["nodes", "nodeippools", "nodenetworkconfigurationpolicies", ENACTMENTS, "leases", "namespaces"]
    {
        for verb in [Verb::Get, Verb::List, Verb::Watch] {
            assert_eq!(may_ask(&ask(&host(), verb, what)), Ok(()), "{verb:?} {what}");
        }
    }
}

#[track_caller]
fn check(table: Vec<(Attempt, &str)>) {
    for (tried, why) in table {
        assert_eq!(attempt(&tried), Err(why.to_owned()), "{:?} {}", tried.verb, tried.what);
    }
}

#[test]
fn nodes_leases_and_events_of_others_are_refused() {
    let restricted = with(node(HOST), |node| {
        node["metadata"]["labels"]["node-restriction.kubernetes.io/zone"] = "dmz".into();
    });
    let labels = "host node01 may not change labels under node-restriction.kubernetes.io/";
    let other = lease("kube-node-lease", "node02");
    let orphaned = with(node(HOST), |node| {
        let nobody = json!({"apiVersion": "v1", "kind": "Node", "name": "nobody", "uid": "nobody"});
        node["metadata"]["ownerReferences"] = json!([nobody]);
    });
    let held = with(node(HOST), |node| node["metadata"]["finalizers"] = json!(["nmstate.io/mine"]));
    let (owners, finalizers) = (
        "host node01 may not change metadata.ownerReferences of its Node",
        "host node01 may not change metadata.finalizers of its Node",
    );
    check(vec![
        (update("nodes", node(HOST), orphaned.clone()), owners),
        (update("nodes/status", node(HOST), orphaned.clone()), owners),
        (update("nodes", orphaned.clone(), node(HOST)), owners),
        (create("nodes", orphaned), owners),
        (update("nodes", node(HOST), held.clone()), finalizers),
        (update("nodes", held, node(HOST)), finalizers),
        (create("nodes", node("node02")), "host node01 may not create Node node02, only its own"),
        (
            update("nodes/status", node("node02"), node("node02")),
            "host node01 may not change Node node02, only its own",
        ),
        (delete("nodes", node(HOST)), "host node01 may not delete nodes"),
        (update("nodes", node(HOST), restricted.clone()), labels),
        (update("nodes", restricted.clone(), node(HOST)), labels),
        (create("nodes", restricted), labels),
        (
            update("leases", other.clone(), other),
            "host node01 may change only Lease node01 in namespace kube-node-lease",
        ),
        (
            create("leases", lease("default", HOST)),
            "host node01 may create only Lease node01 in namespace kube-node-lease",
        ),
        (delete("leases", lease("kube-node-lease", HOST)), "host node01 may not delete leases"),
        (create("events", event("node02")), &format!("host node01 may create {OWN_EVENTS}")),
        (create("events", event("")), &format!("host node01 may create {OWN_EVENTS}")),
        (update("events", event("node02"), event(HOST)), &format!("host node01 may change {OWN_EVENTS}")),
        (delete("events", event(HOST)), "host node01 may not delete events"),
        (create("namespaces", node("x")), "host node01 may not create namespaces"),
    ]);
}

#[test]
fn what_people_write_is_refused() {
    let many = Attempt { verb: Verb::DeleteCollection, what: ENACTMENTS, old: Some(own()), new: None };
    check(vec![
        (
            create("nodenetworkconfigurationpolicies", node("x")),
            "host node01 may not create nodenetworkconfigurationpolicies",
        ),
        (
            delete("nodenetworkconfigurationpolicies", node("x")),
            "host node01 may not delete nodenetworkconfigurationpolicies",
        ),
        (create("nodeippools", node("x")), "host node01 may not create nodeippools"),
        (update("nodeippools", node("x"), node("x")), "host node01 may not change nodeippools"),
        (delete("nodeippools", node("x")), "host node01 may not delete nodeippools"),
        (many, "host node01 may not delete many at once of nodenetworkconfigurationenactments"),
    ]);
}

#[test]
fn enactments_of_others_are_refused() {
    let theirs = enactment("node02.web", "node02", "web", ("node02", "uid-2"));
    let unlabelled = with(own(), |object| object["metadata"]["labels"] = json!({"nmstate.io/policy": "web"}));
    let unowned = with(own(), |object| object["metadata"]["ownerReferences"] = json!([]));
    let namesake = enactment("node01.web", HOST, "web", (HOST, "former"));
    let two = with(own(), |object| {
        let other = json!({"apiVersion": "v1", "kind": "Node", "name": "node02", "uid": "uid-2"});
        object["metadata"]["ownerReferences"].as_array_mut().expect("owners").push(other);
    });
    let squat = enactment("node02.web", HOST, "web", (HOST, UID));
    let mislabelled = enactment("node01.web", HOST, "db", (HOST, UID));
    let label = "it is not host node01's: its label nmstate.io/node is node02";
    let missing = "it is not host node01's: its label nmstate.io/node is missing";
    let name = "an enactment of host node01 is named node01.<policy>, with the policy in its label nmstate.io/policy";
    check(vec![
        (update(ENACTMENTS, theirs.clone(), theirs.clone()), label),
        (delete(ENACTMENTS, theirs.clone()), label),
        (update(ENACTMENTS, theirs, own()), label),
        (update(ENACTMENTS, own(), unlabelled.clone()), missing),
        (update(ENACTMENTS, unlabelled, own()), missing),
        (create(ENACTMENTS, unowned), "it must have Node node01 with UID uid-1 as its only owner"),
        (
            update(STATUS, namesake.clone(), namesake),
            "it is owned by Node node01 with UID former, not by Node node01 with UID uid-1",
        ),
        (
            create(ENACTMENTS, two),
            "it is owned by Node node02 with UID uid-2, not by Node node01 with UID uid-1",
        ),
        (create(ENACTMENTS, squat), name),
        (create(ENACTMENTS, mislabelled), name),
    ]);
}

/// Rule 6: what is free by the word of a pool that went back in time may be in use.
#[test]
fn a_pool_that_is_stopped_gives_no_slices() {
    let of = |pool: &str| with(slice(HOST, UID), |slice| slice["spec"]["pool"] = pool.into());
    check(vec![
        (create("nodeipslices", of("restored")), "the pool gives nothing: it is on hold"),
        (create("nodeipslices", of("held")), "the pool gives nothing: it is on hold"),
        (create("nodeipslices", of("reset")), "the pool gives nothing: its ledger is to be rebuilt"),
        (create("nodeipslices", of("leaving")), "the pool gives nothing: it is being deleted"),
    ]);
    // What a host has it keeps, and may give back.
    assert_eq!(attempt(&update("nodeipslices/status", of("held"), of("held"))), Ok(()));
    assert_eq!(attempt(&delete("nodeipslices", of("held"))), Ok(()));
}

#[test]
fn states_and_slices_of_others_are_refused() {
    let sized = |cidr: &str| with(slice(HOST, UID), |slice| slice["spec"]["cidr"] = cidr.into());
    let elsewhere = with(slice(HOST, UID), |slice| slice["spec"]["pool"] = "other".into());
    let former = slice(HOST, "former");
    let their_state = "host node01 may not write the state of node node02";
    let their_slice = "host node01 may not write a slice of node node02";
    check(vec![
        (create("nodenetworkstates", state("node02", "uid-2")), their_state),
        (delete("nodenetworkstates", state("node02", "uid-2")), their_state),
        (
            update("nodenetworkstates", state(HOST, UID), state(HOST, "former")),
            "it is owned by Node node01 with UID former, not by Node node01 with UID uid-1",
        ),
        (create("nodeipslices", slice("node02", "uid-2")), their_slice),
        (delete("nodeipslices", slice("node02", "uid-2")), their_slice),
        (
            update("nodeipslices/status", former.clone(), former),
            "spec.nodeUID must be uid-1, the UID of Node node01",
        ),
        (create("nodeipslices", elsewhere), "there is no pool other that it could be cut from"),
        (
            create("nodeipslices", sized("10.0.0.0/24")),
            "10.0.0.0/24 is not a slice of pool traffic-1: none of its ranges is cut that way",
        ),
        (
            create("nodeipslices", sized("10.0.1.0/28")),
            "10.0.1.0/28 is not a slice of pool traffic-1: none of its ranges is cut that way",
        ),
    ]);
}
