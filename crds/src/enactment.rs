//! `NodeNetworkConfigurationEnactment`: what one policy came to on one node, and the node's side of the claim
//! protocol (`status.ippool`).

use std::collections::BTreeMap;

use kube::CustomResource;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::meta::{self, Condition, MetaInfo};

mod claims;

pub use claims::{Address, Declined, Grant, Holds, PoolClaims, Refusal, RefusalReason, Request};

/// Nothing: an enactment is all status.
#[derive(CustomResource, Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[kube(
    group = "nmstate.io",
    version = "v1beta1",
    kind = "NodeNetworkConfigurationEnactment",
    plural = "nodenetworkconfigurationenactments",
    doc = "What a policy came to on one node. Written by that node's agent; named <node>.<policy>.",
    no_spec,
    shortname = "nnce",
    category = "berth",
    status = "NodeNetworkConfigurationEnactmentStatus",
    derive = "Default",
    derive = "PartialEq",
    printcolumn = r#"{"name": "Status", "type": "string",
        "jsonPath": ".status.conditions[?(@.status==\"True\")].type"}"#,
    printcolumn = r#"{"name": "Status Age", "type": "date",
        "jsonPath": ".status.conditions[?(@.status==\"True\")].lastTransitionTime"}"#,
    printcolumn = r#"{"name": "Reason", "type": "string",
        "jsonPath": ".status.conditions[?(@.status==\"True\")].reason"}"#
)]
pub struct NodeNetworkConfigurationEnactmentSpec {}

/// What the policy came to.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct NodeNetworkConfigurationEnactmentStatus {
    /// The policy's state with every reference filled in.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "meta::any_object")]
    pub desired_state: Option<Value>,
    /// When it was rendered.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub desired_state_meta_info: Option<MetaInfo>,
    /// What each capture found, kept over reboots and retries.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub captured_states: BTreeMap<String, CapturedState>,
    /// The generation of the policy that this is about.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub policy_generation: Option<i64>,
    /// UID of that policy: one re-created under its name is another, and what was captured for the first says nothing of it.
    #[serde(default, rename = "policyUID", skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 64))]
    pub policy_uid: Option<String>,
    /// Available, Failing, Progressing, Pending, Aborted.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub conditions: Vec<Condition>,
    /// Which features of nmstate the state uses.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub features: Vec<String>,
    /// Failed attempts, by generation of the policy.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub retry_count: BTreeMap<String, i32>,
    /// Addresses asked for and given, by pool.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub ippool: BTreeMap<String, PoolClaims>,
}

/// What a capture found: a state, or for a pool the address itself (`ip`, `prefix-length`, …) beside
/// `metaInfo`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("x-kubernetes-preserve-unknown-fields" = true))]
pub struct CapturedState {
    /// The part of the node's state that it selected.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "meta::any_object")]
    pub state: Option<Value>,
    /// When it was evaluated.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub meta_info: Option<MetaInfo>,
    /// The fields of a pool capture.
    #[serde(flatten)]
    #[schemars(skip)]
    pub fields: Map<String, Value>,
}
