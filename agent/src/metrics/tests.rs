use serde_json::json;

use super::family::{Family, MOST};
use super::{Page, cluster, page, while_kept};

fn shown(family: &Family) -> String {
    let mut page = Page::default();
    family.show(&mut page);
    page.finish()
}

#[test]
fn a_counter_is_shown_with_its_labels() {
    let family = Family::counter("cases_total", "Cases\nof all \\ sorts.", &["pool", "result"]);
    assert_eq!(shown(&family), "# HELP cases_total Cases\\nof all \\\\ sorts.\n# TYPE cases_total counter\n");
    family.add(&["one", "granted"], 2);
    family.add(&["one", "granted"], 1);
    family.add(&["a \"b\" \\ c\nd", "NoAddress"], 1);
    family.add(&["never", "granted"], 0);
    let text = shown(&family);
    let lines: Vec<&str> = text.lines().skip(2).collect();
    assert_eq!(
        lines,
        [
            r#"cases_total{pool="a \"b\" \\ c\nd",result="NoAddress"} 1"#,
            r#"cases_total{pool="one",result="granted"} 3"#,
        ]
    );
}

#[test]
fn what_has_no_labels_is_shown_from_the_start() {
    let family = Family::counter("repairs_total", "Repairs.", &[]);
    assert_eq!(shown(&family).lines().last(), Some("repairs_total 0"));
}

#[test]
fn buckets_of_a_histogram_add_up() {
    let family = Family::histogram("seconds", "Seconds.", &[0.1, 1.0], &["step"]);
    for seconds in [0.05, 0.1, 0.5, 7.0] {
        family.observe(&["plan"], seconds);
    }
    let text = shown(&family);
    let lines: Vec<&str> = text.lines().skip(1).collect();
    assert_eq!(
        lines,
        [
            "# TYPE seconds histogram",
            r#"seconds_bucket{step="plan",le="0.1"} 2"#,
            r#"seconds_bucket{step="plan",le="1"} 3"#,
            r#"seconds_bucket{step="plan",le="+Inf"} 4"#,
            r#"seconds_sum{step="plan"} 7.65"#,
            r#"seconds_count{step="plan"} 4"#,
        ]
    );
}

/// A policy of somebody who names pools at random must not fill the memory.
#[test]
fn series_are_bounded() {
    let family = Family::counter("pools_total", "Pools.", &["pool"]);
    for number in 0..MOST + 50 {
        family.add(&[&number.to_string()], 1);
    }
    let text = shown(&family);
    assert_eq!(text.lines().count(), 2 + MOST + 1);
    assert!(text.contains("pools_total{pool=\"other\"} 50\n"), "{}", text.lines().last().unwrap());
}

/// R56: the pools' gauges; and kubernetes-nmstate's, by its names and labels. They are gone with who shows them.
#[test]
fn gauges_are_shown_for_as_long_as_somebody_keeps_them() {
    let pool = serde_json::from_value(json!({
        "metadata": {"name": "gauged"}, "spec": {"range": {"cidr": "10.0.0.0/24"}},
        "status": {"sequence": 1, "capacity": 254, "allocated": 3, "available": 251},
    }))
    .unwrap();
    let policy = serde_json::from_value(json!({
        "metadata": {"name": "web"}, "spec": {},
        "status": {"conditions": [{"type": "Available", "status": "False"}, {"type": "Degraded", "status": "True"}]},
    }))
    .unwrap();
    let enactment = serde_json::from_value(json!({
        "metadata": {"name": "node01.web", "labels": {"nmstate.io/node": "node01"}},
        "status": {"features": ["static-route"], "conditions": [{"type": "Failing", "status": "True"}]},
    }))
    .unwrap();
    let route = |to: &str| json!({"destination": to, "next-hop-interface": "eth0", "table-id": 254});
    let state = serde_json::from_value(json!({
        "metadata": {"name": "node01"},
        "status": {"currentState": {
            "interfaces": [{"name": "eth0", "type": "ethernet"}, {"name": "eth1", "type": "ethernet"}, {"name": "lo"}],
            "routes": {"running": [route("0.0.0.0/0"), route("10.0.0.0/24"), route("::/0")], "config": [route("0.0.0.0/0")]},
        }},
    }))
    .unwrap();
    let kept = while_kept(move |page| {
        cluster::pool(page, &pool);
        cluster::policies(page, [&policy].into_iter());
        cluster::enactments(page, [&enactment].into_iter());
        cluster::state(page, &state);
    });
    let text = page();
    for line in [
        r#"berth_pool_capacity{pool="gauged"} 254"#,
        r#"berth_pool_allocated{pool="gauged"} 3"#,
        r#"berth_pool_available{pool="gauged"} 251"#,
        r#"kubernetes_nmstate_policies_status{status="Degraded"} 1"#,
        r#"kubernetes_nmstate_policies_status{status="Available"} 0"#,
        r#"kubernetes_nmstate_enactments_status{node="node01",status="Failing"} 1"#,
        r#"kubernetes_nmstate_enactments_status{node="node01",status="Available"} 0"#,
        r#"kubernetes_nmstate_features_applied{name="static-route"} 1"#,
        r#"kubernetes_nmstate_network_interfaces{type="ethernet",node="node01"} 2"#,
        r#"kubernetes_nmstate_network_interfaces{type="unknown",node="node01"} 1"#,
        r#"kubernetes_nmstate_routes{node="node01",ip_stack="ipv4",type="static"} 1"#,
        r#"kubernetes_nmstate_routes{node="node01",ip_stack="ipv4",type="dynamic"} 1"#,
        r#"kubernetes_nmstate_routes{node="node01",ip_stack="ipv6",type="dynamic"} 1"#,
    ] {
        assert!(text.lines().any(|found| found == line), "{line}\n{text}");
    }
    drop(kept);
    assert!(!page().contains("gauged"));
    // Of every family it is said what it is, once.
    let heads: Vec<&str> = text.lines().filter(|line| line.starts_with("# TYPE ")).collect();
    let mut once = heads.clone();
    once.sort_unstable();
    once.dedup();
    assert_eq!(once.len(), heads.len());
}
