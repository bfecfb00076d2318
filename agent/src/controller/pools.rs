//! One look at one pool: hold and rebuild first, then requests, then what nobody holds, then what people see of it.
//!
//! Serving works from what is known, under a guard: if somebody wrote first, it is read and served again. Taking
//! (tend, rebuild, reassert) reads everything afresh after the ledger. Cost: nothing where nothing is to be done; one
//! write of each pool per batch and one of each enactment, however many pools it asks; three lists where something is taken.

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;
use std::sync::{Arc, PoisonError};
use std::time::{Duration, Instant};

use crds::names::annotation::{RESET_POOL, SLICED};
use crds::names::{finalizer, label, pool as names};
use crds::{NodeIPPool, NodeIPPoolStatus, NodeNetworkConfigurationEnactment, NodeNetworkState};
use kube::ResourceExt;
use kube::api::{Api, Patch, PatchParams};
use policy::claim::{self, Answer, Hold, Ledger, NodeName, NodeSlice, PoolName, Served, Time, Uncovered};
use policy::pool::{Barred, hints};
use serde_json::json;

use super::answers::{self, Landed, OfPool};
use super::known::{PoolKnown, Work};
use super::ledger::{self, Written};
use super::reading::{Reading, deleted};
use super::told::Held;
use super::{AGAIN, Lead, condition, told, word};
use crate::api::error::{Trouble, optional, trouble, words};
use crate::api::{Watched, list, random};
use crate::clock::now;
use crate::fault;
use crate::telemetry::say;
use crate::{networks, records};

/// Pools whose ledgers are written at a time.
const AT_ONCE: usize = 4;
/// A pass is begun anew this often when others keep writing first; then others get a turn.
const TRIES: usize = 20;
/// A ledger that the API will not have is tried again after this long.
const REFUSED: Duration = Duration::from_secs(30);

/// What a step of a pass came to.
pub(super) enum Step {
    /// Nothing to do here; on to the next.
    On,
    /// Something was written: look again.
    Again,
    /// The API will not have the ledger so.
    Refused(String),
}

/// What became of a ledger.
pub(super) enum Put {
    Done,
    /// Somebody else wrote first: what they wrote is known now.
    Overtaken,
    /// There is no such pool any more.
    Gone,
    Refused(String),
}

impl From<Put> for Step {
    fn from(put: Put) -> Self {
        match put {
            Put::Done | Put::Overtaken => Self::Again,
            Put::Gone => Self::On,
            Put::Refused(why) => Self::Refused(why),
        }
    }
}

/// One pool in one pass.
#[derive(Clone)]
pub(super) struct Look {
    pub(super) name: PoolName,
    pub(super) known: PoolKnown,
    pub(super) ledger: Ledger,
    barred: Barred,
    /// Of a sliced pool; and of one that was, what is left of them.
    pub(super) slices: Vec<NodeSlice>,
    pub(super) now: Time,
    /// Whom it serves, if not everybody who asks.
    among: Option<Among>,
}

/// The enactments that were known when a pass over several pools began, by UID. Who comes while it lasts is served by the
/// next, by all pools at once: half of its answers now and half then would be two writes.
pub(super) type Among = Arc<BTreeSet<String>>;

impl Lead {
    pub(super) async fn pool(&self, name: &PoolName, among: Option<&Among>) -> Result<(), kube::Error> {
        if self.known.index().doubtful.contains(name) {
            self.read_pool(name).await?;
            self.known.index().doubtful.remove(name);
        }
        for _ in 0..TRIES {
            let Some(look) = self.look(name, among) else {
                return self.without_pool(name).await;
            };
            match self.step(&look).await? {
                Step::On => return Ok(()),
                Step::Again => {}
                Step::Refused(why) => {
                    say(&format!("pool {name}: its ledger is refused: {why}"));
                    self.known.put_off(Work::of_pool(name.clone()), REFUSED);
                    return Ok(());
                }
            }
        }
        self.known.put_off(Work::of_pool(name.clone()), Duration::from_millis(50));
        Ok(())
    }

