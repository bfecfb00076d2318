//! Events don't last: kube-apiserver forgets them after an hour, and here they would fill a disk.
//!
//! Called with each new Event, inside its write: those that are over an hour old, and the oldest beyond [`MOST`], go in the
//! same commit. Nothing happens while nobody says anything. Cost: a walk over the Events there are, at most [`MOST`];
//! only those that may go are read.

use std::sync::Arc;

use k8s_openapi::jiff::Timestamp;

use crate::embedded::resource::Table;
use crate::embedded::store::{Object, Transaction};

/// A kilobyte or so each. Hosts and controllers write a few a minute at worst.
pub(super) const MOST: usize = 2000;
/// As kube-apiserver.
const LASTS: i64 = 3600;

/// Makes room for a new Event in the table of Events.
pub(super) fn events(tx: &mut Transaction<'_>, table: Table) {
    let mut all = tx.range(table, None);
    // By their last change: the first are the oldest.
    all.sort_by_key(|event| event.revision);
    let now = tx.now().as_second();
    let beyond = (all.len() + 1).saturating_sub(MOST);
    for (index, event) in all.iter().enumerate() {
        if index >= beyond && !is_over(event, now) {
            break;
        }
        // Whatever finalizers somebody gave it: as when a store forgets it.
        tx.remove(&event.key, &event.value());
    }
}

fn is_over(event: &Arc<Object>, now: i64) -> bool {
    let event = event.value();
    // Whichever is latest: a series is written again and again under one name.
    let times = ["/series/lastObservedTime", "/lastTimestamp", "/eventTime", "/metadata/creationTimestamp"];
    let seconds = |at: &&str| Some(event.pointer(at)?.as_str()?.parse::<Timestamp>().ok()?.as_second());
    times.iter().filter_map(seconds).max().is_none_or(|last| last.saturating_add(LASTS) < now)
}
