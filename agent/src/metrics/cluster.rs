//! Gauges of the whole cluster, shown by the controller that leads: its pools, and what kubernetes-nmstate's own metrics
//! show, under their names. Counted when asked for, from the objects that the controller watches.

use std::collections::BTreeMap;
use std::net::IpAddr;

use crds::names::condition::{OF_ENACTMENT, OF_POLICY, TRUE};
use crds::names::label;
use crds::names::pool::BY_PRECEDENCE;
use crds::{
    Condition, NodeIPPool, NodeIPSlice, NodeNetworkConfigurationEnactment, NodeNetworkConfigurationPolicy,
};
use ipnet::IpNet;
use k8s_openapi::api::core::v1::Node;
use kube::ResourceExt;
use policy::pool::{Barred, PoolView, RangeCounts, SliceView, Taken, TakenSlices};
use serde_json::Value;

use super::Page;
use crate::controller::known::NodeKnown;
use crate::embedded::selector::Labels;
use crate::records;

/// R56: per pool what there is, what is given, what is left. Of a sliced pool these are its slices'.
pub(crate) fn pool<'a>(page: &mut Page, pool: &NodeIPPool, slices: impl Iterator<Item = &'a NodeIPSlice>) {
    let name = pool.name_any();
    let Some(status) = &pool.status else { return };
    let said = status.conditions.first().map(|one| one.reason.as_str());
    if let Some(reason) = BY_PRECEDENCE.into_iter().find(|reason| Some(*reason) == said) {
        let help = "The reason that the pool's condition shows, 1.";
        page.gauge("berth_pool_condition", help, &["pool", "reason"], &[&name, reason], 1.0);
    }
    for (metric, help, value) in [
        ("berth_pool_capacity", "Addresses that the pool can give.", status.capacity),
        ("berth_pool_allocated", "Addresses that are held or in quarantine.", status.allocated),
        ("berth_pool_available", "Addresses that are free.", status.available),
    ] {
        if let Some(value) = value {
            page.gauge(metric, help, &["pool"], &[&name], value as f64);
        }
    }
    ranges(page, pool, slices);
}

/// A pool whose release waits for an administrator, and of how many holders.
pub(crate) fn stopped(page: &mut Page, pool: &str, holders: usize) {
    let help = "Holders that vanished at once, of whom nothing is released before an administrator confirms.";
    page.gauge("berth_release_stopped", help, &["pool"], &[pool], holders as f64);
}

/// R56: the same of each range. What other pools have too is not looked for here.
fn ranges<'a>(page: &mut Page, object: &NodeIPPool, slices: impl Iterator<Item = &'a NodeIPSlice>) {
    let Ok(pool) = records::pool::meaning(object) else { return };
    let name = object.name_any();
    let read = |ip: &String| ip.parse().ok();
    let ledger = object.status.iter().flat_map(|status| status.allocations.keys());
    let mut held: Vec<IpAddr> = ledger.filter_map(read).collect();
    let barred = Barred::default();
    let counted = if pool.is_sliced() {
        let mut taken = TakenSlices::of(&pool, held.iter().map(|ip| IpNet::from(*ip)));
        for slice in slices.filter(|slice| slice.spec.pool == name) {
            if let Ok(cidr) = slice.spec.cidr.parse() {
                taken.insert(cidr);
            }
            held.extend(slice.ledger().allocations.keys().filter_map(read));
        }
        SliceView { pool: &pool, taken: &taken, barred: &barred }.by_range(&held)
    } else {
        let taken = Taken::of(&pool, held.iter().copied());
        PoolView { pool: &pool, taken: &taken, barred: &barred }.by_range(&held)
    };
    let labels = &["pool", "range"];
    let all = counted.iter();
    for (metric, help, of) in RANGES {
        for counts in all.clone() {
            page.gauge(metric, help, labels, &[&name, &counts.range], of(counts) as f64);
        }
    }
}

type OfRange = fn(&RangeCounts) -> u128;

const RANGES: [(&str, &str, OfRange); 3] = [
    ("berth_range_capacity", "Claims that the range can serve.", |of| of.counts.capacity),
    ("berth_range_allocated", "Claims that have an address of the range.", |of| of.allocated),
    ("berth_range_available", "Claims that the range can still serve.", |of| of.counts.available),
];

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

/// Nodes that should have an agent that answers, by their labels: whether one does is known to whoever asks them all, not to the
/// controller.
pub(crate) fn nodes<'a>(page: &mut Page, all: impl Iterator<Item = &'a Node>, agent_nodes: &Labels) {
    for node in all {
        // What the DaemonSet selects by. A host that registers its own Node says nothing of it.
        let is_linux = node.labels().get("kubernetes.io/os").is_none_or(|os| os == "linux");
        if is_linux && agent_nodes.match_all(node.labels()) && NodeKnown::of(node).ready {
            let name = node.name_any();
            page.gauge("berth_node_ready", "Nodes that are Ready, each 1.", &["node"], &[&name], 1.0);
        }
    }
}

/// How many interfaces and routes a host has.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Counted {
    /// By type.
    interfaces: BTreeMap<String, usize>,
    /// By family, and whether they are configured.
    routes: BTreeMap<(&'static str, &'static str), usize>,
}

impl Counted {
    /// Of a NodeNetworkState's `currentState`.
    pub(crate) fn of(current: &Value) -> Self {
        let mut counted = Self::default();
        for interface in items(&current["interfaces"]) {
            let kind = interface["type"].as_str().unwrap_or("unknown");
            *counted.interfaces.entry(kind.to_owned()).or_default() += 1;
        }
        let is_configured = |route: &Value| {
            let same = |other: &Value, field: &str| route[field] == other[field];
            let fields = ["destination", "next-hop-interface", "next-hop-address", "table-id"];
            items(&current["routes"]["config"]).any(|other| fields.iter().all(|field| same(other, field)))
        };
        for route in items(&current["routes"]["running"]) {
            let is_v6 = route["destination"].as_str().is_some_and(|to| to.contains(':'));
            let origin = if is_configured(route) { "static" } else { "dynamic" };
            *counted.routes.entry((if is_v6 { "ipv6" } else { "ipv4" }, origin)).or_default() += 1;
        }
        counted
    }
}

/// `kubernetes_nmstate_network_interfaces` and `kubernetes_nmstate_routes` of one node.
pub(crate) fn state(page: &mut Page, node: &str, counted: &Counted) {
    for (kind, count) in &counted.interfaces {
        page.gauge(
            "kubernetes_nmstate_network_interfaces",
            "Interfaces by node and type.",
            &["type", "node"],
            &[kind, node],
            *count as f64,
        );
    }
    for ((stack, origin), count) in &counted.routes {
        page.gauge(
            "kubernetes_nmstate_routes",
            "Routes by node, family and origin: static ones are configured, dynamic ones are not.",
            &["node", "ip_stack", "type"],
            &[node, stack, origin],
            *count as f64,
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
