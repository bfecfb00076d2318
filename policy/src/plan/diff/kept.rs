//! What documents have no words for: given back where the kernel took it on the way and it can be again.
//!
//! Next hop objects before the routes that lead through them, direct routes before those that reach their gateways through
//! them. Never taken away, but for a rule that stands where another is to be deleted, and that comes back.
//!
//! Cost: n log n in what is kept, and only if some of it is missing.

use super::Walk;
use crate::plan::memory;
use crate::plan::step::Step;
use crate::state::{Kept, KeptKind, Observed, Rule};
use std::collections::BTreeSet;

impl Walk<'_> {
    /// What other routes may need.
    pub(super) fn kept_first(&mut self, to: &Observed) {
        self.put_back(to, |kept| kept.kind == KeptKind::NextHop);
        self.put_back(to, |kept| kept.kind == KeptKind::Route && !has_gateway(kept));
    }

    pub(super) fn kept_last(&mut self, to: &Observed) {
        self.put_back(to, |kept| kept.kind == KeptKind::Route);
        self.put_back(to, |kept| kept.kind == KeptKind::Rule);
        let entry =
            |kind: KeptKind| matches!(kind, KeptKind::Neighbour | KeptKind::Forwarding | KeptKind::Group);
        self.put_back(to, |kept| entry(kept.kind));
    }

    fn put_back(&mut self, to: &Observed, fits: impl Fn(&Kept) -> bool) {
        if self.work.kept == to.kept {
            return;
        }
        let there: BTreeSet<&Kept> = self.work.kept.iter().collect();
        let missing = to.kept.iter().filter(|kept| fits(kept) && !there.contains(kept));
        let mut missing: Vec<Kept> = missing.cloned().collect();
        // A group has no family, and comes after what is in it.
        missing.sort_by_key(|kept| kept.family.is_none());
        for kept in missing {
            let step = Step::Restore { kept: Box::new(kept.clone()) };
            if memory::apply(self.work.to_mut(), &step).is_err() {
                // On the way forward it is said to be lost. On the way back the kernel, which had it once, has the
                // last word.
                if self.from.kept.iter().any(|was| was.is_same(&kept)) {
                    continue;
                }
                memory::put(self.work.to_mut(), &kept);
            }
            self.steps.push(step);
        }
    }

    /// Rules that say more, and would be deleted in the stead of this one.
    pub(super) fn clear_the_way(&mut self, rule: &Rule) {
        // The kernel does compare who made them, where it is told.
        let same_hand = |plain: &Rule| rule.raw.is_empty() || rule.raw.0 == plain.raw.0;
        let in_the_way =
            |kept: &&Kept| kept.rule.as_ref().is_some_and(|plain| rule.could_mean(plain) && same_hand(plain));
        let list: Vec<Kept> = self.work.kept.iter().filter(in_the_way).cloned().collect();
        for kept in list {
            self.step(Step::Forget { kept: Box::new(kept) });
        }
    }
}

fn has_gateway(kept: &Kept) -> bool {
    kept.hops.iter().any(|hop| hop.via.is_some())
}
