//! The normal form of a state, written down as bytes.

use std::cmp::Reverse;
use std::net::IpAddr;

use policy::claim::{
    Answer, CONFIRMED_FOR, CaptureName, Enactment, Entry, EntryState, Grant, Lease, Ledger, NodeName, Phase,
    QuarantineReason, Refusal, Reply, Request, RequestId, SEQUENCE_LEAP, Slot, Stamp, Time,
};

use crate::model::config::{Config, QUARANTINE};
use crate::model::moves::count;
use crate::model::store::Store;
use crate::model::world::{HostWorld, World};

/// Gaps between sequences are told apart up to here: on hold, the only time when a pool's sequence climbs
/// below another, it is written about once per host, and then it leaps.
pub(super) const GAP: u64 = 4;

/// The normal form while it is being written.
pub(super) struct Form<'a> {
    world: &'a World,
    config: &'a Config,
    order: &'a [usize],
    /// Nothing is left out but names and the date.
    full: bool,
    bytes: Vec<u8>,
    /// UIDs, ids and stamps. Each is made once and then shared, so that where it lies tells which it is.
    names: Vec<*const u8>,
    sequences: Vec<u64>,
    holds: Vec<Time>,
}

impl<'a> Form<'a> {
    pub(super) fn of(world: &'a World, order: &'a [usize], full: bool, config: &'a Config) -> Vec<u8> {
        let mut form = Self {
            world,
            config,
            order,
            full,
            bytes: Vec::with_capacity(512),
            names: Vec::with_capacity(32),
            sequences: Vec::with_capacity(16),
            holds: Vec::new(),
        };
        form.world();
        form.bytes
    }

    fn world(&mut self) {
        let world = self.world;
        for host in self.order {
            self.host(&world.hosts[*host]);
        }
        self.store(&world.store);
        self.optional(world.backup.as_deref().filter(|_| self.full || world.may_go_back()), Self::store);
        self.optional(world.rival.cache.as_deref(), Self::cache);
        self.pending();
        self.ips(&world.wire);
        for fault in &world.left {
            self.byte(*fault as u8);
        }
        let turn = if self.config.captures() > 1 { world.now % 2 } else { 0 };
        self.bytes.extend([u8::from(world.restored), world.peeks, count(turn as usize)]);
        self.ranks();
    }

    fn host(&mut self, host: &'a HostWorld) {
        let waits = !host.waits.is_empty();
        self.bytes.extend([host.agent as u8, u8::from(host.reachable), u8::from(waits)]);
        self.ips(&host.excused);
        self.ips(&host.nic);
        self.ips(&host.good);
        // Of what is journalled, the journal says it.
        for (ip, uid) in &host.under {
            if !host.host.held().any(|held| held == *ip) {
                self.name(uid.as_str());
            }
        }
        self.byte(255);
        for (key, record) in &host.host.journal {
            self.capture(&key.capture);
            self.name(record.id.as_str());
            self.name(record.node_uid.as_str());
            match &record.phase {
                Phase::Asking { declined } => {
                    self.byte(0);
                    self.ips(declined.keys());
                }
                Phase::Holding(lease) => self.tagged(1, lease),
                Phase::Parked(lease) => self.tagged(2, lease),
                Phase::Releasing => self.byte(3),
            }
        }
        let memory = &host.host.memory;
        self.bytes.extend([255, u8::from(memory.reported)]);
        for (key, lease) in &memory.announced {
            self.capture(&key.capture);
            self.lease(lease);
        }
        self.byte(255);
        for (key, (lease, at)) in &memory.confirmed {
            if self.full || self.world.now <= at + CONFIRMED_FOR {
                self.capture(&key.capture);
                self.lease(lease);
            }
        }
        self.byte(255);
        for (key, lease) in &memory.doubted {
            self.capture(&key.capture);
            self.lease(lease);
        }
        self.byte(255);
    }

    fn store(&mut self, store: &'a Store) {
        self.bytes.extend([store.policy, store.grown, store.reset_policy].map(u8::from));
        for host in self.order {
            let name = &self.config.names[*host];
            self.optional(store.nodes.get(name), |form, uid| form.name(uid.as_str()));
            self.optional(store.enactment(name), Self::enactment);
            self.optional(store.states.get(name), |form, state| {
                form.name(state.node_uid.as_str());
                form.name(state.stamp.as_str());
                form.ips(&state.shows);
            });
            let marks = [&store.refresh, &store.reset_nodes].map(|marked| marked.contains(name));
            self.bytes.extend(marks.map(u8::from));
        }
        self.byte(store.first() as u8);
        self.optional(store.ledger(), Self::ledger);
    }

