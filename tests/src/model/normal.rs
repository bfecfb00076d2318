//! Makes states equal that nobody inside can tell apart, so that each is visited once.
//!
//! Times are counted from now and what is over is over; sequences keep their order and their leaps; when an
//! entry was made does not matter.

use std::collections::{BTreeMap, BTreeSet};

use policy::claim::{EntryState, Host, Lease, Ledger, Phase, SEQUENCE_LEAP, Slot, Time};

use super::store::Store;
use super::world::{NOW, QUARANTINE, World};

impl World {
    pub(super) fn normalise(&mut self) {
        let mut used = BTreeSet::new();
        self.each_sequence(&mut |sequence| {
            used.insert(*sequence);
        });
        let ranks = ranks(&used);
        self.each_sequence(&mut |sequence| *sequence = ranks.get(sequence).copied().unwrap_or(*sequence));
        let now = std::mem::replace(&mut self.now, NOW);
        for store in self.stores_mut() {
            normalise_store(store, now);
        }
        for world in &mut self.hosts {
            world.host.memory.confirmed.retain(|_, (_, at)| *at == now);
            world
                .host
                .memory
                .confirmed
                .values_mut()
                .for_each(|(_, at)| *at = NOW);
        }
        self.rival.pending.sort();
        self.rival.pending.dedup();
        self.forget_useless_copies();
        if !self.left.contains(&super::Fault::StoreRestored) {
            self.backup = None;
        }
    }

    /// A copy whose pool has been written since can no longer take anything back: its guard would fail. Only
    /// what it says of requests still matters.
    fn forget_useless_copies(&mut self) {
        let version = self.store.pool.as_ref().map(|pool| pool.version);
        let restored = self.restored;
        let Some(cache) = self.rival.cache.as_deref_mut() else {
            return;
        };
        if !restored && cache.pool.as_ref().map(|pool| pool.version) != version {
            cache.pool = None;
            cache.states.clear();
            cache.refresh.clear();
        }
    }

    fn stores_mut(&mut self) -> impl Iterator<Item = &mut Store> {
        let others = [self.backup.as_deref_mut(), self.rival.cache.as_deref_mut()];
        std::iter::once(&mut self.store).chain(others.into_iter().flatten())
    }

    fn each_sequence(&mut self, visit: &mut impl FnMut(&mut u64)) {
        for store in self.stores_mut() {
            if let Some(pool) = &mut store.pool {
                ledger_sequences(&mut pool.ledger, visit);
            }
            store
                .enactments
                .values_mut()
                .flat_map(|e| e.slots.values_mut())
                .for_each(|slot| slot_sequences(slot, visit));
        }
        for answer in &mut self.rival.pending {
            if let policy::claim::Reply::Grant(grant) = &mut answer.reply {
                visit(&mut grant.lease.sequence);
            }
        }
        self.hosts
            .iter_mut()
            .for_each(|world| host_sequences(&mut world.host, visit));
    }
}

/// Ranks in order, a leap staying a leap.
fn ranks(used: &BTreeSet<u64>) -> BTreeMap<u64, u64> {
    let mut ranks = BTreeMap::new();
    let mut last: Option<(u64, u64)> = None;
    for sequence in used {
        let rank = match last {
            None => 0,
            Some((before, rank)) if sequence - before >= SEQUENCE_LEAP / 2 => rank + SEQUENCE_LEAP,
            Some((_, rank)) => rank + 1,
        };
        ranks.insert(*sequence, rank);
        last = Some((*sequence, rank));
    }
    ranks
}

fn ledger_sequences(ledger: &mut Ledger, visit: &mut impl FnMut(&mut u64)) {
    visit(&mut ledger.sequence);
    ledger
        .allocations
        .values_mut()
        .for_each(|entry| visit(&mut entry.sequence));
}

fn slot_sequences(slot: &mut Slot, visit: &mut impl FnMut(&mut u64)) {
    let held = slot.request.as_mut().and_then(|request| request.holds.as_mut());
    let granted = slot.grant.as_mut().map(|grant| &mut grant.lease);
    held.into_iter()
        .chain(granted)
        .for_each(|lease: &mut Lease| visit(&mut lease.sequence));
}

fn host_sequences(host: &mut Host, visit: &mut impl FnMut(&mut u64)) {
    for record in host.journal.values_mut() {
        if let Phase::Holding(lease) | Phase::Parked(lease) = &mut record.phase {
            visit(&mut lease.sequence);
        }
    }
    let memory = &mut host.memory;
    memory
        .announced
        .values_mut()
        .for_each(|lease| visit(&mut lease.sequence));
    memory
        .doubted
        .values_mut()
        .for_each(|lease| visit(&mut lease.sequence));
    memory
        .confirmed
        .values_mut()
        .for_each(|(lease, _)| visit(&mut lease.sequence));
}

fn normalise_store(store: &mut Store, now: Time) {
    // Counted from now; all that is over is equally over.
    let shift = |time: Time, earliest: Time| (time + NOW).saturating_sub(now).max(earliest);
    for enactment in store.enactments.values_mut() {
        enactment.deleting = enactment.deleting.map(|since| shift(since, NOW - QUARANTINE));
    }
    let Some(pool) = &mut store.pool else { return };
    if let Some(hold) = &mut pool.ledger.hold {
        hold.until = shift(hold.until, NOW);
    }
    for entry in pool.ledger.allocations.values_mut() {
        entry.since = 0;
        if let EntryState::Quarantined(quarantine) = &mut entry.state {
            quarantine.until = shift(quarantine.until, NOW);
        }
    }
}
