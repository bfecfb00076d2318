//! What the host shall look like: a desired document merged over what was observed.
//!
//! What the document doesn't mention stays as observed. Everything that can't be is collected with its path;
//! nothing is reported twice.

pub(super) mod ip;
mod links;
mod ports;
pub(super) mod routes;
pub(super) mod rules;
mod stack;

use super::diff::Asked;
use super::error::{PlanError, Problem, ProblemKind};
use super::resolve::resolve;
use crate::state::{Desired, DesiredLink, Dns, IfName, LinkState, Observed};
use std::collections::{BTreeMap, BTreeSet};

/// Where the plan leads.
pub(super) struct Target {
    /// The state, whole.
    pub(super) state: Observed,
    /// What the document itself names.
    pub(super) asked: Asked,
}

pub(super) fn target(observed: &Observed, desired: &Desired) -> Result<Target, PlanError> {
    let mut problems = Vec::new();
    let desired = resolve(observed, desired, &mut problems);
    let mut merge = Merge {
        observed,
        docs: desired.links.iter().map(|l| (&l.name, l)).collect(),
        state: observed.clone(),
        removed: BTreeSet::new(),
        moved: BTreeMap::new(),
        problems,
    };
    for link in &desired.links {
        merge.link(link);
    }
    merge.ports(&desired);
    merge.void_vlans();
    merge.stack();
    for link in &desired.links {
        merge.ips(link);
    }
    merge.ports_without_ip(&desired);
    merge.mtus(&desired);
    merge.routes(&desired);
    merge.rules(&desired);
    merge.resolver_and_hostname(&desired);
    if merge.problems.is_empty() {
        let state = merge.state;
        let asked = asked(desired, &state);
        Ok(Target { state, asked })
    } else {
        Err(PlanError::new(merge.problems))
    }
}

fn asked(desired: Desired, state: &Observed) -> Asked {
    let mut asked = Asked::default();
    for link in desired.links {
        if link.state == LinkState::Absent {
            asked.absent.insert(link.name);
        } else if state.links.get(&link.name).is_some_and(|wanted| !wanted.up) {
            let lists = [link.ipv4, link.ipv6].into_iter().flatten().filter_map(|ip| ip.addresses);
            asked.addresses.insert(link.name, lists.flatten().collect());
        }
    }
    asked
}

struct Merge<'a> {
    observed: &'a Observed,
    /// The document's entries by kernel name.
    docs: BTreeMap<&'a IfName, &'a DesiredLink>,
    /// The target, under way.
    state: Observed,
    /// Links that go, named by the document or with what they sit on.
    removed: BTreeSet<IfName>,
    /// Ports that came under a controller that takes their addresses' place.
    moved: BTreeMap<IfName, IfName>,
    problems: Vec<Problem>,
}

impl Merge<'_> {
    fn problem(&mut self, path: String, kind: ProblemKind) {
        self.problems.push(Problem { path, kind });
    }

    /// A problem with an entry of `interfaces`.
    fn link_problem(&mut self, link: &DesiredLink, field: &str, kind: ProblemKind) {
        let dot = if field.is_empty() { "" } else { "." };
        self.problem(format!("interfaces[{}]{dot}{field}", link.index), kind);
    }

    fn resolver_and_hostname(&mut self, desired: &Desired) {
        if let Some(dns) = &desired.dns {
            let into = &mut self.state.dns;
            for (list, wanted) in [
                (&mut into.servers, &dns.servers),
                (&mut into.search, &dns.search),
                (&mut into.options, &dns.options),
            ] {
                if let Some(wanted) = wanted {
                    list.clone_from(wanted);
                }
            }
            if !self.observed.dns.is(&Dns { text: None, ..into.clone() }) {
                into.text = None;
            }
        }
        if let Some(wanted) = &desired.hostname {
            self.state.hostname = self.state.hostname.merged(wanted);
        }
    }

    /// Whether the document wants that link to be there.
    fn wanted(&self, name: &IfName) -> Option<&DesiredLink> {
        self.docs.get(name).copied().filter(|d| matches!(d.state, LinkState::Up | LinkState::Down))
    }
}
