//! Rules: additive; absent is a filter; a priority is found where none was asked for.

use super::Merge;
use crate::state::route::MAIN_TABLE;
use crate::state::{Desired, DesiredRule, Family, Raw, Rule};
use std::collections::BTreeSet;

/// Where nmstate begins to give priorities: below the main table's rule (32766), above what people write.
const FIRST_PRIORITY: u32 = 30_000;

impl Merge<'_> {
    pub(super) fn rules(&mut self, desired: &Desired) {
        if desired.rules.is_empty() {
            return;
        }
        let rules = &mut self.state.rules;
        let wanted: Vec<&DesiredRule> = desired.rules.iter().filter(|r| !r.absent).collect();
        for filter in desired.rules.iter().filter(|r| r.absent) {
            // What the same document wants stays.
            rules.retain(|rule| {
                rule.is_kernels() || !matches(filter, rule) || wanted.iter().any(|w| is(w, rule))
            });
        }
        let mut taken: BTreeSet<(Family, u32)> = rules.iter().map(|r| (r.family, r.priority)).collect();
        taken.extend(wanted.iter().filter_map(|w| Some((w.family?, w.priority?))));
        for wish in wanted {
            if is_born(wish) || rules.iter().any(|rule| is(wish, rule)) {
                continue;
            }
            let family = wish.family.unwrap_or(Family::Ipv4);
            let priority = wish.priority.unwrap_or_else(|| {
                let free = (FIRST_PRIORITY..).find(|p| !taken.contains(&(family, *p)));
                free.unwrap_or(FIRST_PRIORITY)
            });
            taken.insert((family, priority));
            rules.push(rule(wish, family, priority));
        }
    }
}

fn rule(wish: &DesiredRule, family: Family, priority: u32) -> Rule {
    Rule {
        family,
        priority,
        from: wish.from.filter(|n| n.prefix_len() > 0),
        to: wish.to.filter(|n| n.prefix_len() > 0),
        iif: wish.iif.clone(),
        fwmark: wish.fwmark,
        fwmask: wish.fwmask,
        table: match wish.action {
            None => Some(wish.table.unwrap_or(MAIN_TABLE)),
            Some(_) => None,
        },
        action: wish.action,
        suppress_prefix_length: wish.suppress_prefix_length,
        raw: Raw::default(),
    }
}

/// Whether every host has it: such rules are never shown, and never asked for in vain.
pub(in crate::plan) fn is_born(wish: &DesiredRule) -> bool {
    let priority = |priority| rule(wish, wish.family.unwrap_or(Family::Ipv4), priority).is_kernels();
    wish.priority.is_some_and(priority)
}

/// Whether a rule is the one wished for; a priority that wasn't said may be any.
pub(in crate::plan) fn is(wish: &DesiredRule, found: &Rule) -> bool {
    let wanted = rule(wish, wish.family.unwrap_or(Family::Ipv4), wish.priority.unwrap_or(found.priority));
    wanted.is(found)
}

/// Whether a filter means a rule: what it doesn't say matches anything.
pub(in crate::plan) fn matches(filter: &DesiredRule, rule: &Rule) -> bool {
    fn agrees<T: PartialEq>(said: Option<&T>, found: Option<&T>) -> bool {
        said.is_none() || said == found
    }
    let net = |n: Option<ipnet::IpNet>| n.filter(|n| n.prefix_len() > 0);
    agrees(filter.family.as_ref(), Some(&rule.family))
        && agrees(filter.priority.as_ref(), Some(&rule.priority))
        && (filter.from.is_none() || net(filter.from) == rule.from)
        && (filter.to.is_none() || net(filter.to) == rule.to)
        && agrees(filter.iif.as_ref(), rule.iif.as_ref())
        && agrees(filter.fwmark.as_ref(), rule.fwmark.as_ref())
        && agrees(filter.fwmask.as_ref(), rule.fwmask.as_ref())
        && agrees(filter.table.as_ref(), rule.table.as_ref())
        && agrees(filter.action.as_ref(), rule.action.as_ref())
        && agrees(filter.suppress_prefix_length.as_ref(), rule.suppress_prefix_length.as_ref())
}
