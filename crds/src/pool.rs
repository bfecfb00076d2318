//! `NodeIPPool`: a set of addresses that nodes share, and the ledger of who holds which.
//!
//! Types only. What may be written is in [`crate::rules`]; what the fields mean for the choice of an address
//! is `policy::pool`'s business.

use std::{collections::BTreeMap, time::Duration};

use k8s_openapi::{api::core::v1::NodeSelector, apimachinery::pkg::apis::meta::v1::Time};
use kube::CustomResource;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{meta::Condition, names, text};

mod schemas;

/// What a pool may give out, and how.
#[derive(CustomResource, Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[kube(
    group = "nmstate.io",
    version = "v1",
    kind = "NodeIPPool",
    plural = "nodeippools",
    doc = "Addresses that nodes take from a shared range, and the ledger of who holds which.",
    shortname = "nip",
    shortname = "ippool",
    category = "berth",
    status = "NodeIPPoolStatus",
    derive = "Default",
    derive = "PartialEq",
    printcolumn = r#"{"name": "CIDR", "type": "string", "jsonPath": ".spec.range.cidr"}"#,
    printcolumn = r#"{"name": "Capacity", "type": "integer", "jsonPath": ".status.capacity"}"#,
    printcolumn = r#"{"name": "Allocated", "type": "integer", "jsonPath": ".status.allocated"}"#,
    printcolumn = r#"{"name": "Available", "type": "integer", "jsonPath": ".status.available"}"#,
    printcolumn = r#"{"name": "Status", "type": "string",
        "jsonPath": ".status.conditions[?(@.type==\"Available\")].status"}"#,
    printcolumn = r#"{"name": "Reason", "type": "string",
        "jsonPath": ".status.conditions[?(@.type==\"Available\")].reason"}"#,
    printcolumn = r#"{"name": "PerNodeHostBits", "type": "integer", "priority": 1,
        "jsonPath": ".spec.range.perNodeHostBits"}"#,
    printcolumn = r#"{"name": "IPv4", "type": "string", "priority": 1, "jsonPath": ".spec.range.ipv4.cidr"}"#,
    printcolumn = r#"{"name": "IPv6", "type": "string", "priority": 1, "jsonPath": ".spec.range.ipv6.cidr"}"#,
    printcolumn = r#"{"name": "Age", "type": "date", "jsonPath": ".metadata.creationTimestamp"}"#
)]
#[serde(rename_all = "camelCase")]
pub struct NodeIPPoolSpec {
    /// The pool's only range. Exactly one of range and ranges is set; a range may later become the first of
    /// ranges.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub range: Option<Range>,
    /// Several ranges, each with a name. Ranges may be appended at any time; one can be removed when it was
    /// Draining, holds nothing that no other range covers, and status.drained names it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(
        length(min = 1, max = 32),
        extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["name"])
    )]
    pub ranges: Vec<NamedRange>,
    /// How many addresses at the start of each range are kept for static requests while there are others:
    /// Auto (a sixteenth, at least 16 and at most 256; none in a range of up to 16), None, or a number.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "schemas::static_band")]
    pub static_band: Option<StaticBand>,
    /// Addresses that only the named node may have.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(
        length(max = 1024),
        extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["ip"])
    )]
    pub reservations: Vec<Reservation>,
    /// How long an address whose holder vanished stays unused, for example 5m or 1h30m.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 32))]
    pub quarantine: Option<String>,
}

/// The quarantine of a pool that names none: long enough for a host that was only rebooting to come back
/// and say that it still holds its address.
pub const DEFAULT_QUARANTINE: Duration = Duration::from_secs(300);

impl NodeIPPoolSpec {
    /// The quarantine as a time; the default where none, or none that can be read, is set.
    pub fn quarantine(&self) -> Duration {
        self.quarantine.as_deref().and_then(text::duration).unwrap_or(DEFAULT_QUARANTINE)
    }
}

/// A range of one family (`cidr` and what belongs to it) or of both (`ipv4`, `ipv6`).
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Range {
    /// The network. Its prefix length is returned with every address. Host bits are accepted and ignored.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 43))]
    pub cidr: Option<String>,
    /// The first address; offsets count from it. Default: the first usable one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 39))]
    pub start: Option<String>,
    /// The last address. Default: the last usable one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 39))]
    pub end: Option<String>,
    /// Addresses and CIDRs that are never given out; they keep their offsets. May only grow.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 256), inner(length(max = 43)))]
    pub exclude: Vec<String>,
    /// The gateway: never given out, returned with every address.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 39))]
    pub gateway: Option<String>,
    /// Dual stack, instead of cidr, start, end, exclude and gateway: the IPv4 half. A claim gets an address
    /// of each family, or none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ipv4: Option<FamilyRange>,
    /// The IPv6 half.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ipv6: Option<FamilyRange>,
    /// Count the IPv4 addresses that end in .0 and .255 as excluded.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub skip_octet_ends: Option<bool>,
    /// Cut the range into slices of 2^n addresses, each owned by one node. Absent: one ledger for all nodes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0, max = 64))]
    pub per_node_host_bits: Option<u8>,
}

/// One family of a dual-stack range.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct FamilyRange {
    /// The network. Its prefix length is returned with every address. Host bits are accepted and ignored.
    #[schemars(length(max = 43))]
    pub cidr: String,
    /// The first address; offsets count from it. Default: the first usable one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 39))]
    pub start: Option<String>,
    /// The last address. Default: the last usable one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 39))]
    pub end: Option<String>,
    /// Addresses and CIDRs that are never given out; they keep their offsets. May only grow.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 256), inner(length(max = 43)))]
    pub exclude: Vec<String>,
    /// The gateway: never given out, returned with every address.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 39))]
    pub gateway: Option<String>,
}

