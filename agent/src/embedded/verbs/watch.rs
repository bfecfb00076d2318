//! `watch`: a stream of changes, read from the store's log as fast as the client takes them.
//!
//! A watcher is a position in the log. Nothing is queued for it beyond the few lines that it is about to be sent, so a
//! slow one costs nothing, and one that the log has overtaken is told so (`410 Expired`) and starts again. The initial
//! state is read in pages in the same way. Ends at its time-out, when the API stops, or when the client goes.

use std::collections::VecDeque;
use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use futures_util::stream;
use http_body_util::{BodyExt, StreamBody};
use hyper::body::Frame;
use hyper::http::{HeaderValue, Response, header};
use serde_json::{Value, json};
use tokio::sync::watch;
use tokio::time::Instant;

use super::Call;
use crate::embedded::answer::Answer;
use crate::embedded::guard;
use crate::embedded::query::{Match, list_options};
use crate::embedded::resource::Resource;
use crate::embedded::selector::Selector;
use crate::embedded::shape::Shape;
use crate::embedded::status::{Cause, Status};
use crate::embedded::store::{Before, Event, Key, Object, Shared, What};
use crate::embedded::table::Rows;

/// Lines made at a time: enough that the lock is not taken for each, few enough to be no queue.
const LINES: usize = 64;
/// And as much text, whatever the lines are: the object that goes beyond is the last. Of 64 of the largest objects a watcher that
/// wants tables would else have 100 MiB that are its own.
const BYTES: usize = 1 << 20;
/// As kube-apiserver: a watch without a time-out ends after half an hour to an hour, so that not all come again at once.
const TIMEOUT: (u64, u64) = (1800, 1800);
/// The longest that a client may ask for, in seconds: what it would have without asking, at most. Clients come again anyway.
const LONGEST: u64 = TIMEOUT.0 + TIMEOUT.1;
/// As kube-apiserver: a bookmark shortly before the end, besides those that come by the clock.
const BEFORE_END: Duration = Duration::from_secs(2);

/// Where a watch is.
enum Phase {
    /// Telling what there was at a revision, after a key.
    Initial {
        at: u64,
        after: Option<Key>,
    },
    Following,
    Over,
}

struct Watcher {
    shared: Arc<Shared>,
    committed: watch::Receiver<u64>,
    stopped: watch::Receiver<bool>,
    resource: &'static Resource,
    version: usize,
    namespace: Option<String>,
    selector: Selector,
    shape: Shape,
    phase: Phase,
    position: u64,
    lines: VecDeque<Bytes>,
    /// Whether the end of the initial state is told.
    tells_end: bool,
    /// When the next bookmark is due, if the client wants them, and the time between two.
    bookmark: Option<Instant>,
    bookmarks: Duration,
    deadline: Instant,
    /// Whether a table's columns were sent already.
    columns_sent: bool,
}

impl Call {
    pub(in crate::embedded) fn watch(&self) -> Result<Response<Answer>, Status> {
        let selector = self.selector()?;
        let bookmarks = self.query.flag("allowWatchBookmarks")?;
        let initial = self.query.maybe_flag("sendInitialEvents")?;
        let revision = self.query.revision()?;
        check(initial, self.query.revision_match()?)?;
        let timeout = self.query.number("timeoutSeconds")?.filter(|seconds| *seconds > 0);
        let timeout = timeout.unwrap_or_else(|| TIMEOUT.0 + jitter() % TIMEOUT.1).min(LONGEST);
        let shared = self.inner.store.shared().clone();
        let committed = shared.subscribe();
        let now = shared.read().revision;
        let from_now = matches!(revision, None | Some(0));
        let phase = match initial {
            Some(true) => Phase::Initial { at: now, after: None },
            None if from_now => Phase::Initial { at: now, after: None },
            _ => Phase::Following,
        };
        let position = if from_now { now } else { revision.unwrap_or(now) };
        let begin = Instant::now();
        let watcher = Watcher {
            shared,
            committed,
            stopped: self.inner.stopped.subscribe(),
            resource: self.target.resource,
            version: self.target.version,
            namespace: self.target.namespace.clone(),
            selector,
            shape: self.shape.clone(),
            tells_end: bookmarks && initial == Some(true),
            phase,
            position,
            lines: VecDeque::new(),
            bookmark: bookmarks.then(|| begin + self.inner.bookmarks),
            bookmarks: self.inner.bookmarks,
            deadline: begin + Duration::from_secs(timeout),
            columns_sent: false,
        };
        let lines = stream::unfold(watcher, |mut watcher| async move {
            let line = guard::bit_by_bit(watcher.next()).await.ok().flatten()?;
            Some((Ok::<_, Infallible>(Frame::data(line)), watcher))
        });
        let mut response = Response::new(StreamBody::new(lines).boxed_unsync());
        response.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
        Ok(response)
    }
}

