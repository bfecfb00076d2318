//! Admission: what is written becomes what is stored, or is refused.
//!
//! Called by the verbs, for bodies before the store is asked ([`decode`]) and inside the writer ([`create`],
//! [`update`]). In the order of kube-apiserver: types, unknown fields, metadata, defaults, rules. Pure but for UIDs.
//!
//! Cost: linear in the object; several copies of it are made.

use crds::{Reason, Violation};
use k8s_openapi::jiff::Timestamp;
use serde_json::{Value, json};

use super::body;
use super::query::FieldValidation;
use super::resource::{Form, Resource};
use super::status::{Cause, Status};

mod builtin;
pub mod event;
pub mod labels;
pub mod meta;

/// The largest object: as etcd refuses what is larger.
pub const LARGEST: usize = 1_572_864;

/// How deep an object may be nested. Clients that read JSON with serde take 128 levels, and a list or a watch puts some
/// around each object: one that is deeper would make whole lists unreadable. No network state is a fifth as deep.
pub const DEEPEST: usize = 100;

/// A body whose type is right and whose fields are known.
#[derive(Clone, Debug)]
pub struct Decoded {
    pub value: Value,
    pub warnings: Vec<String>,
}

/// Reads an object of a resource: it is of the right type, has the right shape, and nothing that isn't known. Comes out
/// in the form that is stored. `twice` are the paths of keys given more than once; `patch` is the text of the patch that the
/// object comes of, if it does.
pub fn decode(
    resource: &Resource,
    version: usize,
    mut value: Value,
    twice: &[String],
    validation: FieldValidation,
    patch: Option<&str>,
) -> Result<Decoded, Status> {
    if body::depth(&value) > DEEPEST {
        return Err(Status::bad_request(format!("the object is nested deeper than {DEEPEST} levels")));
    }
    check_type(resource, version, &mut value, patch.is_some())?;
    if resource.form == Form::NewEvent {
        value = event::to_core(&value);
    }
    if value.get("metadata").is_none_or(Value::is_null) {
        value["metadata"] = json!({});
    }
    let cannot = |why: String| {
        let (kind, version) = (&resource.kind, &resource.versions[version].name);
        Status::bad_request(format!("{kind} in version {version:?} cannot be handled as a {kind}: {why}"))
    };
    let (metadata, mut unknown) = meta::typed(&value["metadata"]).map_err(cannot)?;
    match resource.ours {
        Some(kind) => {
            let schema = &kind.definition().schema;
            unknown.extend(crds::schema::unknown_fields(schema, &value));
            crds::schema::prune(schema, &mut value);
            crds::schema::drop_nulls(schema, &mut value);
        }
        None => {
            let (known, more) = builtin::typed(resource.form, &value).map_err(cannot)?;
            value = known;
            unknown.extend(more);
        }
    }
    value["metadata"] = metadata;
    if resource.form == Form::NewEvent {
        unknown = unknown.iter().map(|path| event::path(path)).collect();
    }
    unknown.sort();
    let twice = twice.iter().map(|path| format!("duplicate field {path:?}"));
    let told: Vec<String> =
        unknown.iter().map(|path| format!("unknown field {path:?}")).chain(twice).collect();
    if validation == FieldValidation::Strict && !told.is_empty() {
        let why = format!("strict decoding error: {}", told.join(", "));
        return Err(match patch {
            None => cannot(why),
            Some(patch) => {
                let name = value["metadata"]["name"].as_str().unwrap_or_default();
                let cause = Cause::invalid("patch", &patch.into(), &why);
                Status::invalid(resource, name, vec![cause])
            }
        });
    }
    let warnings = if validation == FieldValidation::Warn { told } else { Vec::new() };
    Ok(Decoded { value, warnings })
}

/// Whether `apiVersion` and `kind` are those that the path says. Built-in kinds may leave them out.
fn check_type(resource: &Resource, version: usize, value: &mut Value, patched: bool) -> Result<(), Status> {
    if !value.is_object() {
        return Err(unrecognized(resource, "it is not a JSON object"));
    }
    let (api_version, kind) = (resource.api_version(version), resource.kind.as_str());
    let text = |value: &Value, field: &str| value[field].as_str().unwrap_or_default().to_owned();
    let (given_version, given_kind) = (text(value, "apiVersion"), text(value, "kind"));
    let right = given_version == api_version && given_kind == kind;
    if resource.ours.is_none() {
        let right = (given_version.is_empty() || given_version == api_version)
            && (given_kind.is_empty() || given_kind == kind);
        if !right {
            let given = if given_kind.is_empty() { kind } else { &given_kind };
            let version = given_version.rsplit('/').next().unwrap_or_default();
            let why = format!("it is not a {kind} of {api_version}");
            let message = format!("{given} in version {version:?} cannot be handled as a {kind}: {why}");
            return Err(Status::bad_request(message));
        }
    } else if given_kind.is_empty() {
        return Err(unrecognized(resource, "Object 'Kind' is missing in the request's body"));
    } else if given_version != api_version && !patched {
        return Err(Status::bad_request(format!(
            "the API version in the data ({given_version}) does not match the expected API version ({api_version})"
        )));
    } else if !right {
        let (field, given, wanted) = if given_version == api_version {
            ("kind", &given_kind, kind)
        } else {
            ("apiVersion", &given_version, api_version.as_str())
        };
        let cause = Cause::invalid(field, &given.as_str().into(), &format!("must be {wanted}"));
        let name = value["metadata"]["name"].as_str().unwrap_or_default();
        let mut status = Status::invalid(resource, name, vec![cause]);
        status.message = status.message.replacen(kind, &given_kind, 1);
        status.details.kind = given_kind;
        return Err(status);
    }
    value["apiVersion"] = api_version.into();
    value["kind"] = kind.into();
    Ok(())
}

