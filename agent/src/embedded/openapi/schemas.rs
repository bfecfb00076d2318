//! Schemas: of our kinds from their CRDs, of built-in kinds and of metadata from k8s-openapi.

use k8s_openapi::api::coordination::v1::Lease;
use k8s_openapi::api::core::v1::{Event as CoreEvent, Namespace, Node};
use k8s_openapi::api::events::v1::Event;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{DeleteOptions, ListMeta, ObjectMeta, Status};
use k8s_openapi::schemars::generate::{SchemaGenerator, SchemaSettings};
use serde_json::{Map, Value, json};

use crate::embedded::Resource;
use crate::embedded::resource::Form;

const LIST_META: &str = "io.k8s.apimachinery.pkg.apis.meta.v1.ListMeta";
const COMPONENTS: &str = "#/components/schemas/";

/// Whose words about `apiVersion`, `kind` and `metadata` are everybody's.
const MODEL: &str = "io.k8s.api.core.v1.Namespace";

/// The schema's name: the group turned round, as kube-apiserver does.
pub(super) fn name(resource: &Resource, version: &str, kind: &str) -> String {
    let group = match resource.form {
        Form::Ours(_) => resource.group.split('.').rev().collect::<Vec<_>>().join("."),
        Form::Node | Form::Namespace | Form::CoreEvent => "io.k8s.api.core".to_owned(),
        Form::Lease => "io.k8s.api.coordination".to_owned(),
        Form::NewEvent => "io.k8s.api.events".to_owned(),
    };
    format!("{group}.{version}.{kind}")
}

pub(super) fn reference(name: &str) -> Value {
    json!({"$ref": format!("{COMPONENTS}{name}")})
}

/// The schemas of a resource and of a list of it; what they refer to comes with [`complete`].
pub(super) fn of(resource: &Resource, version: &str) -> Map<String, Value> {
    let gvk = |kind: &str| json!([{"group": resource.group, "version": version, "kind": kind}]);
    let item = name(resource, version, &resource.kind);
    let mut known = built_in();
    let everybodys = known[MODEL]["properties"].clone();
    let mut schema = match resource.ours {
        Some(kind) => {
            let mut schema = kind.definition().schema.clone();
            for field in ["apiVersion", "kind", "metadata"] {
                schema["properties"][field] = everybodys[field].clone();
            }
            schema
        }
        None => known.remove(&item).unwrap_or_else(|| json!({"type": "object"})),
    };
    schema["x-kubernetes-group-version-kind"] = gvk(&resource.kind);
    let list_kind = format!("{}List", resource.kind);
    let list = json!({
        "description": format!("{list_kind} is a list of {}", resource.kind),
        "type": "object",
        "required": ["items"],
        "properties": {
            "apiVersion": everybodys["apiVersion"],
            "kind": everybodys["kind"],
            "metadata": {"allOf": [reference(LIST_META)], "description": "Standard list metadata.", "default": {}},
            "items": {"type": "array", "description": format!("List of {}.", resource.plural),
                "items": {"allOf": [reference(&item)], "default": {}}},
        },
        "x-kubernetes-group-version-kind": gvk(&list_kind),
    });
    [(item, schema), (name(resource, version, &list_kind), list)].into_iter().collect()
}

/// Adds every schema that those that are there refer to.
pub(super) fn complete(definitions: &mut Map<String, Value>) {
    let known = built_in();
    loop {
        let mut wanted = Vec::new();
        definitions.values().for_each(|schema| references(schema, &mut wanted));
        wanted.retain(|name| !definitions.contains_key(name));
        wanted.retain(|name| known.contains_key(name));
        if wanted.is_empty() {
            return;
        }
        for name in wanted {
            if let Some(schema) = known.get(&name) {
                definitions.insert(name, schema.clone());
            }
        }
    }
}

fn references(schema: &Value, found: &mut Vec<String>) {
    match schema {
        Value::Object(fields) => {
            if let Some(name) = fields.get("$ref").and_then(Value::as_str) {
                found.extend(name.strip_prefix(COMPONENTS).map(str::to_owned));
            }
            fields.values().for_each(|value| references(value, found));
        }
        Value::Array(items) => items.iter().for_each(|value| references(value, found)),
        _ => {}
    }
}

/// What k8s-openapi has of the kinds that are served, and all that they refer to, by name.
fn built_in() -> Map<String, Value> {
    let mut generator = SchemaGenerator::from(SchemaSettings::openapi3());
    generator.subschema_for::<Node>();
    generator.subschema_for::<Namespace>();
    generator.subschema_for::<CoreEvent>();
    generator.subschema_for::<Event>();
    generator.subschema_for::<Lease>();
    generator.subschema_for::<ObjectMeta>();
    generator.subschema_for::<ListMeta>();
    generator.subschema_for::<DeleteOptions>();
    generator.subschema_for::<Status>();
    let mut definitions: Map<String, Value> = generator.take_definitions(true).into_iter().collect();
    for schema in definitions.values_mut() {
        // A client may leave it out: the server makes it.
        if let Some(required) = schema.get_mut("required").and_then(Value::as_array_mut) {
            required.retain(|field| field != "metadata");
        }
    }
    definitions
}

/// Version 2 has its definitions elsewhere, and no `nullable`, `anyOf`, `oneOf` or `not`; kube-apiserver drops them too.
pub(super) fn as_version_2(schema: &mut Value) {
    match schema {
        Value::Object(fields) => {
            for word in ["nullable", "anyOf", "oneOf", "not", "x-kubernetes-validations"] {
                fields.shift_remove(word);
            }
            // A reference with words beside it needs no wrapping here.
            let only = fields.get("allOf").and_then(Value::as_array).filter(|parts| parts.len() == 1);
            if let Some(name) = only.and_then(|parts| parts[0].get("$ref").cloned()) {
                fields.shift_remove("allOf");
                fields.insert("$ref".to_owned(), name);
            }
            if let Some(Value::String(name)) = fields.get_mut("$ref") {
                *name = name.replace(COMPONENTS, "#/definitions/");
            }
            for (word, value) in fields.iter_mut() {
                match (word.as_str(), value) {
                    // Its keys are fields' names, whatever they are.
                    ("properties", Value::Object(properties)) => {
                        properties.values_mut().for_each(as_version_2);
                    }
                    (_, value) => as_version_2(value),
                }
            }
        }
        Value::Array(items) => items.iter_mut().for_each(as_version_2),
        _ => {}
    }
}
