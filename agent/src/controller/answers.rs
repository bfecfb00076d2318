//! Answers to requests: grants and refusals, written into the enactments that asked, if they still ask the same (rule 2).
//!
//! All answers to one enactment are one patch, of however many pools. What no longer fits is dropped, and looked at again
//! from a fresh read of that enactment. Cost: one small patch per enactment, [`AT_ONCE`] at a time.

use std::collections::BTreeMap;

use crds::NodeNetworkConfigurationEnactment;
use crds::enactment::PoolClaims;
use futures_util::StreamExt;
use json_patch::{Patch as JsonPatch, PatchOperation};
use kube::api::{Api, Patch, PatchParams};
use kube::{Client, ResourceExt};
use policy::claim::{Answer, PoolName, RefusalReason, Reply};
use policy::pool::Pool;
use serde_json::json;

use crate::api::error::{Trouble, optional, trouble};
use crate::api::guard;
use crate::metrics::{CLAIMS, RELEASES};
use crate::records;

/// Patches under way at any time: in a crowd more than half of what agents and controller may have of an API server
/// together (`deploy/base/flow.yaml`), so that who waits is served before who is served goes on.
pub(crate) const AT_ONCE: usize = 32;

/// What became of one enactment's answers.
pub(crate) enum Landed {
    /// As it is now.
    Done(Box<NodeNetworkConfigurationEnactment>),
    /// It asks otherwise by now: as it is, if it is.
    Dropped(Option<Box<NodeNetworkConfigurationEnactment>>),
    /// The API will not have it, though nothing has changed: the enactment's name, and why.
    Refused(String, kube::Error),
    /// Not acknowledged.
    Failed(kube::Error),
}

/// What one pool answers. Without a pool there are only refusals.
#[derive(Clone, Copy)]
pub(crate) struct OfPool<'a> {
    pub(crate) name: &'a PoolName,
    pub(crate) pool: Option<&'a Pool>,
    pub(crate) answers: &'a [Answer],
}

/// One pool's answers to one enactment.
struct Part<'a> {
    of: OfPool<'a>,
    answers: Vec<&'a Answer>,
}

/// Writes answers; `object_of` knows the enactments as they were read, by UID.
pub(crate) async fn write<'a>(
    client: &Client,
    owed: &[OfPool<'_>],
    object_of: impl Fn(&str) -> Option<&'a NodeNetworkConfigurationEnactment>,
) -> Vec<Landed> {
    let mut by_enactment: BTreeMap<&str, Vec<Part<'_>>> = BTreeMap::new();
    for of in owed {
        for answer in of.answers {
            let parts = by_enactment.entry(answer.enactment.as_str()).or_default();
            match parts.last_mut() {
                Some(part) if part.of.name == of.name => part.answers.push(answer),
                _ => parts.push(Part { of: *of, answers: vec![answer] }),
            }
        }
    }
    let api: Api<NodeNetworkConfigurationEnactment> = Api::all(client.clone());
    let patches: Vec<(String, Option<String>, JsonPatch, Counted)> = by_enactment
        .into_iter()
        .filter_map(|(uid, parts)| {
            let object = object_of(uid)?;
            let counted = Counted::of(object, &parts);
            let patch = patch(object, &parts)?;
            Some((object.name_any(), object.resource_version(), patch, counted))
        })
        .collect();
    let api = &api;
    futures_util::stream::iter(patches)
        .map(|(name, version, patch, counted)| async move {
            let landed = land(api, &name, version, patch).await;
            if let Landed::Done(_) = &landed {
                counted.add();
            }
            landed
        })
        .buffer_unordered(AT_ONCE)
        .collect()
        .await
}

/// Answers, as they are counted once they are written.
struct Counted(Vec<Count>);

struct Count {
    pool: PoolName,
    /// Of what was granted; else nothing.
    range: String,
    kind: &'static str,
    /// None: a release, the end of a claim.
    result: Option<&'static str>,
}

