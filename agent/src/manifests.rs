//! Manifests in a directory, brought into the API and followed as they change: how a host on its own is told what to do.
//!
//! Pools and policies. What is in the files is created or updated; what came from a file and is in none any more is
//! deleted. A file that can't be read, or an object that is refused, is said with its name, changes nothing and deletes
//! nothing: as long as any file is broken, all that is there stays. Status is the API's, never a file's.
//!
//! Cost: a look at the directory's names and times every second; the API is asked only when those changed.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

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
    /// The files as they were at the last look: what is in none of them is deleted only if that was so twice, since a file
    /// may be half written.
    seen: Option<Files>,
    /// What was last said to be wrong.
    said: Vec<String>,
}

type Files = BTreeMap<PathBuf, State>;

/// What tells a file from what it was: a copy that keeps time and length (`cp -p`) is another all the same.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct State {
    inode: u64,
    length: u64,
    times: [i64; 4],
}

/// What a file says.
struct Wanted {
    file: String,
    kind: Kind,
    name: String,
    object: Value,
}

/// What became of an object that is wanted.
enum Put {
    Done,
    /// One of its name is on its way out.
    Leaving,
}

/// A policy that is being rolled out is not edited meanwhile: the API says so, and that passes.
fn is_in_progress(status: &kube::core::Status) -> bool {
    status.code < 500 && status.message.contains("is still in progress")
}

impl Manifests {
    pub fn new(folder: &Path, client: Client) -> Self {
        Self { folder: folder.to_owned(), client, taken: None, seen: None, said: Vec::new() }
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
                // Said once, and again when it is another thing; what was taken from it stays.
                let line = format!("{}: {error}", self.folder.display());
                if !self.said.contains(&line) {
                    tell(&line);
                    self.said = vec![line];
                }
                return AGAIN;
            }
        };
        if self.taken.as_ref() == Some(&files) {
            return LOOK;
        }
        // From here on the API has something of these files: going back to the former ones is a change, too.
        self.taken = None;
        let mut wrong = Vec::new();
        let wanted = read(&files, &mut wrong);
        let steady = self.seen.as_ref() == Some(&files);
        let brought = self.bring(&wanted, wrong.is_empty() && steady, &mut wrong).await;
        self.seen = Some(files.clone());
        let waits = match brought {
            Ok(waits) => waits,
            Err(error) => {
                // Away: the same again, and nothing to say about the files.
                tell(&format!("the API: {}; trying again", words(&error)));
                return AGAIN;
            }
        };
        for line in wrong.iter().filter(|line| !self.said.contains(line)) {
            tell(line);
        }
        self.said = wrong;
        if steady && !waits {
            self.taken = Some(files);
            self.said.clear();
        }
        LOOK
    }

    /// Brings what is wanted into the API, and where the files are `whole` takes the rest away. Whether something has to
    /// wait: what is in progress or being deleted can't be changed now, and can be later.
    async fn bring(
        &self,
        wanted: &[Wanted],
        whole: bool,
        wrong: &mut Vec<String>,
    ) -> Result<bool, kube::Error> {
        let mut waits = false;
        for one in wanted {
            let brought = match one.kind {
                Kind::NodeIPPool => self.put::<NodeIPPool>(one).await,
                Kind::NodeNetworkConfigurationPolicy => self.put::<NodeNetworkConfigurationPolicy>(one).await,
                _ => continue,
            };
            let about = |what: &str| format!("{}: {} {}: {what}", one.file, one.kind.name(), one.name);
            match brought {
                Ok(Put::Done) => {}
                Ok(Put::Leaving) => {
                    waits = true;
                    wrong.push(about("is being deleted; made anew when it is gone"));
                }
                Err(kube::Error::Api(status)) if status.code == 409 => waits = true,
                Err(kube::Error::Api(status)) if is_in_progress(&status) => {
                    waits = true;
                    wrong.push(about(&format!("{}; changed when it is over", status.message)));
                }
                Err(kube::Error::Api(status)) if status.code < 500 && status.code != 429 => {
                    wrong.push(about(&status.message));
                }
                Err(error) => return Err(error),
            }
        }
        if whole {
            self.drop_others::<NodeNetworkConfigurationPolicy>(wanted).await?;
            self.drop_others::<NodeIPPool>(wanted).await?;
        }
        Ok(waits)
    }

    async fn put<K>(&self, one: &Wanted) -> Result<Put, kube::Error>
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
                crate::fault::point("manifest-put");
            }
            Some(there) if there.meta().deletion_timestamp.is_some() => return Ok(Put::Leaving),
            Some(there) => {
                let before = serde_json::to_value(&there).map_err(kube::Error::SerdeError)?;
                let mut next = before.clone();
                next["spec"] = object["spec"].clone();
                // What others have put there stays.
                for marks in ["labels", "annotations"] {
                    for (key, value) in object["metadata"][marks].as_object().into_iter().flatten() {
                        next["metadata"][marks][key] = value.clone();
                    }
                }
                let typed: K = serde_json::from_value(next).map_err(kube::Error::SerdeError)?;
                if serde_json::to_value(&typed).map_err(kube::Error::SerdeError)? != before {
                    api.replace(&one.name, &PostParams::default(), &typed).await?;
                }
            }
        }
        Ok(Put::Done)
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
                crate::fault::point("manifest-dropped");
            }
        }
        Ok(())
    }
}