    /// Requests to several pools: each ledger is written, and then, with one write for each enactment, all answers. What
    /// doesn't go smoothly here (a hold, a rebuild, somebody who writes first) is left to the pool's own look, which follows.
    pub(super) async fn serve_together(
        &self,
        pools: BTreeSet<PoolName>,
        among: &Among,
    ) -> Result<(), kube::Error> {
        use futures_util::StreamExt;
        let entered: Vec<Option<(Look, Vec<Answer>)>> = futures_util::stream::iter(pools)
            .map(|name| async move { self.enter(&name, among).await })
            .buffer_unordered(AT_ONCE)
            .collect()
            .await;
        let entered: Vec<(Look, Vec<Answer>)> = entered.into_iter().flatten().collect();
        let owed: Vec<OfPool<'_>> = entered.iter().map(|(look, answers)| look.owes(answers)).collect();
        self.answer(&owed).await
    }

    /// Writes a pool's ledger as its requests ask for; what is to be answered then.
    async fn enter(&self, name: &PoolName, among: &Among) -> Option<(Look, Vec<Answer>)> {
        let look = self.look(name, Some(among))?;
        let ledger = &look.ledger;
        let reset = self.known.index().marks.first(name).is_some();
        // Of a sliced pool nodes serve themselves.
        if look.known.pool.is_sliced() || !ledger.gives() || reset || !is_begun(&look.known.object) {
            return None;
        }
        if !self.is_noticed(&look) {
            return None;
        }
        let reading = self.asking(&look);
        let asked = reading.asked(name, &BTreeSet::new());
        let served = claim::serve(ledger, &look.known.pool, &look.barred, &asked, look.now);
        if !served.reread.is_empty() || self.went_back(&look, &served) {
            return None;
        }
        if let Some(next) = &served.ledger {
            // Not written, nothing may be answered. What went wrong is met again, and said, by the pool's own look.
            let Ok(Put::Done) = self.put(&look, next).await else { return None };
        }
        Some((look, served.answers))
    }

    /// Who asks this pool, but for those who can't be served as they are, or not in this pass.
    fn asking(&self, look: &Look) -> Reading {
        let index = self.known.index();
        let mut reading = Reading::known(&index, &look.name);
        let is_among = |uid: &str| look.among.as_ref().is_none_or(|among| among.contains(uid));
        reading.enactments.retain(|own| is_among(own.uid.as_str()) && !index.is_spoilt(own.uid.as_str()));
        reading
    }

    /// Whether this ledger is of an earlier time than one that was known (rule 6).
    fn went_back(&self, look: &Look, served: &Served) -> bool {
        let index = self.known.index();
        let remembered = index.sequences.get(look.ledger.pool.as_str()).copied().unwrap_or_default();
        served.went_back || claim::went_back(&look.ledger, remembered)
    }

    async fn step(&self, look: &Look) -> Result<Step, kube::Error> {
        if !look.ledger.gives() {
            self.stopped.nothing(&look.name);
        }
        if look.ledger.deleting {
            return self.ending(look).await;
        }
        if !is_begun(&look.known.object) {
            return self.begin(look).await;
        }
        if look.ledger.hold.is_some() {
            return self.held(look).await;
        }
        self.meet(&look.ledger);
        if look.ledger.needs_rebuild() {
            return self.rebuild(look).await;
        }
        if let Some(step) = self.reset(look).await? {
            return Ok(step);
        }
        self.failed.lock().unwrap_or_else(PoisonError::into_inner).remove(&look.name);
        self.resume_slices(look).await?;
        match self.notice(look).await? {
            Step::On => {}
            step => return Ok(step),
        }
        let served = match look.known.pool.is_sliced() {
            true => self.gather(look).await?,
            false => self.serve(look).await?,
        };
        match served {
            Step::On => {}
            step => return Ok(step),
        }
        match self.tend(look).await? {
            Step::On => {}
            step => return Ok(step),
        }
        self.tend_slices(&look.name, Some(look)).await?;
        match self.end_confirmation(look).await? {
            Step::On => {}
            step => return Ok(step),
        }
        self.remind(look);
        self.compare_with_configuration(&look.known.object);
        self.show(look).await
    }

