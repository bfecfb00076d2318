//! What the page asks for, as JSON. Reads what is seen, decides nothing.

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;

use crds::names::condition::{AVAILABLE, DEGRADED, IGNORED, PROGRESSING, TRUE};
use crds::names::label;
use kube::ResourceExt;
use policy::claim::{Entry, EntryState, Time};
use policy::pool::{Band, Barred, Family, Part, Pool, Range, RangeState, Recorded, Word};
use serde_json::{Value, json};

use super::Asked;
use super::history::{Change, What};
use super::seen::{PoolSeen, Seen, SliceSeen};
use crate::events::Heard;
use crate::records;

/// A map has so many cells at the most: what a screen shows and a person can tell apart. A power of two.
pub(super) const CELLS: u128 = 1024;
/// So many finds are shown; the rest is counted.
const FINDS: usize = 100;
/// So many changes of one address, and so many Events.
const CHANGES: usize = 20;
/// So many nodes are named of a stretch with many slices.
const NAMED: usize = 4;

pub(super) fn pools(seen: &Seen) -> Value {
    let pools: Vec<Value> = seen.pools().iter().map(|(name, pool)| overview(name, pool)).collect();
    json!({"pools": pools, "lost": seen.lost()})
}

fn overview(name: &str, seen: &PoolSeen) -> Value {
    let status = seen.object.status.clone().unwrap_or_default();
    let condition = status.conditions.iter().find(|one| one.type_ == AVAILABLE);
    let quarantined = seen.entries.values().filter(|entry| !entry.is_held()).count();
    json!({
        "name": name,
        "status": condition.map_or("Unknown", |one| &one.status),
        "reason": condition.map_or("", |one| &one.reason),
        "message": condition.map_or("", |one| &one.message),
        "capacity": status.capacity,
        "allocated": status.allocated,
        "available": status.available,
        "quarantined": quarantined,
        "hold": status.hold.is_some(),
        "deleting": seen.object.metadata.deletion_timestamp.is_some(),
        "slices": seen.slices.len(),
        "ranges": seen.pool.iter().flat_map(|pool| pool.ranges()).map(range).collect::<Vec<_>>(),
    })
}

fn range(range: &Range) -> Value {
    json!({
        "name": range.name(),
        "draining": range.state() == RangeState::Draining,
        "perNodeHostBits": range.host_bits(),
        "attributes": range.attributes(),
        "parts": range.parts().map(part).collect::<Vec<_>>(),
    })
}

/// Numbers are texts: those of an IPv6 range are larger than a browser's.
fn part(part: &Part) -> Value {
    json!({
        "family": family_word(part.family()),
        "cidr": part.cidr().to_string(),
        "start": part.start().to_string(),
        "end": part.end().to_string(),
        "gateway": part.gateway().map(|ip| ip.to_string()),
        "size": size(part).to_string(),
        "bits": bits_for(size(part)),
    })
}

fn family_word(family: Family) -> &'static str {
    match family {
        Family::V4 => "4",
        Family::V6 => "6",
    }
}

/// How many addresses; of all there are in IPv6 one less.
fn size(part: &Part) -> u128 {
    part.last_offset().saturating_add(1)
}

/// The least bits of a cell with which so many addresses fit a map.
fn bits_for(addresses: u128) -> u32 {
    let cells = addresses.div_ceil(CELLS).max(1);
    cells.next_power_of_two().trailing_zeros()
}

/// A stretch of a range: `pool`, `range`, `family`, `from` (an offset), `bits` (a cell is 2^bits addresses).
pub(super) fn map(seen: &Seen, asked: &Asked) -> Option<Value> {
    let name = asked.get("pool");
    let pool_seen = seen.pool(name)?;
    let pool = pool_seen.pool.as_ref()?;
    let range = pool.ranges().iter().find(|range| range.name() == asked.get("range"))?;
    let part = range.parts().find(|part| family_word(part.family()) == asked.get("family"))?;
    let whole = bits_for(size(part));
    let bits = asked.get("bits").parse().unwrap_or(whole).min(whole);
    let from: u128 = asked.get("from").parse().unwrap_or(0);
    // From a whole window on: cells lie where they lay a zoom before.
    let window = bits + CELLS.trailing_zeros();
    let from = from.min(part.last_offset()).checked_shr(window).map_or(0, |windows| windows << window);
    let barred = seen.barred(name);
    let drawn = Drawn { pool, part, barred: &barred, seen: &pool_seen };
    let firsts = (0..CELLS).map_while(|cell| from.checked_add(cell << bits));
    let firsts = firsts.take_while(|first| *first <= part.last_offset());
    let cells: Vec<Value> = firsts.map(|first| drawn.cell(first, bits)).collect();
    Some(json!({
        "pool": name, "range": range.name(), "family": family_word(part.family()), "cidr": part.cidr().to_string(),
        "from": from.to_string(), "bits": bits, "whole": whole, "size": size(part).to_string(),
        "cells": cells, "slices": range.host_bits().map(|_| drawn.slices(from, bits)),
    }))
}

