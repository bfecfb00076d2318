//! Who holds what, as the status of a pool or slice in a file says it.
//!
//! Read field by field from the manifest's JSON, each checked by the API's schema, and then by [`crate::records`] as the
//! API's own objects are. Not as a whole: a file may be the work of a person (only `allocated-offsets`, a boolean where
//! the API has text), and what the ledger doesn't need is not looked at. Called by [`crate::pools`]. Reads only.

pub(crate) mod claims;
#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;

use crds::pool::Allocation;
use crds::schema::{self, place};
use crds::{Kind, NodeIPPool, NodeIPPoolStatus, NodeIPSlice, Violation};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{ObjectMeta, Time};
use policy::claim::{Entry, EntryState, Ledger};
use policy::pool::{LEDGER_ENCODING, MADE_WITH, Pool};
use serde::de::DeserializeOwned;
use serde_json::Value;
use thiserror::Error;

use crate::records::{self, RecordError, RecordErrors};

/// The holders, by address.
pub(crate) type Holdings = BTreeMap<IpAddr, Holding>;

/// An address that is not free, as people are shown it.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct Holding {
    /// Nobody is known where a status has offsets only.
    pub(crate) by: Option<Holder>,
    /// Why nobody may use it, for now.
    pub(crate) quarantined: Option<Quarantined>,
}

/// Who holds an address.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct Holder {
    pub(crate) node: String,
    pub(crate) policy: String,
    pub(crate) capture: String,
}

#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct Quarantined {
    pub(crate) reason: String,
    pub(crate) until: Option<String>,
}

/// What a reader of a status should hear of.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub(crate) enum LedgerWarning {
    #[error("status.allocations.{ip}: no range of this pool has it")]
    OutOfRange { ip: IpAddr },
    #[error(
        "status: allocated-offsets and allocations disagree about {ip}; a pool like this is rebuilt before it gives anything"
    )]
    Disagree { ip: IpAddr },
}

/// What a file says of a pool.
pub(crate) struct FileLedger {
    pub(crate) ledger: Ledger,
    pub(crate) held: Holdings,
    pub(crate) warnings: Vec<LedgerWarning>,
}

const ALLOCATIONS: &str = "status.allocations";
const OFFSETS: &str = "status.allocated-offsets";

/// Reads the ledger of a `NodeIPPool`.
pub(crate) fn read(pool: &Pool, manifest: &Value) -> Result<FileLedger, RecordErrors> {
    let mut wrong = Vec::new();
    let read = records::pool::read(&object(manifest, &mut wrong), pool);
    let recorded = read.map_err(|errors| wrong.extend(errors.0)).ok();
    let holders = recorded.as_ref().is_some_and(|ledger| !ledger.allocations.is_empty());
    let listed = offsets(pool, manifest, holders, &mut wrong);
    let Some(mut ledger) = recorded.filter(|_| wrong.is_empty()) else {
        return Err(RecordErrors(wrong));
    };
    let disagree = listed.as_ref().filter(|_| holders).and_then(|listed| unlike(pool, &ledger, listed));
    let outside = ledger.allocations.keys().filter(|ip| !pool.contains(**ip));
    let warnings = disagree.map(|ip| LedgerWarning::Disagree { ip });
    let warnings =
        warnings.into_iter().chain(outside.map(|ip| LedgerWarning::OutOfRange { ip: *ip })).collect();
    let mut held: Holdings = ledger.allocations.iter().map(|(ip, entry)| (*ip, holding(entry))).collect();
    ledger = claims::of_file(ledger, disagree.is_none());
    for ip in listed.into_iter().flatten() {
        held.entry(ip).or_default();
        ledger.allocations.entry(ip).or_insert_with(claims::nobodys);
    }
    Ok(FileLedger { ledger, held, warnings })
}

/// Reads what the ledger of a `NodeIPSlice` of `pool` holds.
pub(crate) fn read_slice(pool: &Pool, manifest: &Value) -> Result<FileLedger, RecordErrors> {
    let mut manifest = manifest.clone();
    let is_written = manifest.pointer("/status/rebuiltFor").is_some_and(|uid| !uid.is_null());
    let first = manifest.pointer("/spec/first").filter(|_| !is_written);
    if first.is_some()
        && let Ok(slice) = serde_json::from_value::<NodeIPSlice>(manifest.clone())
        && let Ok(ledger) = serde_json::to_value(slice.ledger())
    {
        manifest["status"] = ledger;
    }
    // Which is what this says.
    if let Some(annotations) = manifest.pointer_mut("/metadata/annotations").and_then(Value::as_object_mut) {
        annotations.retain(|name, value| name != LEDGER_ENCODING || value != MADE_WITH);
    }
    if let Some(status) = manifest.get_mut("status").and_then(Value::as_object_mut) {
        status.retain(|field, _| field == "allocations");
    }
    read(pool, &manifest)
}

