//! The one that writes Events: gathers, counts, waits where it must, and says once if it can't.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use k8s_openapi::api::core::v1::{Event, EventSource};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{ObjectMeta, Time};
use kube::Client;
use kube::api::{Api, Patch, PatchParams, PostParams};
use serde_json::json;
use tokio::sync::mpsc;

use super::{AGAIN, BURST, Note, REFILL, Source};
use crate::api::error::{Trouble, trouble};
use crate::api::random;
use crate::clock::stamp;
use crate::metrics;
use crate::telemetry::warn;

/// Where Events of objects without a namespace go.
const NAMESPACE: &str = "default";
/// Events that are remembered, to be counted up: more than one host or pool has to say.
const KNOWN: usize = 256;
/// As much of a message as an API server takes.
const LONGEST: usize = 1024;
/// So often an Event is tried that nobody answers to: what a host has to say of having been cut off is said when it is back.
const TRIES: u32 = 6;
/// After the first of them; after each of the next so much longer.
const SOON: Duration = Duration::from_secs(2);
/// A write that takes longer has failed.
const PATIENCE: Duration = Duration::from_secs(10);

/// Object, reason, message: the same again is the same Event.
type Key = (String, &'static str, String);

struct Told {
    note: Note,
    /// As it is written, or may have been.
    name: Option<String>,
    is_there: bool,
    /// Writes in a row that nobody answered to.
    unanswered: u32,
    count: i32,
    first: Time,
    last: Time,
    /// When it is to be written, if there is news.
    due: Option<Instant>,
    written: Option<Instant>,
}

pub(super) struct Writer {
    api: Api<Event>,
    source: Source,
    known: BTreeMap<Key, Told>,
    /// Writes that may be made now, and since when that is so.
    tokens: u32,
    refilled: Instant,
    /// Said once, until one is written again.
    is_failing: bool,
}

impl Writer {
    pub(super) fn new(client: Client, source: Source) -> Self {
        Self {
            api: Api::namespaced(client, NAMESPACE),
            source,
            known: BTreeMap::new(),
            tokens: BURST,
            refilled: Instant::now(),
            is_failing: false,
        }
    }

    pub(super) async fn run(mut self, mut notes: mpsc::Receiver<Note>) {
        loop {
            let due = self.due();
            tokio::select! {
                biased;
                note = notes.recv() => match note {
                    Some(note) => self.take(note),
                    None => return,
                },
                () = until(due) => self.write_due().await,
            }
        }
    }

    pub(super) fn take(&mut self, note: Note) {
        let about = note.about.uid.clone().or_else(|| note.about.name.clone()).unwrap_or_default();
        let message: String = note.message.chars().take(LONGEST).collect();
        let key = (about, note.reason, message.clone());
        if self.known.len() >= KNOWN && !self.known.contains_key(&key) && !self.forget_one() {
            metrics::EVENTS_DROPPED.add(&[], 1);
            return;
        }
        let (now, instant) = (stamp(), Instant::now());
        let told = self.known.entry(key).or_insert_with(|| Told {
            note: Note { message, ..note },
            name: None,
            is_there: false,
            unanswered: 0,
            count: 0,
            first: now.clone(),
            last: now.clone(),
            due: None,
            written: None,
        });
        told.count = told.count.saturating_add(1);
        told.last = now;
        let rested = told.written.map_or(instant, |written| written + AGAIN);
        told.due.get_or_insert(rested);
    }

    /// The oldest of which all is written makes room.
    fn forget_one(&mut self) -> bool {
        let over = self.known.iter().filter(|(_, told)| told.due.is_none());
        let oldest = over.min_by_key(|(_, told)| told.written).map(|(key, _)| key.clone());
        oldest.is_some_and(|key| self.known.remove(&key).is_some())
    }

    /// When there is something to write, and leave to do so.
    pub(super) fn due(&self) -> Option<Instant> {
        let next = self.known.values().filter_map(|told| told.due).min()?;
        let leave = if self.tokens > 0 { next } else { self.refilled + REFILL };
        Some(next.max(leave))
    }

    /// Writes what is due, as far as there is leave to.
    async fn write_due(&mut self) {
        self.refill();
        let now = Instant::now();
        let due = self.known.iter().filter(|(_, told)| told.due.is_some_and(|due| due <= now));
        let keys: Vec<Key> = due.map(|(key, _)| key.clone()).collect();
        for key in keys {
            if self.tokens == 0 {
                return;
            }
            if self.tokens == BURST {
                self.refilled = Instant::now();
            }
            self.tokens -= 1;
            self.write(&key).await;
        }
    }

    fn refill(&mut self) {
        while self.tokens < BURST && self.refilled.elapsed() >= REFILL {
            self.tokens += 1;
            self.refilled += REFILL;
        }
    }

    async fn write(&mut self, key: &Key) {
        let Some(told) = self.known.get_mut(key) else { return };
        told.due = None;
        told.written = Some(Instant::now());
        let written = match &told.name {
            Some(name) if told.is_there => {
                let more = Patch::Merge(json!({"count": told.count, "lastTimestamp": told.last}));
                let params = PatchParams::default();
                let again = tokio::time::timeout(PATIENCE, self.api.patch(name, &params, &more)).await;
                match again {
                    // Events don't last: it is said anew.
                    Ok(Err(error)) if trouble(&error) == Trouble::NotFound => {
                        (told.count, told.first) = (1, told.last.clone());
                        (told.name, told.is_there) = (None, false);
                        create(&self.api, &self.source, told).await
                    }
                    other => other.map(|written| written.map(drop)),
                }
            }
            _ => create(&self.api, &self.source, told).await,
        };
        let (why, is_away) = match written {
            Ok(Ok(())) => {
                self.is_failing = false;
                told.unanswered = 0;
                return;
            }
            Ok(Err(error)) => (error.to_string(), trouble(&error) == Trouble::Away),
            Err(_) => (format!("no answer within {} s", PATIENCE.as_secs()), true),
        };
        told.unanswered += 1;
        if is_away && told.unanswered < TRIES {
            told.due = Some(Instant::now() + SOON * told.unanswered);
            return;
        }
        told.unanswered = 0;
        metrics::EVENTS_DROPPED.add(&[], 1);
        if !std::mem::replace(&mut self.is_failing, true) {
            warn(&format!("{}: an Event could not be written: {why}", self.source.instance));
        }
    }
}

type Written = Result<Result<(), kube::Error>, tokio::time::error::Elapsed>;

async fn create(api: &Api<Event>, source: &Source, told: &mut Told) -> Written {
    // The same at the next attempt: one that nobody answered to may have been written.
    let about = told.note.about.name.as_deref().unwrap_or_default();
    let name = told.name.get_or_insert_with(|| name(about)).clone();
    let event = Event {
        metadata: ObjectMeta {
            name: Some(name),
            namespace: Some(NAMESPACE.to_owned()),
            ..ObjectMeta::default()
        },
        involved_object: told.note.about.clone(),
        type_: Some(if told.note.is_warning { "Warning" } else { "Normal" }.to_owned()),
        reason: Some(told.note.reason.to_owned()),
        message: Some(told.note.message.clone()),
        count: Some(told.count),
        first_timestamp: Some(told.first.clone()),
        last_timestamp: Some(told.last.clone()),
        source: Some(EventSource {
            component: Some(source.component.clone()),
            host: Some(source.instance.clone()),
        }),
        reporting_component: Some(source.controller.to_owned()),
        reporting_instance: Some(source.instance.clone()),
        ..Event::default()
    };
    let written = tokio::time::timeout(PATIENCE, api.create(&PostParams::default(), &event)).await?;
    let written = match written {
        Err(error) if trouble(&error) == Trouble::Exists => Ok(()),
        other => other.map(drop),
    };
    told.is_there = written.is_ok();
    Ok(written)
}

/// An object's name, and something that no other Event has.
fn name(about: &str) -> String {
    // Names have 253 characters at most.
    let about: String = about.chars().take(230).collect();
    format!("{about}.{}", &random::id()[..16])
}

async fn until(due: Option<Instant>) {
    match due {
        Some(due) => tokio::time::sleep_until(due.into()).await,
        None => std::future::pending().await,
    }
}
