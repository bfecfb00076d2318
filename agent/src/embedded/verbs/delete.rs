//! `delete` and `deletecollection`.

use std::sync::Arc;

use hyper::StatusCode;
use hyper::http::{HeaderMap, Response};
use serde::Deserialize;
use serde_json::{Value, json};

use super::Call;
use crate::embedded::answer::{self, Answer};
use crate::embedded::body;
use crate::embedded::bounds::{self, Verb};
use crate::embedded::gc::{self, Deleted, Propagation};
use crate::embedded::query;
use crate::embedded::resource::{Form, Resource};
use crate::embedded::selector::Selector;
use crate::embedded::shape::ListMeta;
use crate::embedded::status::{Cause, Status};
use crate::embedded::store::{Object, Transaction};

/// What the options of a delete are called.
const OPTIONS: &str = "DeleteOptions";

/// Namespaces that agents rely on.
const KEPT: [&str; 2] = ["default", "kube-node-lease"];

/// `DeleteOptions` as they are sent. A field of a wrong type is an error, never one that isn't there: it may be what was to
/// keep the object.
#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct Given {
    kind: Option<String>,
    dry_run: Option<Vec<Option<String>>>,
    preconditions: Option<Preconditions>,
    propagation_policy: Option<String>,
    orphan_dependents: Option<bool>,
    // Read for their types alone: nothing here waits, and no object is unreadable.
    #[serde(rename = "apiVersion")]
    _api_version: Option<String>,
    #[serde(rename = "gracePeriodSeconds")]
    _grace_period: Option<i64>,
    #[serde(rename = "ignoreStoreReadErrorWithClusterBreakingPotential")]
    _ignore_store_read_error: Option<bool>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct Preconditions {
    uid: Option<String>,
    resource_version: Option<String>,
}

/// How to delete, and what must be so.
#[derive(Clone, Debug)]
struct Options {
    propagation: Propagation,
    dry_run: bool,
    uid: Option<String>,
    revision: Option<String>,
}

impl Call {
    pub(in crate::embedded) async fn delete(self, text: &[u8]) -> Result<Response<Answer>, Status> {
        let options = self.options(text)?;
        let call = Arc::new(self);
        let inside = call.clone();
        let deleted = call
            .inner
            .store
            .write(move |tx| {
                let (key, resource) = (inside.key(), inside.target.resource);
                let object = tx.get(&key).ok_or_else(|| Status::not_found(resource, &key.name))?;
                inside.delete_one(tx, &object, &options, Verb::Delete)
            })
            .await?;
        match deleted {
            Deleted::Waits(object) => Ok(call.object(StatusCode::OK, &object, &[])),
            Deleted::Gone(object) if call.target.resource.form == Form::Namespace => {
                Ok(call.object(StatusCode::OK, &object, &[]))
            }
            Deleted::Gone(object) => Ok(answer::json(StatusCode::OK, &success(&call, &object))),
        }
    }

    pub(in crate::embedded) async fn delete_collection(
        self,
        text: &[u8],
    ) -> Result<Response<Answer>, Status> {
        let options = self.options(text)?;
        let labels = self.query.get("labelSelector").unwrap_or_default();
        let fields = self.query.get("fieldSelector").unwrap_or_default();
        let selector = Selector::parse(self.target.resource, labels, fields)?;
        let limit = self.query.number("limit")?.filter(|limit| *limit > 0);
        let limit = limit.and_then(|limit| usize::try_from(limit).ok()).unwrap_or(usize::MAX);
        let call = Arc::new(self);
        let inside = call.clone();
        let (objects, revision) = call
            .inner
            .store
            .write(move |tx| {
                let target = &inside.target;
                let found = tx.range(target.resource.table, target.namespace.as_deref());
                let chosen = found.into_iter().filter(|object| selector.matches(&object.key, &object.facts));
                let (mut gone, mut revision) = (Vec::new(), 0);
                for object in chosen.take(limit) {
                    // One may have gone with another before it.
                    let Some(object) = tx.get(&object.key) else { continue };
                    let (Deleted::Gone(last) | Deleted::Waits(last)) =
                        inside.delete_one(tx, &object, &options, Verb::DeleteCollection)?;
                    revision = revision.max(last.revision);
                    gone.push(object);
                }
                Ok((gone, revision))
            })
            .await?;
        let meta = ListMeta { revision, ..ListMeta::default() };
        Ok(call.shape.list(call.target.resource, call.target.version, objects, &meta))
    }

