//! What the controller tells of a pool besides its status: Events and counters, by what a write changed.
//!
//! Called after a ledger was written, and while the controller leads. Must never decide, block or fail.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::sync::{Arc, Mutex, PoisonError};

use crds::names::condition::{FALSE, TRUE};
use crds::names::pool as names;
use crds::{NodeIPPool, NodeIPSlice};
use k8s_openapi::api::core::v1::ObjectReference;
use kube::{Client, Resource, ResourceExt};
use policy::claim::{Brake, Entry, EntryState, Ledger, NodeName, PoolName, RequestId, SlicesTended};

use super::{Watches, word};
use crate::embedded::selector::Labels;
use crate::events::{Events, Source};
use crate::metrics::{self, Kept, cluster};

/// Reasons of Events on pools, besides those of their condition.
const QUARANTINED: &str = "AddressQuarantined";
const FREED: &str = "AddressFreed";
const REBUILT: &str = "PoolRebuilt";
const BRAKED: &str = "ReleaseStopped";
const HELD_BY_ANOTHER: &str = "AddressHeldByAnother";
const SLICE_FREED: &str = "SliceFreed";
const OUTSIDE: &str = "AddressInNoRange";
const RESET: &str = "PoolReset";
const NO_SUCH_POOL: &str = "NoSuchPool";
const IN_USE_AGAIN: &str = "RangeInUse";
const DIFFERS: &str = "ConfigurationDiffers";

/// So many addresses are named; the rest is counted.
const NAMED: usize = 5;

/// How a controller is called in its Events.
pub(super) fn events(client: Client) -> Events {
    let instance = crate::host::running_name();
    let source = Source {
        component: "berth-controller".to_owned(),
        controller: "nmstate.io/berth-controller",
        instance: if instance.is_empty() { "berth-controller".to_owned() } else { instance },
    };
    Events::start(client, source)
}

/// Holders that wait for an administrator's word, by pool: of its own ledger, and of its slices. As last looked at.
#[derive(Clone, Debug, Default)]
pub(super) struct Stopped(Arc<Mutex<BTreeMap<PoolName, [usize; 2]>>>);

/// Where they are.
#[derive(Clone, Copy, Debug)]
pub(super) enum Held {
    Ledger = 0,
    Slices = 1,
}

impl Stopped {
    pub(super) fn is(&self, pool: &PoolName, held: Held, brake: Option<&Brake>) {
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let counts = all.entry(pool.clone()).or_default();
        counts[held as usize] = brake.map_or(0, |brake| brake.vanished);
        if *counts == [0, 0] {
            all.remove(pool);
        }
    }

    /// Nothing is taken of this pool now, for another reason.
    pub(super) fn nothing(&self, pool: &PoolName) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).remove(pool);
    }

    fn all(&self) -> Vec<(PoolName, usize)> {
        let all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        all.iter().map(|(pool, [own, slices])| (pool.clone(), own + slices)).collect()
    }
}

/// The gauges of the cluster are shown by whoever leads, for as long as it does.
pub(super) fn gauges(watches: &Watches, stopped: &Stopped, agent_nodes: &Labels) -> Kept {
    let (stopped, agent_nodes) = (stopped.clone(), agent_nodes.clone());
    let (pools, policies) = (watches.pools.clone(), watches.policies.clone());
    let (enactments, states) = (watches.enactments.clone(), watches.states.clone());
    let (nodes, slices) = (watches.nodes.clone(), watches.slices.clone());
    metrics::while_kept(move |page| {
        let slices = slices.all();
        let slices = || slices.iter().map(AsRef::as_ref);
        pools.all().iter().for_each(|pool| cluster::pool(page, pool, slices()));
        stopped.all().iter().for_each(|(pool, holders)| cluster::stopped(page, pool.as_str(), *holders));
        cluster::policies(page, policies.all().iter().map(AsRef::as_ref));
        cluster::enactments(page, enactments.all().iter().map(AsRef::as_ref));
        states.all().iter().for_each(|state| cluster::state(page, &state.name_any(), &state.counted));
        cluster::nodes(page, nodes.all().iter().map(AsRef::as_ref), &agent_nodes);
    })
}

