//! Answers to requests: grants and refusals, written into the enactments that asked, if they still ask the same (rule 2).
//!
//! All answers to one enactment about one pool are one patch. What no longer fits is dropped, and the pool looked at again
//! from a fresh read of that enactment. Cost: one small patch per enactment, [`AT_ONCE`] at a time.

use std::collections::BTreeMap;

use crds::NodeNetworkConfigurationEnactment;
use crds::enactment::PoolClaims;
use futures_util::StreamExt;
use json_patch::{AddOperation, Patch as JsonPatch, PatchOperation, TestOperation, jsonptr::PointerBuf};
use kube::api::{Api, Patch, PatchParams};
use kube::{Client, ResourceExt};
use policy::claim::{Answer, PoolName, Reply};
use policy::pool::Pool;
use serde_json::{Value, json};

use crate::api::error::{Trouble, optional, trouble};
use crate::records;

/// Patches under way at any time: enough to keep an API server busy, few enough to leave it to others too.
pub(crate) const AT_ONCE: usize = 16;

/// What became of one enactment's answers.
pub(crate) enum Landed {
    /// As it is now.
    Done(Box<NodeNetworkConfigurationEnactment>),
    /// It asks otherwise by now: as it is, if it is.
    Dropped(Option<Box<NodeNetworkConfigurationEnactment>>),
    /// Not acknowledged.
    Failed(kube::Error),
}

/// Writes answers; `objects` are the enactments as they were read, by UID.
pub(crate) async fn write<'a>(
    client: &Client,
    pool_name: &PoolName,
    pool: Option<&Pool>,
    answers: &[Answer],
    object_of: impl Fn(&str) -> Option<&'a NodeNetworkConfigurationEnactment>,
) -> Vec<Landed> {
    let mut by_enactment: BTreeMap<&str, Vec<&Answer>> = BTreeMap::new();
    for answer in answers {
        by_enactment.entry(answer.enactment.as_str()).or_default().push(answer);
    }
    let api: Api<NodeNetworkConfigurationEnactment> = Api::all(client.clone());
    let patches: Vec<(String, JsonPatch)> = by_enactment
        .into_iter()
        .filter_map(|(uid, answers)| {
            let object = object_of(uid)?;
            Some((object.name_any(), patch(object, pool_name, pool, &answers)?))
        })
        .collect();
    let api = &api;
    futures_util::stream::iter(patches)
        .map(|(name, patch)| async move { land(api, &name, patch).await })
        .buffer_unordered(AT_ONCE)
        .collect()
        .await
}

async fn land(api: &Api<NodeNetworkConfigurationEnactment>, name: &str, patch: JsonPatch) -> Landed {
    match api.patch_status(name, &PatchParams::default(), &Patch::Json::<()>(patch)).await {
        Ok(written) => {
            crate::fault::point("answered");
            Landed::Done(Box::new(written))
        }
        Err(error) => match trouble(&error) {
            Trouble::NotFound => Landed::Dropped(None),
            Trouble::Conflict | Trouble::Refused => match optional(api.get(name).await) {
                Ok(now) => Landed::Dropped(now.map(Box::new)),
                Err(error) => Landed::Failed(error),
            },
            _ => Landed::Failed(error),
        },
    }
}

/// Tests what the answers answer and the grants that were seen; then puts in what is granted and refused now.
fn patch(
    object: &NodeNetworkConfigurationEnactment,
    pool_name: &PoolName,
    pool: Option<&Pool>,
    answers: &[&Answer],
) -> Option<JsonPatch> {
    let before = object.status.as_ref()?.ippool.get(pool_name.as_str())?;
    let mut claims: PoolClaims = before.clone();
    let place = |part: &[&str]| {
        let tokens = ["status", "ippool", pool_name.as_str()];
        PointerBuf::from_tokens(tokens.iter().chain(part).copied())
    };
    let test = |part: &[&str], value: Value| PatchOperation::Test(TestOperation { path: place(part), value });
    let mut operations = vec![PatchOperation::Test(TestOperation {
        path: PointerBuf::from_tokens(["metadata", "uid"]),
        value: json!(object.uid()),
    })];
    for answer in answers {
        let capture = answer.key.capture.as_str();
        operations.push(test(&["requests", capture, "id"], json!(answer.id.as_str())));
        operations.push(test(&["requests", capture, "want"], json!(answer.want)));
        match &answer.reply {
            Reply::Grant(grant) => {
                let grant = records::enactment::grant(&answer.key.capture, grant, pool?).ok()?;
                claims.grants.insert(capture.to_owned(), grant);
                claims.refused.remove(capture);
            }
            Reply::Refuse(refusal) => {
                claims.grants.remove(capture);
                claims.refused.insert(capture.to_owned(), records::enactment::refusal(refusal));
            }
        }
    }
    let addresses = |grant: &crds::enactment::Grant| {
        let second = grant.ipv6.as_ref().map(|second| second.ip.clone());
        [Some(grant.address.ip.clone()), second]
    };
    claims.allocated = claims.grants.values().flat_map(addresses).flatten().collect();
    operations.push(test(&["grants"], json!(before.grants)));
    let add = |part: &[&str], value: Value| PatchOperation::Add(AddOperation { path: place(part), value });
    operations.push(add(&["grants"], json!(claims.grants)));
    operations.push(add(&["refused"], json!(claims.refused)));
    operations.push(add(&["allocated"], json!(claims.allocated)));
    Some(JsonPatch(operations))
}
