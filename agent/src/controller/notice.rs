//! Ranges that a pool got after its ledger was proven (rules 5 and 11): what hosts have on their cards there is set aside for
//! them before anything is given, as a rebuild would. Their agents are asked for their word then, and claim what their policies
//! name.
//!
//! The same when another pool that had some of its addresses too has them no more: what that one gave meanwhile is not in this ledger.
//!
//! Called by a pool's look, once for each generation of its spec that this controller meets, and each set of pools that overlap with
//! it. Never here: giving. Cost: of what it meets first nothing, where what is known shows nothing of the kind; of each change three
//! lists.

use std::collections::BTreeSet;
use std::sync::PoisonError;

use kube::ResourceExt;
use policy::claim::{self, Ledger, PoolName};

use super::Lead;
use super::pools::{Look, Step};
use super::reading::Reading;

/// Which pool, which of its specs, and beside which others.
#[derive(Clone, PartialEq, Eq)]
pub(super) struct Version {
    uid: Option<String>,
    generation: Option<i64>,
    /// By name and UID: one that was made anew had time to give before it went.
    overlaps: BTreeSet<(PoolName, Option<String>)>,
}

impl Lead {
    /// Was this spec of the pool looked at?
    pub(super) fn is_noticed(&self, look: &Look) -> bool {
        self.noticed(look).as_ref() == Some(&self.version(look))
    }

    pub(super) async fn notice(&self, look: &Look) -> Result<Step, kube::Error> {
        if self.is_noticed(look) {
            return Ok(Step::On);
        }
        let shown = |reading: &Reading| -> Option<Ledger> {
            let uncovered = look.uncovered(reading);
            let facts = uncovered.facts(&reading.facts(None));
            claim::notice(&look.ledger, &look.known.pool, &facts, look.now)
        };
        // A report may be known later than an edit that came after it: then all is read.
        let is_edited = self.noticed(look).is_some_and(|before| before.uid == look.known.object.uid());
        let known = Reading::known_whole(&self.known.index());
        if is_edited || shown(&known).is_some() {
            let Some(reading) = self.reading(look).await? else { return Ok(Step::On) };
            if let Some(next) = shown(&reading) {
                return self.write(look, &next).await;
            }
        }
        let version = self.version(look);
        let mut noticed = self.noticed.lock().unwrap_or_else(PoisonError::into_inner);
        noticed.insert(look.name.clone(), version);
        Ok(Step::On)
    }

    fn noticed(&self, look: &Look) -> Option<Version> {
        self.noticed.lock().unwrap_or_else(PoisonError::into_inner).get(&look.name).cloned()
    }

    fn version(&self, look: &Look) -> Version {
        let object = &look.known.object;
        let overlaps = self.overlapping(look);
        Version { uid: object.uid(), generation: object.metadata.generation, overlaps }
    }
}