fn check(initial: Option<bool>, how: Match) -> Result<(), Status> {
    let forbidden = |why: &str| {
        Err(list_options(Cause::new(
            "FieldValueForbidden",
            format!("Forbidden: {why}"),
            "resourceVersionMatch",
        )))
    };
    match (initial, how) {
        (Some(true), Match::Unset | Match::Exact) => {
            forbidden("sendInitialEvents requires setting resourceVersionMatch to NotOlderThan")
        }
        (None, Match::NotOlderThan | Match::Exact) => {
            forbidden("resourceVersionMatch is forbidden for watch unless sendInitialEvents is provided")
        }
        _ => Ok(()),
    }
}

/// A number that differs from call to call; nothing depends on how.
fn jitter() -> u64 {
    use std::hash::{BuildHasher, RandomState};
    RandomState::new().hash_one(0)
}

impl Watcher {
    /// The next line; nothing when the watch is over.
    async fn next(&mut self) -> Option<Bytes> {
        loop {
            // Also where lines never end: a watch has its time.
            if *self.stopped.borrow() || Instant::now() >= self.deadline {
                return None;
            }
            if let Some(line) = self.lines.pop_front() {
                return Some(line);
            }
            match self.phase {
                Phase::Over => return None,
                Phase::Initial { .. } => self.read_page(),
                Phase::Following => {
                    self.committed.borrow_and_update();
                    self.read_log();
                    if self.lines.is_empty() {
                        self.wait().await;
                    }
                }
            }
        }
    }

    /// Waits for a commit, the next bookmark, or the end.
    async fn wait(&mut self) {
        let last = self.deadline.checked_sub(BEFORE_END).filter(|last| *last > Instant::now());
        let bookmark = self.bookmark.map(|due| last.map_or(due, |last| due.min(last)));
        let until = bookmark.map_or(self.deadline, |bookmark| bookmark.min(self.deadline));
        tokio::select! {
            changed = self.committed.changed() => if changed.is_err() { self.phase = Phase::Over },
            // Stopped, or nobody is left who could stop it.
            _ = self.stopped.changed() => self.phase = Phase::Over,
            () = tokio::time::sleep_until(until) => {
                if Instant::now() >= self.deadline {
                    self.phase = Phase::Over;
                } else if self.bookmark.is_some() {
                    self.bookmark = Some(Instant::now() + self.bookmarks);
                    self.lines.push_back(self.bookmark_line(self.position, false));
                }
            }
        }
    }

    /// The next part of the initial state.
    fn read_page(&mut self) {
        let Phase::Initial { at, after } = &self.phase else { return };
        let at = *at;
        let shared = self.shared.clone();
        let state = shared.read();
        let table = self.resource.table;
        let Ok(objects) = state.range_at(table, self.namespace.as_deref(), after.as_ref(), at) else {
            return self.overtaken(at, state.revision);
        };
        let mut last = None;
        let (mut chosen, mut bytes, mut whole): (Vec<Arc<Object>>, _, _) = (Vec::new(), 0, true);
        for object in objects.filter(|object| self.selector.matches(&object.key, &object.facts)) {
            if chosen.len() == LINES || bytes >= BYTES {
                whole = false;
                break;
            }
            bytes += object.size();
            chosen.push(object);
        }
        drop(state);
        for object in &chosen {
            let line = self.line(What::Added, object);
            self.lines.push_back(line);
            last = Some(object.key.clone());
        }
        if !whole {
            self.phase = Phase::Initial { at, after: last };
            return;
        }
        self.phase = Phase::Following;
        self.position = at;
        if self.tells_end {
            self.lines.push_back(self.bookmark_line(at, true));
        }
    }

