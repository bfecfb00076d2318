//! What is committed, in memory: every object, and the log of the last changes.
//!
//! Only the writer changes it, after the disk has it. Everybody else reads it, for a moment each. Watchers have a
//! position in the log and nothing else here; what a list was at an earlier revision is found by going back through the
//! log. So neither a slow watcher nor a list in pages costs memory.
//!
//! Growth: the objects, and a log that [`Limits`] bounds. Owner references and UIDs are indexed.

use std::collections::{BTreeMap, BTreeSet, HashMap, VecDeque};
use std::ops::Bound;
use std::sync::Arc;

use super::object::{Facts, Key, Object, What};
use crate::embedded::resource::Table;

/// How much of the past is kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// A rollout to 5,000 nodes writes each enactment about five times: a watcher may be away for a whole one.
    pub log_events: usize,
    /// What the log may take in memory and on disk, by the objects' texts. The largest pool (1.5 MiB) can still be
    /// written 40 times before a watcher that reads nothing is cut off; a host with little memory notices 64 MiB, and
    /// lives with it.
    pub log_bytes: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self { log_events: 32_768, log_bytes: 64 << 20 }
    }
}

/// A change.
#[derive(Clone, Debug)]
pub struct Event {
    pub what: What,
    /// As it is after the change; of a deleted one, as it was last, with the deletion's revision.
    pub object: Arc<Object>,
    pub before: Before,
}

/// What was there before a change.
#[derive(Clone, Debug)]
pub enum Before {
    Nothing,
    Object(Arc<Object>),
    /// After a restart only what selectors need is known of objects that the log doesn't have.
    Facts(Box<Facts>),
}

impl Before {
    /// What selectors look at, where there was something.
    pub fn facts(&self) -> Option<&Facts> {
        match self {
            Self::Nothing => None,
            Self::Object(object) => Some(&object.facts),
            Self::Facts(facts) => Some(facts),
        }
    }
}

/// The past that was asked for is not remembered any more.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Forgotten;

/// The objects and the log.
#[derive(Debug, Default)]
pub struct State {
    pub revision: u64,
    /// The revision of the last change that is no longer in the log.
    pub forgotten: u64,
    objects: BTreeMap<Key, Arc<Object>>,
    log: VecDeque<Event>,
    log_bytes: usize,
    uids: HashMap<String, Key>,
    dependents: HashMap<String, BTreeSet<Key>>,
}

impl State {
    pub fn get(&self, key: &Key) -> Option<&Arc<Object>> {
        self.objects.get(key)
    }

    /// The object that has a UID.
    pub fn by_uid(&self, uid: &str) -> Option<&Arc<Object>> {
        self.objects.get(self.uids.get(uid)?)
    }

    /// Whatever names this UID as an owner.
    pub fn dependents(&self, uid: &str) -> impl Iterator<Item = &Arc<Object>> {
        self.dependents.get(uid).into_iter().flatten().filter_map(|key| self.objects.get(key))
    }

    /// Every object, for a copy of all.
    pub(super) fn objects(&self) -> impl Iterator<Item = &Arc<Object>> {
        self.objects.values()
    }

