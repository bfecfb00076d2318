//! Alerts and the dashboard, evaluated by promtool over series as the program would show them (`alerts.yaml`, and [`SHOWN`]).

use std::collections::BTreeMap;
use std::process::Command;
use std::sync::LazyLock;

use serde_json::{Map, Value, json};

use crate::monitoring::{alerts, expressions};
use crate::rendered::{root, text_of};

/// What a cluster shows on which a little of everything has happened, for half an hour, a sample a minute.
const SHOWN: [(&str, &str); 25] = [
    (r#"up{job="berth-system/berth-agent", node="node01"}"#, "1x30"),
    (r#"up{job="berth-system/berth-agent", node="node02"}"#, "0x30"),
    (r#"kubernetes_nmstate_policies_status{namespace="berth-system", status="Degraded"}"#, "1x30"),
    (
        r#"kubernetes_nmstate_enactments_status{namespace="berth-system", node="node01", status="Failing"}"#,
        "1x30",
    ),
    (r#"berth_pool_allocated{pool="traffic-1"}"#, "3x30"),
    (r#"berth_pool_available{pool="traffic-1"}"#, "5x30"),
    (r#"berth_pool_capacity{pool="traffic-1"}"#, "8x30"),
    (r#"berth_range_allocated{pool="traffic-1", range="default"}"#, "3x30"),
    (r#"berth_range_available{pool="traffic-1", range="default"}"#, "5x30"),
    (r#"berth_range_capacity{pool="traffic-1", range="default"}"#, "8x30"),
    (r#"berth_build_info{version="0.1.0"}"#, "1x30"),
    (r#"berth_claims_total{pool="traffic-1", range="default", kind="dynamic", result="granted"}"#, "0+1x30"),
    (r#"berth_releases_total{pool="traffic-1"}"#, "0+1x30"),
    (r#"berth_claim_seconds_bucket{le="0.5"}"#, "0+1x30"),
    (r#"berth_claim_seconds_bucket{le="+Inf"}"#, "0+2x30"),
    (r#"berth_apply_seconds_bucket{node="node01", step="apply", le="0.5"}"#, "0+1x30"),
    (r#"berth_apply_seconds_bucket{node="node01", step="apply", le="+Inf"}"#, "0+1x30"),
    (r#"berth_apply_seconds_count{node="node01", step="revert"}"#, "0+1x30"),
    (r#"berth_drift_repairs_total{node="node01"}"#, "0+1x30"),
    (r#"berth_ip_collisions_total{pool="traffic-1"}"#, "0+1x30"),
    ("berth_claim_conflicts_total", "0+1x30"),
    ("berth_gc_freed_total", "0+1x30"),
    ("berth_events_dropped_total", "0+1x30"),
    (
        r#"kubernetes_nmstate_network_interfaces{namespace="berth-system", type="ethernet", node="node01"}"#,
        "3x30",
    ),
    (
        r#"kubernetes_nmstate_routes{namespace="berth-system", node="node01", ip_stack="ipv4", type="static"}"#,
        "2x30",
    ),
];

/// Files for promtool, gone with the value: a rule file, and tests of it.
struct Folder(std::path::PathBuf);

impl Folder {
    fn new(name: &str, tests: &[Value]) -> Folder {
        let folder = std::env::temp_dir().join(format!("berth-{name}-{}", std::process::id()));
        std::fs::create_dir_all(&folder).expect("a folder");
        let write = |file: &str, value: Value| {
            std::fs::write(folder.join(file), value.to_string()).expect("a file");
        };
        // JSON is YAML, too.
        write("rules.json", json!({"groups": [{"name": "berth", "rules": alerts()}]}));
        write(
            "tests.json",
            json!({"rule_files": ["rules.json"], "evaluation_interval": "1m", "tests": tests}),
        );
        Folder(folder)
    }

    /// Panics with what it says against one of the files.
    fn promtool(&self, verbs: [&str; 2], file: &str) {
        static PROMTOOL: LazyLock<String> =
            LazyLock::new(|| text_of(&mut Command::new(root().join("tests/promtool.sh"))).trim().to_owned());
        let said = Command::new(PROMTOOL.as_str()).args(verbs).arg(self.0.join(file)).output();
        let said = said.expect("promtool can be run");
        let text =
            [said.stdout, said.stderr].map(|part| String::from_utf8_lossy(&part).into_owned()).concat();
        assert!(said.status.success(), "{verbs:?}: {text}");
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

fn input<'a>(series: impl IntoIterator<Item = (&'a str, &'a str)>) -> Vec<Value> {
    series.into_iter().map(|(series, values)| json!({"series": series, "values": values})).collect()
}

fn map<'a>(value: &'a Value, field: &str) -> &'a Map<String, Value> {
    value[field].as_object().unwrap_or_else(|| panic!("no {field} in {value}"))
}

/// With what the rule itself says of every alert of its kind.
fn expected(rule: &Value, fired: &Value) -> Value {
    let (mut labels, mut annotations) = (map(rule, "labels").clone(), map(rule, "annotations").clone());
    labels.extend(map(fired, "labels").clone());
    annotations.insert("summary".to_owned(), fired["summary"].clone());
    json!({"exp_labels": labels, "exp_annotations": annotations})
}

#[test]
fn each_alert_fires_when_it_should_and_not_before() {
    let rules = alerts();
    let rules: BTreeMap<&str, &Value> =
        rules.iter().map(|rule| (rule["alert"].as_str().expect("a name"), rule)).collect();
    let cases: Vec<Value> = serde_saphyr::from_str(include_str!("alerts.yaml")).expect("YAML");
    let mut seen: BTreeMap<&str, [bool; 2]> = rules.keys().map(|name| (*name, [false; 2])).collect();
    let mut tests = Vec::new();
    for case in &cases {
        let name = case["alert"].as_str().expect("an alert's name");
        let rule = rules.get(name).unwrap_or_else(|| panic!("there is no alert {name}"));
        let mut asked = Vec::new();
        for (time, fired) in map(case, "at") {
            let fired = fired.as_array().expect("a list of alerts");
            seen.get_mut(name).expect("an alert")[usize::from(fired.is_empty())] = true;
            let fired: Vec<Value> = fired.iter().map(|one| expected(rule, one)).collect();
            asked.push(json!({"alertname": name, "eval_time": time, "exp_alerts": fired}));
        }
        let series = map(case, "series").iter().map(|(name, values)| {
            (name.as_str(), values.as_str().expect("values, in quotes if they are a number, too"))
        });
        tests.push(json!({
            "name": case["name"], "interval": "1m", "input_series": input(series), "alert_rule_test": asked,
        }));
    }
    let untold: Vec<&&str> =
        seen.iter().filter(|(_, ways)| ways.contains(&false)).map(|(name, _)| name).collect();
    assert!(untold.is_empty(), "alerts.yaml doesn't have both ways of {untold:?}");
    let folder = Folder::new("alerts", &tests);
    folder.promtool(["check", "rules"], "rules.json");
    folder.promtool(["test", "rules"], "tests.json");
}

#[test]
fn each_panel_of_the_dashboard_shows_something() {
    let asked: Vec<Value> = expressions()
        .iter()
        .map(|expression| {
            // Grafana's own word for a few scrapes.
            let expression = expression.replace("$__rate_interval", "5m");
            let samples = json!([{"labels": "{}", "value": 1}]);
            json!({"expr": format!("count({expression}) > bool 0"), "eval_time": "20m", "exp_samples": samples})
        })
        .collect();
    assert!(asked.len() > 20, "{asked:?}");
    let test = json!({"interval": "1m", "input_series": input(SHOWN), "promql_expr_test": asked});
    Folder::new("dashboard", &[test]).promtool(["test", "rules"], "tests.json");
}
