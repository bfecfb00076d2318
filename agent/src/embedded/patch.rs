//! Patches: JSON patch, merge patch, and strategic merge for built-in kinds. Pure.
//!
//! Read once, applied to what there is, and again to what there is then if that was changed meanwhile: a patch that names no
//! resourceVersion doesn't conflict. Cost: bounded by [`COPIED`] and [`WORK`], whatever a patch says of whatever object.

use hyper::StatusCode;
use json_patch::PatchOperation;
use serde_json::Value;

use super::resource::Resource;
use super::status::{Cause, Status};
use super::{admit, body};

mod strategic;

#[cfg(test)]
mod tests;

/// As kube-apiserver bounds them: each operation may copy the object.
const OPERATIONS: usize = 10_000;

/// What all `copy` operations of a patch may copy, as text: as kube-apiserver. Thirty copies of the whole into itself would
/// be more than there is memory.
const COPIED: usize = body::LARGEST;

/// What all operations of a patch may go through besides, in values: what is moved is looked at for its depth, and what stands
/// behind an item that is put into a list, or taken out of one, makes room. A tenth of a second's work. Ten thousand
/// operations in a list of a thousand items are well within it.
const WORK: usize = 16 << 20;

/// A patch.
#[derive(Clone, Debug)]
pub(super) enum Patch {
    Json(Vec<PatchOperation>),
    Merge(Value),
    Strategic(Value),
}

impl Patch {
    /// Reads the patch in a body.
    pub(super) fn parse(resource: &Resource, media_type: &str, text: &[u8]) -> Result<Self, Status> {
        let unread =
            |why: &dyn std::fmt::Display| Status::bad_request(format!("error decoding patch: {why}"));
        let document = || {
            let (value, _) = body::json(text).map_err(|why| unread(&why))?;
            if value.is_object() { Ok(value) } else { Err(unread(&"it is not a JSON object")) }
        };
        match media_type {
            "application/json-patch+json" => {
                let operations: Vec<Value> = serde_json::from_slice(text).map_err(|why| unread(&why))?;
                if operations.len() > OPERATIONS {
                    let message = format!(
                        "Request entity too large: The allowed maximum operations in a JSON patch is {OPERATIONS}, got {}",
                        operations.len()
                    );
                    return Err(Status::new(StatusCode::PAYLOAD_TOO_LARGE, "RequestEntityTooLarge", message));
                }
                // One that can't be understood is refused where it would be applied, as kube-apiserver has it.
                let operations = operations.into_iter().enumerate().map(|(index, operation)| {
                    serde_json::from_value(operation).map_err(|error| refused(index, &error.to_string()))
                });
                Ok(Self::Json(operations.collect::<Result<_, _>>()?))
            }
            "application/merge-patch+json" => Ok(Self::Merge(document()?)),
            "application/strategic-merge-patch+json" if resource.ours.is_none() => {
                Ok(Self::Strategic(document()?))
            }
            _ if resource.ours.is_none() => Err(Status::unsupported_media_type(
                "application/json-patch+json, application/merge-patch+json, application/strategic-merge-patch+json",
            )),
            _ => Err(Status::unsupported_media_type(
                "application/json-patch+json, application/merge-patch+json",
            )),
        }
    }

    /// Changes an object.
    pub(super) fn apply(&self, object: &mut Value) -> Result<(), Status> {
        match self {
            Self::Json(operations) => {
                let mut spent = Spent::default();
                for (index, operation) in operations.iter().enumerate() {
                    let done = fits(object, operation, &mut spent).and_then(|()| step(object, operation));
                    done.map_err(|why| refused(index, &why))?;
                }
            }
            Self::Merge(patch) => json_patch::merge(object, patch),
            Self::Strategic(patch) => strategic::merge(object, patch).map_err(Status::bad_request)?,
        }
        Ok(())
    }
}

/// What the operations of a patch have taken so far.
#[derive(Default)]
struct Spent {
    copied: usize,
    work: usize,
}

/// Whether an operation can be afforded and leaves an object that can be handled: what is put somewhere must not be nested
/// deeper, together with where it is put, than any object may be.
fn fits(object: &Value, operation: &PatchOperation, spent: &mut Spent) -> Result<(), String> {
    let (path, value) = match operation {
        PatchOperation::Add(add) => (&add.path, Some(&add.value)),
        PatchOperation::Replace(replace) => (&replace.path, Some(&replace.value)),
        PatchOperation::Copy(copy) => {
            let value = object.pointer(copy.from.as_str());
            spent.copied = spent.copied.saturating_add(value.map_or(0, body::size));
            (&copy.path, value)
        }
        PatchOperation::Move(moved) => {
            let value = object.pointer(moved.from.as_str());
            spent.work += value.map_or(0, body::count) + behind(object, moved.from.as_str());
            (&moved.path, value)
        }
        PatchOperation::Remove(remove) => (&remove.path, None),
        PatchOperation::Test(_) => return Ok(()),
    };
    spent.work += behind(object, path.as_str());
    if spent.copied > COPIED {
        return Err(format!("the patch copies more than {COPIED} bytes"));
    }
    if spent.work > WORK {
        return Err("the patch moves more than is allowed".to_owned());
    }
    let above = path.as_str().matches('/').count();
    match value.is_some_and(|value| above + body::depth(value) > admit::DEEPEST) {
        true => Err(format!("it is nested deeper than {} levels", admit::DEEPEST)),
        false => Ok(()),
    }
}

/// How many items may have to make room at a path: those of the list that it leads into, if it does.
fn behind(object: &Value, path: &str) -> usize {
    let parent = path.rsplit_once('/').filter(|(_, item)| *item != "-").map(|(parent, _)| parent);
    let list = parent.and_then(|parent| object.pointer(parent)?.as_array());
    list.map_or(0, Vec::len)
}

fn step(object: &mut Value, operation: &PatchOperation) -> Result<(), String> {
    match operation {
        // As kube-apiserver has it: an entry of a map that isn't there is null, and may be replaced. The map must be there.
        PatchOperation::Test(test)
            if test.value.is_null() && is_missing_entry(object, test.path.as_str()) =>
        {
            return Ok(());
        }
        PatchOperation::Replace(replace) if object.pointer(replace.path.as_str()).is_none() => {
            let (parent, name) = replace.path.as_str().rsplit_once('/').unwrap_or_default();
            let parent = object.pointer_mut(parent).and_then(Value::as_object_mut);
            let parent = parent.ok_or_else(|| "the path is not there".to_owned())?;
            parent.insert(name.replace("~1", "/").replace("~0", "~"), replace.value.clone());
            return Ok(());
        }
        _ => {}
    }
    json_patch::patch_unsafe(object, std::slice::from_ref(operation)).map_err(|error| error.to_string())
}

/// Whether a path leads into a map that is there, to an entry that it doesn't have.
fn is_missing_entry(object: &Value, path: &str) -> bool {
    let parent = path.rsplit_once('/').and_then(|(parent, _)| object.pointer(parent));
    parent.is_some_and(Value::is_object) && object.pointer(path).is_none()
}

/// kube-apiserver says no more than this; which operation it was is in the causes.
fn refused(index: usize, why: &str) -> Status {
    let message = "the server rejected our request due to an error in our request";
    let mut status = Status::new(StatusCode::UNPROCESSABLE_ENTITY, "Invalid", message);
    let why = format!("operation {index}: {why}");
    status.details.causes.push(Cause::new("FieldValueInvalid", why, format!("[{index}]")));
    status
}
