//! A pool's spec as plain data: what a person wrote, not yet checked.
//!
//! The agent fills these from the API types, the CLI from a YAML file through `PoolSpec::from_manifest`
//! or serde (the API's field names). Nothing is parsed here beyond the shape: `Pool::new` does that,
//! and reports every error at once.

mod read;

use std::collections::BTreeMap;

use serde::{Deserialize, Deserializer, de::Error};
use serde_json::Value;

use super::band::StaticBand;
use super::error::PoolErrors;
use super::selector::NodeSelector;

/// `NodeIPPool`: its name and its `spec`.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct PoolSpec {
    /// `metadata.name`.
    pub name: String,
    /// Exactly one of `range` and `ranges`.
    pub range: Option<RangeSpec>,
    pub ranges: Option<Vec<RangeSpec>>,
    pub static_band: StaticBand,
    pub reservations: Vec<Reservation>,
    /// As written, `5m`; absent is five minutes.
    pub quarantine: Option<String>,
}

/// One range. Either `block`, or `ipv4` and/or `ipv6`.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RangeSpec {
    /// Empty for the single `range`.
    pub name: String,
    /// `cidr`, `start`, `end`, `exclude`, `gateway` written directly on the range.
    pub block: Option<BlockSpec>,
    pub ipv4: Option<BlockSpec>,
    pub ipv6: Option<BlockSpec>,
    pub skip_octet_ends: bool,
    pub per_node_host_bits: Option<u32>,
    pub node_selector: Option<NodeSelector>,
    pub attributes: BTreeMap<String, String>,
    pub state: RangeState,
}

/// The addresses of a range in one family.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct BlockSpec {
    pub cidr: String,
    pub start: Option<String>,
    pub end: Option<String>,
    pub exclude: Vec<String>,
    pub gateway: Option<String>,
}

/// Whether a range still gives.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum RangeState {
    #[default]
    Active,
    /// Keeps what it gave and gives nothing new.
    Draining,
}

/// An address kept for a node.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Reservation {
    pub node: String,
    pub ip: String,
}

impl RangeState {
    pub fn parse(text: &str) -> Option<RangeState> {
        match text {
            "Active" => Some(RangeState::Active),
            "Draining" => Some(RangeState::Draining),
            _ => None,
        }
    }
}

impl BlockSpec {
    pub fn new(cidr: impl Into<String>) -> BlockSpec {
        BlockSpec { cidr: cidr.into(), ..BlockSpec::default() }
    }
}

impl PoolSpec {
    /// Reads a whole manifest: `metadata.name` and `spec`.
    pub fn from_manifest(manifest: &Value) -> Result<PoolSpec, PoolErrors> {
        read::manifest(manifest)
    }

    /// Reads the object under `spec`; the name comes from elsewhere.
    pub fn from_spec(name: &str, spec: &Value) -> Result<PoolSpec, PoolErrors> {
        read::spec(name, spec)
    }

    /// Every range with the path it was written at.
    pub(crate) fn paths(&self) -> impl Iterator<Item = (String, &RangeSpec)> {
        let single = self.range.iter().map(|range| ("spec.range".to_owned(), range));
        let several = self.ranges.iter().flatten().enumerate();
        single.chain(several.map(|(i, range)| (format!("spec.ranges[{i}]"), range)))
    }
}

/// A manifest, or only what stands under its `spec` (then the name is empty, and must be set).
impl<'de> Deserialize<'de> for PoolSpec {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let value = Value::deserialize(deserializer)?;
        let read = if value.get("spec").is_some() {
            Self::from_manifest(&value)
        } else {
            Self::from_spec("", &value)
        };
        read.map_err(D::Error::custom)
    }
}