    /// What is known of a pool, ready to be decided on.
    pub(super) fn look(&self, name: &PoolName, among: Option<&Among>) -> Option<Look> {
        let index = self.known.index();
        let known = index.pools.get(name)?.clone();
        let ledger = records::pool::read(&known.object, &known.pool).ok()?;
        let mut barred = Barred::default();
        index
            .pools
            .iter()
            .filter(|(other, _)| *other != name)
            .for_each(|(_, other)| barred.pool(&other.pool));
        let slices = index.slices_of(name);
        let services = self.watches.services.as_ref().map(Watched::all).unwrap_or_default();
        networks::bar(&mut barred, &self.settings.exclude, services.iter().map(|object| &**object));
        Some(Look { name: name.clone(), known, ledger, barred, slices, now: now(), among: among.cloned() })
    }

    /// No such pool, or none that can be read: what was let go is gone, what is wanted is refused.
    async fn without_pool(&self, name: &PoolName) -> Result<(), kube::Error> {
        if self.unreadable(name).await? {
            return Ok(());
        }
        if self.ensure(name).await? {
            self.known.put_off(Work::of_pool(name.clone()), Duration::ZERO);
            return Ok(());
        }
        self.no_such_pool(name);
        self.stopped.is(name, Held::Ledger, None);
        self.tend_slices(name, None).await?;
        // Who has slices of it lets go of what is in them first, and answers itself.
        let (reading, sliced) = {
            let index = self.known.index();
            (Reading::known(&index, name), index.slices_of(name))
        };
        let mut asked = reading.asked(name, &BTreeSet::new());
        asked.retain(|ask| !sliced.iter().any(|slice| slice.node == ask.enactment.node));
        let answers = claim::serve_without_pool(&asked);
        self.answer(&[OfPool { name, pool: None, answers: &answers }]).await
    }

    /// A pool that can't be read is there all the same: nobody is told otherwise, and the pool says so (R15).
    async fn unreadable(&self, name: &PoolName) -> Result<bool, kube::Error> {
        let found = {
            let index = self.known.index();
            let ledger = |known: &PoolKnown| {
                let why = records::pool::read(&known.object, &known.pool).err()?;
                Some((known.object.clone(), why.to_string()))
            };
            index.unreadable.get(name).cloned().or_else(|| index.pools.get(name).and_then(ledger))
        };
        let Some((object, why)) = found else { return Ok(false) };
        self.stopped.nothing(name);
        let before = object.status.clone().unwrap_or_default();
        let says = condition::unsynced(&before.conditions, &condition::timestamp(now()));
        if says != before.conditions {
            say(&format!("pool {name}: it can't be read: {why}"));
            told::unsynced(&self.events, &object, &[why]);
            if let Some(now) = ledger::say(&self.client, &object, says).await? {
                self.known.fresh_pool(now);
            }
        }
        Ok(true)
    }

    /// A pool is kept by a finalizer until whoever holds addresses of it could hear that it goes, and says, before
    /// anything is given of it, how its ledger is written (R59).
    async fn begin(&self, look: &Look) -> Result<Step, kube::Error> {
        let mut finalizers = look.known.object.finalizers().to_vec();
        if !finalizers.iter().any(|one| one == finalizer::RANGE_IN_USE) {
            finalizers.push(finalizer::RANGE_IN_USE.to_owned());
        }
        let mut annotations = json!(hints());
        annotations[SLICED] = match look.known.pool.is_sliced() {
            true => json!("true"),
            false => json!(null),
        };
        let begun = json!({"finalizers": finalizers, "annotations": annotations});
        let step = self.patch_pool(look, begun).await;
        fault::point("pool-begun");
        step
    }

