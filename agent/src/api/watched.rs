//! Objects of one kind as the API server last told of them, kept current by a watch.
//!
//! A list first, then a watch from there. A watch that ends is taken up where it ended; one whose past is forgotten (410)
//! begins with a list again, and one that doesn't end in its time is taken up too: a connection may be dead and not know it.
//! Whoever watches is told of each change, after it can be read here. While the server is
//! away the last known objects stay, and [`Watched::link`] says so: an old copy is for deciding that a look is worth
//! it, never for taking anything from anybody.
//!
//! Cost: every object once in memory; one list and one connection, and nothing while nothing changes.

use std::collections::BTreeMap;
use std::fmt::Debug;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, PoisonError, RwLock};
use std::time::{Duration, Instant};

use futures_util::{StreamExt, TryStreamExt, pin_mut};
use kube::api::{ListParams, WatchEvent, WatchParams};
use kube::{Api, Error, Resource, ResourceExt};
use serde::de::DeserializeOwned;
use tokio::sync::watch;

use super::error::words;
use super::task::Task;
use super::{list, random};
use crate::telemetry::warn;

/// How long to wait after a first failure, and at most.
const FIRST: Duration = Duration::from_millis(200);
const LONGEST: Duration = Duration::from_secs(10);
/// A server that is there says something at least once a minute, if only a bookmark. After this long without a word the
/// connection may be dead without anybody having said so, and the watch is taken up on another.
const SILENCE: Duration = Duration::from_secs(150);
/// How long a watch lasts, as the server is asked: as long as those of other clients.
const LASTS: Duration = Duration::from_secs(290);
/// A server that is late to end a watch by this part of it is gone, and the connection doesn't know: nothing more would ever
/// be heard.
const LATE: u32 = 30;

/// What happened to an object.
#[derive(Clone, Debug)]
pub enum Change<K> {
    /// New, or other than before.
    Put(Arc<K>),
    /// As it last was.
    Gone(Arc<K>),
}

impl<K> Change<K> {
    pub fn object(&self) -> &Arc<K> {
        match self {
            Self::Put(object) | Self::Gone(object) => object,
        }
    }
}

/// How the watch stands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Link {
    /// Nothing is known yet.
    Starting,
    Current,
    /// The server is away; why.
    Lost(String),
}

/// The objects. Clones share them; when the last is dropped the watch ends.
#[derive(Clone)]
pub struct Watched<K> {
    objects: Objects<K>,
    link: watch::Receiver<Link>,
    read: Arc<AtomicBool>,
    _task: Arc<Task>,
}

type Objects<K> = Arc<RwLock<BTreeMap<String, Arc<K>>>>;

impl<K> Watched<K>
where
    K: Resource + Clone + DeserializeOwned + Debug + Send + Sync + 'static,
{
    /// Begins to watch what the parameters select. `tell` hears of every change.
    pub fn start(api: Api<K>, select: ListParams, tell: impl Fn(Change<K>) + Send + Sync + 'static) -> Self {
        Self::lasting(LASTS, api, select, tell)
    }

    /// The same, by watches that last so long each.
    fn lasting(
        lasts: Duration,
        api: Api<K>,
        select: ListParams,
        tell: impl Fn(Change<K>) + Send + Sync + 'static,
    ) -> Self {
        let objects = Objects::default();
        let (link, seen) = watch::channel(Link::Starting);
        let read = Arc::new(AtomicBool::new(false));
        let follow = Follow {
            lasts,
            api,
            select,
            objects: objects.clone(),
            link,
            read: read.clone(),
            tell: Box::new(tell),
        };
        let task = Arc::new(Task::spawn(follow.run()));
        Self { objects, link: seen, read, _task: task }
    }

    /// By name; in namespaces by `namespace/name`.
    pub fn get(&self, name: &str) -> Option<Arc<K>> {
        self.read().get(name).cloned()
    }

    /// In the order of their names.
    pub fn all(&self) -> Vec<Arc<K>> {
        self.read().values().cloned().collect()
    }

    /// Takes in what was just read or written, without waiting for the watch to tell.
    pub fn note(&self, object: K) {
        put(&self.objects, Arc::new(object));
    }

    /// It was just seen that there is no such object.
    pub fn forget(&self, name: &str) {
        self.objects.write().unwrap_or_else(PoisonError::into_inner).remove(name);
    }

    pub fn link(&self) -> Link {
        self.link.borrow().clone()
    }

    /// Has everything been read once? Before, what is not here may well be there.
    pub fn is_read(&self) -> bool {
        self.read.load(Ordering::SeqCst)
    }

    /// How the watch stands, to be waited on.
    pub fn links(&self) -> watch::Receiver<Link> {
        self.link.clone()
    }

    /// Waits until everything has been read once.
    pub async fn started(&self) {
        let mut link = self.link.clone();
        // The sender lives as long as the task, and that as long as this.
        let _ = link.wait_for(|link| *link == Link::Current).await;
    }

    fn read(&self) -> std::sync::RwLockReadGuard<'_, BTreeMap<String, Arc<K>>> {
        self.objects.read().unwrap_or_else(PoisonError::into_inner)
    }
}

struct Follow<K> {
    lasts: Duration,
    api: Api<K>,
    select: ListParams,
    objects: Objects<K>,
    link: watch::Sender<Link>,
    read: Arc<AtomicBool>,
    tell: Box<dyn Fn(Change<K>) + Send + Sync>,
}

