//! A host's write to a pool's status: entries of its own node's name, with its UID, and what follows from them.
//!
//! Cost: reads the ledger twice, once as it was and once as it is to be; a ledger has at most 5,000 entries.

use crds::names::annotation::{HOLD, RESET_POOL};
use crds::{NodeIPPool, NodeIPPoolStatus, address};
use policy::pool::{Barred, Pool, PoolSpec, Status as Standing};
use serde_json::{Map, Value};

use crate::records;

/// What a host may change; the counts, the offsets and the sequence must be what follows from the entries.
const CHANGEABLE: [&str; 5] = ["allocations", "allocated-offsets", "allocated", "available", "sequence"];

/// Whether host `name`, whose Node has this UID, may make this status of that.
pub(super) fn may_write(name: &str, uid: &str, old: &Value, new: &Value) -> Result<(), String> {
    let none = Map::new();
    let before = old["status"].as_object().unwrap_or(&none);
    let after = new["status"].as_object().unwrap_or(&none);
    if before == after {
        return Ok(());
    }
    let untouched =
        |field: &&String| !CHANGEABLE.contains(&field.as_str()) && before.get(*field) != after.get(*field);
    if let Some(field) = before.keys().chain(after.keys()).find(untouched) {
        return Err(format!("host {name} may not change status.{field}: only a controller does"));
    }
    let was = before.get("allocations").and_then(Value::as_object).unwrap_or(&none);
    let is = after.get("allocations").and_then(Value::as_object).unwrap_or(&none);
    let sequence = |status: &Map<String, Value>| status.get("sequence").and_then(Value::as_u64);
    let next = sequence(before).unwrap_or_default().saturating_add(1);
    if sequence(after) != Some(next) {
        return Err(format!("status.sequence must be {next}, one more than it was"));
    }
    let host = Host { name, uid, sequence: next, pool: old };
    for (ip, entry) in was.iter().filter(|(ip, entry)| is.get(*ip) != Some(entry)) {
        host.may_touch(ip, entry, is.contains_key(ip))?;
    }
    let pool = pool(new)?;
    for (ip, entry) in is.iter().filter(|(ip, entry)| was.get(*ip) != Some(entry)) {
        host.may_put(ip, entry)?;
        if !was.contains_key(ip) {
            host.may_add(&pool, ip)?;
        }
    }
    follows(&pool, new)
}

struct Host<'a> {
    name: &'a str,
    uid: &'a str,
    /// The sequence that is written.
    sequence: u64,
    pool: &'a Value,
}

