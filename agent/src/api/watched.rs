//! Objects of one kind as the API server last told of them, kept current by a watch.
//!
//! A list first, then a watch from there. A watch that ends is taken up where it ended; one whose past is forgotten (410)
//! begins with a list again, and one that doesn't end in its time is taken up too: a connection may be dead and not know it.
//! Whoever watches is told of each change, after it can be read here. While the server is
//! away the last known objects stay, and [`Watched::link`] says so: an old copy is for deciding that a look is worth
//! it, never for taking anything from anybody.
//!
//! Cost: every object once in memory; one list and one connection, and nothing while nothing changes. An API server offers
//! each change of a kind to everybody who watches that kind, whatever labels they ask for: where each of a thousand hosts
//! watches a few objects of its own that is a thousand looks per write. It offers only what they watch to those who watch a
//! name, so that is how a few are watched ([`Watched::few`]), one by one, and listed again when their watches end.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Debug;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Arc, PoisonError, RwLock};
use std::time::{Duration, Instant};

use futures_util::stream::FuturesUnordered;
use futures_util::{StreamExt, TryStreamExt, pin_mut};
use kube::api::{ListParams, WatchEvent, WatchParams};
use kube::{Api, Error, Resource, ResourceExt};
use serde::de::DeserializeOwned;
use tokio::sync::{Notify, watch};

use super::error::words;
use super::task::Task;
use super::{list, random};
use crate::telemetry::warn;

/// How long to wait after a first failure, and at most.
const FIRST: Duration = Duration::from_millis(200);
const LONGEST: Duration = Duration::from_secs(10);
/// A server that is there says something at least once a minute, if only a bookmark. After this long without a word the
/// connection may be dead without anybody having said so, and the watch is taken up on another. Of a connection that nobody
/// acknowledges `connection` tells much sooner: this is for a proxy that does, in the place of a server that is gone.
const SILENCE: Duration = Duration::from_secs(150);
/// How long a watch lasts, as the server is asked: as long as those of other clients.
const LASTS: Duration = Duration::from_secs(290);
/// A server that is late to end a watch by this part of it is gone, and the connection doesn't know: nothing more would ever
/// be heard.
const LATE: u32 = 30;

/// So many objects are watched one by one.
const FEW: usize = 8;

/// What happened to an object.
#[derive(Clone, Debug)]
pub enum Change<K> {
    /// New, or other than before.
    Put(Arc<K>),
    /// It was seen to be deleted. As it last was.
    Gone(Arc<K>),
    /// It is there no more; when it went nobody saw, since the watch was lost meanwhile. As it last was.
    Missing(Arc<K>),
}