/// Why a watch has to be taken up again.
enum Ended {
    /// As watches do after some minutes.
    Normally,
    /// What was before is forgotten: list again.
    Forgotten,
    Failed(Error),
}

impl<K> Follow<K>
where
    K: Resource + Clone + DeserializeOwned + Debug + Send + Sync + 'static,
{
    async fn run(self) {
        let mut version: Option<String> = None;
        let mut failures = 0;
        loop {
            let ended = match version.take() {
                None => match self.list().await {
                    Ok(listed) => {
                        version = Some(listed);
                        self.read.store(true, Ordering::SeqCst);
                        self.link.send_replace(Link::Current);
                        Ended::Normally
                    }
                    Err(error) => Ended::Failed(error),
                },
                Some(mut from) => {
                    let begun = Instant::now();
                    let ended = self.watch(&mut from, &mut failures).await;
                    // One that ends as it begins must not be a loop.
                    if begun.elapsed() < FIRST {
                        tokio::time::sleep(FIRST).await;
                    }
                    version = Some(from).filter(|_| !matches!(ended, Ended::Forgotten));
                    ended
                }
            };
            if let Ended::Failed(error) = ended {
                self.link.send_replace(Link::Lost(error.to_string()));
                if failures == 0 {
                    lost(std::any::type_name::<K>(), &error);
                }
                failures += 1;
                let most = FIRST.saturating_mul(1 << failures.min(10)).min(LONGEST);
                tokio::time::sleep(FIRST + random::up_to(most)).await;
            }
        }
    }

    /// Reads everything; the version to watch from.
    async fn list(&self) -> Result<String, Error> {
        let (found, version) = list::all(&self.api, &self.select).await?;
        let found: BTreeMap<String, Arc<K>> =
            found.into_iter().map(|object| (name(&object), Arc::new(object))).collect();
        let before = std::mem::replace(&mut *self.write(), found.clone());
        for (name, object) in &found {
            let known = before.get(name);
            if known.is_none_or(|known| known.resource_version() != object.resource_version()) {
                (self.tell)(Change::Put(object.clone()));
            }
        }
        for (_, object) in before.into_iter().filter(|(name, _)| !found.contains_key(name)) {
            (self.tell)(Change::Gone(object));
        }
        Ok(version)
    }

    async fn watch(&self, from: &mut String, failures: &mut u32) -> Ended {
        let params = WatchParams {
            label_selector: self.select.label_selector.clone(),
            field_selector: self.select.field_selector.clone(),
            bookmarks: true,
            timeout: u32::try_from(self.lasts.as_secs()).ok(),
            ..WatchParams::default()
        };
        let end = tokio::time::Instant::now() + self.lasts + self.lasts / LATE;
        let events = match self.api.watch(&params, from).await {
            Ok(events) => events.map_err(Some),
            Err(Error::Api(status)) if status.code == 410 => return Ended::Forgotten,
            Err(error) => return Ended::Failed(error),
        };
        // The server answers: what is known is current.
        *failures = 0;
        self.link.send_replace(Link::Current);
        pin_mut!(events);
        loop {
            let silent = tokio::time::Instant::now() + SILENCE;
            let heard = tokio::time::timeout_at(end.min(silent), events.next()).await;
            let Ok(event) = heard else { return Ended::Normally };
            match event {
                None => return Ended::Normally,
                Some(Ok(WatchEvent::Added(object) | WatchEvent::Modified(object))) => {
                    object.resource_version().unwrap_or_default().clone_into(from);
                    let object = Arc::new(object);
                    put(&self.objects, object.clone());
                    (self.tell)(Change::Put(object));
                }
                Some(Ok(WatchEvent::Deleted(object))) => {
                    object.resource_version().unwrap_or_default().clone_into(from);
                    self.write().remove(&name(&object));
                    (self.tell)(Change::Gone(Arc::new(object)));
                }
                Some(Ok(WatchEvent::Bookmark(mark))) => *from = mark.metadata.resource_version,
                Some(Ok(WatchEvent::Error(status))) if status.code == 410 => return Ended::Forgotten,
                Some(Ok(WatchEvent::Error(status))) => return Ended::Failed(Error::Api(status)),
                Some(Err(error)) => return error.map_or(Ended::Normally, Ended::Failed),
            }
        }
    }

    fn write(&self) -> std::sync::RwLockWriteGuard<'_, BTreeMap<String, Arc<K>>> {
        self.objects.write().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Said once, until it is heard of again.
fn lost(kind: &str, error: &Error) {
    let kind = kind.rsplit("::").next().unwrap_or(kind);
    warn(&format!("watch of {kind}: {}; trying again", words(error)));
}

/// Unless a later version is known: what we wrote ourselves is known before the watch tells of what was before it.
fn put<K: Resource>(objects: &Objects<K>, object: Arc<K>) {
    let mut objects = objects.write().unwrap_or_else(PoisonError::into_inner);
    let version = |object: &K| object.resource_version().and_then(|version| version.parse::<u64>().ok());
    let later = |known: &Arc<K>| known.uid() == object.uid() && version(known) > version(&object);
    let name = name(&*object);
    if !objects.get(&name).is_some_and(later) {
        objects.insert(name, object);
    }
}

fn name<K: Resource>(object: &K) -> String {
    match object.namespace() {
        Some(namespace) => format!("{namespace}/{}", object.name_any()),
        None => object.name_any(),
    }
}

#[cfg(test)]
mod tests;
