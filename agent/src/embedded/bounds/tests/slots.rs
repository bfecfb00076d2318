//! Slots of a rollout: a host takes and gives back its own.

use super::*;

const POLICIES: &str = "nodenetworkconfigurationpolicies/status";

fn policy(slots: &Value, counts: &Value) -> Value {
    json!({"metadata": {"name": "web", "generation": 3}, "spec": {},
           "status": {"unavailableNodes": slots, "unavailableNodeCountMap": counts, "conditions": [{"type": "Available"}]}})
}

#[test]
fn a_host_takes_its_slot_and_gives_it_back() {
    let without = policy(&json!({"node02": 2}), &json!({"2": 1}));
    let with_it = policy(&json!({"node01": 3, "node02": 2}), &json!({"2": 1, "3": 1}));
    let older = with(without.clone(), |policy| policy["status"]["unavailableNodeCountMap"]["3"] = 0.into());
    let fresh = json!({"metadata": {"name": "web", "generation": 3}, "spec": {}});
    let first = with(fresh.clone(), |policy| {
        policy["status"] = json!({"unavailableNodes": {"node01": 3}, "unavailableNodeCountMap": {"3": 1},
            "unavailableNodeCount": 1, "lastUnavailableNodeCountUpdate": "2026-01-01T00:00:00Z"});
    });
    for (old, new) in [
        (&without, &with_it),
        (&with_it, &without),
        (&with_it, &older),
        (&fresh, &first),
        (&first, &fresh),
        (&with_it, &with_it),
    ] {
        assert_eq!(attempt(&update(POLICIES, old.clone(), new.clone())), Ok(()), "{old} {new}");
    }
}

#[test]
fn others_slots_wrong_counts_and_conditions_are_refused() {
    let old = policy(&json!({"node02": 2}), &json!({"2": 1}));
    let of =
        |change: &dyn Fn(&mut Value)| update(POLICIES, old.clone(), with(old.clone(), |new| change(new)));
    let counts = "status.unavailableNodeCountMap must count status.unavailableNodes by generation";
    for (tried, why) in [
        (
            of(&|new| new["status"] = policy(&json!({}), &json!({}))["status"].clone()),
            "host node01 may not change the slot of node node02",
        ),
        (
            of(&|new| {
                new["status"] =
                    policy(&json!({"node02": 2, "node03": 3}), &json!({"2": 1, "3": 1}))["status"].clone();
            }),
            "host node01 may not change the slot of node node03",
        ),
        (of(&|new| new["status"]["unavailableNodes"]["node01"] = 3.into()), counts),
        (of(&|new| new["status"]["unavailableNodeCountMap"] = json!({})), counts),
        (
            of(&|new| {
                new["status"] =
                    policy(&json!({"node01": 4, "node02": 2}), &json!({"2": 1, "4": 1}))["status"].clone();
            }),
            "status.unavailableNodes.node01 must not be above the policy's generation 3",
        ),
        (
            of(&|new| new["status"]["unavailableNodeCount"] = 7.into()),
            "status.unavailableNodeCount must be 1, the number of status.unavailableNodes",
        ),
        (
            of(&|new| new["status"]["conditions"] = json!([])),
            "host node01 may not change status.conditions: only a controller does",
        ),
        (
            update("nodenetworkconfigurationpolicies", old.clone(), old.clone()),
            "host node01 may not change nodenetworkconfigurationpolicies",
        ),
    ] {
        assert_eq!(attempt(&tried), Err(why.to_owned()));
    }
}

/// What a controller that hosts elect among themselves has to write: `--agents-elect` lets each of them.
#[test]
fn hosts_that_elect_write_what_a_controller_writes_and_no_more() {
    let elects = Caller::Host { name: HOST.to_owned(), elects: true };
    let old = policy(&json!({"node02": 2}), &json!({"2": 1}));
    let done = with(old.clone(), |policy| policy["status"] = json!({"conditions": [{"type": "Degraded"}]}));
    let pool = json!({"metadata": {"name": "p", "uid": "u"}, "spec": {"range": {"cidr": "10.0.0.0/24"}}});
    let rebuilt =
        with(pool.clone(), |pool| pool["status"] = json!({"rebuiltFor": "u", "sequence": 1_000_000}));
    let released = with(pool.clone(), |pool| pool["metadata"]["annotations"] = json!({}));
    let theirs = enactment("node02.web", "node02", "web", ("node02", "uid-2"));
    let election = lease("berth-system", "berth-controller");
    for tried in [
        update(POLICIES, old, done),
        update("nodeippools/status", pool.clone(), rebuilt),
        update("nodeippools", pool.clone(), released),
        update("nodenetworkconfigurationenactments/status", theirs.clone(), theirs.clone()),
        delete(ENACTMENTS, theirs),
        delete("nodeipslices", slice("node02", "uid-2")),
        create("leases", election.clone()),
        update("leases", election.clone(), election),
    ] {
        let Attempt { verb, what, old, new } = &tried;
        assert_eq!(write(&elects, *verb, what, old.as_ref(), new.as_ref()), Ok(()), "{verb:?} {what}");
        assert!(attempt(&tried).is_err(), "{verb:?} {what}: without --agents-elect it may not");
    }
    let spec = with(pool.clone(), |pool| pool["spec"]["quarantine"] = "1s".into());
    for tried in [
        update("nodeippools", pool.clone(), spec),
        create("nodeippools", pool.clone()),
        delete("nodeippools", pool),
        delete("nodes", node("node02")),
        create("namespaces", node("x")),
    ] {
        let Attempt { verb, what, old, new } = &tried;
        assert!(write(&elects, *verb, what, old.as_ref(), new.as_ref()).is_err(), "{verb:?} {what}");
    }
}