impl<K> Change<K> {
    pub fn object(&self) -> &Arc<K> {
        match self {
            Self::Put(object) | Self::Gone(object) | Self::Missing(object) => object,
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
    noted: Arc<Notify>,
    _task: Arc<Task>,
}

type Objects<K> = Arc<RwLock<BTreeMap<String, Arc<K>>>>;

impl<K> Watched<K>
where
    K: Resource + Clone + DeserializeOwned + Debug + Send + Sync + 'static,
{
    /// Begins to watch what the parameters select. `tell` hears of every change.
    pub fn start(api: Api<K>, select: ListParams, tell: impl Fn(Change<K>) + Send + Sync + 'static) -> Self {
        Self::lasting(LASTS, By::Selection, api, select, tell)
    }

    /// The same of objects that only whoever watches them makes, or hardly anybody else: what is selected and not [noted](
    /// Self::note) is found when the watches end, some minutes later.
    pub fn few(api: Api<K>, select: ListParams, tell: impl Fn(Change<K>) + Send + Sync + 'static) -> Self {
        Self::lasting(LASTS, By::Name, api, select, tell)
    }

    /// The same, by watches that last so long each.
    fn lasting(
        lasts: Duration,
        by: By,
        api: Api<K>,
        select: ListParams,
        tell: impl Fn(Change<K>) + Send + Sync + 'static,
    ) -> Self {
        let objects = Objects::default();
        let (link, seen) = watch::channel(Link::Starting);
        let read = Arc::new(AtomicBool::new(false));
        let noted = Arc::new(Notify::new());
        let follow = Follow {
            lasts,
            by,
            noted: noted.clone(),
            failures: AtomicU32::new(0),
            api,
            select,
            objects: objects.clone(),
            link,
            read: read.clone(),
            tell: Box::new(tell),
        };
        let task = Arc::new(Task::spawn(follow.run()));
        Self { objects, link: seen, read, noted, _task: task }
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
        put(&self.objects, Arc::new(list::without_managed_fields(object)));
        self.noted.notify_one();
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

/// How objects are watched.
#[derive(Clone, Copy, PartialEq, Eq)]
enum By {
    Selection,
    /// Each by its own name, as long as there are few.
    Name,
}

struct Follow<K> {
    lasts: Duration,
    by: By,
    /// Objects were noted.
    noted: Arc<Notify>,
    /// In a row.
    failures: AtomicU32,
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
        loop {
            let ended = match version.take() {
                None => match self.list().await {
                    Ok(listed) => {
                        version = Some(listed);
                        self.failures.store(0, Ordering::SeqCst);
                        self.read.store(true, Ordering::SeqCst);
                        self.link.send_replace(Link::Current);
                        Ended::Normally
                    }
                    Err(error) => Ended::Failed(error),
                },
                Some(mut from) => {
                    let begun = Instant::now();
                    let ended = match self.by == By::Name && self.known().len() <= FEW {
                        true => self.watch_each(&from).await,
                        false => self.watch(&self.select, &mut from).await,
                    };
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
                let failures = self.failures.fetch_add(1, Ordering::SeqCst);
                if failures == 0 {
                    lost(std::any::type_name::<K>(), &error);
                }
                let most = FIRST.saturating_mul(1 << (failures + 1).min(10)).min(LONGEST);
                tokio::time::sleep(FIRST + random::up_to(most)).await;
            }
        }
    }

    /// Reads everything; the version to watch from.
    async fn list(&self) -> Result<String, Error> {
        let then = self.known();
        let (found, version) = list::all(&self.api, &self.select).await?;
        let mut found: BTreeMap<String, Arc<K>> =
            found.into_iter().map(|object| (name(&object), Arc::new(object))).collect();
        let before = {
            let mut objects = self.write();
            // What was noted in the meantime, and is of later, is news to the list.
            for (name, noted) in objects.iter() {
                let is_new = then.get(name).is_none_or(|then| !Arc::ptr_eq(then, noted));
                if is_new && number(noted.resource_version()) > number(Some(version.clone())) {
                    found.insert(name.clone(), noted.clone());
                }
            }
            std::mem::replace(&mut *objects, found.clone())
        };
        for (name, object) in &found {
            let known = before.get(name);
            if known.is_none_or(|known| known.resource_version() != object.resource_version()) {
                (self.tell)(Change::Put(object.clone()));
            }
        }
        for (_, object) in before.into_iter().filter(|(name, _)| !found.contains_key(name)) {
            (self.tell)(Change::Missing(object));
        }
        Ok(version)
    }

    /// Watches each known object by its name, and those that are noted meanwhile. Ends with the first of these watches, and
    /// with a list to follow: others may have been made.
    async fn watch_each(&self, listed: &str) -> Ended {
        let mut followed = BTreeSet::new();
        let mut watches = FuturesUnordered::new();
        let end = tokio::time::sleep(self.lasts);
        pin_mut!(end);
        loop {
            for (name, object) in self.known() {
                if followed.insert(name.clone()) {
                    let versions = [object.resource_version(), Some(listed.to_owned())];
                    let from =
                        versions.into_iter().flatten().max_by_key(|version| number(Some(version.clone())));
                    watches.push(self.watch_one(name, from.unwrap_or_default()));
                }
            }
            if followed.len() > FEW {
                return Ended::Forgotten;
            }
            tokio::select! {
                Some(ended) = watches.next() => match ended {
                    Ended::Failed(error) => return Ended::Failed(error),
                    Ended::Normally | Ended::Forgotten => return Ended::Forgotten,
                },
                () = self.noted.notified() => {}
                () = &mut end => return Ended::Forgotten,
            }
        }
    }

    async fn watch_one(&self, name: String, mut from: String) -> Ended {
        let select = self.select.clone().fields(&format!("metadata.name={name}"));
        self.watch(&select, &mut from).await
    }

    async fn watch(&self, select: &ListParams, from: &mut String) -> Ended {
        let params = WatchParams {
            label_selector: select.label_selector.clone(),
            field_selector: select.field_selector.clone(),
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
        self.failures.store(0, Ordering::SeqCst);
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
                    let object = Arc::new(list::without_managed_fields(object));
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

    fn known(&self) -> BTreeMap<String, Arc<K>> {
        self.objects.read().unwrap_or_else(PoisonError::into_inner).clone()
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
    let later = |known: &Arc<K>| {
        known.uid() == object.uid() && number(known.resource_version()) > number(object.resource_version())
    };
    let name = name(&*object);
    if !objects.get(&name).is_some_and(later) {
        objects.insert(name, object);
    }
}

/// Versions of one server are in the order of their numbers.
fn number(version: Option<String>) -> Option<u64> {
    version?.parse().ok()
}

fn name<K: Resource>(object: &K) -> String {
    match object.namespace() {
        Some(namespace) => format!("{namespace}/{}", object.name_any()),
        None => object.name_any(),
    }
}

#[cfg(test)]
mod tests;