    /// The objects of a table, in one namespace or in all, in order, after a key.
    pub fn range<'a>(
        &'a self,
        table: Table,
        namespace: Option<&'a str>,
        after: Option<&Key>,
    ) -> impl Iterator<Item = &'a Arc<Object>> + use<'a> {
        let first = Key::new(table, namespace.unwrap_or_default(), "");
        let from = match after {
            Some(key) => Bound::Excluded(key.clone()),
            None => Bound::Included(first),
        };
        let inside = move |key: &Key| {
            key.table == table && namespace.is_none_or(|namespace| *key.namespace == *namespace)
        };
        self.objects.range((from, Bound::Unbounded)).take_while(move |(key, _)| inside(key)).map(|(_, o)| o)
    }

    /// As [`State::range`] was at a revision.
    pub fn range_at<'a>(
        &'a self,
        table: Table,
        namespace: Option<&'a str>,
        after: Option<&Key>,
        revision: u64,
    ) -> Result<Box<dyn Iterator<Item = Arc<Object>> + 'a>, Forgotten> {
        let undone = self.undone(table, revision)?;
        let now = self.range(table, namespace, after);
        if undone.is_empty() {
            return Ok(Box::new(now.cloned()));
        }
        let mut then: BTreeMap<&Key, Arc<Object>> =
            now.filter(|object| !undone.contains_key(&object.key)).map(|o| (&o.key, o.clone())).collect();
        for (key, object) in undone {
            let inside = namespace.is_none_or(|namespace| *key.namespace == *namespace);
            if let Some(object) = object.filter(|_| inside && after.is_none_or(|after| key > after)) {
                then.insert(key, object);
            }
        }
        Ok(Box::new(then.into_values()))
    }

    /// What the objects that changed since a revision were then.
    fn undone(&self, table: Table, revision: u64) -> Result<BTreeMap<&Key, Option<Arc<Object>>>, Forgotten> {
        if revision < self.forgotten {
            return Err(Forgotten);
        }
        let mut undone = BTreeMap::new();
        let since = self.log.iter().rev().take_while(|event| event.object.revision > revision);
        for event in since.filter(|event| event.object.key.table == table) {
            let before = match &event.before {
                Before::Nothing => None,
                Before::Object(object) => Some(object.clone()),
                Before::Facts(_) => return Err(Forgotten),
            };
            undone.insert(&event.object.key, before);
        }
        Ok(undone)
    }

    /// The changes after a revision, at most so many. With nothing to tell the iterator is empty.
    pub fn since(&self, revision: u64) -> Result<impl Iterator<Item = &Event>, Forgotten> {
        if revision < self.forgotten {
            return Err(Forgotten);
        }
        let from = self.log.partition_point(|event| event.object.revision <= revision);
        Ok(self.log.range(from..))
    }

    /// Up to which revision the log has to be forgotten once these changes are in it.
    pub(super) fn trim_point(&self, changes: &[Event], limits: Limits) -> u64 {
        let mut count = self.log.len() + changes.len();
        let mut bytes = self.log_bytes + changes.iter().map(|event| event.object.size()).sum::<usize>();
        let mut forgotten = self.forgotten;
        for event in self.log.iter().chain(changes) {
            if count <= limits.log_events && bytes <= limits.log_bytes {
                break;
            }
            count -= 1;
            bytes -= event.object.size();
            forgotten = event.object.revision;
        }
        forgotten
    }

    /// Takes in what was committed.
    pub(super) fn publish(&mut self, changes: Vec<Event>, revision: u64, forgotten: u64) {
        for event in changes {
            self.place(&event);
            self.log_bytes += event.object.size();
            self.log.push_back(event);
        }
        self.revision = self.revision.max(revision);
        self.forget(forgotten);
    }

    pub(super) fn forget(&mut self, forgotten: u64) {
        while self.log.front().is_some_and(|event| event.object.revision <= forgotten)
            && let Some(event) = self.log.pop_front()
        {
            self.log_bytes -= event.object.size();
        }
        self.forgotten = self.forgotten.max(forgotten);
    }

    /// Puts back an event of before a restart, oldest first. Its object is in place already, or gone.
    pub(super) fn remember(&mut self, event: Event) {
        self.log_bytes += event.object.size();
        self.log.push_back(event);
    }

    fn place(&mut self, event: &Event) {
        let object = &event.object;
        if let Some(old) = self.objects.remove(&object.key) {
            self.uids.remove(&old.facts.uid);
            for owner in &old.facts.owners {
                if let Some(keys) = self.dependents.get_mut(&owner.uid) {
                    keys.remove(&old.key);
                    if keys.is_empty() {
                        self.dependents.remove(&owner.uid);
                    }
                }
            }
        }
        if event.what != What::Deleted {
            self.insert(object.clone());
        }
    }

    /// Puts an object in place that isn't there yet.
    pub(super) fn insert(&mut self, object: Arc<Object>) {
        self.uids.insert(object.facts.uid.clone(), object.key.clone());
        for owner in &object.facts.owners {
            self.dependents.entry(owner.uid.clone()).or_default().insert(object.key.clone());
        }
        self.objects.insert(object.key.clone(), object);
    }

    /// How many changes the log has, and how much text.
    pub fn log_size(&self) -> (usize, usize) {
        (self.log.len(), self.log_bytes)
    }
}
