//! `update` and `patch`: both make an object into another inside the writer.

use std::sync::Arc;

use hyper::StatusCode;
use hyper::http::Response;
use serde_json::Value;

use super::create::{New, place};
use super::{Call, check_size};
use crate::embedded::admit::{self, meta};
use crate::embedded::answer::Answer;
use crate::embedded::bounds::{self, Verb};
use crate::embedded::patch::Patch;
use crate::embedded::resource::Form;
use crate::embedded::status::{Cause, Status};
use crate::embedded::store::{Object, Transaction, What};
use crate::embedded::{body, gc, shape};

/// What became of an update.
struct Updated {
    object: Arc<Object>,
    created: bool,
    warnings: Vec<String>,
}

impl Call {
    pub(in crate::embedded) async fn update(self, text: &[u8]) -> Result<Response<Answer>, Status> {
        let (resource, version) = (self.target.resource, self.target.version);
        let validation = self.query.field_validation()?;
        let dry_run = self.query.dry_run()?;
        let (value, twice) = body::object(resource, &self.headers, text)?;
        let decoded = admit::decode(resource, version, value, &twice, validation, None)?;
        let mut value = decoded.value;
        self.check_name(&value)?;
        place(&self.target, &mut value)?;
        let mut warnings = decoded.warnings;
        warnings.extend(resource.versions[version].deprecated.clone());
        self.change(move |call, tx| {
            let Some(old) = tx.get(&call.key()) else {
                return call.update_of_nothing(tx, value, dry_run, warnings);
            };
            meta::guard(resource, &old.key.name, &value["metadata"], &old.value()["metadata"])?;
            call.replace(tx, &old, value, dry_run, Verb::Update, warnings)
        })
        .await
    }

    pub(in crate::embedded) async fn patch(self, text: &[u8]) -> Result<Response<Answer>, Status> {
        let (resource, version) = (self.target.resource, self.target.version);
        let validation = self.query.field_validation()?;
        let dry_run = self.query.dry_run()?;
        let patch = Patch::parse(resource, &body::media_type(&self.headers), text)?;
        let shown = String::from_utf8_lossy(text).into_owned();
        self.change(move |call, tx| {
            let key = call.key();
            let old = tx.get(&key).ok_or_else(|| Status::not_found(resource, &key.name))?;
            let before = shape::value(resource, version, &old);
            let mut value = before.clone();
            patch.apply(&mut value)?;
            let decoded = admit::decode(resource, version, value, &[], validation, Some(&shown))?;
            let mut value = decoded.value;
            call.check_patched(&before, &mut value)?;
            let mut warnings = decoded.warnings;
            warnings.extend(resource.versions[version].deprecated.clone());
            call.replace(tx, &old, value, dry_run, Verb::Patch, warnings)
        })
        .await
    }

    async fn change(
        self,
        change: impl FnOnce(&Self, &mut Transaction<'_>) -> Result<Updated, Status> + Send + 'static,
    ) -> Result<Response<Answer>, Status> {
        let call = Arc::new(self);
        let inside = call.clone();
        let updated = call.inner.store.write(move |tx| change(&inside, tx)).await?;
        let code = if updated.created { StatusCode::CREATED } else { StatusCode::OK };
        Ok(call.object(code, &updated.object, &updated.warnings))
    }

    /// Puts `new` in the place of `old`, as far as a client may say; an object that waited only for its finalizers goes.
    fn replace(
        &self,
        tx: &mut Transaction<'_>,
        old: &Arc<Object>,
        new: Value,
        dry_run: bool,
        verb: Verb,
        mut warnings: Vec<String>,
    ) -> Result<Updated, Status> {
        let resource = self.target.resource;
        let before = old.value();
        let new = admit::update(resource, &before, new, self.target.status)?;
        bounds::may_write(&self.asked(verb), Some(&before), Some(&new), tx)?;
        warnings.extend(admit::warnings(resource, &new));
        let updated = |object| Updated { object, created: false, warnings };
        let goes = gc::is_deleting(&new) && gc::finalizers(&new).is_empty();
        // Nothing changes: no write, no new revision, nothing to watch.
        if same(&new, &before) && !goes {
            return Ok(updated(old.clone()));
        }
        if dry_run {
            return Ok(updated(Arc::new(Object::new(old.key.clone(), old.revision, What::Modified, &new))));
        }
        if goes && resource.form != Form::Namespace {
            tx.frees();
            let last = gc::removed(tx, &old.key, new).unwrap_or_else(|| old.clone());
            return Ok(updated(last));
        }
        if gc::is_deleting(&new) {
            tx.frees();
        }
        let object = tx.put(old.key.clone(), new);
        check_size(&object)?;
        gc::settle(tx, &object);
        Ok(updated(object))
    }

    /// An update of what isn't there: Events and Leases are made by it, as kube-apiserver has it.
    fn update_of_nothing(
        &self,
        tx: &mut Transaction<'_>,
        mut value: Value,
        dry_run: bool,
        warnings: Vec<String>,
    ) -> Result<Updated, Status> {
        let resource = self.target.resource;
        let name = self.target.name.as_deref().unwrap_or_default();
        let made_so = matches!(resource.form, Form::Lease | Form::CoreEvent | Form::NewEvent);
        if !made_so || value["metadata"].get("uid").is_some() {
            return Err(Status::not_found(resource, name));
        }
        if value["metadata"].get("resourceVersion").is_some() {
            return Err(Status::not_found(resource, name));
        }
        value["metadata"]["name"] = name.into();
        let new = New { target: self.target.clone(), value, dry_run };
        Ok(Updated { object: self.insert(tx, new)?, created: true, warnings })
    }

    /// The name in a body is that of the path.
    pub(super) fn check_name(&self, value: &Value) -> Result<(), Status> {
        let name = self.target.name.as_deref().unwrap_or_default();
        match value["metadata"]["name"].as_str() {
            None => Err(Status::bad_request(format!(
                "the name of the object ({name} based on URL) was undeterminable: name must be provided"
            ))),
            Some(given) if given != name => Err(Status::bad_request(format!(
                "the name of the object ({given}) does not match the name on the URL ({name})"
            ))),
            Some(_) => Ok(()),
        }
    }

    /// What a patch can't change, and what it must not be based on.
    fn check_patched(&self, before: &Value, value: &mut Value) -> Result<(), Status> {
        let resource = self.target.resource;
        let name = self.target.name.as_deref().unwrap_or_default();
        let (old, new) = (&before["metadata"], &value["metadata"]);
        if new["name"] != old["name"] {
            return Err(Status::bad_request(format!(
                "the name of the object ({}) does not match the name on the URL ({name})",
                new["name"].as_str().unwrap_or_default()
            )));
        }
        if new["namespace"] != old["namespace"] {
            return Err(Status::bad_request(
                "the namespace of the provided object does not match the namespace sent on the request",
            ));
        }
        let revision = &new["resourceVersion"];
        if !revision.is_null() && *revision != old["resourceVersion"] {
            return Err(Status::stale(resource, name));
        }
        if new["uid"] != old["uid"] && !new["uid"].is_null() {
            let cause = Cause::invalid("metadata.uid", &new["uid"], "field is immutable");
            return Err(Status::invalid(resource, name, vec![cause]));
        }
        Ok(())
    }
}

/// Whether two objects say the same, in whatever order.
fn same(new: &Value, old: &Value) -> bool {
    let mut new = new.clone();
    new["apiVersion"] = old["apiVersion"].clone();
    new["kind"] = old["kind"].clone();
    new == *old
}
