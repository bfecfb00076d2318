//! Slices in the API: made, written, given back. Each write is guarded by what was read. Used by agents for their own, and by
//! the controller for those of Nodes that are gone. Nothing is decided here.

use std::sync::Arc;

use crds::NodeIPSlice;
use crds::names::finalizer;
use kube::api::{Api, DeleteParams, ListParams, Patch, PatchParams, PostParams, Preconditions};
use kube::{Client, ResourceExt};
use policy::claim::{Ledger, NodeName, PoolName};
use serde_json::json;

use super::error::{Trouble, trouble, words};
use super::{guard, list};
use crate::fault;
use crate::records;

/// What became of making one.
pub(crate) enum Made {
    Done(Box<NodeIPSlice>),
    /// There is one of that name: as it is, if it still is.
    Exists(Option<Box<NodeIPSlice>>),
    /// The API will not have it: the pool stopped giving, say.
    Refused(String),
}

/// What became of a write.
pub(crate) enum Written {
    Done(Box<NodeIPSlice>),
    /// Somebody else wrote first, or it is gone.
    Overtaken,
    Refused(String),
}

fn api(client: &Client) -> Api<NodeIPSlice> {
    Api::all(client.clone())
}

/// The slices of a pool.
pub(crate) async fn of_pool(client: &Client, pool: &PoolName) -> Result<Vec<NodeIPSlice>, kube::Error> {
    let select = ListParams::default().labels(&records::slice::of_pool(pool));
    let (all, _) = list::all(&api(client), &select).await?;
    Ok(all.into_iter().filter(|slice| slice.spec.pool == pool.as_str()).collect())
}

/// Those that bear a node's name, of every pool.
pub(crate) async fn of_node(client: &Client, node: &NodeName) -> Result<Vec<NodeIPSlice>, kube::Error> {
    let select = ListParams { label_selector: records::slice::of_node(node), ..ListParams::default() };
    let (all, _) = list::all(&api(client), &select).await?;
    Ok(all.into_iter().filter(|slice| slice.spec.node == node.as_str()).collect())
}

pub(crate) async fn one(client: &Client, name: &str) -> Result<Option<NodeIPSlice>, kube::Error> {
    list::one(&api(client), name).await
}

/// Makes one: whoever succeeds has the block.
pub(crate) async fn make(client: &Client, object: &NodeIPSlice) -> Result<Made, kube::Error> {
    match api(client).create(&PostParams::default(), object).await {
        Ok(made) => {
            fault::point("slice-made");
            Ok(Made::Done(Box::new(made)))
        }
        Err(error) => match trouble(&error) {
            Trouble::Exists => Ok(Made::Exists(one(client, &object.name_any()).await?.map(Box::new))),
            Trouble::Refused | Trouble::Forbidden => Ok(Made::Refused(words(&error))),
            _ => Err(error),
        },
    }
}

/// Writes a slice's ledger in place of the one that `object` has.
pub(crate) async fn write(
    client: &Client,
    object: &NodeIPSlice,
    next: &Ledger,
) -> Result<Written, kube::Error> {
    // An agent may have written any number into its own slice, which has to end all the same.
    let next = Ledger { sequence: next.sequence.min(i64::MAX.unsigned_abs()), ..next.clone() };
    let mut status = match records::pool::slice_status(&next) {
        Ok(status) => status,
        Err(why) => return Ok(Written::Refused(why.to_string())),
    };
    // What an annotation asks for is not begun by this.
    status.hold = object.status.as_ref().and_then(|status| status.hold.clone());
    let mut writes = vec![
        guard::same(&["metadata", "uid"], json!(object.uid())),
        guard::same(&["metadata", "resourceVersion"], json!(object.resource_version())),
    ];
    if let Some(before) = &object.status {
        writes.push(guard::same(&["status", "sequence"], json!(before.sequence)));
    }
    writes.push(guard::put(&["status"], json!(status)));
    let patch = Patch::Json::<()>(guard::patch(writes));
    let name = object.name_any();
    match api(client).patch_status(&name, &PatchParams::default(), &patch).await {
        Ok(written) => Ok(Written::Done(Box::new(written))),
        Err(error) => match trouble(&error) {
            Trouble::NotFound => Ok(Written::Overtaken),
            Trouble::Conflict | Trouble::Refused => match one(client, &name).await? {
                Some(now) if now.resource_version() == object.resource_version() => {
                    Ok(Written::Refused(words(&error)))
                }
                _ => Ok(Written::Overtaken),
            },
            _ => Err(error),
        },
    }
}

/// Takes an annotation off a slice, as it was read. Nothing, if somebody else wrote first, or it is gone.
pub(crate) async fn take_off(
    client: &Client,
    object: &NodeIPSlice,
    annotation: &str,
) -> Result<Option<NodeIPSlice>, kube::Error> {
    let version = object.resource_version();
    let metadata =
        json!({"uid": object.uid(), "resourceVersion": version, "annotations": {annotation: null}});
    let patch = Patch::Merge(json!({"metadata": metadata}));
    match api(client).patch(&object.name_any(), &PatchParams::default(), &patch).await {
        Ok(now) => Ok(Some(now)),
        Err(error) => overtaken(error).map(|_| None),
    }
}

/// Deletes an empty slice, as it was read: first it is said to go, then what keeps it is taken off. Whether it is gone; cut
/// off in between, it is a slice that goes, gives nothing, and is found so by the next look.
pub(crate) async fn give_back(client: &Client, object: &Arc<NodeIPSlice>) -> Result<bool, kube::Error> {
    let (api, name) = (api(client), object.name_any());
    let mut now: Arc<NodeIPSlice> = object.clone();
    if now.metadata.deletion_timestamp.is_none() {
        let exactly = Preconditions { uid: now.uid(), resource_version: now.resource_version() };
        let params = DeleteParams { preconditions: Some(exactly), ..DeleteParams::default() };
        let left = match api.delete(&name, &params).await {
            Ok(left) => left.left(),
            Err(error) => return overtaken(error),
        };
        fault::point("slice-left");
        match left {
            Some(left) => now = Arc::new(left),
            // Nothing kept it.
            None => return Ok(true),
        }
    }
    let mut finalizers = now.finalizers().to_vec();
    finalizers.retain(|one| one != finalizer::ADDRESSES);
    let metadata =
        json!({"uid": now.uid(), "resourceVersion": now.resource_version(), "finalizers": finalizers});
    let patch = Patch::Merge(json!({"metadata": metadata}));
    match api.patch(&name, &PatchParams::default(), &patch).await {
        Ok(_) => {
            fault::point("slice-gone");
            Ok(true)
        }
        Err(error) => overtaken(error),
    }
}

/// Gone already is as good; written since, it is to be looked at again.
fn overtaken(error: kube::Error) -> Result<bool, kube::Error> {
    match trouble(&error) {
        Trouble::NotFound => Ok(true),
        Trouble::Conflict => Ok(false),
        _ => Err(error),
    }
}
