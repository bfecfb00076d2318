//! A plan straight from a document, with all that is wrong with it said at once: what Berth doesn't take, and what
//! this host can't be brought to.
//!
//! Called by `berth plan` and whoever answers a person. What can be read of a wrong document is planned too, and
//! only for its problems. A problem that may only be there because something else couldn't be read is not told:
//! in doubt it is left out, and comes up, if it is real, once the rest is mended.
//!
//! Cost: that of a plan; the rest only where something is refused.

use super::error::{PlanError, Problem, ProblemKind};
use super::{Plan, plan};
use crate::state::kind::PortStyle;
use crate::state::{Desired, DesiredLink, Identifier, IfName, LinkKind, Observed, Refusals};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};

/// What to do so that a document holds, or everything that is wrong with it.
pub fn plan_document(observed: &Observed, document: &Value) -> Result<Plan, PlanError> {
    let (desired, refusals) = Desired::read(document);
    let planned = plan(observed, &desired);
    if refusals.0.is_empty() {
        return planned;
    }
    let doubt = Doubt::new(observed, &desired, &refusals);
    let found = planned.err().map_or(Vec::new(), |e| e.problems);
    let found: Vec<Problem> = found.into_iter().filter(|p| !doubt.covers(p)).collect();
    let refused = refusals
        .0
        .into_iter()
        .map(|refusal| Problem { path: refusal.path, kind: ProblemKind::Refused(refusal.reason) });
    let mut problems: Vec<Problem> = refused.collect();
    problems.extend(found);
    Err(PlanError::new(problems))
}

/// What a document that was read in part leaves open.
struct Doubt<'a> {
    /// Entries (`interfaces[0]`, `routes.config[2]`) with what was refused in them, relative to the entry.
    entries: BTreeMap<&'a str, Vec<&'a str>>,
    /// Names of interfaces whose entries were read in part.
    names: BTreeSet<&'a str>,
    /// Nobody can tell which interfaces the refused parts speak of.
    vague: bool,
}

impl<'a> Doubt<'a> {
    fn new(observed: &Observed, desired: &'a Desired, refusals: &'a Refusals) -> Self {
        let mut entries: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
        for refusal in &refusals.0 {
            let (entry, field) = split(&refusal.path);
            entries.entry(entry).or_default().push(field);
        }
        let paths: BTreeMap<String, &DesiredLink> =
            desired.links.iter().map(|l| (format!("interfaces[{}]", l.index), l)).collect();
        let mut names = BTreeSet::new();
        let mut vague = false;
        for (entry, fields) in &entries {
            match paths.get(*entry) {
                Some(link) => {
                    names.insert(link.name.as_str());
                    vague |= is_vague(observed, link, fields);
                }
                // Without a name, named twice, or no list of interfaces at all.
                None => vague |= entry.is_empty() || entry.starts_with("interfaces"),
            }
        }
        Self { entries, names, vague }
    }

    /// Whether a problem may be there only because of what couldn't be read.
    fn covers(&self, problem: &Problem) -> bool {
        let (entry, field) = split(&problem.path);
        let own = is_of_its_own(&problem.kind);
        if let Some(refused) = self.entries.get(entry) {
            return !own || refused.iter().any(|other| bears_on(other, field));
        }
        match &problem.kind {
            // Any address may be the missing one; MTUs and being down are handed on from link to link; any step
            // may lack what comes before it.
            ProblemKind::Source { .. }
            | ProblemKind::MtuBase { .. }
            | ProblemKind::BaseDown { .. }
            | ProblemKind::RouteLinkDown { .. } => self.vague || !self.names.is_empty(),
            ProblemKind::Step(_) => true,
            ProblemKind::RouteConflict { first } => self.entries.contains_key(first.as_str()),
            // Without its table or metric a route is taken for another way of this one.
            ProblemKind::HopWithoutGateway => self.entries.keys().any(|entry| entry.starts_with("routes")),
            ProblemKind::Cycle { names } => {
                self.vague || names.iter().any(|n| self.names.contains(n.as_str()))
            }
            kind => {
                let doubtful = |name: &&IfName| self.names.contains(name.as_str());
                (self.vague && !own) || others(kind).iter().flatten().any(doubtful)
            }
        }
    }
}

/// The entry of a list that a path leads into, and the way from there; a section by itself where there is none.
fn split(path: &str) -> (&str, &str) {
    match path.find(']') {
        Some(end) => (&path[..=end], path[end + 1..].trim_start_matches('.')),
        None => (path, ""),
    }
}

