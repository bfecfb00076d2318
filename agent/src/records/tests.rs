mod any;
mod broken;
mod counts;
mod round_trip;

use crds::{Kind, NodeIPPool, NodeIPPoolStatus};
use policy::claim::{Entry, EntryKind, EntryState};
use policy::pool::{Pool, PoolSpec};
use serde::{Serialize, de::DeserializeOwned};
use serde_json::{Value, json};

/// A pool's manifest, and what it means.
fn pool(name: &str, spec: &Value) -> (NodeIPPool, Pool) {
    let manifest = json!({"apiVersion": "nmstate.io/v1", "kind": "NodeIPPool", "metadata": {"name": name, "uid": "p"}, "spec": spec});
    let meant = PoolSpec::from_manifest(&manifest).and_then(|spec| Pool::new(&spec)).expect("a pool");
    (serde_json::from_value(manifest).expect("the type"), meant)
}

/// An entry of a ledger that nothing is special about.
fn held() -> Entry {
    Entry {
        node: "n".into(),
        node_uid: "u".into(),
        policy: "p".into(),
        capture: "c".into(),
        request: Some("r".into()),
        sequence: 1,
        since: 1,
        kind: EntryKind::Dynamic,
        state: EntryState::Held,
    }
}

/// The object with this status, as the store gives it back. The API must have nothing against it.
fn stored(object: &NodeIPPool, status: NodeIPPoolStatus) -> NodeIPPool {
    through_json(Kind::NodeIPPool, &NodeIPPool { status: Some(status), ..object.clone() })
}

fn through_json<T: Serialize + DeserializeOwned>(kind: Kind, object: &T) -> T {
    let text = serde_json::to_string(object).expect("JSON");
    let value: Value = serde_json::from_str(&text).expect("JSON");
    assert_eq!(crds::validate(kind, None, &value), [], "{text}");
    serde_json::from_str(&text).expect("the same type")
}
