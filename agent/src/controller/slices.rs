//! What the controller does about slices: it frees those of Nodes that are gone, and keeps in a sliced pool's own ledger what
//! is held without one. It never gives: nodes serve themselves.
//!
//! Taking reads everything afresh, after the slices that guard the writes. Cost: nothing where nothing is to be done; three
//! lists and one write per slice where something is taken, two to free one; the counts at most once a second.

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;
use std::sync::{Arc, PoisonError};
use std::time::{Duration, Instant};

use crds::names::pool as names;
use crds::{NodeIPPoolStatus, NodeIPSlice};
use kube::ResourceExt;
use policy::claim::{self, Entry, Facts, Ledger, NodeSlice, PoolName, SlicesTended};

use super::known::{Index, Work};
use super::pools::{Look, Step};
use super::reading::Reading;
use super::told::Held;
use super::{AGAIN, Lead, QUARANTINE, condition, told, word};
use crate::api::slices::{self, Written};
use crate::clock::now;
use crate::fault;
use crate::telemetry::say;

/// The counts of a sliced pool follow its slices no more often than so: in a crowd every claim changes them.
const COUNTS: Duration = Duration::from_secs(1);

impl Index {
    pub(super) fn slices_of(&self, pool: &PoolName) -> Vec<NodeSlice> {
        let known = self.slices.get(pool).into_iter().flat_map(|slices| slices.values());
        known.map(|known| known.slice.clone()).collect()
    }

    fn slice_objects(&self, pool: &PoolName) -> Vec<Arc<NodeIPSlice>> {
        let known = self.slices.get(pool).into_iter().flat_map(|slices| slices.values());
        known.map(|known| known.object.clone()).collect()
    }
}

impl Lead {
    /// What is held without a slice stands in the pool's own ledger.
    pub(super) async fn gather(&self, look: &Look) -> Result<Step, kube::Error> {
        let known = Reading::known_whole(&self.known.index());
        let gathered = |reading: &Reading| {
            claim::gather(
                &look.ledger,
                &look.name,
                &look.known.pool,
                &look.slices,
                &reading.facts(None),
                look.now,
            )
        };
        if gathered(&known).is_none() {
            return Ok(Step::On);
        }
        let Some(reading) = self.reading(look).await? else { return Ok(Step::On) };
        let Some(next) = gathered(&reading) else { return Ok(Step::On) };
        let step = self.write(look, &next).await?;
        // Their slices are gone, or were never made: their agents look.
        let is_new = |(ip, _): &(&IpAddr, &Entry)| !look.ledger.allocations.contains_key(*ip);
        let bare = next.allocations.iter().filter(is_new).map(|(_, entry)| entry.node.clone());
        self.ask_word(&bare.collect()).await?;
        Ok(step)
    }

