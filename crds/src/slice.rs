//! `NodeIPSlice`: a block of a sliced pool, owned by one node. Its name is the lock: whoever creates it has
//! the block, so the name follows from what is locked ([`name`]).

use std::{borrow::Cow, collections::BTreeMap, net::IpAddr};

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use kube::CustomResource;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::pool::{Allocation, AllocationKind, Hold};

/// Which block, and whose. Immutable.
#[derive(CustomResource, Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[kube(
    group = "nmstate.io",
    version = "v1",
    kind = "NodeIPSlice",
    plural = "nodeipslices",
    doc = "A block of a pool that one node owns, and the ledger of what it gave out of it.",
    shortname = "nips",
    shortname = "ipslice",
    category = "berth",
    status = "NodeIPSliceStatus",
    derive = "Default",
    derive = "PartialEq",
    printcolumn = r#"{"name": "Pool", "type": "string", "jsonPath": ".spec.pool"}"#,
    printcolumn = r#"{"name": "Range", "type": "string", "priority": 1, "jsonPath": ".spec.range"}"#,
    printcolumn = r#"{"name": "CIDR", "type": "string", "jsonPath": ".spec.cidr"}"#,
    printcolumn = r#"{"name": "Node", "type": "string", "jsonPath": ".spec.node"}"#,
    printcolumn = r#"{"name": "Age", "type": "date", "jsonPath": ".metadata.creationTimestamp"}"#
)]
pub struct NodeIPSliceSpec {
    /// Name of the pool.
    #[schemars(length(min = 1, max = 63), pattern(r"^[a-z0-9]([-a-z0-9]*[a-z0-9])?$"))]
    pub pool: String,
    /// Name of the range it was cut from, in a pool that has several.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 63))]
    pub range: Option<String>,
    /// The block, in canonical form.
    #[schemars(length(max = 43))]
    pub cidr: String,
    /// Name of the node that owns it.
    #[schemars(length(min = 1, max = 253), pattern(r"^[a-z0-9]([-a-z0-9.]*[a-z0-9])?$"))]
    pub node: String,
    /// UID of that Node.
    #[serde(rename = "nodeUID")]
    #[schemars(length(min = 1, max = 64))]
    pub node_uid: String,
    /// What was given out of it when it was made, so that a claim is one write. It counts until `status.rebuiltFor` says that
    /// the ledger is written.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub first: Option<FirstAllocation>,
}

/// An address that the slice's node holds from the slice's creation on.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct FirstAllocation {
    /// The address, of the block, in canonical form.
    #[schemars(length(max = 39))]
    pub ip: String,
    /// The policy it was claimed for.
    #[schemars(length(max = 253))]
    pub policy: String,
    /// The capture it was claimed by.
    #[schemars(length(max = 253))]
    pub capture: String,
    /// The id of the request: this is the holder.
    #[schemars(length(min = 1, max = 64))]
    pub request: String,
    /// The ledger's sequence.
    #[schemars(range(min = 0))]
    pub sequence: i64,
    /// Since when it is held.
    pub since: Time,
}

/// The slice's own ledger, as in a pool.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct NodeIPSliceStatus {
    /// Grows with every write of the ledger.
    #[serde(default)]
    #[schemars(range(min = 0))]
    pub sequence: i64,
    /// The slice's UID, once the ledger is known to be complete. Without it nothing is given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 64))]
    pub rebuilt_for: Option<String>,
    /// While the ledger may be from the past: nothing is given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hold: Option<Hold>,
    /// Who holds what, by canonical address.
    #[serde(default)]
    #[schemars(extend("maxProperties" = 5000, "x-kubernetes-map-type" = "atomic"))]
    pub allocations: BTreeMap<String, Allocation>,
}

impl NodeIPSliceSpec {
    /// Is it that Node's, and not one's of the same name?
    pub fn is_of(&self, node: &str, uid: &str) -> bool {
        self.node == node && self.node_uid == uid
    }
}

impl NodeIPSlice {
    /// Its ledger: what its status says or, before one was written, what it was made with. (An API server answers `status: {}`
    /// where there is none.)
    pub fn ledger(&self) -> Cow<'_, NodeIPSliceStatus> {
        let written = self.status.as_ref();
        let first =
            self.spec.first.as_ref().filter(|_| written.is_none_or(|status| status.rebuilt_for.is_none()));
        let Some(first) = first else {
            return written.map_or_else(|| Cow::Owned(NodeIPSliceStatus::default()), Cow::Borrowed);
        };
        let FirstAllocation { ip, policy, capture, request, sequence, since } = first.clone();
        let held = Allocation {
            node: self.spec.node.clone(),
            node_uid: self.spec.node_uid.clone(),
            policy,
            capture,
            request: Some(request),
            sequence,
            since: Some(since),
            kind: Some(AllocationKind::Dynamic),
            ..Allocation::default()
        };
        Cow::Owned(NodeIPSliceStatus {
            sequence,
            rebuilt_for: self.metadata.uid.clone(),
            hold: written.and_then(|status| status.hold.clone()),
            allocations: BTreeMap::from([(ip, held)]),
        })
    }
}

/// The name of the slice of `pool` that begins at `first`: `traffic-1.10.10.10.16`, `v6.2001-db8--0`.
///
/// A name can't hold `:`, nor begin or end with `-`, so `::` at either end gets a zero beside it.
pub fn name(pool: &str, first: IpAddr) -> String {
    let text = first.to_string();
    let head = if text.starts_with("::") { "0" } else { "" };
    let tail = if text.ends_with("::") { "0" } else { "" };
    format!("{pool}.{head}{}{tail}", text.replace(':', "-"))
}