    async fn ending(&self, look: &Look) -> Result<Step, kube::Error> {
        let since = deleted(&*look.known.object).unwrap_or_default();
        let over = since.saturating_add(self.settings.grace.as_secs());
        let mut finalizers = look.known.object.finalizers().to_vec();
        let before = finalizers.len();
        finalizers.retain(|one| one != finalizer::RANGE_IN_USE);
        if look.now < over && !self.is_unused(look) {
            self.later(look, over);
        } else if finalizers.len() < before {
            let step = self.patch_pool(look, json!({"finalizers": finalizers})).await;
            fault::point("pool-ended");
            return step;
        }
        // What is let go can still be let go of; of slices their nodes do that.
        if look.known.pool.is_sliced() {
            return Ok(Step::On);
        }
        self.serve(look).await
    }

    /// Whether there is nobody who could hear that this pool goes: its ledger is proven, and empty, and no enactment names it. That
    /// nobody enters meanwhile is seen to by the write, which is good for this version of the pool only. Slices are cut without a
    /// write of the pool's, so a sliced pool waits; one on hold waits for what agents assert.
    fn is_unused(&self, look: &Look) -> bool {
        let ledger = &look.ledger;
        let is_proven = !ledger.needs_rebuild() && ledger.hold.is_none();
        let is_shared = !look.known.pool.is_sliced() && look.slices.is_empty();
        let is_named = || self.known.index().by_pool.contains_key(&look.name);
        is_proven && is_shared && ledger.allocations.is_empty() && !is_named()
    }

    /// Holders before waiters: an unproven ledger is put together before anything is given of it (rule 5).
    async fn rebuild(&self, look: &Look) -> Result<Step, kube::Error> {
        if let Some(step) = self.say_reconciling(look).await? {
            return Ok(step);
        }
        let Some(reading) = self.reading_to_rebuild(look).await? else {
            return Ok(Step::On);
        };
        let uncovered = look.uncovered(&reading);
        let facts = uncovered.facts(&reading.facts(None));
        let rebuilt = claim::rebuild(&look.ledger, &look.name, &look.known.pool, &facts, look.now);
        // A new pool beside one on hold may be of the lost history (rule 6).
        let others_held = {
            let index = self.known.index();
            let held =
                |known: &PoolKnown| known.object.status.as_ref().is_some_and(|status| status.hold.is_some());
            index.pools.iter().any(|(name, known)| *name != look.name && held(known))
        };
        let fresh = look.ledger.rebuilt_for.is_none() && others_held;
        let until = look.now.saturating_add(look.known.pool.quarantine());
        let hold = if fresh { Some(Hold { until }) } else { rebuilt.ledger.hold };
        let written = Ledger { hold, reset: false, ..rebuilt.ledger };
        let put = self.put(look, &written).await?;
        fault::point("rebuilt");
        // Overtaken or refused, it is not rebuilt: who asked for that is still to be answered.
        if !matches!(put, Put::Done) {
            return Ok(put.into());
        }
        told::lost(&self.events, &look.known.object, &rebuilt.lost);
        if look.ledger.reset {
            self.patch_pool_by_name(&look.name, json!({"annotations": {RESET_POOL: null}})).await?;
        }
        Ok(Step::Again)
    }

    /// Before a pool that people know is put together anew it says so, so that they can wait for it (R13, R38). A new one has
    /// said nothing yet, and one that failed says that until it is mended.
    pub(super) async fn say_reconciling(&self, look: &Look) -> Result<Option<Step>, kube::Error> {
        match condition::reason(look.known.object.status.as_ref()) {
            None | Some(names::RECONCILING | names::UNSYNCRONIZED) => Ok(None),
            Some(_) => self.write(look, &look.ledger).await.map(Some),
        }
    }

    /// Everything afresh, for a ledger to be put together of. Where that can't be, the pool says so (R15), and it is tried
    /// again.
    pub(super) async fn reading_to_rebuild(&self, look: &Look) -> Result<Option<Reading>, kube::Error> {
        let why = match self.afresh(&look.name).await {
            Ok(Ok(reading)) => {
                self.failed.lock().unwrap_or_else(PoisonError::into_inner).remove(&look.name);
                return Ok(Some(reading));
            }
            Ok(Err(hidden)) => hidden,
            Err(error) => {
                self.unsynced(look, &[words(&error)]).await;
                return Err(error);
            }
        };
        self.unsynced(look, &why).await;
        Ok(None)
    }

