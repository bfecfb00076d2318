//! The metadata of what is written: what the server sets, what a client may set, and what it may not.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use k8s_openapi::jiff::Timestamp;
use serde_json::{Map, Value, json};

use super::labels;
use crate::api::random;
use crate::embedded::resource::{Form, Resource};
use crate::embedded::status::{Cause, Status};

/// All annotations of an object together, keys included.
const ANNOTATIONS: usize = 256 << 10;

/// Metadata as its type has it: what the type doesn't know is gone, and so is what is empty. Also gives the paths of
/// what was dropped.
pub fn typed(meta: &Value) -> Result<(Value, Vec<String>), String> {
    let parsed: ObjectMeta =
        serde_json::from_value(meta.clone()).map_err(|error| format!("metadata: {error}"))?;
    let mut known = serde_json::to_value(ObjectMeta { managed_fields: None, self_link: None, ..parsed })
        .map_err(|error| format!("metadata: {error}"))?;
    let unknown = super::builtin::dropped(meta, &known, "metadata");
    let unknown = unknown
        .into_iter()
        .filter(|path| !path.starts_with("metadata.managedFields") && path != "metadata.selfLink")
        .collect();
    if let Some(known) = known.as_object_mut() {
        let empty = |value: &Value| match value {
            Value::Object(map) => map.is_empty(),
            Value::Array(list) => list.is_empty(),
            Value::String(text) => text.is_empty(),
            other => other.is_null(),
        };
        known.retain(|_, value| !empty(value));
    }
    Ok((known, unknown))
}

/// What the server says of a new object.
pub fn begin(meta: &mut Value, now: Timestamp, generation: bool) {
    for foreign in ["deletionTimestamp", "deletionGracePeriodSeconds", "generation", "resourceVersion"] {
        remove(meta, foreign);
    }
    meta["uid"] = uid().into();
    meta["creationTimestamp"] = stamp(now).into();
    if generation {
        meta["generation"] = 1.into();
    }
}

/// What is wrong with a change that says of itself that the object goes: only a delete says so. Of one that goes already the
/// time may be left out, or be another: it stays what it is.
pub fn check_going(new: &Value, old: &Value) -> Vec<Cause> {
    let changed = |field: &str| {
        let given = new.get(field).filter(|given| !given.is_null() && old.get(field) != Some(*given))?;
        Some(Cause::invalid(&format!("metadata.{field}"), given, "field is immutable"))
    };
    let goes = old.get("deletionTimestamp").is_some();
    let time = if goes { None } else { changed("deletionTimestamp") };
    time.into_iter().chain(changed("deletionGracePeriodSeconds")).collect()
}

/// What a change can't change.
pub fn carry(meta: &mut Value, old: &Value) {
    for kept in ["uid", "creationTimestamp", "generation", "deletionTimestamp", "deletionGracePeriodSeconds"]
    {
        match old.get(kept) {
            Some(value) => meta[kept] = value.clone(),
            None => remove(meta, kept),
        }
    }
    if let Some(name) = old.get("generateName") {
        meta["generateName"] = name.clone();
    }
    meta["resourceVersion"] = old["resourceVersion"].clone();
}

pub fn remove(meta: &mut Value, name: &str) {
    if let Some(map) = meta.as_object_mut() {
        map.shift_remove(name);
    }
}

/// A time as Kubernetes has it in metadata: whole seconds.
pub fn stamp(now: Timestamp) -> String {
    now.strftime("%Y-%m-%dT%H:%M:%SZ").to_string()
}

/// A random UID (RFC 9562, version 4).
pub fn uid() -> String {
    let mut bytes = random::bytes::<16>();
    bytes[6] = bytes[6] & 0x0f | 0x40;
    bytes[8] = bytes[8] & 0x3f | 0x80;
    let hex: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
    format!("{}-{}-{}-{}-{}", &hex[..8], &hex[8..12], &hex[12..16], &hex[16..20], &hex[20..])
}

/// A name that begins as asked for, as Kubernetes ends them.
pub fn generated(begin: &str) -> String {
    const LETTERS: &[u8; 27] = b"bcdfghjklmnpqrstvwxz2456789";
    let mut cut = begin.len().min(248);
    while !begin.is_char_boundary(cut) {
        cut -= 1;
    }
    let end = random::bytes::<5>().map(|byte| char::from(LETTERS[usize::from(byte) % LETTERS.len()]));
    begin[..cut].chars().chain(end).collect()
}

