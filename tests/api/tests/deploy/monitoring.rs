//! Alerts and the dashboard: metrics that there are, and a place in the documents for each alert.

use std::collections::BTreeSet;
use std::fs;

use serde_json::Value;

use crate::rendered::{Objects, kustomized, root, the};

/// The metrics that the program shows, by their names in its source.
pub(crate) fn metrics() -> BTreeSet<String> {
    let folder = root().join("agent/src/metrics");
    let sources = ["../metrics.rs", "cluster.rs"].map(|file| folder.join(file));
    let text: String = sources.iter().map(|path| fs::read_to_string(path).expect("a source")).collect();
    let strings = text.split('"').skip(1).step_by(2);
    let is_metric = |word: &&str| {
        (word.starts_with("berth_") || word.starts_with("kubernetes_nmstate_")) && !word.contains(' ')
    };
    strings.filter(is_metric).map(str::to_owned).collect()
}

/// The metrics that an expression is about; of a histogram the family.
fn named(expression: &str) -> BTreeSet<String> {
    let words = expression.split(|c: char| !(c.is_ascii_alphanumeric() || c == '_'));
    let ours = words.filter(|word| word.starts_with("berth_") || word.starts_with("kubernetes_nmstate_"));
    let family = |word: &str| {
        let cut = ["_bucket", "_sum", "_count"].iter().find_map(|end| word.strip_suffix(end));
        cut.unwrap_or(word).to_owned()
    };
    ours.map(family).collect()
}

pub(crate) fn alerts() -> Vec<Value> {
    alerts_of(&kustomized("deploy/overlays/monitored"))
}

pub(crate) fn alerts_of(objects: &Objects) -> Vec<Value> {
    let rule = the(objects, "PrometheusRule", "berth");
    let groups = rule["spec"]["groups"].as_array().expect("groups");
    groups.iter().flat_map(|group| group["rules"].as_array().cloned().expect("rules")).collect()
}

fn dashboard() -> Value {
    let objects = kustomized("deploy/overlays/monitored");
    let map = the(&objects, "ConfigMap", "berth-dashboard");
    assert_eq!(map["metadata"]["labels"]["grafana_dashboard"], "1");
    serde_json::from_str(map["data"]["berth.json"].as_str().expect("a dashboard")).expect("JSON")
}

fn expression(of: &Value) -> String {
    of["expr"].as_str().expect("an expression").to_owned()
}

/// Those of the dashboard.
pub(crate) fn expressions() -> Vec<String> {
    let dashboard = dashboard();
    let panels = dashboard["panels"].as_array().expect("panels");
    let targets = panels.iter().flat_map(|panel| panel["targets"].as_array().into_iter().flatten());
    targets.map(expression).collect()
}

#[test]
fn alerts_and_dashboard_ask_for_metrics_that_there_are() {
    let known = metrics();
    assert!(known.contains("berth_claim_seconds") && known.len() > 12, "{known:?}");
    let mut wrong = Vec::new();
    for expression in alerts().iter().map(expression).chain(expressions()) {
        let named = named(&expression);
        let asks = !named.is_empty() || expression.contains("up{job=\"berth-system/berth-agent\"}");
        if !asks || !named.is_subset(&known) {
            wrong.push(expression);
        }
    }
    assert!(wrong.is_empty(), "these ask for what nobody shows:\n{}", wrong.join("\n"));
}

/// Every metric is on the dashboard or in an alert, but for what says nothing by itself.
#[test]
fn every_metric_is_looked_at() {
    let shown = dashboard().to_string() + &serde_json::to_string(&alerts()).expect("JSON");
    // For whoever counts what clusters use, not for whoever looks after one.
    let left = ["kubernetes_nmstate_features_applied"];
    let unseen: Vec<String> = metrics()
        .into_iter()
        .filter(|name| !shown.contains(name.as_str()) && !left.contains(&name.as_str()))
        .collect();
    assert!(unseen.is_empty(), "nobody looks at {unseen:?}");
}

/// kubernetes-nmstate shows metrics of these names too, of its own nodes, as long as both are there.
#[test]
fn metrics_that_others_have_too_are_asked_of_berth() {
    let mut wrong = Vec::new();
    for expression in alerts().iter().map(expression).chain(expressions()) {
        let mut asked = expression.split("kubernetes_nmstate_").skip(1);
        let ours =
            |rest: &str| rest.trim_start_matches(|c: char| c.is_ascii_lowercase() || c == '_').to_owned();
        if !asked.all(|rest| ours(rest).starts_with("{namespace=\"berth-system\"")) {
            wrong.push(expression);
        }
    }
    assert!(wrong.is_empty(), "these may be another's:\n{}", wrong.join("\n"));
}

/// The job that `up` is asked of is what the operator calls a PodMonitor's: namespace and name.
#[test]
fn the_agents_job_is_their_monitors_name() {
    let objects = kustomized("deploy/overlays/monitored");
    let monitor = the(&objects, "PodMonitor", "berth-agent");
    assert_eq!(monitor["metadata"]["namespace"], "berth-system");
    let set = the(&objects, "DaemonSet", "berth-agent");
    let port = &monitor["spec"]["podMetricsEndpoints"][0]["port"];
    let container = &set["spec"]["template"]["spec"]["containers"][0];
    assert_eq!(container["ports"][0]["name"], *port);
    // Named before it is used, or it would stay as it is written.
    assert_eq!(container["env"][0]["name"], "HOST_IP");
    assert!(container["livenessProbe"]["httpGet"]["host"].is_null());
}