    /// It can't be put together now: said, and tried again in a while, or when something changes.
    pub(super) async fn unsynced(&self, look: &Look, why: &[String]) -> Step {
        let first = {
            let mut failed = self.failed.lock().unwrap_or_else(PoisonError::into_inner);
            failed.insert(look.name.clone())
        };
        if first {
            why.iter().for_each(|what| say(&format!("pool {}: it can't be put together: {what}", look.name)));
            told::unsynced(&self.events, &look.known.object, why);
        }
        // Not said, it is said the next time.
        if let Err(error) = self.show(look).await {
            say(&format!("pool {}: {}", look.name, words(&error)));
        }
        self.known.put_off(Work::of_pool(look.name.clone()), REFUSED);
        Step::On
    }

    /// Serves all who ask. Where the API will not have what comes out, half of them, and so on until the one that it is
    /// about is alone: that one waits until it asks otherwise.
    async fn serve(&self, look: &Look) -> Result<Step, kube::Error> {
        let reading = self.asking(look);
        let mut groups = vec![reading.enactments.clone()];
        while let Some(mut group) = groups.pop() {
            match self.serve_them(look, reading.among(group.clone())).await? {
                Step::On => {}
                Step::Again => return Ok(Step::Again),
                Step::Refused(_) if group.len() > 1 => {
                    let rest = group.split_off(group.len() / 2);
                    groups.extend([rest, group]);
                }
                Step::Refused(why) => {
                    let Some(alone) = group.first() else { return Ok(Step::Refused(why)) };
                    let (node, policy) = (&alone.node, &alone.policy);
                    say(&format!(
                        "pool {}: policy {policy} on node {node} can't be served: {why}",
                        look.name
                    ));
                    self.known.index().spoil(alone.uid.as_str());
                    return Ok(Step::Again);
                }
            }
        }
        Ok(Step::On)
    }

    async fn serve_them(&self, look: &Look, mut reading: Reading) -> Result<Step, kube::Error> {
        let mut later = BTreeSet::new();
        let served = loop {
            let asked = reading.asked(&look.name, &later);
            let served = claim::serve(&look.ledger, &look.known.pool, &look.barred, &asked, look.now);
            let again: BTreeSet<String> = served
                .reread
                .iter()
                .map(|(uid, _)| uid.to_string())
                .filter(|uid| !later.contains(uid))
                .collect();
            if again.is_empty() {
                break served;
            }
            reading.replace(&again, &self.read_enactments(&again).await?);
            later.extend(again);
        };
        if self.went_back(look, &served) {
            let until = look.now.saturating_add(look.known.pool.quarantine());
            return self.write(look, &Ledger { hold: Some(Hold { until }), ..look.ledger.clone() }).await;
        }
        let step = match &served.ledger {
            Some(next) => self.write_then(look, next, &served.answers).await?,
            None => {
                self.answer(&[look.owes(&served.answers)]).await?;
                Step::On
            }
        };
        Ok(step)
    }

    /// What lost its holder is set aside, and later freed (rule 4).
    async fn tend(&self, look: &Look) -> Result<Step, kube::Error> {
        let known = Reading::known_whole(&self.known.index());
        let quarantine = look.known.pool.quarantine();
        let confirmed = word::on_pool(&look.known.object);
        let worth_it = claim::tend(&look.ledger, &known.facts(confirmed), quarantine, look.now);
        self.wait_for_quarantines(look);
        self.stopped.is(&look.name, Held::Ledger, worth_it.braked.as_ref());
        told::braked(&self.events, &look.known.object, worth_it.braked);
        self.ask_word(&worth_it.ask_word).await?;
        if worth_it.ledger.is_none() {
            return Ok(Step::On);
        }
        let Some(reading) = self.reading(look).await? else {
            return Ok(Step::On);
        };
        let tended = claim::tend(&look.ledger, &reading.facts(confirmed), quarantine, look.now);
        match tended.ledger {
            Some(next) => self.write(look, &next).await,
            None => Ok(Step::On),
        }
    }

