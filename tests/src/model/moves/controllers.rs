//! The moves of the two controllers: the lead, which reads afresh, and the rival, which acts on an old copy.

use std::collections::{BTreeMap, BTreeSet};

use policy::claim::{self, Asked, Enactment, Facts, Hold, HostState, Ledger, NodeName, PoolName, Time};
use policy::pool::Barred;

use crate::model::fault::Breach;
use crate::model::store::Store;
use crate::model::world::{Config, QUARANTINE, Rival, World, claim_key};

impl World {
    /// The up-to-date controller does the first thing there is to do.
    pub(in crate::model) fn lead(&mut self, config: &Config) -> bool {
        self.collect_garbage() || self.lead_ledger(config) || self.finish_enactments()
    }

    pub(in crate::model) fn lead_ledger(&mut self, config: &Config) -> bool {
        let enactments = self.enactments_read();
        let Some(ledger) = self.store.ledger().cloned() else {
            let answers = claim::serve_without_pool(&asked(&self.store, &enactments, true));
            return self.land(&answers);
        };
        if let Some(next) = maintain(&ledger, &self.store, config, self.now) {
            self.write_ledger(next);
            return true;
        }
        let asks = asked(&self.store, &enactments, true);
        let served = claim::serve(&ledger, &config.pool, &Barred::default(), &asks, self.now);
        if served.went_back {
            let hold = Some(Hold {
                until: self.now + QUARANTINE,
            });
            self.write_ledger(Ledger { hold, ..ledger });
            return true;
        }
        let wrote = served.ledger.is_some();
        if let Some(next) = served.ledger {
            self.write_ledger(next);
        }
        if self.land(&served.answers) || wrote {
            return true;
        }
        let tended = tend(&ledger, &self.store, config, self.now);
        let asked_anew = tended
            .ask_word
            .iter()
            .filter(|node| self.store.nodes.contains_key(*node))
            .cloned();
        let before = self.store.refresh.len();
        self.store.refresh.extend(asked_anew);
        let asked_more = self.store.refresh.len() > before;
        if let Some(next) = tended.ledger {
            self.write_ledger(next);
            return true;
        }
        asked_more
    }

    /// What Kubernetes does by itself: objects whose owner is gone are deleted; finalizers hold enactments.
    pub(in crate::model) fn collect_garbage(&mut self) -> bool {
        let nodes = self.store.nodes.clone();
        let gone = |node: &NodeName, uid: &claim::NodeUid| nodes.get(node) != Some(uid);
        let before = self.store.states.len();
        self.store
            .states
            .retain(|node, state| !gone(node, &state.node_uid));
        let mut changed = before != self.store.states.len();
        for (node, enactment) in &mut self.store.enactments {
            if gone(node, &enactment.node_uid) && enactment.deleting.is_none() {
                enactment.deleting = Some(self.now);
                changed = true;
            }
        }
        self.store.refresh.retain(|node| nodes.contains_key(node));
        changed
    }

    pub(in crate::model) fn finish_enactments(&mut self) -> bool {
        let ledger = self.store.ledger().cloned();
        let before = self.store.enactments.len();
        let (nodes, now) = (self.store.nodes.clone(), self.now);
        self.store.enactments.retain(|node, enactment| {
            nodes.get(node) == Some(&enactment.node_uid)
                || !claim::may_finish(enactment, |_: &PoolName| ledger.as_ref(), QUARANTINE, now)
        });
        before != self.store.enactments.len()
    }

    /// Takes a copy of everything, to act on later. Only copies that lead to something are worth keeping.
    pub(in crate::model) fn rival_peeks(&mut self, config: &Config) -> bool {
        let enactments = self.enactments_read();
        let Some(ledger) = self.store.ledger() else {
            return false;
        };
        let asks = asked(&self.store, &enactments, false);
        let served = claim::serve(ledger, &config.pool, &Barred::default(), &asks, self.now);
        let serves = served.ledger.is_some() || !served.answers.is_empty();
        let maintains = maintain(ledger, &self.store, config, self.now).is_some();
        let tends = tend(ledger, &self.store, config, self.now).ledger.is_some();
        if !serves && !maintains && !tends {
            return false;
        }
        self.peeks -= 1;
        self.rival = Rival {
            cache: Some(Box::new(self.store.clone())),
            pending: Vec::new(),
        };
        true
    }

