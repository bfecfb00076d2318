//! Gauges of the whole cluster, shown by the controller that leads: its pools, and what kubernetes-nmstate's own metrics
//! show, under their names. Counted when asked for, from the objects that the controller watches.

use std::collections::BTreeMap;

use crds::names::condition::{OF_ENACTMENT, OF_POLICY, TRUE};
use crds::names::label;
use crds::{
    Condition, NodeIPPool, NodeNetworkConfigurationEnactment, NodeNetworkConfigurationPolicy,
    NodeNetworkState,
};
use kube::ResourceExt;
use serde_json::Value;

use super::Page;

/// R56: per pool what there is, what is given, what is left.
pub(crate) fn pool(page: &mut Page, pool: &NodeIPPool) {
    let name = pool.name_any();
    let Some(status) = &pool.status else { return };
    for (metric, help, value) in [
        ("berth_pool_capacity", "Addresses that the pool can give.", status.capacity),
        ("berth_pool_allocated", "Addresses that are held or in quarantine.", status.allocated),
        ("berth_pool_available", "Addresses that are free.", status.available),
    ] {
        if let Some(value) = value {
            page.gauge(metric, help, &["pool"], &[&name], value as f64);
        }
    }
}

/// `kubernetes_nmstate_policies_status`: every status, also those that no policy has.
pub(crate) fn policies<'a>(page: &mut Page, all: impl Iterator<Item = &'a NodeNetworkConfigurationPolicy>) {
    let mut counts: BTreeMap<&str, usize> = OF_POLICY.iter().map(|status| (*status, 0)).collect();
    for policy in all {
        if let Some(status) = policy.status.as_ref().and_then(|status| holds(&status.conditions)) {
            *counts.entry(status).or_default() += 1;
        }
    }
    for (status, count) in counts {
        page.gauge(
            "kubernetes_nmstate_policies_status",
            "Policies by the condition that is True.",
            &["status"],
            &[status],
            count as f64,
        );
    }
}

/// `kubernetes_nmstate_enactments_status` and `kubernetes_nmstate_features_applied`.
pub(crate) fn enactments<'a>(
    page: &mut Page,
    all: impl Iterator<Item = &'a NodeNetworkConfigurationEnactment>,
) {
    let mut counts: BTreeMap<(String, &str), usize> = BTreeMap::new();
    let mut features: BTreeMap<&str, ()> = BTreeMap::new();
    for own in all {
        let node = own.labels().get(label::NODE).cloned().unwrap_or_default();
        for status in OF_ENACTMENT {
            counts.entry((node.clone(), status)).or_default();
        }
        let Some(status) = &own.status else { continue };
        if let Some(holds) = holds(&status.conditions) {
            *counts.entry((node, holds)).or_default() += 1;
        }
        features.extend(status.features.iter().map(|feature| (feature.as_str(), ())));
    }
    for ((node, status), count) in &counts {
        page.gauge(
            "kubernetes_nmstate_enactments_status",
            "Enactments by node and the condition that is True.",
            &["node", "status"],
            &[node, status],
            *count as f64,
        );
    }
    for feature in features.keys() {
        page.gauge(
            "kubernetes_nmstate_features_applied",
            "Features that some enactment uses.",
            &["name"],
            &[feature],
            1.0,
        );
    }
}

/// `kubernetes_nmstate_network_interfaces` and `kubernetes_nmstate_routes` of one node.
pub(crate) fn state(page: &mut Page, state: &NodeNetworkState) {
    let node = state.name_any();
    let Some(current) = state.status.as_ref().and_then(|status| status.current_state.as_ref()) else {
        return;
    };
    let mut types: BTreeMap<&str, usize> = BTreeMap::new();
    for interface in items(&current["interfaces"]) {
        *types.entry(interface["type"].as_str().unwrap_or("unknown")).or_default() += 1;
    }
    for (kind, count) in types {
        page.gauge(
            "kubernetes_nmstate_network_interfaces",
            "Interfaces by node and type.",
            &["type", "node"],
            &[kind, &node],
            count as f64,
        );
    }
    let is_configured = |route: &Value| {
        let same = |other: &Value, field: &str| route[field] == other[field];
        let fields = ["destination", "next-hop-interface", "next-hop-address", "table-id"];
        items(&current["routes"]["config"]).any(|other| fields.iter().all(|field| same(other, field)))
    };
    let mut routes: BTreeMap<(&str, &str), usize> = BTreeMap::new();
    for route in items(&current["routes"]["running"]) {
        let is_v6 = route["destination"].as_str().is_some_and(|to| to.contains(':'));
        let origin = if is_configured(route) { "static" } else { "dynamic" };
        *routes.entry((if is_v6 { "ipv6" } else { "ipv4" }, origin)).or_default() += 1;
    }
    for ((stack, origin), count) in routes {
        page.gauge(
            "kubernetes_nmstate_routes",
            "Routes by node, family and origin: static ones are configured, dynamic ones are not.",
            &["node", "ip_stack", "type"],
            &[&node, stack, origin],
            count as f64,
        );
    }
}

fn items(list: &Value) -> impl Iterator<Item = &Value> {
    list.as_array().into_iter().flatten()
}

/// The first condition that is True.
fn holds(conditions: &[Condition]) -> Option<&str> {
    conditions.iter().find(|one| one.status == TRUE).map(|one| one.type_.as_str())
}
