//! Pools to be shown or explained: of a file, or as the API has them. Both by the same rules.

use std::collections::BTreeMap;
use std::path::Path;

use anyhow::Context;
use crds::{Kind, NodeIPPool, NodeIPSlice};
use k8s_openapi::api::networking::v1::ServiceCIDR;
use kube::ResourceExt;
use serde_json::Value;

use crate::cli::client::{self, Reach};
use crate::cli::cluster::{Cluster, NoSuch};
use crate::cli::input::{self, Document};
use crate::cli::{manifest, output};
use crate::pools::{KnownPool, Pools};

#[derive(Default)]
pub(super) struct Source {
    pub(super) pools: Pools,
    /// Of the cluster, which no pool gives of; a file names none.
    pub(super) services: Vec<ServiceCIDR>,
    /// Reason and message of each pool that has a condition.
    pub(super) conditions: BTreeMap<String, (String, String)>,
}

impl Source {
    /// A file, which is `expected` to be something, or the API where none is given.
    pub(super) fn read(file: Option<&Path>, reach: &Reach, expected: &'static str) -> anyhow::Result<Self> {
        match file {
            Some(file) => Ok(Self { pools: of_file(file, expected)?, ..Self::default() }),
            None => client::block_on(of_api(reach)),
        }
    }

    /// The pools of these names, or all.
    pub(super) fn chosen(&self, names: &[String]) -> anyhow::Result<Vec<&KnownPool>> {
        if names.is_empty() {
            return Ok(self.pools.iter().collect());
        }
        let known = || self.pools.names();
        let get = |name: &String| {
            let no_such = || NoSuch { kind: "pool", name: name.clone(), known: known() };
            self.pools.get(name).ok_or_else(|| no_such().into())
        };
        names.iter().map(get).collect()
    }
}

fn of_file(path: &Path, expected: &'static str) -> anyhow::Result<Pools> {
    let file = input::read(path)?;
    let mut pools = Pools::default();
    let mut slices = Vec::new();
    let mut others = Vec::new();
    for document in file.documents {
        match document {
            Document::Manifest(Kind::NodeIPPool, manifest) => {
                let remarks =
                    pools.add(&manifest).with_context(|| manifest::refused(&file.name, &manifest))?;
                remarks.iter().for_each(|remark| output::warn(&file.name, remark));
            }
            Document::Manifest(Kind::NodeIPSlice, manifest) => slices.push(manifest),
            // A policy may stand beside the pools it asks.
            other => others.push(other),
        }
    }
    let strange = others.iter().find(|other| pools.is_empty() || !matches!(other, Document::Manifest(..)));
    if let Some(other) = strange {
        return Err(other.unexpected(&file.name, expected).into());
    }
    for manifest in slices {
        pools.add_slice(&manifest).with_context(|| manifest::refused(&file.name, &manifest))?;
    }
    pools.overlaps().iter().for_each(|overlap| output::warn(&file.name, overlap));
    Ok(pools)
}

/// One that can't be read is said and left out: the others can be looked at all the same.
async fn of_api(reach: &Reach) -> anyhow::Result<Source> {
    let cluster = Cluster::reach(reach).await?;
    let slices = cluster.list::<NodeIPSlice>().await?;
    let mut source = Source { services: cluster.services().await?, ..Source::default() };
    for object in cluster.list::<NodeIPPool>().await? {
        let name = object.name_any();
        let at = format!("pool {name}");
        match source.pools.add(&manifest_of(&object)?) {
            Ok(remarks) => remarks.iter().for_each(|remark| output::warn(&at, remark)),
            Err(why) => output::warn(&at, why),
        }
        let conditions = object.status.as_ref().map(|status| status.conditions.as_slice());
        if let Some(condition) = conditions.and_then(<[_]>::first) {
            source.conditions.insert(name, (condition.reason.clone(), condition.message.clone()));
        }
    }
    for slice in slices {
        if let Err(why) = source.pools.add_slice(&manifest_of(&slice)?) {
            output::warn(&format!("slice {}", slice.name_any()), why);
        }
    }
    let overlaps = source.pools.overlaps();
    overlaps.iter().for_each(|overlap| output::warn("pools", overlap));
    Ok(source)
}

/// An object as a file has it: who wrote which field is no part of it.
fn manifest_of(object: &impl serde::Serialize) -> anyhow::Result<Value> {
    let mut value = serde_json::to_value(object)?;
    if let Some(metadata) = value.get_mut("metadata").and_then(Value::as_object_mut) {
        metadata.shift_remove("managedFields");
    }
    Ok(value)
}