/// A ledger was written in place of another. `collided`: the addresses that are new among those that somebody else has.
pub(super) fn written(
    events: &Events,
    [before, now]: [&NodeIPPool; 2],
    [was, is]: [&Ledger; 2],
    collided: &BTreeMap<IpAddr, String>,
) {
    let about = || now.object_ref(&());
    said(events, before, now, !collided.is_empty());
    // Each by itself: the condition names one.
    for message in collided.values() {
        events.warning(about(), names::COLLISION, message.clone());
    }
    let is_aside = |state: &EntryState| matches!(state, EntryState::Quarantined(_));
    // What is freed by its holder's own word was Held until then.
    let gone = |(ip, entry): &(&IpAddr, &Entry)| is_aside(&entry.state) && !is.allocations.contains_key(*ip);
    let freed: Vec<String> = was.allocations.iter().filter(gone).map(whose).collect();
    if !freed.is_empty() {
        metrics::GC_FREED.add(&[], freed.len());
        events.normal(about(), FREED, format!("{}: free again", listed(&freed)));
    }
    if was.needs_rebuild() && !is.needs_rebuild() {
        let count = is.allocations.len();
        events.normal(
            about(),
            REBUILT,
            format!("put together from what hosts hold and show: {count} addresses"),
        );
        return;
    }
    let aside = is.allocations.iter().filter(|(ip, entry)| {
        let known = was.allocations.get(ip).is_some_and(|entry| is_aside(&entry.state));
        is_aside(&entry.state) && !known
    });
    let aside: Vec<String> = aside.filter(|(ip, _)| !collided.contains_key(ip)).map(whose).collect();
    if !aside.is_empty() {
        let message =
            format!("{}: its holder is gone or must not use it; set aside for a while", listed(&aside));
        events.normal(about(), QUARANTINED, message);
    }
}

/// Claims that came up while a ledger was put together, to addresses that another holds (R100). Nothing is done about them
/// but to say it.
pub(super) fn lost(events: &Events, pool: &NodeIPPool, lost: &[(RequestId, IpAddr)]) {
    if !lost.is_empty() {
        let ips: Vec<IpAddr> = lost.iter().map(|(_, ip)| *ip).collect();
        let message =
            format!("{}: held by one host and claimed by another, which gets another", listed(&ips));
        events.warning(pool.object_ref(&()), HELD_BY_ANOTHER, message);
    }
}

/// Addresses that are held and in no range (R66, R99).
pub(super) fn outside(events: &Events, pool: &NodeIPPool, holders: &[(IpAddr, NodeName)]) {
    let held: Vec<String> = holders.iter().map(|(ip, node)| format!("{ip} (node {node})")).collect();
    let message = format!(
        "{}: held, but not within any range of this pool; left alone. Append a range that has it, or have the node claim \
        anew: out of the policy's nodeSelector, and back in",
        listed(&held)
    );
    events.warning(pool.object_ref(&()), OUTSIDE, message);
}

/// The controller's configuration lists this pool, and it lacks something of that.
pub(super) fn differs(events: &Events, about: ObjectReference, lacks: &[String]) {
    let message = format!(
        "differs from the controller's configuration in {}; it is left as it is: append ranges with kubectl, delete and \
        re-create the pool (holders keep their addresses), or change the configuration",
        listed(lacks)
    );
    events.warning(about, DIFFERS, message);
}

/// A part of it was put together anew, for whoever asked.
pub(super) fn reset(events: &Events, pool: &NodeIPPool, of: &str) {
    events.normal(pool.object_ref(&()), RESET, format!("put together anew, as far as it is about {of}"));
}

/// An object asks for a pool that there is not (D7).
pub(super) fn no_such_pool(events: &Events, about: ObjectReference, pool: &str) {
    let annotation = crds::names::annotation::RESET_POOL;
    let message = format!(
        "annotation {annotation}: there is no NodeIPPool {pool:?}; its value must be a pool's name, exactly"
    );
    events.warning(about, NO_SUCH_POOL, message);
}

/// It could not be put together (R15): because of these objects.
pub(super) fn unsynced(events: &Events, pool: &NodeIPPool, why: &[String]) {
    let more = match why.len().saturating_sub(1) {
        0 => String::new(),
        more => format!(" (and {more} more)"),
    };
    let first = why.first().map(String::as_str).unwrap_or_default();
    let message = format!("nothing is given until this is mended: {first}{more}");
    events.warning(pool.object_ref(&()), names::UNSYNCRONIZED, message);
}