/// A body that is no object of this resource.
pub fn unrecognized(resource: &Resource, why: &str) -> Status {
    Status::bad_request(format!(
        "the object provided is unrecognized (must be of type {}): {why}",
        resource.kind
    ))
}

/// A new object, as it is to be stored.
pub fn create(resource: &Resource, mut new: Value, now: Timestamp) -> Result<Value, Status> {
    meta::begin(&mut new["metadata"], now, counts_generations(resource));
    // A Node comes with its status, as kubelets register theirs.
    if resource.has_status && resource.form != Form::Node {
        remove(&mut new, "status");
    }
    finish(resource, None, new)
}

/// What `old` becomes when a client sends `new`. Only its status, if that is what is asked for.
pub fn update(resource: &Resource, old: &Value, mut new: Value, status: bool) -> Result<Value, Status> {
    // Beside the status of our kinds, metadata isn't looked at.
    if !status || resource.ours.is_none() {
        let causes = meta::check_going(&new["metadata"], &old["metadata"]);
        if !causes.is_empty() {
            let name = old["metadata"]["name"].as_str().unwrap_or_default();
            return Err(Status::invalid(resource, name, causes));
        }
    }
    meta::carry(&mut new["metadata"], &old["metadata"]);
    if status {
        let mut kept = old.clone();
        match new.get("status") {
            Some(status) => kept["status"] = status.clone(),
            None => remove(&mut kept, "status"),
        }
        // Built-in kinds take labels and annotations here too; of ours only the status is looked at.
        if resource.ours.is_none() {
            kept["metadata"] = new["metadata"].clone();
        }
        new = kept;
    } else if resource.has_status {
        match old.get("status") {
            Some(status) => new["status"] = status.clone(),
            None => remove(&mut new, "status"),
        }
    }
    let mut new = finish(resource, Some(old), new)?;
    if counts_generations(resource) && content(&new) != content(old) {
        let generation = old["metadata"]["generation"].as_i64().unwrap_or_default();
        new["metadata"]["generation"] = generation.saturating_add(1).into();
    }
    Ok(new)
}

/// Defaults, and whether the result may be written.
fn finish(resource: &Resource, old: Option<&Value>, mut new: Value) -> Result<Value, Status> {
    let mut causes = meta::check(resource, &new["metadata"], old.map(|old| &old["metadata"]));
    match resource.ours {
        Some(kind) => {
            crds::schema::apply_defaults(&kind.definition().schema, &mut new);
            causes.extend(crds::validate(kind, old, &new).iter().map(cause));
        }
        None => {
            builtin::default(resource.form, &mut new);
            causes.extend(builtin::check(resource.form, &new));
        }
    }
    let name = new["metadata"]["name"].as_str().unwrap_or_default();
    if causes.is_empty() { Ok(new) } else { Err(Status::invalid(resource, name, causes)) }
}

/// What is accepted and still worth a word: told to whoever wrote it.
pub fn warnings(resource: &Resource, object: &Value) -> Vec<String> {
    let found = resource.ours.map(|kind| crds::warnings(kind, object)).unwrap_or_default();
    let bare = finalizers(object).filter(|name| !name.contains('/')).map(|name| {
        format!(
            "metadata.finalizers: {name:?}: prefer a domain-qualified finalizer name to avoid accidental conflicts \
             with other finalizer writers"
        )
    });
    let bare = bare.filter(|_| resource.ours.is_some());
    found.iter().map(ToString::to_string).chain(bare).collect()
}

fn finalizers(object: &Value) -> impl Iterator<Item = &str> {
    object["metadata"]["finalizers"].as_array().into_iter().flatten().filter_map(Value::as_str)
}

/// Ours count what was asked for; built-in kinds without a controller behind them don't.
fn counts_generations(resource: &Resource) -> bool {
    resource.ours.is_some()
}

/// Everything but metadata and status, whose changes are no change of what is asked for.
fn content(object: &Value) -> Vec<(&String, &Value)> {
    let fields = object.as_object().into_iter().flatten();
    let mut content: Vec<_> = fields
        .filter(|(name, _)| !matches!(name.as_str(), "metadata" | "status" | "apiVersion" | "kind"))
        .collect();
    content.sort_by_key(|(name, _)| name.as_str());
    content
}

/// Takes a field out, its neighbours staying in their order.
pub fn remove(object: &mut Value, field: &str) {
    if let Some(map) = object.as_object_mut() {
        map.shift_remove(field);
    }
}

/// A broken rule, in the API server's words for its sort.
fn cause(violation: &Violation) -> Cause {
    let Violation { path, message, reason } = violation;
    let told = match reason {
        Reason::Invalid | Reason::TypeInvalid => format!("Invalid value: {message}"),
        Reason::Forbidden => format!("Forbidden: {message}"),
        Reason::Required => format!("Required value: {message}"),
        Reason::Duplicate => format!("Duplicate value: {message}"),
        Reason::NotSupported => format!("Unsupported value: {message}"),
        Reason::TooLong => format!("Too long: {message}"),
        Reason::TooMany => format!("Too many: {message}"),
    };
    // kube-apiserver names the whole object so.
    let field = if path.is_empty() { "<nil>" } else { path };
    Cause::new(reason.as_str(), told, field)
}

#[cfg(test)]
mod tests;
