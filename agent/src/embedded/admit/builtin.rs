//! The built-in kinds: their types say what they have, and a few rules what they may say.

use k8s_openapi::api::coordination::v1::Lease;
use k8s_openapi::api::core::v1::{Event, Namespace, Node};
use serde::{Serialize, de::DeserializeOwned};
use serde_json::{Value, json};

use crate::embedded::resource::Form;
use crate::embedded::status::Cause;

/// An object as its type has it, and the paths of what the type doesn't know.
pub(super) fn typed(form: Form, object: &Value) -> Result<(Value, Vec<String>), String> {
    let known = match form {
        Form::Namespace => through::<Namespace>(object),
        Form::Node => through::<Node>(object),
        Form::Lease => through::<Lease>(object),
        Form::CoreEvent | Form::NewEvent => through::<Event>(object),
        Form::Ours(_) => return Ok((object.clone(), Vec::new())),
    };
    let known = known.map_err(|error| error.to_string())?;
    check_times(form, object)?;
    let unknown = dropped(object, &known, "");
    let unknown = unknown.into_iter().filter(|path| path.split('.').next() != Some("metadata")).collect();
    Ok((known, unknown))
}

/// Times with microseconds must have all six digits of them, as kube-apiserver has it: what a client may leave out here it
/// could not on a cluster.
fn check_times(form: Form, object: &Value) -> Result<(), String> {
    let times: &[&str] = match form {
        Form::Lease => &["/spec/acquireTime", "/spec/renewTime"],
        Form::CoreEvent | Form::NewEvent => &["/eventTime", "/series/lastObservedTime"],
        _ => &[],
    };
    let times = times.iter().filter_map(|at| object.pointer(at)?.as_str());
    match times.into_iter().find(|time| !has_microseconds(time)) {
        Some(time) => Err(format!("{time:?} is not a time such as 2006-01-02T15:04:05.000000Z")),
        None => Ok(()),
    }
}

/// Whether the text of a time has the form of RFC 3339 with six digits of fraction.
fn has_microseconds(time: &str) -> bool {
    let like = |text: &str, form: &str| {
        text.len() == form.len()
            && text.bytes().zip(form.bytes()).all(|(byte, wanted)| match wanted {
                b'0' => byte.is_ascii_digit(),
                b'.' => matches!(byte, b'.' | b','),
                b'+' => matches!(byte, b'+' | b'-'),
                _ => byte == wanted,
            })
    };
    let (form, leap) = ("0000-00-00T00:00:00.000000", time.get(17..19) == Some("60"));
    let Some((time, zone)) = time.split_at_checked(form.len()) else { return false };
    !leap && like(time, form) && (zone == "Z" || like(zone, "+00:00"))
}

fn through<T: DeserializeOwned + Serialize>(object: &Value) -> Result<Value, serde_json::Error> {
    serde_json::to_value(serde_json::from_value::<T>(object.clone())?)
}

/// The paths of what is in `given` and not in `kept`. What is null or empty is no loss.
pub(super) fn dropped(given: &Value, kept: &Value, path: &str) -> Vec<String> {
    let mut found = Vec::new();
    match (given, kept) {
        (Value::Object(given), Value::Object(kept)) => {
            for (name, value) in given {
                let here = if path.is_empty() { name.clone() } else { format!("{path}.{name}") };
                match kept.get(name) {
                    Some(kept) => found.extend(dropped(value, kept, &here)),
                    None if value.is_null() => {}
                    None => found.push(here),
                }
            }
        }
        (Value::Array(given), Value::Array(kept)) => {
            for (index, (given, kept)) in given.iter().zip(kept).enumerate() {
                found.extend(dropped(given, kept, &format!("{path}[{index}]")));
            }
        }
        _ => {}
    }
    found
}

/// What the server fills in.
pub(super) fn default(form: Form, object: &mut Value) {
    if form == Form::Namespace {
        let name = object["metadata"]["name"].clone();
        object["metadata"]["labels"]["kubernetes.io/metadata.name"] = name;
        if object["spec"]["finalizers"].is_null() {
            object["spec"]["finalizers"] = json!(["kubernetes"]);
        }
        if object["status"]["phase"].is_null() {
            object["status"]["phase"] = json!("Active");
        }
    }
    // The types' empty halves: they are there in what kube-apiserver answers.
    if form == Form::Node {
        for half in ["spec", "status"] {
            if object[half].is_null() {
                object[half] = json!({});
            }
        }
    }
}

/// What is wrong with an object of such a kind.
pub(super) fn check(form: Form, object: &Value) -> Vec<Cause> {
    match form {
        Form::Lease => lease(object),
        Form::CoreEvent | Form::NewEvent => event(object),
        _ => Vec::new(),
    }
}

fn lease(object: &Value) -> Vec<Cause> {
    let spec = &object["spec"];
    let mut causes = Vec::new();
    if spec["leaseDurationSeconds"].as_i64().is_some_and(|seconds| seconds <= 0) {
        let why = "must be greater than 0";
        causes.push(Cause::invalid("spec.leaseDurationSeconds", &spec["leaseDurationSeconds"], why));
    }
    if spec["leaseTransitions"].as_i64().is_some_and(|count| count < 0) {
        let why = "must be greater than or equal to 0";
        causes.push(Cause::invalid("spec.leaseTransitions", &spec["leaseTransitions"], why));
    }
    causes
}

fn event(object: &Value) -> Vec<Cause> {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let namespace = text(&object["metadata"]["namespace"]);
    let about = text(&object["involvedObject"]["namespace"]);
    // What has no namespace is told of in `default`.
    let fits = if about.is_empty() {
        namespace == "default" || namespace == "kube-system"
    } else {
        namespace == about
    };
    let mut causes = Vec::new();
    if !fits {
        let why = "does not match event.namespace";
        causes.push(Cause::invalid("involvedObject.namespace", &about.into(), why));
    }
    // An Event of the newer kind is told by its time, and has to be complete.
    if object.get("eventTime").is_some_and(|time| !time.is_null()) {
        for (field, name) in [
            ("reportingComponent", "reportingController"),
            ("reportingInstance", "reportingInstance"),
            ("action", "action"),
            ("reason", "reason"),
        ] {
            if text(&object[field]).is_empty() {
                causes.push(Cause::required(name, ""));
            }
        }
        if !matches!(text(&object["type"]).as_str(), "Normal" | "Warning") {
            causes.push(Cause::invalid("type", &object["type"], ""));
        }
    }
    causes
}