    /// Serves what its old copy shows from the pool as it is now; the answers wait.
    pub(in crate::model) fn rival_serves(&mut self, config: &Config) -> bool {
        let (Some(cache), Some(ledger)) = (&self.rival.cache, self.store.ledger()) else {
            return false;
        };
        let enactments: Vec<Enactment> = cache.enactments.values().cloned().collect();
        let asks = asked(cache, &enactments, false);
        let served = claim::serve(ledger, &config.pool, &Barred::default(), &asks, self.now);
        if served.ledger.is_none() && served.answers.is_empty() {
            return false;
        }
        self.rival = Rival {
            cache: None,
            pending: served.answers,
        };
        if let Some(next) = served.ledger {
            self.write_ledger(next);
        }
        true
    }

    /// Takes back, rebuilds or lifts a hold by its old copy: the write goes through only if the pool is
    /// still the one it read.
    pub(in crate::model) fn rival_tends(&mut self, config: &Config) -> bool {
        let Some(cache) = self.rival.cache.take() else {
            return false;
        };
        let (Some(read), Some(current)) = (&cache.pool, &self.store.pool) else {
            return false;
        };
        let same_version = read.version == current.version || self.restored;
        if !same_version || read.ledger.guard() != current.ledger.guard() {
            return false;
        }
        let maintained = maintain(&read.ledger, &cache, config, self.now);
        let Some(next) = maintained.or_else(|| tend(&read.ledger, &cache, config, self.now).ledger) else {
            return false;
        };
        self.write_ledger(next);
        true
    }

    pub(in crate::model) fn rival_answers(&mut self, index: usize) -> bool {
        let answer = self.rival.pending.remove(index);
        self.land(&[answer]);
        true
    }

    /// Writes answers where they still fit.
    pub(in crate::model) fn land(&mut self, answers: &[claim::Answer]) -> bool {
        let mut landed = false;
        for answer in answers {
            let target = self
                .store
                .enactments
                .values_mut()
                .find(|enactment| answer.fits(enactment));
            if let Some(slot) = target.and_then(|enactment| enactment.slots.get_mut(&answer.key)) {
                answer.write(slot);
                landed = true;
            }
        }
        landed
    }

    pub(in crate::model) fn enactments_read(&self) -> Vec<Enactment> {
        self.store.enactments.values().cloned().collect()
    }
}

fn asked<'a>(store: &Store, enactments: &'a [Enactment], fresh: bool) -> Vec<Asked<'a>> {
    static NO_LABELS: BTreeMap<String, String> = BTreeMap::new();
    enactments
        .iter()
        .flat_map(|enactment| enactment.slots.keys().map(move |key| (enactment, key)))
        .map(|(enactment, key)| Asked {
            enactment,
            key,
            labels: &NO_LABELS,
            live: store.is_live(&enactment.node, &enactment.node_uid),
            ready: true,
            fresh,
        })
        .collect()
}

/// Hold and rebuild come before everything else.
fn maintain(ledger: &Ledger, store: &Store, config: &Config, now: Time) -> Option<Ledger> {
    let read = Read::of(store, config);
    let name = claim_key().pool;
    if ledger.hold.is_some() {
        return claim::reassert(ledger, &name, &config.pool, &read.facts(store), now);
    }
    if !ledger.needs_rebuild() {
        return None;
    }
    let rebuilt = claim::rebuild(ledger, &name, &config.pool, &read.facts(store), now).ledger;
    Some(Ledger {
        reset: false,
        ..rebuilt
    })
}

fn tend(ledger: &Ledger, store: &Store, config: &Config, now: Time) -> claim::Tended {
    claim::tend(ledger, &Read::of(store, config).facts(store), QUARANTINE, now)
}

/// What a controller read of the store.
struct Read {
    enactments: Vec<Enactment>,
    states: Vec<HostState>,
    witnessed: BTreeSet<claim::NodeUid>,
}

impl Read {
    fn of(store: &Store, config: &Config) -> Self {
        let mut states: Vec<HostState> = store.states.values().cloned().collect();
        if config.breach == Some(Breach::FreedWithoutWord) {
            let recorded = format!("{:?}", store.ledger());
            let stamp = if recorded.contains("invented") {
                "made-up"
            } else {
                "invented"
            };
            for state in &mut states {
                state.shows.clear();
                state.stamp = stamp.into();
            }
        }
        Self {
            enactments: store.enactments.values().cloned().collect(),
            states,
            witnessed: BTreeSet::new(),
        }
    }

    fn facts<'a>(&'a self, store: &'a Store) -> Facts<'a> {
        Facts {
            nodes: &store.nodes,
            enactments: &self.enactments,
            states: &self.states,
            witnessed: &self.witnessed,
            confirmed: None,
        }
    }
}
