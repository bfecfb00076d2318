//! What is counted of the work, and the page on which Prometheus reads it.
//!
//! Owns the names of the metrics and their values: counters and histograms as statics, counted where things happen; gauges
//! are put together when they are asked for ([`while_kept`]), from what is in memory anyway. Called by agent and
//! controller, one line each; read by [`crate::health::serve`]. Must never block, fail or do anything while nothing happens.
//!
//! Labels are names of pools, nodes and enums, never texts of errors. A family has at most [`family::MOST`] series: what
//! comes beyond is counted together. Cost: a lock and a few bytes per count; a page costs what it shows.

pub(crate) mod cluster;
pub(crate) mod family;
mod page;
pub(crate) mod stages;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

use family::Family;
pub(crate) use page::Page;

/// A claim takes a few writes: milliseconds here, seconds on a cluster that is busy, minutes where a pool is exhausted.
const CLAIM: &[f64] = &[0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 300.0];
/// A step of an apply: a netlink message, or the wait for a link or for a probe of the wire.
const APPLY: &[f64] = &[0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0];

/// Tries: one where nobody else writes, a few where agents serve themselves, hundreds where something is wrong.
const TRIES: &[f64] = &[1.0, 5.0, 25.0, 125.0, 625.0];

/// R56, R57: claims by who serves them.
pub(crate) static CLAIMS: Family = Family::counter(
    "berth_claims_total",
    "Claims that were answered here, by pool, range (of what was granted), kind (dynamic, static) and result (granted, or why not).",
    &["pool", "range", "kind", "result"],
);
/// R106: claims that ended by their holder's word.
pub(crate) static RELEASES: Family =
    Family::counter("berth_releases_total", "Claims that their holders let go of, by pool.", &["pool"]);
/// R106: how often a ledger was written in vain before it was taken.
pub(crate) static CLAIM_TRIES: Family = Family::histogram(
    "berth_claim_tries",
    "Writes of a ledger that it took until one was not overtaken by somebody else's.",
    TRIES,
    &[],
);
static CLAIM_CONFLICTS: Family = Family::counter(
    "berth_claim_conflicts_total",
    "Writes of a ledger that came to nothing because somebody else wrote first.",
    &[],
);
pub(crate) static CLAIM_SECONDS: Family = Family::histogram(
    "berth_claim_seconds",
    "From an address being wanted to its being held by this host, in seconds.",
    CLAIM,
    &[],
);
pub(crate) static APPLY_SECONDS: Family = Family::histogram(
    "berth_apply_seconds",
    "Changes of this host's network, in seconds, by step (plan, wire, apply, verify, revert).",
    APPLY,
    &["step"],
);
pub(crate) static DRIFT_REPAIRS: Family = Family::counter(
    "berth_drift_repairs_total",
    "How often something that a policy set was changed by something else and put back.",
    &[],
);
pub(crate) static IP_COLLISIONS: Family = Family::counter(
    "berth_ip_collisions_total",
    "Addresses that somebody else was found to use, by pool.",
    &["pool"],
);
pub(crate) static GC_FREED: Family =
    Family::counter("berth_gc_freed_total", "Addresses that were freed because their holder vanished.", &[]);
pub(crate) static EVENTS_DROPPED: Family = Family::counter(
    "berth_events_dropped_total",
    "Events that were not written: too many at once, or refused.",
    &[],
);

static FAMILIES: [&Family; 10] = [
    &CLAIMS,
    &RELEASES,
    &CLAIM_CONFLICTS,
    &CLAIM_TRIES,
    &CLAIM_SECONDS,
    &APPLY_SECONDS,
    &DRIFT_REPAIRS,
    &IP_COLLISIONS,
    &GC_FREED,
    &EVENTS_DROPPED,
];

/// Writes of each pool's ledger that came to nothing since the last that was taken.
static IN_VAIN: Mutex<BTreeMap<String, u32>> = Mutex::new(BTreeMap::new());

/// A write of a ledger was taken, or overtaken.
pub(crate) fn ledger_written(pool: &str, taken: bool) {
    let mut in_vain = IN_VAIN.lock().unwrap_or_else(PoisonError::into_inner);
    if taken {
        let tries = in_vain.remove(pool).unwrap_or_default().saturating_add(1);
        CLAIM_TRIES.observe(&[], f64::from(tries));
    } else {
        CLAIM_CONFLICTS.add(&[], 1);
        let count = in_vain.entry(pool.to_owned()).or_default();
        *count = count.saturating_add(1);
    }
}

type Gather = Box<dyn Fn(&mut Page) + Send + Sync>;

/// Those who have gauges to show now.
static GATHERERS: Mutex<(u64, Vec<(u64, Gather)>)> = Mutex::new((0, Vec::new()));

/// Gauges are shown for as long as this is kept.
pub(crate) struct Kept(u64);

/// Shows gauges while the returned value is kept: those of a controller that leads, say.
#[must_use]
pub(crate) fn while_kept(gather: impl Fn(&mut Page) + Send + Sync + 'static) -> Kept {
    let mut all = GATHERERS.lock().unwrap_or_else(PoisonError::into_inner);
    all.0 += 1;
    let number = all.0;
    all.1.push((number, Box::new(gather)));
    Kept(number)
}

impl Drop for Kept {
    fn drop(&mut self) {
        let mut all = GATHERERS.lock().unwrap_or_else(PoisonError::into_inner);
        all.1.retain(|(number, _)| *number != self.0);
    }
}

/// Everything, in Prometheus' text format.
pub(crate) fn page() -> String {
    let mut page = Page::default();
    page.gauge("berth_build_info", "Which berth this is.", &["version"], &[env!("CARGO_PKG_VERSION")], 1.0);
    for family in FAMILIES {
        family.show(&mut page);
    }
    for (_, gather) in &GATHERERS.lock().unwrap_or_else(PoisonError::into_inner).1 {
        gather(&mut page);
    }
    page.finish()
}
