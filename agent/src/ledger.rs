//! Who holds what, as the status of a pool or slice says it.
//!
//! Read from the manifest's JSON and not through the API types: a file may be the work of a person (only
//! `allocated-offsets`, a boolean where the API has text), and every error names its path. Called by [`crate::pools`].
//! Reads only; what a server would write is its business.

pub(crate) mod claims;

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;

use crds::pool::{Allocation, AllocationState};
use policy::pool::Pool;
use serde_json::Value;
use thiserror::Error;

/// The holders, by address.
pub(crate) type Holdings = BTreeMap<IpAddr, Holding>;

/// An address that is not free.
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
    /// Empty where a status says nothing of it, as the id is.
    pub(crate) node_uid: String,
    pub(crate) request: String,
    pub(crate) sequence: u64,
}

#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct Quarantined {
    pub(crate) reason: String,
    pub(crate) until: Option<String>,
}

/// An entry that can't be read.
#[derive(Debug, Error)]
pub(crate) enum EntryError {
    #[error("{path}: {text:?} is not an IP address")]
    NotAnAddress { path: &'static str, text: String },
    #[error("{path}: {ip} is listed twice, in two spellings")]
    Twice { path: &'static str, ip: IpAddr },
    #[error("{path}.{ip}: {source}")]
    Entry {
        path: &'static str,
        ip: IpAddr,
        source: serde_json::Error,
    },
    #[error("{path}: must be {wanted}")]
    Shape { path: String, wanted: &'static str },
    #[error("{path}: this pool has no offset {offset}; {}", Offsets(.last))]
    NoOffset {
        path: String,
        offset: u64,
        last: Option<u128>,
    },
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

const ALLOCATIONS: &str = "status.allocations";
const OFFSETS: &str = "status.allocated-offsets";

/// Reads `status.allocations`.
pub(crate) fn allocations(status: &Value, wrong: &mut Vec<EntryError>) -> Holdings {
    let mut held = Holdings::new();
    let entries = match status.get("allocations") {
        None | Some(Value::Null) => return held,
        Some(Value::Object(entries)) => entries,
        Some(_) => {
            wrong.push(shape(ALLOCATIONS, "a map from address to holder"));
            return held;
        }
    };
    for (text, entry) in entries {
        let Ok(ip) = text.parse::<IpAddr>().map(|ip| ip.to_canonical()) else {
            wrong.push(EntryError::NotAnAddress {
                path: ALLOCATIONS,
                text: text.clone(),
            });
            continue;
        };
        match serde_json::from_value::<Allocation>(entry.clone()) {
            Ok(entry) => {
                if held.insert(ip, holding(entry)).is_some() {
                    wrong.push(EntryError::Twice {
                        path: ALLOCATIONS,
                        ip,
                    });
                }
            }
            Err(source) => wrong.push(EntryError::Entry {
                path: ALLOCATIONS,
                ip,
                source,
            }),
        }
    }
    held
}

fn holding(entry: Allocation) -> Holding {
    let quarantined = matches!(entry.state, Some(AllocationState::Quarantined)).then(|| Quarantined {
        reason: entry.reason,
        until: entry.until.map(|until| until.0.to_string()),
    });
    let by = Holder {
        node: entry.node,
        policy: entry.policy,
        capture: entry.capture,
        node_uid: entry.node_uid,
        request: entry.request,
        sequence: u64::try_from(entry.sequence).unwrap_or_default(),
    };
    Holding {
        by: Some(by),
        quarantined,
    }
}

/// Adds `status.allocated-offsets`: the same fact once more, or, in a status that has nothing else, the only one.
pub(crate) fn offsets(
    pool: &Pool,
    status: &Value,
    held: &mut Holdings,
    warnings: &mut Vec<LedgerWarning>,
    wrong: &mut Vec<EntryError>,
) {
    let offsets = match status.get("allocated-offsets") {
        None | Some(Value::Null) => return,
        Some(Value::Array(offsets)) => offsets,
        Some(_) => return wrong.push(shape(OFFSETS, "a list of whole numbers")),
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
            None => wrong.push(EntryError::NoOffset {
                path,
                offset,
                last: last_offset(pool),
            }),
        }
    }
    if !held.is_empty() {
        let ours = |ip: &&IpAddr| pool.contains(**ip);
        let lacking = held.keys().filter(ours).find(|ip| !listed.contains(*ip));
        let unheld = listed.iter().find(|ip| !held.contains_key(*ip));
        warnings.extend(lacking.or(unheld).map(|ip| LedgerWarning::Disagree { ip: *ip }));
    }
    for ip in listed {
        held.entry(ip).or_default();
    }
}

fn last_offset(pool: &Pool) -> Option<u128> {
    let [range] = pool.ranges() else { return None };
    range.parts().map(|part| part.last_offset()).next()
}

fn shape(path: &str, wanted: &'static str) -> EntryError {
    EntryError::Shape {
        path: path.to_owned(),
        wanted,
    }
}

struct Offsets<'a>(&'a Option<u128>);

impl std::fmt::Display for Offsets<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.0 {
            Some(last) => write!(f, "the last is {last}"),
            None => write!(f, "only pools with a single range of one family have offsets"),
        }
    }
}
