//! Tests of the plan: goldens (a case is a folder), properties, and single topics.

mod goldens;
mod kept;
mod losses;
mod others;
mod properties;
mod refused;
mod remade;
mod returns;
mod scale;
mod topics;

use super::{Plan, memory};
use crate::state::{Address, Observed};
use serde_json::Value;

fn yaml(text: &str) -> Value {
    serde_saphyr::from_str(text).expect("test YAML parses")
}

fn observed(text: &str) -> Observed {
    Observed::from_value(&yaml(text)).expect("observed state reads")
}

fn desired(text: &str) -> crate::state::Desired {
    crate::state::Desired::from_value(&yaml(text)).unwrap_or_else(|e| panic!("{e}"))
}

/// Applies all steps; a step that the kernel would refuse fails the test.
fn applied(state: &Observed, plan: &Plan) -> Observed {
    let mut state = state.clone();
    for (i, step) in plan.steps.iter().enumerate() {
        memory::apply(&mut state, step).unwrap_or_else(|e| panic!("step {} ({step}): {e}\n{plan}", i + 1));
    }
    state
}

/// A state without what nobody puts back and without orders that mean nothing.
fn comparable(state: &Observed) -> Observed {
    let mut state = state.clone();
    state.routes.sort();
    state.rules.sort();
    for link in state.links.values_mut() {
        link.ipv6.addresses.retain(|a| !a.is_kernel_link_local());
        link.ipv6.accept_ra = None;
        let up = link.up;
        for family in crate::state::Family::BOTH {
            let ip = link.ip_mut(family);
            // Leases are theirs whose they are: that they are there counts, not in which place.
            let (mut leases, rest): (Vec<Address>, _) = ip.addresses.drain(..).partition(|a| a.is_foreign());
            // Nobody but who renews them puts them on a link that is down.
            leases.retain(|a| up || !a.is_dynamic());
            leases.sort();
            // What shares a subnet with a lease may be its secondary or its primary, as the lease came: its place is
            // no more Berth's than the lease's.
            let shares = |a: &Address| leases.iter().any(|lease| lease.subnet() == a.subnet());
            let (mut beside, rest): (Vec<Address>, Vec<Address>) = rest.into_iter().partition(shares);
            beside.sort();
            ip.addresses = rest;
            ip.addresses.extend(beside);
            ip.addresses.extend(leases);
            if family == crate::state::Family::Ipv4 {
                ip.enabled = false;
            }
        }
        (link.ipv4.dhcp, link.ipv6.autoconf) = (false, false);
    }
    state
}

/// The lines in which two states differ; empty if they don't.
fn difference(found: &Observed, wanted: &Observed) -> String {
    let lines = |state: &Observed| -> Vec<String> {
        let mut lines = Vec::new();
        flatten(&serde_json::to_value(state).expect("prints"), "", &mut lines);
        lines
    };
    let (found, wanted) = (lines(found), lines(wanted));
    let extra = found.iter().filter(|l| !wanted.contains(l)).map(|l| format!("+ {l}\n"));
    let missing = wanted.iter().filter(|l| !found.contains(l)).map(|l| format!("- {l}\n"));
    extra.chain(missing).collect()
}

fn flatten(value: &Value, path: &str, lines: &mut Vec<String>) {
    match value {
        Value::Object(map) => map.iter().for_each(|(k, v)| flatten(v, &format!("{path}.{k}"), lines)),
        Value::Array(list) => {
            list.iter().enumerate().for_each(|(i, v)| flatten(v, &format!("{path}[{i}]"), lines));
        }
        leaf => lines.push(format!("{path} = {leaf}")),
    }
}
