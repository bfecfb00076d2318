//! The moves of the two controllers: the lead, which reads afresh, and the rival, which acts on an old copy.
//!
//! Nothing tells hosts apart but their names, and those may sort either way: where the order in which a list
//! comes back could matter, each order is a move of its own.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;
use std::sync::LazyLock;

use policy::claim::{self, Asked, Enactment, Facts, Guard, Hold, HostState, Ledger, NodeUid, PoolName, Time};
use policy::pool::Barred;

use crate::model::config::{Config, QUARANTINE};
use crate::model::fault::Breach;
use crate::model::store::Store;
use crate::model::world::{Rival, World};

impl World {
    /// The up-to-date controller does the first thing there is to do.
    pub(in crate::model) fn lead(&mut self, order: usize, config: &Config) -> bool {
        self.collect_garbage() || self.lead_ledger(order, config) || self.finish_enactments()
    }

    fn lead_ledger(&mut self, order: usize, config: &Config) -> bool {
        let store = Rc::clone(&self.store);
        let read = Read::of(&store, order, config);
        let asks = read.asked(true);
        let Some(ledger) = store.ledger() else {
            let answers = claim::serve_without_pool(&asks);
            return self.land(&answers, config);
        };
        if let Some(next) = self.meets_hold(ledger).or_else(|| read.maintain(ledger, config, self.now)) {
            self.write_ledger(next);
            return true;
        }
        if read.resets_are_done(ledger, config, self.now) {
            let store = self.store_mut();
            store.reset_policy = false;
            store.reset_nodes.clear();
            return true;
        }
        let served =
            claim::serve(ledger, config.pool(self.store.first()), &Barred::default(), &asks, self.now);
        if served.went_back {
            let hold = Some(Hold { until: self.now + QUARANTINE });
            self.met = true;
            self.write_ledger(Ledger { hold, ..ledger.clone() });
            return true;
        }
        let wrote = served.ledger.is_some();
        if let Some(next) = served.ledger {
            self.write_ledger(next);
        }
        if self.land(&served.answers, config) || wrote {
            return true;
        }
        self.lead_tends(&read, ledger, config)
    }

    /// Whoever leads counts a hold from when they met it.
    fn meets_hold(&mut self, ledger: &Ledger) -> Option<Ledger> {
        let hold = ledger.hold.filter(|_| !self.met)?;
        self.met = true;
        Some(Ledger { hold: Some(claim::meet(hold, QUARANTINE, self.now)), ..ledger.clone() })
    }

    fn lead_tends(&mut self, read: &Read<'_>, ledger: &Ledger, config: &Config) -> bool {
        let tended = read.tend(ledger, config, self.now);
        let unasked = |node: &_| self.store.nodes.contains_key(node) && !self.store.refresh.contains(node);
        let ask_anew: BTreeSet<_> = tended.ask_word.into_iter().filter(unasked).collect();
        let asked = !ask_anew.is_empty();
        if asked {
            self.store_mut().refresh.extend(ask_anew);
        }
        let wrote = tended.ledger.is_some();
        if let Some(next) = tended.ledger {
            self.write_ledger(next);
        }
        wrote || asked
    }

    /// What Kubernetes does by itself: objects whose owner is gone are deleted; finalizers hold enactments.
    fn collect_garbage(&mut self) -> bool {
        let store = &self.store;
        let orphaned = store.states.values().any(|state| !store.is_live(&state.node, &state.node_uid));
        let enactments = || store.enactments.values().flat_map(|by_policy| by_policy.values());
        let vanished =
            enactments().any(|own| own.deleting.is_none() && !store.is_live(&own.node, &own.node_uid));
        let pointless = store.refresh.iter().any(|node| !store.nodes.contains_key(node));
        if !orphaned && !vanished && !pointless {
            return false;
        }
        let now = self.now;
        let Store { nodes, enactments, states, refresh, .. } = self.store_mut();
        states.retain(|node, state| nodes.get(node) == Some(&state.node_uid));
        for own in enactments.values_mut().flat_map(|by_policy| Rc::make_mut(by_policy).values_mut()) {
            if nodes.get(&own.node) != Some(&own.node_uid) {
                own.deleting.get_or_insert(now);
            }
        }
        refresh.retain(|node| nodes.contains_key(node));
        orphaned || vanished
    }

    fn finish_enactments(&mut self) -> bool {
        let (store, now) = (&self.store, self.now);
        let finished = |own: &Enactment| {
            !store.is_live(&own.node, &own.node_uid)
                && claim::may_finish(own, |_: &PoolName| store.ledger(), QUARANTINE, now)
        };
        let done: Vec<NodeUid> =
            store.enactments().filter(|own| finished(own)).map(|own| own.node_uid.clone()).collect();
        !done.is_empty() && self.store_mut().remove_enactments(|own| done.contains(&own.node_uid))
    }