    /// The agents of these nodes are to report anew.
    pub(super) async fn ask_word(&self, nodes: &BTreeSet<NodeName>) -> Result<(), kube::Error> {
        let states: Api<NodeNetworkState> = Api::all(self.client.clone());
        for node in nodes {
            if !self.known.ask(node) {
                continue;
            }
            let label = json!({"metadata": {"labels": {label::FORCE_STATE_REFRESH: random::id()}}});
            let asked = states.patch(node.as_str(), &PatchParams::default(), &Patch::Merge(label)).await;
            if let Err(error) = optional(asked) {
                self.known.unask(node);
                return Err(error);
            }
            fault::point("word-asked");
        }
        Ok(())
    }

    fn wait_for_quarantines(&self, look: &Look) {
        let ends = look.ledger.allocations.values().filter_map(|entry| match &entry.state {
            claim::EntryState::Held => None,
            claim::EntryState::Quarantined(quarantine) => Some(quarantine.until),
        });
        if let Some(next) = ends.filter(|until| *until > look.now).min() {
            self.later(look, next);
        }
    }

    /// Addresses that hosts hold and no range of the pool has (R66, R75, R76, R99): said, and again after a while, for as
    /// long as it is so. Nothing is done about them.
    fn remind(&self, look: &Look) {
        let holders = {
            let index = self.known.index();
            let named = index.by_pool.get(&look.name).into_iter().flatten();
            let known = named.filter_map(|name| index.enactments.get(name)).map(|known| &known.claims);
            claim::outside(&look.name, &look.known.pool, known)
        };
        let outside: Vec<IpAddr> = holders.iter().map(|(ip, _)| *ip).collect();
        let mut reminded = self.reminded.lock().unwrap_or_else(PoisonError::into_inner);
        if outside.is_empty() {
            reminded.remove(&look.name);
            return;
        }
        let is_told =
            |(told, at): &(Vec<IpAddr>, Instant)| *told == outside && at.elapsed() < self.settings.remind;
        if !reminded.get(&look.name).is_some_and(is_told) {
            told::outside(&self.events, &look.known.object, &holders);
            reminded.insert(look.name.clone(), (outside, Instant::now()));
        }
        self.known.put_off(Work::of_pool(look.name.clone()), self.settings.remind);
    }

    /// What people see of it: the condition, counts.
    pub(super) async fn show(&self, look: &Look) -> Result<Step, kube::Error> {
        let before = look.known.object.status.clone().unwrap_or_default();
        let Ok(mut status) = records::pool::status(&look.ledger, &look.known.pool, &look.barred, &before)
        else {
            return Ok(Step::On);
        };
        look.count(&look.ledger, &mut status);
        let conditions = self.condition(look, &status);
        let (drained, next) = self.drained(look);
        if let Some(next) = next {
            self.later(look, next);
        }
        let says = NodeIPPoolStatus { conditions, drained, ..status };
        if condition::same(&says, &before) || self.counts_wait(look, &says, &before) {
            return Ok(Step::On);
        }
        self.write(look, &look.ledger).await
    }

    /// Other pools that have addresses of this one, by name and UID.
    pub(super) fn overlapping(&self, look: &Look) -> BTreeSet<(PoolName, Option<String>)> {
        let index = self.known.index();
        let others = index.pools.iter().filter(|(name, _)| **name != look.name);
        let overlapping = others.filter(|(_, other)| look.known.pool.overlaps(&other.pool).is_some());
        overlapping.map(|(name, other)| (name.clone(), other.object.uid())).collect()
    }

    fn condition(&self, look: &Look, status: &NodeIPPoolStatus) -> Vec<crds::Condition> {
        let overlaps = self.overlapping(look).first().map(|(name, _)| name.to_string());
        let failed = self.failed.lock().unwrap_or_else(PoisonError::into_inner).contains(&look.name);
        let resets = self.known.index().marks.first(&look.name).is_some();
        let around = condition::Around { slices: &look.slices, failed, resets, overlaps };
        condition::of(&look.ledger, status, &around, &condition::timestamp(look.now))
    }