    /// An old copy; where its pool has been written since, only what it says of requests matters.
    fn cache(&mut self, cache: &'a Store) {
        self.byte(u8::from(self.world.is_current(cache)));
        if self.full || self.world.may_write(cache) {
            return self.store(cache);
        }
        for host in self.order {
            self.optional(cache.enactment(&self.config.names[*host]), |form, own| {
                form.byte(u8::from(cache.is_live(&own.node, &own.node_uid)));
                form.enactment(own);
            });
        }
    }

    fn enactment(&mut self, own: &'a Enactment) {
        self.name(own.uid.as_str());
        self.name(own.node_uid.as_str());
        let now = self.world.now;
        self.optional(own.deleting, |form, since| form.byte(u8::from(now >= since + QUARANTINE)));
        for (key, slot) in &own.slots {
            self.capture(&key.capture);
            self.slot(slot);
        }
        self.byte(255);
    }

    fn slot(&mut self, slot: &'a Slot) {
        self.optional(slot.request.as_ref(), Self::request);
        self.optional(slot.grant.as_ref(), Self::grant);
        self.optional(slot.refused.as_ref(), Self::refusal);
    }

    fn request(&mut self, request: &'a Request) {
        self.name(request.id.as_str());
        self.byte(u8::from(request.want));
        self.optional(request.holds.as_ref(), Self::lease);
        self.ips(request.declined.keys());
    }

    fn grant(&mut self, grant: &'a Grant) {
        self.name(grant.id.as_str());
        self.lease(&grant.lease);
    }

    fn refusal(&mut self, refusal: &'a Refusal) {
        self.name(refusal.id.as_str());
        self.byte(refusal.reason as u8);
        // Prose, but a controller that would put it otherwise writes it anew. It may name hosts.
        let mut words = refusal.message.split(' ');
        while let Some(word) = words.next() {
            self.bytes.extend(word.as_bytes());
            if word == "node" {
                let name = words.next().unwrap_or_default();
                self.node(name.trim_end_matches([',', ')']));
            }
        }
        self.byte(255);
    }

    fn ledger(&mut self, ledger: &'a Ledger) {
        self.name(ledger.pool.as_str());
        self.optional(ledger.rebuilt_for.as_ref(), |form, pool| form.name(pool.as_str()));
        self.sequence(ledger.sequence);
        let now = self.world.now;
        self.optional(ledger.hold, |form, hold| {
            let which = place(&mut form.holds, hold.until);
            form.bytes.extend([which, u8::from(now >= hold.until), u8::from(form.world.met)]);
        });
        let flags = [ledger.reset, ledger.deleting, ledger.offsets_agree];
        self.bytes.extend(flags.map(u8::from));
        for (ip, entry) in &ledger.allocations {
            self.ips([ip]);
            self.entry(entry);
        }
        self.byte(255);
    }

    fn entry(&mut self, entry: &'a Entry) {
        self.node(entry.node.as_str());
        self.name(entry.node_uid.as_str());
        self.capture(&entry.capture);
        self.optional(entry.request.as_ref(), |form, id| form.name(id.as_str()));
        self.sequence(entry.sequence);
        self.byte(entry.kind as u8);
        let EntryState::Quarantined(quarantine) = &entry.state else {
            return self.byte(0);
        };
        let reason = match &quarantine.reason {
            QuarantineReason::NodeGone => 1,
            QuarantineReason::Orphan => 2,
            QuarantineReason::Observed => 3,
            QuarantineReason::Collision { .. } => 4,
        };
        self.bytes.extend([reason, u8::from(self.world.now >= quarantine.until)]);
        let world = self.world;
        let states = || world.stores().flat_map(|store| store.states.values());
        let full = self.full;
        let borne = |stamp: &&Stamp| full || states().any(|state| state.stamp == **stamp);
        let witness = quarantine.witness.as_ref().filter(borne);
        self.optional(witness, |form, stamp| form.name(stamp.as_str()));
    }

