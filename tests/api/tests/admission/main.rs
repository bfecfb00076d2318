//! What `deploy/` lets agents and controllers write, on a real API server, with real tokens.
//!
//! One table of attempts ([`table`]) is asked of the embedded API, as the host itself, and of a real one that has
//! `deploy/rbac` and `deploy/admission`, with a token that is bound to the Node: both let the same pass, and refuse the same in
//! the same words. Where RBAC already refuses, the same is asked once more as if rights had been given too freely.

mod cut;
mod ground;
mod large;
mod people;
mod rights;
mod row;
mod table;

use std::collections::BTreeSet;

use api_tests::RUNTIME;
use ground::Ground;
use row::Run;

fn check(ground: &Ground) -> BTreeSet<String> {
    let rows = table::all(&ground.uids);
    let mut run = Run::new(ground);
    RUNTIME.block_on(async {
        for row in &rows {
            run.row(row).await;
        }
    });
    assert!(run.wrong.is_empty(), "{} of {} rows:\n{}", run.wrong.len(), rows.len(), run.wrong.join("\n"));
    run.refused_by
}

#[test]
fn the_embedded_api_keeps_the_bounds() {
    check(&Ground::embedded());
}

/// And each policy for agents and controllers is what refuses some row: one that refused nothing would not be trusted.
#[test]
fn rights_and_admission_keep_the_same_bounds() {
    let ground = Ground::real();
    let refused_by = check(ground);
    // Those that `people` and `cut` ask, and tests/deploy, besides.
    let others = |name: &str| {
        name.starts_with("berth-policies-")
            || ["berth-agent-slices-of-pools", "berth-definitions"].contains(&name)
    };
    let policies = ground.policies.iter().filter(|name| !others(name));
    let silent: Vec<&String> = policies.filter(|name| !refused_by.contains(*name)).collect();
    assert!(silent.is_empty(), "no row is refused by {silent:?}, only by {refused_by:?}");
}

/// A table that refuses everything, or lets everything pass, would prove nothing.
#[test]
fn the_table_has_both() {
    let rows = table::all(&ground::Uids { node01: "1".to_owned(), node02: "2".to_owned() });
    let refused = rows.iter().filter(|row| row.told.is_some()).count();
    assert!(refused > 50 && rows.len() - refused > 25, "{refused} of {} are refused", rows.len());
    let names: BTreeSet<&str> = rows.iter().map(|row| row.name).collect();
    assert_eq!(names.len(), rows.len(), "each row has a name of its own");
}
