//! A kind's CRD, put together: what the derive gives, tidied, plus rules, defaults and further versions.

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::{
    CustomResourceDefinition, CustomResourceDefinitionVersion, CustomResourceValidation, JSONSchemaProps,
};
use kube::CustomResourceExt;
use serde_json::{Value, json};

use crate::{
    Kind, NodeIPPool, NodeIPSlice, NodeNetworkConfigurationEnactment, NodeNetworkConfigurationPolicy,
    NodeNetworkState,
    rules::{self, AdmissionRule, Placed, Rule},
    schema::{self, place},
};

/// All that is known of a kind.
pub struct Definition {
    pub crd: CustomResourceDefinition,
    /// The schema of every version of it, as JSON, rules included.
    pub schema: Value,
    /// The rules in the schema.
    pub rules: Vec<Placed>,
    /// The rules for a ValidatingAdmissionPolicy.
    pub admission: Vec<AdmissionRule>,
}

/// A version besides the derived one, with the same schema.
struct Further {
    name: &'static str,
    /// What to tell whoever uses it.
    deprecated: Option<&'static str>,
}

/// A CRD takes every object of its kind along, and with pools and enactments who holds what: tools that delete what a repository
/// no longer has leave it alone.
const KEPT: [(&str, &str); 2] = [
    ("argocd.argoproj.io/sync-options", "Prune=false,Delete=false"),
    ("kustomize.toolkit.fluxcd.io/prune", "disabled"),
];

/// Puts the definition of a kind together.
///
/// # Panics
/// If what the derive gives isn't a schema: then the crate itself is wrong, and its tests say so.
pub(crate) fn build(kind: Kind) -> Definition {
    let mut crd = derived(kind);
    let rules = rules::of(kind);
    let mut schema = crd
        .spec
        .versions
        .first_mut()
        .and_then(|version| version.schema.take()?.open_api_v3_schema)
        .and_then(|schema| serde_json::to_value(schema).ok())
        .expect("the derive gives every CRD one version with a schema");
    schema::tidy(&mut schema);
    complete(kind, &mut schema);
    for placed in &rules {
        attach(&mut schema, placed);
    }
    let typed: JSONSchemaProps =
        serde_json::from_value(schema.clone()).expect("a tidied schema is still a schema");
    for version in &mut crd.spec.versions {
        version.schema = Some(CustomResourceValidation { open_api_v3_schema: Some(typed.clone()) });
    }
    add_versions(kind, &mut crd);
    crd.metadata.annotations = Some(KEPT.map(|(name, value)| (name.to_owned(), value.to_owned())).into());
    Definition { crd, schema, rules, admission: rules::admission(kind) }
}

fn derived(kind: Kind) -> CustomResourceDefinition {
    match kind {
        Kind::NodeIPPool => NodeIPPool::crd(),
        Kind::NodeIPSlice => NodeIPSlice::crd(),
        Kind::NodeNetworkConfigurationPolicy => NodeNetworkConfigurationPolicy::crd(),
        Kind::NodeNetworkConfigurationEnactment => NodeNetworkConfigurationEnactment::crd(),
        Kind::NodeNetworkState => NodeNetworkState::crd(),
    }
}

/// The derived version is the stored one. kubernetes-nmstate stores enactments and states as v1beta1, and
/// policies as v1: so do we, and its objects stay readable in place.
fn further_versions(kind: Kind) -> &'static [Further] {
    match kind {
        Kind::NodeIPPool | Kind::NodeIPSlice => &[],
        Kind::NodeNetworkConfigurationPolicy => &[Further {
            name: "v1beta1",
            deprecated: Some(
                "nmstate.io/v1beta1 NodeNetworkConfigurationPolicy is deprecated, use nmstate.io/v1 instead",
            ),
        }],
        Kind::NodeNetworkConfigurationEnactment | Kind::NodeNetworkState => {
            &[Further { name: "v1", deprecated: None }]
        }
    }
}

fn add_versions(kind: Kind, crd: &mut CustomResourceDefinition) {
    let Some(stored) = crd.spec.versions.first().cloned() else {
        return;
    };
    let further = further_versions(kind).iter().map(|version| CustomResourceDefinitionVersion {
        name: version.name.to_owned(),
        storage: false,
        deprecated: version.deprecated.map(|_| true),
        deprecation_warning: version.deprecated.map(str::to_owned),
        ..stored.clone()
    });
    crd.spec.versions.extend(further);
}

/// What the API server fills in. Status and the maps in it are always there, so that a JSON patch can add one
/// entry to a fresh object.
fn defaults(kind: Kind) -> Vec<(&'static str, Value)> {
    match kind {
        Kind::NodeIPPool => vec![
            ("spec.staticBand", json!("Auto")),
            ("spec.quarantine", json!("5m")),
            ("spec.ranges[].state", json!("Active")),
            ("status", json!({})),
            ("status.sequence", json!(0)),
            ("status.allocations", json!({})),
        ],
        Kind::NodeIPSlice => {
            vec![("status", json!({})), ("status.sequence", json!(0)), ("status.allocations", json!({}))]
        }
        // As kubernetes-nmstate has it a policy need not have a spec: what is stored without one must stay readable, and
        // whoever reads it need not ask whether there is one.
        Kind::NodeNetworkConfigurationPolicy => vec![
            ("spec", json!({})),
            ("status", json!({})),
            ("status.unavailableNodeCountMap", json!({})),
            ("status.unavailableNodes", json!({})),
        ],
        Kind::NodeNetworkConfigurationEnactment => vec![
            ("status.ippool{}.requests", json!({})),
            ("status.ippool{}.grants", json!({})),
            ("status.ippool{}.refused", json!({})),
        ],
        Kind::NodeNetworkState => Vec::new(),
    }
}

fn complete(kind: Kind, schema: &mut Value) {
    for (at, default) in defaults(kind) {
        if let Some(node) = place::schema_at_mut(schema, at) {
            node["default"] = default;
        }
    }
    if kind == Kind::NodeNetworkConfigurationPolicy
        && let Some(schema) = schema.as_object_mut()
    {
        // Its spec has a default.
        schema.shift_remove("required");
    }
    if matches!(kind, Kind::NodeIPPool | Kind::NodeIPSlice) {
        // A rule may blame only a field that the schema knows.
        schema["properties"]["metadata"] =
            json!({"type": "object", "properties": {"name": {"type": "string", "maxLength": 253}}});
    }
    if kind == Kind::NodeNetworkConfigurationEnactment {
        // As kubernetes-nmstate has it: fields of a newer version survive an older CRD.
        schema["x-kubernetes-preserve-unknown-fields"] = json!(true);
    }
}

fn attach(schema: &mut Value, placed: &Placed) {
    let Some(node) = place::schema_at_mut(schema, placed.place) else {
        return;
    };
    let rules = &mut node["x-kubernetes-validations"];
    if !rules.is_array() {
        *rules = json!([]);
    }
    if let Some(rules) = rules.as_array_mut() {
        rules.push(validation(&placed.rule));
    }
}

/// A rule as a CRD has it.
fn validation(rule: &Rule) -> Value {
    let mut entry = json!({"rule": rule.cel, "message": rule.text});
    if let Some((cel, _)) = &rule.say {
        entry["messageExpression"] = json!(cel);
    }
    if !rule.field.is_empty() {
        entry["fieldPath"] = json!(rule.field);
    }
    if rule.reason != crate::Reason::Invalid {
        entry["reason"] = json!(rule.reason.as_str());
    }
    entry
}

#[cfg(test)]
mod tests;
