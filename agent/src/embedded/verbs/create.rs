//! `create`.

use std::sync::Arc;

use hyper::StatusCode;
use hyper::http::Response;
use serde_json::Value;

use super::{Call, check_namespace, check_size};
use crate::embedded::answer::Answer;
use crate::embedded::bounds::{self, Verb};
use crate::embedded::route::Target;
use crate::embedded::status::Status;
use crate::embedded::store::{Key, Object, Transaction, What};
use crate::embedded::{admit, body, gc};

/// Names that are tried before one that a server makes up counts as taken.
const TRIES: usize = 8;

/// A request that is to become a new object.
pub(super) struct New {
    pub(super) target: Target,
    pub(super) value: Value,
    pub(super) dry_run: bool,
}

impl Call {
    pub(in crate::embedded) async fn create(self, text: &[u8]) -> Result<Response<Answer>, Status> {
        let (resource, version) = (self.target.resource, self.target.version);
        let validation = self.query.field_validation()?;
        let dry_run = self.query.dry_run()?;
        let (value, twice) = body::object(resource, &self.headers, text)?;
        let decoded = admit::decode(resource, version, value, &twice, validation, None)?;
        let mut value = decoded.value;
        place(&self.target, &mut value)?;
        if self.target.name.is_some() {
            // Of ours a path with a name takes new objects too, of that name.
            self.check_name(&value)?;
        }
        let mut warnings = decoded.warnings;
        warnings.extend(admit::warnings(resource, &value));
        warnings.extend(resource.versions[version].deprecated.clone());

        let call = Arc::new(self);
        let inside = call.clone();
        let new = New { target: call.target.clone(), value, dry_run };
        let created = call.inner.store.write(move |tx| inside.insert(tx, new)).await?;
        Ok(call.object(StatusCode::CREATED, &created, &warnings))
    }

    /// Makes the object, inside the writer.
    pub(super) fn insert(&self, tx: &mut Transaction<'_>, new: New) -> Result<Arc<Object>, Status> {
        let New { mut target, mut value, dry_run } = new;
        let resource = target.resource;
        check_namespace(tx, &target)?;
        let given = value["metadata"]["name"].as_str().map(str::to_owned);
        let begin = value["metadata"]["generateName"].as_str().unwrap_or_default().to_owned();
        if given.is_none() && !begin.is_empty() {
            value["metadata"]["name"] = free_name(tx, &target, &begin)?.into();
        }
        let name = value["metadata"]["name"].as_str().unwrap_or_default().to_owned();
        if value["metadata"].get("resourceVersion").is_some() {
            let message = "resourceVersion should not be set on objects to be created";
            return Err(Status::new(StatusCode::INTERNAL_SERVER_ERROR, "", message));
        }
        let value = admit::create(resource, value, tx.now())?;
        target.name = Some(name.clone());
        let key = Key::new(resource.table, target.namespace.as_deref().unwrap_or_default(), &name);
        let mut asked = self.asked(Verb::Create);
        asked.name = &name;
        bounds::may_write(&asked, None, Some(&value), tx)?;
        if let Some(old) = tx.get(&key) {
            let mut status = Status::already_exists(resource, &name);
            if gc::is_deleting(&old.value()) {
                status.message.insert_str(0, "object is being deleted: ");
            }
            return Err(status);
        }
        if dry_run {
            return Ok(Arc::new(Object::new(key, 0, What::Added, &value)));
        }
        let object = tx.put(key, value);
        check_size(&object)?;
        gc::settle(tx, &object);
        Ok(object)
    }
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
