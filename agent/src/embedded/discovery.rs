//! Discovery: `/api`, `/apis`, and below them the lists of groups, versions and resources.
//!
//! Read from [`resource`]; the router asks it first. Both forms that clients know: a document per group
//! and version, and the aggregated one that kubectl asks for, which is all in two requests. Must never list what the
//! router doesn't serve.
//!
//! Cost: documents of a few KiB, made anew for each request; kubectl keeps them for minutes.

#[cfg(test)]
mod tests;

use hyper::http::{Response, StatusCode};
use serde_json::{Value, json};

use super::resource::{self, Resource};
use super::{Answer, Status, answer};

/// Verbs of every resource, in the order in which kube-apiserver has them: for built-in kinds, and for those of a CRD.
const VERBS: [&str; 8] = ["create", "delete", "deletecollection", "get", "list", "patch", "update", "watch"];
const CUSTOM_VERBS: [&str; 8] =
    ["delete", "deletecollection", "get", "list", "patch", "create", "update", "watch"];
/// Verbs of a status.
const STATUS_VERBS: [&str; 3] = ["get", "patch", "update"];

/// The aggregated form, as its content type names it.
const AGGREGATED: &str = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList";

/// The document at a path, if it is one of discovery's. `accept` is the request's header, or empty.
pub fn answer(path: &str, accept: &str) -> Option<Response<Answer>> {
    let parts: Vec<&str> = path.trim_matches('/').split('/').collect();
    let found = match parts.as_slice() {
        ["api", "v1", "pods"] => return Some(no_pods()),
        ["api"] if aggregated(accept) => return Some(aggregate(&[""])),
        ["apis"] if aggregated(accept) => return Some(aggregate(&groups())),
        ["api"] => Some(json!({"kind": "APIVersions", "versions": ["v1"],
            "serverAddressByClientCIDRs": [{"clientCIDR": "0.0.0.0/0", "serverAddress": ""}]})),
        ["apis"] => {
            let groups: Vec<Value> = groups().into_iter().map(group).collect();
            Some(json!({"kind": "APIGroupList", "apiVersion": "v1", "groups": groups}))
        }
        ["api", version] => resources("", version),
        ["apis", name] => groups().contains(name).then(|| {
            let mut group = group(name);
            group["kind"] = "APIGroup".into();
            group["apiVersion"] = "v1".into();
            group
        }),
        ["apis", group, version] if !group.is_empty() => resources(group, version),
        _ => None,
    };
    found.map(|value| answer::json(StatusCode::OK, &value))
}

/// `kubectl describe node` asks for a Node's pods. It goes on without them where it may not see them, and gives up where
/// there is no such thing.
fn no_pods() -> Response<Answer> {
    let message = "pods is forbidden: there are no pods where there is no cluster";
    let mut status = Status::new(StatusCode::FORBIDDEN, "Forbidden", message);
    status.details.kind = "pods".to_owned();
    answer::refusal(&status)
}

/// Groups but the core one, in the order in which kubectl shows them.
fn groups() -> Vec<&'static str> {
    let mut groups: Vec<&str> = resource::all().iter().map(|resource| resource.group).collect();
    groups.retain(|group| !group.is_empty());
    groups.sort_unstable();
    groups.dedup();
    groups
}

/// Versions of a group, preferred ones first.
fn versions(group: &str) -> Vec<&'static str> {
    let mut versions: Vec<&str> = Vec::new();
    for resource in resource::all().iter().filter(|resource| resource.group == group) {
        for version in &resource.versions {
            if !versions.contains(&version.name.as_str()) {
                versions.push(&version.name);
            }
        }
    }
    versions.sort_by_key(|version| (version.contains("alpha"), version.contains("beta"), *version));
    versions
}

fn group(name: &str) -> Value {
    let version = |version| json!({"groupVersion": format!("{name}/{version}"), "version": version});
    let versions: Vec<Value> = versions(name).into_iter().map(version).collect();
    json!({"name": name, "versions": versions, "preferredVersion": versions.first()})
}

