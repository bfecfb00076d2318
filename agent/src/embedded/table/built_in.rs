//! Columns of the built-in kinds, as kube-apiserver has them.

use k8s_openapi::jiff::Timestamp;
use serde_json::Value;

use super::{Column, age};
use crate::embedded::resource::Form;

/// Above 0: only with `-o wide`.
const WIDE: i32 = 1;

pub(super) const NAME: Column = Column {
    name: "Name",
    kind: "string",
    format: "name",
    description: "Name must be unique within a namespace. Is required when creating resources. Cannot be updated.",
    priority: 0,
    cell: |object, _| object["metadata"]["name"].clone(),
};

pub(super) const AGE: Column = Column {
    // Our CRDs' own Age is a date; kube-apiserver's built-in kinds have a string that it has rendered already.
    name: "Age",
    kind: "string",
    format: "",
    description: "When the object was created.",
    priority: 0,
    cell: |object, now| match object["metadata"]["creationTimestamp"].as_str() {
        Some(time) => age::since(time, now).into(),
        None => "<unknown>".into(),
    },
};

const fn column(
    name: &'static str,
    priority: i32,
    description: &'static str,
    cell: fn(&Value, Timestamp) -> Value,
) -> Column {
    Column { name, kind: "string", format: "", description, priority, cell }
}

pub(super) fn columns(form: Form) -> &'static [Column] {
    match form {
        Form::Node => NODE,
        Form::Namespace => NAMESPACE,
        Form::Lease => LEASE,
        Form::CoreEvent | Form::NewEvent => EVENT,
        Form::Ours(_) => &[NAME, AGE],
    }
}

const NODE: &[Column] = &[
    NAME,
    column("Status", 0, "The status of the node", |node, _| status(node).into()),
    column("Roles", 0, "The roles of the node", |node, _| roles(node).into()),
    AGE,
    column("Version", 0, "Version that the node's agent reports.", |node, _| {
        info(node, "kubeletVersion", "")
    }),
    column("Internal-IP", WIDE, "Address of the node inside.", |node, _| address(node, "InternalIP")),
    column("External-IP", WIDE, "Address of the node outside.", |node, _| address(node, "ExternalIP")),
    column("OS-Image", WIDE, "Operating system that the node reports.", |node, _| {
        info(node, "osImage", "<unknown>")
    }),
    column("Kernel-Version", WIDE, "Kernel that the node reports.", |node, _| {
        info(node, "kernelVersion", "<unknown>")
    }),
    column("Container-Runtime", WIDE, "Container runtime that the node reports.", |node, _| {
        info(node, "containerRuntimeVersion", "<unknown>")
    }),
];

const NAMESPACE: &[Column] = &[
    NAME,
    column("Status", 0, "The status of the namespace", |namespace, _| {
        namespace["status"]["phase"].as_str().unwrap_or("Active").into()
    }),
    AGE,
];

const LEASE: &[Column] = &[
    NAME,
    column("Holder", 0, "The identity of the holder of the lease", |lease, _| {
        lease["spec"]["holderIdentity"].as_str().unwrap_or_default().into()
    }),
    AGE,
];

const EVENT: &[Column] = &[
    column("Last Seen", 0, "Time this event was last seen", |event, now| last_seen(event, now).into()),
    column("Type", 0, "Normal or Warning", |event, _| text(event, &["type"]).into()),
    column("Reason", 0, "Why it was told", |event, _| text(event, &["reason"]).into()),
    column("Object", 0, "What it is about", |event, _| object(event).into()),
    column("Subobject", WIDE, "Which part of that", |event, _| {
        let about = first(event, &["involvedObject", "regarding"]);
        about.map_or("", |about| about["fieldPath"].as_str().unwrap_or_default()).into()
    }),
    column("Source", WIDE, "Who told it", |event, _| source(event).into()),
    column("Message", 0, "What happened", |event, _| text(event, &["message", "note"]).trim().into()),
    column("First Seen", WIDE, "Time this event was first seen", |event, now| first_seen(event, now).into()),
    Column {
        kind: "integer",
        ..column("Count", WIDE, "How often it was seen", |event, _| count(event).into())
    },
    Column { priority: WIDE, ..NAME },
];

