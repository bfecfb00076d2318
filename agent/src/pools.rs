//! Pools as files give them: manifests checked by the API's own rules, with their holders and slices.
//!
//! The place where `crds` and `policy` meet for pools: `crds` says what the API server would refuse, `policy` what a pool
//! means. Called by `berth render` and `berth pool explain`. A violation is reported once, in the API server's words
//! where it has any.

use std::collections::BTreeMap;
use std::fmt;
use std::net::IpAddr;

use crds::{Kind, NodeIPSliceSpec, Violation};
use ipnet::IpNet;
use policy::claim::{Entry, Ledger};
use policy::pool::{Barred, Pool, PoolErrors, PoolSpec, PoolWarning};
use serde_json::Value;
use thiserror::Error;

use crate::ledger::{self, FileLedger, Holdings, LedgerWarning};
use crate::records::RecordErrors;

/// A pool with what is going on in it.
#[derive(Debug)]
pub(crate) struct KnownPool {
    pub(crate) spec: PoolSpec,
    pub(crate) pool: Pool,
    /// Of its slices too.
    pub(crate) held: Holdings,
    pub(crate) slices: Vec<OwnedSlice>,
    /// With the entries of its slices.
    ledger: Ledger,
}

/// A `NodeIPSlice`: a block of a pool that one node serves by itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct OwnedSlice {
    pub(crate) cidr: IpNet,
    pub(crate) node: String,
}

/// Pools by name.
#[derive(Debug, Default)]
pub(crate) struct Pools(BTreeMap<String, KnownPool>);

/// Why a manifest can't be used.
#[derive(Debug, Error)]
pub(crate) enum ManifestError {
    #[error("{}", Lines(.0))]
    Refused(Vec<Violation>),
    #[error(transparent)]
    Spec(#[from] PoolErrors),
    #[error(transparent)]
    Status(#[from] RecordErrors),
    #[error("pool {name} is given twice")]
    Twice { name: String },
    #[error("slice of pool {pool}: no such pool is given; known: {}", .known.join(", "))]
    NoPool { pool: String, known: Vec<String> },
    #[error("spec.cidr: {0}")]
    NotASlice(#[from] policy::pool::NotASlice),
    #[error("spec.cidr: {text:?} is not a CIDR")]
    NotACidr { text: String },
}

/// What the author of a manifest should hear of.
#[derive(Debug, Error)]
pub(crate) enum PoolRemark {
    #[error(transparent)]
    Spec(PoolWarning),
    #[error(transparent)]
    Ledger(LedgerWarning),
}

/// Two pools that share addresses.
#[derive(Debug, Error)]
#[error("pools {one} and {other} overlap, at {ip} first: what both have is given by neither")]
pub(crate) struct Overlap {
    one: String,
    other: String,
    ip: IpAddr,
}

impl Pools {
    /// Adds a `NodeIPPool`.
    pub(crate) fn add(&mut self, manifest: &Value) -> Result<Vec<PoolRemark>, ManifestError> {
        let (pool, remarks) = KnownPool::read(manifest)?;
        let name = pool.pool.name().to_owned();
        match self.0.insert(name.clone(), pool) {
            None => Ok(remarks),
            Some(_) => Err(ManifestError::Twice { name }),
        }
    }

    /// Adds a `NodeIPSlice` to its pool, which must have been added before.
    pub(crate) fn add_slice(&mut self, manifest: &Value) -> Result<(), ManifestError> {
        check(Kind::NodeIPSlice, manifest)?;
        let spec: NodeIPSliceSpec =
            serde_json::from_value(manifest.get("spec").cloned().unwrap_or_default()).unwrap_or_default();
        let known = self.names();
        let Some(pool) = self.0.get_mut(&spec.pool) else {
            return Err(ManifestError::NoPool { pool: spec.pool, known });
        };
        let cidr: IpNet = spec.cidr.parse().map_err(|_| ManifestError::NotACidr { text: spec.cidr })?;
        pool.pool.within(&[cidr])?;
        let FileLedger { ledger, held, warnings: _ } = ledger::read_slice(&pool.pool, manifest)?;
        pool.held.extend(held);
        pool.ledger.allocations.extend(ledger.allocations);
        pool.slices.push(OwnedSlice { cidr, node: spec.node });
        Ok(())
    }

    pub(crate) fn get(&self, name: &str) -> Option<&KnownPool> {
        self.0.get(name)
    }

    pub(crate) fn names(&self) -> Vec<String> {
        self.0.keys().cloned().collect()
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &KnownPool> {
        self.0.values()
    }

    /// Every two pools that have an address in common (R16).
    pub(crate) fn overlaps(&self) -> Vec<Overlap> {
        let pools: Vec<&Pool> = self.iter().map(|known| &known.pool).collect();
        let mut found = Vec::new();
        for (i, one) in pools.iter().enumerate() {
            for other in &pools[i + 1..] {
                found.extend(one.overlaps(other).map(|ip| Overlap {
                    one: one.name().to_owned(),
                    other: other.name().to_owned(),
                    ip,
                }));
            }
        }
        found
    }

    /// What this pool never gives because it belongs to others too.
    pub(crate) fn barred_for(&self, name: &str) -> Barred {
        let mut barred = Barred::default();
        self.iter().filter(|other| other.pool.name() != name).for_each(|other| barred.pool(&other.pool));
        barred
    }
}

impl KnownPool {
    fn read(manifest: &Value) -> Result<(Self, Vec<PoolRemark>), ManifestError> {
        check(Kind::NodeIPPool, manifest)?;
        let spec = PoolSpec::from_manifest(manifest)?;
        let pool = Pool::new(&spec)?;
        let FileLedger { ledger, held, warnings } = ledger::read(&pool, manifest)?;
        let remarks = pool.warnings().iter().cloned().map(PoolRemark::Spec);
        let remarks = remarks.chain(warnings.into_iter().map(PoolRemark::Ledger)).collect();
        Ok((Self { spec, pool, held, slices: Vec::new(), ledger }, remarks))
    }

    /// What the ledger has of an address.
    pub(crate) fn entry(&self, ip: IpAddr) -> Option<&Entry> {
        self.ledger.allocations.get(&ip)
    }

    /// All that the ledger has, in the order of addresses.
    pub(crate) fn entries(&self) -> impl Iterator<Item = (&IpAddr, &Entry)> {
        self.ledger.allocations.iter()
    }

    /// The ledger that claims are served from.
    pub(crate) fn ledger(&self) -> Ledger {
        self.ledger.clone()
    }
}

/// Everything that the API server, or `kubectl` before it, would say against creating this object. Its status is not
/// looked at: the API server drops it on creation.
pub(crate) fn check(kind: Kind, manifest: &Value) -> Result<(), ManifestError> {
    let mut object = manifest.clone();
    if let Some(fields) = object.as_object_mut() {
        fields.shift_remove("status");
    }
    let mut wrong = crds::validate(kind, None, &object);
    let unknown = crds::schema::unknown_fields(&kind.definition().schema, &object);
    wrong.extend(unknown.into_iter().map(|path| Violation {
        path,
        message: "unknown field".to_owned(),
        reason: crds::Reason::Invalid,
    }));
    if wrong.is_empty() { Ok(()) } else { Err(ManifestError::Refused(wrong)) }
}

/// One per line.
struct Lines<'a, T>(&'a [T]);

impl<T: fmt::Display> fmt::Display for Lines<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (i, item) in self.0.iter().enumerate() {
            let separator = if i == 0 { "" } else { "\n" };
            write!(f, "{separator}{item}")?;
        }
        Ok(())
    }
}