struct Drawn<'a> {
    pool: &'a Pool,
    part: &'a Part,
    barred: &'a Barred,
    seen: &'a PoolSeen,
}

impl Drawn<'_> {
    fn cell(&self, first: u128, bits: u32) -> Value {
        match (bits, self.part.address_at(first)) {
            (0, Some(ip)) => standing(self.pool, self.barred, self.seen, ip),
            (_, at) => self.stretch(first, bits, at),
        }
    }

    fn stretch(&self, first: u128, bits: u32, at: Option<IpAddr>) -> Value {
        let last = first.saturating_add((1 << bits) - 1).min(self.part.last_offset());
        let ends = at.zip(self.part.address_at(last));
        let held = ends.into_iter().flat_map(|(from, to)| self.seen.entries.range(from..=to));
        let held = held.map(|(ip, entry)| (*ip, !entry.is_held()));
        let tally = self.pool.tally(self.part, (first, last), self.barred, held);
        let counts = [tally.held, tally.quarantined, tally.reserved, tally.band, tally.free, tally.never];
        let nodes = ends.into_iter().flat_map(|(from, to)| self.seen.slices_in(from, to));
        let nodes: BTreeSet<&str> = nodes.map(|slice| slice.node.as_str()).collect();
        let mut cell = json!({
            "ip": at.map(|ip| ip.to_string()),
            "to": ends.map(|(_, to)| to.to_string()),
            "offset": first.to_string(),
            "counts": counts.map(|count| count.to_string()),
        });
        if !nodes.is_empty() {
            cell["owners"] = json!(nodes.len());
            cell["nodes"] = json!(nodes.into_iter().take(NAMED).collect::<Vec<_>>());
        }
        cell
    }

    /// The slices of what is drawn: whose each is, and how full. The first [`FINDS`], and how many there are.
    fn slices(&self, from: u128, bits: u32) -> Value {
        let last = from.saturating_add((CELLS << bits) - 1).min(self.part.last_offset());
        let ends = self.part.address_at(from).zip(self.part.address_at(last));
        let mut shown = Vec::new();
        let mut count = 0_usize;
        for slice in ends.into_iter().flat_map(|(first, last)| self.seen.slices_in(first, last)) {
            count += 1;
            if shown.len() < FINDS {
                shown.push(self.slice(slice));
            }
        }
        json!({"count": count, "shown": shown})
    }

    fn slice(&self, slice: &SliceSeen) -> Value {
        let (first, last) = (slice.cidr.network(), slice.cidr.broadcast());
        let (start, end) = (self.part.start().max(first), self.part.end().min(last));
        let recorded = self.seen.entries.range(first..=last).map(|(ip, entry)| (*ip, !entry.is_held()));
        let ends = self.part.offset_of(start).zip(self.part.offset_of(end));
        let tally =
            ends.map(|ends| self.pool.tally(self.part, ends, self.barred, recorded)).unwrap_or_default();
        json!({
            "cidr": slice.cidr.to_string(), "node": slice.node, "ip": start.to_string(),
            "offset": ends.map(|(from, _)| from.to_string()),
            "held": tally.held.to_string(), "quarantined": tally.quarantined.to_string(),
            "free": (tally.free + tally.reserved).to_string(),
        })
    }
}

/// One address.
fn standing(pool: &Pool, barred: &Barred, seen: &PoolSeen, ip: IpAddr) -> Value {
    let mut cell = json!({"ip": ip.to_string()});
    let entry = seen.entries.get(&ip);
    let stands = pool.standing(ip, barred, entry.map(recorded));
    cell["state"] = match (stands.word, stands.band) {
        (Word::Free, Some(Band::Static)) => json!("band"),
        (word, _) => json!(word.as_str()),
    };
    if let Some(entry) = entry {
        fill(&mut cell, entry);
    }
    let reserved = stands.reserved_for.map(|node| format!("for {node}"));
    if let Some(why) = stands.why.or(reserved) {
        cell["why"] = json!(why);
    }
    if let Some(slice) = seen.slice_of(ip) {
        cell["slice"] = json!({"cidr": slice.cidr.to_string(), "node": slice.node});
    }
    cell
}

fn recorded(entry: &Entry) -> Recorded {
    if entry.is_held() { Recorded::Held } else { Recorded::Quarantined }
}

