//! A host's slices: its own, and such as their pool would cut.

use api_tests::server::paths::SLICES;
use serde_json::json;

use super::{By, FORMER, HOST, Uids, change, passes, refused, slice};
use crate::row::{Act, Row};

pub(super) fn rows(uids: &Uids) -> Vec<Row> {
    let own = || slice(HOST, &uids.node01, "10.0.0.0/28");
    let theirs = || super::theirs(SLICES, uids);
    let former = || slice(HOST, FORMER, "10.0.0.0/28");
    let claim = || change(|slice| slice["status"] = json!({"sequence": 1}));
    let keep = || change(|slice| slice["metadata"]["finalizers"] = json!(["nmstate.io/addresses"]));
    let of_other = "host node01 may not write a slice of node node02";
    vec![
        passes("claims in its slice", SLICES, Some(own()), Act::PatchStatus(claim())),
        passes("gives its slice back", SLICES, Some(own()), Act::Delete),
        passes("keeps its slice", SLICES, Some(own()), Act::Patch(keep())),
        refused("makes another's slice", SLICES, None, Act::Create(theirs()), of_other),
        refused("claims in another's slice", SLICES, Some(theirs()), Act::PatchStatus(claim()), of_other),
        refused("keeps another's slice", SLICES, Some(theirs()), Act::Patch(keep()), of_other),
        refused("replaces another's ledger", SLICES, Some(theirs()), Act::PutStatus(claim()), of_other)
            .by(By::RightsAndAdmission),
        refused("gives another's slice back", SLICES, Some(theirs()), Act::Delete, of_other),
        refused(
            "claims in a slice of a former Node",
            SLICES,
            Some(former()),
            Act::PatchStatus(claim()),
            format!("spec.nodeUID must be {}, the UID of Node {HOST}", uids.node01),
        ),
    ]
}
