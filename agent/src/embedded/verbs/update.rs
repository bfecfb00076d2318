//! `update` and `patch`: both make an object into another.

use std::sync::Arc;

use hyper::StatusCode;
use hyper::http::Response;
use serde_json::Value;

use super::create::{New, place};
use super::{Call, check_size};
use crate::embedded::admit::{self, Decoded, meta};
use crate::embedded::answer::Answer;
use crate::embedded::bounds::{self, Verb};
use crate::embedded::patch::Patch;
use crate::embedded::resource::Form;
use crate::embedded::status::{Cause, Status};
use crate::embedded::store::{Draft, Object, Transaction, What};
use crate::embedded::{body, gc, shape};

#[cfg(test)]
mod tests;

/// How often an object may be found changed, by a deletion or what follows from one, before whoever wants to change it has to
/// come again.
const TRIES: usize = 8;

/// What became of an update.
struct Updated {
    object: Arc<Object>,
    created: bool,
    warnings: Vec<String>,
}

/// What a client sends makes of an object: its content, and what is worth a word. Must give the same for the same object.
type Make = dyn Fn(&Call, &Object, &Value) -> Result<(Value, Vec<String>), Status> + Send + Sync;

/// What an object is to become, found from what it was, and so good only while it still is that.
struct Change {
    old: Arc<Object>,
    before: Value,
    new: Value,
    warnings: Vec<String>,
    /// The text, where it is to be stored.
    draft: Option<Draft>,
    /// It waited only for its finalizers, and has none any more.
    goes: bool,
}

/// What the writer is asked for.
enum Ready {
    Change(Change),
    New(New, Vec<String>),
}

impl Call {
    pub(in crate::embedded) async fn update(self, text: &[u8]) -> Result<Response<Answer>, Status> {
        let dry_run = self.query.dry_run("UpdateOptions")?;
        let Decoded { mut value, mut warnings } = self.decoded(text)?;
        warnings.extend(self.deprecated());
        self.check_name(&value)?;
        place(&self.target, &mut value)?;
        let nothing = (value.clone(), warnings.clone());
        let make = move |call: &Self, old: &Object, before: &Value| {
            meta::guard(call.target.resource, &old.key.name, &value["metadata"], &before["metadata"])?;
            Ok((value.clone(), warnings.clone()))
        };
        self.change(Verb::Update, dry_run, Box::new(make), Some(nothing)).await
    }

    pub(in crate::embedded) async fn patch(self, text: &[u8]) -> Result<Response<Answer>, Status> {
        let validation = self.query.field_validation()?;
        let dry_run = self.query.dry_run("PatchOptions")?;
        let patch = Patch::parse(self.target.resource, &body::media_type(&self.headers), text)?;
        let shown = String::from_utf8_lossy(text).into_owned();
        let make = move |call: &Self, old: &Object, _: &Value| {
            let (resource, version) = (call.target.resource, call.target.version);
            let before = shape::value(resource, version, old);
            let mut value = before.clone();
            patch.apply(&mut value)?;
            let Decoded { mut value, mut warnings } =
                admit::decode(resource, version, value, &[], validation, Some(&shown))?;
            call.check_patched(&before, &mut value)?;
            warnings.extend(call.deprecated());
            Ok((value, warnings))
        };
        self.change(Verb::Patch, dry_run, Box::new(make), None).await
    }