/// What is wrong with the metadata of a new object, or of one that takes the place of `old`.
pub fn check(resource: &Resource, meta: &Value, old: Option<&Value>) -> Vec<Cause> {
    let mut causes = Vec::new();
    if old.is_none() {
        let name = meta["name"].as_str().unwrap_or_default();
        let wrong = match resource.form {
            Form::Namespace => labels::wrong_label(name),
            _ => labels::wrong_subdomain(name),
        };
        if name.is_empty() {
            causes.push(Cause::required("metadata.name", "name or generateName is required"));
        } else if let Some(why) = wrong {
            causes.push(Cause::invalid("metadata.name", &name.into(), &why));
        }
    }
    for (key, value) in entries(meta, "labels") {
        if let Some(why) = labels::wrong_key(key) {
            causes.push(Cause::invalid("metadata.labels", &key.as_str().into(), &why));
        }
        if let Some(why) = labels::wrong_value(value.as_str().unwrap_or_default()) {
            causes.push(Cause::invalid("metadata.labels", value, &why));
        }
    }
    let mut size = 0;
    for (key, value) in entries(meta, "annotations") {
        size += key.len() + value.as_str().map_or(0, str::len);
        if let Some(why) = labels::wrong_key(&key.to_lowercase()) {
            causes.push(Cause::invalid("metadata.annotations", &key.as_str().into(), &why));
        }
    }
    if size > ANNOTATIONS {
        let message = format!("Too long: may not be more than {ANNOTATIONS} bytes");
        causes.push(Cause::new("FieldValueTooLong", message, "metadata.annotations"));
    }
    causes.extend(finalizers(meta, old));
    causes.extend(owners(meta));
    causes
}

fn entries<'a>(meta: &'a Value, name: &str) -> impl Iterator<Item = (&'a String, &'a Value)> {
    meta.get(name).and_then(Value::as_object).into_iter().flat_map(Map::iter)
}

fn finalizers(meta: &Value, old: Option<&Value>) -> Vec<Cause> {
    let list = |meta: &Value| meta["finalizers"].as_array().cloned().unwrap_or_default();
    let mut causes = Vec::new();
    for name in &list(meta) {
        if let Some(why) = labels::wrong_key(name.as_str().unwrap_or_default()) {
            causes.push(Cause::invalid("metadata.finalizers", name, &why));
        }
    }
    if let Some(old) = old.filter(|old| old.get("deletionTimestamp").is_some()) {
        let known = list(old);
        let fresh: Vec<String> =
            list(meta).iter().filter(|name| !known.contains(name)).map(ToString::to_string).collect();
        if !fresh.is_empty() {
            let message = format!(
                "Forbidden: no new finalizers can be added if the object is being deleted, found new finalizers \
                 []string{{{}}}",
                fresh.join(", ")
            );
            causes.push(Cause::new("FieldValueForbidden", message, "metadata.finalizers"));
        }
    }
    causes
}

fn owners(meta: &Value) -> Vec<Cause> {
    let mut causes = Vec::new();
    let owners = meta["ownerReferences"].as_array().map(Vec::as_slice).unwrap_or_default();
    for owner in owners {
        for (field, why) in [
            ("apiVersion", "version must not be empty"),
            ("kind", "must not be empty"),
            ("name", "must not be empty"),
            ("uid", "must not be empty"),
        ] {
            let value = owner.get(field).cloned().unwrap_or_else(|| json!(""));
            if value == "" {
                let field = format!("metadata.ownerReferences.{field}");
                causes.push(Cause::invalid(&field, &value, why));
            }
        }
    }
    if owners.iter().filter(|owner| owner["controller"] == true).count() > 1 {
        let value = Value::Array(owners.to_vec());
        let why = "Only one reference can have Controller set to true";
        causes.push(Cause::invalid("metadata.ownerReferences", &value, why));
    }
    causes
}

/// Whether an update says which version it is based on, and on the right one.
pub fn guard(resource: &Resource, name: &str, new: &Value, old: &Value) -> Result<(), Status> {
    let text = |meta: &Value, field: &str| meta[field].as_str().unwrap_or_default().to_owned();
    let (uid, old_uid) = (text(new, "uid"), text(old, "uid"));
    if !uid.is_empty() && uid != old_uid {
        let why = format!("Precondition failed: UID in precondition: {uid}, UID in object meta: {old_uid}");
        return Err(Status::conflict(resource, name, &why));
    }
    guard_revision(resource, name, new, old)
}

/// The same of the version alone. Where kube-apiserver lets an update go without one, 0 counts as none.
pub fn guard_revision(resource: &Resource, name: &str, new: &Value, old: &Value) -> Result<(), Status> {
    let stated = new["resourceVersion"].as_str().filter(|revision| !matches!(*revision, "" | "0"));
    if stated.is_some_and(|revision| Some(revision) != old["resourceVersion"].as_str()) {
        return Err(Status::stale(resource, name));
    }
    if stated.is_none() && matches!(resource.form, Form::Ours(_) | Form::Lease) {
        let cause = Cause::invalid("metadata.resourceVersion", &json!(0), "must be specified for an update");
        // kube-apiserver speaks of the resource here, not of the kind.
        let mut status = Status::invalid(resource, name, vec![cause]);
        status.message = status.message.replacen(&resource.qualified_kind(), &resource.qualified(), 1);
        status.details.kind = resource.plural.clone();
        return Err(status);
    }
    Ok(())
}