/// Whether an entry that was read in part may have been meant to make, name or feed another interface.
fn is_vague(observed: &Observed, link: &DesiredLink, refused: &[&str]) -> bool {
    let found = observed.links.get(&link.name);
    let there = found.is_some();
    let kind = link.kind.as_ref().or(found.map(|l| &l.kind));
    let holds_ports = kind.is_some_and(|k| k.spec().ports != PortStyle::None) || link.ports.is_some();
    let pairs = matches!(link.kind, Some(LinkKind::Veth)) || (link.kind.is_none() && !there);
    let known_otherwise = link.identifier != Identifier::Name
        || !there && observed.links.values().any(|l| l.alt_names.contains(link.name.as_str()));
    let joins = |field: &&str| match top(field) {
        "controller" | "master" | "identifier" | "veth" => true,
        section => holds_ports && !matches!(section, "ipv4" | "ipv6" | "mtu"),
    };
    pairs || known_otherwise || refused.iter().any(joins)
}

fn top(field: &str) -> &str {
    field.split(['.', '[']).next().unwrap_or_default()
}

/// Whether what was refused at one field of an entry may be why another is a problem.
fn bears_on(refused: &str, field: &str) -> bool {
    match top(refused) {
        "" | "name" | "type" | "state" | "identifier" | "mac-address" => true,
        // An address more or less doesn't change what the rest of its family says.
        section => section == top(field) && !refused.contains(".address[") || field.is_empty(),
    }
}

/// Problems of what an entry itself says with what the host has; nothing else in the document would mend them.
fn is_of_its_own(kind: &ProblemKind) -> bool {
    matches!(
        kind,
        ProblemKind::NotAutomatic { .. }
            | ProblemKind::MtuRange { .. }
            | ProblemKind::CantCopyMac
            | ProblemKind::CantRemove { .. }
            | ProblemKind::NameTooLong { .. }
            | ProblemKind::OtherKind { .. }
            | ProblemKind::Ignored { .. }
            | ProblemKind::NoSuchMac { .. }
            | ProblemKind::AmbiguousMac { .. }
            | ProblemKind::LoopbackOnlyAddresses
    )
}

/// The interfaces that a problem speaks of.
fn others(kind: &ProblemKind) -> [Option<&IfName>; 2] {
    use ProblemKind as K;
    match kind {
        K::NoSuchLink { name }
        | K::CantMake { name, .. }
        | K::MeantTwice { name, .. }
        | K::OtherKind { name, .. }
        | K::Ignored { name, .. }
        | K::CantRemove { name }
        | K::NameTooLong { name }
        | K::UnknownController { name }
        | K::NotAController { name, .. }
        | K::MtuRange { name, .. }
        | K::Ipv6Mtu { name, .. }
        | K::OwnName { name, .. }
        | K::NotAutomatic { name, .. }
        | K::RouteLinkMissing { name }
        | K::RouteLinkIgnored { name }
        | K::RouteLinkDown { name }
        | K::RouteFamilyOff { name, .. }
        | K::Gateway { name, .. }
        | K::OwnGateway { name, .. } => [Some(name), None],
        K::UnknownPort { controller, port }
        | K::NotListed { controller, port }
        | K::CantBePort { controller, port }
        | K::IpOnPort { controller, port, .. }
        | K::DynamicOnPort { controller, port } => [Some(controller), Some(port)],
        K::Overbooked { port, first } => [Some(port), Some(first)],
        K::OtherPeer { name, peer } => [Some(name), Some(peer)],
        K::Listed { controller, .. } => [Some(controller), None],
        K::NotAPort { port } => [Some(port), None],
        K::OnLoopback { base }
        | K::UnknownBase { base }
        | K::BaseAbsent { base }
        | K::BaseDown { base }
        | K::MtuBase { base, .. } => [Some(base), None],
        K::BaseMacVlan { base, lower } => [Some(base), Some(lower)],
        K::TakenAlong { upper, base, .. } => [Some(upper), Some(base)],
        K::VlanTaken { other, base } => [Some(other), Some(base)],
        K::PortGoes { port, base } => [Some(port), Some(base)],
        K::NoMacToCopy { from } => [Some(from), None],
        K::NoSuchMac { .. }
        | K::AmbiguousMac { .. }
        | K::Missing { .. }
        | K::Cycle { .. }
        | K::CantCopyMac
        | K::MtuIpv6 { .. }
        | K::LoopbackOnlyAddresses
        | K::Source { .. }
        | K::HopWithoutGateway
        | K::RouteConflict { .. }
        | K::Pointless(_)
        | K::NotHere { .. }
        | K::Refused(_)
        | K::Step(_) => [None, None],
    }
}

#[cfg(test)]
mod tests;
