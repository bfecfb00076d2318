//! Writing a ledger: one write of a pool's status, guarded by all that it was decided on.
//!
//! A JSON patch tests the object's resourceVersion and UID, and the sequence and the hold besides: a store restored from a
//! backup counts its versions up to the same values again (rule 6). Used by the controller, and by agents that serve
//! themselves.

use std::sync::Arc;

use crds::{NodeIPPool, NodeIPPoolStatus};
use json_patch::Patch as JsonPatch;
use kube::api::{Api, Patch, PatchParams};
use kube::{Client, ResourceExt};
use policy::claim::Ledger;
use policy::pool::{Barred, Pool};
use serde_json::{Value, json};

use crate::api::error::{Trouble, trouble, words};
use crate::api::{guard, list};
use crate::metrics::ledger_written;
use crate::records;

/// What became of a write.
pub(crate) enum Written {
    Done(Box<NodeIPPool>),
    /// Somebody else wrote first: here is what there is now, if there is still a pool.
    Overtaken(Option<Box<NodeIPPool>>),
    /// The API refuses this status.
    Refused(String),
}

/// Writes `next` in place of the ledger that `object` has, and what else `says` makes of the status that follows from it: it is
/// given the one of before, and that one.
pub(crate) async fn write(
    client: &Client,
    object: &Arc<NodeIPPool>,
    pool: &Pool,
    barred: &Barred,
    next: &Ledger,
    says: impl FnOnce(&NodeIPPoolStatus, &mut NodeIPPoolStatus),
) -> Result<Written, kube::Error> {
    let before = object.status.clone().unwrap_or_default();
    let mut status = match records::pool::status(next, pool, barred, &before) {
        Ok(status) => status,
        Err(why) => return Ok(Written::Refused(why.to_string())),
    };
    says(&before, &mut status);
    let status = serde_json::to_value(status).map_err(kube::Error::SerdeError)?;
    let api: Api<NodeIPPool> = Api::all(client.clone());
    let name = object.name_any();
    let patch = Patch::Json::<()>(guarded(object, status));
    match api.patch_status(&name, &PatchParams::default(), &patch).await {
        Ok(written) => {
            crate::fault::point("ledger-written");
            ledger_written(&name, true);
            Ok(Written::Done(Box::new(written)))
        }
        Err(error) => match trouble(&error) {
            Trouble::NotFound => Ok(Written::Overtaken(None)),
            Trouble::Conflict | Trouble::Refused => match list::one(&api, &name).await? {
                Some(now) if same(&now, object) => Ok(Written::Refused(words(&error))),
                now => {
                    ledger_written(&name, false);
                    Ok(Written::Overtaken(now.map(Box::new)))
                }
            },
            _ => Err(error),
        },
    }
}

/// What a host says besides its entries: conditions, capacity and what is drained are a leader's, and stay as they are. So no
/// more is left than there was by a leader's word, also where ranges have been added since; the next leader counts anew.
pub(crate) fn as_a_host(before: &NodeIPPoolStatus, status: &mut NodeIPPoolStatus) {
    status.conditions.clone_from(&before.conditions);
    status.capacity = before.capacity;
    status.available =
        status.available.zip(before.capacity).map(|(available, capacity)| available.min(capacity));
}

/// Writes what is said of a pool, and nothing else: of one whose ledger can't be read. Where somebody else wrote first,
/// that is looked at anew.
pub(crate) async fn say(
    client: &Client,
    object: &NodeIPPool,
    conditions: Vec<crds::Condition>,
) -> Result<Option<NodeIPPool>, kube::Error> {
    let conditions = json!(conditions);
    let mut operations = vec![
        guard::same(&["metadata", "uid"], json!(object.uid())),
        guard::same(&["metadata", "resourceVersion"], json!(object.resource_version())),
    ];
    operations.push(match &object.status {
        Some(_) => guard::put(&["status", "conditions"], conditions),
        None => guard::put(&["status"], json!({"conditions": conditions})),
    });
    let api: Api<NodeIPPool> = Api::all(client.clone());
    let patch = Patch::Json::<()>(guard::patch(operations));
    match api.patch_status(&object.name_any(), &PatchParams::default(), &patch).await {
        Ok(now) => Ok(Some(now)),
        Err(error) => match trouble(&error) {
            Trouble::NotFound | Trouble::Conflict | Trouble::Refused => Ok(None),
            _ => Err(error),
        },
    }
}

fn same(now: &NodeIPPool, then: &NodeIPPool) -> bool {
    now.resource_version() == then.resource_version() && now.uid() == then.uid()
}

fn guarded(object: &NodeIPPool, status: Value) -> JsonPatch {
    let mut operations = vec![
        guard::same(&["metadata", "uid"], json!(object.uid())),
        guard::same(&["metadata", "resourceVersion"], json!(object.resource_version())),
    ];
    if let Some(before) = &object.status {
        operations.push(guard::same(&["status", "sequence"], json!(before.sequence)));
        if let Some(hold) = &before.hold {
            operations.push(guard::same(&["status", "hold"], json!(hold)));
        }
    }
    operations.push(guard::put(&["status"], status));
    guard::patch(operations)
}
