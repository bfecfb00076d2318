//! Pools on hold (rule 6): nothing is given while hosts say again what they hold.
//!
//! A hold that a person asks for lasts until that person takes the word back, and one quarantine at least. One that `berth serve
//! restore` leaves ends by itself after that quarantine, counted from the first look of a controller: whoever restores at night
//! has enough to think of, and a pool that gives nothing is found in the morning. First the slices' words go, then the pool's,
//! and then the hold ends as any other does, so that cut off in between it goes on where it was. Cost: nothing where there is no
//! hold; where a leader meets one that another began, a write; where one ends, a write for each slice that a restore put on hold.
//!
//! A leader counts a hold from when it met it, whatever its end is said to be: a store that came out of a backup may have one in it
//! whose time was over before the store went back, and nobody was heard in it.

use std::sync::PoisonError;

use crds::names::annotation::{HOLD, RESTORED};
use kube::ResourceExt;
use policy::claim::{self, Hold, Ledger};
use serde_json::json;

use super::Lead;
use super::pools::{Look, Step};
use crate::api::slices;

impl Lead {
    /// On hold: who holds what is asserted, nothing is given.
    pub(super) async fn held(&self, look: &Look) -> Result<Step, kube::Error> {
        let asked = look.known.object.annotations().get(HOLD);
        let begun = look.known.object.status.as_ref().is_some_and(|status| status.hold.is_some());
        if !begun {
            let until = look.now.saturating_add(look.known.pool.quarantine());
            return self.write(look, &Ledger { hold: Some(Hold { until }), ..look.ledger.clone() }).await;
        }
        let Some(hold) = look.ledger.hold else { return Ok(Step::On) };
        if !self.has_met(look) {
            let hold = claim::meet(hold, look.known.pool.quarantine(), look.now);
            if Some(hold) != look.ledger.hold {
                return self.write(look, &Ledger { hold: Some(hold), ..look.ledger.clone() }).await;
            }
            self.meet(&look.ledger);
        }
        let until = hold.until;
        let restored = asked.is_some_and(|why| why == RESTORED);
        if restored && look.now >= until {
            self.resume_slices(look).await?;
            return self.patch_pool(look, json!({"annotations": {HOLD: null}})).await;
        }
        let Some(reading) = self.reading(look).await? else {
            return Ok(Step::On);
        };
        // While somebody asks for it, it lasts.
        let at = if asked.is_some() { look.now.min(until.saturating_sub(1)) } else { look.now };
        let uncovered = look.uncovered(&reading);
        let facts = uncovered.facts(&reading.facts(None));
        match claim::reassert(&look.ledger, &look.name, &look.known.pool, &facts, at) {
            Some(next) => self.write(look, &next).await,
            None => {
                if asked.is_none() || restored {
                    self.later(look, until.max(look.now + 1));
                }
                self.show(look).await
            }
        }
    }

    fn has_met(&self, look: &Look) -> bool {
        self.met.lock().unwrap_or_else(PoisonError::into_inner).contains(&look.ledger.pool)
    }

    /// This ledger was written, or read: a hold that it has is known from now on, and one that was is forgotten.
    pub(super) fn meet(&self, ledger: &Ledger) {
        let mut met = self.met.lock().unwrap_or_else(PoisonError::into_inner);
        match ledger.hold {
            Some(_) => drop(met.insert(ledger.pool.clone())),
            None => drop(met.remove(&ledger.pool)),
        }
    }

    /// Slices that a restore put on hold give again with their pool; those that a person did don't. Also those whose pool was not
    /// in the backup, once there is one.
    pub(super) async fn resume_slices(&self, look: &Look) -> Result<(), kube::Error> {
        for slice in look.slices.iter().filter(|slice| slice.ledger.hold.is_some()) {
            let object = {
                let index = self.known.index();
                let known = index.slices.get(&look.name).and_then(|slices| slices.get(&slice.name));
                known.map(|known| known.object.clone())
            };
            let restored =
                object.filter(|object| object.annotations().get(HOLD).is_some_and(|why| why == RESTORED));
            if let Some(object) = restored
                && let Some(now) = slices::take_off(&self.client, &object, HOLD).await?
            {
                self.known.slice(&crate::api::Change::Put(now.into()));
            }
        }
        Ok(())
    }
}
