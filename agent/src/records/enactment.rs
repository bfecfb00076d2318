//! An enactment's claims: `policy::claim::Enactment` ↔ a `NodeNetworkConfigurationEnactment`.
//!
//! The agent writes requests, whoever serves claims writes grants and refusals; each has its own function, and
//! [`claims`] does all of an enactment. A slot that says nothing is no slot.
//!
//! An object is made without a status, so what is asked for by then goes with its creation in an annotation: one write asks.
//! The annotation counts as long as there is no status; whoever writes the first one begins it with them.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;

use crds::NodeNetworkConfigurationEnactment as Object;
use crds::enactment::{self as api, PoolClaims};
use crds::names::{self, annotation, finalizer, label};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use policy::claim::{
    CaptureName, Enactment, Grant, NodeName, NodeUid, PolicyName, PoolName, Refusal, RefusalReason, Request,
    RequestId, Slot, SlotKey, Stranger,
};
use policy::pool::Pool;

use super::{
    RecordError, RecordErrors, Wrong, lease, read_ip, read_owner, read_time, read_uid, write_ip, write_owner,
};

type Slots = BTreeMap<SlotKey, Slot>;
/// By pool and capture.
type Asked = BTreeMap<String, BTreeMap<String, api::Request>>;

pub fn read(object: &Object) -> Result<Enactment, RecordErrors> {
    let mut wrong = Wrong::default();
    let metadata = &object.metadata;
    let uid = wrong.note(read_uid(metadata)).unwrap_or_default();
    let owner = wrong.note(read_owner(metadata));
    let (node, node_uid) = owner.unwrap_or_else(|| ("".into(), "".into()));
    let label = |name: &str| metadata.labels.as_ref().and_then(|labels| labels.get(name));
    let missing = |name: &str| RecordError::Missing { path: format!("metadata.labels.{name}") };
    match label(label::NODE) {
        Some(labelled) if labelled != node.as_str() && !node.as_str().is_empty() => {
            wrong.0.push(RecordError::Disagree {
                path: format!("metadata.labels.{}", label::NODE),
                found: labelled.clone(),
                other: "the Node that owns it",
                wanted: node.to_string(),
            });
        }
        // A name too long for a label stands in the owner reference alone.
        None if crds::text::is_label_value(node.as_str()) => wrong.0.push(missing(label::NODE)),
        _ => {}
    }
    let policy = wrong.note(label(label::POLICY).ok_or_else(|| missing(label::POLICY)));
    let deleted = metadata.deletion_timestamp.as_ref();
    let deleting = deleted.and_then(|time| wrong.note(read_time("metadata.deletionTimestamp", time)));
    let slots =
        wrong.note(pools(object)).map(|pools| read_slots(&node, &pools, &mut wrong)).unwrap_or_default();
    let policy = PolicyName::new(policy.map(String::as_str).unwrap_or_default());
    wrong.or(Enactment { uid: uid.into(), node, node_uid, policy, deleting, slots })
}

/// What an enactment says of each pool: by its status, or, while it has none, by what it was made with.
pub fn pools(object: &Object) -> Result<Cow<'_, BTreeMap<String, PoolClaims>>, RecordError> {
    if let Some(status) = &object.status {
        return Ok(Cow::Borrowed(&status.ippool));
    }
    let Some(asked) = made_with(object) else { return Ok(Cow::default()) };
    let path = format!("metadata.annotations.{}", annotation::REQUESTS);
    let wanted = "requests by pool and capture, as JSON";
    let asked: Asked =
        serde_json::from_str(asked).map_err(|_| RecordError::Shape { path: path.clone(), wanted })?;
    for (capture, request) in asked.values().flatten() {
        bounded(&format!("{path}: {capture}"), request)?;
    }
    let claims = |requests| PoolClaims { requests, ..PoolClaims::default() };
    Ok(Cow::Owned(asked.into_iter().map(|(pool, requests)| (pool, claims(requests))).collect()))
}

fn made_with(object: &Object) -> Option<&String> {
    object.metadata.annotations.as_ref().and_then(|all| all.get(annotation::REQUESTS))
}

/// The pools that an enactment names, whether or not what it says of them can be read. Nothing: not even that can.
pub fn named(object: &Object) -> Option<BTreeSet<PoolName>> {
    let names = |pool: &String| PoolName::new(pool.as_str());
    match (&object.status, made_with(object)) {
        (Some(status), _) => Some(status.ippool.keys().map(names).collect()),
        (None, None) => Some(BTreeSet::new()),
        (None, Some(asked)) => {
            let asked: BTreeMap<String, serde_json::Value> = serde_json::from_str(asked).ok()?;
            Some(asked.keys().map(names).collect())
        }
    }
}

