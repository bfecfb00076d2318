//! Manifests in a directory, brought into the API and followed as they change: how a host on its own is told what to do.
//!
//! Pools and policies. What is in the files is created or updated; what came from a file and is in none any more is
//! deleted. A file that can't be read, or an object that is refused, is said with its name, changes nothing and deletes
//! nothing: as long as any file is broken, all that is there stays. Status is the API's, never a file's.
//!
//! Cost: a look at the directory's names and times every second; the API is asked only when those changed.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use crds::names::label::FROM_MANIFESTS;
use crds::{Kind, NodeIPPool, NodeNetworkConfigurationPolicy};
use kube::api::{Api, DeleteParams, ListParams, PostParams};
use kube::{Client, Resource, ResourceExt};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use crate::api::error::{optional, words};
use crate::{pools, yaml};

/// Soon enough for who saves a file and looks.
const LOOK: Duration = Duration::from_secs(1);
/// After the API refused something that may be taken later.
const AGAIN: Duration = Duration::from_secs(10);

/// A directory that is followed.
pub struct Manifests {
    folder: PathBuf,
    client: Client,
    /// The files as they were when all of them were last taken.
    taken: Option<Files>,
}

type Files = BTreeMap<PathBuf, (SystemTime, u64)>;

/// What a file says.
struct Wanted {
    file: String,
    kind: Kind,
    name: String,
    object: Value,
}

impl Manifests {
    pub fn new(folder: &Path, client: Client) -> Self {
        Self { folder: folder.to_owned(), client, taken: None }
    }

    /// Follows the directory until dropped. `tell` hears what is wrong, once for each state of the files.
    pub async fn follow(mut self, tell: impl Fn(&str)) {
        loop {
            let wait = self.look(&tell).await;
            tokio::time::sleep(wait).await;
        }
    }

    async fn look(&mut self, tell: &impl Fn(&str)) -> Duration {
        let files = match files(&self.folder) {
            Ok(files) => files,
            Err(error) => {
                if self.taken.is_none() {
                    tell(&format!("{}: {error}", self.folder.display()));
                }
                return AGAIN;
            }
        };
        if self.taken.as_ref() == Some(&files) {
            return LOOK;
        }
        let mut wrong = Vec::new();
        let wanted = read(&files, &mut wrong);
        if let Err(error) = self.bring(&wanted, wrong.is_empty(), &mut wrong).await {
            // Away: the same again, and nothing to say about the files.
            tell(&format!("the API: {}; trying again", words(&error)));
            return AGAIN;
        }
        wrong.iter().for_each(|line| tell(line));
        self.taken = Some(files);
        LOOK
    }

    async fn bring(
        &self,
        wanted: &[Wanted],
        whole: bool,
        wrong: &mut Vec<String>,
    ) -> Result<(), kube::Error> {
        for one in wanted {
            let brought = match one.kind {
                Kind::NodeIPPool => self.put::<NodeIPPool>(one).await,
                Kind::NodeNetworkConfigurationPolicy => self.put::<NodeNetworkConfigurationPolicy>(one).await,
                _ => continue,
            };
            match brought {
                Ok(()) => {}
                Err(kube::Error::Api(status)) if status.code < 500 && status.code != 429 => {
                    wrong.push(format!("{}: {} {}: {}", one.file, one.kind.name(), one.name, status.message));
                }
                Err(error) => return Err(error),
            }
        }
        if whole {
            self.drop_others::<NodeNetworkConfigurationPolicy>(wanted).await?;
            self.drop_others::<NodeIPPool>(wanted).await?;
        }
        Ok(())
    }

