//! Planning on a host with 500 interfaces and 501 routes.
//!
//! Baseline: a copy of the observed state. A plan reads both states once and writes what differs, so what
//! it takes should be a small multiple of that, and growing with what changes.

use std::hint::black_box;

use berth_tests::bench::{Row, measure, print};
use policy::plan::{Plan, plan, verify};
use policy::state::{Desired, Observed};
use serde_json::{Value, json};

use crate::documents::{INTERFACES, interface, is_card, routes, state, static_address};

pub(crate) fn run() {
    let current = state();
    let observed = Observed::from_value(&current).expect("the host reads");
    let same = document(INTERFACES, |n| interface(n, 1500, &[static_address(n)]));
    let one = document(INTERFACES, |n| match n {
        0 => interface(n, 9000, &[static_address(n)]),
        _ => interface(n, 1500, &[static_address(n)]),
    });
    // VLANs lower still than their cards, or the kernel would take them along and leave nothing to do.
    let all = document(INTERFACES, |n| {
        let second = json!({"ip": format!("192.168.{}.{}", n / 250, n % 250 + 1), "prefix-length": 32});
        interface(n, if is_card(n) { 1400 } else { 1300 }, &[static_address(n), second])
    });
    let few = document(1, |n| interface(n, 9000, &[static_address(n)]));

    let copy = measure("a copy of the observed state, 500 interfaces", |_| {
        black_box(black_box(&observed).clone());
    });
    let rows = [
        reading("read the document, 500 interfaces", &same),
        planning("plan, 500 named, none changed", &observed, &same, 0),
        planning("plan, 500 named, one changed", &observed, &one, 1),
        planning("plan, 500 named, MTU and address of all changed", &observed, &all, INTERFACES * 2),
        planning("plan, one named, one changed", &observed, &few, 1),
        verifying("verify, 500 named, all met", &observed, &same),
        reverting("revert of the plan that changes all", &observed, &all),
    ];
    let rows: Vec<Row> =
        std::iter::once(copy.clone()).chain(rows.into_iter().map(|row| row.against(&copy))).collect();
    print("plan", &rows);
}

/// The first `named` interfaces as `link` writes them, and the routes as they are.
fn document(named: usize, link: impl Fn(usize) -> Value) -> Value {
    let interfaces: Vec<Value> = (0..named).map(link).collect();
    match named {
        INTERFACES => json!({"interfaces": interfaces, "routes": {"config": routes()}}),
        _ => json!({"interfaces": interfaces}),
    }
}

fn desired(document: &Value) -> Desired {
    Desired::from_value(document).expect("the document reads")
}

fn reading(name: &str, document: &Value) -> Row {
    measure(name, |_| {
        black_box(desired(black_box(document)));
    })
}

/// Measures a plan, and makes sure that it is the plan that the row's name says.
fn planning(name: &str, observed: &Observed, document: &Value, at_least: usize) -> Row {
    let desired = desired(document);
    let made: Plan = plan(observed, &desired).expect("a plan");
    assert!(
        made.len() >= at_least && (at_least > 0 || made.is_empty()),
        "{name}: {} steps\n{made}",
        made.len()
    );
    measure(format!("{name} ({} steps)", made.len()), |_| {
        black_box(plan(black_box(observed), &desired).expect("a plan"));
    })
}

fn verifying(name: &str, observed: &Observed, document: &Value) -> Row {
    let desired = desired(document);
    measure(name, |_| {
        assert!(verify(black_box(observed), &desired).is_empty());
    })
}

fn reverting(name: &str, observed: &Observed, document: &Value) -> Row {
    let made = plan(observed, &desired(document)).expect("a plan");
    measure(name, |_| {
        black_box(made.revert(black_box(observed)));
    })
}
