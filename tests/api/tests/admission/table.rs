//! The table: what a host and a controller try, and what each is told.

mod controller;
mod ledger;
mod objects;
mod slices;
mod slots;

use api_tests::server::paths::{ENACTMENTS, SLICES, STATES};
use serde_json::{Value, json};

use super::ground::{HOST, Uids};
use super::row::{Act, By, Change, Row, Who};

/// Where a host's own objects are.
pub(crate) const COLLECTIONS: [&str; 3] = [ENACTMENTS, STATES, SLICES];

/// A UID that no Node has: of one that was there before under the same name.
const FORMER: &str = "00000000-0000-4000-8000-000000000000";

pub(crate) fn all(uids: &Uids) -> Vec<Row> {
    let mut rows = objects::rows(uids);
    rows.extend(slices::rows(uids));
    rows.extend(ledger::rows(uids));
    rows.extend(slots::rows());
    rows.extend(controller::rows(uids));
    rows
}

/// Something of node02's.
pub(crate) fn theirs(collection: &str, uids: &Uids) -> Value {
    match collection {
        ENACTMENTS => enactment("node02.web", "node02", "web", ("node02", &uids.node02)),
        STATES => state("node02", &uids.node02),
        _ => slice("node02", &uids.node02, "10.0.0.0/28"),
    }
}

/// A slice of node01's own, which no pool would cut.
pub(crate) fn foreign_slice(uids: &Uids) -> Value {
    let mut slice = slice(HOST, &uids.node01, "10.0.0.0/28");
    slice["spec"]["pool"] = "probe".into();
    slice["metadata"]["name"] = "probe.10.0.0.0".into();
    slice
}

/// A slice of node02's with two addresses in it.
pub(crate) fn held_slice(uids: &Uids) -> Value {
    let mut slice = slices::held("node02", &uids.node02);
    slice["metadata"]["name"] = "probe.10.0.0.0".into();
    slice["spec"]["pool"] = "probe".into();
    slice
}

/// A row that the host tries, and that is let pass.
fn passes(name: &'static str, kind: &'static str, old: Option<Value>, act: Act) -> Row {
    Row { name, who: Who::Agent, kind, old, act, told: None, by: By::Admission }
}

/// One that it is refused.
fn refused(
    name: &'static str,
    kind: &'static str,
    old: Option<Value>,
    act: Act,
    told: impl Into<String>,
) -> Row {
    Row { told: Some(told.into()), ..passes(name, kind, old, act) }
}

impl Row {
    fn by(self, by: By) -> Row {
        Row { by, ..self }
    }
}

fn change(change: impl Fn(&mut Value) + Send + Sync + 'static) -> Change {
    Box::new(change)
}

fn with(mut object: Value, change: impl FnOnce(&mut Value)) -> Value {
    change(&mut object);
    object
}

fn owner(name: &str, uid: &str) -> Value {
    json!({"apiVersion": "v1", "kind": "Node", "name": name, "uid": uid})
}

fn enactment(name: &str, node: &str, policy: &str, of: (&str, &str)) -> Value {
    json!({
        "apiVersion": "nmstate.io/v1beta1", "kind": "NodeNetworkConfigurationEnactment",
        "metadata": {
            "name": name, "labels": {"nmstate.io/node": node, "nmstate.io/policy": policy},
            "ownerReferences": [owner(of.0, of.1)], "finalizers": ["nmstate.io/addresses", "example.com/other"],
        },
    })
}

fn state(name: &str, uid: &str) -> Value {
    json!({
        "apiVersion": "nmstate.io/v1beta1", "kind": "NodeNetworkState",
        "metadata": {"name": name, "ownerReferences": [owner(name, uid)]},
    })
}

fn slice(node: &str, uid: &str, cidr: &str) -> Value {
    let first = cidr.split('/').next().unwrap_or_default();
    json!({
        "apiVersion": "nmstate.io/v1", "kind": "NodeIPSlice", "metadata": {"name": format!("sliced.{first}")},
        "spec": {"pool": "sliced", "cidr": cidr, "node": node, "nodeUID": uid},
    })
}