fn status(node: &Value) -> String {
    let conditions = node["status"]["conditions"].as_array().into_iter().flatten();
    let ready = conditions.into_iter().find(|condition| condition["type"] == "Ready");
    let mut status = match ready {
        None => "Unknown".to_owned(),
        Some(ready) if ready["status"] == "True" => "Ready".to_owned(),
        Some(_) => "NotReady".to_owned(),
    };
    if node["spec"]["unschedulable"] == true {
        status.push_str(",SchedulingDisabled");
    }
    status
}

/// From labels `node-role.kubernetes.io/ROLE` and `kubernetes.io/role: ROLE`.
fn roles(node: &Value) -> String {
    let labels = node["metadata"]["labels"].as_object().into_iter().flatten();
    let mut roles: Vec<&str> = labels
        .filter_map(|(key, value)| match key.strip_prefix("node-role.kubernetes.io/") {
            None if key == "kubernetes.io/role" => value.as_str(),
            role => role,
        })
        .filter(|role| !role.is_empty())
        .collect();
    roles.sort_unstable();
    roles.dedup();
    if roles.is_empty() { "<none>".to_owned() } else { roles.join(",") }
}

fn info(node: &Value, field: &str, without: &str) -> Value {
    let found = node["status"]["nodeInfo"][field].as_str().filter(|text| !text.is_empty());
    found.unwrap_or(without).into()
}

fn address(node: &Value, kind: &str) -> Value {
    let addresses = node["status"]["addresses"].as_array().into_iter().flatten();
    let found = addresses.into_iter().find(|address| address["type"] == kind);
    found.and_then(|address| address["address"].as_str()).unwrap_or("<none>").into()
}

/// The first of these fields that is there. The two groups name them differently.
fn first<'a>(event: &'a Value, fields: &[&str]) -> Option<&'a Value> {
    fields.iter().filter_map(|field| event.get(field)).find(|value| !value.is_null())
}

fn text<'a>(event: &'a Value, fields: &[&str]) -> &'a str {
    first(event, fields).and_then(Value::as_str).unwrap_or_default()
}

fn object(event: &Value) -> String {
    let about = first(event, &["involvedObject", "regarding"]).cloned().unwrap_or_default();
    let kind = about["kind"].as_str().unwrap_or_default().to_lowercase();
    match about["name"].as_str().unwrap_or_default() {
        "" => kind,
        name => format!("{kind}/{name}"),
    }
}

fn source(event: &Value) -> String {
    let source = first(event, &["source", "deprecatedSource"]).cloned().unwrap_or_default();
    let part = |value: &Value, instead: &[&str]| match value.as_str().unwrap_or_default() {
        "" => text(event, instead).to_owned(),
        part => part.to_owned(),
    };
    let component = part(&source["component"], &["reportingComponent", "reportingController"]);
    let host = part(&source["host"], &["reportingInstance"]);
    if host.is_empty() { component } else { format!("{component}, {host}") }
}

fn first_seen(event: &Value, now: Timestamp) -> String {
    let time = first(event, &["firstTimestamp", "deprecatedFirstTimestamp", "eventTime"]);
    time.and_then(Value::as_str).map_or_else(|| "<unknown>".to_owned(), |time| age::since(time, now))
}

fn last_seen(event: &Value, now: Timestamp) -> String {
    let series = event["series"]["lastObservedTime"].as_str();
    let time = series.or_else(|| first(event, &["lastTimestamp", "deprecatedLastTimestamp"])?.as_str());
    time.map_or_else(|| first_seen(event, now), |time| age::since(time, now))
}

fn count(event: &Value) -> i64 {
    let series = event["series"]["count"].as_i64();
    let plain = first(event, &["count", "deprecatedCount"]).and_then(Value::as_i64);
    series.or(plain.filter(|count| *count > 0)).unwrap_or(1)
}
