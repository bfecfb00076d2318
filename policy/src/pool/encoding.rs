//! How a ledger is written, as hints on the pool or slice that has it (R59, D12).
//!
//! A ledger written by a later Berth in a way this one doesn't know must not be read as if it were
//! empty: an unknown value stops the pool. No annotation means what this version writes.

use std::collections::BTreeMap;

/// Annotation: the version of the ledger's fields.
pub const SCHEMA_VERSION: &str = "nmstate.io/schema-version";
/// Annotation: how the holders are encoded.
pub const LEDGER_ENCODING: &str = "nmstate.io/ledger-encoding";

/// What this version writes, and all it reads.
const KNOWN: [(&str, &str); 2] = [(SCHEMA_VERSION, "1"), (LEDGER_ENCODING, "allocations")];

/// [`LEDGER_ENCODING`] of a slice that is made with an address: the ledger is in its spec until one is written. Who doesn't know
/// that would take it for empty.
pub const MADE_WITH: &str = "first";

/// A hint with a value that this version doesn't know.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "{annotation} is {value:?}, this version knows {known:?}: the pool gives nothing until a version that knows it runs, or the annotation is corrected"
)]
pub struct UnknownEncoding {
    pub annotation: &'static str,
    pub value: String,
    pub known: &'static str,
}

/// The hints to write on a pool.
pub fn hints() -> BTreeMap<String, String> {
    KNOWN.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect()
}

/// Whether this version may read, and write, the pool with these annotations.
pub fn check_encoding(annotations: &BTreeMap<String, String>) -> Result<(), UnknownEncoding> {
    check(annotations, |_, _| false)
}

/// The same of a slice.
pub fn check_slice_encoding(annotations: &BTreeMap<String, String>) -> Result<(), UnknownEncoding> {
    check(annotations, |annotation, value| (annotation, value) == (LEDGER_ENCODING, MADE_WITH))
}

fn check(
    annotations: &BTreeMap<String, String>,
    also: impl Fn(&str, &str) -> bool,
) -> Result<(), UnknownEncoding> {
    for (annotation, known) in KNOWN {
        match annotations.get(annotation) {
            Some(value) if value != known && !also(annotation, value) => {
                return Err(UnknownEncoding { annotation, value: value.clone(), known });
            }
            _ => {}
        }
    }
    Ok(())
}