/// One of several ranges.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct NamedRange {
    /// Unique in the pool.
    #[schemars(length(min = 1, max = 63), pattern(r"^[a-z0-9]([-a-z0-9]*[a-z0-9])?$"))]
    pub name: String,
    #[serde(flatten)]
    pub range: Range,
    /// Which nodes the range serves. None: every node for which no other range is left.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "schemas::node_selector")]
    pub node_selector: Option<NodeSelector>,
    /// Free strings, returned with every address.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    #[schemars(schema_with = "schemas::attributes")]
    pub attributes: BTreeMap<String, String>,
    /// Draining: keeps what it gave, gives nothing new.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub state: Option<RangeState>,
}

/// Whether a range gives new addresses.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum RangeState {
    #[default]
    Active,
    Draining,
}

/// The size of the static band.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum StaticBand {
    Mode(BandMode),
    Size(u32),
}

/// A static band without a number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum BandMode {
    Auto,
    None,
}

/// An address that only one node may have.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Reservation {
    /// Name of the node.
    #[schemars(length(min = 1, max = 253), pattern(r"^[a-z0-9]([-a-z0-9.]*[a-z0-9])?$"))]
    pub node: String,
    /// The address, in canonical form.
    #[schemars(length(max = 39))]
    pub ip: String,
}

/// The ledger, and what follows from it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct NodeIPPoolStatus {
    /// Grows with every write of the ledger.
    #[serde(default)]
    #[schemars(range(min = 0))]
    pub sequence: i64,
    /// The pool's UID, once the ledger is known to be complete. Without it nothing is given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 64))]
    pub rebuilt_for: Option<String>,
    /// While the ledger may be from the past: nothing is given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hold: Option<Hold>,
    /// Who holds what, by canonical address: the truth.
    #[serde(default)]
    #[schemars(extend("maxProperties" = 5000, "x-kubernetes-map-type" = "atomic"))]
    pub allocations: BTreeMap<String, Allocation>,
    /// The same as offsets from the start of the range, in pools with a single range.
    #[serde(default, rename = "allocated-offsets", skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 5000), extend("x-kubernetes-list-type" = "atomic"))]
    pub allocated_offsets: Option<Vec<i64>>,
    /// How many claims the ranges can serve; like the two below at most 9007199254740991, the last number that every
    /// JSON reader keeps exact.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub capacity: Option<i64>,
    /// How many claims have an address, quarantined ones included.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub allocated: Option<i64>,
    /// How many more can be served.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub available: Option<i64>,
    /// Draining ranges that have held nothing for a minute that no other range covers: these may be removed.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 32), inner(length(max = 63)), extend("x-kubernetes-list-type" = "set"))]
    pub drained: Vec<String>,
    /// One condition, Available; its reason says the rest.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub conditions: Vec<Condition>,
}

/// A pause while agents assert what their journals say.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Hold {
    /// When it ends, at the earliest.
    pub until: Time,
}

/// One entry of the ledger.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Allocation {
    /// Name of the node that holds it.
    #[schemars(length(max = 253))]
    pub node: String,
    /// UID of that Node: a namesake is somebody else.
    #[serde(default, rename = "nodeUID", skip_serializing_if = "String::is_empty")]
    #[schemars(length(max = 64))]
    pub node_uid: String,
    /// The policy it was claimed for.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    #[schemars(length(max = 253))]
    pub policy: String,
    /// The capture it was claimed by.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    #[schemars(length(max = 253))]
    pub capture: String,
    /// The id of the request: this is the holder. Absent: a host shows the address, and nobody claims it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 64))]
    pub request: Option<String>,
    /// The ledger's sequence when the entry was written.
    #[serde(default)]
    #[schemars(range(min = 0))]
    pub sequence: i64,
    /// Since when it is held.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub since: Option<Time>,
    /// How it came about.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kind: Option<AllocationKind>,
    /// Quarantined: nobody may use it. Absent: held.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub state: Option<AllocationState>,
    /// Until when it stays quarantined at least.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub until: Option<Time>,
    /// Why it is quarantined.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<QuarantineReason>,
    /// The stamp of the node's NodeNetworkState when the quarantine began: what its agent says under another stamp, it
    /// has said since.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 64))]
    pub witness: Option<String>,
    /// Who else answered for it on the wire: the hardware address, where it is known.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    #[schemars(length(max = 64))]
    pub mac: String,
    /// The node's own interface on which that was heard.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    #[schemars(length(max = 64))]
    pub interface: String,
}

/// How an allocation came about.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum AllocationKind {
    Dynamic,
    Static,
    Reserved,
}

/// What an entry is, if not held.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum AllocationState {
    Quarantined,
}

/// Why nobody may use an address for now.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum QuarantineReason {
    /// The Node is gone, or is another one under the same name.
    NodeGone,
    /// No enactment lists it.
    Orphan,
    /// A host shows it, and no claim stands behind it.
    Observed,
    /// Another machine answers for it on the wire.
    #[serde(rename = "IPCollision")]
    Collision,
}

impl QuarantineReason {
    /// As it is written.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::NodeGone => "NodeGone",
            Self::Orphan => "Orphan",
            Self::Observed => "Observed",
            Self::Collision => names::pool::COLLISION,
        }
    }
}
