//! Tables as kubectl gets them from a cluster.

use serde_json::json;

use super::*;
use crate::embedded::resource;

fn now() -> Timestamp {
    "2026-03-01T12:00:00Z".parse().expect("a time")
}

fn table(group: &str, version: &str, plural: &str, include: &str, objects: &[Value]) -> Value {
    let resource = resource::find(group, version, plural).expect("served");
    let at = resource.version(version).expect("served");
    let table = Table { include: include.to_owned() };
    Rows::at(&table, resource, at, now()).table(objects, &json!({"resourceVersion": "7"}), true)
}

fn names(table: &Value, wide: bool) -> Vec<&str> {
    let columns = table["columnDefinitions"].as_array().expect("columns").iter();
    columns.filter(|c| wide || c["priority"] == 0).filter_map(|c| c["name"].as_str()).collect()
}

#[test]
fn the_header_is_read_as_kubectl_sends_it() {
    let kubectl = "application/json;as=Table;v=v1;g=meta.k8s.io,application/json;as=Table;v=v1beta1;g=meta.k8s.io,application/json";
    assert_eq!(wanted(kubectl, None), Some(Table { include: "Metadata".to_owned() }));
    assert_eq!(wanted(kubectl, Some("Object")), Some(Table { include: "Object".to_owned() }));
    let spaced = "application/vnd.kubernetes.protobuf, application/json; as=Table; g=meta.k8s.io; v=v1";
    assert_eq!(wanted(spaced, Some("")), Some(Table { include: "Metadata".to_owned() }));
    for plain in [
        "",
        "application/json",
        "*/*",
        "application/json, application/json;as=Table;v=v1;g=meta.k8s.io",
        "application/json;as=Table;v=v1;g=other",
        "application/json;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io,application/json",
    ] {
        assert_eq!(wanted(plain, None), None, "{plain}");
    }
}

#[test]
fn every_column_of_ours_leads_somewhere() {
    let columns = resource::all().iter().flat_map(|r| &r.versions).flat_map(|version| &version.columns);
    let mut count = 0;
    for column in columns {
        assert!(Path::parse(&column.json_path).is_known(), "{}", column.json_path);
        count += 1;
    }
    assert!(count > 20, "{count}");
    assert!(!Path::parse(".items[*].name").is_known());
}

#[test]
fn a_pool_shows_its_crds_columns() {
    let pool = json!({
        "metadata": {"name": "traffic-1", "creationTimestamp": "2026-03-01T11:55:00Z", "uid": "u"},
        "spec": {"range": {"cidr": "10.0.0.0/24", "perNodeHostBits": 4}},
        "status": {"capacity": 8, "allocated": 0, "conditions": [
            {"type": "Other", "status": "False"},
            {"type": "Available", "status": "True", "reason": "ReconciledPool"},
        ]},
    });
    let shown = table("nmstate.io", "v1", "nodeippools", "Metadata", std::slice::from_ref(&pool));
    assert_eq!((&shown["kind"], &shown["apiVersion"]), (&json!("Table"), &json!("meta.k8s.io/v1")));
    assert_eq!(shown["metadata"]["resourceVersion"], "7");
    let plain = ["Name", "CIDR", "Capacity", "Allocated", "Available", "Status", "Reason", "Age"];
    assert_eq!(names(&shown, false), plain);
    assert_eq!(
        shown["rows"][0]["cells"],
        json!(["traffic-1", "10.0.0.0/24", 8, 0, null, "True", "ReconciledPool", 4, null, null, "5m"])
    );
    assert_eq!(shown["columnDefinitions"][0]["format"], "name");
    assert_eq!(
        shown["rows"][0]["object"],
        json!({"kind": "PartialObjectMetadata", "apiVersion": "meta.k8s.io/v1", "metadata": pool["metadata"]})
    );
    let whole = table("nmstate.io", "v1", "nodeippools", "Object", std::slice::from_ref(&pool));
    assert_eq!(whole["rows"][0]["object"], pool);
    let bare = table("nmstate.io", "v1", "nodeippools", "None", &[pool]);
    assert_eq!(bare["rows"][0]["object"], Value::Null);
}

#[test]
fn of_several_conditions_the_first_that_holds_is_shown() {
    let enactment = json!({"metadata": {"name": "a.b"}, "status": {"conditions": [
        {"type": "Failing", "status": "False", "reason": "x", "lastTransitionTime": "2026-03-01T11:00:00Z"},
        {"type": "Available", "status": "True", "reason": "SuccessfullyConfigured",
            "lastTransitionTime": "2026-03-01T11:59:18Z"},
        {"type": "Pending", "status": "True", "reason": "y", "lastTransitionTime": "2026-03-01T10:00:00Z"},
    ]}});
    let plural = "nodenetworkconfigurationenactments";
    for version in ["v1", "v1beta1"] {
        let shown = table("nmstate.io", version, plural, "None", std::slice::from_ref(&enactment));
        assert_eq!(names(&shown, true), ["Name", "Status", "Status Age", "Reason"]);
        assert_eq!(shown["rows"][0]["cells"], json!(["a.b", "Available", "42s", "SuccessfullyConfigured"]));
    }
}

#[test]
fn a_kind_without_columns_shows_its_age() {
    let state = json!({"metadata": {"name": "node01", "creationTimestamp": "2026-02-01T12:00:00Z"}});
    let shown = table("nmstate.io", "v1beta1", "nodenetworkstates", "None", &[state]);
    assert_eq!(names(&shown, true), ["Name", "Age"]);
    assert_eq!(shown["rows"][0]["cells"], json!(["node01", "28d"]));
}