/// A request in an annotation has passed no schema, as one in a status has: its texts are as long as they may be there. By hand,
/// for the schema itself is a megabyte that no agent needs otherwise.
fn bounded(path: &str, request: &api::Request) -> Result<(), RecordError> {
    const MOST: usize = 64;
    let wanted = "texts of at most 64 characters, and an id of at least one";
    let holds = request.holds.iter().map(|holds| &holds.pool_uid);
    let mut texts = holds
        .chain(request.declined.iter().flat_map(|declined| [&declined.mac, &declined.interface]))
        .chain([&request.id]);
    let fits = !request.id.is_empty() && texts.all(|text| text.chars().count() <= MOST);
    if fits { Ok(()) } else { Err(RecordError::Shape { path: path.to_owned(), wanted }) }
}

/// Is there anything of ours in it, readable or not? In kubernetes-nmstate's there isn't.
pub fn has_claims(object: &Object) -> bool {
    match &object.status {
        Some(status) => !status.ippool.is_empty(),
        None => made_with(object).is_some(),
    }
}

/// The annotation that an enactment is made with to ask for these.
pub fn asked(slots: &Slots) -> Result<Option<(String, String)>, RecordError> {
    let mut asked = Asked::new();
    for (SlotKey { pool, capture }, slot) in slots {
        if let Some(request) = &slot.request {
            let request = self::request(pool, capture, request)?;
            asked.entry(pool.to_string()).or_default().insert(capture.to_string(), request);
        }
    }
    let value = serde_json::json!(asked).to_string();
    Ok((!asked.is_empty()).then(|| (annotation::REQUESTS.to_owned(), value)))
}

fn read_slots(node: &NodeName, pools: &BTreeMap<String, PoolClaims>, wrong: &mut Wrong) -> Slots {
    let mut slots = Slots::new();
    for (pool, claims) in pools {
        // The list of addresses follows from the grants.
        let PoolClaims { requests, grants, refused, allocated: _ } = claims;
        let path = |part: &str, capture: &str| format!("status.ippool.{pool}.{part}.{capture}");
        let key = |capture: &str| SlotKey { pool: pool.as_str().into(), capture: capture.into() };
        for (capture, request) in requests {
            if let Some(request) = wrong.note(read_request(node, &path("requests", capture), request)) {
                slots.entry(key(capture)).or_default().request = Some(request);
            }
        }
        for (capture, grant) in grants {
            if let Some(grant) = wrong.note(read_grant(node, &path("grants", capture), grant)) {
                slots.entry(key(capture)).or_default().grant = Some(grant);
            }
        }
        for (capture, refusal) in refused {
            slots.entry(key(capture)).or_default().refused = Some(read_refusal(node, refusal));
        }
    }
    slots
}

fn read_request(node: &NodeName, path: &str, request: &api::Request) -> Result<Request, RecordError> {
    let api::Request { id, want, holds, declined, literal } = request;
    let mut found = BTreeMap::new();
    for (i, api::Declined { ip, mac, interface }) in declined.iter().enumerate() {
        let path = format!("{path}.declined[{i}].ip");
        let ip = read_ip(&path, ip)?;
        let by = Stranger { mac: mac.clone(), interface: interface.clone() };
        if found.insert(ip, by).is_some() {
            return Err(RecordError::Twice { path, ip });
        }
    }
    let holds = holds.as_ref().map(|holds| lease::read_holds(&format!("{path}.holds"), holds));
    let literal = literal.as_ref().map(|ip| read_ip(&format!("{path}.literal"), ip));
    Ok(Request {
        id: RequestId::of(node, id),
        want: *want,
        holds: holds.transpose()?,
        declined: found,
        literal: literal.transpose()?,
    })
}

fn read_grant(node: &NodeName, path: &str, grant: &api::Grant) -> Result<Grant, RecordError> {
    Ok(Grant { id: RequestId::of(node, &grant.id), lease: lease::read_grant(path, grant)? })
}

fn read_refusal(node: &NodeName, refusal: &api::Refusal) -> Refusal {
    let api::Refusal { id, reason, message } = refusal;
    let reason = match reason {
        api::RefusalReason::Released => RefusalReason::Released,
        api::RefusalReason::HeldByAnother => RefusalReason::HeldByAnother,
        api::RefusalReason::NoAddress => RefusalReason::NoAddress,
        api::RefusalReason::NoSuchPool => RefusalReason::NoSuchPool,
    };
    Refusal { id: RequestId::of(node, id), reason, message: message.clone() }
}