    fn delete_one(
        &self,
        tx: &mut Transaction<'_>,
        object: &Arc<Object>,
        options: &Options,
        verb: Verb,
    ) -> Result<Deleted, Status> {
        let (resource, name) = (self.target.resource, &*object.key.name);
        let value = object.value();
        let mut asked = self.asked(verb);
        asked.name = name;
        bounds::may_write(&asked, Some(&value), None, tx)?;
        if let Some(uid) = options.uid.as_ref().filter(|uid| **uid != object.facts.uid) {
            let why = format!(
                "the UID in the precondition ({uid}) does not match the UID in record ({}). The object might have been \
                 deleted and then recreated",
                object.facts.uid
            );
            return Err(unmet(resource, name, &why));
        }
        let revision = object.revision.to_string();
        if let Some(asked) = options.revision.as_ref().filter(|asked| **asked != revision) {
            let why = format!(
                "the ResourceVersion in the precondition ({asked}) does not match the ResourceVersion in record \
                 ({revision}). The object might have been modified"
            );
            return Err(unmet(resource, name, &why));
        }
        if resource.form == Form::Namespace && KEPT.contains(&name) {
            return Err(Status::forbidden(resource, name, "this namespace may not be deleted"));
        }
        if options.dry_run {
            let waits = !gc::finalizers(&value).is_empty();
            return Ok(if waits { Deleted::Waits(object.clone()) } else { Deleted::Gone(object.clone()) });
        }
        Ok(gc::delete(tx, object, options.propagation))
    }

    /// `DeleteOptions`, of the body, or of the query where there is none.
    fn options(&self, text: &[u8]) -> Result<Options, Status> {
        let given = if text.is_empty() { self.asked_for()? } else { Given::read(&self.headers, text)? };
        let dry: Vec<&str> =
            given.dry_run.iter().flatten().map(|word| word.as_deref().unwrap_or_default()).collect();
        let guards = given.preconditions.unwrap_or_default();
        Ok(Options {
            propagation: propagation(given.propagation_policy.as_deref(), given.orphan_dependents)?,
            // Of the query too, where a body says nothing of it: whoever asks for a dry run wants nothing deleted.
            dry_run: query::dry_run(OPTIONS, &dry)? || self.query.dry_run(OPTIONS)?,
            uid: guards.uid,
            revision: guards.resource_version,
        })
    }

    /// The options of the query, but for `dryRun`.
    fn asked_for(&self) -> Result<Given, Status> {
        self.query.number("gracePeriodSeconds")?;
        Ok(Given {
            propagation_policy: self.query.given("propagationPolicy").map(str::to_owned),
            orphan_dependents: self.query.maybe_flag("orphanDependents")?,
            ..Given::default()
        })
    }
}

impl Given {
    fn read(headers: &HeaderMap, text: &[u8]) -> Result<Self, Status> {
        let wrong = |why: &dyn std::fmt::Display| {
            Status::bad_request(format!("the body is not a DeleteOptions object: {why}"))
        };
        let value = body::delete_options(headers, text)?;
        if value.is_null() {
            return Ok(Self::default());
        }
        // A list would do for serde, its items taken for the fields in their order.
        let guards = value.get("preconditions").unwrap_or(&Value::Null);
        if !value.is_object() || !(guards.is_null() || guards.is_object()) {
            return Err(wrong(&"a map is expected"));
        }
        let given: Self = serde_json::from_value(value).map_err(|error| wrong(&error))?;
        match given.kind.as_deref().filter(|kind| !matches!(*kind, "" | OPTIONS)) {
            Some(kind) => Err(wrong(&format!("it is a {kind}"))),
            None => Ok(given),
        }
    }
}

fn propagation(policy: Option<&str>, orphan: Option<bool>) -> Result<Propagation, Status> {
    let refused = |cause| Err(query::options(OPTIONS, vec![cause]));
    match (policy, orphan) {
        (None, Some(true)) | (Some("Orphan"), None) => Ok(Propagation::Orphan),
        (None, _) | (Some("Background"), None) => Ok(Propagation::Background),
        (Some("Foreground"), None) => Ok(Propagation::Foreground),
        (Some(policy), Some(_)) => {
            let why = "orphanDependents and deletionPropagation cannot be both set";
            refused(Cause::invalid("propagationPolicy", &policy.into(), why))
        }
        (Some(other), None) => {
            let supported = r#"supported values: "Foreground", "Background", "Orphan", "nil""#;
            let message = format!("Unsupported value: {other:?}: {supported}");
            refused(Cause::new("FieldValueNotSupported", message, "propagationPolicy"))
        }
    }
}

/// A precondition that isn't met: kube-apiserver speaks of the kind here, not of the resource.
fn unmet(resource: &Resource, name: &str, why: &str) -> Status {
    let mut status = Status::conflict(resource, name, why);
    status.message = status.message.replacen(&resource.qualified(), &resource.qualified_kind(), 1);
    status
}

fn success(call: &Call, object: &Object) -> Value {
    let resource = call.target.resource;
    let mut details = json!({"name": object.key.name});
    if !resource.group.is_empty() {
        details["group"] = resource.group.into();
    }
    details["kind"] = resource.plural.as_str().into();
    details["uid"] = object.facts.uid.as_str().into();
    json!({"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success", "details": details})
}