#[test]
fn nodes_look_as_on_a_cluster() {
    let node = |status: Value, labels: Value, spec: Value| {
        json!({"metadata": {"name": "node01", "labels": labels, "creationTimestamp": "2026-03-01T09:00:00Z"},
            "spec": spec, "status": status})
    };
    let cells = |node: Value| table("", "v1", "nodes", "None", &[node])["rows"][0]["cells"].clone();
    let shown = table("", "v1", "nodes", "None", &[]);
    assert_eq!(names(&shown, false), ["Name", "Status", "Roles", "Age", "Version"]);
    assert_eq!(shown["rows"], json!([]));
    let ready = json!({"conditions": [{"type": "Ready", "status": "True"}],
        "addresses": [{"type": "InternalIP", "address": "10.0.0.5"}],
        "nodeInfo": {"kubeletVersion": "berth-0.1.0", "osImage": "Debian", "kernelVersion": "6.1"}});
    let labels = json!({"node-role.kubernetes.io/storage": "", "node-role.kubernetes.io/edge": ""});
    assert_eq!(
        cells(node(ready, labels, json!({"unschedulable": true}))),
        json!([
            "node01",
            "Ready,SchedulingDisabled",
            "edge,storage",
            "3h",
            "berth-0.1.0",
            "10.0.0.5",
            "<none>",
            "Debian",
            "6.1",
            "<unknown>"
        ])
    );
    let bare = cells(node(json!({}), json!({}), json!({})));
    assert_eq!((&bare[1], &bare[2], &bare[4]), (&json!("Unknown"), &json!("<none>"), &json!("")));
    let unready = json!({"conditions": [{"type": "Ready", "status": "Unknown"}]});
    assert_eq!(cells(node(unready, json!({}), json!({})))[1], "NotReady");
}

#[test]
fn events_of_both_groups_are_read() {
    let core = json!({"metadata": {"name": "e"}, "type": "Normal", "reason": "Claimed", "message": "got it\n",
        "involvedObject": {"kind": "NodeIPPool", "name": "traffic-1"}, "count": 3,
        "source": {"component": "berth", "host": "node01"},
        "firstTimestamp": "2026-03-01T11:00:00Z", "lastTimestamp": "2026-03-01T11:58:00Z"});
    let shown = table("", "v1", "events", "None", &[core]);
    assert_eq!(names(&shown, false), ["Last Seen", "Type", "Reason", "Object", "Message"]);
    let cells = json!([
        "2m",
        "Normal",
        "Claimed",
        "nodeippool/traffic-1",
        "",
        "berth, node01",
        "got it",
        "60m",
        3,
        "e"
    ]);
    assert_eq!(shown["rows"][0]["cells"], cells);
    let new = json!({"metadata": {"name": "e"}, "type": "Warning", "reason": "Lost", "note": "gone",
        "regarding": {"kind": "Node", "name": "node01"}, "eventTime": "2026-03-01T11:59:59.123456Z",
        "reportingController": "berth", "reportingInstance": "node01"});
    let shown = table("events.k8s.io", "v1", "events", "None", &[new]);
    let cells = json!(["1s", "Warning", "Lost", "node/node01", "", "berth, node01", "gone", "1s", 1, "e"]);
    assert_eq!(shown["rows"][0]["cells"], cells);
}

#[test]
fn leases_and_namespaces() {
    let lease = json!({"metadata": {"name": "node01", "creationTimestamp": "2026-03-01T11:59:30Z"},
        "spec": {"holderIdentity": "node01"}});
    let shown = table("coordination.k8s.io", "v1", "leases", "None", &[lease]);
    assert_eq!(shown["rows"][0]["cells"], json!(["node01", "node01", "30s"]));
    let namespace = json!({"metadata": {"name": "default"}, "status": {"phase": "Active"}});
    let shown = table("", "v1", "namespaces", "None", &[namespace]);
    assert_eq!(shown["rows"][0]["cells"], json!(["default", "Active", "<unknown>"]));
}

#[test]
fn a_watch_sends_columns_once() {
    let resource = resource::find("", "v1", "nodes").expect("served");
    let table = Table { include: "None".to_owned() };
    let shown = Rows::new(&table, resource, 0).table(&[], &json!({}), false);
    assert_eq!(shown["columnDefinitions"], Value::Null);
}

#[test]
fn ages_break_where_kubectls_do() {
    let (m, h, d, y) = (60, 3600, 86400, 365 * 86400);
    let cases = [
        (-2, "<invalid>"),
        (-1, "0s"),
        (0, "0s"),
        (119, "119s"),
        (2 * m, "2m"),
        (2 * m + 1, "2m1s"),
        (9 * m + 59, "9m59s"),
        (10 * m + 59, "10m"),
        (179 * m, "179m"),
        (3 * h, "3h"),
        (3 * h + m, "3h1m"),
        (7 * h + 59 * m, "7h59m"),
        (8 * h + 59 * m, "8h"),
        (47 * h, "47h"),
        (48 * h, "2d"),
        (7 * d + 23 * h, "7d23h"),
        (8 * d + 23 * h, "8d"),
        (729 * d, "729d"),
        (2 * y, "2y"),
        (2 * y + d, "2y1d"),
        (8 * y + d, "8y"),
    ];
    for (seconds, expected) in cases {
        assert_eq!(age::human(seconds), expected, "{seconds}");
    }
    assert_eq!(age::since("yesterday", now()), "<invalid>");
}
