//! `NodeNetworkConfigurationPolicy`: what a set of nodes should look like. The API is kubernetes-nmstate's;
//! manifests written for it apply unchanged.

use std::collections::BTreeMap;

use k8s_openapi::apimachinery::pkg::{apis::meta::v1::Time, util::intstr::IntOrString};
use kube::CustomResource;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::meta::{self, Condition};

/// Which nodes, and how they should look.
#[derive(CustomResource, Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[kube(
    group = "nmstate.io",
    version = "v1",
    kind = "NodeNetworkConfigurationPolicy",
    plural = "nodenetworkconfigurationpolicies",
    doc = "The network configuration that the nodes it selects should have.",
    shortname = "nncp",
    category = "berth",
    status = "NodeNetworkConfigurationPolicyStatus",
    derive = "Default",
    derive = "PartialEq",
    printcolumn = r#"{"name": "Status", "type": "string",
        "jsonPath": ".status.conditions[?(@.status==\"True\")].type"}"#,
    printcolumn = r#"{"name": "Reason", "type": "string",
        "jsonPath": ".status.conditions[?(@.status==\"True\")].reason"}"#
)]
#[serde(rename_all = "camelCase")]
pub struct NodeNetworkConfigurationPolicySpec {
    /// Labels that a node must have, all of them. None: every node.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    #[schemars(schema_with = "labels")]
    pub node_selector: BTreeMap<String, String>,
    /// Named expressions over the node's state, or ippool.NAME.allocate for an address of a pool. Can't be changed later.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    #[schemars(schema_with = "captures")]
    pub capture: BTreeMap<String, String>,
    /// The state, in nmstate's format; references to captures are filled in on each node.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "meta::any_object")]
    pub desired_state: Option<Value>,
    /// How many nodes may be reconfigured at once: a number or a percentage. Default: 50%.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "meta::int_or_string")]
    pub max_unavailable: Option<IntOrString>,
}

/// How far the policy has come.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct NodeNetworkConfigurationPolicyStatus {
    /// Available, Degraded, Progressing, Ignored.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub conditions: Vec<Condition>,
    /// How many nodes are being reconfigured, by generation of the policy.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub unavailable_node_count_map: BTreeMap<String, i32>,
    /// Kept for readers of older versions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unavailable_node_count: Option<i32>,
    /// Kept for readers of older versions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_unavailable_node_count_update: Option<Time>,
    /// Which nodes are being reconfigured, with the generation they work on.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub unavailable_nodes: BTreeMap<String, i64>,
    /// The generation at which as many nodes had failed as may be unavailable: nodes that still wait for it give up.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub aborted_generation: Option<i64>,
}

/// Labels. A label's value has at most 63 characters; to say so keeps the rules' estimated cost low.
fn labels(_: &mut SchemaGenerator) -> Schema {
    json_schema!({
        "type": "object",
        "maxProperties": 256,
        "additionalProperties": {"type": "string", "maxLength": 63},
    })
}

/// Expressions, with bounds wide enough for any that a person writes: they keep the estimated cost of the
/// rules within the API server's budget.
fn captures(_: &mut SchemaGenerator) -> Schema {
    json_schema!({
        "type": "object",
        "maxProperties": 256,
        "additionalProperties": {"type": "string", "maxLength": 4096},
    })
}
