//! Writes being made: what is committed, with the changes of this batch on top.
//!
//! The writer gives one [`Transaction`] to each write in turn. A write sees those before it; if it is refused, what it
//! had changed is undone, and the others don't notice. Must never touch the disk or what readers see.
//!
//! Cost: a write costs what it changes. [`Transaction::dependents`] also looks through the batch.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::Value;

use super::object::{Draft, Key, Object, What};
use super::state::{Before, Event, State};
use crate::embedded::resource::Table;

/// The changes of the writes that are committed together.
#[derive(Debug, Default)]
pub(super) struct Batch {
    overlay: BTreeMap<Key, Option<Arc<Object>>>,
    /// Those of the overlay that are there: a write that deletes thousands looks through these alone.
    written: BTreeMap<Key, Arc<Object>>,
    pub(super) events: Vec<Event>,
    pub(super) revision: u64,
}

impl Batch {
    /// Nothing yet, after a revision.
    pub(super) fn after(revision: u64) -> Self {
        Self { revision, ..Self::default() }
    }

    /// Says what an object is after this batch.
    fn set(&mut self, key: Key, object: Option<Arc<Object>>) {
        match &object {
            Some(object) => drop(self.written.insert(key.clone(), object.clone())),
            None => drop(self.written.remove(&key)),
        }
        self.overlay.insert(key, object);
    }

    /// The text that this batch adds to the log.
    pub(super) fn bytes(&self) -> usize {
        self.events.iter().map(|event| event.object.size()).sum()
    }

    /// The last version of each object that was changed; nothing for those that are gone.
    pub(super) fn objects(&self) -> impl Iterator<Item = (&Key, Option<&Arc<Object>>)> {
        self.overlay.iter().map(|(key, object)| (key, object.as_ref()))
    }
}

/// One write.
pub struct Transaction<'a> {
    state: &'a State,
    batch: &'a mut Batch,
    /// Where this write's changes begin, and the revision before them.
    mark: (usize, u64),
    frees: bool,
    now: k8s_openapi::jiff::Timestamp,
}

impl<'a> Transaction<'a> {
    pub(super) fn new(state: &'a State, batch: &'a mut Batch) -> Self {
        let mark = (batch.events.len(), batch.revision);
        Self { state, batch, mark, frees: false, now: k8s_openapi::jiff::Timestamp::now() }
    }

    /// When this write happens.
    pub fn now(&self) -> k8s_openapi::jiff::Timestamp {
        self.now
    }

    pub fn get(&self, key: &Key) -> Option<Arc<Object>> {
        match self.batch.overlay.get(key) {
            Some(object) => object.clone(),
            None => self.state.get(key).cloned(),
        }
    }

    /// The object that has a UID.
    pub fn by_uid(&self, uid: &str) -> Option<Arc<Object>> {
        let mut changed = self.batch.written.values();
        if let Some(object) = changed.find(|object| object.facts.uid == uid) {
            return Some(object.clone());
        }
        let object = self.state.by_uid(uid)?;
        (!self.batch.overlay.contains_key(&object.key)).then(|| object.clone())
    }

    /// Whatever names this UID as an owner.
    pub fn dependents(&self, uid: &str) -> Vec<Arc<Object>> {
        let committed =
            self.state.dependents(uid).filter(|object| !self.batch.overlay.contains_key(&object.key));
        let changed = self.batch.written.values();
        let changed = changed.filter(|object| object.facts.owners.iter().any(|owner| owner.uid == uid));
        committed.chain(changed).cloned().collect()
    }

    /// The objects of a table, in one namespace or in all.
    pub fn range(&self, table: Table, namespace: Option<&str>) -> Vec<Arc<Object>> {
        let overlay = &self.batch.overlay;
        let mut found: BTreeMap<Key, Arc<Object>> = self
            .state
            .range(table, namespace, None)
            .filter(|object| !overlay.contains_key(&object.key))
            .map(|object| (object.key.clone(), object.clone()))
            .collect();
        for (key, object) in &self.batch.written {
            if key.table == table && namespace.is_none_or(|namespace| *key.namespace == *namespace) {
                found.insert(key.clone(), object.clone());
            }
        }
        found.into_values().collect()
    }

    /// Whether a table has anything in a namespace. Ends at the first that is found.
    pub fn has_any(&self, table: Table, namespace: &str) -> bool {
        let inside = |key: &Key| key.table == table && *key.namespace == *namespace;
        let mut committed = self.state.range(table, Some(namespace), None);
        let mut written = self.batch.written.range(Key::new(table, namespace, "")..);
        written.next().is_some_and(|(key, _)| inside(key))
            || committed.any(|object| !self.batch.overlay.contains_key(&object.key))
    }

    /// Writes an object: its `resourceVersion` becomes that of this change.
    pub fn put(&mut self, key: Key, value: &Value) -> Arc<Object> {
        let draft = Draft::new(&key, value);
        self.put_draft(key, draft)
    }

    /// The same, of an object whose text is made already.
    pub fn put_draft(&mut self, key: Key, draft: Draft) -> Arc<Object> {
        let revision = self.next();
        let before = self.get(&key);
        let what = if before.is_some() { What::Modified } else { What::Added };
        let object = Arc::new(draft.finish(key.clone(), revision, what));
        self.change(what, object.clone(), before);
        self.batch.set(key, Some(object.clone()));
        object
    }

    /// Takes an object away, whose last state is this.
    pub fn remove(&mut self, key: &Key, last: &Value) -> Option<Arc<Object>> {
        let before = self.get(key)?;
        let revision = self.next();
        let object = Arc::new(Object::new(key.clone(), revision, What::Deleted, last));
        self.change(What::Deleted, object.clone(), Some(before));
        self.batch.set(key.clone(), None);
        Some(object)
    }

    fn next(&mut self) -> u64 {
        self.batch.revision += 1;
        self.batch.revision
    }

    fn change(&mut self, what: What, object: Arc<Object>, before: Option<Arc<Object>>) {
        let before = before.map_or(Before::Nothing, Before::Object);
        self.batch.events.push(Event { what, object, before });
    }

    /// Says that this write is there to make room: it is let through where the disk is full.
    pub fn frees(&mut self) {
        self.frees = true;
    }

    /// Whether a full disk has to refuse this write.
    pub(super) fn takes_room(&self) -> bool {
        !self.frees && !self.is_empty()
    }

    /// Whether this write changed anything.
    fn is_empty(&self) -> bool {
        self.batch.events.len() == self.mark.0
    }

    /// Undoes what this write changed.
    pub fn undo(&mut self) {
        while self.batch.events.len() > self.mark.0
            && let Some(event) = self.batch.events.pop()
        {
            let before = match event.before {
                Before::Object(object) => Some(object),
                Before::Nothing | Before::Facts(_) => None,
            };
            self.batch.set(event.object.key.clone(), before);
        }
        self.batch.revision = self.mark.1;
    }
}