    /// Changes an object. What it becomes is found here, beside other requests and never by the writer, which everybody waits
    /// for: it only looks whether the object still is what it was, and hands it back if not. Those who change one object do
    /// so in turn, so that is rare.
    ///
    /// `nothing` is what is made where there is nothing yet, of kinds that are made so.
    async fn change(
        self,
        verb: Verb,
        dry_run: bool,
        make: Box<Make>,
        nothing: Option<(Value, Vec<String>)>,
    ) -> Result<Response<Answer>, Status> {
        let key = self.key();
        let call = Arc::new(self);
        let _turn = call.inner.store.turn(&key).await;
        for _ in 0..TRIES {
            let old = call.inner.store.read().get(&key).cloned();
            // A refusal is about what is committed: it is an answer.
            let ready = match (old, &nothing) {
                (Some(old), _) => Ready::Change(call.prepare(&old, &make, dry_run)?),
                (None, Some((value, warnings))) => {
                    Ready::New(call.of_nothing(value.clone(), dry_run)?, warnings.clone())
                }
                (None, None) => return Err(Status::not_found(call.target.resource, &key.name)),
            };
            let (inside, key) = (call.clone(), key.clone());
            let write = move |tx: &mut Transaction<'_>| match (tx.get(&key), ready) {
                (None, Ready::New(new, warnings)) => {
                    Ok(Some(Updated { object: inside.insert(tx, new)?, created: true, warnings }))
                }
                (Some(now), Ready::Change(change)) if now.revision == change.old.revision => {
                    inside.replace(tx, change, dry_run, verb).map(Some)
                }
                _ => Ok(None),
            };
            if let Some(updated) = call.inner.store.write(write).await? {
                let code = if updated.created { StatusCode::CREATED } else { StatusCode::OK };
                return Ok(call.object(code, &updated.object, &updated.warnings));
            }
        }
        Err(Status::stale(call.target.resource, &key.name))
    }

    /// Finds what an object is to become, as far as a client may say. Nothing but the object is looked at.
    fn prepare(&self, old: &Arc<Object>, make: &Make, dry_run: bool) -> Result<Change, Status> {
        let resource = self.target.resource;
        let before = old.value();
        let (new, mut warnings) = make(self, old, &before)?;
        let new = admit::update(resource, &before, new, self.target.status)?;
        warnings.extend(admit::warnings(resource, &new));
        let goes = gc::is_deleting(&new) && gc::finalizers(&new).is_empty();
        // Nothing changes: no write, no new revision, nothing to watch.
        let writes = goes || !same(&new, &before);
        let draft = (writes && !dry_run).then(|| Draft::new(&old.key, &new));
        Ok(Change { old: old.clone(), before, new, warnings, draft, goes })
    }

    /// Puts an object in the place of what it was, inside the writer; one that waited only for its finalizers goes.
    fn replace(
        &self,
        tx: &mut Transaction<'_>,
        change: Change,
        dry_run: bool,
        verb: Verb,
    ) -> Result<Updated, Status> {
        let Change { old, before, new, warnings, draft, goes } = change;
        bounds::may_write(&self.asked(verb), Some(&before), Some(&new), tx)?;
        let updated = |object| Updated { object, created: false, warnings };
        let Some(draft) = draft else {
            let shown = || Arc::new(Object::unstored(old.key.clone(), old.revision, What::Modified, &new));
            return Ok(updated(if dry_run && !same(&new, &before) { shown() } else { old }));
        };
        if goes && self.target.resource.form != Form::Namespace {
            tx.frees();
            let last = gc::removed(tx, &old.key, &new).unwrap_or(old);
            return Ok(updated(last));
        }
        if gc::is_deleting(&new) {
            tx.frees();
        }
        let object = tx.put_draft(old.key.clone(), draft);
        check_size(&object)?;
        gc::settle(tx, &object);
        Ok(updated(object))
    }

    /// An update of what isn't there: Events and Leases are made by it, as kube-apiserver has it.
    fn of_nothing(&self, mut value: Value, dry_run: bool) -> Result<New, Status> {
        let resource = self.target.resource;
        let name = self.target.name.as_deref().unwrap_or_default();
        let made_so = matches!(resource.form, Form::Lease | Form::CoreEvent | Form::NewEvent);
        let metadata = &value["metadata"];
        if !made_so || metadata.get("uid").is_some() || metadata.get("resourceVersion").is_some() {
            return Err(Status::not_found(resource, name));
        }
        value["metadata"]["name"] = name.into();
        Ok(New::of(self.target.clone(), value, dry_run))
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
        self.check_name(value)?;
        place(&self.target, value)?;
        let (old, new) = (&before["metadata"], &value["metadata"]);
        meta::guard_revision(resource, name, new, old)?;
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
