//! `NodeNetworkState`: what a node's network looks like, as its agent last saw it.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use kube::CustomResource;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::meta::{self, Condition};

/// Nothing: a state is all status.
#[derive(CustomResource, Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[kube(
    group = "nmstate.io",
    version = "v1beta1",
    kind = "NodeNetworkState",
    plural = "nodenetworkstates",
    doc = "The network of one node, as its agent last saw it. Named like the node.",
    no_spec,
    shortname = "nns",
    category = "berth",
    status = "NodeNetworkStateStatus",
    derive = "Default",
    derive = "PartialEq"
)]
pub struct NodeNetworkStateSpec {}

/// What the agent saw.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct NodeNetworkStateStatus {
    /// The state, in nmstate's format.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "meta::any_object")]
    pub current_state: Option<Value>,
    /// When it was last written.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_successful_update_time: Option<Time>,
    /// Version of the host's NetworkManager, where it runs one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub host_network_manager_version: Option<String>,
    /// Version of the engine that wrote this.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub handler_nmstate_version: Option<String>,
    /// Kept for readers of older versions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub handler_network_manager_version: Option<String>,
    /// Available, Failing.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub conditions: Vec<Condition>,
    /// Random, another with every write by the agent: whoever sees another than before knows that the agent has spoken
    /// since, whatever the clocks say.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    #[schemars(length(max = 64))]
    pub stamp: String,
    /// Every address of a pool that is on a NIC, journalled or about to be used.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(
        length(max = 4096),
        extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["ip"])
    )]
    pub pooled_addresses: Vec<PooledAddress>,
}

/// An address of a pool that this node holds, is about to, or has on a NIC without knowing why.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct PooledAddress {
    /// In canonical form.
    #[schemars(length(max = 39))]
    pub ip: String,
    /// Name of the pool, where the journal knows it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 63))]
    pub pool: Option<String>,
    /// The id of the request, where the journal knows it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 64))]
    pub id: Option<String>,
    /// Absent: on a NIC, and known to no journal.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub state: Option<PooledAddressState>,
}

/// How far the address has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum PooledAddressState {
    /// Granted, not confirmed: not on a NIC yet.
    Announced,
    /// Confirmed, and in the host's journal.
    Journalled,
}