    /// Could the order in which a controller that looks at `seen` meets the hosts matter? Where at most one
    /// of them wants something, and no ledger is being put together, it can't.
    pub(in crate::model) fn order_matters(&self, seen: &Store) -> bool {
        let Some(ledger) = self.store.ledger() else {
            return false;
        };
        if seen.enactments.len() < 2 {
            return false;
        }
        let served = |request: &claim::Request| {
            request.want && request.declined.is_empty() && ledger.held_by(&request.id).next().is_some()
        };
        let restless =
            |own: &Enactment| !own.slots.values().filter_map(|slot| slot.request.as_ref()).all(served);
        let enactments = seen.enactments();
        let put_together = ledger.hold.is_some() || ledger.needs_rebuild() || seen.resets().next().is_some();
        put_together || enactments.filter(|own| restless(own)).count() > 1
    }

    /// Takes a copy of everything, to act on later. Only copies that lead to something are worth keeping.
    pub(in crate::model) fn rival_peeks(&mut self, config: &Config) -> bool {
        let Some(ledger) = self.store.ledger() else {
            return false;
        };
        let read = Read::of(&self.store, 0, config);
        let asks = read.asked(false);
        let served =
            claim::serve(ledger, config.pool(self.store.first()), &Barred::default(), &asks, self.now);
        let serves = served.ledger.is_some() || !served.answers.is_empty();
        let useful = serves
            || read.maintain(ledger, config, self.now).is_some()
            || read.tend(ledger, config, self.now).ledger.is_some();
        if useful {
            self.peeks -= 1;
            self.rival = Rival { cache: Some(Rc::clone(&self.store)), pending: Vec::new() };
        }
        useful
    }

    /// Serves what its old copy shows from the pool as it is now; the answers wait.
    pub(in crate::model) fn rival_serves(&mut self, order: usize, config: &Config) -> bool {
        let (Some(cache), Some(ledger)) = (&self.rival.cache, self.store.ledger()) else {
            return false;
        };
        let read = Read::of(cache, order, config);
        let asks = read.asked(config.breach == Some(Breach::RekeyedFromCache));
        let served =
            claim::serve(ledger, config.pool(self.store.first()), &Barred::default(), &asks, self.now);
        if served.ledger.is_none() && served.answers.is_empty() {
            return false;
        }
        self.rival = Rival { cache: None, pending: served.answers };
        if let Some(next) = served.ledger {
            self.write_ledger(next);
        }
        true
    }

    /// Takes back, rebuilds or lifts a hold by its old copy: the write goes through only if the pool is
    /// still the one it read.
    pub(in crate::model) fn rival_tends(&mut self, order: usize, config: &Config) -> bool {
        let Some(cache) = self.rival.cache.take() else {
            return false;
        };
        let (Some(then), Some(current)) = (&cache.pool, &self.store.pool) else {
            return false;
        };
        let same_version = then.version == current.version || self.restored;
        if !same_version || !guarded(&then.ledger, &current.ledger, config) {
            return false;
        }
        let read = Read::of(&cache, order, config);
        let met = self.meets_hold(&then.ledger);
        let maintained = met.or_else(|| read.maintain(&then.ledger, config, self.now));
        let Some(next) = maintained.or_else(|| read.tend(&then.ledger, config, self.now).ledger) else {
            return false;
        };
        self.write_ledger(next);
        true
    }

    /// Serves by its old copy alone. Before a restore that is what [`Self::rival_serves`] does, or its guard
    /// fails; after one, resourceVersions may have come to the same value again.
    pub(in crate::model) fn rival_overwrites(&mut self, order: usize, config: &Config) -> bool {
        let Some(cache) = self.rival.cache.take() else {
            return false;
        };
        let (Some(then), Some(current)) = (cache.ledger(), self.store.ledger()) else {
            return false;
        };
        if !guarded(then, current, config) {
            return false;
        }
        let asks = Read::of(&cache, order, config).asked(false);
        let served = claim::serve(then, config.pool(cache.first()), &Barred::default(), &asks, self.now);
        let Some(next) = served.ledger else {
            return false;
        };
        self.rival.pending = served.answers;
        self.write_ledger(next);
        true
    }

    pub(in crate::model) fn rival_answers(&mut self, index: usize, config: &Config) -> bool {
        let answer = self.rival.pending.remove(index);
        self.land(&[answer], config);
        true
    }

