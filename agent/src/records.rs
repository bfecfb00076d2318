//! The claim protocol's values as API objects keep them, both ways: `policy::claim` ↔ `crds`.
//!
//! Owns the mapping, and with it the promise that whatever the protocol relies on survives a write and a read: values
//! are taken apart without `..`, so that a new field doesn't compile until it has a place, and a property test takes any
//! ledger, enactment and report through JSON and back. Called by `ledger` for files, by the agent and the
//! controller for the API.
//!
//! What the API server keeps in the metadata (UIDs, deletion, annotations) is read here and written by nobody. A value
//! that can't be read, or has no place, is an error with its path, all of them at once; nothing is guessed or dropped.
//!
//! Cost: linear in the object.

pub mod condition;
pub mod enactment;
mod entry;
mod lease;
pub mod pool;
pub mod slice;
pub mod standing;
pub mod state;
#[cfg(test)]
mod tests;

use std::fmt;
use std::net::IpAddr;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::{self as meta, ObjectMeta, OwnerReference};
use k8s_openapi::jiff::Timestamp;
use policy::claim::{NodeName, NodeUid, Time};
use policy::pool::UnknownEncoding;
use thiserror::Error;

/// A value that can't be read from an object, or has no place in it.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum RecordError {
    #[error("{path}: is missing")]
    Missing { path: String },
    #[error("{path}: {text:?} is not an IP address")]
    NotAnAddress { path: String, text: String },
    #[error("{path}: {ip} is listed twice, in two spellings")]
    Twice { path: String, ip: IpAddr },
    #[error("{path}: {number} is less than 0")]
    Negative { path: String, number: i64 },
    #[error("{path}: {number} is more than the API's integers hold")]
    TooLarge { path: String, number: u64 },
    #[error("{path}: {time} is before 1970")]
    TooEarly { path: String, time: Timestamp },
    #[error("{path}: {seconds} s after 1970 is past the year 2999")]
    TooLate { path: String, seconds: Time },
    #[error("{path}: has no meaning {here}")]
    Stray { path: String, here: &'static str },
    #[error("{path}: is {found}, and {other} is {wanted}")]
    Disagree { path: String, found: String, other: &'static str, wanted: String },
    #[error("{path}: must be {wanted}")]
    Shape { path: String, wanted: &'static str },
    #[error("{path}: no range of pool {pool} has {ip}: nothing says its prefix length")]
    OutOfRange { path: String, ip: IpAddr, pool: String },
    #[error("{path}: there is no pool {pool} that says its prefix length")]
    NoPool { path: String, pool: String },
    #[error(transparent)]
    Encoding(#[from] UnknownEncoding),
    #[error("{0}")]
    Refused(crds::Violation),
    #[error("{path}: this pool has no offset {offset}; {}", Offsets(.last))]
    NoOffset { path: String, offset: u64, last: Option<u128> },
}

struct Offsets<'a>(&'a Option<u128>);

impl fmt::Display for Offsets<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            Some(last) => write!(f, "the last is {last}"),
            None => write!(f, "only pools with a single range of one family have offsets"),
        }
    }
}

/// All that is wrong with an object, one per line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RecordErrors(pub Vec<RecordError>);

impl fmt::Display for RecordErrors {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (i, error) in self.0.iter().enumerate() {
            write!(f, "{}{error}", if i == 0 { "" } else { "\n" })?;
        }
        Ok(())
    }
}

impl std::error::Error for RecordErrors {}

impl From<RecordError> for RecordErrors {
    fn from(error: RecordError) -> Self {
        Self(vec![error])
    }
}

/// What goes wrong on the way, until all has been looked at.
#[derive(Default)]
struct Wrong(Vec<RecordError>);

impl Wrong {
    fn note<T>(&mut self, read: Result<T, RecordError>) -> Option<T> {
        read.map_err(|error| self.0.push(error)).ok()
    }

    /// The value, if nothing was wrong.
    fn or<T>(self, value: T) -> Result<T, RecordErrors> {
        if self.0.is_empty() { Ok(value) } else { Err(RecordErrors(self.0)) }
    }
}

/// An address in any spelling; an IPv4 address inside an IPv6 one is the IPv4 address.
fn read_ip(path: &str, text: &str) -> Result<IpAddr, RecordError> {
    let not_one = |_| RecordError::NotAnAddress { path: path.to_owned(), text: text.to_owned() };
    text.parse::<IpAddr>().map(|ip| ip.to_canonical()).map_err(not_one)
}

/// An address as the API's rules want it. None that the protocol makes is IPv4 inside IPv6.
fn write_ip(path: &str, ip: IpAddr) -> Result<String, RecordError> {
    let text = ip.to_string();
    if crds::address::is_canonical(&text) {
        return Ok(text);
    }
    Err(RecordError::NotAnAddress { path: path.to_owned(), text })
}

fn read_number(path: &str, number: i64) -> Result<u64, RecordError> {
    u64::try_from(number).map_err(|_| RecordError::Negative { path: path.to_owned(), number })
}

fn write_number(path: &str, number: u64) -> Result<i64, RecordError> {
    i64::try_from(number).map_err(|_| RecordError::TooLarge { path: path.to_owned(), number })
}

/// The last second that the API's schemas take: the end of 2999.
const LAST: Time = 32_503_679_999;

/// Whole seconds, a fraction rounded up: nothing ends before its time.
fn read_time(path: &str, time: &meta::Time) -> Result<Time, RecordError> {
    let early = |_| RecordError::TooEarly { path: path.to_owned(), time: time.0 };
    let seconds = u64::try_from(time.0.as_second()).map_err(early)?;
    Ok(seconds + u64::from(time.0.subsec_nanosecond() > 0))
}

fn write_time(path: &str, seconds: Time) -> Result<meta::Time, RecordError> {
    let written = i64::try_from(seconds).ok().filter(|_| seconds <= LAST);
    let time = written.and_then(|seconds| Timestamp::from_second(seconds).ok());
    time.map(meta::Time).ok_or_else(|| RecordError::TooLate { path: path.to_owned(), seconds })
}

/// The Node that owns an object: whose it is, whatever its name says.
pub(crate) fn read_owner(metadata: &ObjectMeta) -> Result<(NodeName, NodeUid), RecordError> {
    let owners = metadata.owner_references.iter().flatten();
    let mut nodes = owners.filter(|owner| owner.kind == "Node" && owner.api_version == "v1");
    match (nodes.next(), nodes.next()) {
        (Some(node), None) => Ok((node.name.as_str().into(), node.uid.as_str().into())),
        (None, _) => Err(RecordError::Missing { path: "metadata.ownerReferences[Node]".to_owned() }),
        _ => Err(RecordError::Shape { path: "metadata.ownerReferences".to_owned(), wanted: "one Node" }),
    }
}

fn write_owner(node: &NodeName, uid: &NodeUid) -> OwnerReference {
    OwnerReference {
        api_version: "v1".to_owned(),
        kind: "Node".to_owned(),
        name: node.to_string(),
        uid: uid.to_string(),
        controller: None,
        block_owner_deletion: None,
    }
}

fn read_uid(metadata: &ObjectMeta) -> Result<&str, RecordError> {
    metadata.uid.as_deref().ok_or_else(|| RecordError::Missing { path: "metadata.uid".to_owned() })
}
