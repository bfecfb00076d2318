//! Events: what people see under `kubectl describe` of a policy or a pool.
//!
//! Said by agent and controller in one line each, written by one task. Must never hold up or fail who says something: the
//! queue is bounded, and what doesn't fit, or is refused, is counted (`berth_events_dropped_total`) and gone. What nobody answers to
//! is tried again for half a minute: a host that was cut off has just then something to say.
//!
//! What is said again is the same Event with a higher count. Bounded, so that a fight floods nobody: the same Event is
//! written at most every [`AGAIN`], all together [`BURST`] at once and then one every [`REFILL`]; what has to wait is
//! written later with all that was said meanwhile. Cost: nothing while nothing is said.

mod heard;
#[cfg(test)]
mod tests;
mod writer;

use std::sync::Arc;
use std::time::Duration;

use k8s_openapi::api::core::v1::ObjectReference;
use kube::Client;
use tokio::sync::mpsc;

use crate::api::task::Task;
use crate::metrics;
pub(crate) use heard::Heard;
use writer::Writer;

/// Notes that wait for the writer: a pass over hundreds of policies says one of each.
const QUEUE: usize = 512;
/// How often the same Event is written at most.
pub(crate) const AGAIN: Duration = Duration::from_secs(10);
/// Writes that may come at once, and how long it takes until there is one more.
const BURST: u32 = 20;
const REFILL: Duration = Duration::from_secs(5);

/// Who says it.
#[derive(Clone, Debug)]
pub(crate) struct Source {
    /// As `kubectl describe` shows it under FROM.
    pub(crate) component: String,
    /// What kind of program: the same on every host.
    pub(crate) controller: &'static str,
    /// Which of them: an API server may let it change only what it reported itself.
    pub(crate) instance: String,
}

/// One thing that is said.
#[derive(Clone, Debug, PartialEq)]
struct Note {
    about: ObjectReference,
    is_warning: bool,
    reason: &'static str,
    message: String,
}

/// The way to the writer. Clones share it; with the last it ends.
#[derive(Clone)]
pub(crate) struct Events {
    queue: mpsc::Sender<Note>,
    _task: Arc<Task>,
}

impl Events {
    pub(crate) fn start(client: Client, source: Source) -> Self {
        let (queue, notes) = mpsc::channel(QUEUE);
        let task = Task::spawn(Writer::new(client, source).run(notes));
        Self { queue, _task: Arc::new(task) }
    }

    /// Something that is as it should be.
    pub(crate) fn normal(&self, about: ObjectReference, reason: &'static str, message: String) {
        self.say(Note { about, is_warning: false, reason, message });
    }

    /// Something that somebody may have to look at.
    pub(crate) fn warning(&self, about: ObjectReference, reason: &'static str, message: String) {
        self.say(Note { about, is_warning: true, reason, message });
    }

    fn say(&self, note: Note) {
        if self.queue.try_send(note).is_err() {
            metrics::EVENTS_DROPPED.add(&[], 1);
        }
    }
}