    /// The rival's answers that may still land, as if by enactment: nothing depends on their order.
    fn pending(&mut self) {
        let world = self.world;
        let mut answers: Vec<&Answer> =
            world.rival.pending.iter().filter(|a| self.full || may_land(world, a)).collect();
        let known = |name: &str| Reverse(self.names.iter().position(|other| *other == name.as_ptr()));
        answers.sort_by_key(|answer| {
            (known(answer.enactment.as_str()), &answer.key.capture, known(answer.id.as_str()))
        });
        for answer in answers {
            self.name(answer.enactment.as_str());
            self.capture(&answer.key.capture);
            self.name(answer.id.as_str());
            self.byte(u8::from(answer.want));
            self.optional(answer.replaces.as_ref(), Self::grant);
            match &answer.reply {
                Reply::Grant(grant) => self.tagged(0, &grant.lease),
                Reply::Refuse(refusal) => {
                    self.byte(1);
                    self.refusal(refusal);
                }
            }
        }
        self.byte(255);
    }

    fn tagged(&mut self, tag: u8, lease: &'a Lease) {
        self.byte(tag);
        self.lease(lease);
    }

    fn lease(&mut self, lease: &'a Lease) {
        self.ips(&lease.ips);
        self.sequence(lease.sequence);
        self.name(lease.pool.as_str());
    }

    /// For now its place among those met; [`Self::ranks`] says how they compare.
    fn sequence(&mut self, sequence: u64) {
        let place = place(&mut self.sequences, sequence);
        self.byte(place);
    }

    fn ranks(&mut self) {
        let counters = || self.world.stores().filter_map(|store| Some(store.ledger()?.sequence));
        let lowest = counters().min().unwrap_or(u64::MAX);
        let mut sorted = self.sequences.clone();
        sorted.sort_unstable();
        let mut ranks = vec![0; sorted.len()];
        for at in 1..sorted.len() {
            let gap = sorted[at] - sorted[at - 1];
            let kept = match gap {
                gap if self.full => gap.min(100),
                _ if lowest > sorted[at - 1] => 1,
                gap if gap >= SEQUENCE_LEAP / 2 => 3 * GAP,
                gap => gap.min(GAP),
            };
            ranks[at] = ranks[at - 1] + kept;
        }
        for sequence in &self.sequences {
            let rank = sorted.binary_search(sequence).map_or(0, |at| ranks[at]);
            self.bytes.push(count(rank as usize));
        }
    }

    fn name(&mut self, name: &str) {
        let place = place(&mut self.names, name.as_ptr());
        self.byte(place);
    }

    /// A host by its name.
    fn node(&mut self, name: &str) {
        let place = self.order.iter().position(|host| self.config.names[*host].as_str() == name);
        self.byte(place.map_or(254, count));
    }

    fn capture(&mut self, capture: &CaptureName) {
        let place = self.config.wants.keys().position(|key| key.capture == *capture);
        self.byte(place.map_or(254, count));
    }

    fn ips<'b>(&mut self, ips: impl IntoIterator<Item = &'b IpAddr>) {
        for ip in ips {
            let IpAddr::V4(ip) = ip else { continue };
            self.byte(ip.octets()[3]);
        }
        self.byte(0);
    }

    fn optional<T>(&mut self, value: Option<T>, write: impl FnOnce(&mut Self, T)) {
        self.byte(u8::from(value.is_some()));
        if let Some(value) = value {
            write(self, value);
        }
    }

    fn byte(&mut self, byte: u8) {
        self.bytes.push(byte);
    }
}

/// Where a thing stands among those met so far; at the end, if it is new.
fn place<T: PartialEq>(met: &mut Vec<T>, thing: T) -> u8 {
    let at = met.iter().position(|other| *other == thing).unwrap_or_else(|| {
        met.push(thing);
        met.len() - 1
    });
    count(at)
}

/// May this answer still find its request? Enactments and ids, once gone, come back from a backup or, ids,
/// from a journal only.
fn may_land(world: &World, answer: &Answer) -> bool {
    let asks = |own: &Enactment| {
        let id = |slot: &Slot| slot.request.as_ref().is_some_and(|request| request.id == answer.id);
        own.uid == answer.enactment
            && (own.slots.values().any(id) || journalled(world, &own.node, &answer.id))
    };
    let stores = std::iter::once(&world.store).chain(&world.backup);
    stores.flat_map(|store| store.enactments()).any(asks)
}

fn journalled(world: &World, node: &NodeName, id: &RequestId) -> bool {
    let hosts = world.hosts.iter().filter(|host| host.name == *node);
    hosts.flat_map(|host| host.host.journal.values()).any(|record| record.id == *id)
}
