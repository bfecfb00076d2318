//! What several kinds share: conditions, meta information, and the schemas of free-form fields.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Serialize};

/// A condition as kubernetes-nmstate writes it. Not `metav1.Condition`: it has a heartbeat, no
/// `observedGeneration`, and its reason may be empty.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Condition {
    /// What the condition is about, for example Available.
    #[serde(rename = "type")]
    pub type_: String,
    /// True, False or Unknown.
    pub status: String,
    /// Why, as one word for programs.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub reason: String,
    /// Why, for people.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub message: String,
    /// When the condition was last set, changed or not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_heartbeat_time: Option<Time>,
    /// When its status last changed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_transition_time: Option<Time>,
}

/// Which engine rendered a state, and when.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct MetaInfo {
    /// Version of the capture language's engine.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub version: String,
    /// When it was evaluated.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub time: Option<Time>,
}

/// Schema of a network state: any object. What Berth can't apply is refused when planning, by path, so
/// the API must not drop it.
pub(crate) fn any_object(_: &mut SchemaGenerator) -> Schema {
    json_schema!({"type": "object", "x-kubernetes-preserve-unknown-fields": true})
}

/// Schema of an integer or a string, such as `5` or `50%`. The bounds are those of Kubernetes' type, which is read by all.
pub(crate) fn int_or_string(_: &mut SchemaGenerator) -> Schema {
    json_schema!({"x-kubernetes-int-or-string": true, "minimum": i32::MIN, "maximum": i32::MAX})
}
