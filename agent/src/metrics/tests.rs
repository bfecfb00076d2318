use crds::NodeIPSlice;
use k8s_openapi::api::core::v1::Node;
use serde_json::json;

use super::family::{Family, MOST};
use super::{Page, cluster, ledger_written, page, while_kept};

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
fn what_has_begun_is_shown_before_it_is_counted() {
    let family = Family::histogram("seconds", "Seconds.", &[0.1], &["step"]);
    family.begin(&["revert"]);
    let text = shown(&family);
    for line in [r#"seconds_bucket{step="revert",le="0.1"} 0"#, r#"seconds_count{step="revert"} 0"#] {
        assert!(text.lines().any(|found| found == line), "{line}\n{text}");
    }
    family.observe(&["revert"], 0.05);
    family.begin(&["revert"]);
    assert_eq!(shown(&family).lines().last(), Some(r#"seconds_count{step="revert"} 1"#));
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

/// R56, R57: the pools' gauges and their ranges', which have no kind; and kubernetes-nmstate's, by its names and labels. They are gone with who shows them.
#[test]
fn gauges_are_shown_for_as_long_as_somebody_keeps_them() {
    let pool = serde_json::from_value(json!({
        "metadata": {"name": "gauged"}, "spec": {"ranges": [
            {"name": "a", "cidr": "10.0.0.0/24"}, {"name": "b", "cidr": "10.0.1.0/29", "state": "Draining"}]},
        "status": {"sequence": 1, "capacity": 260, "allocated": 3, "available": 252,
            "conditions": [{"type": "Available", "status": "False", "reason": "IPCollision"}],
            "allocations": {"10.0.0.7": {"node": "x"}, "10.0.0.8": {"node": "y"}, "10.0.1.2": {"node": "z"}}},
    }))
    .unwrap();
    let sliced = serde_json::from_value(json!({
        "metadata": {"name": "sliced"}, "spec": {"staticBand": "None",
            "ranges": [{"name": "a", "cidr": "10.1.0.0/24", "perNodeHostBits": 4}]},
        "status": {"sequence": 1},
    }))
    .unwrap();
    let slice: NodeIPSlice = serde_json::from_value(json!({
        "metadata": {"name": "sliced.10.1.0.16"},
        "spec": {"pool": "sliced", "cidr": "10.1.0.16/28", "node": "x", "nodeUID": "x"},
        "status": {"allocations": {"10.1.0.17": {"node": "x"}}},
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
    let counted = cluster::Counted::of(&json!({
        "interfaces": [{"name": "eth0", "type": "ethernet"}, {"name": "eth1", "type": "ethernet"}, {"name": "lo"}],
        "routes": {"running": [route("0.0.0.0/0"), route("10.0.0.0/24"), route("::/0")], "config": [route("0.0.0.0/0")]},
    }));
    let node = |name: &str, os: &str, ready: &str| -> Node {
        let conditions = json!([{"type": "Ready", "status": ready}]);
        let mut metadata = json!({"name": name, "labels": {"kubernetes.io/os": os}});
        if name == "none" {
            metadata["labels"]["without"] = json!("any");
        }
        serde_json::from_value(json!({"metadata": metadata, "status": {"conditions": conditions}})).unwrap()
    };
    let nodes = [("ready", "linux", "True"), ("away", "linux", "Unknown"), ("other", "windows", "True")];
    let nodes = nodes.into_iter().chain([("none", "linux", "True")]);
    let nodes: Vec<Node> = nodes.map(|(name, os, ready)| node(name, os, ready)).collect();
    let kept = while_kept(move |page| {
        cluster::pool(page, &pool, [&slice].into_iter());
        cluster::pool(page, &sliced, [&slice].into_iter());
        cluster::stopped(page, "gone", 12);
        cluster::policies(page, [&policy].into_iter());
        cluster::enactments(page, [&enactment].into_iter());
        cluster::state(page, "node01", &counted);
        cluster::nodes(page, nodes.iter(), &"!without".parse().unwrap());
    });
    let text = page();
    for line in [
        r#"berth_pool_capacity{pool="gauged"} 260"#,
        r#"berth_pool_allocated{pool="gauged"} 3"#,
        r#"berth_pool_condition{pool="gauged",reason="IPCollision"} 1"#,
        r#"berth_release_stopped{pool="gone"} 12"#,
        r#"berth_node_ready{node="ready"} 1"#,
        r#"berth_pool_available{pool="gauged"} 252"#,
        r#"berth_range_capacity{pool="gauged",range="a"} 254"#,
        r#"berth_range_allocated{pool="gauged",range="a"} 2"#,
        r#"berth_range_available{pool="gauged",range="a"} 252"#,
        r#"berth_range_capacity{pool="gauged",range="b"} 6"#,
        r#"berth_range_allocated{pool="gauged",range="b"} 1"#,
        r#"berth_range_available{pool="gauged",range="b"} 0"#,
        r#"berth_range_capacity{pool="sliced",range="a"} 254"#,
        r#"berth_range_allocated{pool="sliced",range="a"} 1"#,
        r#"berth_range_available{pool="sliced",range="a"} 238"#,
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
    // Who is away, runs something else or is not selected has no agent that could answer.
    for name in ["away", "other", "none"] {
        assert!(!text.contains(&format!(r#"{{node="{name}"}}"#)), "{text}");
    }
    assert!(!text.contains(r#"berth_pool_condition{pool="sliced""#), "nothing is said of it yet");
    drop(kept);
    assert!(!page().contains("gauged"));
    // Of every family it is said what it is, once.
    let heads: Vec<&str> = text.lines().filter(|line| line.starts_with("# TYPE ")).collect();
    let mut once = heads.clone();
    once.sort_unstable();
    once.dedup();
    assert_eq!(once.len(), heads.len());
}

/// R106: what came before a write that was taken counts with it, by pool.
#[test]
fn r106_tries_are_counted_until_one_is_taken() {
    let of = |text: &str, line: &str| -> f64 {
        let found = text.lines().find_map(|found| found.strip_prefix(line)).expect("a line");
        found.trim().parse().expect("a number")
    };
    let tries = || (of(&page(), "berth_claim_tries_count"), of(&page(), "berth_claim_tries_sum"));
    let (count, sum) = tries();
    for _ in 0..2 {
        ledger_written("contended", false);
    }
    ledger_written("contended", true);
    ledger_written("quiet-one", true);
    let (later, more) = tries();
    assert!(later >= count + 2.0 && more >= sum + 4.0, "{count} {sum}, {later} {more}");
}