    pub(super) async fn write(&self, look: &Look, next: &Ledger) -> Result<Step, kube::Error> {
        Ok(self.put(look, next).await?.into())
    }

    /// The ledger, and then, never before it, the answers that follow from it.
    async fn write_then(&self, look: &Look, next: &Ledger, answers: &[Answer]) -> Result<Step, kube::Error> {
        let put = self.put(look, next).await?;
        if matches!(put, Put::Done) {
            self.answer(&[look.owes(answers)]).await?;
        }
        Ok(put.into())
    }

    pub(super) async fn put(&self, look: &Look, next: &Ledger) -> Result<Put, kube::Error> {
        let PoolKnown { object, pool } = &look.known;
        let (drained, _) = self.drained(&Look { ledger: next.clone(), ..look.clone() });
        self.tell_in_use_again(look, &drained);
        let says = |_: &NodeIPPoolStatus, status: &mut NodeIPPoolStatus| {
            look.count(next, status);
            status.conditions = self.condition(&Look { ledger: next.clone(), ..look.clone() }, status);
            status.drained = drained;
        };
        Ok(match ledger::write(&self.client, object, pool, &look.barred, next, says).await? {
            Written::Done(now) => {
                let collided = self.newly_collided(look, next);
                told::written(&self.events, [object, &now], [&look.ledger, next], &collided);
                if next.hold != look.ledger.hold {
                    self.meet(next);
                }
                self.known.fresh_pool(*now);
                Put::Done
            }
            Written::Overtaken(Some(now)) => {
                self.known.fresh_pool(*now);
                Put::Overtaken
            }
            Written::Overtaken(None) => {
                self.known.pool(&crate::api::Change::Gone(object.clone()));
                Put::Gone
            }
            Written::Refused(why) => Put::Refused(why),
        })
    }

