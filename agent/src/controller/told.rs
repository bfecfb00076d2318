//! What the controller tells of a pool besides its status: Events and counters, by what a write changed.
//!
//! Called after a ledger was written, and while the controller leads. Must never decide, block or fail.

use std::net::IpAddr;

use crds::NodeIPPool;
use crds::names::condition::{FALSE, TRUE};
use crds::names::pool as names;
use kube::{Client, Resource};
use policy::claim::{Brake, EntryState, Ledger, RequestId};

use super::Watches;
use crate::events::{Events, Source};
use crate::metrics::{self, Kept, cluster};

/// Reasons of Events on pools, besides those of their condition.
const QUARANTINED: &str = "AddressQuarantined";
const FREED: &str = "AddressFreed";
const REBUILT: &str = "PoolRebuilt";
const BRAKED: &str = "ReleaseStopped";
const HELD_BY_ANOTHER: &str = "AddressHeldByAnother";
const OUTSIDE: &str = "AddressInNoRange";

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

/// The gauges of the cluster are shown by whoever leads, for as long as it does.
pub(super) fn gauges(watches: &Watches) -> Kept {
    let (pools, policies) = (watches.pools.clone(), watches.policies.clone());
    let (enactments, states) = (watches.enactments.clone(), watches.states.clone());
    metrics::while_kept(move |page| {
        pools.all().iter().for_each(|pool| cluster::pool(page, pool));
        cluster::policies(page, policies.all().iter().map(AsRef::as_ref));
        cluster::enactments(page, enactments.all().iter().map(AsRef::as_ref));
        states.all().iter().for_each(|state| cluster::state(page, state));
    })
}

/// A ledger was written in place of another.
pub(super) fn written(events: &Events, before: &NodeIPPool, now: &NodeIPPool, was: &Ledger, is: &Ledger) {
    let about = || now.object_ref(&());
    condition(events, before, now);
    let is_aside = |state: &EntryState| matches!(state, EntryState::Quarantined(_));
    // What is freed by its holder's own word was Held until then.
    let freed: Vec<IpAddr> = was
        .allocations
        .iter()
        .filter(|(ip, entry)| is_aside(&entry.state) && !is.allocations.contains_key(ip))
        .map(|(ip, _)| *ip)
        .collect();
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
    let aside: Vec<IpAddr> = aside.map(|(ip, _)| *ip).collect();
    if !aside.is_empty() {
        let message =
            format!("{}: its holder is gone or must not use it; set aside for a while", listed(&aside));
        events.normal(about(), QUARANTINED, message);
    }
}

/// What came up while a ledger was put together: claims to addresses that another holds (R100), and holdings in no range
/// (R99). Nothing is done about either but to say it.
pub(super) fn rebuilt(
    events: &Events,
    pool: &NodeIPPool,
    lost: &[(RequestId, IpAddr)],
    outside: &[(RequestId, IpAddr)],
) {
    let ips = |claims: &[(RequestId, IpAddr)]| claims.iter().map(|(_, ip)| *ip).collect::<Vec<_>>();
    if !lost.is_empty() {
        let message =
            format!("{}: held by one host and claimed by another, which gets another", listed(&ips(lost)));
        events.warning(pool.object_ref(&()), HELD_BY_ANOTHER, message);
    }
    if !outside.is_empty() {
        let message = format!("{}: held, but in no range of this pool; left alone", listed(&ips(outside)));
        events.warning(pool.object_ref(&()), OUTSIDE, message);
    }
}

/// The condition changed: said with its own words. A new pool's first is no news.
fn condition(events: &Events, before: &NodeIPPool, now: &NodeIPPool) {
    let of = |pool: &NodeIPPool| pool.status.as_ref()?.conditions.first().cloned();
    let Some(is) = of(now) else { return };
    let Some(was) = of(before).filter(|was| was.reason != is.reason) else { return };
    let reason = names::BY_PRECEDENCE.into_iter().find(|known| *known == is.reason);
    let Some(reason) = reason else { return };
    let message = is.message.clone();
    match is.status.as_str() {
        FALSE => events.warning(now.object_ref(&()), reason, message),
        // Back to normal, after something that was not.
        TRUE if was.status == FALSE => events.normal(now.object_ref(&()), reason, message),
        _ => {}
    }
}

/// Too many holders vanished at once.
pub(super) fn braked(events: &Events, pool: &NodeIPPool, brake: Option<Brake>) {
    if let Some(Brake { vanished, allowed }) = brake {
        let message = format!(
            "{vanished} holders vanished at once and unseen, more than {allowed}: nothing of theirs is released \
            before an administrator confirms with the annotation {}: \"{vanished}\"",
            crds::names::annotation::CONFIRM_RELEASE
        );
        events.warning(pool.object_ref(&()), BRAKED, message);
    }
}

fn listed(ips: &[IpAddr]) -> String {
    let named: Vec<String> = ips.iter().take(NAMED).map(ToString::to_string).collect();
    match ips.len().saturating_sub(NAMED) {
        0 => named.join(", "),
        more => format!("{} and {more} more", named.join(", ")),
    }
}