    /// What the log has after the position.
    fn read_log(&mut self) {
        let shared = self.shared.clone();
        let state = shared.read();
        // A revision that was never given: the store is not the one that the client knew. It has to start again.
        let known = self.position <= state.revision;
        let Some(events) = state.since(self.position).ok().filter(|_| known) else {
            return self.overtaken(self.position, state.revision);
        };
        let mut told: Vec<(What, Event)> = Vec::new();
        let (mut last, mut bytes, mut whole) = (self.position, 0, true);
        for event in events {
            if told.len() == LINES || bytes >= BYTES {
                whole = false;
                break;
            }
            last = event.object.revision;
            if let Some(what) = self.told(event) {
                bytes += event.object.size();
                told.push((what, event.clone()));
            }
        }
        let position = if whole { state.revision } else { last };
        drop(state);
        self.position = position;
        for (what, event) in told {
            let line = self.line_of(what, &event);
            self.lines.push_back(line);
        }
    }

    /// What an event is to this watcher: an object may come into its selection, and leave it.
    fn told(&self, event: &Event) -> Option<What> {
        let key = &event.object.key;
        let inside = key.table == self.resource.table
            && self.namespace.as_deref().is_none_or(|namespace| *key.namespace == *namespace);
        if !inside {
            return None;
        }
        let before = event.before.facts().is_some_and(|facts| self.selector.matches(key, facts));
        let now = event.what != What::Deleted && self.selector.matches(key, &event.object.facts);
        match (before, now) {
            (false, true) => Some(What::Added),
            (true, true) => Some(What::Modified),
            (true, false) => Some(What::Deleted),
            (false, false) => None,
        }
    }

    fn line_of(&mut self, what: What, event: &Event) -> Bytes {
        // An object that left the selection is told as it last was in it, with the revision of its leaving.
        if what == What::Deleted
            && event.what != What::Deleted
            && let Before::Object(before) = &event.before
        {
            let mut value = before.value();
            value["metadata"]["resourceVersion"] = event.object.revision.to_string().into();
            let last = Object::unstored(before.key.clone(), event.object.revision, What::Deleted, &value);
            return self.line(what, &last);
        }
        self.line(what, &event.object)
    }

    fn line(&mut self, what: What, object: &Object) -> Bytes {
        let columns = !std::mem::replace(&mut self.columns_sent, true);
        self.shape.line(what, self.resource, self.version, object, columns)
    }

    fn bookmark_line(&self, revision: u64, ends_initial: bool) -> Bytes {
        let mut meta = json!({"resourceVersion": revision.to_string(), "creationTimestamp": null});
        if ends_initial {
            meta["annotations"] = json!({"k8s.io/initial-events-end": "true"});
        }
        let (kind, api_version) = match self.shape {
            Shape::Metadata => ("PartialObjectMetadata".to_owned(), "meta.k8s.io/v1".to_owned()),
            _ => (self.resource.kind.clone(), self.resource.api_version(self.version)),
        };
        let mut object = json!({"kind": kind, "apiVersion": api_version, "metadata": meta});
        if let Shape::Table(table) = &self.shape {
            let rows = Rows::new(table, self.resource, self.version);
            object = rows.table(&[], &object["metadata"], false);
        }
        line(&json!({"type": "BOOKMARK", "object": object}))
    }

    /// The log doesn't reach back to where this watcher is.
    fn overtaken(&mut self, position: u64, current: u64) {
        let status = Status::expired(format!("too old resource version: {position} ({current})"));
        self.lines.push_back(line(&json!({"type": "ERROR", "object": status.to_value()})));
        self.phase = Phase::Over;
    }
}

fn line(value: &Value) -> Bytes {
    format!("{value}\n").into()
}
