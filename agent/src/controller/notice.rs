//! Ranges that a pool got after its ledger was proven (rules 5 and 11): what hosts have on their cards there is set aside for
//! them before anything is given, as a rebuild would. Their agents are asked for their word then, and claim what their policies
//! name.
//!
//! Called by a pool's look, once for each generation of its spec that this controller meets. Never here: giving. Cost: of the
//! specs that it meets first nothing, where what is known shows nothing of the kind; of each edit three lists.

use std::sync::PoisonError;

use kube::ResourceExt;
use policy::claim::{self, Ledger};

use super::Lead;
use super::pools::{Look, Step};
use super::reading::Reading;

/// Which pool, and which of its specs.
pub(super) type Version = (Option<String>, Option<i64>);

impl Lead {
    /// Was this spec of the pool looked at?
    pub(super) fn is_noticed(&self, look: &Look) -> bool {
        self.noticed(look).as_ref() == Some(&version(look))
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
        let is_edited = self.noticed(look).is_some_and(|(uid, _)| uid == look.known.object.uid());
        let known = Reading::known_whole(&self.known.index());
        if is_edited || shown(&known).is_some() {
            let Some(reading) = self.reading(look).await? else { return Ok(Step::On) };
            if let Some(next) = shown(&reading) {
                return self.write(look, &next).await;
            }
        }
        let mut noticed = self.noticed.lock().unwrap_or_else(PoisonError::into_inner);
        noticed.insert(look.name.clone(), version(look));
        Ok(Step::On)
    }

    fn noticed(&self, look: &Look) -> Option<Version> {
        self.noticed.lock().unwrap_or_else(PoisonError::into_inner).get(&look.name).cloned()
    }
}

fn version(look: &Look) -> Version {
    (look.known.object.uid(), look.known.object.metadata.generation)
}