/// The resources of a group that are served in this version.
fn served(group: &str, version: &str) -> Vec<&'static Resource> {
    let all = resource::all().iter();
    let mut found: Vec<_> =
        all.filter(|resource| resource.group == group && resource.version(version).is_some()).collect();
    found.sort_by_key(|resource| &resource.plural);
    found
}

fn resources(group: &str, version: &str) -> Option<Value> {
    let served = served(group, version);
    if served.is_empty() {
        return None;
    }
    let mut listed = Vec::new();
    for resource in served {
        let mut entry = json!({"name": resource.plural, "singularName": resource.singular,
            "namespaced": resource.namespaced, "kind": resource.kind, "verbs": verbs(resource)});
        if !resource.short_names.is_empty() {
            entry["shortNames"] = resource.short_names.clone().into();
        }
        if !resource.categories.is_empty() {
            entry["categories"] = resource.categories.clone().into();
        }
        entry["storageVersionHash"] = "".into();
        listed.push(entry);
        if resource.has_status {
            listed.push(json!({"name": format!("{}/status", resource.plural), "singularName": "",
                "namespaced": resource.namespaced, "kind": resource.kind, "verbs": STATUS_VERBS}));
        }
    }
    let of = if group.is_empty() { version.to_owned() } else { format!("{group}/{version}") };
    Some(json!({"kind": "APIResourceList", "apiVersion": "v1", "groupVersion": of, "resources": listed}))
}

fn verbs(resource: &Resource) -> Vec<&'static str> {
    let verbs = if resource.ours.is_some() { CUSTOM_VERBS } else { VERBS };
    let served = |verb: &&str| *verb != "deletecollection" || resource.deletes_collections();
    verbs.into_iter().filter(served).collect()
}

/// Whether the client knows the aggregated form: among what it accepts, before plain JSON.
fn aggregated(accept: &str) -> bool {
    let wanted = |clause: &str| {
        let has = |what: &str| clause.split(';').any(|part| part.trim() == what);
        has("application/json")
            && has("g=apidiscovery.k8s.io")
            && has("v=v2")
            && has("as=APIGroupDiscoveryList")
    };
    accept.split(',').any(wanted)
}

fn aggregate(groups: &[&str]) -> Response<Answer> {
    let entries: Vec<Value> = groups.iter().map(|group| aggregate_group(group)).collect();
    let list = json!({"kind": "APIGroupDiscoveryList", "apiVersion": "apidiscovery.k8s.io/v2",
        "metadata": {}, "items": entries});
    answer::typed(StatusCode::OK, AGGREGATED, list.to_string())
}

fn aggregate_group(group: &str) -> Value {
    let version = |version: &str| {
        let resources: Vec<Value> = served(group, version)
            .into_iter()
            .map(|resource| aggregate_resource(resource, version))
            .collect();
        json!({"version": version, "resources": resources, "freshness": "Current"})
    };
    let versions: Vec<Value> = versions(group).into_iter().map(version).collect();
    let metadata = if group.is_empty() { json!({}) } else { json!({"name": group}) };
    json!({"metadata": metadata, "versions": versions})
}

fn aggregate_resource(resource: &Resource, version: &str) -> Value {
    let kind = json!({"group": resource.group, "version": version, "kind": resource.kind});
    let mut entry = json!({
        "resource": resource.plural,
        "responseKind": kind,
        "scope": if resource.namespaced { "Namespaced" } else { "Cluster" },
        "singularResource": resource.singular,
        "verbs": verbs(resource),
    });
    if !resource.short_names.is_empty() {
        entry["shortNames"] = resource.short_names.clone().into();
    }
    if !resource.categories.is_empty() {
        entry["categories"] = resource.categories.clone().into();
    }
    if resource.has_status {
        entry["subresources"] =
            json!([{"subresource": "status", "responseKind": kind, "verbs": STATUS_VERBS}]);
    }
    entry
}
