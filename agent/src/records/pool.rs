//! A ledger: `policy::claim::Ledger` ↔ the status of a `NodeIPPool` or `NodeIPSlice`, and the metadata around it.
//!
//! A pool's status is one write: entries, offsets and counts always tell of the same moment (R4).

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;

use crds::names::annotation::{HOLD, RESET_POOL};
use crds::pool::{self as api, Allocation};
use crds::{NodeIPPool, NodeIPPoolStatus, NodeIPSlice, NodeIPSliceStatus};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use policy::claim::{Entry, Hold, Ledger, NodeSlice, PoolUid, QuarantineReason, Time};
use policy::pool::{
    Barred, Counts, Pool, PoolErrors, PoolSpec, PoolView, Taken, UnknownEncoding, check_encoding,
    check_slice_encoding,
};

use super::{
    LAST, RecordError, RecordErrors, Wrong, entry, read_ip, read_number, read_time, read_uid, write_ip,
    write_number, write_time,
};

/// The end of a hold that an annotation asks for and that nobody has begun: the last second that a time can be
/// written of. The controller's first write gives it a real end (`status.hold`), before it asserts anything.
pub const ENDLESS: Time = LAST;

/// The largest count that is written: what every JSON reader keeps exact.
const LARGEST_COUNT: u128 = (1 << 53) - 1;

const ALLOCATIONS: &str = "status.allocations";

/// What a pool's spec means. Its rules are the CRD's too, so only a CRD of another version lets one through that can't be
/// read.
pub fn meaning(object: &NodeIPPool) -> Result<Pool, PoolErrors> {
    let spec = serde_json::to_value(&object.spec).unwrap_or_default();
    let name = object.metadata.name.as_deref().unwrap_or_default();
    Pool::new(&PoolSpec::from_spec(name, &spec)?)
}

/// The ledger of a pool. `pool` is what its spec means.
pub fn read(object: &NodeIPPool, pool: &Pool) -> Result<Ledger, RecordErrors> {
    let none = NodeIPPoolStatus::default();
    let status = object.status.as_ref().unwrap_or(&none);
    // Counts follow from the rest, conditions are about it.
    let NodeIPPoolStatus {
        sequence,
        rebuilt_for,
        hold,
        allocations,
        allocated_offsets,
        capacity: _,
        allocated: _,
        available: _,
        drained: _,
        conditions: _,
    } = status;
    let kept = Kept { sequence: *sequence, rebuilt_for, hold, allocations };
    let ledger = ledger(&object.metadata, &kept, check_encoding)?;
    let offsets_agree = !pool.lists_offsets() || {
        let mut listed = allocated_offsets.clone().unwrap_or_default();
        listed.sort_unstable();
        listed == offsets(pool, &ledger.allocations)
    };
    Ok(Ledger { offsets_agree, ..ledger })
}

/// The ledger of a slice: its own UID stands for the pool's, and there are no offsets.
pub fn read_slice(object: &NodeIPSlice) -> Result<Ledger, RecordErrors> {
    let NodeIPSliceStatus { sequence, rebuilt_for, hold, allocations } = &*object.ledger();
    let kept = Kept { sequence: *sequence, rebuilt_for, hold, allocations };
    ledger(&object.metadata, &kept, check_slice_encoding)
}

/// What pools and slices keep alike.
struct Kept<'a> {
    sequence: i64,
    rebuilt_for: &'a Option<String>,
    hold: &'a Option<api::Hold>,
    allocations: &'a BTreeMap<String, Allocation>,
}

fn ledger(
    metadata: &ObjectMeta,
    kept: &Kept<'_>,
    check: fn(&BTreeMap<String, String>) -> Result<(), UnknownEncoding>,
) -> Result<Ledger, RecordErrors> {
    let mut wrong = Wrong::default();
    let none = BTreeMap::new();
    let annotations = metadata.annotations.as_ref().unwrap_or(&none);
    wrong.note(check(annotations).map_err(RecordError::from));
    let pool = wrong.note(read_uid(metadata)).unwrap_or_default();
    let sequence = wrong.note(read_number("status.sequence", kept.sequence)).unwrap_or_default();
    let begun = kept.hold.as_ref().map(|hold| read_time("status.hold.until", &hold.until));
    let begun = begun.and_then(|until| wrong.note(until)).map(|until| Hold { until });
    let asked = annotations.contains_key(HOLD).then_some(Hold { until: ENDLESS });
    let mut allocations = BTreeMap::new();
    for (text, allocation) in kept.allocations {
        let read =
            wrong.note(read_ip(ALLOCATIONS, text)).zip(wrong.note(entry::read(&place(text), allocation)));
        if let Some((ip, entry)) = read
            && allocations.insert(ip, entry).is_some()
        {
            wrong.0.push(RecordError::Twice { path: ALLOCATIONS.to_owned(), ip });
        }
    }
    wrong.or(Ledger {
        pool: pool.into(),
        sequence,
        rebuilt_for: kept.rebuilt_for.as_deref().map(PoolUid::new),
        hold: begun.or(asked),
        reset: annotations.contains_key(RESET_POOL),
        deleting: metadata.deletion_timestamp.is_some(),
        offsets_agree: true,
        allocations,
    })
}