/// The object, as far as its ledger goes.
fn object(manifest: &Value, wrong: &mut Vec<RecordError>) -> NodeIPPool {
    let at = |pointer: &str| manifest.pointer(pointer).filter(|value| !value.is_null());
    let annotations = at("/metadata/annotations").and_then(Value::as_object).into_iter().flatten();
    let text = |(key, value): (&String, &Value)| Some((key.clone(), value.as_str()?.to_owned()));
    let metadata = ObjectMeta {
        // A manifest as a person writes it has none.
        uid: Some(at("/metadata/uid").and_then(Value::as_str).unwrap_or_default().to_owned()),
        annotations: Some(annotations.filter_map(text).collect()),
        deletion_timestamp: at("/metadata/deletionTimestamp").and_then(|value| time(value, wrong)),
        ..ObjectMeta::default()
    };
    let status = NodeIPPoolStatus {
        sequence: field("status.sequence", at("/status/sequence"), wrong).unwrap_or_default(),
        rebuilt_for: field("status.rebuiltFor", at("/status/rebuiltFor"), wrong),
        hold: field("status.hold", at("/status/hold"), wrong),
        allocations: at("/status/allocations").map(|all| allocations(all, wrong)).unwrap_or_default(),
        ..NodeIPPoolStatus::default()
    };
    NodeIPPool { metadata, status: Some(status), ..NodeIPPool::default() }
}

fn allocations(entries: &Value, wrong: &mut Vec<RecordError>) -> BTreeMap<String, Allocation> {
    let Some(entries) = entries.as_object() else {
        wrong.push(shape(ALLOCATIONS, "a map from address to holder"));
        return BTreeMap::new();
    };
    let mut read = BTreeMap::new();
    for (ip, entry) in entries {
        let entry = checked(&format!("{ALLOCATIONS}{{}}"), &format!("{ALLOCATIONS}.{ip}"), entry, wrong);
        read.extend(entry.map(|entry| (ip.clone(), entry)));
    }
    read
}

fn field<T: DeserializeOwned>(path: &str, value: Option<&Value>, wrong: &mut Vec<RecordError>) -> Option<T> {
    checked(path, path, value?, wrong)
}

/// A value, if the schema of a pool at this place has nothing against it.
fn checked<T: DeserializeOwned>(
    place: &str,
    path: &str,
    value: &Value,
    wrong: &mut Vec<RecordError>,
) -> Option<T> {
    let schema = place::schema_at(&Kind::NodeIPPool.definition().schema, place)?;
    let found = schema::check(schema, value, None);
    if found.is_empty() {
        let read = serde_json::from_value(value.clone());
        return read.map_err(|_| wrong.push(shape(path, "as the API has it"))).ok();
    }
    wrong.extend(found.into_iter().map(|violation| {
        let dot = if violation.path.is_empty() { "" } else { "." };
        RecordError::Refused(Violation { path: format!("{path}{dot}{}", violation.path), ..violation })
    }));
    None
}

fn time(value: &Value, wrong: &mut Vec<RecordError>) -> Option<Time> {
    let read = serde_json::from_value(value.clone());
    read.map_err(|_| wrong.push(shape("metadata.deletionTimestamp", "a time such as 2006-01-02T15:04:05Z")))
        .ok()
}

fn holding(entry: &Entry) -> Holding {
    let by = Holder {
        node: entry.node.to_string(),
        policy: entry.policy.to_string(),
        capture: entry.capture.to_string(),
    };
    let quarantined = match &entry.state {
        EntryState::Held => None,
        EntryState::Quarantined(quarantine) => Some(Quarantined {
            reason: records::pool::reason_word(&quarantine.reason).to_owned(),
            until: claims::timestamp(quarantine.until).map(|until| until.to_string()),
        }),
    };
    Holding { by: Some(by), quarantined }
}

/// `status.allocated-offsets`: the same fact once more, or, in a status that has nothing else, the only one. A pool that
/// no longer counts offsets may still have some of before; then the holders say it all.
fn offsets(
    pool: &Pool,
    manifest: &Value,
    holders: bool,
    wrong: &mut Vec<RecordError>,
) -> Option<BTreeSet<IpAddr>> {
    let offsets = match manifest.pointer("/status/allocated-offsets") {
        None | Some(Value::Null) => return None,
        _ if holders && !pool.lists_offsets() => return None,
        Some(Value::Array(offsets)) => offsets,
        Some(_) => {
            wrong.push(shape(OFFSETS, "a list of whole numbers"));
            return None;
        }
    };
    let mut listed = BTreeSet::new();
    for (i, value) in offsets.iter().enumerate() {
        let path = format!("{OFFSETS}[{i}]");
        let Some(offset) = value.as_u64() else {
            wrong.push(shape(&path, "a whole number from 0"));
            continue;
        };
        match pool.address_at(u128::from(offset)) {
            Some(ip) => drop(listed.insert(ip)),
            None => wrong.push(RecordError::NoOffset { path, offset, last: last_offset(pool) }),
        }
    }
    Some(listed)
}

/// An address that only one of allocations and offsets has.
fn unlike(pool: &Pool, ledger: &Ledger, listed: &BTreeSet<IpAddr>) -> Option<IpAddr> {
    let held = &ledger.allocations;
    let lacking = held.keys().filter(|ip| pool.contains(**ip)).find(|ip| !listed.contains(*ip));
    lacking.or_else(|| listed.iter().find(|ip| !held.contains_key(*ip))).copied()
}

fn last_offset(pool: &Pool) -> Option<u128> {
    let [range] = pool.ranges() else { return None };
    range.parts().map(|part| part.last_offset()).next()
}

fn shape(path: &str, wanted: &'static str) -> RecordError {
    RecordError::Shape { path: path.to_owned(), wanted }
}
