//! A controller: it writes others' entries, and leaves alone what people write.

use api_tests::server::paths::{ENACTMENTS, POLICIES, POOLS, STATES, policy, pool};
use serde_json::{Value, json};

use super::{Uids, change, passes, refused};
use crate::row::{Act, By, Row, Who};

pub(super) fn rows(uids: &Uids) -> Vec<Row> {
    let put = |pointer: &'static [&'static str], value: Value| {
        change(move |object| {
            let place = pointer.iter().fold(&mut *object, |place, field| &mut place[*field]);
            *place = value.clone();
        })
    };
    let conditions = || put(&["status", "conditions"], json!([{"type": "Available", "status": "True"}]));
    let theirs = |kind| Some(super::theirs(kind, uids));
    let old = || Some(pool("own"));
    let not = |what: &str| format!("a controller may not {what}");
    let owner = json!([{"apiVersion": "v1", "kind": "Node", "name": "node02", "uid": uids.node02}]);
    let both = By::RightsAndAdmission;
    let keeps = put(&["metadata", "finalizers"], json!(["nmstate.io/range-in-use"]));
    let marks = put(&["metadata", "annotations"], json!({"nmstate.io/confirm-release": "3"}));
    let rebuilds = put(&["status"], json!({"rebuiltFor": "any", "sequence": 1_000_000}));
    let spec = || put(&["spec", "quarantine"], "1m".into());
    let labels = put(&["metadata", "labels"], json!({"x": "y"}));
    let mut listed = pool("own");
    listed["metadata"]["labels"] = json!({"nmstate.io/from-configuration": "true"});
    let unmarks = put(&["metadata", "annotations"], json!({}));
    let rows = vec![
        passes("a controller has reset a policy's part", POLICIES, Some(policy("own")), Act::Patch(unmarks)),
        passes("a controller keeps a pool", POOLS, old(), Act::Patch(keeps)),
        passes("a controller marks a pool", POOLS, old(), Act::Patch(marks)),
        passes("a controller rebuilds a ledger", POOLS, old(), Act::PatchStatus(rebuilds)),
        passes(
            "a controller says how a policy is",
            POLICIES,
            Some(policy("own")),
            Act::PatchStatus(conditions()),
        ),
        passes("a controller answers", ENACTMENTS, theirs(ENACTMENTS), Act::PatchStatus(conditions())),
        passes(
            "a controller ends an enactment",
            ENACTMENTS,
            theirs(ENACTMENTS),
            Act::Patch(put(&["metadata", "finalizers"], json!([]))),
        ),
        passes(
            "a controller asks for a report",
            STATES,
            theirs(STATES),
            Act::Patch(put(&["metadata", "labels"], json!({"nmstate.io/force-nns-refresh": "1"}))),
        ),
        refused(
            "a controller changes a pool",
            POOLS,
            old(),
            Act::Patch(spec()),
            not("change the spec of nodeippools"),
        ),
        refused(
            "a controller labels a pool",
            POOLS,
            old(),
            Act::Patch(labels),
            not("change labels or owners of nodeippools"),
        ),
        refused(
            "a controller gives a pool away",
            POOLS,
            old(),
            Act::Patch(put(&["metadata", "ownerReferences"], owner)),
            not("change labels or owners of nodeippools"),
        ),
        refused(
            "a controller makes a pool",
            POOLS,
            None,
            Act::Create(pool("own")),
            not("create nodeippools"),
        ),
        passes("a controller makes a pool of its configuration", POOLS, None, Act::Create(listed)),
        refused("a controller deletes a pool", POOLS, old(), Act::Delete, not("delete nodeippools")).by(both),
        refused(
            "a controller changes a policy",
            POLICIES,
            Some(policy("own")),
            Act::Patch(put(&["spec", "maxUnavailable"], 1.into())),
            not("change the spec of nodenetworkconfigurationpolicies"),
        ),
        refused(
            "a controller deletes a policy",
            POLICIES,
            Some(policy("own")),
            Act::Delete,
            not("delete nodenetworkconfigurationpolicies"),
        )
        .by(both),
    ];
    rows.into_iter().map(|row| Row { who: Who::Controller, ..row }).collect()
}
