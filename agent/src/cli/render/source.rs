//! The policy to render and the pools it may ask, from files.

use std::collections::BTreeMap;
use std::path::Path;

use anyhow::Context;
use crds::Kind;
use serde_json::Value;

use crate::cli::input::{self, Document, FileError};
use crate::cli::{manifest, output};
use crate::pools::Pools;

const EXPECTED: &str =
    "render takes a NodeNetworkConfigurationPolicy or a document with desiredState (and capture)";
const POOLS: &str = "--pool takes NodeIPPools and NodeIPSlices";
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
                Document::Bare(value) if manifest::is_bare_policy(&value) => policies.push((value, false)),
                other => return Err(other.unexpected(&name, EXPECTED).into()),
            }
        }
        let (policy, is_manifest) = match (policies.pop(), policies.len()) {
            (Some(one), 0) => one,
            (None, _) => return Err(no_policy(name).into()),
            (Some(_), others) => {
                return Err(FileError::Several { file: name, found: others + 1, what: "policies" }.into());
            }
        };
        let policy = match is_manifest {
            true => manifest::checked(&name, policy)?,
            false => policy,
        };
        Ok(Self { file: name, policy, is_manifest, others })
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
            let remarks = pools.add(manifest).with_context(|| manifest::refused(file, manifest))?;
            remarks.iter().for_each(|remark| output::warn(file, remark));
        }
        for (file, _, manifest) in of(Kind::NodeIPSlice) {
            pools.add_slice(manifest).with_context(|| manifest::refused(file, manifest))?;
        }
        pools.overlaps().iter().for_each(|overlap| output::warn(&self.file, overlap));
        Ok(pools)
    }

    /// `metadata.name`; empty for a bare document.
    pub(super) fn name(&self) -> &str {
        self.policy.pointer("/metadata/name").and_then(Value::as_str).unwrap_or_default()
    }

    /// Rendering for a node that the policy doesn't select is answered, but hardly what was meant.
    pub(super) fn warn_unselected(&self, node: Option<&str>, labels: &BTreeMap<String, String>) {
        let selector = self.policy.pointer("/spec/nodeSelector").and_then(Value::as_object);
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

fn no_policy(file: String) -> FileError {
    FileError::NoneOfThese { file, found: "it has pools only".to_owned(), expected: EXPECTED }
}
