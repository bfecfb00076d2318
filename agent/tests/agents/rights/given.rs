//! What an account is given: by the roles that are bound to it, as they are installed.

use std::collections::BTreeSet;

use k8s_openapi::api::rbac::v1::{
    ClusterRole, ClusterRoleBinding, PolicyRule, Role, RoleBinding, RoleRef, Subject,
};
use kube::api::{Api, ListParams};
use kube::{Client, ResourceExt};

use super::right::Right;
use crate::cluster::NAMESPACE;

pub(super) async fn to(client: &Client, account: &str) -> BTreeSet<Right> {
    let is_it = |subjects: &Option<Vec<Subject>>| {
        let is_it = |one: &Subject| {
            one.kind == "ServiceAccount" && one.name == account && one.namespace.as_deref() == Some(NAMESPACE)
        };
        subjects.iter().flatten().any(is_it)
    };
    let everywhere: Api<ClusterRoleBinding> = Api::all(client.clone());
    let everywhere = everywhere.list(&ListParams::default()).await.expect("bindings").items;
    let everywhere =
        everywhere.into_iter().filter(|one| is_it(&one.subjects)).map(|one| (None, one.role_ref));
    let inside: Api<RoleBinding> = Api::all(client.clone());
    let inside = inside.list(&ListParams::default()).await.expect("bindings").items;
    let inside = inside.into_iter().filter(|one| is_it(&one.subjects));
    let inside = inside.map(|one| (one.namespace(), one.role_ref));
    let mut given = BTreeSet::new();
    for (namespace, role) in everywhere.chain(inside) {
        let rules = rules(client, namespace.as_deref(), &role).await;
        given.extend(rules.iter().flat_map(|rule| rights(rule, namespace.as_deref())));
    }
    given
}

async fn rules(client: &Client, namespace: Option<&str>, role: &RoleRef) -> Vec<PolicyRule> {
    let rules = match namespace {
        Some(namespace) if role.kind == "Role" => {
            let roles: Api<Role> = Api::namespaced(client.clone(), namespace);
            roles.get(&role.name).await.expect("a role").rules
        }
        _ => Api::<ClusterRole>::all(client.clone()).get(&role.name).await.expect("a role").rules,
    };
    rules.unwrap_or_default()
}

/// Each verb on each resource.
fn rights(rule: &PolicyRule, namespace: Option<&str>) -> Vec<Right> {
    let mut names: Vec<Option<String>> = rule.resource_names.iter().flatten().cloned().map(Some).collect();
    if names.is_empty() {
        names.push(None);
    }
    let mut all = Vec::new();
    for group in rule.api_groups.iter().flatten() {
        for resource in rule.resources.iter().flatten() {
            for verb in &rule.verbs {
                all.extend(names.iter().map(|name| Right {
                    resource: resource.clone(),
                    group: group.clone(),
                    verb: verb.clone(),
                    namespace: namespace.map(str::to_owned),
                    name: name.clone(),
                }));
            }
        }
    }
    all
}