    async fn put<K>(&self, one: &Wanted) -> Result<(), kube::Error>
    where
        K: Resource<Scope = kube::core::ClusterResourceScope>
            + Clone
            + Serialize
            + DeserializeOwned
            + std::fmt::Debug,
        K::DynamicType: Default,
    {
        let api: Api<K> = Api::all(self.client.clone());
        let mut object = one.object.clone();
        object["metadata"]["labels"][FROM_MANIFESTS] = json!("true");
        match optional(api.get(&one.name).await)? {
            None => {
                let new = serde_json::from_value(object).map_err(kube::Error::SerdeError)?;
                api.create(&PostParams::default(), &new).await?;
            }
            Some(there) => {
                let before = serde_json::to_value(&there).map_err(kube::Error::SerdeError)?;
                let mut next = before.clone();
                next["spec"] = object["spec"].clone();
                next["metadata"]["labels"][FROM_MANIFESTS] = json!("true");
                let typed: K = serde_json::from_value(next).map_err(kube::Error::SerdeError)?;
                if serde_json::to_value(&typed).map_err(kube::Error::SerdeError)? != before {
                    api.replace(&one.name, &PostParams::default(), &typed).await?;
                }
            }
        }
        Ok(())
    }

    /// What came from a file and is in none any more.
    async fn drop_others<K>(&self, wanted: &[Wanted]) -> Result<(), kube::Error>
    where
        K: Resource<Scope = kube::core::ClusterResourceScope> + Clone + DeserializeOwned + std::fmt::Debug,
        K::DynamicType: Default,
    {
        let api: Api<K> = Api::all(self.client.clone());
        let kind = K::kind(&K::DynamicType::default()).into_owned();
        let names: BTreeSet<&str> =
            wanted.iter().filter(|one| one.kind.name() == kind).map(|one| one.name.as_str()).collect();
        for object in api.list(&ListParams::default().labels(&format!("{FROM_MANIFESTS}=true"))).await? {
            if !names.contains(object.name_any().as_str()) && object.meta().deletion_timestamp.is_none() {
                optional(api.delete(&object.name_any(), &DeleteParams::default()).await)?;
            }
        }
        Ok(())
    }
}

/// The manifests of a directory, with what tells one state of them from another.
fn files(folder: &Path) -> std::io::Result<Files> {
    let mut files = Files::new();
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        let is_one =
            path.extension().is_some_and(|end| ["yaml", "yml", "json"].iter().any(|known| end == *known));
        if let Some(about) = fs::metadata(&path).ok().filter(|about| is_one && about.is_file()) {
            files.insert(path, (about.modified()?, about.len()));
        }
    }
    Ok(files)
}

fn read(files: &Files, wrong: &mut Vec<String>) -> Vec<Wanted> {
    let mut wanted: Vec<Wanted> = Vec::new();
    for path in files.keys() {
        let file = path.display().to_string();
        let documents = fs::read_to_string(path).map_err(|error| error.to_string());
        let documents = documents.and_then(|text| yaml::parse(&text).map_err(|error| error.to_string()));
        match documents {
            Err(error) => wrong.push(format!("{file}: {error}")),
            Ok(documents) => {
                for object in documents {
                    match wanted_of(&file, object) {
                        Ok(one)
                            if wanted
                                .iter()
                                .any(|other| other.kind == one.kind && other.name == one.name) =>
                        {
                            wrong.push(format!("{file}: {} {} is given twice", one.kind.name(), one.name));
                        }
                        Ok(one) => wanted.push(one),
                        Err(error) => wrong.push(format!("{file}: {error}")),
                    }
                }
            }
        }
    }
    wanted
}

fn wanted_of(file: &str, object: Value) -> Result<Wanted, String> {
    let word = object["kind"].as_str().unwrap_or_default();
    let kind = match Kind::from_name(word) {
        Some(kind @ (Kind::NodeIPPool | Kind::NodeNetworkConfigurationPolicy)) => kind,
        _ => return Err(format!("kind {word:?}: expected NodeIPPool or NodeNetworkConfigurationPolicy")),
    };
    let name = object["metadata"]["name"].as_str().unwrap_or_default().to_owned();
    if name.is_empty() {
        return Err("metadata.name: is missing".to_owned());
    }
    pools::check(kind, &object).map_err(|error| format!("{} {name}: {error}", kind.name()))?;
    Ok(Wanted { file: file.to_owned(), kind, name, object })
}

#[cfg(test)]
mod tests;