impl Counted {
    fn of(object: &NodeNetworkConfigurationEnactment, parts: &[Part<'_>]) -> Self {
        let asked = records::enactment::pools(object).unwrap_or_default();
        let claims = |pool: &PoolName| asked.get(pool.as_str());
        let kind = |pool: &PoolName, answer: &Answer| {
            let request = claims(pool).and_then(|claims| claims.requests.get(answer.key.capture.as_str()));
            let is_static = request.is_some_and(|request| request.literal.is_some());
            if is_static { "static" } else { "dynamic" }
        };
        let result = |answer: &Answer| match &answer.reply {
            Reply::Grant(_) => Some("granted"),
            Reply::Refuse(refusal) => match refusal.reason {
                RefusalReason::Released => None,
                RefusalReason::HeldByAnother => Some("HeldByAnother"),
                RefusalReason::NoAddress => Some("NoAddress"),
                RefusalReason::NoSuchPool => Some("NoSuchPool"),
            },
        };
        let counted = |part: &Part<'_>| {
            let pool = part.of.name.clone();
            let each = |answer: &&Answer| Count {
                pool: pool.clone(),
                range: answer.ranges.first().cloned().unwrap_or_default(),
                kind: kind(&pool, answer),
                result: result(answer),
            };
            part.answers.iter().map(each).collect::<Vec<_>>()
        };
        Self(parts.iter().flat_map(counted).collect())
    }

    fn add(&self) {
        for Count { pool, range, kind, result } in &self.0 {
            match result {
                Some(result) => CLAIMS.add(&[pool.as_str(), range, kind, result], 1),
                None => RELEASES.add(&[pool.as_str()], 1),
            }
        }
    }
}

async fn land(
    api: &Api<NodeNetworkConfigurationEnactment>,
    name: &str,
    version: Option<String>,
    patch: JsonPatch,
) -> Landed {
    match api.patch_status(name, &PatchParams::default(), &Patch::Json::<()>(patch)).await {
        Ok(written) => {
            crate::fault::point("answered");
            Landed::Done(Box::new(written))
        }
        Err(error) => match trouble(&error) {
            Trouble::NotFound => Landed::Dropped(None),
            Trouble::Conflict | Trouble::Refused => match optional(api.get(name).await) {
                Ok(Some(now)) if now.resource_version() == version => Landed::Refused(name.to_owned(), error),
                Ok(now) => Landed::Dropped(now.map(Box::new)),
                Err(error) => Landed::Failed(error),
            },
            _ => Landed::Failed(error),
        },
    }
}

/// Tests what the answers answer and the grants that were seen; then puts in what is granted and refused now. Where there is
/// no status yet, it begins with what was asked, if nobody has written since.
fn patch(object: &NodeNetworkConfigurationEnactment, parts: &[Part<'_>]) -> Option<JsonPatch> {
    let mut operations = vec![guard::same(&["metadata", "uid"], json!(object.uid()))];
    let asked = records::enactment::pools(object).ok()?;
    if object.status.is_none() {
        operations.push(guard::same(&["metadata", "resourceVersion"], json!(object.resource_version())));
        operations.push(guard::put(&["status"], json!({"ippool": asked})));
    }
    for part in parts {
        operations.extend(answered(asked.get(part.of.name.as_str())?, part)?);
    }
    Some(guard::patch(operations))
}

/// The part of it that is about one pool.
fn answered(before: &PoolClaims, part: &Part<'_>) -> Option<Vec<PatchOperation>> {
    let OfPool { name, pool, .. } = part.of;
    let mut claims: PoolClaims = before.clone();
    let mut operations = Vec::new();
    for answer in &part.answers {
        let capture = answer.key.capture.as_str();
        operations.push(guard::same(&within(name, &["requests", capture, "id"]), json!(answer.id.text())));
        operations.push(guard::same(&within(name, &["requests", capture, "want"]), json!(answer.want)));
        match &answer.reply {
            Reply::Grant(grant) => {
                let ranges = &answer.ranges;
                let grant = records::enactment::grant(&answer.key.capture, grant, ranges, pool?).ok()?;
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
    operations.push(guard::same(&within(name, &["grants"]), json!(before.grants)));
    operations.push(guard::put(&within(name, &["grants"]), json!(claims.grants)));
    operations.push(guard::put(&within(name, &["refused"]), json!(claims.refused)));
    operations.push(guard::put(&within(name, &["allocated"]), json!(claims.allocated)));
    Some(operations)
}

/// A place in what an enactment has of a pool.
fn within<'a>(pool: &'a PoolName, part: &[&'a str]) -> Vec<&'a str> {
    ["status", "ippool", pool.as_str()].iter().chain(part).copied().collect()
}
