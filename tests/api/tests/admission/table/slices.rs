//! A host's slices: its own, and such as their pool would cut. No right to them is given yet, since no agent uses them.

use api_tests::server::paths::SLICES;
use serde_json::json;

use super::{FORMER, HOST, Uids, change, passes, refused, slice};
use crate::row::{Act, By, Row};

pub(super) fn rows(uids: &Uids) -> Vec<Row> {
    let own = || slice(HOST, &uids.node01, "10.0.0.0/28");
    let theirs = || super::theirs(SLICES, uids);
    let former = || slice(HOST, FORMER, "10.0.0.0/28");
    let claim = || change(|slice| slice["status"] = json!({"sequence": 1}));
    let of_other = "host node01 may not write a slice of node node02";
    let rows = vec![
        passes("claims in its slice", SLICES, Some(own()), Act::PatchStatus(claim())),
        passes("gives its slice back", SLICES, Some(own()), Act::Delete),
        refused("makes another's slice", SLICES, None, Act::Create(theirs()), of_other),
        refused("claims in another's slice", SLICES, Some(theirs()), Act::PatchStatus(claim()), of_other),
        refused("gives another's slice back", SLICES, Some(theirs()), Act::Delete, of_other),
        refused(
            "claims in a slice of a former Node",
            SLICES,
            Some(former()),
            Act::PatchStatus(claim()),
            format!("spec.nodeUID must be {}, the UID of Node {HOST}", uids.node01),
        ),
    ];
    rows.into_iter().map(|row| row.by(By::RightsAndAdmission)).collect()
}