    /// Writes answers where they still fit.
    pub(in crate::model) fn land(&mut self, answers: &[claim::Answer], config: &Config) -> bool {
        let fits = |answer: &claim::Answer, own: &Enactment| {
            if config.breach != Some(Breach::AnswersUnguarded) {
                return answer.fits(own);
            }
            let replaces = own.slots.get(&answer.key).and_then(|slot| slot.grant.clone());
            claim::Answer { replaces, ..answer.clone() }.fits(own)
        };
        let mut landed = false;
        for answer in answers {
            let enactments = self.store.enactments();
            let target = enactments.into_iter().find(|own| fits(answer, own)).map(|own| own.node.clone());
            let enactment = target.and_then(|node| self.store_mut().enactment_mut(&node));
            if let Some(slot) = enactment.and_then(|own| own.slots.get_mut(&answer.key)) {
                answer.write(slot);
                landed = true;
            }
        }
        landed
    }
}

/// Does a ledger write that was computed from `then` go through?
fn guarded(then: &Ledger, now: &Ledger, config: &Config) -> bool {
    let sequence = match config.breach {
        Some(Breach::SequenceUntested) => now.sequence,
        _ => then.sequence,
    };
    Guard { sequence, ..then.guard() } == now.guard()
}

/// The one pool.
static NAME: LazyLock<PoolName> = LazyLock::new(|| PoolName::from("pool"));

/// What a controller read of a store, hosts in some order.
struct Read<'a> {
    store: &'a Store,
    enactments: Vec<&'a Enactment>,
    states: Vec<Cow<'a, HostState>>,
    witnessed: BTreeSet<NodeUid>,
}

impl<'a> Read<'a> {
    fn of(store: &'a Store, order: usize, config: &'a Config) -> Self {
        let names = || config.orders[order].iter().map(|host| &config.names[*host]);
        let mut states: Vec<Cow<'_, HostState>> =
            names().filter_map(|name| store.states.get(name)).map(Cow::Borrowed).collect();
        if config.breach == Some(Breach::FreedWithoutWord) {
            let recorded = format!("{:?}", store.ledger());
            let stamp = if recorded.contains("invented") { "made-up" } else { "invented" };
            for state in &mut states {
                state.to_mut().shows.clear();
                state.to_mut().stamp = stamp.into();
            }
        }
        let enactments = names().filter_map(|name| store.enactment(name)).collect();
        Self { store, enactments, states, witnessed: BTreeSet::new() }
    }

    fn facts(&self) -> Facts<'_> {
        Facts {
            nodes: &self.store.nodes,
            enactments: self.enactments.clone(),
            states: self.states.iter().map(|state| &**state).collect(),
            witnessed: &self.witnessed,
            confirmed: None,
        }
    }

    fn asked(&self, fresh: bool) -> Vec<Asked<'a>> {
        static NO_LABELS: BTreeMap<String, String> = BTreeMap::new();
        let slots = self.enactments.iter().flat_map(|own| own.slots.keys().map(move |key| (*own, key)));
        slots
            .map(|(enactment, key)| Asked {
                enactment,
                key,
                labels: &NO_LABELS,
                live: self.store.is_live(&enactment.node, &enactment.node_uid),
                ready: true,
                fresh,
            })
            .collect()
    }

    /// Hold and rebuild come before everything else; then resets of a part.
    fn maintain(&self, ledger: &Ledger, config: &Config, now: Time) -> Option<Ledger> {
        let pool = config.pool(self.store.first());
        if ledger.hold.is_some() {
            return claim::reassert(ledger, &NAME, pool, &self.facts(), now);
        }
        if !ledger.needs_rebuild() {
            let mut resets = self.resets(ledger, config, now).flatten();
            return resets.find(|next| next != ledger);
        }
        let rebuilt = claim::rebuild(ledger, &NAME, pool, &self.facts(), now).ledger;
        Some(Ledger { reset: false, ..rebuilt })
    }

    /// What each reset that is asked for comes to; none, where it can't be done now.
    fn resets(&self, ledger: &Ledger, config: &Config, now: Time) -> impl Iterator<Item = Option<Ledger>> {
        let pool = config.pool(self.store.first());
        let reset = move |scope| claim::reset(ledger, &NAME, pool, &self.facts(), &scope, now);
        self.store.resets().map(move |scope| reset(scope).map(|rebuilt| rebuilt.ledger))
    }

    /// Was something asked for, and is all of it as it should be?
    fn resets_are_done(&self, ledger: &Ledger, config: &Config, now: Time) -> bool {
        let asked = self.store.reset_policy || !self.store.reset_nodes.is_empty();
        asked && self.resets(ledger, config, now).all(|next| next.as_ref() == Some(ledger))
    }

    fn tend(&self, ledger: &Ledger, config: &Config, now: Time) -> claim::Tended {
        let quarantine = if config.breach == Some(Breach::NoQuarantine) { 0 } else { QUARANTINE };
        claim::tend(ledger, &self.facts(), quarantine, now)
    }
}