/// A range was about to go, and somebody turned out to have an address of it (R65).
pub(super) fn in_use_again(events: &Events, pool: &NodeIPPool, range: &str) {
    let message = format!(
        "range {range}: an address of it is in use after all; it can't be removed before that is free"
    );
    events.warning(pool.object_ref(&()), IN_USE_AGAIN, message);
}

/// The condition changed: said with its own words, unless that there is a collision is told already. A new pool's first is no
/// news.
fn said(events: &Events, before: &NodeIPPool, now: &NodeIPPool, collided: bool) {
    let of = |pool: &NodeIPPool| pool.status.as_ref()?.conditions.first().cloned();
    let Some(is) = of(now) else { return };
    let Some(was) = of(before).filter(|was| was.reason != is.reason) else { return };
    let reason = names::BY_PRECEDENCE.into_iter().find(|known| *known == is.reason);
    let Some(reason) = reason else { return };
    let message = is.message.clone();
    match is.status.as_str() {
        FALSE if collided && reason == names::COLLISION => {}
        // Told with what stands in the way.
        FALSE if reason == names::UNSYNCRONIZED => {}
        FALSE => events.warning(now.object_ref(&()), reason, message),
        // Back to normal, after something that was not.
        TRUE if was.status == FALSE => events.normal(now.object_ref(&()), reason, message),
        _ => {}
    }
}

/// Too many holders vanished at once.
pub(super) fn braked(events: &Events, pool: &NodeIPPool, brake: Option<Brake>) {
    if let Some(brake) = brake {
        events.warning(pool.object_ref(&()), BRAKED, confirm(brake, &brake.vanished.to_string()));
    }
}

/// The same of slices whose pool is gone: these wait.
pub(super) fn braked_slices(
    events: &Events,
    pool: &PoolName,
    slices: &[Arc<NodeIPSlice>],
    brake: Option<Brake>,
) {
    if let Some((brake, first)) = brake.zip(slices.first()) {
        let word = word::for_slices(brake.vanished, pool);
        let message = format!("{} on the slices of pool {pool}, which is gone", confirm(brake, &word));
        events.warning(first.object_ref(&()), BRAKED, message);
    }
}

fn confirm(Brake { vanished, allowed }: Brake, word: &str) -> String {
    format!(
        "{vanished} holders vanished at once and unseen, more than {allowed}: nothing of theirs is released before an \
        administrator confirms with the annotation {}: \"{word}\"",
        crds::names::annotation::CONFIRM_RELEASE
    )
}

/// An address, and whose it is or was.
fn whose((ip, entry): (&IpAddr, &Entry)) -> String {
    format!("{ip} ({})", entry.node)
}

fn listed(all: &[impl ToString]) -> String {
    let named: Vec<String> = all.iter().take(NAMED).map(ToString::to_string).collect();
    match all.len().saturating_sub(NAMED) {
        0 => named.join(", "),
        more => format!("{} and {more} more", named.join(", ")),
    }
}

/// Slices of Nodes that are gone.
pub(super) fn slices(events: &Events, pool: &NodeIPPool, tended: &SlicesTended) {
    if !tended.quarantined.is_empty() {
        let aside = listed(&tended.quarantined);
        let message = format!("{aside}: its holder is gone or must not use it; set aside for a while");
        events.normal(pool.object_ref(&()), QUARANTINED, message);
    }
    if !tended.freed.is_empty() {
        metrics::GC_FREED.add(&[], tended.freed.len());
        events.normal(pool.object_ref(&()), FREED, format!("{}: free again", listed(&tended.freed)));
    }
    if !tended.free.is_empty() {
        let names = tended.free.join(", ");
        events.normal(pool.object_ref(&()), SLICE_FREED, format!("{names}: free again, its Node is gone"));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_waits_for_a_word_is_known_until_nothing_does() {
        let (stopped, pool) = (Stopped::default(), PoolName::new("traffic-1"));
        stopped.is(&pool, Held::Ledger, Some(&Brake { vanished: 4, allowed: 3 }));
        stopped.is(&pool, Held::Slices, Some(&Brake { vanished: 8, allowed: 3 }));
        stopped.is(&PoolName::new("quiet"), Held::Ledger, None);
        assert_eq!(stopped.all(), [(pool.clone(), 12)]);
        stopped.is(&pool, Held::Ledger, None);
        assert_eq!(stopped.all(), [(pool.clone(), 8)]);
        stopped.is(&pool, Held::Slices, None);
        assert_eq!(stopped.all(), []);
    }
}
