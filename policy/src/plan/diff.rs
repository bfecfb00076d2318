//! The way from one state to another, step by step, each step played in memory as it is found.
//!
//! Both states are whole; what is equal in both costs a comparison. Because every phase looks at the state as
//! the phases before it leave it, what the kernel takes away on its own is seen and put back.

mod addresses;
mod kept;
mod links;
mod options;
mod routes;

pub(super) use links::is_another;

use super::error::{Problem, ProblemKind};
use super::loss::losses;
use super::step::Step;
use super::{Plan, memory};
use crate::state::{DesiredAddress, IfName, Observed, Route, Rule};
use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};

/// The plan, and what would go wrong with it.
pub(super) struct Outcome {
    pub(super) plan: Plan,
    pub(super) failures: Vec<Problem>,
}

/// What somebody asked for by name, where that makes a difference.
#[derive(Default)]
pub(super) struct Asked {
    /// Links to be gone: of the two ends of a veth, which only go together, that one is removed by name.
    pub(super) absent: BTreeSet<IfName>,
    /// Lists of addresses of links that are to be down: of those a lease that is lost is put there as static.
    pub(super) addresses: BTreeMap<IfName, Vec<DesiredAddress>>,
}

pub(super) fn diff(from: &Observed, to: &Observed, asked: &Asked) -> Outcome {
    let mut walk = Walk {
        from,
        asked,
        work: Cow::Borrowed(from),
        steps: Vec::new(),
        made: BTreeSet::new(),
        failures: Vec::new(),
    };
    walk.links(to);
    let losing = walk.gains(to);
    walk.early_routes(to, &losing);
    walk.addresses(to);
    walk.kept_first(to);
    walk.routes(to);
    walk.rules(to);
    walk.kept_last(to);
    if !walk.work.dns.is(&to.dns) {
        walk.step(Step::SetDns { dns: to.dns.clone() });
    }
    if walk.work.hostname != to.hostname {
        walk.step(Step::SetHostname { hostname: to.hostname.clone() });
    }
    walk.outcome()
}

struct Walk<'a> {
    from: &'a Observed,
    asked: &'a Asked,
    /// The state after the steps so far; copied at the first one.
    work: Cow<'a, Observed>,
    steps: Vec<Step>,
    /// Links made on the way and not yet brought up.
    made: BTreeSet<IfName>,
    failures: Vec<Problem>,
}

impl Walk<'_> {
    fn outcome(self) -> Outcome {
        let losses = match &self.work {
            Cow::Borrowed(_) => Vec::new(),
            Cow::Owned(after) => losses(self.from, after, &self.steps),
        };
        Outcome { plan: Plan { steps: self.steps, losses }, failures: self.failures }
    }

    /// A step that may come now or later: taken only if the kernel would take it now.
    fn attempt(&mut self, step: Step) {
        if memory::apply(self.work.to_mut(), &step).is_ok() {
            self.steps.push(step);
        }
    }

    fn step(&mut self, step: Step) {
        if let Err(error) = memory::apply(self.work.to_mut(), &step) {
            self.failed(&step, error);
        }
        self.steps.push(step);
    }

    fn failed(&mut self, step: &Step, error: memory::MemoryError) {
        // A route that the kernel has taken once it takes again; it knows more than the model does.
        if let Step::AddRoute { route } | Step::AppendRoute { route } | Step::ReplaceRoute { route } = step
            && self.from.routes.contains(route)
        {
            self.work.to_mut().routes.push(route.clone());
            return;
        }
        let path = format!("step {} ({step})", self.steps.len() + 1);
        self.failures.push(Problem { path, kind: ProblemKind::Step(error) });
    }

    fn rules(&mut self, to: &Observed) {
        if self.work.rules == to.rules {
            return;
        }
        // As many as there are: one rule may stand there twice, by different hands.
        let missing = left_over(&to.rules, &self.work.rules);
        let surplus = left_over(&self.work.rules, &to.rules);
        // New before old: at no moment does a packet that has a rule in both states find none.
        for rule in missing {
            self.step(Step::AddRule { rule });
        }
        for rule in &surplus {
            self.delete_rule(rule);
        }
        // Gone only because they stood in the way.
        for rule in left_over(&to.rules, &self.work.rules) {
            self.step(Step::AddRule { rule });
        }
    }

    /// The kernel deletes the first rule that fits what it is told; narrower ones ahead of this one go first.
    fn delete_rule(&mut self, rule: &Rule) {
        let Some(at) = self.work.rules.iter().position(|r| r == rule) else { return };
        let ahead: Vec<Rule> = self.work.rules[..at].iter().filter(|r| rule.could_mean(r)).cloned().collect();
        for narrower in &ahead {
            self.delete_rule(narrower);
        }
        self.clear_the_way(rule);
        self.step(Step::DeleteRule { rule: rule.clone() });
    }
}

/// What is in the first list beyond what is in the second, each as often.
fn left_over(these: &[Rule], those: &[Rule]) -> Vec<Rule> {
    let mut counts: BTreeMap<&Rule, usize> = BTreeMap::new();
    those.iter().for_each(|rule| *counts.entry(rule).or_default() += 1);
    let more = these.iter().filter(|rule| match counts.get_mut(rule) {
        Some(count) if *count > 0 => {
            *count -= 1;
            false
        }
        _ => true,
    });
    more.cloned().collect()
}

/// Routes in a form that can be compared whatever the order.
fn sorted(routes: &[Route]) -> Vec<&Route> {
    let mut list: Vec<&Route> = routes.iter().collect();
    list.sort();
    list
}
