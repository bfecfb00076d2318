//! The paths of a resource, as far as clients look at them: which kind is where, and which query parameters a write knows.

use serde_json::{Map, Value, json};

use super::schemas;
use crate::embedded::Resource;

/// Paths of one resource in one version.
pub(super) fn of(resource: &Resource, version: &str) -> Map<String, Value> {
    let root = match resource.group {
        "" => format!("/api/{version}"),
        group => format!("/apis/{group}/{version}"),
    };
    let (root, of_root) = match resource.namespaced {
        true => (format!("{root}/namespaces/{{namespace}}"), Some(root)),
        false => (root, None),
    };
    let plural = &resource.plural;
    let gvk = json!({"group": resource.group, "version": version, "kind": resource.kind});
    let path = Writer { resource, version, gvk };
    let mut paths = Map::new();
    if let Some(all) = of_root {
        paths.insert(format!("{all}/{plural}"), json!({"get": path.operation("list", true)}));
    }
    let mut collection = json!({"get": path.operation("list", true), "post": path.operation("post", false)});
    if resource.deletes_collections() {
        collection["delete"] = path.operation("deletecollection", false);
    }
    paths.insert(format!("{root}/{plural}"), collection);
    let item = json!({
        "get": path.operation("get", false),
        "put": path.operation("put", false),
        "patch": path.operation("patch", false),
        "delete": path.operation("delete", false),
    });
    paths.insert(format!("{root}/{plural}/{{name}}"), item);
    if resource.has_status {
        let status = json!({
            "get": path.operation("get", false),
            "put": path.operation("put", false),
            "patch": path.operation("patch", false),
        });
        paths.insert(format!("{root}/{plural}/{{name}}/status"), status);
    }
    paths
}

struct Writer<'a> {
    resource: &'a Resource,
    version: &'a str,
    gvk: Value,
}

impl Writer<'_> {
    fn operation(&self, action: &str, list: bool) -> Value {
        let kind = if list { format!("{}List", self.resource.kind) } else { self.resource.kind.clone() };
        let schema = schemas::reference(&schemas::name(self.resource, self.version, &kind));
        let mut operation = json!({
            "x-kubernetes-action": action,
            "x-kubernetes-group-version-kind": self.gvk,
            "responses": {"200": {"description": "OK", "content": {"application/json": {"schema": schema}}}},
        });
        if matches!(action, "post" | "put" | "patch") {
            operation["parameters"] = ["dryRun", "fieldManager", "fieldValidation"].map(query).into();
            operation["requestBody"] = match action {
                "patch" => {
                    let any = json!({"schema": {"type": "object"}});
                    json!({"content": {"application/json-patch+json": any, "application/merge-patch+json": any}})
                }
                _ => json!({"content": {"application/json": {"schema": schema}}}),
            };
        }
        operation
    }
}

fn query(name: &str) -> Value {
    json!({"name": name, "in": "query", "schema": {"type": "string", "uniqueItems": true}})
}
