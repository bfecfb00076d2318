//! Where the kinds are, and small objects of each: as little as their schemas ask for.

use serde_json::{Value, json};

pub const POOLS: &str = "/apis/nmstate.io/v1/nodeippools";
pub const SLICES: &str = "/apis/nmstate.io/v1/nodeipslices";
pub const POLICIES: &str = "/apis/nmstate.io/v1/nodenetworkconfigurationpolicies";
pub const ENACTMENTS: &str = "/apis/nmstate.io/v1beta1/nodenetworkconfigurationenactments";
pub const STATES: &str = "/apis/nmstate.io/v1beta1/nodenetworkstates";
pub const NODES: &str = "/api/v1/nodes";
pub const NAMESPACES: &str = "/api/v1/namespaces";
pub const EVENTS: &str = "/api/v1/namespaces/default/events";
pub const NEW_EVENTS: &str = "/apis/events.k8s.io/v1/namespaces/default/events";
pub const LEASES: &str = "/apis/coordination.k8s.io/v1/namespaces/default/leases";

/// One object of a collection.
pub fn at(collection: &str, name: &str) -> String {
    format!("{collection}/{name}")
}

/// A subresource of one object.
pub fn status(collection: &str, name: &str) -> String {
    format!("{collection}/{name}/status")
}

pub fn pool(name: &str) -> Value {
    json!({
        "apiVersion": "nmstate.io/v1", "kind": "NodeIPPool", "metadata": {"name": name},
        "spec": {"range": {"cidr": "10.10.10.0/24"}},
    })
}

pub fn policy(name: &str) -> Value {
    json!({
        "apiVersion": "nmstate.io/v1", "kind": "NodeNetworkConfigurationPolicy", "metadata": {"name": name},
        "spec": {"desiredState": {"interfaces": [{"name": "eth1", "type": "ethernet", "state": "up"}]}},
    })
}

pub fn enactment(name: &str) -> Value {
    json!({
        "apiVersion": "nmstate.io/v1beta1", "kind": "NodeNetworkConfigurationEnactment",
        "metadata": {"name": name},
    })
}

pub fn state(name: &str) -> Value {
    json!({"apiVersion": "nmstate.io/v1beta1", "kind": "NodeNetworkState", "metadata": {"name": name}})
}

pub fn node(name: &str) -> Value {
    json!({"apiVersion": "v1", "kind": "Node", "metadata": {"name": name}})
}

pub fn namespace(name: &str) -> Value {
    json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}})
}

pub fn lease(name: &str) -> Value {
    json!({
        "apiVersion": "coordination.k8s.io/v1", "kind": "Lease",
        "metadata": {"name": name, "namespace": "default"},
        "spec": {"holderIdentity": "me", "leaseDurationSeconds": 15},
    })
}

/// About a Node, as the agent writes them.
pub fn event(name: &str, about: &str) -> Value {
    json!({
        "apiVersion": "v1", "kind": "Event", "metadata": {"name": name, "namespace": "default"},
        "involvedObject": {"kind": "Node", "name": about, "uid": about},
        "reason": "AddressClaimed", "message": "10.10.10.8 of traffic-1", "type": "Normal",
        "source": {"component": "berth"}, "count": 1,
        "firstTimestamp": "2024-05-01T10:00:00Z", "lastTimestamp": "2024-05-01T10:00:00Z",
    })
}

/// `object` with an owner: the Node, pool or whatever `owner` is, as the server answered it.
pub fn owned(mut object: Value, owner: &Value, blocks: bool) -> Value {
    object["metadata"]["ownerReferences"] = json!([{
        "apiVersion": owner["apiVersion"], "kind": owner["kind"],
        "name": owner["metadata"]["name"], "uid": owner["metadata"]["uid"],
        "blockOwnerDeletion": blocks,
    }]);
    object
}