/// The status to write for a ledger, in place of the one it was read from. Offsets that don't agree stay as they are:
/// only a rebuild may say that they do.
pub fn status(
    ledger: &Ledger,
    pool: &Pool,
    barred: &Barred,
    before: &NodeIPPoolStatus,
) -> Result<NodeIPPoolStatus, RecordErrors> {
    let NodeIPSliceStatus { sequence, rebuilt_for, hold, mut allocations } = slice_status(ledger)?;
    // What nobody changes stays as it is written, by whomever: a host may write its own entries and no others.
    for (text, allocation) in &mut allocations {
        let means = |written: &Allocation| entry::read(text, written).ok();
        if let Some(was) = before.allocations.get(text)
            && was != allocation
            && means(was) == means(allocation)
        {
            allocation.clone_from(was);
        }
    }
    let taken = Taken::of(pool, ledger.allocations.keys().copied());
    let Counts { capacity, available } = PoolView { pool, taken: &taken, barred }.counts();
    let count = |number: u128| i64::try_from(number.min(LARGEST_COUNT)).ok();
    Ok(NodeIPPoolStatus {
        sequence,
        rebuilt_for,
        hold,
        allocations,
        allocated_offsets: match ledger.offsets_agree {
            true => pool.lists_offsets().then(|| offsets(pool, &ledger.allocations)),
            false => before.allocated_offsets.clone(),
        },
        capacity: count(capacity),
        allocated: count(claims(pool, ledger.allocations.keys().copied())),
        available: count(available),
        drained: before.drained.clone(),
        conditions: before.conditions.clone(),
    })
}

/// The counts of a sliced pool, in place of those of its own ledger: what is held in its slices too, and what no slice has.
pub fn count_slices(
    status: &mut NodeIPPoolStatus,
    ledger: &Ledger,
    pool: &Pool,
    barred: &Barred,
    slices: &[NodeSlice],
) {
    let count = |number: u128| i64::try_from(number.min(LARGEST_COUNT)).ok();
    let blocks = slices.iter().map(|slice| slice.cidr);
    let Counts { capacity, available } = pool.counts(ledger.allocations.keys().copied(), blocks, barred);
    let held: BTreeSet<IpAddr> = slices
        .iter()
        .flat_map(|slice| slice.ledger.allocations.keys())
        .chain(ledger.allocations.keys())
        .copied()
        .collect();
    status.capacity = count(capacity);
    status.allocated = count(claims(pool, held.into_iter()));
    status.available = count(available);
}

/// The status of a slice: the ledger and nothing else.
pub fn slice_status(ledger: &Ledger) -> Result<NodeIPSliceStatus, RecordErrors> {
    // The metadata's: who it is, and what its annotations ask for. Offsets are a pool's.
    let Ledger { pool: _, reset: _, deleting: _, offsets_agree: _, sequence, rebuilt_for, hold, allocations } =
        ledger;
    let mut wrong = Wrong::default();
    let mut written = BTreeMap::new();
    for (ip, entry) in allocations {
        let key = wrong.note(write_ip(ALLOCATIONS, *ip));
        let entry = wrong.note(entry::write(&place(&ip.to_string()), entry));
        written.extend(key.zip(entry));
    }
    let until = hold.map(|Hold { until }| write_time("status.hold.until", until));
    let status = NodeIPSliceStatus {
        sequence: wrong.note(write_number("status.sequence", *sequence)).unwrap_or_default(),
        rebuilt_for: rebuilt_for.as_ref().map(ToString::to_string),
        hold: until.and_then(|until| wrong.note(until)).map(|until| api::Hold { until }),
        allocations: written,
    };
    wrong.or(status)
}

/// `allocated-offsets` of these entries, rising; what no range has has none.
fn offsets(pool: &Pool, entries: &BTreeMap<IpAddr, Entry>) -> Vec<i64> {
    let offset = |ip: &IpAddr| pool.offset_of(*ip).and_then(|offset| i64::try_from(offset).ok());
    entries.keys().filter_map(offset).collect()
}

/// How many claims these addresses serve: in a range of both families a claim has one of each.
fn claims(pool: &Pool, held: impl Iterator<Item = IpAddr>) -> u128 {
    let mut by_range: BTreeMap<&str, (u128, u128)> = BTreeMap::new();
    for ip in held {
        let Some(range) = pool.range_of(ip) else { continue };
        let (v4, v6) = by_range.entry(range.name()).or_default();
        *(if ip.is_ipv4() { v4 } else { v6 }) += 1;
    }
    by_range.values().map(|(v4, v6)| v4.max(v6)).sum()
}

/// Why an entry is quarantined, in the API's word.
pub fn reason_word(reason: &QuarantineReason) -> &'static str {
    entry::write_reason(reason).as_str()
}

fn place(ip: &str) -> String {
    format!("{ALLOCATIONS}.{ip}")
}