/// The pools of a file, or of the files of a directory, by name; what is wrong with any of them is all that is said.
pub fn pools(path: &Path) -> Result<BTreeMap<String, NodeIPPool>, PoolsError> {
    let at = |error: std::io::Error| PoolsError(vec![error.to_string()]);
    let files = match fs::metadata(path).map_err(at)? {
        about if about.is_dir() => files(path).map_err(at)?,
        _ => Files::from([(path.to_owned(), State::default())]),
    };
    let mut wrong = Vec::new();
    let mut pools = BTreeMap::new();
    for Wanted { file, kind, name, object } in read(&files, &mut wrong) {
        match serde_json::from_value(object) {
            _ if kind != Kind::NodeIPPool => {
                wrong.push(format!("{file}: {} {name}: expected NodeIPPools alone", kind.name()));
            }
            Ok(pool) => drop(pools.insert(name, pool)),
            Err(error) => wrong.push(format!("{file}: {} {name}: {error}", kind.name())),
        }
    }
    if wrong.is_empty() { Ok(pools) } else { Err(PoolsError(wrong)) }
}

/// What is wrong with files of pools, a line each.
#[derive(Debug, thiserror::Error)]
#[error("{}", .0.join("\n"))]
pub struct PoolsError(Vec<String>);

/// The manifests of a directory, with what tells one state of them from another.
fn files(folder: &Path) -> std::io::Result<Files> {
    let mut files = Files::new();
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        let is_one =
            path.extension().is_some_and(|end| ["yaml", "yml", "json"].iter().any(|known| end == *known));
        if !is_one {
            continue;
        }
        match fs::metadata(&path) {
            Ok(about) if about.is_file() => {
                let times = [about.mtime(), about.mtime_nsec(), about.ctime(), about.ctime_nsec()];
                files.insert(path, State { inode: about.ino(), length: about.len(), times });
            }
            Ok(_) => {}
            // A link to nowhere, say: it is there, and what it stands for must not be taken for deleted. Editors leave such
            // links beside what they edit, with a dot before the name.
            Err(_) if is_hidden(&path) => {}
            Err(_) => drop(files.insert(path, State::default())),
        }
    }
    Ok(files)
}

fn is_hidden(path: &Path) -> bool {
    path.file_name().is_some_and(|name| name.as_encoded_bytes().starts_with(b"."))
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

fn wanted_of(file: &str, mut object: Value) -> Result<Wanted, String> {
    let word = object["kind"].as_str().unwrap_or_default();
    let kind = match Kind::from_name(word) {
        Some(kind @ (Kind::NodeIPPool | Kind::NodeNetworkConfigurationPolicy)) => kind,
        _ => return Err(format!("kind {word:?}: expected NodeIPPool or NodeNetworkConfigurationPolicy")),
    };
    let name = object["metadata"]["name"].as_str().unwrap_or_default().to_owned();
    if name.is_empty() {
        return Err("metadata.name: is missing".to_owned());
    }
    for marks in ["labels", "annotations"] {
        let is_text = |marks: &Value| {
            let all = marks.as_object().map(|all| all.values().all(Value::is_string));
            marks.is_null() || all.unwrap_or(false)
        };
        if !is_text(&object["metadata"][marks]) {
            return Err(format!("{} {name}: metadata.{marks}: expected names and texts", kind.name()));
        }
    }
    pools::check(kind, &object).map_err(|error| format!("{} {name}: {error}", kind.name()))?;
    // A policy need not have one: it asks for nothing then.
    if object["spec"].is_null() {
        object["spec"] = json!({});
    }
    Ok(Wanted { file: file.to_owned(), kind, name, object })
}

#[cfg(test)]
mod tests;