impl Host<'_> {
    /// An entry that was there.
    fn may_touch(&self, ip: &str, was: &Value, stays: bool) -> Result<(), String> {
        let Self { name, .. } = self;
        if was["node"] == **name {
            return Ok(());
        }
        let other = was["node"].as_str().unwrap_or("nobody");
        let verb = if stays { "change" } else { "release" };
        Err(format!("host {name} may not {verb} {ip} of node {other}"))
    }

    /// An entry that is to be there.
    fn may_put(&self, ip: &str, entry: &Value) -> Result<(), String> {
        let Self { name, uid, sequence, .. } = self;
        if !address::is_canonical(ip) {
            return Err(format!("status.allocations: {ip:?} is not an address in its canonical form"));
        }
        if entry["node"] != **name || entry["nodeUID"] != **uid {
            let node = entry["node"].as_str().unwrap_or("nobody");
            let of = entry["nodeUID"].as_str().unwrap_or("no UID");
            return Err(format!(
                "host {name} may claim {ip} only for itself, nodeUID {uid}, not for node {node}, nodeUID {of}"
            ));
        }
        // Of two claims to one address the higher sequence wins: nobody writes one ahead of its time.
        if entry["sequence"].as_u64().unwrap_or_default() > *sequence {
            return Err(format!(
                "status.allocations.{ip}.sequence must not be above status.sequence {sequence}"
            ));
        }
        // Every reader fills in what is missing, and then it is another entry than that which is there.
        if entry.get("kind").is_none() {
            return Err(format!("status.allocations.{ip}.kind is missing"));
        }
        Ok(())
    }

    /// An address that was free.
    fn may_add(&self, pool: &Pool, ip: &str) -> Result<(), String> {
        let Self { name, pool: object, .. } = self;
        let (status, metadata) = (&object["status"], &object["metadata"]);
        if !status["rebuiltFor"].is_string() || status["rebuiltFor"] != metadata["uid"] {
            return Err("the pool gives nothing: its ledger is not rebuilt".to_owned());
        }
        goes_on(object)?;
        // What is free by this ledger may be held in a slice.
        if pool.is_sliced() {
            return Err(format!(
                "host {name} may not claim {ip} here: the pool is cut into slices, and hosts claim in their own"
            ));
        }
        match address::ip(ip).map_or(Standing::OutOfRange, |ip| pool.explain(ip)) {
            Standing::OutOfRange => return Err(format!("{ip} is in no range of the pool")),
            Standing::Gateway { range } => return Err(format!("{ip} is the gateway of range {range}")),
            Standing::Excluded(why) => return Err(format!("{ip} is given to nobody: {why}")),
            Standing::Reserved { .. } | Standing::StaticBand { .. } | Standing::Dynamic { .. } => {}
        }
        let reservations = object["spec"]["reservations"].as_array().into_iter().flatten();
        match reservations.into_iter().find(|kept| kept["ip"] == *ip && kept["node"] != **name) {
            None => Ok(()),
            Some(kept) => {
                Err(format!("{ip} is reserved for node {}", kept["node"].as_str().unwrap_or("nobody")))
            }
        }
    }
}

/// Whether nothing has stopped a pool from giving: what is free by its word, or by that of its slices, is free.
pub(super) fn goes_on(pool: &Value) -> Result<(), String> {
    let (status, metadata) = (&pool["status"], &pool["metadata"]);
    let asked = |annotation: &str| metadata["annotations"].get(annotation).is_some();
    let not = if asked(RESET_POOL) {
        "its ledger is to be rebuilt"
    } else if asked(HOLD) || status.get("hold").is_some_and(|hold| !hold.is_null()) {
        "it is on hold"
    } else if metadata["deletionTimestamp"].is_string() {
        "it is being deleted"
    } else {
        return Ok(());
    };
    Err(format!("the pool gives nothing: {not}"))
}

/// What a pool's spec means.
pub(super) fn pool(object: &Value) -> Result<Pool, String> {
    let spec = PoolSpec::from_manifest(object).map_err(|error| error.to_string())?;
    Pool::new(&spec).map_err(|error| error.to_string())
}

/// Whether offsets and counts are those of the entries. What others have of the ranges is not known here, so what is
/// available is held only against the capacity, as on a cluster.
fn follows(pool: &Pool, object: &Value) -> Result<(), String> {
    let typed: NodeIPPool = serde_json::from_value(object.clone()).map_err(|error| error.to_string())?;
    let ledger = records::pool::read(&typed, pool).map_err(|error| error.to_string())?;
    if !ledger.offsets_agree {
        return Err("status.allocated-offsets must be the offsets of status.allocations".to_owned());
    }
    let written = typed.status.unwrap_or_default();
    let NodeIPPoolStatus { capacity, allocated, available, .. } = &written;
    let expected = records::pool::status(&ledger, pool, &Barred::default(), &written);
    let expected = expected.map_err(|error| error.to_string())?;
    let number = |count: Option<i64>| count.unwrap_or_default();
    if *allocated != expected.allocated {
        let expected = number(expected.allocated);
        return Err(format!(
            "status.allocated must be {expected}, the number of claims in status.allocations"
        ));
    }
    match (capacity, available) {
        (Some(capacity), Some(available)) if (0..=*capacity).contains(available) => Ok(()),
        (None, None) => Ok(()),
        _ => Err("status.available must be between 0 and status.capacity".to_owned()),
    }
}
