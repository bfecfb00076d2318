//! The policy to render and the pools it may ask, from files.

use std::collections::BTreeMap;
use std::path::Path;

use anyhow::Context;
use crds::Kind;
use serde_json::{Map, Value};

use crate::cli::input::{self, Document, FileError};
use crate::cli::output;
use crate::pools::{self, Pools};

const EXPECTED: &str =
    "render takes a NodeNetworkConfigurationPolicy or a document with desiredState (and capture)";
const POOLS: &str = "--pool takes NodeIPPools and NodeIPSlices";
/// What a bare document may have: nmstate refuses anything else, and a misspelt key must not vanish.
const BARE: [&str; 3] = ["capture", "desiredState", "desired"];
/// What belongs under `spec`.
const SPEC: [&str; 4] = ["nodeSelector", "capture", "desiredState", "maxUnavailable"];

pub(super) struct Source {
    /// The policy's file.
    pub(super) file: String,
    pub(super) policy: Value,
    /// Not a bare document.
    pub(super) is_manifest: bool,
    /// Pools and slices, with the files they came from; slices may stand before their pools.
    others: Vec<(String, Kind, Value)>,
}

impl Source {
    pub(super) fn read(path: &Path) -> anyhow::Result<Self> {
        let file = input::read(path)?;
        let name = file.name;
        let mut policies = Vec::new();
        let mut others = Vec::new();
        for document in file.documents {
            match document {
                Document::Manifest(Kind::NodeNetworkConfigurationPolicy, manifest) => {
                    policies.push((manifest, true));
                }
                Document::Manifest(kind @ (Kind::NodeIPPool | Kind::NodeIPSlice), manifest) => {
                    others.push((name.clone(), kind, manifest));
                }
                Document::Bare(value) if is_bare_policy(&value) => policies.push((value, false)),
                other => return Err(other.unexpected(&name, EXPECTED).into()),
            }
        }
        let (policy, is_manifest) = match (policies.pop(), policies.len()) {
            (Some(one), 0) => one,
            (None, _) => return Err(no_policy(name).into()),
            (Some(_), others) => {
                return Err(FileError::Several {
                    file: name,
                    found: others + 1,
                }
                .into());
            }
        };
        let policy = match is_manifest {
            true => checked(&name, policy)?,
            false => policy,
        };
        Ok(Self {
            file: name,
            policy,
            is_manifest,
            others,
        })
    }

    pub(super) fn add_pools(&mut self, path: &Path) -> anyhow::Result<()> {
        let file = input::read(path)?;
        for document in file.documents {
            match document {
                Document::Manifest(kind @ (Kind::NodeIPPool | Kind::NodeIPSlice), manifest) => {
                    self.others.push((file.name.clone(), kind, manifest));
                }
                other => return Err(other.unexpected(&file.name, POOLS).into()),
            }
        }
        Ok(())
    }

    /// All pools with their slices.
    pub(super) fn pools(&self) -> anyhow::Result<Pools> {
        let mut pools = Pools::default();
        let of = |wanted| self.others.iter().filter(move |(_, kind, _)| *kind == wanted);
        for (file, _, manifest) in of(Kind::NodeIPPool) {
            let remarks = pools.add(manifest).with_context(|| refused(file, manifest))?;
            remarks.iter().for_each(|remark| output::warn(file, remark));
        }
        for (file, _, manifest) in of(Kind::NodeIPSlice) {
            pools
                .add_slice(manifest)
                .with_context(|| refused(file, manifest))?;
        }
        Ok(pools)
    }

    /// `metadata.name`; empty for a bare document.
    pub(super) fn name(&self) -> &str {
        self.policy
            .pointer("/metadata/name")
            .and_then(Value::as_str)
            .unwrap_or_default()
    }

    /// Rendering for a node that the policy doesn't select is answered, but hardly what was meant.
    pub(super) fn warn_unselected(&self, node: Option<&str>, labels: &BTreeMap<String, String>) {
        let selector = self
            .policy
            .pointer("/spec/nodeSelector")
            .and_then(Value::as_object);
        let (Some(node), Some(selector), false) = (node, selector, labels.is_empty()) else {
            return;
        };
        let lacking: Vec<String> = selector
            .iter()
            .filter_map(|(key, value)| Some((key, value.as_str()?)))
            .filter(|(key, value)| labels.get(*key).map(String::as_str) != Some(*value))
            .map(|(key, value)| format!("{key}={value}"))
            .collect();
        if !lacking.is_empty() {
            let lacking = lacking.join(",");
            output::warn(
                &self.file,
                format!(
                    "spec.nodeSelector doesn't select {node}, which lacks {lacking}: no agent would apply this there"
                ),
            );
        }
    }
}

fn refused(file: &str, manifest: &Value) -> String {
    let kind = manifest.get("kind").and_then(Value::as_str).unwrap_or_default();
    let name = manifest
        .pointer("/metadata/name")
        .and_then(Value::as_str)
        .unwrap_or("without a name");
    format!("{file}: {kind} {name} can't be used")
}

fn is_bare_policy(value: &Value) -> bool {
    let Some(fields) = value.as_object() else {
        return false;
    };
    !fields.is_empty() && fields.keys().all(|key| BARE.contains(&key.as_str()))
}

fn no_policy(file: String) -> FileError {
    FileError::NoneOfThese {
        file,
        found: "it has pools only".to_owned(),
        expected: EXPECTED,
    }
}

/// The manifest, if the API server would take it. `capture` and `desiredState` beside `spec` instead of under it, as the
/// proposal that brought pools to policies shows them, are moved to where they belong.
fn checked(file: &str, mut manifest: Value) -> anyhow::Result<Value> {
    if let Value::Object(fields) = &mut manifest
        && !fields.contains_key("spec")
    {
        let mut spec = Map::new();
        for key in SPEC {
            if let Some(value) = fields.shift_remove(key) {
                spec.insert(key.to_owned(), value);
            }
        }
        if !spec.is_empty() {
            let keys: Vec<&str> = spec.keys().map(String::as_str).collect();
            let keys = keys.join(" and ");
            output::warn(
                file,
                format!("{keys} must stand under spec: a cluster would drop them where they are"),
            );
            fields.insert("spec".to_owned(), Value::Object(spec));
        }
    }
    pools::check(Kind::NodeNetworkConfigurationPolicy, &manifest)
        .with_context(|| refused(file, &manifest))?;
    Ok(manifest)
}