/// The metadata to create an enactment with: whose it is, and the finalizer that keeps it while it holds addresses. A
/// node's name that fits no label stands in the owner reference alone; a policy's has no other place.
pub fn metadata(node: &NodeName, node_uid: &NodeUid, policy: &PolicyName) -> Result<ObjectMeta, RecordError> {
    if !crds::text::is_label_value(policy.as_str()) {
        let path = format!("metadata.labels.{}", label::POLICY);
        return Err(RecordError::Shape { path, wanted: "a policy's name of at most 63 characters" });
    }
    let labels = [(label::NODE, node.as_str()), (label::POLICY, policy.as_str())];
    let fitting = labels.into_iter().filter(|(_, value)| crds::text::is_label_value(value));
    Ok(ObjectMeta {
        name: Some(names::enactment_name(node.as_str(), policy.as_str())),
        labels: Some(fitting.map(|(name, value)| (name.to_owned(), value.to_owned())).collect()),
        owner_references: Some(vec![write_owner(node, node_uid)]),
        finalizers: Some(vec![finalizer::ADDRESSES.to_owned()]),
        ..ObjectMeta::default()
    })
}

/// `status.ippool`. What a grant says besides its lease is its pool's to say, so there must be one; by the first range that has
/// an address, since only a server of claims knows which speaks for it.
pub fn claims<'a>(
    slots: &Slots,
    pool_of: impl Fn(&PoolName) -> Option<&'a Pool>,
) -> Result<BTreeMap<String, PoolClaims>, RecordErrors> {
    let mut wrong = Wrong::default();
    let mut pools: BTreeMap<String, PoolClaims> = BTreeMap::new();
    for (SlotKey { pool, capture }, slot) in slots {
        let Slot { request, grant, refused } = slot;
        if slot == &Slot::default() {
            continue;
        }
        let claims = pools.entry(pool.to_string()).or_default();
        if let Some(written) = request.as_ref().and_then(|one| wrong.note(self::request(pool, capture, one)))
        {
            claims.requests.insert(capture.to_string(), written);
        }
        let no_pool = || RecordError::NoPool {
            path: format!("status.ippool.{pool}.grants.{capture}"),
            pool: pool.to_string(),
        };
        let written = grant.as_ref().map(|grant| {
            let known = pool_of(pool).ok_or_else(no_pool)?;
            self::grant(capture, grant, &first_that_have(known, grant), known)
        });
        if let Some(written) = written.and_then(|written| wrong.note(written)) {
            claims.allocated.push(written.address.ip.clone());
            claims.allocated.extend(written.ipv6.iter().map(|second| second.ip.clone()));
            claims.grants.insert(capture.to_string(), written);
        }
        claims.refused.extend(refused.as_ref().map(|one| (capture.to_string(), refusal(one))));
    }
    wrong.or(pools)
}

/// `status.ippool.<pool>.requests.<capture>`: what the agent writes.
pub fn request(
    pool: &PoolName,
    capture: &CaptureName,
    request: &Request,
) -> Result<api::Request, RecordError> {
    let path = format!("status.ippool.{pool}.requests.{capture}");
    let Request { id, want, holds, declined, literal } = request;
    let declined = declined.iter().enumerate().map(|(i, (ip, by))| {
        let ip = write_ip(&format!("{path}.declined[{i}].ip"), *ip)?;
        let Stranger { mac, interface } = by.clone();
        Ok(api::Declined { ip, mac, interface })
    });
    let holds = holds.as_ref().map(|lease| lease::write_holds(&format!("{path}.holds"), lease));
    Ok(api::Request {
        id: id.text().to_owned(),
        want: *want,
        holds: holds.transpose()?,
        declined: declined.collect::<Result<_, RecordError>>()?,
        literal: literal.map(|ip| write_ip(&format!("{path}.literal"), ip)).transpose()?,
    })
}

fn first_that_have(pool: &Pool, grant: &Grant) -> Vec<String> {
    let first = |ip: &IpAddr| pool.range_of(*ip).map(|range| range.name().to_owned()).unwrap_or_default();
    grant.lease.ips.iter().map(first).collect()
}

/// `status.ippool.<pool>.grants.<capture>`: what whoever serves claims writes, with the ranges of its
/// [answer](policy::claim::Answer).
pub fn grant(
    capture: &CaptureName,
    grant: &Grant,
    ranges: &[String],
    pool: &Pool,
) -> Result<api::Grant, RecordError> {
    let Grant { id, lease } = grant;
    let path = format!("status.ippool.{}.grants.{capture}", pool.name());
    lease::write_grant(&path, id.text(), lease, ranges, pool)
}

/// `status.ippool.<pool>.refused.<capture>`: what whoever serves claims writes.
pub fn refusal(refusal: &Refusal) -> api::Refusal {
    let Refusal { id, reason, message } = refusal;
    let reason = match reason {
        RefusalReason::Released => api::RefusalReason::Released,
        RefusalReason::HeldByAnother => api::RefusalReason::HeldByAnother,
        RefusalReason::NoAddress => api::RefusalReason::NoAddress,
        RefusalReason::NoSuchPool => api::RefusalReason::NoSuchPool,
    };
    api::Refusal { id: id.text().to_owned(), reason, message: message.clone() }
}