    /// Slices of Nodes that are gone are set aside, and later freed (rule 4); also of a pool that is gone.
    pub(super) async fn tend_slices(&self, name: &PoolName, look: Option<&Look>) -> Result<(), kube::Error> {
        let (all, objects, known) = {
            let index = self.known.index();
            (index.slices_of(name), index.slice_objects(name), Reading::known_whole(&index))
        };
        if all.is_empty() {
            self.stopped.is(name, Held::Slices, None);
            return Ok(());
        }
        let quarantine = look.map_or(QUARANTINE, |look| look.known.pool.quarantine());
        let unsaid = known.facts(None);
        // Where there is no pool, its slices are what can be annotated.
        let (waiting, confirmed) = match look {
            Some(look) => (Vec::new(), word::on_pool(&look.known.object)),
            None => {
                let vanished: BTreeSet<&str> =
                    claim::vanished_slices(&all, &unsaid).map(|slice| slice.name.as_str()).collect();
                let is_theirs = |object: &&Arc<NodeIPSlice>| vanished.contains(object.name_any().as_str());
                let waiting: Vec<_> = objects.iter().filter(is_theirs).cloned().collect();
                let confirmed = word::on_all(&waiting);
                (waiting, confirmed)
            }
        };
        let at = now();
        let tend = |facts: &Facts<'_>| {
            claim::tend_slices(&all, look.map(|look| &look.ledger), facts, quarantine, at)
        };
        let worth_it = tend(&known.facts(confirmed));
        self.stopped.is(name, Held::Slices, worth_it.braked.as_ref());
        match look {
            Some(look) => told::braked(&self.events, &look.known.object, worth_it.braked),
            None => told::braked_slices(&self.events, name, &waiting, worth_it.braked),
        }
        if look.is_some() || tend(&unsaid).braked.is_none() {
            self.end_confirmations(&objects).await?;
        }
        if let Some(until) = worth_it.until {
            let wait = Duration::from_secs(until.saturating_sub(at).max(1));
            self.known.put_off(Work::of_pool(name.clone()), wait);
        }
        if worth_it.ledgers.is_empty() && worth_it.free.is_empty() {
            return Ok(());
        }
        match self.afresh(name).await? {
            Ok(reading) => self.take(name, look, &tend(&reading.facts(confirmed))).await,
            Err(hidden) => {
                hidden.iter().for_each(|what| say(&format!("pool {name}: no slice is taken: {what}")));
                Ok(())
            }
        }
    }

    async fn take(
        &self,
        name: &PoolName,
        look: Option<&Look>,
        tended: &SlicesTended,
    ) -> Result<(), kube::Error> {
        let object = |slice: &str| {
            let index = self.known.index();
            index.slices.get(name).and_then(|slices| slices.get(slice)).map(|known| known.object.clone())
        };
        let mut overtaken = false;
        for (slice, next) in &tended.ledgers {
            let Some(object) = object(slice) else { continue };
            match slices::write(&self.client, &object, next).await? {
                Written::Done(now) => {
                    fault::point("slice-set-aside");
                    self.known.slice(&crate::api::Change::Put((*now).into()));
                }
                Written::Overtaken => overtaken = true,
                Written::Refused(why) => say(&format!("slice {slice}: its ledger is refused: {why}")),
            }
        }
        for slice in &tended.free {
            let Some(object) = object(slice) else { continue };
            if slices::give_back(&self.client, &object).await? {
                self.known.slice(&crate::api::Change::Gone(object));
            } else {
                overtaken = true;
            }
        }
        if let Some(look) = look.filter(|_| !overtaken) {
            told::slices(&self.events, &look.known.object, tended);
        }
        // What was written is looked at again when the watch tells of it; what was not, soon.
        if overtaken {
            self.known.put_off(Work::of_pool(name.clone()), AGAIN);
        }
        Ok(())
    }

    /// What is new among the addresses that somebody else has. What is in slices no write of the pool's brings about, so it is
    /// remembered what was told; whoever leads anew takes for told what is there while the condition tells of any.
    pub(super) fn newly_collided(&self, look: &Look, next: &Ledger) -> BTreeMap<IpAddr, String> {
        let mut all: BTreeMap<IpAddr, String> = condition::collisions(next, &look.slices).collect();
        let mut collided = self.collided.lock().unwrap_or_else(PoisonError::into_inner);
        let told = match all.is_empty() {
            true => collided.remove(&look.name),
            false => collided.insert(look.name.clone(), all.keys().copied().collect()),
        };
        let told = told.unwrap_or_else(|| {
            let tells = condition::reason(look.known.object.status.as_ref()) == Some(names::COLLISION);
            let slices = if tells { &look.slices[..] } else { &[] };
            condition::collisions(&look.ledger, slices).map(|(ip, _)| ip).collect()
        });
        all.retain(|ip, _| !told.contains(ip));
        all
    }

    /// Whether a change of mere counts is put off.
    pub(super) fn counts_wait(
        &self,
        look: &Look,
        says: &NodeIPPoolStatus,
        before: &NodeIPPoolStatus,
    ) -> bool {
        let counts_only = says.conditions == before.conditions && says.drained == before.drained;
        if !look.known.pool.is_sliced() || !counts_only {
            return false;
        }
        let mut counted = self.counted.lock().unwrap_or_else(PoisonError::into_inner);
        let waits = counted.get(&look.name).map(|at| at.elapsed()).filter(|since| *since < COUNTS);
        match waits {
            Some(since) => {
                self.known.put_off(Work::of_pool(look.name.clone()), COUNTS - since);
                true
            }
            None => {
                counted.insert(look.name.clone(), Instant::now());
                false
            }
        }
    }
}
