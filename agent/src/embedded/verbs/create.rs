//! `create`.

use std::sync::Arc;

use hyper::StatusCode;
use hyper::http::Response;
use k8s_openapi::jiff::Timestamp;
use serde_json::Value;

use super::{Call, check_namespace, check_size, expire};
use crate::embedded::admit::{self, Decoded};
use crate::embedded::answer::Answer;
use crate::embedded::bounds::{self, Verb};
use crate::embedded::gc;
use crate::embedded::resource::Form;
use crate::embedded::route::Target;
use crate::embedded::status::Status;
use crate::embedded::store::{Draft, Key, Object, Transaction, What};

/// Names that are tried before one that a server makes up counts as taken.
const TRIES: usize = 8;

/// A request that is to become a new object.
pub(super) struct New {
    target: Target,
    value: Value,
    dry_run: bool,
    /// What it becomes, where that was found before the writer was asked.
    ready: Option<Ready>,
}

impl New {
    /// Finds what it becomes. What is refused here is refused once more inside the writer, in its turn after what is asked of
    /// the store.
    pub(super) fn of(target: Target, value: Value, dry_run: bool) -> Self {
        let ready = ready(&target, value.clone(), Timestamp::now()).ok();
        Self { target, value, dry_run, ready }
    }
}

/// A new object as it is to be stored, and its text.
struct Ready {
    key: Key,
    value: Value,
    draft: Draft,
}

impl Call {
    pub(in crate::embedded) async fn create(self, text: &[u8]) -> Result<Response<Answer>, Status> {
        let dry_run = self.query.dry_run("CreateOptions")?;
        let Decoded { mut value, mut warnings } = self.decoded(text)?;
        place(&self.target, &mut value)?;
        if self.target.name.is_some() {
            // Of ours a path with a name takes new objects too, of that name.
            self.check_name(&value)?;
        }
        let told = self.deprecated();
        warnings.extend(admit::warnings(self.target.resource, &value));
        warnings.extend(told);

        let call = Arc::new(self);
        let inside = call.clone();
        let new = New::of(call.target.clone(), value, dry_run);
        let created = call.inner.store.write(move |tx| inside.insert(tx, new)).await?;
        Ok(call.object(StatusCode::CREATED, &created, &warnings))
    }

    /// Makes the object, inside the writer.
    pub(super) fn insert(&self, tx: &mut Transaction<'_>, new: New) -> Result<Arc<Object>, Status> {
        let New { target, mut value, dry_run, ready: found } = new;
        let resource = target.resource;
        check_namespace(tx, &target)?;
        let begin = value["metadata"]["generateName"].as_str().unwrap_or_default().to_owned();
        let is_generated = value["metadata"].get("name").is_none() && !begin.is_empty();
        let found = found.filter(|found| !is_generated || tx.get(&found.key).is_none());
        let Ready { key, value, draft } = match found {
            Some(found) => found,
            None => {
                if is_generated {
                    value["metadata"]["name"] = free_name(tx, &target, &begin)?.into();
                }
                ready(&target, value, tx.now())?
            }
        };
        let mut asked = self.asked(Verb::Create);
        asked.name = &key.name;
        bounds::may_write(&asked, None, Some(&value), tx)?;
        if let Some(old) = tx.get(&key) {
            let mut status = Status::already_exists(resource, &key.name);
            if gc::is_deleting(&old.value()) {
                status.message.insert_str(0, "object is being deleted: ");
            }
            return Err(status);
        }
        if dry_run {
            return Ok(Arc::new(Object::unstored(key, 0, What::Added, &value)));
        }
        if matches!(resource.form, Form::CoreEvent | Form::NewEvent) {
            expire::events(tx, resource.table);
        }
        let object = tx.put_draft(key, draft);
        check_size(&object)?;
        gc::settle(tx, &object);
        Ok(object)
    }
}

/// What a new object is to be stored as. A name that is to be made up is made up here, where it has none.
fn ready(target: &Target, mut value: Value, now: Timestamp) -> Result<Ready, Status> {
    let metadata = &mut value["metadata"];
    let begin = metadata["generateName"].as_str().unwrap_or_default();
    if metadata.get("name").is_none() && !begin.is_empty() {
        metadata["name"] = admit::meta::generated(begin).into();
    }
    if metadata.get("resourceVersion").is_some() {
        let message = "resourceVersion should not be set on objects to be created";
        return Err(Status::new(StatusCode::INTERNAL_SERVER_ERROR, "", message));
    }
    let name = metadata["name"].as_str().unwrap_or_default();
    let key = Key::new(target.resource.table, target.namespace.as_deref().unwrap_or_default(), name);
    let value = admit::create(target.resource, value, now)?;
    let draft = Draft::new(&key, &value);
    Ok(Ready { key, value, draft })
}

/// Puts the path's namespace into an object, or finds that it says another.
pub(super) fn place(target: &Target, value: &mut Value) -> Result<(), Status> {
    let given = value["metadata"]["namespace"].as_str().unwrap_or_default();
    match target.namespace.as_deref() {
        Some(namespace) if given.is_empty() || given == namespace => {
            value["metadata"]["namespace"] = namespace.into();
            Ok(())
        }
        None => {
            admit::remove(&mut value["metadata"], "namespace");
            Ok(())
        }
        _ => Err(Status::bad_request(
            "the namespace of the provided object does not match the namespace sent on the request",
        )),
    }
}

fn free_name(tx: &Transaction<'_>, target: &Target, begin: &str) -> Result<String, Status> {
    let namespace = target.namespace.as_deref().unwrap_or_default();
    let mut name = String::new();
    for _ in 0..TRIES {
        name = admit::meta::generated(begin);
        if tx.get(&Key::new(target.resource.table, namespace, &name)).is_none() {
            return Ok(name);
        }
    }
    Err(Status::already_exists(target.resource, &name))
}
