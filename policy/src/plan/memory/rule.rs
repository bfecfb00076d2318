//! Rules: each is there once per hand that made it, and the kernel deletes the first that fits what it was told.

use super::MemoryError;
use crate::state::{Observed, Rule};

pub(super) fn add(state: &mut Observed, rule: &Rule) -> Result<(), MemoryError> {
    if state.rules.iter().any(|known| known == rule && known.raw.0 == rule.raw.0) {
        return Err(MemoryError::RuleExists { rule: Box::new(rule.clone()) });
    }
    state.rules.push(rule.clone());
    Ok(())
}

pub(super) fn delete(state: &mut Observed, rule: &Rule) -> Result<(), MemoryError> {
    let there = state.rules.contains(rule);
    match state.rules.iter().position(|r| rule.could_mean(r)) {
        Some(at) if there => {
            // The first that fits goes, whichever was meant.
            state.rules.remove(at);
            Ok(())
        }
        _ => Err(MemoryError::NoRule { rule: Box::new(rule.clone()) }),
    }
}