fn fill(cell: &mut Value, entry: &Entry) {
    cell["node"] = json!(entry.node.as_str());
    cell["policy"] = json!(entry.policy.as_str());
    cell["capture"] = json!(entry.capture.as_str());
    cell["since"] = json!(entry.since);
    cell["kind"] = json!(entry.kind);
    if let EntryState::Quarantined(quarantine) = &entry.state {
        cell["until"] = json!(quarantine.until);
        cell["reason"] = json!(records::pool::reason_word(&quarantine.reason));
        if let policy::claim::QuarantineReason::Collision { by } = &quarantine.reason {
            cell["mac"] = json!(by.mac);
        }
    }
}

/// One address and what it has been through, as this process saw it and as Events tell it: `pool`, `ip`.
pub(super) fn address(seen: &Seen, asked: &Asked, told: &[Heard]) -> Option<Value> {
    let name = asked.get("pool");
    let pool_seen = seen.pool(name)?;
    let pool = pool_seen.pool.as_ref()?;
    let ip: IpAddr = asked.get("ip").parse().ok()?;
    let mut shown = standing(pool, &seen.barred(name), &pool_seen, ip);
    shown["pool"] = json!(name);
    if let Some(offset) = pool.offset_of(ip) {
        shown["offset"] = json!(offset.to_string());
    }
    let changes = seen.history(|history| history.of(name, ip).take(CHANGES).map(change).collect::<Vec<_>>());
    shown["history"] = json!(changes);
    let told = told.iter().filter(|heard| heard.mentions(ip.to_canonical())).take(CHANGES);
    let told = told.map(
        |heard| json!({"at": heard.at, "what": heard.what, "message": heard.message, "count": heard.count}),
    );
    shown["told"] = json!(told.collect::<Vec<_>>());
    Some(shown)
}

fn change(change: &Change) -> Value {
    let (what, node, more) = match &change.what {
        What::Held { node, policy } => ("held", node, policy.as_str()),
        What::Quarantined { node, reason } => ("quarantined", node, *reason),
        What::Freed { node } => ("freed", node, ""),
    };
    let at: Time = change.at;
    json!({"at": at, "what": what, "node": node, "more": more})
}

/// Policies, and where each stands on how many nodes.
pub(super) fn policies(seen: &Seen) -> Value {
    let mut standings: BTreeMap<String, BTreeMap<String, usize>> = BTreeMap::new();
    for own in seen.enactments() {
        let Some(policy) = own.labels().get(label::POLICY) else { continue };
        let none = Vec::new();
        let conditions = own.status.as_ref().map_or(&none, |status| &status.conditions);
        let standing = format!("{:?}", records::standing::read(conditions));
        *standings.entry(policy.clone()).or_default().entry(standing).or_default() += 1;
    }
    let shown = seen.policies().into_iter().map(|policy| {
        let name = policy.name_any();
        let status = policy.status.clone().unwrap_or_default();
        let now = [DEGRADED, AVAILABLE, PROGRESSING, IGNORED]
            .into_iter()
            .find_map(|type_| status.conditions.iter().find(|one| one.type_ == type_ && one.status == TRUE));
        json!({
            "name": name,
            "condition": now.map_or("", |one| &one.type_),
            "message": now.map_or("", |one| &one.message),
            "nodes": standings.get(&name).cloned().unwrap_or_default(),
        })
    });
    json!({"policies": shown.collect::<Vec<_>>()})
}

/// Held and quarantined addresses by node, address or policy.
pub(super) fn search(seen: &Seen, words: &str) -> Value {
    let words = words.trim().to_lowercase();
    let mut finds = Vec::new();
    let mut count = 0_usize;
    for (name, pool_seen) in seen.pools() {
        let Some(pool) = &pool_seen.pool else { continue };
        for (ip, entry) in &pool_seen.entries {
            let text = ip.to_string();
            let is_found = !words.is_empty()
                && (text.starts_with(&words)
                    || entry.node.as_str().to_lowercase().contains(&words)
                    || entry.policy.as_str().to_lowercase().contains(&words));
            if !is_found {
                continue;
            }
            count += 1;
            if finds.len() < FINDS {
                finds.push(find(&name, pool, *ip, entry));
            }
        }
    }
    json!({"finds": finds, "count": count})
}

fn find(name: &str, pool: &Pool, ip: IpAddr, entry: &Entry) -> Value {
    let range = pool.range_of(ip);
    let part = range.and_then(|range| range.part(Family::of(ip)));
    let mut found = json!({
        "pool": name,
        "ip": ip.to_string(),
        "state": pool.standing(ip, &Barred::default(), Some(recorded(entry))).word.as_str(),
        "range": range.map(Range::name),
        "family": family_word(Family::of(ip)),
        "offset": part.and_then(|part| part.offset_of(ip)).map(|offset| offset.to_string()),
    });
    fill(&mut found, entry);
    found
}
