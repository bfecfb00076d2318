//! Ranges that are to go (R62, R64, R65, R96): a Draining one that has been idle for a while is named in `status.drained`, and
//! may be removed then, not before: the CRD refuses it.
//!
//! Idle is a range that holds nothing but what one that doesn't drain has too, and of which no slice is cut: a slice is its node's
//! as a whole, and goes when the last address in it does. Whoever held an address of the range and had not been heard of (a host
//! that was off, a journal that asserts) has that while to say so; then the range is in use again, which is told. The while
//! counts from when this controller saw it idle, so that a new leader counts anew. Cost: a look at the ledger and the slices of
//! a pool that has a Draining range, and one small write when one is drained.

use std::sync::PoisonError;

use policy::claim::Time;

use super::pools::Look;
use super::{Lead, told};

impl Lead {
    /// The ranges of a pool that may go, and when to look again.
    pub(super) fn drained(&self, look: &Look) -> (Vec<String>, Option<Time>) {
        let held = look.ledger.allocations.keys().copied();
        let idle = look.known.pool.idle(held, look.slices.iter().map(|slice| slice.cidr));
        let before =
            look.known.object.status.as_ref().map(|status| status.drained.as_slice()).unwrap_or_default();
        let grace = self.settings.grace.as_secs();
        let mut since = self.idle.lock().unwrap_or_else(PoisonError::into_inner);
        since.retain(|(pool, range), _| *pool != look.name || idle.contains(range.as_str()));
        let (mut drained, mut next) = (Vec::new(), None);
        for range in idle {
            let begun = *since.entry((look.name.clone(), range.to_owned())).or_insert(look.now);
            let over = begun.saturating_add(grace);
            if before.iter().any(|known| known == range) || look.now >= over {
                drained.push(range.to_owned());
            } else {
                next = Some(next.map_or(over, |other: Time| other.min(over)));
            }
        }
        (drained, next)
    }

    /// What was drained and is not any more, although it still drains, is in use again.
    pub(super) fn tell_in_use_again(&self, look: &Look, drained: &[String]) {
        let before =
            look.known.object.status.as_ref().map(|status| status.drained.as_slice()).unwrap_or_default();
        for range in before.iter().filter(|range| !drained.contains(range)) {
            if look.known.pool.is_draining(range) {
                told::in_use_again(&self.events, &look.known.object, range);
            }
        }
    }
}