    async fn answer(&self, owed: &[OfPool<'_>]) -> Result<(), kube::Error> {
        let asked: BTreeSet<&str> =
            owed.iter().flat_map(|of| of.answers).map(|answer| answer.enactment.as_str()).collect();
        if asked.is_empty() {
            return Ok(());
        }
        let objects: BTreeMap<String, Arc<NodeNetworkConfigurationEnactment>> = {
            let index = self.known.index();
            let known = index.enactments.values().filter(|known| asked.contains(known.claims.uid.as_str()));
            known.map(|known| (known.claims.uid.to_string(), known.object.clone())).collect()
        };
        let object_of = |uid: &str| objects.get(uid).map(|object| &**object);
        let mut failed = None;
        for landed in answers::write(&self.client, owed, object_of).await {
            match landed {
                Landed::Done(now) => self.known.fresh_enactment(*now),
                // It may still ask the same.
                Landed::Dropped(Some(now)) => {
                    self.known.fresh_enactment(*now);
                    for of in owed {
                        self.known.put_off(Work::of_pool(of.name.clone()), AGAIN);
                    }
                }
                Landed::Dropped(None) => {}
                Landed::Refused(enactment, why) => {
                    say(&format!("enactment {enactment}: its answer is refused: {}", words(&why)));
                }
                Landed::Failed(error) => failed = Some(error),
            }
        }
        failed.map_or(Ok(()), Err)
    }

    async fn read_pool(&self, name: &PoolName) -> Result<(), kube::Error> {
        let pools: Api<NodeIPPool> = Api::all(self.client.clone());
        if let Some(object) = list::one(&pools, name.as_str()).await? {
            self.known.fresh_pool(object);
        }
        Ok(())
    }

    async fn read_enactments(
        &self,
        uids: &BTreeSet<String>,
    ) -> Result<Vec<Arc<NodeNetworkConfigurationEnactment>>, kube::Error> {
        let names: Vec<String> = {
            let index = self.known.index();
            let wanted =
                index.enactments.iter().filter(|(_, known)| uids.contains(known.claims.uid.as_str()));
            wanted.map(|(name, _)| name.clone()).collect()
        };
        let api: Api<NodeNetworkConfigurationEnactment> = Api::all(self.client.clone());
        let mut read = Vec::new();
        for name in names {
            read.extend(optional(api.get(&name).await)?.map(Arc::new));
        }
        Ok(read)
    }

    /// Everything afresh; nothing, and saying so, where something can't be read.
    pub(super) async fn reading(&self, look: &Look) -> Result<Option<Reading>, kube::Error> {
        let read = self.afresh(&look.name).await?;
        for what in read.as_ref().err().into_iter().flatten() {
            say(&format!("pool {}: nothing is taken or rebuilt: {what}", look.name));
        }
        Ok(read.ok())
    }

    /// Everything afresh; or what can't be read and may be about this pool.
    pub(super) async fn afresh(&self, pool: &PoolName) -> Result<Result<Reading, Vec<String>>, kube::Error> {
        let (witnessed, quarantine) = {
            let index = self.known.index();
            (index.witnessed.clone(), index.longest_quarantine())
        };
        let mut reading = Reading::fresh(&self.client, witnessed).await?;
        reading.unreadable.retain(|one| !one.is_over(quarantine, now()));
        let hidden = reading.hidden(pool);
        Ok(if hidden.is_empty() { Ok(reading) } else { Err(hidden) })
    }

    pub(super) async fn patch_pool(
        &self,
        look: &Look,
        metadata: serde_json::Value,
    ) -> Result<Step, kube::Error> {
        let mut metadata = metadata;
        metadata["resourceVersion"] = json!(look.known.object.resource_version());
        self.patch_pool_by_name(&look.name, metadata).await
    }

    async fn patch_pool_by_name(
        &self,
        name: &PoolName,
        metadata: serde_json::Value,
    ) -> Result<Step, kube::Error> {
        let pools: Api<NodeIPPool> = Api::all(self.client.clone());
        let patch = Patch::Merge(json!({"metadata": metadata}));
        match pools.patch(name.as_str(), &PatchParams::default(), &patch).await {
            // With its last finalizer it is gone.
            Ok(now) if now.metadata.deletion_timestamp.is_some() && now.finalizers().is_empty() => {
                self.known.gone_pool(&now);
                Ok(Step::Again)
            }
            Ok(now) => {
                self.known.fresh_pool(now);
                Ok(Step::Again)
            }
            Err(error) => match trouble(&error) {
                Trouble::NotFound => Ok(Step::On),
                Trouble::Conflict => {
                    self.read_pool(name).await?;
                    Ok(Step::Again)
                }
                _ => Err(error),
            },
        }
    }

    pub(super) fn later(&self, look: &Look, at: Time) {
        let wait = Duration::from_secs(at.saturating_sub(look.now).max(1));
        self.known.put_off(Work::of_pool(look.name.clone()), wait);
    }
}

fn is_begun(pool: &NodeIPPool) -> bool {
    let annotations = pool.annotations();
    let spec = &pool.spec;
    let mut ranges = spec.range.iter().chain(spec.ranges.iter().map(|range| &range.range));
    annotations.contains_key(SLICED) == ranges.any(|range| range.per_node_host_bits.is_some())
        && pool.finalizers().iter().any(|one| one == finalizer::RANGE_IN_USE)
        && hints().keys().all(|hint| annotations.contains_key(hint))
}

impl Look {
    /// What belongs into the pool's own ledger: of a sliced pool, what no slice of its holder's covers.
    pub(super) fn uncovered(&self, reading: &Reading) -> Uncovered {
        let slices: &[NodeSlice] = if self.known.pool.is_sliced() { &self.slices } else { &[] };
        Uncovered::of(&self.name, slices, &reading.facts(None))
    }

    /// The counts of a sliced pool are its slices'.
    fn count(&self, ledger: &Ledger, status: &mut NodeIPPoolStatus) {
        if self.known.pool.is_sliced() {
            records::pool::count_slices(status, ledger, &self.known.pool, &self.barred, &self.slices);
        }
    }

    fn owes<'a>(&'a self, answers: &'a [Answer]) -> OfPool<'a> {
        OfPool { name: &self.name, pool: Some(&self.known.pool), answers }
    }
}
